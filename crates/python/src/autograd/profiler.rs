//! The Python binding of the profiler: begin, end, ranges that the program names, and what was
//! recorded as Python objects.
//!
//! Tables and sums are made in Python (`pullback.autograd.profiler_util`).

use super::mode::flag;
use crate::dtype::{device_object, dtype_object, layout_object};
use crate::error::raise;
use crate::lock::without_lock;
use crate::raw::tracer;
use pullback::Scalar;
use pullback::call_site::CallSite;
use pullback::dispatch::{Arg, Value};
use pullback::prof::{self, Config, Event, Open, RangeKind, Recorded, RecordedInput};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::UNIX_EPOCH;

/// The events of a profile.
#[pyclass(module = "torch._C", name = "_ProfilerResult", frozen)]
struct ProfilerResult(Recorded);

/// Lines of the program, each looked up once.
#[derive(Default)]
struct SourceLines(HashMap<CallSite, Py<PyAny>>);

impl SourceLines {
    fn get(&mut self, py: Python<'_>, call_site: CallSite) -> PyResult<Py<PyAny>> {
        if let Some(known) = self.0.get(&call_site) {
            return Ok(known.clone_ref(py));
        }
        let text = call_site.source_line().map_or_else(String::new, |line| {
            let function = line.function.unwrap_or_default();
            format!("{}({}): {function}", line.file, line.line)
        });
        let line = text.into_pyobject(py)?.into_any().unbind();
        self.0.insert(call_site, line.clone_ref(py));
        Ok(line)
    }
    fn of(&mut self, py: Python<'_>, event: &Event) -> PyResult<Py<PyAny>> {
        let lines: Vec<_> = event
            .stack()
            .iter()
            .map(|&call_site| self.get(py, call_site))
            .collect::<PyResult<_>>()?;
        Ok(PyList::new(py, lines)?.into_any().unbind())
    }
}

/// The sizes of a tensor, a list of sizes for a list of tensors, nothing for anything else.
fn shape(py: Python<'_>, input: &RecordedInput) -> PyResult<Py<PyAny>> {
    Ok(match input {
        RecordedInput::Tensor { shape, .. } => {
            PyList::new(py, shape.as_slice())?.into_any().unbind()
        }
        RecordedInput::List(items) => each(py, items, shape)?,
        RecordedInput::Value(_) => PyList::empty(py).into_any().unbind(),
    })
}

/// The value of an argument that is no tensor, as a Python object if there is one.
fn value(py: Python<'_>, input: &RecordedInput) -> PyResult<Py<PyAny>> {
    let RecordedInput::Value(value) = input else { return Ok(py.None()) };
    Ok(match value {
        Value::Bool(b) | Value::Scalar(Scalar::Bool(b)) => b.into_py_any(py)?,
        Value::Int(i) | Value::Scalar(Scalar::Int(i)) => i.into_py_any(py)?,
        Value::Scalar(Scalar::UInt(u)) => u.into_py_any(py)?,
        Value::Float(x) | Value::Scalar(Scalar::Float(x)) => x.into_py_any(py)?,
        Value::Scalar(Scalar::Complex(re, im)) => {
            pyo3::types::PyComplex::from_doubles(py, *re, *im).into_any().unbind()
        }
        Value::Ints(all) => PyList::new(py, all)?.into_any().unbind(),
        Value::Floats(all) => PyList::new(py, all)?.into_any().unbind(),
        Value::Str(text) => text.into_py_any(py)?,
        Value::DType(dtype) => dtype_object(py, *dtype).unbind(),
        _ => py.None(),
    })
}

/// An input with all that is recorded of it: a tensor as the tuple of its sizes, strides, dtype,
/// device and layout.
fn described(py: Python<'_>, input: &RecordedInput) -> PyResult<Py<PyAny>> {
    match input {
        RecordedInput::Tensor { shape, strides, dtype, device, layout } => (
            PyList::new(py, shape.as_slice())?,
            PyList::new(py, strides.as_slice())?,
            dtype_object(py, *dtype),
            device_object(py, *device)?,
            layout_object(py, *layout),
        )
            .into_py_any(py),
        RecordedInput::List(items) => each(py, items, described),
        RecordedInput::Value(_) => value(py, input),
    }
}

fn each(
    py: Python<'_>,
    inputs: &[RecordedInput],
    show: fn(Python<'_>, &RecordedInput) -> PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let items: Vec<_> = inputs.iter().map(|input| show(py, input)).collect::<PyResult<_>>()?;
    Ok(PyList::new(py, items)?.into_any().unbind())
}

#[pymethods]
impl ProfilerResult {
    /// For each event, in the order in which they began: name, overload, thread, the thread of a node's forward, start and
    /// end in nanoseconds, scope, sequence number, the number of the event around it (or -1), whether another thread ended
    /// it, what kind it is, sizes and values of its inputs (or `None`) with the count of its operations, its lines.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut lines = SourceLines::default();
        let list = PyList::empty(py);
        for event in self.0.events() {
            let inputs = event.inputs();
            let item = (
                event.name.to_string(),
                event.name.overload(),
                event.thread,
                event.forward_thread,
                (event.start, event.end),
                event.kind.scope(),
                event.sequence_nr,
                event.parent().map_or(-1, |parent| parent as i64),
                event.is_async,
                format!("{:?}", event.kind),
                (
                    inputs.map(|inputs| each(py, inputs, shape)).transpose()?,
                    inputs.map(|inputs| each(py, inputs, value)).transpose()?,
                    event.flops(),
                ),
                lines.of(py, event)?,
            );
            list.append(item)?;
        }
        Ok(list)
    }
    /// The arguments of each event: a list, or `None` if inputs were not recorded.
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let inputs = self
            .0
            .events()
            .iter()
            .map(|event| event.inputs().map(|inputs| each(py, inputs, described)).transpose());
        PyList::new(py, inputs.collect::<PyResult<Vec<_>>>()?)
    }
    /// The outermost events, each with those within it (`pullback._event_tree`).
    fn experimental_event_tree<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import(intern!(slf.py(), "pullback._event_tree"))?;
        module.call_method1(intern!(slf.py(), "event_tree"), (slf,))
    }
    /// Allocations and releases of memory: time in nanoseconds, address, bytes, thread, the number
    /// of the event it happened in (or -1).
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let items = self.0.memory().iter().map(|taken| {
            let event = taken.event().map_or(-1, |event| event as i64);
            (taken.time, taken.address, taken.bytes, taken.thread, event)
        });
        PyList::new(py, items.collect::<Vec<_>>())
    }
    /// When the profile began, in nanoseconds since 1970.
    fn trace_start_ns(&self) -> u128 {
        self.0.started().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
    }
    /// The duration in nanoseconds.
    fn duration_ns(&self) -> u64 {
        self.0.duration()
    }
    /// Writes a trace to a file, with further members of its outer object as JSON.
    fn save(&self, py: Python<'_>, path: &str, metadata: BTreeMap<String, String>) -> PyResult<()> {
        without_lock(py, || {
            let mut out = BufWriter::new(File::create(path)?);
            self.0.write_trace_with(&mut out, &metadata)?;
            out.flush()
        })
        .map_err(|error: std::io::Error| {
            PyErr::from(std::io::Error::new(error.kind(), format!("{error}: '{path}'")))
        })
    }
}

#[pyfunction]
fn _profiler_start(
    record_shapes: &Bound<'_, PyAny>,
    profile_memory: &Bound<'_, PyAny>,
    with_stack: &Bound<'_, PyAny>,
    with_flops: &Bound<'_, PyAny>,
) -> PyResult<()> {
    const NAME: &str = "_profiler_start";
    let config = Config {
        inputs: flag(record_shapes, NAME, ("record_shapes", 1))?,
        memory: flag(profile_memory, NAME, ("profile_memory", 2))?,
        stacks: flag(with_stack, NAME, ("with_stack", 3))?,
        flops: flag(with_flops, NAME, ("with_flops", 4))?,
    };
    prof::start(config).map_err(raise)
}

#[pyfunction]
fn _profiler_stop() -> PyResult<ProfilerResult> {
    prof::stop().map(ProfilerResult).map_err(raise)
}

#[pyfunction]
fn _profiler_enabled() -> bool {
    prof::is_profiling()
}

/// A range that the program opened, until it closes it.
#[pyclass(module = "torch._C", name = "_RecordFunction")]
struct RecordFunction(Option<Open>);

#[pymethods]
impl RecordFunction {
    /// Ends the range; a second call has no effect.
    fn close(&mut self) {
        drop(self.0.take());
    }
}

/// Opens a range. `kind` is `user` or `module`.
#[pyfunction]
#[pyo3(signature = (name, args = None, kind = "user"))]
fn _record_function_enter(name: &str, args: Option<&str>, kind: &str) -> PyResult<RecordFunction> {
    let kind = match kind {
        "user" => RangeKind::User,
        "module" => RangeKind::Module,
        _ => return Err(PyRuntimeError::new_err(format!("there are no ranges of kind '{kind}'"))),
    };
    if !prof::is_observed() {
        return Ok(RecordFunction(None));
    }
    let args = args.map(Arg::Str);
    Ok(RecordFunction(Some(prof::open(kind, || name.into(), args.as_slice()))))
}

/// Makes the calls of this thread's Python functions ranges, or stops that.
#[pyfunction]
fn _trace_python(enable: &Bound<'_, PyAny>) -> PyResult<()> {
    if flag(enable, "_trace_python", ("enable", 1))? {
        tracer::start();
    } else {
        tracer::stop();
    }
    Ok(())
}

/// Adds the functions.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ProfilerResult>()?;
    module.add_class::<RecordFunction>()?;
    module.add_function(wrap_pyfunction!(_profiler_start, module)?)?;
    module.add_function(wrap_pyfunction!(_profiler_stop, module)?)?;
    module.add_function(wrap_pyfunction!(_profiler_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(_record_function_enter, module)?)?;
    module.add_function(wrap_pyfunction!(_trace_python, module)?)
}
