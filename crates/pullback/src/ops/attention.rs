//! Attention as ops: weights of rows that may attend to nothing, and the whole of it with the logarithms of the sums.
//!
//! Not here: `nn.functional.scaled_dot_product_attention`, which takes more dimensions and masks.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::TensorSpec;
use crate::tensor::shape::list;
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&SAFE_SOFTMAX, &FLASH_ATTENTION];

/// `softmax` along `dim`, computed in `dtype` if one is given; lines of only -inf give zeros.
#[op("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", function_only, method = safe_softmax)]
impl SafeSoftmax {
    fn composite(self_: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
        let scores = self_.to_dtype(dtype.unwrap_or(self_.dtype()))?;
        let blocked = is_blocked(&scores, dim)?;
        // (Zeros instead of -inf, so that no NaN comes into the gradient.)
        let zero = Scalar::Int(0);
        scores.masked_fill(&blocked, zero)?.softmax(dim, None)?.masked_fill(&blocked, zero)
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

/// Which lines hold nothing but -inf, with the dimension in them.
fn is_blocked(scores: &Tensor, dim: i64) -> Result<Tensor> {
    scores.detach()?.eq(&Tensor::wrapped(f64::NEG_INFINITY)?)?.all_dim(dim, true)
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
        let dtype = query.dtype();
        let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
        let heads = query.shape()[1];
        let [key, value] = [key, value].map(|t| for_heads(t, heads)?.to_dtype(wide));
        let (key, value) = (key?, value?);
        let factor = scale.unwrap_or(1.0 / (query.shape()[3] as f64).sqrt());
        let mut scores = query.to_dtype(wide)?.times(factor)?.matmul(&key.transpose(-2, -1)?)?;
        if let Some(mask) = attn_mask {
            scores = scores.add(&mask.to_dtype(wide)?)?;
        }
        if is_causal {
            let ones = TensorSpec::of(&scores.shape()[2..], DType::Bool)
                .on(scores.device())
                .zeros()?
                .logical_not()?;
            scores = scores.masked_fill(&ones.triu(1)?, Scalar::Float(f64::NEG_INFINITY))?;
        }
        let blocked = is_blocked(&scores, -1)?;
        let output = scores.safe_softmax(-1, None)?.matmul(&value)?.to_dtype(dtype)?;
        let sums = scores.detach()?.logsumexp(&[-1], true)?.masked_fill(&blocked, 0.into())?;
        Ok([output, sums.squeeze_dim(-1)?])
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
