//! Attention: `softmax` for rows that may attend to nothing, and `scaled_dot_product_attention` with what decides how it is
//! computed.
//!
//! Not here: the kernels in blocks (`attention_flash`).

use super::attention_flash::{broadcasts, masked};
use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{DType, ErrorKind, Layout, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&SAFE_SOFTMAX, &SCALED_DOT_PRODUCT_ATTENTION, &SCALED_DOT_PRODUCT_ATTENTION_BY];

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

/// Scaled dot product attention `softmax(scale Q K^T + mask) V` of `query` (N, ..., H, L, E), `key` (N, ..., H, S, E) and
/// `value` (N, ..., H, S, Ev): (N, ..., H, L, Ev).
///
/// `attn_mask` broadcasts to (N, ..., H, L, S): truth values, true where attention is paid, or numbers that are added to the
/// scores. With `is_causal` query `i` attends to the keys `j <= i` alone. Weights are dropped with the probability
/// `dropout_p`, whether anything is trained or not. `scale` is `1 / sqrt(E)` if it is not given. With `enable_gqa` the
/// query may have several heads for each one of key and value. A row that may attend to nothing gives zeros, and has
/// zeros as gradients.
///
/// Without dropout, and for a mask without gradient, the matrix of the scores is never in memory, neither here nor in
/// backward (`AttentionAlgorithm`); Dao, "FlashAttention-2", 2023.
#[op("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
     module = "nn", function_only, autocast = lower, method = scaled_dot_product_attention)]
impl ScaledDotProductAttention {
    fn composite(
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        attn_mask: Option<&Tensor>,
        dropout_p: f64,
        is_causal: bool,
        scale: Option<f64>,
        enable_gqa: bool,
    ) -> Result<Tensor> {
        let call =
            AttentionCall { query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa };
        call.check()?;
        match call.plan() {
            AttentionAlgorithm::Blocks => call.in_blocks(),
            AttentionAlgorithm::Formula => call.by_formula(),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |shapes: [&[i64]; 3]| Sample::new(shapes.map(|shape| s.normal(shape).into()));
        let few = || call([&[1, 2, 3, 2], &[1, 2, 4, 2], &[1, 2, 4, 3]]);
        let many = || call([&[2, 2, 9, 2], &[2, 2, 10, 2], &[2, 2, 10, 2]]);
        let nothing = s.bools(&[3, 4]).masked_fill(&first_rows(), Scalar::Bool(false));
        vec![
            few(),
            few().with("is_causal", true),
            many().with("is_causal", true).with("scale", -0.6),
            many().with("attn_mask", s.normal(&[9, 10])),
            few().with("attn_mask", nothing.expect("samples are small")),
            call([&[2, 3, 2], &[2, 4, 2], &[2, 4, 2]]).with("attn_mask", s.normal(&[2, 1, 4])),
            call([&[3, 2], &[4, 2], &[4, 2]]),
            call([&[1, 4, 9, 2], &[1, 2, 3, 2], &[1, 2, 3, 2]]).with("enable_gqa", true),
            call([&[2, 1, 2, 3, 2], &[2, 1, 2, 2, 2], &[2, 1, 2, 2, 2]]),
            call([&[1, 2, 0, 2], &[1, 2, 3, 2], &[1, 2, 3, 2]]),
            call([&[1, 2, 3, 2], &[1, 2, 0, 2], &[1, 2, 0, 2]]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let x = || s.normal(&[2, 3, 4]);
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let call = |other: Tensor| Sample::new([x(), other, x()].map(Into::into));
        vec![
            bad(call(s.integers(&[2, 3, 4], 0, 3)), "to have the same dtype"),
            bad(call(s.normal(&[4])), "to all be  at least 2 dimensional"),
            bad(
                call(x()).with("attn_mask", s.bools(&[3, 3])).with("is_causal", true),
                "Explicit attn_mask should not be set when is_causal=True",
            ),
            bad(
                call(x()).with("attn_mask", s.integers(&[3, 3], 0, 2)),
                "Expected attn_mask dtype to be bool or float",
            ),
            bad(call(x()).with("dropout_p", 1.5), "dropout"),
        ]
    }
}

/// `scaled_dot_product_attention` where only some ways may be taken: in blocks (`flash`), by the formula (`math`).
#[op("_scaled_dot_product_attention_by(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, float dropout_p, bool is_causal, *, float? scale=None, bool enable_gqa=False, bool flash=True, bool math=True) -> Tensor",
     internal, function_only, autocast = lower, method = scaled_dot_product_attention_by)]
impl ScaledDotProductAttentionBy {
    #[allow(clippy::fn_params_excessive_bools, reason = "PyTorch's arguments, and the two ways")]
    fn composite(
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        attn_mask: Option<&Tensor>,
        dropout_p: f64,
        is_causal: bool,
        scale: Option<f64>,
        enable_gqa: bool,
        flash: bool,
        math: bool,
    ) -> Result<Tensor> {
        let call =
            AttentionCall { query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa };
        call.check()?;
        ensure!(
            flash || math,
            runtime,
            "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the math kernel and the fused kernels."
        );
        match call.plan() {
            AttentionAlgorithm::Blocks if flash => call.in_blocks(),
            _ if math => call.by_formula(),
            _ => bail!(runtime, "No available kernel.  Aborting execution."),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |flash: bool, math: bool| {
            let sample = Sample::new([[2, 1, 3, 2]; 3].map(|shape| s.normal(&shape).into()));
            let sample = sample.with("attn_mask", Value::None).with("dropout_p", 0.0);
            sample.with("is_causal", true).with("flash", flash).with("math", math)
        };
        vec![call(true, false), call(false, true)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |dropout_p: f64, flash: bool| {
            let sample = Sample::new([[2, 1, 3, 2]; 3].map(|shape| s.normal(&shape).into()));
            let sample = sample.with("attn_mask", Value::None).with("dropout_p", dropout_p);
            sample.with("is_causal", true).with("flash", flash).with("math", false)
        };
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        vec![
            bad(call(0.0, false), "No viable backend for scaled_dot_product_attention was found"),
            bad(call(0.5, true), "No available kernel.  Aborting execution."),
        ]
    }
}

/// How attention is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttentionAlgorithm {
    /// By the kernels that hold no matrix of the scores.
    Blocks,
    /// By products of matrices and `softmax`.
    Formula,
}

impl AttentionAlgorithm {
    /// Announces the algorithm to whoever watches plans.
    fn announce(self) {
        pullback_kernels::plan::announce("scaled dot product attention", &self);
    }
}

/// A call of `scaled_dot_product_attention`.
struct AttentionCall<'a> {
    query: &'a Tensor,
    key: &'a Tensor,
    value: &'a Tensor,
    attn_mask: Option<&'a Tensor>,
    dropout_p: f64,
    is_causal: bool,
    scale: Option<f64>,
    enable_gqa: bool,
}

impl AttentionCall<'_> {
    fn check(&self) -> Result<()> {
        let AttentionCall { query, key, value, .. } = self;
        ensure!(
            query.dtype() == key.dtype() && key.dtype() == value.dtype(),
            runtime,
            "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and value.dtype: {} instead.",
            query.dtype().spelled(),
            key.dtype().spelled(),
            value.dtype().spelled()
        );
        ensure!(
            query.ndim().min(key.ndim()).min(value.ndim()) >= 2,
            runtime,
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {}, key.dim: {} and value.dim: {} instead.",
            query.ndim(),
            key.ndim(),
            value.ndim()
        );
        let Some(mask) = self.attn_mask else { return Ok(()) };
        ensure!(
            !self.is_causal,
            runtime,
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
        );
        ensure!(
            [DType::Bool, DType::F32, query.dtype()].contains(&mask.dtype()),
            runtime,
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} and  query.dtype: {} instead.",
            mask.dtype().spelled(),
            query.dtype().spelled()
        );
        Ok(())
    }

    /// The formula is for calls that the kernels in blocks do not compute: dropout, whose random
    /// numbers are those of the matrix of weights; a mask whose derivatives are wanted; other
    /// dtypes than `float32`, `float64`, `bfloat16` and `float16`, masks of other dtypes than the
    /// query's, `float32` and `bool`; sparse tensors; more than four dimensions; leading dimensions
    /// that broadcast, but for one head of keys and values; and what it refuses. All else is
    /// computed in blocks.
    fn plan(&self) -> AttentionAlgorithm {
        let AttentionCall { query, key, value, .. } = *self;
        let is_known = matches!(query.dtype(), DType::F16 | DType::BF16 | DType::F32 | DType::F64)
            && [query, key, value].iter().all(|t| t.layout() == Layout::Strided);
        let takes = is_known
            && self.dropout_p == 0.0
            && self.has_known_shapes()
            && self.attn_mask.is_none_or(|mask| self.takes(mask));
        if takes { AttentionAlgorithm::Blocks } else { AttentionAlgorithm::Formula }
    }

    /// Whether query, key and value are of two to four dimensions and have the same leading ones, but that heads may be shared.
    fn has_known_shapes(&self) -> bool {
        let (query, key, value) = (self.query.shape(), self.key.shape(), self.value.shape());
        let n = query.len();
        if n > 4 || key.len() != n || value.len() != n || query[n - 1] != key[n - 1] {
            return false;
        }
        if key[..n - 1] != value[..n - 1] {
            return false;
        }
        if n == 2 {
            return true;
        }
        let (heads, own) = (query[n - 3], key[n - 3]);
        let shares = if self.enable_gqa { own > 0 && heads % own == 0 } else { own == 1 };
        query[..n - 3] == key[..n - 3] && (heads == own || shares)
    }

    /// Whether the kernels in blocks add this mask.
    fn takes(&self, mask: &Tensor) -> bool {
        let (query, key) = (self.query.shape(), self.key.shape());
        let n = query.len();
        let mut scores = crate::Dims::from_slice(query);
        scores[n - 1] = key[n - 2];
        let is_known = [self.query.dtype(), DType::F32, DType::Bool].contains(&mask.dtype());
        is_known
            && mask.layout() == Layout::Strided
            && broadcasts(mask.shape(), &scores)
            && !crate::autograd::needs_derivative_of(mask)
    }

    /// Computes the call without a matrix of the scores.
    fn in_blocks(&self) -> Result<Tensor> {
        AttentionAlgorithm::Blocks.announce();
        let n = self.query.ndim();
        // (Of three dimensions the first is that of heads.)
        let four = |t: &Tensor| match n {
            2 => t.unsqueeze(0)?.unsqueeze(0),
            3 => t.unsqueeze(0),
            _ => Ok(t.clone()),
        };
        let mask = match self.attn_mask {
            Some(mask) if mask.ndim() == 0 => Some(mask.unsqueeze(0)?.unsqueeze(0)?),
            Some(mask) if matches!(mask.ndim(), 1 | 3) => Some(mask.unsqueeze(0)?),
            mask => mask.cloned(),
        };
        let [output, _] = four(self.query)?.flash_attention_with(
            &four(self.key)?,
            &four(self.value)?,
            0.0,
            self.is_causal,
            mask.as_ref(),
            self.scale,
        )?;
        match n {
            2 => output.squeeze_dim(0)?.squeeze_dim(0),
            3 => output.squeeze_dim(0),
            _ => Ok(output),
        }
    }

    fn by_formula(&self) -> Result<Tensor> {
        AttentionAlgorithm::Formula.announce();
        let AttentionCall { query, key, value, .. } = *self;
        let heads = |t: &Tensor| t.shape()[..t.ndim() - 2].last().copied().unwrap_or(1);
        let of_heads = |t: &Tensor| {
            let (wanted, own) = (heads(query), heads(t));
            ensure!(
                own > 0 && wanted % own == 0,
                runtime,
                "Number of heads in key and value must divide the number of heads in query, but got {own} and {wanted}"
            );
            if own == wanted { Ok(t.clone()) } else { t.repeat_interleave(wanted / own, Some(-3)) }
        };
        let (key, value) = if self.enable_gqa {
            (of_heads(key)?, of_heads(value)?)
        } else {
            (key.clone(), value.clone())
        };
        let width = query.shape()[query.ndim() - 1] as f64;
        let factor = self.scale.unwrap_or(1.0 / width.sqrt());
        // The factor is split between both sides, which keeps half-precision scores in range.
        let root = factor.abs().sqrt();
        let left = query.times(root.copysign(factor))?;
        let scores = left.matmul(&key.times(root)?.transpose(-2, -1)?)?;
        let weights = masked(&scores, self.is_causal, self.attn_mask)?.safe_softmax(-1, None)?;
        let weights =
            if self.dropout_p == 0.0 { weights } else { weights.dropout(self.dropout_p, true)? };
        weights.matmul(&value)
    }
}

/// A mask (3, 4) that is true in the first two rows.
fn first_rows() -> Tensor {
    let rows = [true, true, false].map(crate::Bool::new);
    let rows = Tensor::from_slice(&rows, &[3, 1]).expect("samples are small");
    rows.expand(&[3, 4], false).expect("one column for all")
}
