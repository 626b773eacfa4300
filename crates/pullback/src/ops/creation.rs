//! New tensors: of one value, of a rule (`arange`, `eye`), like another tensor.
//!
//! Nothing here has a derivative and nothing here is random (see `random`). All options go through
//! `Options`, which knows the default dtype and refuses layouts and devices this build has not.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{Sample, Sampler};
use crate::tensor::{TensorSpec, promote::default_dtype};
use crate::{DType, Device, Layout, MemoryFormat, Result, Scalar, Tensor};
use pullback_kernels::{Iter, creation, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &EMPTY,
    &EMPTY_STRIDED,
    &ZEROS,
    &ONES,
    &FULL,
    &ARANGE,
    &ARANGE_START,
    &ARANGE_START_STEP,
    &LINSPACE,
    &LOGSPACE,
    &EYE,
    &EYE_M,
    &SCALAR_TENSOR,
    &TRIL_INDICES,
    &TRIU_INDICES,
    &EMPTY_LIKE,
    &ZEROS_LIKE,
    &ONES_LIKE,
    &FULL_LIKE,
    &NEW_EMPTY,
    &NEW_EMPTY_STRIDED,
    &NEW_ZEROS,
    &NEW_ONES,
    &NEW_FULL,
];

/// Dtype, layout, device and pinning of a new tensor, as the caller gave them.
#[derive(Clone, Copy)]
pub(crate) struct Options(
    pub(crate) Option<DType>,
    pub(crate) Option<Layout>,
    pub(crate) Option<Device>,
    pub(crate) Option<bool>,
);

impl Options {
    /// A row-major spec; `natural` is the dtype if none was given.
    pub(crate) fn spec(self, shape: &[i64], natural: DType) -> Result<TensorSpec> {
        let Options(dtype, layout, device, pin_memory) = self;
        if let Some(layout) = layout.filter(|l| *l != Layout::Strided) {
            bail!(not_implemented, "layout torch.{} is not supported by this build", layout.name());
        }
        ensure!(
            pin_memory != Some(true),
            runtime,
            "Cannot access accelerator device when none is available (pin_memory needs one)."
        );
        let spec = TensorSpec::of(shape, dtype.unwrap_or(natural));
        Ok(TensorSpec { device: device.unwrap_or_default(), ..spec })
    }
    /// A spec like `tensor`, in its order of dimensions unless `format` says another.
    fn like(self, tensor: &Tensor, format: Option<MemoryFormat>) -> Result<TensorSpec> {
        let own = Options(self.0, self.1, self.2.or(Some(tensor.device())), self.3);
        let mut spec = own.spec(tensor.shape(), tensor.dtype())?;
        spec.strides = Some(tensor.strides_in(format.unwrap_or(MemoryFormat::Preserve))?);
        Ok(spec)
    }
    /// A spec with dtype and device of `tensor` and another shape.
    fn beside(self, tensor: &Tensor, shape: &[i64]) -> Result<TensorSpec> {
        Options(self.0, self.1, self.2.or(Some(tensor.device())), self.3)
            .spec(shape, tensor.dtype())
    }
}

/// A tensor of `spec` with every element `value`.
pub(crate) fn filled(spec: &TensorSpec, value: Scalar) -> Result<Tensor> {
    let out = spec.empty()?;
    let mut iter = Iter::new(&[out.view_mut()], &[])?;
    elementwise::fill(&mut iter, value)?;
    Ok(out)
}

/// The dtype of a tensor made of `value`: bool, int64, the default floating dtype or its complex twin.
fn natural(value: Scalar) -> DType {
    match value {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => default_dtype(),
        Scalar::Complex(..) => default_dtype().to_complex(),
    }
}

/// A tensor of shape `size` with elements not set.
#[op(
    "empty.memory_format(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    out,
    not_differentiable
)]
impl Empty {
    fn cpu(
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<Tensor> {
        ensure!(
            memory_format != Some(MemoryFormat::Preserve),
            runtime,
            "memory format option is only supported by empty_like and the other like-functions"
        );
        let mut spec = Options(dtype, layout, device, pin_memory).spec(size, default_dtype())?;
        let plain = spec.empty()?;
        let Some(format) = memory_format else { return Ok(plain) };
        spec.strides = Some(plain.strides_in(format)?);
        spec.empty()
    }
}

/// A tensor with these sizes and strides, elements not set.
#[op(
    "empty_strided(int[] size, int[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    not_differentiable
)]
impl EmptyStrided {
    fn cpu(
        size: &[i64],
        stride: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        strided(Options(dtype, layout, device, pin_memory).spec(size, default_dtype())?, stride)
    }
}

fn strided(mut spec: TensorSpec, stride: &[i64]) -> Result<Tensor> {
    ensure!(
        spec.shape.len() == stride.len(),
        runtime,
        "mismatch in length of strides and shape: {} sizes, {} strides",
        spec.shape.len(),
        stride.len()
    );
    spec.strides = Some(stride.into());
    spec.empty()
}

/// Zeros of shape `size`.
#[op(
    "zeros(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    not_differentiable
)]
impl Zeros {
    fn cpu(
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        Options(dtype, layout, device, pin_memory).spec(size, default_dtype())?.zeros()
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::from([2, 3])]).without_gradient()]
    }
}

/// Ones of shape `size`.
#[op(
    "ones(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    not_differentiable
)]
impl Ones {
    fn cpu(
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        filled(
            &Options(dtype, layout, device, pin_memory).spec(size, default_dtype())?,
            Scalar::Int(1),
        )
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::from([2, 3])]).without_gradient()]
    }
}

/// Shape `size`, every element `fill_value`; without `dtype` the number's kind decides.
#[op(
    "full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    not_differentiable
)]
impl Full {
    fn cpu(
        size: &[i64],
        fill_value: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        filled(
            &Options(dtype, layout, device, pin_memory).spec(size, natural(fill_value))?,
            fill_value,
        )
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([Value::from([2, 3]), Value::Scalar(Scalar::Float(1.5))])
                .without_gradient(),
        ]
    }
}

/// A 0-dim tensor of `s`; the default floating dtype unless `dtype` is given.
#[op(
    "scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    not_differentiable
)]
impl ScalarTensor {
    fn cpu(
        s: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        filled(&Options(dtype, layout, device, pin_memory).spec(&[], default_dtype())?, s)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::Scalar(Scalar::Float(1.5))]).without_gradient()]
    }
}

fn arithmetic_series(start: Scalar, end: Scalar, step: Scalar, options: Options) -> Result<Tensor> {
    let whole = [start, end, step].iter().all(|s| s.is_integral());
    let size = creation::arange_size(start, end, step)?;
    let spec = options.spec(&[size as i64], if whole { DType::I64 } else { default_dtype() })?;
    let out = spec.empty()?;
    creation::arange(&mut out.view_mut(), start, step)?;
    Ok(out)
}

/// The numbers 0, 1, ... below `end`; int64 if `end` is whole, else the default floating dtype.
#[op(
    "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    not_differentiable
)]
impl Arange {
    fn cpu(
        end: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        arithmetic_series(
            Scalar::Int(0),
            end,
            Scalar::Int(1),
            Options(dtype, layout, device, pin_memory),
        )
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::Scalar(Scalar::Int(5))]).without_gradient()]
    }
}

/// The numbers `start`, `start + 1`, ... below `end`.
#[op(
    "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    not_differentiable
)]
impl ArangeStart {
    fn cpu(
        start: Scalar,
        end: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        arithmetic_series(start, end, Scalar::Int(1), Options(dtype, layout, device, pin_memory))
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([Value::Scalar(Scalar::Int(1)), Value::Scalar(Scalar::Float(4.5))])
                .without_gradient(),
        ]
    }
}

/// `start + i * step` for `i = 0, 1, ...` as long as it lies before `end`: `ceil((end - start) / step)` numbers.
#[op(
    "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    not_differentiable
)]
impl ArangeStartStep {
    fn cpu(
        start: Scalar,
        end: Scalar,
        step: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        arithmetic_series(start, end, step, Options(dtype, layout, device, pin_memory))
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([
                Value::Scalar(Scalar::Int(5)),
                Value::Scalar(Scalar::Int(0)),
                Value::Scalar(Scalar::Int(-2)),
            ])
            .without_gradient(),
        ]
    }
}

/// The dtype of evenly spaced numbers: complex if a bound is.
fn spaced(start: Scalar, end: Scalar) -> DType {
    let complex = [start, end].iter().any(|s| matches!(s, Scalar::Complex(..)));
    if complex { default_dtype().to_complex() } else { default_dtype() }
}

/// `steps` numbers evenly spaced from `start` to `end`, both included.
#[op(
    "linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    not_differentiable
)]
impl Linspace {
    fn cpu(
        start: Scalar,
        end: Scalar,
        steps: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        ensure!(steps >= 0, runtime, "number of steps must be non-negative");
        let spec = Options(dtype, layout, device, pin_memory).spec(&[steps], spaced(start, end))?;
        let out = spec.empty()?;
        creation::linspace(&mut out.view_mut(), start, end)?;
        Ok(out)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([
                Value::Scalar(Scalar::Int(0)),
                Value::Scalar(Scalar::Int(1)),
                Value::Int(5),
            ])
            .without_gradient(),
        ]
    }
}

/// `base` to the power of `steps` numbers evenly spaced from `start` to `end`.
#[op(
    "logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    not_differentiable
)]
impl Logspace {
    fn cpu(
        start: Scalar,
        end: Scalar,
        steps: i64,
        base: f64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        ensure!(steps >= 0, runtime, "number of steps must be non-negative");
        let spec = Options(dtype, layout, device, pin_memory).spec(&[steps], spaced(start, end))?;
        let out = spec.empty()?;
        creation::logspace(&mut out.view_mut(), start, end, base)?;
        Ok(out)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([
                Value::Scalar(Scalar::Int(0)),
                Value::Scalar(Scalar::Int(1)),
                Value::Int(5),
            ])
            .without_gradient(),
        ]
    }
}

fn identity(n: i64, m: i64, options: Options) -> Result<Tensor> {
    ensure!(n >= 0, runtime, "n must be greater or equal to 0, got {n}");
    ensure!(m >= 0, runtime, "m must be greater or equal to 0, got {m}");
    let out = options.spec(&[n, m], default_dtype())?.empty()?;
    creation::eye(&mut out.view_mut())?;
    Ok(out)
}

/// The n x n identity matrix.
#[op(
    "eye(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    not_differentiable
)]
impl Eye {
    fn cpu(
        n: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        identity(n, n, Options(dtype, layout, device, pin_memory))
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::Int(3)]).without_gradient()]
    }
}

/// An n x m matrix with ones on the diagonal and zeros elsewhere.
#[op(
    "eye.m(int n, int m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    not_differentiable
)]
impl EyeM {
    fn cpu(
        n: i64,
        m: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        identity(n, m, Options(dtype, layout, device, pin_memory))
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::Int(3), Value::Int(2)]).without_gradient()]
    }
}

/// Row and column numbers of the places where `keep(row, column)`, as a (2, count) tensor.
fn triangle(
    row: i64,
    col: i64,
    options: Options,
    keep: impl Fn(i64, i64) -> bool,
) -> Result<Tensor> {
    ensure!(row >= 0, runtime, "row must be non-negative, got{row}");
    ensure!(col >= 0, runtime, "col must be non-negative, got{col}");
    let places =
        || (0..row).flat_map(|i| (0..col).map(move |j| (i, j))).filter(|&(i, j)| keep(i, j));
    let mut numbers: Vec<i64> = places().map(|p| p.0).collect();
    let count = numbers.len() as i64;
    numbers.extend(places().map(|p| p.1));
    let spec = options.spec(&[2, count], DType::I64)?;
    spec.device.check_available()?;
    let out = Tensor::from_slice(&numbers, &[2, count])?;
    if spec.dtype == DType::I64 { Ok(out) } else { out.converted(spec.dtype) }
}

/// The coordinates (2, count) of the lower triangle of a `row` x `col` matrix up to diagonal `offset`.
#[op(
    "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    not_differentiable
)]
impl TrilIndices {
    fn cpu(
        row: i64,
        col: i64,
        offset: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        triangle(row, col, Options(dtype, layout, device, pin_memory), |i, j| j - i <= offset)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::Int(3), Value::Int(2)]).without_gradient()]
    }
}

/// The coordinates (2, count) of the upper triangle of a `row` x `col` matrix from diagonal `offset`.
#[op(
    "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    not_differentiable
)]
impl TriuIndices {
    fn cpu(
        row: i64,
        col: i64,
        offset: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        triangle(row, col, Options(dtype, layout, device, pin_memory), |i, j| j - i >= offset)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([Value::Int(3), Value::Int(2)]).without_gradient()]
    }
}

/// A tensor of the same shape, dtype, device and order of dimensions with elements not set.
#[op(
    "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    function_only,
    not_differentiable
)]
impl EmptyLike {
    fn cpu(
        self_: &Tensor,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<Tensor> {
        Options(dtype, layout, device, pin_memory).like(self_, memory_format)?.empty()
    }
}

/// Zeros in the shape of `self`.
#[op(
    "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    function_only,
    not_differentiable
)]
impl ZerosLike {
    fn cpu(
        self_: &Tensor,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<Tensor> {
        Options(dtype, layout, device, pin_memory).like(self_, memory_format)?.zeros()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])).without_gradient()]
    }
}

/// Ones in the shape of `self`.
#[op(
    "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    function_only,
    not_differentiable
)]
impl OnesLike {
    fn cpu(
        self_: &Tensor,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<Tensor> {
        filled(
            &Options(dtype, layout, device, pin_memory).like(self_, memory_format)?,
            Scalar::Int(1),
        )
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])).without_gradient()]
    }
}

/// The shape of `self`, every element `fill_value`.
#[op(
    "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    function_only,
    not_differentiable
)]
impl FullLike {
    fn cpu(
        self_: &Tensor,
        fill_value: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<Tensor> {
        filled(&Options(dtype, layout, device, pin_memory).like(self_, memory_format)?, fill_value)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3])).with("fill_value", Scalar::Float(2.0)).without_gradient(),
        ]
    }
}

/// Shape `size`, dtype and device of `self`, elements not set.
#[op(
    "new_empty(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    method_only,
    not_differentiable
)]
impl NewEmpty {
    fn cpu(
        self_: &Tensor,
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        Options(dtype, layout, device, pin_memory).beside(self_, size)?.empty()
    }
}

/// These sizes and strides, dtype and device of `self`, elements not set.
#[op(
    "new_empty_strided(Tensor self, int[] size, int[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    method_only,
    not_differentiable
)]
impl NewEmptyStrided {
    fn cpu(
        self_: &Tensor,
        size: &[i64],
        stride: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        strided(Options(dtype, layout, device, pin_memory).beside(self_, size)?, stride)
    }
}

/// Zeros of shape `size` with dtype and device of `self`.
#[op(
    "new_zeros(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    method_only,
    not_differentiable
)]
impl NewZeros {
    fn cpu(
        self_: &Tensor,
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        Options(dtype, layout, device, pin_memory).beside(self_, size)?.zeros()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2])).with("size", [3]).without_gradient()]
    }
}

/// Ones of shape `size` with dtype and device of `self`.
#[op(
    "new_ones(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    method_only,
    not_differentiable
)]
impl NewOnes {
    fn cpu(
        self_: &Tensor,
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        filled(&Options(dtype, layout, device, pin_memory).beside(self_, size)?, Scalar::Int(1))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2])).with("size", [3]).without_gradient()]
    }
}

/// Shape `size`, every element `fill_value`, with dtype and device of `self`.
#[op(
    "new_full(Tensor self, int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    method_only,
    not_differentiable
)]
impl NewFull {
    fn cpu(
        self_: &Tensor,
        size: &[i64],
        fill_value: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        filled(&Options(dtype, layout, device, pin_memory).beside(self_, size)?, fill_value)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2]))
                .with("size", [3])
                .with("fill_value", Scalar::Float(2.0))
                .without_gradient(),
        ]
    }
}
