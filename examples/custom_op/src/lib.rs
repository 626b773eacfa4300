//! An op defined outside of the crate `pullback`: the solution of Kepler's equation.
//!
//! A planet on an ellipse moves by `E - e sin E = M`: the mean anomaly `M` grows evenly with time, the place follows from the
//! eccentric anomaly `E`, for which there is no formula. The kernel finds it by Newton's method; derivatives need none of its
//! steps, as the implicit function theorem gives them from the solution.
//!
//! ```
//! use pullback::prelude::*;
//! use pullback_custom_op::KeplerMethods;
//! # fn main() -> Result<()> {
//! let (mean, eccentricity) = (Tensor::from([0.5, 1.0, 2.0])?, Tensor::from(0.2)?.with_grad()?);
//! let anomaly = mean.kepler(&eccentricity)?;
//! assert!((&anomaly - &eccentricity * anomaly.sin() - &mean).abs().max()?.item()?.to_f64() < 1e-14);
//! anomaly.sum()?.backward()?;
//! assert!(eccentricity.grad().is_some());
//! # Ok(())
//! # }
//! ```

use pullback::custom::{Iter, KernelResult, map_real};
use pullback::gradcheck::{InvalidSample, Sample, Sampler};
use pullback::{DType, ErrorKind, Result, Tensor, op};

/// The solution `E` of `E - e sin E = M`, element by element, from the mean anomaly `M` and the eccentricity `e`; NaN unless
/// `0 <= e < 1`. Whole numbers become floats.
///
/// `dE/dM = 1 / (1 - e cos E)` and `dE/de = sin E / (1 - e cos E)`.
#[op("kepler(Tensor mean, Tensor eccentricity) -> Tensor", out, meta = float, batch = pointwise)]
impl Kepler {
    fn cpu(iter: &mut Iter) -> KernelResult<()> {
        map_real(iter, "kepler", |[mean, eccentricity]: [f64; 2]| solve(mean, eccentricity))
    }
    fn vjp_mean(grad: &Tensor, eccentricity: &Tensor, result: &Tensor) -> Result<Tensor> {
        (grad / (1.0 - eccentricity * result.cos())).get()
    }
    fn vjp_eccentricity(grad: &Tensor, eccentricity: &Tensor, result: &Tensor) -> Result<Tensor> {
        (grad * result.sin() / (1.0 - eccentricity * result.cos())).get()
    }
    fn jvp(
        mean_t: &Tensor,
        eccentricity_p: &Tensor,
        eccentricity_t: &Tensor,
        result: &Tensor,
    ) -> Result<Tensor> {
        let slope = 1.0 - eccentricity_p * result.cos();
        ((mean_t + eccentricity_t * result.sin()) / slope).get()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |mean: &[i64], eccentricity: &[i64]| {
            let eccentricity = s.uniform(eccentricity, 0.05, 0.9);
            Sample::new([s.uniform(mean, -6.0, 6.0).into(), eccentricity.into()])
        };
        let transposed = Sample::new([s.transposed(3, 2).into(), s.uniform(&[2], 0.1, 0.5).into()]);
        vec![
            sample(&[], &[]),
            sample(&[5], &[]),
            sample(&[2, 3], &[2, 1]),
            sample(&[0], &[1]),
            transposed,
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let complex = s.normal(&[2]).to_dtype(DType::C128).expect("samples are small");
        let pair = |a: Tensor, b: Tensor| Sample::new([a.into(), b.into()]);
        let (not_there, phrase) = (ErrorKind::NotImplemented, "\"kepler\" not implemented");
        vec![
            InvalidSample::new(pair(complex, s.positive(&[2])), not_there, phrase),
            InvalidSample::new(
                pair(s.normal(&[2]), s.positive(&[3])),
                ErrorKind::Runtime,
                "must match the size of tensor",
            ),
        ]
    }
}

/// Newton's method, from a start from which it converges for all arguments (Danby 1987).
fn solve(mean: f64, eccentricity: f64) -> f64 {
    /// Steps after which it has long converged.
    const STEPS: usize = 60;
    if !(0.0..1.0).contains(&eccentricity) || !mean.is_finite() {
        return f64::NAN;
    }
    let mut anomaly = mean + 0.85 * eccentricity * mean.sin().signum();
    for _ in 0..STEPS {
        let (sin, cos) = anomaly.sin_cos();
        let step = (anomaly - eccentricity * sin - mean) / (1.0 - eccentricity * cos);
        anomaly -= step;
        if step.abs() <= f64::EPSILON * anomaly.abs() {
            break;
        }
    }
    anomaly
}
