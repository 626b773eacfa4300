//! Random tensors: the numbers PyTorch's CPU generator gives for the same seed.
//!
//! Every op locks its generator (the default one unless `generator` is given) for the whole draw. The
//! derivative of a draw is 0: filling in place cuts the old values' gradient off. Bounds and parameters are
//! checked here and in `random_fill`, the streams are the kernels'. Samples are calls whose result no draw can change.

use super::fill::{
    bernoulli_of, bernoulli_with, certain, check_probability, check_std, draw, draw_whole, real,
};
use super::range::whole_range;
use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::creation::factory::FactoryOptions;
use crate::ops::sparse::basic::{strided_like, with_values};
use crate::tensor::Cpu;
use crate::tensor::promote::{default_dtype, result_type};
use crate::tensor::shape::{broadcast_shapes, broadcast_strides};
use crate::{
    DType, Device, ErrorKind, Generator, Layout, MemoryFormat, Result, Scalar, Tensor, TensorSpec,
};
use pullback_kernels::{Iter, elementwise, random};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &RAND,
    &RANDN,
    &RANDINT,
    &RANDINT_LOW,
    &RANDPERM,
    &RAND_LIKE,
    &RANDN_LIKE,
    &RANDINT_LIKE,
    &RANDINT_LIKE_LOW,
    &BERNOULLI,
    &BERNOULLI_P,
    &NORMAL,
    &NORMAL_MEAN,
    &NORMAL_STD,
    &NORMAL_TENSOR,
    &MULTINOMIAL,
];

/// Fills with standard normal numbers. Where there is nothing to draw, no dtype is refused.
fn draw_normal(cpu: Cpu, result: &Tensor, generator: Option<&Generator>) -> Result<()> {
    if result.numel() == 0 { Ok(()) } else { draw(cpu, result, generator, random::randn) }
}

/// Uniform numbers in `[0, 1)`.
#[op(
    "rand(int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    random,
    narrow_floats,
    not_differentiable
)]
impl Rand {
    fn meta(
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory).checked_spec(size, default_dtype())
    }
    fn cpu(cpu: Cpu, result: &Tensor, generator: Option<&Generator>) -> Result<()> {
        draw(cpu, result, generator, random::rand)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([[2, 0].as_slice().into()])]
    }
}

/// Standard normal numbers.
#[op(
    "randn(int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    random,
    narrow_floats,
    not_differentiable
)]
impl Randn {
    fn meta(
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory).checked_spec(size, default_dtype())
    }
    fn cpu(cpu: Cpu, result: &Tensor, generator: Option<&Generator>) -> Result<()> {
        draw_normal(cpu, result, generator)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([[2, 0].as_slice().into()])]
    }
}

/// Whole numbers in `[0, high)`; int64 unless `dtype` is given.
#[op(
    "randint(int high, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    random,
    not_differentiable
)]
impl Randint {
    fn meta(
        high: i64,
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        whole(
            FactoryOptions(dtype, layout, device, pin_memory).checked_spec(size, DType::I64)?,
            0,
            high,
        )
    }
    fn cpu(cpu: Cpu, result: &Tensor, high: i64, generator: Option<&Generator>) -> Result<()> {
        draw_whole(cpu, result, 0, Some(high), generator)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([1_i64.into(), [2, 3].as_slice().into()])]
    }
}

/// Whole numbers in `[low, high)`; int64 unless `dtype` is given.
#[op(
    "randint.low(int low, int high, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    random,
    not_differentiable
)]
impl RandintLow {
    fn meta(
        low: i64,
        high: i64,
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        whole(
            FactoryOptions(dtype, layout, device, pin_memory).checked_spec(size, DType::I64)?,
            low,
            high,
        )
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        low: i64,
        high: i64,
        generator: Option<&Generator>,
    ) -> Result<()> {
        draw_whole(cpu, result, low, Some(high), generator)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([4_i64.into(), 5_i64.into(), [2, 3].as_slice().into()])]
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::new([5_i64.into(), 5_i64.into(), [2].as_slice().into()]),
            ErrorKind::Runtime,
            "random_ expects 'from' to be less than 'to', but got from=5 >= to=5",
        )]
    }
}

/// A random permutation of `0..n`.
#[op(
    "randperm(int n, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    random,
    not_differentiable, batch = permutation
)]
impl Randperm {
    fn meta(
        n: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        ensure!(n >= 0, runtime, "n must be non-negative, got{n}");
        let spec =
            FactoryOptions(dtype, layout, device, pin_memory).checked_spec(&[n], DType::I64)?;
        random::check_count(spec.dtype, n as usize)?;
        Ok(spec)
    }
    fn cpu(cpu: Cpu, result: &Tensor, generator: Option<&Generator>) -> Result<()> {
        draw(cpu, result, generator, random::randperm)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([1_i64.into()]), Sample::new([0_i64.into()])]
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::new([(-1_i64).into()]),
            ErrorKind::Runtime,
            "n must be non-negative",
        )]
    }
}

/// The spec for `[low, high)`; refuses dtypes that do not hold all whole numbers of the range.
fn whole(spec: TensorSpec, low: i64, high: i64) -> Result<TensorSpec> {
    whole_range(spec.dtype, low, Some(high))?;
    Ok(spec)
}

/// A strided tensor in the shape of a sparse one, where that layout is asked for, with the numbers that `fill` draws.
fn drawn_strided(
    self_: &Tensor,
    dtype: Option<DType>,
    layout: Option<Layout>,
    fill: impl FnOnce(&Tensor) -> Result<()>,
) -> Result<Tensor> {
    let made = strided_like(self_, dtype, layout)?;
    fill(&made)?;
    Ok(made)
}

/// Uniform numbers in `[0, 1)` in the shape of `self`.
#[op(
    "rand_like(Tensor self, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    random,
    function_only,
    narrow_floats,
    not_differentiable, batch = drawn_like
)]
impl RandLike {
    fn meta(
        self_: &Tensor,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory).like(self_, memory_format)
    }
    fn cpu(cpu: Cpu, result: &Tensor, generator: Option<&Generator>) -> Result<()> {
        draw(cpu, result, generator, random::rand)
    }
    fn sparse_coo(
        cpu: Cpu,
        self_: &Tensor,
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
    ) -> Result<Tensor> {
        drawn_strided(self_, dtype, layout, |made| draw(cpu, made, generator, random::rand))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 0])).without_gradient()]
    }
}

/// Standard normal numbers in the shape of `self`.
#[op(
    "randn_like(Tensor self, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    random,
    function_only,
    narrow_floats,
    not_differentiable, batch = drawn_like
)]
impl RandnLike {
    fn meta(
        self_: &Tensor,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory).like(self_, memory_format)
    }
    fn cpu(cpu: Cpu, result: &Tensor, generator: Option<&Generator>) -> Result<()> {
        draw_normal(cpu, result, generator)
    }
    fn sparse_coo(
        cpu: Cpu,
        self_: &Tensor,
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
    ) -> Result<Tensor> {
        drawn_strided(self_, dtype, layout, |made| draw_normal(cpu, made, generator))
    }
    /// For compressed rows and columns: random values at the specified elements. (For coordinate
    /// lists PyTorch draws none.)
    fn sparse_csr(
        cpu: Cpu,
        self_: &Tensor,
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
    ) -> Result<Tensor> {
        let requested = layout.unwrap_or(self_.layout());
        if requested == Layout::Strided {
            return drawn_strided(self_, dtype, layout, |made| draw_normal(cpu, made, generator));
        }
        ensure!(
            requested == self_.layout(),
            not_implemented,
            "normal numbers in the places of a tensor of layout {} cannot be given in the layout {}",
            self_.layout().spelled(),
            requested.spelled()
        );
        with_values(self_, |values| {
            values.randn_like_with(generator, dtype, None, None, None, None)
        })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 0])).without_gradient()]
    }
}

/// Whole numbers in `[0, high)` in the shape and dtype of `self`.
#[op(
    "randint_like(Tensor self, int high, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    random,
    function_only,
    not_differentiable, batch = drawn_like
)]
impl RandintLike {
    fn meta(
        self_: &Tensor,
        high: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<TensorSpec> {
        whole(
            FactoryOptions(dtype, layout, device, pin_memory).like(self_, memory_format)?,
            0,
            high,
        )
    }
    fn cpu(cpu: Cpu, result: &Tensor, high: i64, generator: Option<&Generator>) -> Result<()> {
        draw_whole(cpu, result, 0, Some(high), generator)
    }
    fn sparse_coo(
        cpu: Cpu,
        self_: &Tensor,
        high: i64,
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
    ) -> Result<Tensor> {
        drawn_strided(self_, dtype, layout, |made| {
            whole_range(made.dtype(), 0, Some(high))?;
            draw_whole(cpu, made, 0, Some(high), generator)
        })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(real(s)).with("high", 1_i64).without_gradient()]
    }
}

/// Whole numbers in `[low, high)` in the shape and dtype of `self`.
#[op(
    "randint_like.low_dtype(Tensor self, int low, int high, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    random,
    function_only,
    not_differentiable, batch = drawn_like
)]
impl RandintLikeLow {
    fn meta(
        self_: &Tensor,
        low: i64,
        high: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<TensorSpec> {
        whole(
            FactoryOptions(dtype, layout, device, pin_memory).like(self_, memory_format)?,
            low,
            high,
        )
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        low: i64,
        high: i64,
        generator: Option<&Generator>,
    ) -> Result<()> {
        draw_whole(cpu, result, low, Some(high), generator)
    }
    fn sparse_coo(
        cpu: Cpu,
        self_: &Tensor,
        low: i64,
        high: i64,
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
    ) -> Result<Tensor> {
        drawn_strided(self_, dtype, layout, |made| {
            whole_range(made.dtype(), low, Some(high))?;
            draw_whole(cpu, made, low, Some(high), generator)
        })
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(real(s)).with("low", 4_i64).with("high", 5_i64).without_gradient()]
    }
}

/// Ones with the probabilities `self`, else zeros.
#[op("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", random, any_out, apart)]
impl Bernoulli {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::like(self_))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, generator: Option<&Generator>) -> Result<()> {
        bernoulli_of(cpu, result, self_, generator)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(certain(s)).without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::of(s.integers(&[2], 0, 2)),
            ErrorKind::NotImplemented,
            "not implemented for",
        )]
    }
}

/// Ones with probability `p`, else zeros, in the shape of `self`.
#[op("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", random, batch = drawn_like)]
impl BernoulliP {
    fn meta(self_: &Tensor, p: f64) -> Result<TensorSpec> {
        check_probability(p)?;
        Ok(TensorSpec::like(self_))
    }
    fn cpu(cpu: Cpu, result: &Tensor, p: f64, generator: Option<&Generator>) -> Result<()> {
        bernoulli_with(cpu, result, p, generator)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(real(s)).with("p", 0.0).without_gradient()]
    }
}

/// Normal numbers of shape `size`.
#[op(
    "normal.float_float(float mean, float std, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    random,
    not_differentiable
)]
impl Normal {
    fn meta(
        std: f64,
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        check_std(std)?;
        FactoryOptions(dtype, layout, device, pin_memory).checked_spec(size, default_dtype())
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        mean: f64,
        std: f64,
        generator: Option<&Generator>,
    ) -> Result<()> {
        draw(cpu, result, generator, |out, g| random::normal(out, mean, std, g))
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([1.5.into(), 0.0.into(), [2, 3].as_slice().into()])]
    }
}

/// Normal numbers around each element of `mean`.
#[op("normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor", out, apart, random, node = "NormalBackward1", function_only, method = normal_around)]
impl NormalMean {
    fn meta(mean: &Tensor, std: f64) -> Result<TensorSpec> {
        check_std(std)?;
        Ok(TensorSpec::like(mean))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        mean: &Tensor,
        std: f64,
        generator: Option<&Generator>,
    ) -> Result<()> {
        let moved = Combination::new(cpu, result, mean)?;
        draw(cpu, result, generator, |out, g| random::normal(out, 0.0, std, g))?;
        moved.write(cpu, result, add)
    }
    fn vjp_mean(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(real(s)).with("std", 0.0).without_gradient()]
    }
}

fn check_deviations(std: &Tensor) -> Result<()> {
    ensure!(
        !std.dtype().is_complex(),
        runtime,
        "normal expects standard deviation to be non-complex"
    );
    Ok(())
}

/// Refuses negative standard deviations.
fn check_not_negative(std: &Tensor) -> Result<()> {
    ensure!(
        !std.to_vec::<f64>()?.iter().any(|&std| std < 0.0),
        runtime,
        "normal expects all elements of std >= 0.0"
    );
    Ok(())
}

/// Writes normal numbers around `mean` with the deviations `std` into `out`, which stays as it is where memory is missing.
fn draw_around(
    cpu: Cpu,
    out: &Tensor,
    mean: &Tensor,
    std: &Tensor,
    generator: Option<&Generator>,
) -> Result<()> {
    check_not_negative(std)?;
    let scaled = Combination::new(cpu, out, std)?;
    let moved = Combination::new(cpu, out, mean)?;
    draw(cpu, out, generator, |out, g| random::normal(out, 0.0, 1.0, g))?;
    scaled.write(cpu, out, elementwise::mul)?;
    moved.write(cpu, out, add)
}

fn add(iter: &mut Iter) -> pullback_kernels::Result<()> {
    elementwise::add(iter, Scalar::Int(1))
}

/// The function that replaces each element of a tensor by a function of it and of another element,
/// in their common dtype.
///
/// All memory that the work takes is held before the first write.
struct Combination {
    /// The elements to be replaced, in the dtype of the computation, if that is another one.
    wide: Option<Tensor>,
    other: Tensor,
}

impl Combination {
    fn new(cpu: Cpu, out: &Tensor, other: &Tensor) -> Result<Self> {
        let dtype = result_type(&[out, other])?;
        let wide = if dtype == out.dtype() { None } else { Some(out.empty_as(dtype)?) };
        let other = other.in_dtype(cpu, dtype)?;
        let strides = broadcast_strides(other.shape(), other.strides(), out.shape())?;
        let other = other.alias_with(out.shape(), &strides, other.storage_offset())?;
        Ok(Self { wide, other })
    }
    fn write(
        &self,
        cpu: Cpu,
        out: &Tensor,
        kernel: impl FnOnce(&mut Iter) -> pullback_kernels::Result<()>,
    ) -> Result<()> {
        let target = self.wide.as_ref().unwrap_or(out);
        if self.wide.is_some() {
            target.copy_data(cpu, out)?;
        }
        let inputs = [target.view_ref(cpu), self.other.view_ref(cpu)];
        kernel(&mut Iter::new(&[target.view_mut(cpu)], &inputs)?)?;
        if self.wide.is_some() {
            out.copy_data(cpu, target)?;
        }
        Ok(())
    }
}

/// Normal numbers around `mean` with each of the standard deviations `std`.
#[op(
    "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    out,
    apart,
    random,
    node = "NormalBackward2"
)]
impl NormalStd {
    fn meta(std: &Tensor) -> Result<TensorSpec> {
        check_deviations(std)?;
        Ok(TensorSpec::like(std))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        mean: f64,
        std: &Tensor,
        generator: Option<&Generator>,
    ) -> Result<()> {
        draw_around(cpu, result, &Tensor::wrapped(mean)?, std, generator)
    }
    fn vjp_std(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([1.5.into(), real(s).zeros_like().expect("a small tensor").into()])
                .without_gradient(),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::new([1.5.into(), s.uniform(&[2], -2.0, -1.0).into()]),
            ErrorKind::Runtime,
            "normal expects all elements of std >= 0.0",
        )]
    }
}

/// Normal numbers with means and standard deviations element by element; the shapes broadcast.
#[op("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor", out, apart, random, node = "NormalBackward3", function_only, method = normal_of)]
impl NormalTensor {
    fn meta(mean: &Tensor, std: &Tensor) -> Result<TensorSpec> {
        let shape = broadcast_shapes(&[mean.shape(), std.shape()])?;
        check_deviations(std)?;
        Ok(TensorSpec::beside(mean, &shape))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        mean: &Tensor,
        std: &Tensor,
        generator: Option<&Generator>,
    ) -> Result<()> {
        draw_around(cpu, result, mean, std, generator)
    }
    fn vjp(grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let zeros = grad.zeros_like()?;
        Ok([Some(zeros.clone()), Some(zeros)])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([real(s).into(), real(s).zeros_like().expect("a small tensor").into()])
                .without_gradient(),
        ]
    }
}

/// `num_samples` category numbers per row of weights `self` ((n) or (m, n)), with or without replacement.
#[op(
    "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
    exact_out,
    random,
    not_differentiable, batch = multinomial(self)
)]
impl Multinomial {
    fn meta(self_: &Tensor, num_samples: i64, replacement: bool) -> Result<TensorSpec> {
        ensure!(matches!(self_.ndim(), 1 | 2), runtime, "prob_dist must be 1 or 2 dim");
        ensure!(
            self_.dtype().is_floating_point(),
            runtime,
            "multinomial only supports floating-point dtypes for input, got: {}",
            self_.dtype().scalar_name()
        );
        ensure!(num_samples > 0, runtime, "cannot sample n_sample <= 0 samples");
        let classes = self_.shape()[self_.ndim() - 1];
        ensure!(
            replacement || num_samples <= classes,
            runtime,
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        );
        let mut shape = crate::Dims::from_slice(self_.shape());
        shape[self_.ndim() - 1] = num_samples;
        TensorSpec::beside(self_, &shape).computed_in(DType::I64).checked()
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        num_samples: i64,
        replacement: bool,
        generator: Option<&Generator>,
    ) -> Result<()> {
        let drawn = draw(cpu, result, generator, |out, g| {
            random::multinomial(out, self_.view_ref(cpu), replacement, g)
        });
        match drawn {
            // Repeated draws go through sums, which find what is wrong by themselves.
            Err(error)
                if replacement && num_samples > 1 && error.message().contains("element < 0") =>
            {
                let all = self_.to_vec::<f64>()?;
                let what = if all.iter().all(|&p| p >= 0.0) { "= infinity or NaN" } else { "< 0" };
                bail!(
                    runtime,
                    "invalid multinomial distribution (encountering probability entry {what})"
                )
            }
            drawn => drawn,
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(certain(s)).with("num_samples", 1_i64).without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![
            InvalidSample::new(
                Sample::of(s.positive(&[3])).with("num_samples", 4_i64),
                ErrorKind::Runtime,
                "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
            ),
            InvalidSample::new(
                Sample::of(s.uniform(&[3], -2.0, -1.0)).with("num_samples", 1_i64),
                ErrorKind::Runtime,
                "element < 0",
            ),
        ]
    }
}
