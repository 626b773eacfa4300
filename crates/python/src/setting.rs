//! Functions of the module that are no ops: random state, threads, memory, dtypes, number limits.

use crate::convert::{to_scalar, type_name};
use crate::dtype::{as_dtype, check_seed, dtype_object};
use crate::error::raise;
use crate::raw::entry::{Args, Reply, fast, function};
use crate::raw::object::{as_tensor, is_tensor};
use crate::tensor::{construct, dlpack, numpy};
use pullback::tensor::promote;
use pullback::{DType, Tensor, memory, threads};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi::{self, PyMethodDef, PyMethodDefPointer, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ffi::CStr;

/// A fast built-in function object.
pub(crate) fn native<'py>(
    py: Python<'py>,
    name: &'static CStr,
    function: PyMethodDefPointer,
) -> PyResult<Bound<'py, PyAny>> {
    let def = Box::leak(Box::new(PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: function,
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: std::ptr::null(),
    }));
    // SAFETY: the definition lives forever.
    unsafe {
        let object = ffi::PyCFunction_NewEx(def, std::ptr::null_mut(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, object)
    }
}

fn is_tensor_function(py: Python<'_>, _: *mut PyObject, args: Args<'_>) -> Reply {
    let [object] = args.bind(py, "is_tensor", ["obj"], 1)?;
    // SAFETY: a live argument.
    let is_given_tensor = object.is_some_and(|o| unsafe { is_tensor(o.as_ptr()) });
    crate::result::scalar(py, pullback::Scalar::Bool(is_given_tensor))
}

#[pyfunction]
fn manual_seed<'py>(py: Python<'py>, seed: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let seed: i128 = seed.call_method0("__int__").and_then(|s| s.extract()).map_err(|_| {
        PyTypeError::new_err(format!("manual_seed expected a long, but got {}", type_name(seed)))
    })?;
    pullback::manual_seed(check_seed(seed)?);
    py.import("pullback._C")?.getattr("default_generator")
}

/// The shape to which two shapes broadcast: `_infer_size(a, b)`.
#[pyfunction]
fn _infer_size<'py>(py: Python<'py>, a: Vec<i64>, b: Vec<i64>) -> PyResult<Bound<'py, PyAny>> {
    let shape = pullback::tensor::shape::broadcast_shapes(&[&a, &b]).map_err(raise)?;
    // bounded: by the number of dimensions
    crate::raw::size::_make_size(py, shape.to_vec())
}

#[pyfunction]
fn initial_seed() -> u64 {
    pullback::default_generator().initial_seed()
}
#[pyfunction]
fn seed() -> u64 {
    pullback::default_generator().reseed()
}

#[pyfunction]
fn get_num_threads() -> usize {
    threads::num_threads()
}
#[pyfunction]
fn set_num_threads(threads: i64) -> PyResult<()> {
    if threads < 1 {
        return Err(PyRuntimeError::new_err("set_num_threads expects a positive integer"));
    }
    threads::set_num_threads(threads as usize);
    Ok(())
}

#[pyfunction]
fn _cpu_capability() -> PyResult<&'static str> {
    Ok(pullback::cpu::capability().map_err(raise)?.torch_name())
}

#[pyfunction]
fn get_default_dtype(py: Python<'_>) -> Bound<'_, PyAny> {
    dtype_object(py, promote::default_dtype())
}
#[pyfunction]
fn set_default_dtype(d: &Bound<'_, PyAny>) -> PyResult<()> {
    // Python's number types stand for dtypes everywhere but here.
    let Some(dtype) = as_dtype(d).filter(|_| !d.is_instance_of::<PyType>()) else {
        return Err(PyTypeError::new_err(
            "invalid dtype object: only floating-point types are supported as the default type",
        ));
    };
    promote::set_default_dtype(dtype).map_err(raise)
}

fn need_dtype(object: &Bound<'_, PyAny>, function: &str, name: &str) -> PyResult<DType> {
    as_dtype(object).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "{function}(): argument '{name}' must be torch.dtype, not {}",
            type_name(object)
        ))
    })
}
#[pyfunction]
fn promote_types<'py>(
    type1: &Bound<'py, PyAny>,
    type2: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let a = need_dtype(type1, "promote_types", "type1")?;
    let b = need_dtype(type2, "promote_types", "type2")?;
    Ok(dtype_object(type1.py(), promote::promote_types(a, b).map_err(raise)?))
}
#[pyfunction]
#[pyo3(signature = (from_, to))]
fn can_cast(from_: &Bound<'_, PyAny>, to: &Bound<'_, PyAny>) -> PyResult<bool> {
    let a = need_dtype(from_, "can_cast", "from_")?;
    let b = need_dtype(to, "can_cast", "to")?;
    Ok(promote::can_cast(a, b))
}
#[pyfunction]
fn result_type<'py>(
    tensor1: &Bound<'py, PyAny>,
    tensor2: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let read = |o: &Bound<'py, PyAny>| -> PyResult<Tensor> {
        match as_tensor(o) {
            Some(tensor) => Ok(tensor.clone()),
            None => Tensor::wrapped(to_scalar(o)?).map_err(raise),
        }
    };
    let (a, b) = (read(tensor1)?, read(tensor2)?);
    Ok(dtype_object(tensor1.py(), promote::result_type(&[&a, &b]).map_err(raise)?))
}

/// Makes warnings that are given once be given every time (or not).
#[pyfunction]
#[pyo3(signature = (b, /))]
fn set_warn_always(b: bool) {
    pullback::set_warn_always(b);
}
#[pyfunction]
fn is_warn_always_enabled() -> bool {
    pullback::is_warn_always()
}

/// Makes uninitialised elements NaN or the largest number (or not).
#[pyfunction]
fn _set_fill_uninitialized(is_filled: bool) {
    pullback::binding::set_fill_uninitialized(is_filled);
}

/// The numbers of `finfo`: bits, eps, max, tiny, resolution, smallest subnormal, and the dtype's name.
type FloatLimits = (u32, f64, f64, f64, f64, f64, &'static str);

/// The numbers of `finfo` for a dtype of one byte, given the exponents of its smallest numbers.
fn float8(dtype: DType, eps: f64, max: f64, tiny: i32, least: i32) -> FloatLimits {
    (8, eps, max, 2f64.powi(tiny), 1.0, 2f64.powi(least), dtype.name())
}

/// The result of `finfo` for a dtype.
#[pyfunction]
fn _finfo(dtype: &Bound<'_, PyAny>) -> PyResult<FloatLimits> {
    let dtype = need_dtype(dtype, "finfo", "type")?;
    let real = dtype.to_real();
    Ok(match real {
        DType::F64 => (64, f64::EPSILON, f64::MAX, f64::MIN_POSITIVE, 1e-15, 5e-324, "float64"),
        DType::F32 => (
            32,
            f64::from(f32::EPSILON),
            f64::from(f32::MAX),
            f64::from(f32::MIN_POSITIVE),
            1e-6,
            f64::from(f32::from_bits(1)),
            "float32",
        ),
        DType::F16 => {
            (16, 2f64.powi(-10), 65504.0, 2f64.powi(-14), 1e-3, 2f64.powi(-24), "float16")
        }
        DType::BF16 => (
            16,
            2f64.powi(-7),
            3.389_531_389_251_535_5e38,
            f64::from(f32::MIN_POSITIVE),
            1e-2,
            2f64.powi(-133),
            "bfloat16",
        ),
        // Of eps, largest, least normal and least number at all. (PyTorch gives all the resolution 1.)
        DType::F8E4M3FN => float8(real, 0.125, 448.0, -6, -9),
        DType::F8E5M2 => float8(real, 0.25, 57344.0, -14, -16),
        DType::F8E4M3FNUZ => float8(real, 0.125, 240.0, -7, -10),
        DType::F8E5M2FNUZ => float8(real, 0.25, 57344.0, -15, -17),
        DType::F8E8M0FNU => float8(real, 1.0, 2f64.powi(127), -127, -127),
        DType::F4E2M1FNX2 => {
            return Err(PyTypeError::new_err("bad argument type for built-in operation"));
        }
        _ => {
            return Err(PyTypeError::new_err(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'",
            ));
        }
    })
}

/// The numbers of `iinfo`: bits, min, max.
#[pyfunction]
fn _iinfo(dtype: &Bound<'_, PyAny>) -> PyResult<(u32, i128, i128, &'static str)> {
    let dtype = need_dtype(dtype, "iinfo", "type")?;
    if dtype == DType::Bool || !dtype.is_integral(false) {
        let text = if dtype == DType::Bool {
            "torch.bool is not supported by torch.iinfo"
        } else {
            "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'"
        };
        return Err(PyTypeError::new_err(text));
    }
    let bits = dtype.size() as u32 * 8;
    let (low, high) = if dtype.is_signed() {
        (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
    } else {
        (0, (1_i128 << bits) - 1)
    };
    Ok((bits, low, high, dtype.name()))
}

#[pyfunction]
fn _memory_live() -> usize {
    memory::live_bytes()
}
#[pyfunction]
fn _memory_cached() -> usize {
    memory::cached_bytes()
}
#[pyfunction]
fn _memory_peak() -> usize {
    memory::peak_bytes()
}
#[pyfunction]
fn _memory_reset_peak() {
    memory::reset_peak();
}
#[pyfunction]
fn _memory_empty_cache() {
    memory::empty_cache();
}
#[pyfunction]
fn _memory_set_cache_limit(bytes: usize) -> PyResult<()> {
    if bytes > isize::MAX as usize {
        return Err(PyValueError::new_err(format!("a cache of {bytes} bytes is no limit")));
    }
    memory::set_cache_limit(bytes);
    Ok(())
}

/// Makes library warnings Python warnings.
fn warn(message: &str) {
    let _ = Python::try_attach(|py| {
        let text = std::ffi::CString::new(message).unwrap_or_default();
        let category = py.get_type::<pyo3::exceptions::PyUserWarning>();
        // An exception already under way is not to be lost over a warning.
        if PyErr::occurred(py) {
            return;
        }
        let warned = crate::lock::inside_of_op(|| PyErr::warn(py, &category, &text, 1));
        if let Err(error) = warned {
            crate::raw::entry::raise_on_return(py, error);
        }
    });
}

/// Adds everything.
pub(crate) fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // A word in `PULLBACK_CPU` that means nothing is an error of the import, not of some later call.
    _cpu_capability()?;
    let natives = [
        (c"is_tensor", fast!(is_tensor_function)),
        (c"tensor", function!(c"tensor", construct::tensor)), // tidy: not an op
        (c"as_tensor", function!(c"as_tensor", construct::as_tensor_function)),
        (c"asarray", function!(c"asarray", construct::asarray)),
        (c"from_numpy", fast!(numpy::from_numpy)),
        (c"frombuffer", function!(c"frombuffer", numpy::frombuffer)),
        (c"from_dlpack", fast!(dlpack::from_dlpack)),
    ];
    for (name, function) in natives {
        module.add(name.to_str().unwrap_or_default(), native(py, name, function)?)?;
    }
    pullback::set_warning_handler(Some(warn));
    macro_rules! functions {
        ($($name:ident),* $(,)?) => { $(module.add_function(wrap_pyfunction!($name, module)?)?;)* };
    }
    functions![
        manual_seed,
        _infer_size,
        initial_seed,
        seed,
        get_num_threads,
        set_num_threads,
        _cpu_capability,
        get_default_dtype,
        set_default_dtype,
        promote_types,
        can_cast,
        result_type,
        set_warn_always,
        is_warn_always_enabled,
        _set_fill_uninitialized,
        _finfo,
        _iinfo,
        _memory_live,
        _memory_cached,
        _memory_peak,
        _memory_reset_peak,
        _memory_empty_cache,
        _memory_set_cache_limit,
    ];
    Ok(())
}
