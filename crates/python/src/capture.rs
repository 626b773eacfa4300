//! Recorded steps as Python objects, for `pullback.capture`.
//!
//! Python keeps the trees of arguments and results, and what it guards itself; here are lists of tensors.

use crate::convert::type_name;
use crate::error::raise;
use crate::interrupt::computing;
use crate::lock::without_lock;
use crate::raw::object::{as_tensor, wrap_bound};
use pullback::Tensor;
use pullback::capture::{Program, Recording, Refusal};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use smallvec::SmallVec;

/// The tensors of a list.
fn tensors<'a>(objects: &'a [Bound<'_, PyAny>]) -> PyResult<SmallVec<[&'a Tensor; 4]>> {
    let one = |object: &'a Bound<'_, PyAny>| {
        as_tensor(object).ok_or_else(|| {
            PyTypeError::new_err(format!("expected a Tensor, but got {}", type_name(object)))
        })
    };
    objects.iter().map(one).collect()
}

/// A refusal as a pair of the reason and whether it is final.
fn refusal(py: Python<'_>, refusal: Refusal) -> PyResult<Bound<'_, PyAny>> {
    Ok((refusal.reason, refusal.is_final).into_pyobject(py)?.into_any())
}

/// A step that is being recorded.
#[pyclass(name = "_Recording", module = "torch._C", unsendable)]
struct RecordingObject(Option<Recording>);

impl RecordingObject {
    fn recording(&self) -> PyResult<&Recording> {
        self.0.as_ref().ok_or_else(|| PyRuntimeError::new_err("the recording has ended"))
    }
}

#[pymethods]
impl RecordingObject {
    /// Whether something that the step made is held by others than its results and `.grad`s.
    fn has_kept(&self, outputs: Vec<Bound<'_, PyAny>>) -> PyResult<bool> {
        Ok(self.recording()?.has_kept(&tensors(&outputs)?))
    }
    /// Ends the recording: the program, or why there is none.
    fn finish<'py>(
        &mut self,
        py: Python<'py>,
        outputs: Vec<Bound<'py, PyAny>>,
        watched: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.recording()?;
        let (outputs, watched) = (tensors(&outputs)?, tensors(&watched)?);
        let Some(recording) = self.0.take() else { return Ok(py.None().into_bound(py)) };
        match recording.finish(&outputs, &watched) {
            Ok(program) => Ok(Bound::new(py, ProgramObject(program))?.into_any()),
            Err(reason) => refusal(py, reason),
        }
    }
    /// Ends the recording without a program.
    fn abort(&mut self) {
        self.0 = None;
    }
}

/// A step that can be replayed.
#[pyclass(name = "_Program", module = "torch._C", frozen)]
struct ProgramObject(Program);

#[pymethods]
impl ProgramObject {
    /// The results of the step for these arguments; None if a guard says that the step might do something else.
    fn replay<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let inputs = tensors(&inputs)?;
        let replayed = computing(|| without_lock(py, || self.0.replay(&inputs)).map_err(raise))?;
        let Some(results) = replayed else { return Ok(None) };
        let list = PyList::empty(py);
        for result in results {
            list.append(wrap_bound(py, result)?)?;
        }
        Ok(Some(list))
    }
    /// The reason why the program cannot be replayed with these arguments now.
    fn obstacle(&self, inputs: Vec<Bound<'_, PyAny>>) -> PyResult<Option<String>> {
        Ok(self.0.obstacle(&tensors(&inputs)?))
    }
    /// Numbers of instructions and tensors from outside; bytes planned, of the intermediates each by itself, and new in each
    /// replay.
    fn summary(&self) -> (usize, usize, usize, usize, usize) {
        let it = self.0.summary();
        (it.instructions, it.outside, it.planned, it.intermediate, it.fresh)
    }
}

/// Begins to record a step of these arguments on this thread: the recording, or why there is none.
#[pyfunction]
fn _begin_capture<'py>(
    py: Python<'py>,
    inputs: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match Recording::begin(&tensors(&inputs)?) {
        Ok(recording) => Ok(Bound::new(py, RecordingObject(Some(recording)))?.into_any()),
        Err(reason) => refusal(py, reason),
    }
}

pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_begin_capture, module)?)?;
    module.add_class::<RecordingObject>()?;
    module.add_class::<ProgramObject>()
}
