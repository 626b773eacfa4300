//! `to` in its three forms, and the short conversions: `float()`, `cpu()`, `type()`.

use crate::convert::type_name;
use crate::dtype::{as_device, as_dtype, as_memory_format};
use crate::error::raise;
use crate::lock::without_lock;
use crate::raw::entry::{Args, Reply};
use crate::raw::object::{as_tensor, tensor_of, wrap};
use pullback::tensor::promote::default_dtype;
use pullback::{DType, Device, MemoryFormat, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// The arguments of a call of `to`.
#[derive(Default)]
pub(crate) struct ConversionTarget {
    pub(crate) dtype: Option<DType>,
    pub(crate) device: Option<Device>,
    pub(crate) non_blocking: bool,
    pub(crate) copy: bool,
    pub(crate) format: Option<MemoryFormat>,
}

const FORMS: &str = "to() received an invalid combination of arguments - got (%), but expected one of:\n * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n";

fn refuse(py: Python<'_>, args: Args<'_>) -> PyErr {
    let mut given: Vec<String> = args.positionals(py).iter().map(type_name).collect();
    for index in 0..args.keywords() {
        // SAFETY: live names and values.
        unsafe {
            let name = Bound::from_borrowed_ptr(py, args.name(index));
            let value = Bound::from_borrowed_ptr(py, args.all[args.positional + index]);
            given.push(format!("{name}={}", type_name(&value)));
        }
    }
    let mut list = given.join(", ");
    // PyTorch's comma behind keywords that no positional argument precedes.
    if args.positional == 0 && args.keywords() > 0 {
        list.push_str(", ");
    }
    PyTypeError::new_err(FORMS.replacen('%', &list, 1))
}

/// Reads the arguments of `to`.
pub(crate) fn parse(py: Python<'_>, args: Args<'_>) -> PyResult<ConversionTarget> {
    let mut target = ConversionTarget::default();
    let mut position = 0;
    for object in args.positionals(py) {
        let flags_from = i32::from(position != 0);
        if position == 0
            && let Some(other) = as_tensor(&object)
        {
            (target.dtype, target.device) = (Some(other.dtype()), Some(other.device()));
            position = 2;
        } else if position == 0
            && let Some(dtype) = as_dtype(&object)
        {
            target.dtype = Some(dtype);
            position = 2;
        } else if position == 0 && (object.is_none() || as_device(&object)?.is_some()) {
            target.device = as_device(&object)?;
            position = 1;
        } else if position == 1 && (object.is_none() || as_dtype(&object).is_some()) {
            target.dtype = as_dtype(&object);
            position = 2;
        } else if let Ok(flag) = object.cast::<pyo3::types::PyBool>()
            && flags_from == 1
            && position < 4
        {
            let flag_position = position.max(2);
            if flag_position == 2 {
                target.non_blocking = flag.is_true();
            } else {
                target.copy = flag.is_true();
            }
            position = flag_position + 1;
        } else {
            return Err(refuse(py, args));
        }
    }
    for index in 0..args.keywords() {
        // SAFETY: live names and values.
        let (name, value) = unsafe {
            (
                Bound::from_borrowed_ptr(py, args.name(index)),
                Bound::from_borrowed_ptr(py, args.all[args.positional + index]),
            )
        };
        if !target.set_keyword(name.cast::<PyString>()?.to_str()?, &value)? {
            return Err(refuse(py, args));
        }
    }
    if args.all.is_empty() {
        return Err(refuse(py, args));
    }
    Ok(target)
}

impl ConversionTarget {
    /// Takes over a keyword argument of `to`; `false` if `to` has no such keyword, or not for a value of this type.
    fn set_keyword(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let is_none = value.is_none();
        match name {
            "device" if is_none || as_device(value)?.is_some() => self.device = as_device(value)?,
            "dtype" if is_none || as_dtype(value).is_some() => self.dtype = as_dtype(value),
            "non_blocking" => self.non_blocking = value.is_truthy()?,
            "copy" => self.copy = value.is_truthy()?,
            "memory_format" if is_none || as_memory_format(value).is_some() => {
                self.format = as_memory_format(value);
            }
            "other" | "tensor" => {
                let Some(other) = as_tensor(value) else { return Ok(false) };
                (self.dtype, self.device) = (Some(other.dtype()), Some(other.device()));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Converts with history; the tensor itself if nothing changes and no copy is asked for.
pub(crate) fn convert(
    py: Python<'_>,
    tensor: &Tensor,
    target: &ConversionTarget,
) -> PyResult<Tensor> {
    let run = || tensor.to(target.dtype, target.device, target.copy, target.format);
    let result = if tensor.numel() > 50_000 { without_lock(py, run) } else { run() };
    result.map_err(raise)
}

/// `x.to(...)`.
pub(crate) fn to(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let target = parse(py, args)?;
    // SAFETY: a method of tensors.
    wrap(convert(py, unsafe { tensor_of(slf) }, &target)?)
}

/// The memory format that a call was given, if any.
pub(crate) fn format_of(
    name: &str,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<MemoryFormat>> {
    let Some(given) = given.filter(|g| !g.is_none()) else { return Ok(None) };
    as_memory_format(given).map(Some).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "{name}(): argument 'memory_format' must be torch.memory_format, not {}",
            type_name(given)
        ))
    })
}

fn to_dtype(py: Python<'_>, slf: *mut PyObject, args: Args<'_>, name: &str, dtype: DType) -> Reply {
    let [format] = args.bind(py, name, ["memory_format"], 0)?;
    let format = format_of(name, format.as_ref())?;
    let target = ConversionTarget { dtype: Some(dtype), format, ..ConversionTarget::default() };
    // SAFETY: a method of tensors.
    wrap(convert(py, unsafe { tensor_of(slf) }, &target)?)
}

macro_rules! short {
    ($($name:ident => $dtype:ident),* $(,)?) => {$(
        pub(crate) fn $name(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
            to_dtype(py, slf, args, stringify!($name), DType::$dtype)
        }
    )*};
}
short! {
    float => F32, double => F64, half => F16, bfloat16 => BF16, long => I64, int => I32, short => I16,
    char => I8, byte => U8, bool => Bool, chalf => C32, cfloat => C64, cdouble => C128,
}

/// `x.cpu()`.
pub(crate) fn cpu(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [format] = args.bind(py, "cpu", ["memory_format"], 0)?;
    let format = format_of("cpu", format.as_ref())?;
    let target =
        ConversionTarget { device: Some(Device::Cpu), format, ..ConversionTarget::default() };
    // SAFETY: a method of tensors.
    wrap(convert(py, unsafe { tensor_of(slf) }, &target)?)
}

/// `x.cuda()`: an error where there is no device.
pub(crate) fn cuda(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let names = ["device", "non_blocking", "memory_format"];
    let [device, ..] = args.bind(py, "cuda", names, 0)?;
    let target = ConversionTarget {
        device: Some(cuda_device(device.as_ref())?),
        ..ConversionTarget::default()
    };
    // SAFETY: a method of tensors.
    wrap(convert(py, unsafe { tensor_of(slf) }, &target)?)
}

/// The device that the argument of `cuda()` means: this thread's, if it is not given.
pub(crate) fn cuda_device(device: Option<&Bound<'_, PyAny>>) -> PyResult<Device> {
    let Some(device) = device.filter(|d| !d.is_none()) else {
        return Ok(Device::Cuda(pullback::current_device()));
    };
    match as_device(device)? {
        Some(device @ Device::Cuda(_)) => Ok(device),
        Some(_) => Err(PyRuntimeError::new_err("Invalid device, must be cuda device")),
        None => Ok(Device::Cuda(device.extract::<u8>()?)),
    }
}

/// The dtype and the device that a legacy class of tensors or its name means; the class of all tensors means the default
/// dtype.
fn meaning_of_class(class: &Bound<'_, PyAny>) -> PyResult<(DType, Device)> {
    if class.as_ptr() == crate::raw::object::class().cast() {
        return Ok((default_dtype(), Device::Cpu));
    }
    let text = if class.is_instance_of::<PyString>() {
        class.extract::<String>()?
    } else if let (Ok(module), Ok(name)) = (class.getattr("__module__"), class.getattr("__name__"))
    {
        if module.eq("builtins")? { name.to_string() } else { format!("{module}.{name}") }
    } else {
        return Err(PyTypeError::new_err("dtype must be a type, str, or dtype object"));
    };
    let invalid = || PyValueError::new_err(format!("invalid type: '{text}'"));
    if text == "torch.Tensor" {
        return Ok((default_dtype(), Device::Cpu));
    }
    let name = text.strip_prefix("torch.").and_then(|t| t.strip_suffix("Tensor"));
    let name = name.ok_or_else(invalid)?;
    let (name, device) = match name.strip_prefix("cuda.") {
        Some(name) => (name, Device::Cuda(pullback::current_device())),
        None => (name, Device::Cpu),
    };
    device.check_available().map_err(raise)?;
    let dtype = DType::ALL.iter().copied().find(|d| d.scalar_name().pytorch() == name);
    dtype.map(|dtype| (dtype, device)).ok_or_else(invalid)
}

/// `x.type()`: the legacy name; `x.type(dtype)`: conversion.
pub(crate) fn type_(py: Python<'_>, slf: *mut PyObject, args: Args<'_>) -> Reply {
    let [dtype, _] = args.bind(py, "type", ["dtype", "non_blocking"], 0)?;
    // SAFETY: a method of tensors.
    let tensor = unsafe { tensor_of(slf) };
    let Some(dtype) = dtype.filter(|d| !d.is_none()) else {
        let module = if tensor.device() == Device::Cpu { "torch" } else { "torch.cuda" };
        let name = format!("{module}.{}Tensor", tensor.dtype().scalar_name().pytorch());
        return Ok(name.into_pyobject(py)?.into_any().into_ptr());
    };
    // Python's own number types are no dtypes here.
    let is_class = dtype.is_instance_of::<PyType>();
    let target = if let Some(dtype) = as_dtype(&dtype).filter(|_| !is_class) {
        ConversionTarget { dtype: Some(dtype), ..ConversionTarget::default() }
    } else {
        let (dtype, device) = meaning_of_class(&dtype)?;
        ConversionTarget { dtype: Some(dtype), device: Some(device), ..ConversionTarget::default() }
    };
    wrap(convert(py, tensor, &target)?)
}

/// `nn`'s reading of `to`: device, dtype, flag, format.
pub(crate) fn parse_to(py: Python<'_>, _: *mut PyObject, args: Args<'_>) -> Reply {
    let target = parse(py, args)?;
    if target.copy {
        return Err(PyRuntimeError::new_err(".to() does not accept copy argument"));
    }
    let none = || py.None().into_bound(py);
    let device = target.device.map(|d| crate::dtype::device_object(py, d)).transpose()?;
    let dtype = target.dtype.map(|d| crate::dtype::dtype_object(py, d));
    let format = match target.format {
        Some(f) => py.import("pullback._C")?.getattr(crate::dtype::memory_format_name(f))?,
        None => none(),
    };
    let tuple =
        (device.unwrap_or_else(none), dtype.unwrap_or_else(none), target.non_blocking, format);
    let object: Bound<'_, pyo3::types::PyTuple> = tuple.into_pyobject(py)?;
    Ok(object.into_any().into_ptr())
}
