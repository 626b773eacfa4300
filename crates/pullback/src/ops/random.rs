//! Random tensors: the numbers PyTorch's CPU generator gives for the same seed.
//!
//! Every op locks its generator (the default one unless `generator` is given) for the whole draw. Draws
//! have no derivative: filling in place cuts the old values' gradient off.

use super::creation::Options;
use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::tensor::promote::default_dtype;
use crate::tensor::shape::broadcast_shapes;
use crate::{DType, Device, Generator, Layout, MemoryFormat, Result, Tensor, default_generator};
use pullback_kernels::{StridedMut, random};
use pullback_macros::op;

/// The ops of this family.
pub static OPS: &[&OpDef] = &[
    &RAND,
    &RANDN,
    &RANDINT,
    &RANDINT_LOW,
    &RANDPERM,
    &RAND_LIKE,
    &RANDN_LIKE,
    &RANDINT_LIKE,
    &RANDINT_LIKE_LOW,
    &UNIFORM,
    &NORMAL_FILL,
    &EXPONENTIAL,
    &CAUCHY,
    &GEOMETRIC,
    &LOG_NORMAL,
    &RANDOM,
    &RANDOM_TO,
    &RANDOM_FROM,
    &BERNOULLI_FILL,
    &BERNOULLI_FILL_TENSOR,
    &BERNOULLI,
    &BERNOULLI_P,
    &NORMAL,
    &NORMAL_MEAN,
    &NORMAL_STD,
    &NORMAL_TENSOR,
    &MULTINOMIAL,
];

/// Fills `out` from the given or the default generator.
fn draw(
    out: &Tensor,
    generator: Option<&Generator>,
    fill: impl FnOnce(&mut StridedMut<'_>, &mut random::Generator) -> pullback_kernels::Result<()>,
) -> Result<()> {
    let mut engine = generator.unwrap_or(default_generator()).lock();
    Ok(fill(&mut out.view_mut(), &mut engine)?)
}

/// A new row-major tensor, filled.
fn fresh(
    size: &[i64],
    (options, natural): (Options, DType),
    generator: Option<&Generator>,
    fill: impl FnOnce(&mut StridedMut<'_>, &mut random::Generator) -> pullback_kernels::Result<()>,
) -> Result<Tensor> {
    let out = options.spec(size, natural)?.empty()?;
    draw(&out, generator, fill)?;
    Ok(out)
}

/// Uniform numbers in `[0, 1)`.
#[op(
    "rand(int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    random,
    not_differentiable
)]
impl Rand {
    fn cpu(
        size: &[i64],
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        fresh(
            size,
            (Options(dtype, layout, device, pin_memory), default_dtype()),
            generator,
            random::rand,
        )
    }
}

/// Standard normal numbers.
#[op(
    "randn(int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    random,
    not_differentiable
)]
impl Randn {
    fn cpu(
        size: &[i64],
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        fresh(
            size,
            (Options(dtype, layout, device, pin_memory), default_dtype()),
            generator,
            random::randn,
        )
    }
}

fn check_range(low: i64, high: i64) -> Result<()> {
    ensure!(
        low < high,
        runtime,
        "random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
    );
    Ok(())
}

/// Whole numbers in `[0, high)`; int64 unless `dtype` is given.
#[op(
    "randint(int high, int[] size, *, Generator? generator=None, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    random,
    not_differentiable
)]
impl Randint {
    fn cpu(
        high: i64,
        size: &[i64],
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        RandintLow::cpu(0, high, size, generator, dtype, layout, device, pin_memory)
    }
}

/// Whole numbers in `[low, high)`; int64 unless `dtype` is given.
#[op(
    "randint.low(int low, int high, int[] size, *, Generator? generator=None, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    random,
    not_differentiable
)]
impl RandintLow {
    fn cpu(
        low: i64,
        high: i64,
        size: &[i64],
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        check_range(low, high)?;
        let kind = (Options(dtype, layout, device, pin_memory), DType::I64);
        fresh(size, kind, generator, |out, g| random::randint(out, low, Some(high), g))
    }
}

/// A random permutation of `0..n`.
#[op(
    "randperm(int n, *, Generator? generator=None, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    out,
    random,
    not_differentiable
)]
impl Randperm {
    fn cpu(
        n: i64,
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        ensure!(n >= 0, runtime, "n must be non-negative, got{n}");
        fresh(
            &[n],
            (Options(dtype, layout, device, pin_memory), DType::I64),
            generator,
            random::randperm,
        )
    }
}

fn like(self_: &Tensor, options: Options, format: Option<MemoryFormat>) -> Result<Tensor> {
    self_.empty_like_with(options.0, options.1, options.2, options.3, format)
}

/// Uniform numbers in `[0, 1)` in the shape of `self`.
#[op(
    "rand_like(Tensor self, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    random,
    function_only,
    not_differentiable
)]
impl RandLike {
    fn cpu(
        self_: &Tensor,
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<Tensor> {
        let out = like(self_, Options(dtype, layout, device, pin_memory), memory_format)?;
        draw(&out, generator, random::rand)?;
        Ok(out)
    }
}

/// Standard normal numbers in the shape of `self`.
#[op(
    "randn_like(Tensor self, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    random,
    function_only,
    not_differentiable
)]
impl RandnLike {
    fn cpu(
        self_: &Tensor,
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<Tensor> {
        let out = like(self_, Options(dtype, layout, device, pin_memory), memory_format)?;
        draw(&out, generator, random::randn)?;
        Ok(out)
    }
}

/// Whole numbers in `[0, high)` in the shape and dtype of `self`.
#[op(
    "randint_like(Tensor self, int high, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    random,
    function_only,
    not_differentiable
)]
impl RandintLike {
    fn cpu(
        self_: &Tensor,
        high: i64,
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<Tensor> {
        RandintLikeLow::cpu(
            self_,
            0,
            high,
            generator,
            dtype,
            layout,
            device,
            pin_memory,
            memory_format,
        )
    }
}

/// Whole numbers in `[low, high)` in the shape and dtype of `self`.
#[op(
    "randint_like.low_dtype(Tensor self, int low, int high, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    random,
    function_only,
    not_differentiable
)]
impl RandintLikeLow {
    fn cpu(
        self_: &Tensor,
        low: i64,
        high: i64,
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<Tensor> {
        check_range(low, high)?;
        let out = like(self_, Options(dtype, layout, device, pin_memory), memory_format)?;
        draw(&out, generator, |out, g| random::randint(out, low, Some(high), g))?;
        Ok(out)
    }
}

/// Fills with uniform numbers in `[from, to)`.
#[op("uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)", random, method_only,
     method = uniform_, node = "Uniform")]
impl Uniform {
    fn cpu_(self_: &Tensor, from: f64, to: f64, generator: Option<&Generator>) -> Result<()> {
        ensure!(
            from <= to,
            runtime,
            "uniform_ expects to return a [from, to) range, but found from={from} > to={to}"
        );
        draw(self_, generator, |out, g| random::uniform(out, from, to, g))
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

fn check_std(std: f64) -> Result<()> {
    ensure!(std >= 0.0, runtime, "normal expects std >= 0.0, but found std {std}");
    Ok(())
}

/// Fills with normal numbers.
#[op("normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)", random, method_only,
     method = normal_, node = "Normal")]
impl NormalFill {
    fn cpu_(self_: &Tensor, mean: f64, std: f64, generator: Option<&Generator>) -> Result<()> {
        check_std(std)?;
        draw(self_, generator, |out, g| random::normal(out, mean, std, g))
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

/// Fills with exponential numbers of rate `lambd`.
#[op("exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)", random, method_only,
     method = exponential_, node = "Exponential")]
impl Exponential {
    fn cpu_(self_: &Tensor, lambd: f64, generator: Option<&Generator>) -> Result<()> {
        ensure!(
            lambd > 0.0,
            runtime,
            "exponential_ expects lambda > 0.0, but found lambda={lambd}"
        );
        draw(self_, generator, |out, g| random::exponential(out, lambd, g))
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

/// Fills with Cauchy numbers.
#[op("cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)", random, method_only,
     method = cauchy_, node = "Cauchy")]
impl Cauchy {
    fn cpu_(self_: &Tensor, median: f64, sigma: f64, generator: Option<&Generator>) -> Result<()> {
        ensure!(sigma > 0.0, runtime, "cauchy_ expects sigma > 0.0, but found sigma={sigma}");
        draw(self_, generator, |out, g| random::cauchy(out, median, sigma, g))
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

/// Fills with the numbers of trials up to the first success of probability `p`.
#[op("geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)", random, method_only,
     method = geometric_, node = "Geometric")]
impl Geometric {
    fn cpu_(self_: &Tensor, p: f64, generator: Option<&Generator>) -> Result<()> {
        ensure!(p > 0.0 && p < 1.0, runtime, "geometric_ expects p to be in (0, 1), but got p={p}");
        draw(self_, generator, |out, g| random::geometric(out, p, g))
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

/// Fills with exponentials of normal numbers.
#[op("log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)", random, method_only,
     method = log_normal_, node = "LogNormal")]
impl LogNormal {
    fn cpu_(self_: &Tensor, mean: f64, std: f64, generator: Option<&Generator>) -> Result<()> {
        ensure!(std > 0.0, runtime, "log_normal_ expects std > 0.0, but found std={std}");
        draw(self_, generator, |out, g| random::log_normal(out, mean, std, g))
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

/// Fills with whole numbers over the dtype's whole range from 0 on.
#[op("random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)", random, method_only, method = random_, node = "Random")]
impl Random {
    fn cpu_(self_: &Tensor, generator: Option<&Generator>) -> Result<()> {
        draw(self_, generator, random::random)
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

/// Fills with whole numbers in `[0, to)`.
#[op("random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)", random, method_only,
     method = random_to_, node = "Random")]
impl RandomTo {
    fn cpu_(self_: &Tensor, to: i64, generator: Option<&Generator>) -> Result<()> {
        check_range(0, to)?;
        draw(self_, generator, |out, g| random::randint(out, 0, Some(to), g))
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

/// Fills with whole numbers in `[from, to)`; without `to`, up to the largest there is.
#[op("random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)", random, method_only,
     method = random_from_, node = "Random")]
impl RandomFrom {
    fn cpu_(
        self_: &Tensor,
        from: i64,
        to: Option<i64>,
        generator: Option<&Generator>,
    ) -> Result<()> {
        if let Some(to) = to {
            check_range(from, to)?;
        }
        draw(self_, generator, |out, g| random::randint(out, from, to, g))
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

fn check_probability(p: f64) -> Result<()> {
    ensure!(
        (0.0..=1.0).contains(&p),
        runtime,
        "bernoulli_ expects p to be in [0, 1], but got p={p}"
    );
    Ok(())
}

/// Fills with ones of probability `p`, else zeros.
#[op("bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)", random, method_only,
     method = bernoulli_, node = "Bernoulli")]
impl BernoulliFill {
    fn cpu_(self_: &Tensor, p: f64, generator: Option<&Generator>) -> Result<()> {
        check_probability(p)?;
        draw(self_, generator, |out, g| random::bernoulli(out, p, g))
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

fn bernoulli_of(out: &Tensor, p: &Tensor, generator: Option<&Generator>) -> Result<()> {
    ensure!(
        p.dtype().is_floating_point(),
        runtime,
        "expected probabilities tensor to have floating type, got {}",
        p.dtype().scalar_name()
    );
    let p = p.expand(out.shape(), false)?;
    draw(out, generator, |out, g| random::bernoulli_tensor(out, p.view_ref(), g))
}

/// Fills with ones of the probabilities `p` (broadcast), else zeros.
#[op("bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)", random, method_only,
     method = bernoulli_tensor_, node = "Bernoulli")]
impl BernoulliFillTensor {
    fn cpu_(self_: &Tensor, p: &Tensor, generator: Option<&Generator>) -> Result<()> {
        bernoulli_of(self_, p, generator)
    }
    fn vjp(grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let _ = grad;
        Ok([None, None])
    }
}

/// Ones with the probabilities `self`, else zeros.
#[op("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", random, out)]
impl Bernoulli {
    fn cpu(self_: &Tensor, generator: Option<&Generator>) -> Result<Tensor> {
        let out = self_.empty_like()?;
        bernoulli_of(&out, self_, generator)?;
        Ok(out)
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

/// Ones with probability `p`, else zeros, in the shape of `self`.
#[op("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", random)]
impl BernoulliP {
    fn cpu(self_: &Tensor, p: f64, generator: Option<&Generator>) -> Result<Tensor> {
        let out = self_.empty_like()?;
        BernoulliFill::cpu_(&out, p, generator)?;
        Ok(out)
    }
    fn vjp_self(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
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
    fn cpu(
        mean: f64,
        std: f64,
        size: &[i64],
        generator: Option<&Generator>,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<Tensor> {
        check_std(std)?;
        let kind = (Options(dtype, layout, device, pin_memory), default_dtype());
        fresh(size, kind, generator, |out, g| random::normal(out, mean, std, g))
    }
}

/// Normal numbers around each element of `mean`.
#[op("normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor", out, random, function_only, method = normal_around)]
impl NormalMean {
    fn cpu(mean: &Tensor, std: f64, generator: Option<&Generator>) -> Result<Tensor> {
        check_std(std)?;
        let out = mean.empty_like()?;
        draw(&out, generator, |out, g| random::normal(out, 0.0, std, g))?;
        out.add_(mean)
    }
    fn vjp_mean(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

fn scaled(std: &Tensor, shape: &[i64], generator: Option<&Generator>) -> Result<Tensor> {
    ensure!(
        !std.dtype().is_complex(),
        runtime,
        "normal expects standard deviation to be non-complex"
    );
    if std.to_vec::<f64>()?.iter().any(|&s| s < 0.0) {
        bail!(runtime, "normal expects all elements of std >= 0.0");
    }
    let out = Tensor::empty_of(shape, std.dtype())?;
    draw(&out, generator, |out, g| random::normal(out, 0.0, 1.0, g))?;
    out.mul_(std)
}

/// Normal numbers around `mean` with each of the standard deviations `std`.
#[op(
    "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    out,
    random
)]
impl NormalStd {
    fn cpu(mean: f64, std: &Tensor, generator: Option<&Generator>) -> Result<Tensor> {
        scaled(std, std.shape(), generator)?.add_(&Tensor::wrapped(mean)?)
    }
    fn vjp_std(grad: &Tensor) -> Result<Option<Tensor>> {
        let _ = grad;
        Ok(None)
    }
}

/// Normal numbers with means and standard deviations element by element; the shapes broadcast.
#[op("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor", out, random, function_only, method = normal_of)]
impl NormalTensor {
    fn cpu(mean: &Tensor, std: &Tensor, generator: Option<&Generator>) -> Result<Tensor> {
        let shape = broadcast_shapes(&[mean.shape(), std.shape()])?;
        scaled(std, &shape, generator)?.add_(mean)
    }
    fn vjp(grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let _ = grad;
        Ok([None, None])
    }
}

/// `num_samples` category numbers per row of weights `self` ((n) or (m, n)), with or without replacement.
#[op(
    "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
    out,
    random,
    not_differentiable
)]
impl Multinomial {
    fn cpu(
        self_: &Tensor,
        num_samples: i64,
        replacement: bool,
        generator: Option<&Generator>,
    ) -> Result<Tensor> {
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
        let out = Tensor::empty_of(&shape, DType::I64)?;
        draw(&out, generator, |out, g| random::multinomial(out, self_.view_ref(), replacement, g))?;
        Ok(out)
    }
}
