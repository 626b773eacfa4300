//! Embeddings: rows of a table looked up by index, and the gradient of the table.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::sparse;
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, Dims, ErrorKind, Result, Tensor};
use pullback_kernels::{check_shape, index as kernel};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&EMBEDDING, &EMBEDDING_BACKWARD];

/// Rows of a table: `weight` (n, d) at the `indices` (*) gives (*, d). The gradient leaves out row `padding_idx` (-1:
/// none); with `scale_grad_by_freq` the gradient of each row is divided by how often the row was read, and with
/// `sparse` the gradient is a sparse tensor.
///
/// # Errors
/// `IndexError` for an index that is no row of the table.
#[op(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor", narrow_floats,
    function_only,
    not_differentiable(indices), jvp = linear, batch = embedding(weight, indices))]
impl Embedding {
    fn meta(weight: &Tensor, indices: &Tensor) -> Result<TensorSpec> {
        ensure!(weight.ndim() == 2, runtime, "'weight' must be 2-D");
        ensure!(
            matches!(indices.dtype(), DType::I64 | DType::I32),
            runtime,
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: {}, {}; but got torch.{}Tensor instead (while checking arguments for embedding)",
            DType::I64.scalar_name(),
            DType::I32.scalar_name(),
            indices.dtype().scalar_name()
        );
        let mut shape = Dims::from_slice(indices.shape());
        shape.push(weight.shape()[1]);
        Ok(TensorSpec::beside(weight, &shape))
    }
    fn cpu(cpu: Cpu, result: &Tensor, weight: &Tensor, indices: &Tensor) -> Result<()> {
        let (weight, indices) = (weight.view_ref(cpu), indices.view_ref(cpu));
        Ok(kernel::embedding(&mut result.view_mut(cpu), weight, indices)?)
    }
    /// Rows of a sparse table, for a vector of indices: a sparse tensor.
    fn sparse_coo(weight: &Tensor, indices: &Tensor) -> Result<Tensor> {
        Embedding::meta(weight, indices)?;
        ensure!(
            indices.ndim() == 1,
            not_implemented,
            "embedding: of a sparse table a vector of indices is read, but got indices of {} dimensions",
            indices.ndim()
        );
        // (`index_select` takes indices from the end, which are no rows of a table.)
        let is_row = |&at: &i64| (0..weight.shape()[0]).contains(&at);
        let rows = indices.to_dtype(DType::I64)?;
        ensure!(rows.to_vec::<i64>()?.iter().all(is_row), index, "index out of range in self");
        sparse::index_select(weight, 0, &rows)
    }
    fn vjp_weight(
        grad: &Tensor,
        indices: &Tensor,
        weight_shape: &[i64],
        padding_idx: i64,
        scale_grad_by_freq: bool,
        sparse: bool,
    ) -> Result<Tensor> {
        if sparse {
            let wants = (padding_idx, scale_grad_by_freq);
            return sparse::embedding_backward(grad, indices, weight_shape, wants);
        }
        grad.embedding_dense_backward(indices, weight_shape[0], padding_idx, scale_grad_by_freq)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample =
            |shape: &[i64]| Sample::new([s.normal(&[4, 3]).into(), s.integers(shape, 0, 4).into()]);
        vec![sample(&[5]), sample(&[2, 2]), sample(&[0])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let index = Tensor::from_slice(&[4_i64], &[1]).expect("samples are small");
        let sample = Sample::new([s.normal(&[4, 3]).into(), index.into()]);
        vec![InvalidSample::new(sample, ErrorKind::Index, "index out of range in self")]
    }
}

/// The gradient of `embedding` with respect to its table of `num_weights` rows, as a dense tensor.
#[op(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq) -> Tensor",
    internal,
    not_differentiable(indices), batch = embedding_backward(grad_output, indices, num_weights, padding_idx)
)]
impl EmbeddingBackward {
    fn meta(grad_output: &Tensor, indices: &Tensor, num_weights: i64) -> Result<TensorSpec> {
        let width = grad_output.shape().last().copied().unwrap_or(1);
        let mut shape = Dims::from_slice(indices.shape());
        shape.push(width);
        check_shape("grad_output", grad_output.shape(), &shape)?;
        Ok(TensorSpec::beside(grad_output, &[num_weights, width]))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_output: &Tensor,
        indices: &Tensor,
        padding_idx: i64,
        scale_grad_by_freq: bool,
    ) -> Result<()> {
        result.zero_bytes();
        kernel::embedding_backward(
            &mut result.view_mut(cpu),
            grad_output.view_ref(cpu),
            indices.view_ref(cpu),
            (padding_idx >= 0).then_some(padding_idx),
            scale_grad_by_freq,
        )?;
        Ok(())
    }
    fn vjp_grad_output(
        grad: &Tensor,
        indices: &Tensor,
        padding_idx: i64,
        scale_grad_by_freq: bool,
    ) -> Result<Tensor> {
        ensure!(
            !scale_grad_by_freq,
            runtime,
            "embedding_backward: the second derivative with scale_grad_by_freq is not supported"
        );
        let rows = indices.reshape(&[-1])?;
        let grad = if padding_idx >= 0 {
            let zero = Tensor::from_slice(&[padding_idx], &[1])?.brought_to(grad)?;
            grad.index_fill_scalar(0, &zero, crate::Scalar::Int(0))?
        } else {
            grad.clone()
        };
        let mut shape = Dims::from_slice(indices.shape());
        shape.push(grad.shape()[1]);
        grad.index_select(0, &rows)?.view(&shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = Sample::new([
            s.normal(&[5, 3]).into(),
            s.integers(&[5], 0, 4).into(),
            Value::Int(4),
            Value::Int(1),
            Value::Bool(false),
        ]);
        vec![sample]
    }
}
impl Tensor {
    /// The gradient of `embedding` as a dense tensor.
    fn embedding_dense_backward(
        &self,
        indices: &Tensor,
        rows: i64,
        padding_idx: i64,
        scale: bool,
    ) -> Result<Tensor> {
        self.embedding_backward(indices, rows, padding_idx, scale)
    }
}
