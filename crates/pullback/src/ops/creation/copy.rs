//! Copies, conversions and filling.

use crate::dispatch::{OpDef, check_result};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::shape::broadcast_shapes;
use crate::{DType, Device, ErrorKind, MemoryFormat, Result, Scalar, Tensor, TensorSpec};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &CLONE_TENSOR,
    &LAZY_CLONE,
    &COPY,
    &CONVERT,
    &FILLED_SCALAR,
    &FILLED_TENSOR,
    &FILL_SCALAR,
    &FILL_TENSOR,
    &ZERO,
    &REAL_PART,
    &IMAG_PART,
    &CONTIGUOUS,
    &RAVEL,
    &TYPE_AS,
    &LOCAL_SCALAR_DENSE,
];

/// Copies the elements into a new tensor that keeps the order of dimensions in memory, or takes
/// `memory_format`'s.
#[op("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", narrow_floats, method = clone_tensor_default,
     batch = pointwise, jvp = linear, samples = unary, sparse = clone(cpu, self), unresolved)]
impl CloneTensor {
    fn meta(self_: &Tensor, memory_format: Option<MemoryFormat>) -> Result<TensorSpec> {
        match memory_format {
            Some(format) => Ok(TensorSpec::like(self_).with_strides(self_.strides_in(format)?)),
            None => Ok(TensorSpec::laid_as(self_)),
        }
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        result.copy_data(cpu, self_)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
}

/// A tensor of the same sizes and strides with a storage of its own, which shares the bytes of `self` until one of the two is
/// written to: then that one gets a copy. Where somebody outside of the library may write to the bytes (NumPy shows them, other
/// processes share them), they are copied at once.
#[op("_lazy_clone(Tensor self) -> Tensor", narrow_floats, method = lazy_clone, batch = pointwise, jvp = linear, samples = unary, unresolved)]
impl LazyClone {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::like(self_).with_strides(self_.strides().into()))
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        self_.lazy_clone_of_storage()
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
}

/// Writes `src`, converted and broadcast, into `self`.
#[op(
    "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)", narrow_floats,
    node = "torch::autograd::CopyBackwards",
    method_only, batch = pointwise, sparse = copy(cpu, self, src), unresolved, across_devices)]
impl Copy {
    fn meta(self_: &Tensor, src: &Tensor) -> Result<TensorSpec> {
        if src.shape() != self_.shape() {
            let shape = broadcast_shapes(&[self_.shape(), src.shape()])?;
            check_result(self_, &shape, self_.dtype())?;
        }
        Ok(TensorSpec::target(self_))
    }
    fn cpu_(cpu: Cpu, self_: &Tensor, src: &Tensor) -> Result<()> {
        self_.copy_data(cpu, src)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        TensorSpec::like(grad).zeros()
    }
    fn vjp_src(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([s.normal(&[2, 3]).into(), s.normal(&[3]).into()]),
            Sample::new([s.normal(&[]).into(), s.normal(&[]).into()]),
            Sample::new([s.normal(&[2]).into(), s.integers(&[2], 0, 5).into()]),
        ]
    }
}

/// Copies the elements into a new tensor of another dtype, order of dimensions or device.
#[op("_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor", narrow_floats,
     node = "ToCopy", internal, batch = pointwise, jvp = linear, samples = unary, sparse = convert(cpu, self, dtype, layout), unresolved, across_devices)]
impl Convert {
    fn meta(
        self_: &Tensor,
        dtype: Option<DType>,
        device: Option<crate::Device>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<TensorSpec> {
        let spec = match memory_format.unwrap_or(MemoryFormat::Preserve) {
            MemoryFormat::Preserve => TensorSpec::laid_as(self_),
            format => TensorSpec::like(self_).with_strides(self_.strides_in(format)?),
        };
        let spec = spec.computed_in(dtype.unwrap_or(self_.dtype()));
        spec.on(device.unwrap_or(self_.device())).checked()
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        result.copy_data(cpu, self_)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        Ok(grad.clone())
    }
}

/// Refuses a value to fill with that is more than one number.
fn check_number(value: &Tensor) -> Result<()> {
    ensure!(
        value.ndim() == 0,
        runtime,
        "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
        value.ndim()
    );
    Ok(())
}

/// A tensor like `self` with `value` in every element.
#[op("fill.Scalar(Tensor self, Scalar value) -> Tensor", narrow_floats, function_only, method = filled, node = "Fill", batch = fill_number(self))]
impl FilledScalar {
    fn meta(self_: &Tensor, value: Scalar) -> Result<TensorSpec> {
        TensorSpec::laid_as(self_).holding(value)
    }
    fn cpu(cpu: Cpu, result: &Tensor, value: Scalar) -> Result<()> {
        result.fill_with(cpu, value)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        TensorSpec::like(grad).zeros()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        FillScalar::samples(s)
    }
}

/// A tensor like `self` with the element of the 0-dim `value` in every element.
#[op("fill.Tensor(Tensor self, Tensor value) -> Tensor", narrow_floats, function_only, method = filled_with, node = "FillBackward1", batch = fill(self, value))]
impl FilledTensor {
    fn meta(self_: &Tensor, value: &Tensor) -> Result<TensorSpec> {
        check_number(value)?;
        Ok(TensorSpec::laid_as(self_))
    }
    fn cpu(cpu: Cpu, result: &Tensor, value: &Tensor) -> Result<()> {
        result.copy_data(cpu, value)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        TensorSpec::like(grad).zeros()
    }
    fn vjp_value(grad: &Tensor) -> Result<Tensor> {
        FillTensor::vjp_value(grad)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        FillTensor::samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        FillTensor::invalid_samples(s)
    }
}

/// Writes `value` into every element.
#[op("fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)", narrow_floats, writes_one_value, method = fill_, node = "FillBackward2", batch = fill_number(self))]
impl FillScalar {
    fn meta(self_: &Tensor, value: Scalar) -> Result<TensorSpec> {
        TensorSpec::target(self_).holding(value)
    }
    fn cpu_(cpu: Cpu, self_: &Tensor, value: Scalar) -> Result<()> {
        self_.fill_with(cpu, value)
    }
    /// For compressed rows and columns: the specified elements.
    fn sparse_csr(cpu: Cpu, self_: &Tensor, value: Scalar) -> Result<Tensor> {
        crate::ops::sparse::basic::fill(cpu, self_, value)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        TensorSpec::like(grad).zeros()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])).with("value", Scalar::Float(1.5))]
    }
}

/// Writes the element of the 0-dim `value` into every element.
#[op("fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)", narrow_floats, method = fill_tensor_, node = "FillBackward3", batch = fill(self, value))]
impl FillTensor {
    fn meta(self_: &Tensor, value: &Tensor) -> Result<TensorSpec> {
        check_number(value)?;
        Ok(TensorSpec::target(self_))
    }
    fn cpu_(cpu: Cpu, self_: &Tensor, value: &Tensor) -> Result<()> {
        self_.copy_data(cpu, &value.expand(self_.shape(), false)?)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        TensorSpec::like(grad).zeros()
    }
    fn vjp_value(grad: &Tensor) -> Result<Tensor> {
        grad.sum()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.normal(&[2, 3]).into(), s.normal(&[]).into()])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::new([s.normal(&[2]).into(), s.normal(&[1]).into()]),
            ErrorKind::Runtime,
            "fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions.",
        )]
    }
}

/// Writes zero into every element.
#[op("zero_(Tensor(a!) self) -> Tensor(a!)", narrow_floats, writes_one_value, method = zero_, node = "Zero", samples = unary, batch = pass, sparse = zero(cpu, self))]
impl Zero {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::target(self_))
    }
    fn cpu_(cpu: Cpu, self_: &Tensor) -> Result<()> {
        if self_.dtype().is_narrow_float() {
            // (The byte zero; `float8_e8m0fnu` has no number zero.)
            return self_.view_dtype(DType::U8)?.fill_with(cpu, Scalar::Int(0));
        }
        self_.fill_with(cpu, Scalar::Int(0))
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        TensorSpec::like(grad).zeros()
    }
}

/// The real parts, copied.
#[op("_real_part(Tensor self) -> Tensor", internal, method = real_part, meta = real, cpu = real, batch = pointwise, samples = unary, jvp = linear, sparse = values)]
impl RealPart {
    fn vjp_self(grad: &Tensor, self_dtype: DType) -> Result<Tensor> {
        grad.to_dtype(self_dtype)
    }
}

/// The imaginary parts, copied.
#[op("_imag_part(Tensor self) -> Tensor", internal, method = imag_part, meta = real, cpu = imag, batch = pointwise, sparse = values)]
impl ImagPart {
    fn vjp_self(grad: &Tensor, self_dtype: DType) -> Result<Tensor> {
        let unit = Scalar::Complex(0.0, 1.0);
        if self_dtype.is_complex() {
            grad.to_dtype(self_dtype)?.times(unit)
        } else {
            grad.times(Scalar::Int(0))
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        // Real tensors have no imaginary part: under a real dtype there is nothing to differentiate.
        if s.dtype.is_complex() {
            return crate::ops::classes::samples::unary(s);
        }
        let complex = Sampler::new(DType::C128);
        vec![Sample::of(complex.normal(&[2, 3])).without_gradient()]
    }
}

/// The elements in `memory_format`'s order in memory: the tensor itself if they lie so already.
#[op(
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
    method_only
)]
impl Contiguous {
    fn unchanged(self_: &Tensor) -> bool {
        self_.is_contiguous()
    }
    fn composite(self_: &Tensor, memory_format: MemoryFormat) -> Result<Tensor> {
        let is_so = match memory_format {
            MemoryFormat::Contiguous | MemoryFormat::Preserve => self_.is_contiguous(),
            // (Dimensions of size 1 may have any stride.)
            other => self_.strides_in(other).map(|_| self_.is_contiguous_in(other))?,
        };
        ensure!(
            is_so || memory_format != MemoryFormat::Preserve,
            runtime,
            "preserve memory format is unsupported by the contiguous operator"
        );
        if is_so { Ok(self_.clone()) } else { self_.clone_tensor(Some(memory_format)) }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.transposed(3, 2)),
            Sample::of(s.normal(&[2, 3])),
            Sample::of(s.normal(&[2, 3, 2, 2])).with("memory_format", MemoryFormat::ChannelsLast),
        ]
    }
}

/// The elements in row-major order as a vector; copies only if the memory's order asks for it.
#[op("ravel(Tensor(a) self) -> Tensor(a)")]
impl Ravel {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.contiguous()?.view(&[self_.numel()])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.transposed(3, 2)),
            Sample::of(s.normal(&[2, 1, 3])),
            Sample::of(s.normal(&[])),
            Sample::of(s.normal(&[2, 0])),
        ]
    }
}

/// The tensor in the dtype and on the device of `other`: itself if it is so already.
#[op("type_as(Tensor self, Tensor other) -> Tensor", method_only, not_differentiable(other))]
impl TypeAs {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        if self_.device() == other.device() {
            return self_.to_dtype(other.dtype());
        }
        self_.convert_with(Some(other.dtype()), None, Some(other.device()), None, false, None)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([s.normal(&[2, 3]).into(), s.integers(&[2], 0, 3).into()])
                .without_gradient(),
            Sample::new([s.normal(&[2]).into(), s.normal(&[0]).into()]),
        ]
    }
}

impl Tensor {
    /// The result of a rule that was computed in main memory, on the device of `other`.
    #[inline]
    pub(crate) fn brought_to(self, other: &Tensor) -> Result<Tensor> {
        if self.device() == other.device() {
            return Ok(self);
        }
        self.to(None, Some(other.device()), false, None)
    }
    /// As [`Tensor::clone_tensor_default`] with a memory format.
    #[track_caller]
    pub fn clone_tensor(&self, memory_format: Option<MemoryFormat>) -> Result<Tensor> {
        self.clone_tensor_default_with(memory_format)
    }
    /// The tensor in `dtype`: itself if it has it already.
    #[track_caller]
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        self.convert_with(Some(dtype), None, None, None, false, None)
    }
    /// The real part: the tensor itself if it is real.
    #[track_caller]
    pub fn real(&self) -> Result<Tensor> {
        if self.dtype().is_complex() { self.real_part() } else { Ok(self.clone()) }
    }
}

/// The only element as a number: the op behind [`Tensor::item`], for classes and modes that
/// override ops.
#[op("_local_scalar_dense(Tensor self) -> Scalar", narrow_floats, not_differentiable, data_dependent_output, batch = item, sparse = item(self))]
impl LocalScalarDense {
    fn cpu(self_: &Tensor) -> Result<Scalar> {
        self_.element()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[])), Sample::of(s.normal(&[1, 1]))]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let several = Sample::of(s.normal(&[2]));
        vec![InvalidSample::new(
            several,
            ErrorKind::Runtime,
            "a Tensor with 2 elements cannot be converted to Scalar",
        )]
    }
}

impl Tensor {
    /// The only element as a number.
    ///
    /// # Errors
    /// `RuntimeError` unless there is exactly one element.
    #[inline]
    pub fn item(&self) -> Result<Scalar> {
        if self.needs_layers() { self.item_by_op() } else { self.element() }
    }
    #[cold]
    fn item_by_op(&self) -> Result<Scalar> {
        let n = self.numel();
        ensure!(n == 1, runtime, "a Tensor with {n} elements cannot be converted to Scalar");
        ensure!(
            self.device() != Device::Meta,
            runtime,
            "Tensor.item() cannot be called on meta tensors"
        );
        self.local_scalar_dense()
    }
}
