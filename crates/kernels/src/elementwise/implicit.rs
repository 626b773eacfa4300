//! Implicit derivatives of samples by the parameters of their distributions (`special/implicit.rs`), over tensors.

use super::dense::{run2, run3};
use super::math::RealMath;
use crate::special::implicit;
use crate::{Iter, Result};

map!(GammaGrad<T: RealMath>(a: T, x: T) -> T { T::of(implicit::gamma(a.wide(), x.wide())) });
map!(DirichletGrad<T: RealMath>(x: T, alpha: T, total: T) -> T {
    T::of(implicit::dirichlet(x.wide(), alpha.wide(), total.wide()))
});

/// How samples of the gamma distribution move with the shape; inputs: shapes, samples.
pub fn standard_gamma_grad(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "_standard_gamma_grad_cpu", [float], T => {
        run2::<GammaGrad<T>>(iter, ())
    })
}

/// How samples of the beta distribution move with the first parameter, divided by `1 - x`; inputs: samples, first parameters, sums
/// of both parameters.
pub fn dirichlet_grad(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "_dirichlet_grad_cpu", [float], T => {
        run3::<DirichletGrad<T>>(iter, ())
    })
}
