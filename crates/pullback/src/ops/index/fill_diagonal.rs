//! `fill_diagonal_`.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::shape::list;
use crate::{ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&FILL_DIAGONAL];

/// Writes `fill_value` at the elements whose indices are equal in all dimensions.
///
/// With `wrap` the diagonal of a matrix (h, w) of more rows than columns begins anew after every `w + 1` rows, as NumPy's does.
/// Tensors of more than two dimensions have equal sizes.
///
/// # Errors
/// `RuntimeError` for tensors of less than two dimensions, or of more with different sizes.
#[op("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", method_only, method = fill_diagonal_,
     batch = fill_diagonal(self, fill_value, wrap))]
impl FillDiagonal {
    fn meta(self_: &Tensor, fill_value: Scalar) -> Result<TensorSpec> {
        let sizes = self_.shape();
        ensure!(
            sizes.len() > 1,
            runtime,
            "fill_diagonal_: dimensions must larger than 1, got a tensor of {}",
            sizes.len()
        );
        ensure!(
            sizes.len() == 2 || sizes.iter().all(|&size| size == sizes[0]),
            runtime,
            "fill_diagonal_: all dimensions of input must be of equal length, got {}",
            list(sizes)
        );
        TensorSpec::target(self_).holding(fill_value)
    }
    fn cpu_(cpu: Cpu, self_: &Tensor, fill_value: Scalar, wrap: bool) -> Result<()> {
        if self_.numel() == 0 {
            // (Sizes of nothing need not be numbers whose products fit.)
            return Ok(());
        }
        for part in diagonals(self_, wrap)? {
            part.fill_with(cpu, fill_value)?;
        }
        Ok(())
    }
    fn vjp_self(grad: &Tensor, wrap: bool) -> Result<Tensor> {
        let grad = grad.clone_tensor(None)?;
        grad.fill_diagonal_(Scalar::Int(0), wrap)?;
        Ok(grad)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |shape: &[i64], wrap: bool| {
            Sample::of(s.normal(shape)).with("fill_value", 2_i64).with("wrap", wrap)
        };
        let transposed = Sample::of(s.transposed(3, 2)).with("fill_value", Scalar::Float(0.5));
        vec![
            of(&[7, 3], true),
            of(&[8, 3], true),
            of(&[7, 3], false),
            of(&[2, 4], true),
            of(&[3, 3, 3], false),
            of(&[0, 3], true),
            of(&[3, 0], true),
            transposed,
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], phrase| {
            let sample = Sample::of(s.normal(shape)).with("fill_value", 1_i64);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[3], "dimensions must larger than 1"),
            bad(&[2, 3, 3], "all dimensions of input must be of equal length"),
        ]
    }
}

/// The diagonal as two tensors over its memory: the blocks of `w + 1` rows after which it begins anew, and the rows behind them.
fn diagonals(tensor: &Tensor, wrap: bool) -> Result<[Tensor; 2]> {
    let (sizes, strides) = (tensor.shape(), tensor.strides());
    let offset = tensor.storage_offset();
    // (The stride of a dimension of one element may be any number.)
    let step = if sizes.contains(&1) { 1 } else { strides.iter().sum() };
    let (rows, columns) = (sizes[0], sizes[1]);
    let block = columns + 1;
    let blocks = if wrap && sizes.len() == 2 { rows / block } else { 0 };
    let behind = blocks * block;
    let block_step = if blocks > 0 { block * strides[0] } else { 1 };
    let whole = tensor.alias_with(&[blocks, columns], &[block_step, step], offset)?;
    let length = (rows - behind).min(columns);
    let rest = tensor.alias_with(&[length], &[step], offset + behind * strides[0])?;
    Ok([whole, rest])
}
