//! New tensors: of one value or of a rule (`arange`, `eye`).
//!
//! Nothing here has a derivative and nothing here is random (see `random`); tensors like others are in
//! `creation_like`. All options go through `FactoryOptions`, which knows the default dtype and refuses layouts
//! and devices this build has not.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::classes::samples::values_only;
use crate::tensor::Cpu;
use crate::tensor::{
    TensorSpec, contiguous_strides,
    promote::{default_dtype, usual_complex},
};
use crate::{DType, Device, Dims, ErrorKind, Layout, MemoryFormat, Result, Scalar, Tensor};
use pullback_kernels::creation;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &EMPTY,
    &EMPTY_STRIDED,
    &EMPTY_PERMUTED,
    &ZEROS,
    &ONES,
    &FULL,
    &ARANGE,
    &ARANGE_START,
    &ARANGE_START_STEP,
    &EYE,
    &EYE_M,
    &SCALAR_TENSOR,
];

/// Dtype, layout, device and pinning of a new tensor, as the caller gave them.
#[derive(Clone, Copy)]
pub(crate) struct FactoryOptions(
    pub(crate) Option<DType>,
    pub(crate) Option<Layout>,
    pub(crate) Option<Device>,
    pub(crate) Option<bool>,
);

impl FactoryOptions {
    /// A row-major spec; `natural` is the dtype if none was given.
    #[inline(always)]
    pub(crate) fn spec(self, shape: &[i64], natural: DType) -> Result<TensorSpec> {
        self.check_strided()?;
        Ok(self.row_major(shape, natural))
    }
    /// As [`FactoryOptions::spec`], if there can be a tensor of it where memory is left.
    #[inline(always)]
    pub(in crate::ops) fn checked_spec(self, shape: &[i64], natural: DType) -> Result<TensorSpec> {
        self.check_strided()?;
        TensorSpec::check_row_major(shape, self.device())?;
        Ok(self.row_major(shape, natural))
    }
    /// As [`FactoryOptions::checked_spec`], of the sparse layouts too, in which such a tensor specifies nothing.
    #[inline(always)]
    pub(in crate::ops) fn blank_spec(self, shape: &[i64], natural: DType) -> Result<TensorSpec> {
        self.check_pinning()?;
        TensorSpec::check_row_major(shape, self.device())?;
        Ok(TensorSpec { layout: self.1.unwrap_or_default(), ..self.row_major(shape, natural) })
    }
    /// The spec that was checked before. (Checks are made before the spec is constructed, which
    /// would otherwise have to be moved.)
    #[inline(always)]
    fn row_major(self, shape: &[i64], natural: DType) -> TensorSpec {
        TensorSpec::of(shape, self.0.unwrap_or(natural)).on(self.device())
    }
    #[inline(always)]
    fn device(self) -> Device {
        self.2.unwrap_or_default()
    }
    #[inline]
    fn check_strided(self) -> Result<()> {
        if let Some(layout) = self.1.filter(|l| *l != Layout::Strided) {
            bail!(
                not_implemented,
                "layout torch.{} is not supported by this build",
                layout.spelled_name()
            );
        }
        self.check_pinning()
    }
    #[inline]
    fn check_pinning(self) -> Result<()> {
        ensure!(
            self.3 != Some(true),
            runtime,
            "Cannot access accelerator device when none is available (pin_memory needs one)."
        );
        Ok(())
    }
    /// A spec like `tensor`, in its order of dimensions unless `format` gives another one.
    pub(in crate::ops) fn like(
        self,
        tensor: &Tensor,
        format: Option<MemoryFormat>,
    ) -> Result<TensorSpec> {
        let own = FactoryOptions(self.0, self.1, self.2.or(Some(tensor.device())), self.3);
        let mut spec = own.spec(tensor.shape(), tensor.dtype())?;
        spec.strides = Some(tensor.strides_in(format.unwrap_or(MemoryFormat::Preserve))?);
        Ok(spec)
    }
    /// As [`FactoryOptions::like`], of the sparse layouts too.
    pub(in crate::ops) fn blank_like(
        self,
        tensor: &Tensor,
        format: Option<MemoryFormat>,
    ) -> Result<TensorSpec> {
        if self.1.is_none_or(|layout| layout == Layout::Strided) {
            return self.like(tensor, format);
        }
        if format.is_some() {
            bail!(runtime, "{OF_STRIDED_ONLY}");
        }
        self.blank_beside(tensor, tensor.shape())
    }
    /// As [`FactoryOptions::beside`], of the sparse layouts too.
    pub(in crate::ops) fn blank_beside(self, tensor: &Tensor, shape: &[i64]) -> Result<TensorSpec> {
        FactoryOptions(self.0, self.1, self.2.or(Some(tensor.device())), self.3)
            .blank_spec(shape, tensor.dtype())
    }
    /// A spec with dtype and device of `tensor` and another shape.
    pub(in crate::ops) fn beside(self, tensor: &Tensor, shape: &[i64]) -> Result<TensorSpec> {
        FactoryOptions(self.0, self.1, self.2.or(Some(tensor.device())), self.3)
            .spec(shape, tensor.dtype())
    }
}

/// The dtype of a tensor made of `value`: bool, int64, the default floating dtype or the usual complex one.
fn natural(value: Scalar) -> DType {
    match value {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) | Scalar::UInt(_) => DType::I64,
        Scalar::Float(_) => default_dtype(),
        Scalar::Complex(..) => usual_complex(),
    }
}

/// Makes the elements of a new tensor zero; those of a sparse one, which specifies nothing, are.
pub(super) fn zero_new(tensor: &Tensor) {
    if !tensor.is_sparse() {
        tensor.zero_bytes();
    }
}

/// As [`Tensor::fill_if_enabled`], of a new tensor that may be sparse.
pub(super) fn fill_new_if_enabled(tensor: &Tensor) {
    if !tensor.is_sparse() {
        tensor.fill_if_enabled();
    }
}

/// The error for a memory format of a sparse tensor.
pub(in crate::ops) const OF_STRIDED_ONLY: &str =
    "memory format option is only supported by strided tensors";

/// A tensor of shape `size` with elements not set.
#[op(
    "empty.memory_format(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", narrow_floats,
    out,
    not_differentiable,
    samples = creation_size
)]
impl Empty {
    fn meta(
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<TensorSpec> {
        ensure!(
            memory_format != Some(MemoryFormat::Preserve),
            runtime,
            "unsupported memory format Preserve"
        );
        let options = FactoryOptions(dtype, layout, device, pin_memory);
        let Some(format) = memory_format else {
            return options.blank_spec(size, default_dtype());
        };
        let spec = options.blank_spec(size, default_dtype())?;
        ensure!(spec.layout == Layout::Strided, runtime, "{OF_STRIDED_ONLY}");
        spec.in_format(format)
    }
    fn cpu(result: &Tensor) -> Result<()> {
        fill_new_if_enabled(result);
        Ok(())
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![
            refused(
                [[2, -1].into()],
                "Trying to create tensor with negative dimension -1: [2, -1]",
            ),
            refused([[i64::MAX, 2].into()], "overflow"),
            InvalidSample::new(
                Sample::new([[2, 3].into()]).with("memory_format", MemoryFormat::ChannelsLast),
                ErrorKind::Runtime,
                "required rank 4 tensor to use channels_last format",
            ),
            InvalidSample::new(
                Sample::new([[2, 3].into()]).with("memory_format", MemoryFormat::Preserve),
                ErrorKind::Runtime,
                "unsupported memory format Preserve",
            ),
        ]
    }
}

/// A tensor of shape `size` without gaps in memory, elements not set; `physical_layout` names its dimensions from the one of
/// the largest stride to that of the smallest.
#[op(
    "empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    narrow_floats,
    not_differentiable
)]
impl EmptyPermuted {
    fn meta(
        size: &[i64],
        physical_layout: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        let rank = size.len();
        ensure!(
            physical_layout.len() == rank,
            runtime,
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {rank} is not equal to len(physical_layout) = {}",
            physical_layout.len()
        );
        let mut ordered = Dims::new();
        let mut seen = vec![false; rank];
        for (index, &dim) in physical_layout.iter().enumerate() {
            let Some(known) = usize::try_from(dim).ok().and_then(|d| seen.get_mut(d)) else {
                bail!(
                    runtime,
                    "Dimension out of range (expected to be between 0 and {}, but got {dim} at index {index}): dimensions are not counted from the end here",
                    rank as i64 - 1
                )
            };
            ensure!(!*known, runtime, "Duplicate dim not allowed: {dim} at index {index}");
            *known = true;
            ordered.push(size[dim as usize]);
        }
        let options = FactoryOptions(dtype, layout, device, pin_memory);
        let plain = options.checked_spec(&ordered, default_dtype())?;
        let mut strides = Dims::from_elem(0, rank);
        for (&dim, &stride) in physical_layout.iter().zip(&contiguous_strides(&plain.shape)) {
            strides[dim as usize] = stride;
        }
        let shape = Dims::from_slice(size);
        Ok(TensorSpec { shape, strides: Some(strides), ..plain })
    }
    fn cpu(result: &Tensor) -> Result<()> {
        Empty::cpu(result)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        let sample = |size: &[i64], order: &[i64]| {
            Sample::new([size.into(), order.into()]).without_gradient()
        };
        vec![
            sample(&[2, 3, 4], &[0, 2, 1]),
            sample(&[], &[]),
            sample(&[2, 0, 4], &[2, 1, 0]).with("dtype", DType::I64),
        ]
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![
            refused(
                [[2, 3].into(), [0].into()],
                "len(size) = 2 is not equal to len(physical_layout) = 1",
            ),
            refused([[2, 3].into(), [0, 0].into()], "Duplicate dim not allowed"),
            refused(
                [[2, 3].into(), [0, -1].into()],
                "expected to be between 0 and 1, but got -1 at index 1",
            ),
            refused([[-2].into(), [0].into()], "negative dimension -2"),
        ]
    }
}

/// A tensor with these sizes and strides, elements not set.
#[op(
    "empty_strided(int[] size, int[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    narrow_floats,
    not_differentiable
)]
impl EmptyStrided {
    fn meta(
        size: &[i64],
        stride: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        strided(
            FactoryOptions(dtype, layout, device, pin_memory).spec(size, default_dtype())?,
            stride,
        )
    }
    fn cpu(result: &Tensor) -> Result<()> {
        Empty::cpu(result)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        [
            Sample::new([[2, 3].into(), [1, 2].into()]),
            Sample::new([[2, 3].into(), [0, 4].into()]).with("dtype", DType::I16),
            Sample::new([[0, 3].into(), [3, 1].into()]),
            Sample::new([Value::Ints(Box::default()), Value::Ints(Box::default())]),
        ]
        .map(Sample::without_gradient)
        .into()
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![
            refused(
                [[2, 3].into(), [1].into()],
                "dimensionality of sizes (2) must match dimensionality of strides (1)",
            ),
            refused([[2, 3].into(), [-1, 1].into()], "strides must be non-negative"),
            refused([[-2, 3].into(), [3, 1].into()], "negative dimension -2"),
        ]
    }
}

/// The spec with these strides.
pub(in crate::ops) fn strided(spec: TensorSpec, stride: &[i64]) -> Result<TensorSpec> {
    ensure!(
        spec.shape.len() == stride.len(),
        runtime,
        "dimensionality of sizes ({}) must match dimensionality of strides ({})",
        spec.shape.len(),
        stride.len()
    );
    spec.with_strides(stride.into()).checked()
}

/// Zeros of shape `size`.
#[op(
    "zeros(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", narrow_floats,
    out,
    not_differentiable,
    samples = creation_size
)]
impl Zeros {
    fn meta(
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        ensure!(
            size.iter().all(|&n| n >= 0),
            runtime,
            "zeros: Dimension size must be non-negative."
        );
        let options = FactoryOptions(dtype, layout, device, pin_memory);
        options.blank_spec(size, default_dtype())
    }
    fn cpu(result: &Tensor) -> Result<()> {
        zero_new(result);
        Ok(())
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![refused([[2, -1].into()], "zeros: Dimension size must be non-negative.")]
    }
}

/// Ones of shape `size`.
#[op(
    "ones(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", narrow_floats,
    out,
    not_differentiable,
    samples = creation_size
)]
impl Ones {
    fn meta(
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory).checked_spec(size, default_dtype())
    }
    fn cpu(cpu: Cpu, result: &Tensor) -> Result<()> {
        result.fill_with(cpu, Scalar::Int(1))
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![refused([[-1].into()], "Trying to create tensor with negative dimension -1: [-1]")]
    }
}

/// Shape `size`, every element `fill_value`; without `dtype` the number's kind decides.
#[op(
    "full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    narrow_floats,
    out,
    not_differentiable
)]
impl Full {
    fn meta(
        size: &[i64],
        fill_value: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        // (A sparse tensor of equal elements would leave nothing unspecified.)
        ensure!(
            layout != Some(Layout::SparseCoo),
            runtime,
            "full(...) is not implemented for sparse layout"
        );
        FactoryOptions(dtype, layout, device, pin_memory)
            .checked_spec(size, natural(fill_value))?
            .holding(fill_value)
    }
    fn cpu(cpu: Cpu, result: &Tensor, fill_value: Scalar) -> Result<()> {
        result.fill_with(cpu, fill_value)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        let numbers = [1.5.into(), Scalar::Int(-2), Scalar::Bool(true), Scalar::Complex(1.0, -2.0)];
        let mut all: Vec<_> =
            numbers.iter().map(|&v| Sample::new([[2, 3].into(), v.into()])).collect();
        all.push(Sample::new([Value::Ints(Box::default()), Scalar::Int(2).into()]));
        all.push(Sample::new([[0, 2].into(), Scalar::Int(2).into()]).with("dtype", DType::F16));
        values_only(all)
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![
            refused([[-1].into(), Scalar::Int(1).into()], "negative dimension -1"),
            InvalidSample::new(
                Sample::new([[2].into(), Scalar::Complex(0.0, 1.0).into()])
                    .with("dtype", DType::F32),
                ErrorKind::Runtime,
                "value cannot be converted to type float without overflow",
            ),
        ]
    }
}

/// A 0-dim tensor of `s`; the default floating dtype unless `dtype` is given.
#[op(
    "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    narrow_floats,
    not_differentiable
)]
impl ScalarTensor {
    fn meta(
        s: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory)
            .checked_spec(&[], default_dtype())?
            .holding(s)
    }
    fn cpu(cpu: Cpu, result: &Tensor, s: Scalar) -> Result<()> {
        result.fill_with(cpu, s)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        let sample = |v: Scalar| Sample::new([v.into()]).without_gradient();
        vec![
            sample(1.5.into()),
            sample(Scalar::Bool(true)),
            sample(Scalar::Int(3)).with("dtype", DType::U8),
            sample(Scalar::Complex(1.0, 2.0)).with("dtype", DType::C64),
        ]
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![refused(
            [Scalar::Complex(0.0, 1.0).into()],
            "value cannot be converted to type float without overflow",
        )]
    }
}

/// Refuses numbers with an imaginary part.
pub(in crate::ops) fn check_real(numbers: &[Scalar]) -> Result<()> {
    ensure!(
        !numbers.iter().any(|s| matches!(s, Scalar::Complex(_, im) if *im != 0.0)),
        runtime,
        "value cannot be converted to type double without overflow"
    );
    Ok(())
}

/// A number of elements as a size: one beyond 64 bits is the largest, which no memory holds.
pub(in crate::ops) fn as_size(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// As many numbers as there are from `start` to `end`.
fn arithmetic_series(
    start: Scalar,
    end: Scalar,
    step: Scalar,
    options: FactoryOptions,
) -> Result<TensorSpec> {
    check_real(&[start, end, step])?;
    if let Some(large) = [start, end, step].iter().find(|s| matches!(s, Scalar::UInt(_))) {
        large.check_fits(DType::I64)?;
    }
    let whole = [start, end, step].iter().all(|s| s.is_integral());
    let size = creation::arange_size(start, end, step)?;
    options.checked_spec(&[as_size(size)], if whole { DType::I64 } else { default_dtype() })
}

/// The numbers 0, 1, ... below `end`; int64 if `end` is whole, else the default floating dtype.
#[op(
    "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    fills_out,
    not_differentiable
)]
impl Arange {
    fn meta(
        end: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        arithmetic_series(
            Scalar::Int(0),
            end,
            Scalar::Int(1),
            FactoryOptions(dtype, layout, device, pin_memory),
        )
    }
    fn cpu(cpu: Cpu, result: &Tensor) -> Result<()> {
        Ok(creation::arange(&mut result.view_mut(cpu), Scalar::Int(0), Scalar::Int(1))?)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![
            series([Scalar::Int(5)]),
            series([Scalar::Float(2.5)]),
            series([Scalar::Int(0)]),
            series([Scalar::Int(4)]).with("dtype", DType::BF16),
        ]
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![
            refused(
                [Scalar::Int(-3).into()],
                "upper bound and lower bound inconsistent with step sign",
            ),
            refused([Scalar::Float(f64::NAN).into()], "unsupported range: 0 -> nan"),
            refused([Scalar::Float(f64::INFINITY).into()], "unsupported range: 0 -> inf"),
            refused([Scalar::Float(1e300).into()], "overflow"),
        ]
    }
}

/// The numbers `start`, `start + 1`, ... below `end`.
#[op(
    "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    not_differentiable
)]
impl ArangeStart {
    fn meta(
        start: Scalar,
        end: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        arithmetic_series(
            start,
            end,
            Scalar::Int(1),
            FactoryOptions(dtype, layout, device, pin_memory),
        )
    }
    fn cpu(cpu: Cpu, result: &Tensor, start: Scalar) -> Result<()> {
        Ok(creation::arange(&mut result.view_mut(cpu), start, Scalar::Int(1))?)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![
            series([Scalar::Int(1), Scalar::Float(4.5)]),
            series([Scalar::Int(-2), Scalar::Int(3)]),
            series([Scalar::Int(3), Scalar::Int(3)]),
        ]
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![refused(
            [Scalar::Int(4).into(), Scalar::Int(3).into()],
            "upper bound and lower bound inconsistent with step sign",
        )]
    }
}

/// `start + i * step` for `i = 0, 1, ...` as long as it lies before `end`: `ceil((end - start) / step)` numbers.
#[op(
    "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    fills_out,
    not_differentiable
)]
impl ArangeStartStep {
    fn meta(
        start: Scalar,
        end: Scalar,
        step: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        arithmetic_series(start, end, step, FactoryOptions(dtype, layout, device, pin_memory))
    }
    fn cpu(cpu: Cpu, result: &Tensor, start: Scalar, step: Scalar) -> Result<()> {
        Ok(creation::arange(&mut result.view_mut(cpu), start, step)?)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![
            series([Scalar::Int(5), Scalar::Int(0), Scalar::Int(-2)]),
            series([Scalar::Float(0.0), Scalar::Float(1.0), Scalar::Float(0.25)]),
            series([Scalar::Int(1), Scalar::Int(8), Scalar::Int(3)]).with("dtype", DType::U8),
        ]
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        let numbers = |step: i64| [0, 5, step].map(|v| Scalar::Int(v).into());
        vec![
            refused(numbers(0), "step must be nonzero"),
            refused(numbers(-1), "upper bound and lower bound inconsistent with step sign"),
        ]
    }
}

fn identity(n: i64, m: i64, options: FactoryOptions) -> Result<TensorSpec> {
    ensure!(n >= 0, runtime, "n must be greater or equal to 0, got {n}");
    ensure!(m >= 0, runtime, "m must be greater or equal to 0, got {m}");
    options.checked_spec(&[n, m], default_dtype())
}

/// The n x n identity matrix.
#[op(
    "eye(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    narrow_floats,
    out,
    not_differentiable
)]
impl Eye {
    fn meta(
        n: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        identity(n, n, FactoryOptions(dtype, layout, device, pin_memory))
    }
    fn cpu(cpu: Cpu, result: &Tensor) -> Result<()> {
        Ok(creation::eye(&mut result.view_mut(cpu))?)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        let sizes = [3_i64, 1, 0].map(|n| Sample::new([n.into()]).without_gradient());
        let [first, ..] = sizes.clone();
        sizes.into_iter().chain([first.with("dtype", DType::Bool)]).collect()
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![refused([(-1_i64).into()], "n must be greater or equal to 0, got -1")]
    }
}

/// An n x m matrix with ones on the diagonal and zeros elsewhere.
#[op(
    "eye.m(int n, int m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    narrow_floats,
    out,
    not_differentiable
)]
impl EyeM {
    fn meta(
        n: i64,
        m: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        identity(n, m, FactoryOptions(dtype, layout, device, pin_memory))
    }
    fn cpu(cpu: Cpu, result: &Tensor) -> Result<()> {
        Eye::cpu(cpu, result)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        let sizes = [(3_i64, 2_i64), (2, 3), (0, 2)];
        sizes.map(|(n, m)| Sample::new([n.into(), m.into()]).without_gradient()).into()
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![
            refused([(-1_i64).into(), 2_i64.into()], "n must be greater or equal to 0, got -1"),
            refused([2_i64.into(), (-1_i64).into()], "m must be greater or equal to 0, got -1"),
        ]
    }
}

/// A call with these first arguments that must fail with a `RuntimeError`.
pub(in crate::ops) fn refused<const N: usize>(
    args: [Value; N],
    phrase: &'static str,
) -> InvalidSample {
    InvalidSample::new(Sample::new(args), ErrorKind::Runtime, phrase)
}

/// A call with these numbers.
pub(in crate::ops) fn series<const N: usize>(numbers: [Scalar; N]) -> Sample {
    Sample::new(numbers.map(Value::Scalar)).without_gradient()
}
