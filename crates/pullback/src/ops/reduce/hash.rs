//! A hash of a tensor's elements.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::min_max::refuse_nothing_in;
use crate::ops::reduce::sum::{reduce_into, spec_over};
use crate::tensor::Cpu;
use crate::tensor::shape::wrap_dims;
use crate::{DType, ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::reduce;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&HASH_TENSOR];

/// The bits of all elements over `dim` (all dimensions if empty) laid over each other by "exclusive or": of whole numbers
/// those of their int64, of others those of their double. Gives uint64; `mode` has to be 0.
#[op("hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor", exact_out, not_differentiable,
     batch = reduction)]
impl HashTensor {
    fn meta(self_: &Tensor, dim: &[i64], keepdim: bool, mode: i64) -> Result<TensorSpec> {
        ensure!(mode == 0, runtime, "Unknown hash_tensor mode: {mode}");
        ensure!(
            !dim.is_empty() || self_.numel() > 0,
            runtime,
            "hash_tensor(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
        );
        let dims = wrap_dims(Some(dim), self_.ndim())?;
        refuse_nothing_in("hash_tensor", self_, &dims)?;
        Ok(spec_over(self_, &dims, keepdim, DType::U64))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: &[i64]) -> Result<()> {
        let dims = wrap_dims(Some(dim), self_.ndim())?;
        reduce_into(cpu, result, self_, &dims, reduce::xor_bits)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |shape: &[i64]| Sample::of(s.normal(shape));
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![
            of(&[2, 3]),
            of(&[2, 3, 2]).with("dim", [1]),
            of(&[2, 3]).with("dim", [0, -1]).with("keepdim", true),
            of(&[]),
            Sample::of(s.integers(&[4], -9, 9)),
            Sample::of(s.transposed(3, 2)).with("dim", [0]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let of = |shape: &[i64]| Sample::of(s.normal(shape));
        let (runtime, index) = (ErrorKind::Runtime, ErrorKind::Index);
        let empty = "hash_tensor(): Expected reduction dim 1 to have non-zero size.";
        vec![
            InvalidSample::new(
                of(&[2]).with("mode", 1_i64),
                runtime,
                "Unknown hash_tensor mode: 1",
            ),
            InvalidSample::new(of(&[2, 0]).with("dim", [1]), index, empty),
            InvalidSample::new(of(&[2, 0]), runtime, "Expected reduction dim to be specified"),
            InvalidSample::new(of(&[0]), runtime, "Expected reduction dim to be specified"),
        ]
    }
}
