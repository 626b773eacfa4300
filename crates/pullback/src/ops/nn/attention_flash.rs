//! Attention by the kernels that hold no matrix of the scores, and its gradients: ops with PyTorch's internal names.
//!
//! Not here: `scaled_dot_product_attention`, which takes more dimensions and masks (`attention`), and derivatives without a
//! kernel (`attention_derivative`).

use super::attention_derivative::Formula;
use crate::dispatch::flops::multiply_adds;
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::{list, view_strides};
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::attention::{
    AttentionOptions, AttentionResults, attention, attention_backward,
};
use pullback_kernels::{check_shape, gemm, softmax};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&FLASH_ATTENTION, &FLASH_ATTENTION_BACKWARD];

/// Scaled dot product attention `softmax(scale Q K^T + attn_mask) V` of `query` (B, H, L, E) with `key` (B, G, S, E) and
/// `value` (B, G, S, F), where G divides H, and the logarithms of the sums of exponentials (B, H, L), which have no
/// gradient. `scale` is `1 / sqrt(E)` if it is not given. With `is_causal` a query attends to no key at a later
/// position. `attn_mask` is added to the scores, or says with truth values which keys are attended to. Rows that may
/// attend to nothing give zeros, also as logarithm.
///
/// Scores are computed in blocks (Dao et al., "FlashAttention", 2022), as are the gradients.
#[op("_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
     function_only, one_gradient, not_differentiable(attn_mask), node = "ScaledDotProductFlashAttentionForCpu",
     method = flash_attention, batch = attention(query, attn_mask))]
impl FlashAttention {
    fn meta(
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        dropout_p: f64,
        attn_mask: Option<&Tensor>,
    ) -> Result<[TensorSpec; 2]> {
        check(query, key, value, dropout_p, attn_mask)?;
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
        let wide = wide_dtype(query.dtype());
        Ok([output, sums.with_strides(strides[..].into()).computed_in(wide)])
    }
    fn cpu(
        cpu: Cpu,
        output: &Tensor,
        logsumexp: &Tensor,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        is_causal: bool,
        attn_mask: Option<&Tensor>,
        scale: Option<f64>,
    ) -> Result<()> {
        let scale = scale_of(query, scale);
        if query.shape()[2] < LONG {
            let wide = wide_dtype(query.dtype());
            let all = |t: &Tensor| for_heads(&t.to_dtype(wide)?, query.shape()[1]);
            let few = FewQueries {
                query: query.to_dtype(wide)?,
                key: all(key)?,
                value: all(value)?,
                mask: whole_mask(query, key, attn_mask)?,
                is_causal,
                scale,
            };
            return attend_at_once(cpu, &few, [output, logsumexp]);
        }
        let mask = whole_mask(query, key, attn_mask)?;
        let mask = mask.as_ref().map(|mask| mask.view_ref(cpu));
        Ok(attention(
            &mut output.view_mut(cpu),
            &mut logsumexp.view_mut(cpu),
            query.view_ref(cpu),
            [key.view_ref(cpu), value.view_ref(cpu)],
            AttentionOptions { scale, is_causal, mask },
        )?)
    }
    fn flops(query: &Tensor, key: &Tensor, value: &Tensor) -> Result<u64> {
        check(query, key, value, 0.0, None)?;
        Ok(products(query, key, value, [1, 1]))
    }
    fn vjp(
        grad_output: &Tensor,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        dropout_p: f64,
        is_causal: bool,
        attn_mask: Option<&Tensor>,
        scale: Option<f64>,
        output: &Tensor,
        logsumexp: &Tensor,
        needs: [bool; 3],
    ) -> Result<[Option<Tensor>; 3]> {
        // (The derivatives of the gradients are those of their formula in query, key and value, so that the results of
        // forward take no part in them.)
        let grads = grad_output.to_dtype(query.dtype())?.flash_attention_backward_with(
            query,
            key,
            value,
            &output.detach()?,
            logsumexp,
            dropout_p,
            is_causal,
            attn_mask,
            scale,
        )?;
        let mut needs = needs.into_iter();
        Ok(grads.map(|grad| needs.next().unwrap_or_default().then_some(grad)))
    }
    fn jvp(
        query_p: &Tensor,
        query_t: Option<&Tensor>,
        key_p: &Tensor,
        key_t: Option<&Tensor>,
        value_p: &Tensor,
        value_t: Option<&Tensor>,
        is_causal: bool,
        attn_mask: Option<&Tensor>,
        scale: Option<f64>,
    ) -> Result<[Option<Tensor>; 2]> {
        let scale = scale_of(query_p, scale);
        let formula = Formula::of([query_p, key_p, value_p], is_causal, attn_mask, scale)?;
        Ok([formula.tangent([query_t, key_t, value_t])?, None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |heads: i64| {
            let start = [[1, 2, 3, 2], [1, heads, 4, 2], [1, heads, 4, 2]];
            Sample::new(start.map(|shape| s.normal(&shape).into()))
        };
        // (As many queries as make blocks pay.)
        let long = || {
            let shapes = [[1, 2, 9, 3], [1, 1, 10, 3], [1, 1, 10, 2]];
            Sample::new(shapes.map(|shape| s.normal(&shape).into()))
        };
        // (The logarithms have no gradient, but numerical differences would give one.)
        vec![
            call(2).without_gradient(),
            call(2).with("is_causal", true).without_gradient(),
            call(1).with("scale", 0.3).without_gradient(),
            call(2).with("attn_mask", s.normal(&[3, 4])).without_gradient(),
            long().with("is_causal", true).without_gradient(),
            long().with("attn_mask", s.bools(&[1, 2, 1, 10])).without_gradient(),
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
                call(shape).with("attn_mask", s.integers(&[2, 2], 0, 2)),
                "Attention mask is the same data type as query",
            ),
            bad(call(shape).with("attn_mask", s.normal(&[2])), "Attention mask dim in {2, 4}"),
            bad(call(shape).with("attn_mask", s.normal(&[3, 2])), "does not broadcast to"),
        ]
    }
}

/// The gradients of `_scaled_dot_product_flash_attention_for_cpu` with respect to query, key and value, given its
/// results `out` and `logsumexp` and the gradient `grad_out` of the first. The scores are computed again, in blocks (Dao,
/// "FlashAttention-2", 2023).
///
/// Its own derivatives, those of second order, are those of the formula, where `out` and `logsumexp` depend on the
/// operands as they do in `_scaled_dot_product_flash_attention_for_cpu`; they hold a matrix of the scores.
#[op("_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
     internal, function_only, not_differentiable(out, logsumexp, attn_mask), method = flash_attention_backward,
     batch = attention(query, attn_mask))]
impl FlashAttentionBackward {
    fn meta(
        grad_out: &Tensor,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        out: &Tensor,
        logsumexp: &Tensor,
        dropout_p: f64,
        attn_mask: Option<&Tensor>,
    ) -> Result<[TensorSpec; 3]> {
        check(query, key, value, dropout_p, attn_mask)?;
        let [batch, heads, length, _] = *query.shape() else {
            unreachable!("queries have four dimensions")
        };
        let shape = [batch, heads, length, value.shape()[3]];
        check_shape("grad_out", grad_out.shape(), &shape)?;
        check_shape("out", out.shape(), &shape)?;
        check_shape("logsumexp", logsumexp.shape(), &shape[..3])?;
        let wide = wide_dtype(query.dtype());
        let dtype = query.dtype();
        for (t, dtype) in [(grad_out, dtype), (out, dtype), (logsumexp, wide)] {
            ensure!(
                t.dtype() == dtype,
                runtime,
                "expected scalar type {} but found {}",
                dtype.scalar_name(),
                t.dtype().scalar_name()
            );
        }
        Ok([query, key, value].map(TensorSpec::laid_as))
    }
    fn cpu(
        cpu: Cpu,
        grad_query: &Tensor,
        grad_key: &Tensor,
        grad_value: &Tensor,
        grad_out: &Tensor,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        out: &Tensor,
        logsumexp: &Tensor,
        is_causal: bool,
        attn_mask: Option<&Tensor>,
        scale: Option<f64>,
    ) -> Result<()> {
        let mask = whole_mask(query, key, attn_mask)?;
        let mask = mask.as_ref().map(|mask| mask.view_ref(cpu));
        let scale = scale_of(query, scale);
        let [by_query, by_key, by_value] =
            &mut [grad_query, grad_key, grad_value].map(|t| t.view_mut(cpu));
        let results = AttentionResults {
            out: out.view_ref(cpu),
            sums: logsumexp.view_ref(cpu),
            grad: grad_out.view_ref(cpu),
        };
        Ok(attention_backward(
            [by_query, by_key, by_value],
            results,
            query.view_ref(cpu),
            [key.view_ref(cpu), value.view_ref(cpu)],
            AttentionOptions { scale, is_causal, mask },
        )?)
    }
    fn flops(query: &Tensor, key: &Tensor, value: &Tensor) -> Result<u64> {
        check(query, key, value, 0.0, None)?;
        // (Three products of queries and keys: the scores again, and the gradients of both. Two with values: the gradients of
        // weights and values.)
        Ok(products(query, key, value, [3, 2]))
    }
    fn vjp(
        grad_grad_query: Option<&Tensor>,
        grad_grad_key: Option<&Tensor>,
        grad_grad_value: Option<&Tensor>,
        grad_out: &Tensor,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        is_causal: bool,
        attn_mask: Option<&Tensor>,
        scale: Option<f64>,
        needs: [bool; 4],
    ) -> Result<[Option<Tensor>; 4]> {
        let scale = scale_of(query, scale);
        let formula = Formula::of([query, key, value], is_causal, attn_mask, scale)?;
        formula.second(grad_out, [grad_grad_query, grad_grad_key, grad_grad_value], needs)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |[queries, keys]: [i64; 2], heads: i64, is_causal: bool, mask: Value| {
            let shapes = [[2, 2, queries, 3], [2, heads, keys, 3], [2, heads, keys, 2]];
            let [query, key, value] = shapes.map(|shape| s.normal(&shape));
            let grad = s.normal(&[2, 2, queries, 2]);
            let given = if let Value::Tensor(mask) = &mask { Some(mask) } else { None };
            let results = query.flash_attention_with(&key, &value, 0.0, is_causal, given, None);
            let [out, sums] = results.expect("samples are small");
            let call = Sample::new([grad, query, key, value, out, sums].map(Value::from));
            let call = call.with("dropout_p", 0.0).with("is_causal", is_causal);
            // (Numerical differences leave `out` and `logsumexp` as they are.)
            call.with("attn_mask", mask).without_gradient()
        };
        vec![
            call([3, 4], 2, false, Value::None),
            call([9, 10], 1, true, Value::None),
            call([4, 3], 2, false, s.normal(&[4, 3]).into()),
            call([0, 3], 2, false, Value::None),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |grad: &[i64], sums: &[i64]| {
            let one = || s.normal(&[1, 1, 2, 2]);
            let start = [s.normal(grad), one(), one(), one(), one(), s.normal(sums)];
            Sample::new(start.map(Value::from)).with("dropout_p", 0.0).with("is_causal", false)
        };
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        vec![
            bad(call(&[1, 1, 2, 3], &[1, 1, 2]), "grad_out"),
            bad(call(&[1, 1, 2, 2], &[1, 1, 3]), "logsumexp"),
        ]
    }
}

/// The factor of the scores: `scale`, or `1 / sqrt(E)` if it is not given.
fn scale_of(query: &Tensor, scale: Option<f64>) -> f64 {
    scale.unwrap_or(1.0 / (query.shape()[3] as f64).sqrt())
}

/// The number of operations of `scores` products of the size of `Q K^T`, and of `values` products of the size of `P V`.
fn products(query: &Tensor, key: &Tensor, value: &Tensor, [scores, values]: [u64; 2]) -> u64 {
    let (keys, width) = (&key.shape()[2..3], &value.shape()[3..4]);
    let one = multiply_adds(query.shape().iter().chain(keys));
    let other = multiply_adds(query.shape()[..3].iter().chain(keys).chain(width));
    one.saturating_mul(scores).saturating_add(other.saturating_mul(values))
}

/// The dtype of the computation.
pub(super) fn wide_dtype(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// The mask with an element for each score, without a copy.
fn whole_mask(query: &Tensor, key: &Tensor, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
    let sizes = query.shape();
    let shape = [sizes[0], sizes[1], sizes[2], key.shape()[2]];
    mask.map(|mask| mask.expand(&shape, false)).transpose()
}

/// The scores (B, H, L, S) with a mask that broadcasts to them added, and -inf where a query may not attend to a key.
pub(super) fn masked(scores: &Tensor, is_causal: bool, mask: Option<&Tensor>) -> Result<Tensor> {
    let forbidden = Scalar::Float(f64::NEG_INFINITY);
    let mut scores = scores.clone();
    if let Some(mask) = mask {
        scores = if mask.dtype() == DType::Bool {
            scores.masked_fill(&mask.logical_not()?, forbidden)?
        } else {
            scores.add(&mask.to_dtype(scores.dtype())?)?
        };
    }
    if is_causal {
        let (rows, shape) = (scores.ndim() - 2, scores.shape());
        let spec = TensorSpec::of(&shape[rows..], DType::Bool).on(scores.device());
        let later = spec.zeros()?.logical_not()?.triu(1)?;
        scores = scores.masked_fill(&later, forbidden)?;
    }
    Ok(scores)
}

/// The number of queries from which on packing the keys pays.
const LONG: i64 = 8;

/// The number of scores that are in memory at once, unless a single head has more: some megabytes.
const MOST: i64 = 1 << 19;

/// The operands of few queries, in the dtype of the computation: queries (B, H, L, E), keys (B, H, S, E) and values (B, H, S, F).
struct FewQueries {
    query: Tensor,
    key: Tensor,
    value: Tensor,
    /// The mask, of shape (B, H, L, S).
    mask: Option<Tensor>,
    is_causal: bool,
    scale: f64,
}

impl FewQueries {
    /// The dimension to split in half if there are too many scores for one pass: the batch, then the heads, so that batch
    /// and heads of parts of row-major results still are one dimension ([`flat`] copies nothing).
    fn wide_dim(&self) -> Option<i64> {
        let sizes = &self.query.shape()[..3];
        let count = sizes.iter().product::<i64>().saturating_mul(self.key.shape()[2]);
        if count > MOST { (0..2).find(|&dim| sizes[dim as usize] > 1) } else { None }
    }

    /// The `count` examples or heads from `start` on.
    fn part(&self, dim: i64, start: i64, count: i64) -> Result<FewQueries> {
        let part = |t: &Tensor| t.narrow(dim, start, count);
        Ok(FewQueries {
            query: part(&self.query)?,
            key: part(&self.key)?,
            value: part(&self.value)?,
            mask: self.mask.as_ref().map(part).transpose()?,
            ..*self
        })
    }

    /// Writes `softmax(scores) V` and the logarithms of the sums of exponentials, by products of matrices.
    fn attend(&self, cpu: Cpu, output: &Tensor, sums: &Tensor) -> Result<()> {
        if let Some(dim) = self.wide_dim() {
            let size = self.query.shape()[dim as usize];
            for (start, count) in [(0, size / 2), (size / 2, size - size / 2)] {
                let part = |t: &Tensor| t.narrow(dim, start, count);
                self.part(dim, start, count)?.attend(cpu, &part(output)?, &part(sums)?)?;
            }
            return Ok(());
        }
        let (shape, dtype) = (self.query.shape(), self.query.dtype());
        let [batch, heads, length, keys] = [shape[0], shape[1], shape[2], self.key.shape()[2]];
        let [query, key, value] = [&self.query, &self.key, &self.value].map(|t| flat(cpu, t));
        let (query, key, value) = (query?, key?.transpose(1, 2)?, value?);
        let mut all = Tensor::empty_of(&[batch * heads, length, keys], dtype)?;
        let (zero, one) = (Scalar::Int(0), Scalar::Int(1));
        let scale = Scalar::Float(self.scale);
        gemm::bmm(&mut all.view_mut(cpu), query.view_ref(cpu), key.view_ref(cpu), scale, zero)?;
        if self.is_causal || self.mask.is_some() {
            let scores = all.reshape(&[batch, heads, length, keys])?;
            all = flat(cpu, &masked(&scores, self.is_causal, self.mask.as_ref())?)?;
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
        gemm::bmm(
            &mut target.view_mut(cpu),
            weights.view_ref(cpu),
            value.view_ref(cpu),
            one,
            zero,
        )?;
        Ok(())
    }
}

/// Writes the output and the logarithms of the sums of exponentials for few queries, whose scores are all in memory at once;
/// the results are those of the kernel in blocks.
fn attend_at_once(cpu: Cpu, few: &FewQueries, [output, logsumexp]: [&Tensor; 2]) -> Result<()> {
    let dtype = few.query.dtype();
    let sums = Tensor::empty_of(logsumexp.shape(), dtype)?;
    if output.is_contiguous() && output.dtype() == dtype {
        few.attend(cpu, output, &sums)?;
    } else {
        let target = Tensor::empty_of(output.shape(), dtype)?;
        few.attend(cpu, &target, &sums)?;
        output.copy_data(cpu, &target)?;
    }
    logsumexp.copy_data(cpu, &sums)
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
pub(super) fn of_heads(t: &Tensor, own: i64) -> Result<Tensor> {
    let shape = t.shape();
    if shape[1] == own {
        return Ok(t.clone());
    }
    t.reshape(&[shape[0], own, shape[1] / own, shape[2], shape[3]])?.sum_dim(Some(&[2]), false)
}

/// The name of the op in errors.
const NAME: &str = "scaled_dot_product_attention_flash_attention";

fn check(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    dropout_p: f64,
    mask: Option<&Tensor>,
) -> Result<()> {
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
            t.shape()[0] == query.shape()[0],
            runtime,
            "{NAME}: Q/K/V should have the same batch, but got {} and {}",
            list(query.shape()),
            list(t.shape())
        );
    }
    ensure!(
        key.shape()[3] == query.shape()[3],
        runtime,
        "{NAME}: Q/K should have the same head size, but got {} and {}",
        list(query.shape()),
        list(key.shape())
    );
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
    mask.map_or(Ok(()), |mask| check_mask(mask, query, key))
}

fn check_mask(mask: &Tensor, query: &Tensor, key: &Tensor) -> Result<()> {
    let dtype = query.dtype();
    ensure!(
        mask.dtype() == dtype || matches!(mask.dtype(), DType::F32 | DType::Bool),
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
    let sizes = query.shape();
    let scores = [sizes[0], sizes[1], sizes[2], key.shape()[2]];
    ensure!(
        broadcasts(mask.shape(), &scores),
        runtime,
        "{NAME}: the mask of shape {} does not broadcast to {}",
        list(mask.shape()),
        list(&scores)
    );
    Ok(())
}

/// Whether a tensor of one shape can be expanded to another.
pub(super) fn broadcasts(shape: &[i64], to: &[i64]) -> bool {
    let mut pairs = shape.iter().rev().zip(to.iter().rev());
    shape.len() <= to.len() && pairs.all(|(&size, &wanted)| size == wanted || size == 1)
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
pub(super) fn for_heads(t: &Tensor, heads: i64) -> Result<Tensor> {
    let own = t.shape()[1];
    if own == heads {
        return Ok(t.clone());
    }
    check_heads(heads, own)?;
    let shape = t.shape();
    let each = [shape[0], own, heads / own, shape[2], shape[3]];
    t.unsqueeze(2)?.expand(&each, false)?.reshape(&[shape[0], heads, shape[2], shape[3]])
}
