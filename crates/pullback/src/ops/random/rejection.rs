//! Random tensors whose elements take as many numbers of the stream as they need: gamma, Dirichlet, Poisson and binomial.
//!
//! The streams are the kernels' (`random/rejection.rs` there), drawn row by row. Gamma and Dirichlet samples have implicit
//! derivatives by their parameters, which have none themselves; Poisson and binomial samples are whole numbers. Samples are calls
//! whose result no draw can change.

use super::fill::{certain, draw, real};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::classes::no_derivative;
use crate::tensor::Cpu;
use crate::tensor::shape::broadcast_shapes;
use crate::{ErrorKind, Generator, Result, Tensor, TensorSpec};
use pullback_kernels::random;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &POISSON,
    &BINOMIAL,
    &STANDARD_GAMMA,
    &STANDARD_GAMMA_GRAD,
    &SAMPLE_DIRICHLET,
    &DIRICHLET_GRAD,
];

/// Poisson numbers of the rates `self`: `P(k) = rate^k e^-rate / k!`. Rates are not negative; an infinite one gives itself.
#[op("poisson(Tensor self, Generator? generator=None) -> Tensor", random, function_only)]
impl Poisson {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::like(self_))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, generator: Option<&Generator>) -> Result<()> {
        draw(cpu, result, generator, |out, g| random::poisson(out, self_.view_ref(cpu), g))
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.zeros_like()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(zeros(s)).without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![
            InvalidSample::new(
                Sample::of(s.uniform(&[2], -2.0, -1.0)),
                ErrorKind::Runtime,
                "invalid Poisson rate, expected rate to be non-negative",
            ),
            InvalidSample::new(
                Sample::of(s.integers(&[2], 1, 4)),
                ErrorKind::NotImplemented,
                "\"poisson_cpu\" not implemented for 'Long'",
            ),
        ]
    }
}

/// Zeros in the shape and real dtype of other samples.
fn zeros(s: &Sampler) -> Tensor {
    real(s).zeros_like().expect("a small tensor")
}

/// Binomial numbers of `count` trials, each of which succeeds with probability `prob`; the shapes broadcast. No trials, or none
/// that can succeed, give 0; probabilities from 1 upwards give `count`.
#[op(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    random,
    function_only, batch = binomial(count, prob)
)]
impl Binomial {
    fn meta(count: &Tensor, prob: &Tensor) -> Result<TensorSpec> {
        for (name, tensor) in [("count", count), ("prob", prob)] {
            ensure!(
                tensor.dtype().is_floating_point(),
                value,
                "binomial only supports floating-point dtypes for {name}, got: {}",
                tensor.dtype().scalar_name()
            );
        }
        let dtype = count.dtype();
        ensure!(
            prob.dtype() == dtype,
            runtime,
            "Found dtype {} but expected {}",
            prob.dtype().scalar_name(),
            dtype.scalar_name()
        );
        let shape = broadcast_shapes(&[count.shape(), prob.shape()])?;
        Ok(TensorSpec::beside(count, &shape))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        count: &Tensor,
        prob: &Tensor,
        generator: Option<&Generator>,
    ) -> Result<()> {
        let shape = result.shape();
        let (count, prob) = (count.expand(shape, false)?, prob.expand(shape, false)?);
        draw(cpu, result, generator, |out, g| {
            random::binomial(out, count.view_ref(cpu), prob.view_ref(cpu), g)
        })
    }
    fn vjp() -> Result<[Option<Tensor>; 2]> {
        no_derivative("derivative for aten::binomial")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let count = Sampler::new(s.dtype.to_real()).integers(&[2, 3], 0, 5);
        let count = count.copied(s.dtype.to_real()).expect("a small tensor");
        vec![Sample::new([count.into(), certain(s).into()]).without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::new([s.positive(&[2]).into(), s.integers(&[2], 0, 2).into()]),
            ErrorKind::Value,
            "binomial only supports floating-point dtypes for prob, got: Long",
        )]
    }
}

/// Gamma numbers of the shapes `self` and rate 1, with density `x^(a-1) e^-x / Γ(a)`; at least the smallest normal number of
/// the dtype. Their derivative by the shape is implicit: that of `_standard_gamma_grad`.
#[op("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", random, function_only)]
impl StandardGamma {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::like(self_))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, generator: Option<&Generator>) -> Result<()> {
        draw(cpu, result, generator, |out, g| random::standard_gamma(out, self_.view_ref(cpu), g))
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.standard_gamma_grad(result)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(zeros(s)).without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::of(s.integers(&[2], 1, 4)),
            ErrorKind::NotImplemented,
            "\"gamma_cpu\" not implemented for 'Long'",
        )]
    }
}

/// How the samples `output` of [`StandardGamma`] move with their shapes: `-(∂P/∂a)(a, x) / (x^(a-1) e^-x / Γ(a))`, with `P` the
/// regularised lower incomplete gamma function (M. Figurnov, S. Mohamed, A. Mnih, "Implicit Reparameterization Gradients", 2018).
/// 0 at `x = 0`; NaN for shapes that are not positive.
#[op(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    function_only,
    meta = broadcast,
    cpu = standard_gamma_grad,
    batch = pointwise
)]
impl StandardGammaGrad {
    fn vjp() -> Result<[Option<Tensor>; 2]> {
        no_derivative("the derivative for '_standard_gamma_grad'")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |a: &[i64], x: &[i64]| {
            Sample::new([s.positive(a).into(), s.positive(x).into()]).without_gradient()
        };
        vec![of(&[2, 3], &[2, 3]), of(&[2, 1], &[3]), of(&[], &[]), of(&[0], &[1])]
    }
}

/// Points of the simplex with the Dirichlet distribution of concentrations `self`, along the last dimension; kept off 0 and 1. The
/// derivative by the concentrations is implicit: that of `_dirichlet_grad`.
#[op("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", random, function_only, batch = dirichlet(self))]
impl SampleDirichlet {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        Ok(TensorSpec::like(self_))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, generator: Option<&Generator>) -> Result<()> {
        draw(cpu, result, generator, |out, g| random::dirichlet(out, self_.view_ref(cpu), g))
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        let (last, all) = (&[-1][..], self_.shape());
        let total = self_.sum_dim(Some(last), true)?.expand(all, false)?;
        let moved = result.dirichlet_grad(self_, &total)?;
        let mean = result.mul(grad)?.sum_dim(Some(last), true)?;
        moved.mul(&grad.sub(&mean)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(zeros(s)).without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::of(s.integers(&[2], 1, 4)),
            ErrorKind::NotImplemented,
            "\"dirichlet\" not implemented for 'Long'",
        )]
    }
}

/// How a share `x` of a Dirichlet sample moves with its concentration `alpha`, divided by `1 - x`: `-(∂I/∂α)(x; α, β) / f(x) /
/// (1 - x)`, with `I` the regularised incomplete beta function, `f` its derivative and `β = total - alpha`. 0 at `x = 0` and
/// where `β = 0`; NaN unless `0 < alpha <= total`.
#[op(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    function_only,
    meta = broadcast,
    cpu = dirichlet_grad,
    batch = pointwise
)]
impl DirichletGrad {
    fn vjp() -> Result<[Option<Tensor>; 3]> {
        no_derivative("derivative for aten::_dirichlet_grad")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |shapes: [&[i64]; 3]| {
            let [x, alpha, total] = shapes;
            let (x, alpha) = (s.uniform(x, 0.1, 0.9), s.uniform(alpha, 0.5, 2.0));
            let total = s.uniform(total, 2.5, 4.0);
            Sample::new([x.into(), alpha.into(), total.into()]).without_gradient()
        };
        vec![of([&[2, 3]; 3]), of([&[3], &[2, 1], &[]]), of([&[]; 3]), of([&[0], &[1], &[]])]
    }
}
