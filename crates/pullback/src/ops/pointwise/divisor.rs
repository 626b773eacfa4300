//! Greatest common divisors and least common multiples.

use crate::dispatch::OpDef;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{ErrorKind, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&GCD, &LCM];

/// The greatest common divisor, not negative (but of the smallest integer and 0); 0 of two zeros. Integers only.
#[op("gcd(Tensor self, Tensor other) -> Tensor", inplace, out, not_differentiable, meta = broadcast, cpu = gcd, batch = pointwise,
     samples = binary_whole)]
impl Gcd {
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused(s.normal(&[2]), "\"gcd_cpu\" not implemented for")
    }
}

/// The least common multiple, not negative unless it wraps; 0 if either is. Integers only.
#[op("lcm(Tensor self, Tensor other) -> Tensor", inplace, out, not_differentiable, meta = broadcast, cpu = lcm, batch = pointwise,
     samples = binary_whole)]
impl Lcm {
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused(s.bools(&[2]), "\"lcm_cpu\" not implemented for 'Bool'")
    }
}

fn refused(x: Tensor, phrase: &'static str) -> Vec<InvalidSample> {
    let sample = Sample::new([x.clone().into(), x.into()]);
    vec![InvalidSample::new(sample, ErrorKind::NotImplemented, phrase)]
}
