//! Attention as ops: weights of rows that may attend to nothing, and the whole of it with the logarithms of the sums.
//!
//! Not here: `nn.functional.scaled_dot_product_attention`, which takes more dimensions and masks.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::TensorSpec;
use crate::tensor::shape::{list, view_strides};
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{gemm, softmax};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&SAFE_SOFTMAX, &FLASH_ATTENTION, &FLASH_ATTENTION_KERNEL];

/// `softmax` along `dim`, computed in `dtype` if one is given; lines of only -inf give zeros.
#[op("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", function_only, method = safe_softmax)]
impl SafeSoftmax {
    fn composite(self_: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        self_.to_dtype(dtype.unwrap_or(self_.dtype()))?.safe_softmax_data(dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let none = s.normal(&[2, 3]).masked_fill(&first_row(), Scalar::Float(f64::NEG_INFINITY));
        vec![
            Sample::of(s.normal(&[2, 3, 2])).with("dim", 1),
            Sample::of(s.normal(&[])).with("dim", 0),
            Sample::of(s.normal(&[2, 0])).with("dim", -1),
            Sample::of(none.expect("samples are small")).with("dim", 1).without_gradient(),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.integers(&[2], 0, 3)).with("dim", 0);
        vec![InvalidSample::new(sample, ErrorKind::NotImplemented, "not implemented for 'Long'")]
    }
}

fn first_row() -> Tensor {
    let [yes, no] = [true, false].map(crate::Bool::new);
    Tensor::from_slice(&[yes, yes, yes, no, no, no], &[2, 3]).expect("samples are small")
}

/// `softmax(scale Q K^T + attn_mask) V` of `query` (B, H, L, E), `key` and `value` (B, H or a part of it, S, E), and the
/// logarithms of the sums of the weights (B, H, L), which have no gradient. `scale` is `1 / sqrt(E)` if not given. Rows
/// that may attend to nothing give zeros, their logarithm too.
#[op("_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
     function_only, not_differentiable(attn_mask), method = flash_attention)]
impl FlashAttention {
    fn composite(
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        dropout_p: f64,
        is_causal: bool,
        attn_mask: Option<&Tensor>,
        scale: Option<f64>,
    ) -> Result<[Tensor; 2]> {
        check(query, key, value, dropout_p, attn_mask)?;
        let scale = scale.unwrap_or(1.0 / (query.shape()[3] as f64).sqrt());
        let [output, sums] =
            query.flash_attention_kernel(key, value, is_causal, attn_mask, scale)?;
        Ok([output, sums.detach()?])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |heads: i64| {
            let start = [[1, 2, 3, 2], [1, heads, 4, 2], [1, heads, 4, 2]];
            Sample::new(start.map(|shape| s.normal(&shape).into()))
        };
        // (The logarithms have no gradient, but differences.)
        vec![
            call(2).without_gradient(),
            call(2).with("is_causal", true).without_gradient(),
            call(1).with("scale", 0.3).without_gradient(),
            call(2).with("attn_mask", s.normal(&[3, 4])).without_gradient(),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |shape: &[i64]| {
            Sample::new([s.normal(shape).into(), s.normal(shape).into(), s.normal(shape).into()])
        };
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let shape = &[1, 1, 2, 2];
        vec![
            bad(call(&[1, 2, 2]), "Accept only 4 dims inputs shape of {B, H, T, K}"),
            bad(call(shape).with("dropout_p", 0.5), "Currently do not support dropout > 0"),
            bad(
                call(shape).with("attn_mask", s.bools(&[2, 2])),
                "Attention mask is the same data type as query",
            ),
            bad(call(shape).with("attn_mask", s.normal(&[2])), "Attention mask dim in {2, 4}"),
        ]
    }
}

/// The op's work, at a scale that is known.
#[op("_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, bool is_causal, Tensor? attn_mask, float scale) -> (Tensor, Tensor)",
     internal, function_only, not_differentiable(attn_mask), node = "ScaledDotProductFlashAttentionForCpu",
     method = flash_attention_kernel, batch = attention)]
impl FlashAttentionKernel {
    fn cpu(
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        is_causal: bool,
        attn_mask: Option<&Tensor>,
        scale: f64,
    ) -> Result<[Tensor; 2]> {
        check(query, key, value, 0.0, attn_mask)?;
        let wide = Wide::of(query, key, value)?;
        let [query, key, value] = [&wide.query, &wide.key, &wide.value].map(flat);
        let (query, value, key) = (query?, value?, key?.transpose(1, 2)?);
        let (shape, dtype) = (wide.query.shape(), wide.query.dtype());
        let [batch, heads, length] = [shape[0], shape[1], shape[2]];
        let mut scores = Tensor::empty_of(&[batch * heads, length, key.shape()[2]], dtype)?;
        let zero = Scalar::Int(0);
        let refs = (query.view_ref(), key.view_ref());
        gemm::bmm(&mut scores.view_mut(), refs.0, refs.1, Scalar::Float(scale), zero)?;
        if is_causal || attn_mask.is_some() {
            let images = scores.reshape(&[batch, heads, length, key.shape()[2]])?;
            scores = flat(&masked(images, is_causal, attn_mask)?)?;
        }
        let weights = Tensor::empty_of(scores.shape(), dtype)?;
        softmax::safe_softmax(&mut weights.view_mut(), scores.view_ref(), 2)?;
        let sums = Tensor::empty_of(&[batch, heads, length], dtype)?;
        let rows = sums.alias_with(&[batch * heads, length], &[length, 1], 0)?;
        softmax::log_of_sums(&mut rows.view_mut(), scores.view_ref(), weights.view_ref())?;
        let output = Tensor::empty_of(&[batch, heads, length, value.shape()[2]], dtype)?;
        let one = Scalar::Int(1);
        let target = flat(&output)?;
        gemm::bmm(&mut target.view_mut(), weights.view_ref(), value.view_ref(), one, zero)?;
        Ok([output.in_dtype(wide.dtype)?, sums])
    }
    fn vjp(
        grad: &Tensor,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        is_causal: bool,
        attn_mask: Option<&Tensor>,
        scale: f64,
        needs: [bool; 3],
    ) -> Result<[Option<Tensor>; 3]> {
        let wide = Wide::of(query, key, value)?;
        let grad = grad.to_dtype(wide.query.dtype())?;
        let turned = |t: &Tensor| t.transpose(-2, -1);
        let scores = wide.query.times(scale)?.matmul(&turned(&wide.key)?)?;
        let weights = masked(scores, is_causal, attn_mask)?.safe_softmax_data(-1)?;
        let own = |t: Tensor| of_heads(&t, key.shape()[1])?.to_dtype(wide.dtype);
        let by_value = needs[2].then(|| own(turned(&weights)?.matmul(&grad)?)).transpose()?;
        if !needs[0] && !needs[1] {
            return Ok([None, None, by_value]);
        }
        let by_weights = grad.matmul(&turned(&wide.value)?)?;
        let by_scores =
            by_weights.softmax_backward_data(&weights, -1, grad.dtype())?.times(scale)?;
        let by_query =
            needs[0].then(|| by_scores.matmul(&wide.key)?.to_dtype(wide.dtype)).transpose()?;
        let by_key = needs[1].then(|| own(turned(&by_scores)?.matmul(&wide.query)?)).transpose()?;
        Ok([by_query, by_key, by_value])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |heads: i64, is_causal: bool| {
            let start = [[1, 2, 3, 2], [1, heads, 4, 2], [1, heads, 4, 2]];
            let sample = Sample::new(start.map(|shape| s.normal(&shape).into()));
            sample.with("is_causal", is_causal).with("attn_mask", Value::None).with("scale", 0.7)
        };
        // (The logarithms have no gradient, but differences.)
        vec![
            call(2, false).without_gradient(),
            call(2, true).without_gradient(),
            call(1, false).with("attn_mask", s.normal(&[3, 4])).without_gradient(),
        ]
    }
}

/// Queries, keys and values in the dtype that is computed in, with as many heads each.
struct Wide {
    query: Tensor,
    key: Tensor,
    value: Tensor,
    /// The dtype of the results.
    dtype: DType,
}

impl Wide {
    fn of(query: &Tensor, key: &Tensor, value: &Tensor) -> Result<Wide> {
        let dtype = query.dtype();
        let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
        let all = |t: &Tensor| for_heads(t, query.shape()[1])?.to_dtype(wide);
        Ok(Wide { query: query.to_dtype(wide)?, key: all(key)?, value: all(value)?, dtype })
    }
}

/// The images of a batch and the heads in one dimension, for kernels: no history.
fn flat(t: &Tensor) -> Result<Tensor> {
    let shape = t.shape();
    let merged = [shape[0] * shape[1], shape[2], shape[3]];
    match view_strides(shape, t.strides(), &merged) {
        Some(strides) => t.alias_with(&merged, &strides, t.storage_offset()),
        None => flat(&t.dense()?),
    }
}

/// Scores with the mask added, and -inf where a query may not see a key.
fn masked(scores: Tensor, is_causal: bool, mask: Option<&Tensor>) -> Result<Tensor> {
    let mut scores = scores;
    if let Some(mask) = mask {
        scores = scores.add(&mask.to_dtype(scores.dtype())?)?;
    }
    if is_causal {
        let ones = TensorSpec::of(&scores.shape()[2..], DType::Bool)
            .on(scores.device())
            .zeros()?
            .logical_not()?;
        scores = scores.masked_fill(&ones.triu(1)?, Scalar::Float(f64::NEG_INFINITY))?;
    }
    Ok(scores)
}

/// Sums over the heads that share one of `own`.
fn of_heads(t: &Tensor, own: i64) -> Result<Tensor> {
    let shape = t.shape();
    if shape[1] == own {
        return Ok(t.clone());
    }
    t.reshape(&[shape[0], own, shape[1] / own, shape[2], shape[3]])?.sum_dim(Some(&[2]), false)
}

fn check(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    dropout_p: f64,
    mask: Option<&Tensor>,
) -> Result<()> {
    const NAME: &str = "scaled_dot_product_attention_flash_attention";
    let dtype = query.dtype();
    ensure!(
        dtype.is_floating_point(),
        runtime,
        "{NAME}: Expected data type in FP32, FP64, BF16, FP16, but got {} instead.",
        dtype.scalar_name()
    );
    for t in [query, key, value] {
        ensure!(
            t.ndim() == 4,
            runtime,
            "{NAME}: Accept only 4 dims inputs shape of {{B, H, T, K}}, but got {}",
            list(t.shape())
        );
        ensure!(
            t.dtype() == dtype,
            runtime,
            "expected scalar type {} but found {}",
            dtype.scalar_name(),
            t.dtype().scalar_name()
        );
        ensure!(
            t.shape()[3] == query.shape()[3] && t.shape()[0] == query.shape()[0],
            runtime,
            "{NAME}: Q/K/V should have the same head size and batch, but got {} and {}",
            list(query.shape()),
            list(t.shape())
        );
    }
    ensure!(
        key.shape()[..3] == value.shape()[..3],
        runtime,
        "{NAME}: K/V should have the same heads and sequence length, but got {} and {}",
        list(key.shape()),
        list(value.shape())
    );
    ensure!(
        dropout_p == 0.0,
        runtime,
        "{NAME}: Currently do not support dropout > 0 (it is {dropout_p})"
    );
    let Some(mask) = mask else { return Ok(()) };
    ensure!(
        mask.dtype() == dtype || mask.dtype() == DType::F32,
        runtime,
        "{NAME}: Attention mask is the same data type as query, but got {} and {}",
        mask.dtype().scalar_name(),
        dtype.scalar_name()
    );
    ensure!(
        matches!(mask.ndim(), 2 | 4),
        runtime,
        "{NAME}: Attention mask dim in {{2, 4}}, but got {}",
        mask.ndim()
    );
    Ok(())
}

/// Keys or values with a head for each of the query's: some heads of the query share one.
fn for_heads(t: &Tensor, heads: i64) -> Result<Tensor> {
    let own = t.shape()[1];
    if own == heads {
        return Ok(t.clone());
    }
    ensure!(
        own > 0 && heads % own == 0,
        runtime,
        "scaled_dot_product_attention_flash_attention: {heads} heads of the query cannot share {own} heads of key and value"
    );
    let shape = t.shape();
    let each = [shape[0], own, heads / own, shape[2], shape[3]];
    t.unsqueeze(2)?.expand(&each, false)?.reshape(&[shape[0], heads, shape[2], shape[3]])
}
