//! Attention as ops: `softmax` for rows that may attend to nothing, and scaled dot product attention with the
//! logarithms of the sums of exponentials.
//!
//! Not here: `nn.functional.scaled_dot_product_attention`, which takes more dimensions and masks.

use crate::dispatch::flops::multiply_adds;
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::{list, view_strides};
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::attention::{AttentionOptions, attention};
use pullback_kernels::{gemm, softmax};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&SAFE_SOFTMAX, &FLASH_ATTENTION, &FLASH_ATTENTION_KERNEL];

/// `softmax` along `dim`, computed in `dtype` if one is given, except that a row of only -inf gives zeros in place of
/// NaN.
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

/// Scaled dot product attention `softmax(scale Q K^T + attn_mask) V` of `query` (B, H, L, E) with `key` and `value` (B,
/// G, S, E), where G divides H, and the logarithms of the sums of exponentials (B, H, L), which have no gradient.
/// `scale` is `1 / sqrt(E)` if it is not given. With `is_causal` a query attends to no key at a later position. Rows
/// that may attend to nothing give zeros, also as logarithm.
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
        // (As many queries as are worth blocks.)
        let long = || {
            let shapes = [[1, 2, 9, 3], [1, 1, 10, 3], [1, 1, 10, 3]];
            Sample::new(shapes.map(|shape| s.normal(&shape).into()))
        };
        // (The logarithms have no gradient, but differences.)
        vec![
            call(2).without_gradient(),
            call(2).with("is_causal", true).without_gradient(),
            call(1).with("scale", 0.3).without_gradient(),
            call(2).with("attn_mask", s.normal(&[3, 4])).without_gradient(),
            long().with("is_causal", true).without_gradient(),
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

/// The kernel of `_scaled_dot_product_flash_attention_for_cpu`, with a scale that is given and without dropout.
#[op("_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, bool is_causal, Tensor? attn_mask, float scale) -> (Tensor, Tensor)",
     internal, function_only, not_differentiable(attn_mask), node = "ScaledDotProductFlashAttentionForCpu",
     method = flash_attention_kernel, batch = attention(query, attn_mask))]
impl FlashAttentionKernel {
    fn meta(
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        attn_mask: Option<&Tensor>,
    ) -> Result<[TensorSpec; 2]> {
        check(query, key, value, 0.0, attn_mask)?;
        let [batch, heads, length, width] = *query.shape() else {
            unreachable!("queries have four dimensions")
        };
        let output = if value.shape()[3] == width {
            TensorSpec::laid_as(query)
        } else {
            TensorSpec::beside(query, &[batch, heads, length, value.shape()[3]])
        };
        let sums = TensorSpec::beside(query, &[batch, heads, length]);
        // (The strides are those of a (B, L, H) tensor: heads are innermost.)
        let strides = [length.max(1) * heads.max(1), 1, heads.max(1)];
        Ok([output, sums.with_strides(strides[..].into()).computed_in(wide_dtype(query))])
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        is_causal: bool,
        attn_mask: Option<&Tensor>,
        scale: f64,
    ) -> Result<()> {
        if query.shape()[2] >= LONG {
            let options = (is_causal, attn_mask, scale);
            return attend_in_blocks(cpu, [result0, result1], [query, key, value], options);
        }
        let operands = Operands::of(query, key, value)?;
        let dtype = operands.query.dtype();
        let scores = Scores::of(&operands, is_causal, attn_mask, scale)?;
        let sums = Tensor::empty_of(result1.shape(), dtype)?;
        if result0.is_contiguous() && result0.dtype() == dtype {
            attend(cpu, &scores, &operands.value, result0, &sums)?;
        } else {
            let output = Tensor::empty_of(result0.shape(), dtype)?;
            attend(cpu, &scores, &operands.value, &output, &sums)?;
            result0.copy_data(cpu, &output)?;
        }
        result1.copy_data(cpu, &sums)
    }
    fn flops(query: &Tensor, key: &Tensor, value: &Tensor) -> Result<u64> {
        check(query, key, value, 0.0, None)?;
        // (Counted are the scores and the weighted values. The products of the backward pass count themselves.)
        let (keys, width) = (&key.shape()[2..3], &value.shape()[3..4]);
        let scores = multiply_adds(query.shape().iter().chain(keys));
        let values = multiply_adds(query.shape()[..3].iter().chain(keys).chain(width));
        Ok(scores.saturating_add(values))
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
        let operands = Operands::of(query, key, value)?;
        let grad = grad.to_dtype(operands.query.dtype())?;
        let scores = Scores::of(&operands, is_causal, attn_mask, scale)?;
        let [by_query, by_key, by_value] = attend_backward(&scores, &operands.value, &grad, needs)?;
        let own = |t: Tensor| of_heads(&t, key.shape()[1])?.to_dtype(operands.dtype);
        Ok([
            by_query.map(|t| t.to_dtype(operands.dtype)).transpose()?,
            by_key.map(own).transpose()?,
            by_value.map(own).transpose()?,
        ])
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

/// Queries, keys and values in the dtype of the computation, with the same number of heads each.
struct Operands {
    query: Tensor,
    key: Tensor,
    value: Tensor,
    /// The dtype of the results.
    dtype: DType,
}

/// The dtype of the computation.
fn wide_dtype(query: &Tensor) -> DType {
    if query.dtype() == DType::F64 { DType::F64 } else { DType::F32 }
}

impl Operands {
    fn of(query: &Tensor, key: &Tensor, value: &Tensor) -> Result<Operands> {
        let (dtype, wide) = (query.dtype(), wide_dtype(query));
        let all = |t: &Tensor| for_heads(t, query.shape()[1])?.to_dtype(wide);
        Ok(Operands { query: query.to_dtype(wide)?, key: all(key)?, value: all(value)?, dtype })
    }
}

/// The number of queries from which on packing the keys pays.
const LONG: i64 = 8;

/// Writes attention and the logarithms of the sums of exponentials, without a matrix of the scores.
fn attend_in_blocks(
    cpu: Cpu,
    [output, sums]: [&Tensor; 2],
    operands: [&Tensor; 3],
    (is_causal, mask, scale): (bool, Option<&Tensor>, f64),
) -> Result<()> {
    let wide = wide_dtype(operands[0]);
    let [query, key, value] = operands.map(|t| t.to_dtype(wide));
    let (query, key, value) = (query?, key?, value?);
    let sizes = query.shape();
    let shape = [sizes[0], sizes[1], sizes[2], key.shape()[2]];
    let mask = mask.map(|mask| mask.to_dtype(wide)?.expand(&shape, false)).transpose()?;
    let options =
        AttentionOptions { scale, is_causal, mask: mask.as_ref().map(|mask| mask.view_ref(cpu)) };
    let in_wide = |t: &Tensor| {
        if t.dtype() == wide { Ok(t.clone()) } else { Tensor::empty_of(t.shape(), wide) }
    };
    let targets = [in_wide(output)?, in_wide(sums)?];
    attention(
        &mut targets[0].view_mut(cpu),
        &mut targets[1].view_mut(cpu),
        query.view_ref(cpu),
        [key.view_ref(cpu), value.view_ref(cpu)],
        options,
    )?;
    for (target, result) in targets.iter().zip([output, sums]) {
        if result.dtype() != wide {
            result.copy_data(cpu, target)?;
        }
    }
    Ok(())
}

/// The number of scores that are in memory at once, unless a single row has more: some megabytes.
const MOST: i64 = 1 << 19;

/// The operands of the scores `scale Q K^T + mask`: queries (B, H, L, E), keys (B, H, S, E) and the mask.
struct Scores {
    query: Tensor,
    key: Tensor,
    /// The mask that is added, of shape (B, H, L, S).
    mask: Option<Tensor>,
    /// The position of the first query, if attention is causal: a query attends to no key at a later position.
    first: Option<i64>,
    scale: f64,
}

impl Scores {
    fn of(
        operands: &Operands,
        is_causal: bool,
        mask: Option<&Tensor>,
        scale: f64,
    ) -> Result<Scores> {
        let (query, key) = (operands.query.clone(), operands.key.clone());
        let sizes = query.shape();
        let shape = [sizes[0], sizes[1], sizes[2], key.shape()[2]];
        let whole = |mask: &Tensor| mask.to_dtype(query.dtype())?.expand(&shape, false);
        let mask = mask.map(whole).transpose()?;
        Ok(Scores { query, key, mask, first: is_causal.then_some(0), scale })
    }

    /// The dimension to split in half if there are too many scores for one pass: the batch, then the heads, then the
    /// queries, so that batch and heads of parts of row-major results still are one dimension ([`flat`] copies
    /// nothing).
    fn wide_dim(&self) -> Option<i64> {
        let sizes = &self.query.shape()[..3];
        let count = sizes.iter().product::<i64>().saturating_mul(self.key.shape()[2]);
        let wide = || (0..3).find(|&dim| sizes[dim as usize] > 1);
        if count > MOST { wide() } else { None }
    }

    /// The scores of the `count` examples, heads or queries from `start` on.
    fn part(&self, dim: i64, start: i64, count: i64) -> Result<Scores> {
        let part = |t: &Tensor| t.narrow(dim, start, count);
        let is_rows = dim == 2;
        Ok(Scores {
            query: part(&self.query)?,
            key: if is_rows { self.key.clone() } else { part(&self.key)? },
            mask: self.mask.as_ref().map(part).transpose()?,
            first: self.first.map(|first| if is_rows { first + start } else { first }),
            scale: self.scale,
        })
    }

    /// The scores with the mask added, and -inf where a query may not attend to a key.
    fn masked(&self, scores: Tensor) -> Result<Tensor> {
        let mut scores = scores;
        if let Some(mask) = &self.mask {
            scores = scores.add(mask)?;
        }
        if let Some(first) = self.first {
            let ones = TensorSpec::of(&scores.shape()[2..], DType::Bool)
                .on(scores.device())
                .zeros()?
                .logical_not()?;
            scores =
                scores.masked_fill(&ones.triu(first + 1)?, Scalar::Float(f64::NEG_INFINITY))?;
        }
        Ok(scores)
    }
}

/// Start and size of the two halves of a dimension.
fn halves(size: i64) -> [(i64, i64); 2] {
    [(0, size / 2), (size / 2, size - size / 2)]
}

/// Writes `softmax(scores) V` and the logarithms of the sums of exponentials.
fn attend(cpu: Cpu, scores: &Scores, value: &Tensor, output: &Tensor, sums: &Tensor) -> Result<()> {
    if let Some(dim) = scores.wide_dim() {
        for (start, count) in halves(scores.query.shape()[dim as usize]) {
            let part = |t: &Tensor| t.narrow(dim, start, count);
            let value = if dim == 2 { value.clone() } else { part(value)? };
            attend(cpu, &scores.part(dim, start, count)?, &value, &part(output)?, &part(sums)?)?;
        }
        return Ok(());
    }
    let (shape, dtype) = (scores.query.shape(), scores.query.dtype());
    let [batch, heads, length, keys] = [shape[0], shape[1], shape[2], scores.key.shape()[2]];
    let (query, key, value) =
        (flat(cpu, &scores.query)?, flat(cpu, &scores.key)?, flat(cpu, value)?);
    let key = key.transpose(1, 2)?;
    let mut all = Tensor::empty_of(&[batch * heads, length, keys], dtype)?;
    let (zero, scale) = (Scalar::Int(0), Scalar::Float(scores.scale));
    gemm::bmm(&mut all.view_mut(cpu), query.view_ref(cpu), key.view_ref(cpu), scale, zero)?;
    if scores.first.is_some() || scores.mask.is_some() {
        all = flat(cpu, &scores.masked(all.reshape(&[batch, heads, length, keys])?)?)?;
    }
    let weights = Tensor::empty_of(all.shape(), dtype)?;
    softmax::safe_softmax(&mut weights.view_mut(cpu), all.view_ref(cpu), 2)?;
    let rows = flat(cpu, &sums.unsqueeze(3)?)?.squeeze_dim(2)?;
    softmax::logsumexp_from_softmax(
        &mut rows.view_mut(cpu),
        all.view_ref(cpu),
        weights.view_ref(cpu),
    )?;
    let target = flat(cpu, output)?;
    let one = Scalar::Int(1);
    gemm::bmm(&mut target.view_mut(cpu), weights.view_ref(cpu), value.view_ref(cpu), one, zero)?;
    Ok(())
}

/// The gradients with respect to queries, keys and values of what [`attend`] computes.
fn attend_backward(
    scores: &Scores,
    value: &Tensor,
    grad: &Tensor,
    needs: [bool; 3],
) -> Result<[Option<Tensor>; 3]> {
    if let Some(dim) = scores.wide_dim() {
        let [one, other] = halves(scores.query.shape()[dim as usize]).map(|(start, count)| {
            let part = |t: &Tensor| t.narrow(dim, start, count);
            let value = if dim == 2 { value.clone() } else { part(value)? };
            attend_backward(&scores.part(dim, start, count)?, &value, &part(grad)?, needs)
        });
        let (mut one, mut other) = (one?, other?);
        let mut joined = [None, None, None];
        for (index, joined) in joined.iter_mut().enumerate() {
            // (All queries share the keys and values, so their gradients are added.)
            *joined = match (one[index].take(), other[index].take()) {
                (Some(one), Some(other)) if dim == 2 && index > 0 => Some(one.add(&other)?),
                (Some(one), Some(other)) => Some(crate::ops::shape::join::cat(&[one, other], dim)?),
                _ => None,
            };
        }
        return Ok(joined);
    }
    let transposed = |t: &Tensor| t.transpose(-2, -1);
    let all = scores.query.times(scores.scale)?.matmul(&transposed(&scores.key)?)?;
    let weights = scores.masked(all)?.safe_softmax_data(-1)?;
    let by_value = needs[2].then(|| transposed(&weights)?.matmul(grad)).transpose()?;
    if !needs[0] && !needs[1] {
        return Ok([None, None, by_value]);
    }
    let by_weights = grad.matmul(&transposed(value)?)?;
    let by_scores =
        by_weights.softmax_backward_data(&weights, -1, grad.dtype())?.times(scores.scale)?;
    let by_query = needs[0].then(|| by_scores.matmul(&scores.key)).transpose()?;
    let by_key = needs[1].then(|| transposed(&by_scores)?.matmul(&scores.query)).transpose()?;
    Ok([by_query, by_key, by_value])
}

/// Batch and heads flattened to one dimension, for kernels: nothing is recorded.
fn flat(cpu: Cpu, t: &Tensor) -> Result<Tensor> {
    let shape = t.shape();
    let merged = [shape[0] * shape[1], shape[2], shape[3]];
    match view_strides(shape, t.strides(), &merged) {
        Some(strides) => t.alias_with(&merged, &strides, t.storage_offset()),
        None => flat(cpu, &t.dense(cpu)?),
    }
}

/// Sums over the query heads that share each of the `own` heads of keys or values.
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
    check_heads(query.shape()[1], key.shape()[1])?;
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

/// Refuses `own` heads of keys and values that `heads` heads of the query cannot share evenly.
fn check_heads(heads: i64, own: i64) -> Result<()> {
    ensure!(
        own == heads || own > 0 && heads % own == 0,
        runtime,
        "scaled_dot_product_attention_flash_attention: {heads} heads of the query cannot share {own} heads of key and value"
    );
    Ok(())
}

/// Keys or values repeated so that there is a head for each of the query's (grouped query attention).
fn for_heads(t: &Tensor, heads: i64) -> Result<Tensor> {
    let own = t.shape()[1];
    if own == heads {
        return Ok(t.clone());
    }
    check_heads(heads, own)?;
    let shape = t.shape();
    let each = [shape[0], own, heads / own, shape[2], shape[3]];
    t.unsqueeze(2)?.expand(&each, false)?.reshape(&[shape[0], heads, shape[2], shape[3]])
}
