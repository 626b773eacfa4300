//! Derivatives of attention by its formula, with a matrix of the weights of each head: those for which there is no kernel.
//!
//! With `P = softmax(scale Q K^T + mask)`, the output `P V`, the gradient `G` of the output and `J X = P (X - sum_j P X)`, which is the
//! Jacobian of `softmax` for each row, the gradients are
//!
//! `dV = P^T G`, `dS = J (G V^T)`, `dQ = scale dS K`, `dK = scale dS^T Q`.
//!
//! Everything is made of differentiable ops. Queries (B, H, L, E), keys and values (B, G, S, E) as the ops of `attention_flash` take
//! them.

use super::attention_flash::{for_heads, masked, of_heads, wide_dtype};
use crate::{DType, Result, Tensor};

/// The operands, with a head of keys and values for each of the query, and the weights.
pub(super) struct Formula {
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weights: Tensor,
    scale: f64,
    /// The heads of keys and values that are given.
    own: i64,
    /// The dtype of the operands.
    dtype: DType,
}

fn transposed(t: &Tensor) -> Result<Tensor> {
    t.transpose(-2, -1)
}

/// The sum of the terms that are not zero; `None` stands for zero, also as the result.
fn sum(terms: [Option<Tensor>; 2]) -> Result<Option<Tensor>> {
    match terms {
        [Some(a), Some(b)] => a.add(&b).map(Some),
        [a, b] => Ok(a.or(b)),
    }
}

impl Formula {
    pub(super) fn of(
        [query, key, value]: [&Tensor; 3],
        is_causal: bool,
        mask: Option<&Tensor>,
        scale: f64,
    ) -> Result<Formula> {
        let (dtype, wide) = (query.dtype(), wide_dtype(query.dtype()));
        let own = key.shape()[1];
        let all = |t: &Tensor| for_heads(&t.to_dtype(wide)?, query.shape()[1]);
        let (query, key, value) = (query.to_dtype(wide)?, all(key)?, all(value)?);
        let scores = query.times(scale)?.matmul(&transposed(&key)?)?;
        let weights = masked(&scores, is_causal, mask)?.safe_softmax_data(-1)?;
        Ok(Formula { query, key, value, weights, scale, own, dtype })
    }

    /// `J t`, where `J` is the Jacobian of `softmax`: it is symmetric, so that it takes gradients of the weights to those of the
    /// scores, and tangents of the scores to those of the weights.
    fn by_scores(&self, t: &Tensor) -> Result<Tensor> {
        t.softmax_backward_data(&self.weights, -1, self.weights.dtype())
    }

    /// `t` in the dtype of the computation.
    fn wide(&self, t: Option<&Tensor>) -> Result<Option<Tensor>> {
        t.map(|t| t.to_dtype(self.weights.dtype())).transpose()
    }
    /// Keys or values `t` in the dtype of the computation, repeated so that there is a head for each head of the query.
    fn wide_of_heads(&self, t: Option<&Tensor>) -> Result<Option<Tensor>> {
        self.wide(t)?.map(|t| for_heads(&t, self.query.shape()[1])).transpose()
    }
    /// A result in the dtype of the operands.
    fn narrow(&self, t: Option<Tensor>) -> Result<Option<Tensor>> {
        t.map(|t| t.to_dtype(self.dtype)).transpose()
    }
    /// A gradient of keys or values in the dtype of the operands, summed over the query heads that share a head of these.
    fn narrow_of_heads(&self, t: Option<Tensor>) -> Result<Option<Tensor>> {
        self.narrow(t.map(|t| of_heads(&t, self.own)).transpose()?)
    }

    /// The tangent of the scores for the tangents `query` and `key`.
    fn scores_by(&self, query: Option<&Tensor>, key: Option<&Tensor>) -> Result<Option<Tensor>> {
        let by_query =
            query.map(|t| t.times(self.scale)?.matmul(&transposed(&self.key)?)).transpose()?;
        let by_key =
            key.map(|t| self.query.times(self.scale)?.matmul(&transposed(t)?)).transpose()?;
        sum([by_query, by_key])
    }

    /// The tangent of the output.
    pub(super) fn tangent(&self, moved: [Option<&Tensor>; 3]) -> Result<Option<Tensor>> {
        let [query, key, value] = moved;
        let (query, key) = (self.wide(query)?, self.wide_of_heads(key)?);
        let scores = self.scores_by(query.as_ref(), key.as_ref())?;
        let by_scores = scores.map(|t| self.by_scores(&t)?.matmul(&self.value)).transpose()?;
        let by_value = self.wide_of_heads(value)?.map(|t| self.weights.matmul(&t)).transpose()?;
        self.narrow(sum([by_scores, by_value])?)
    }

    /// The gradients with respect to `grad`, query, key and value of what the gradients of query, key and value are, by the
    /// gradients `a`, `b` and `c` of these.
    ///
    /// The sum `<a, dQ> + <b, dK> + <c, dV>` has the gradients `U = scale (a K^T + Q b^T)` with respect to `dS`, hence `J U` with respect to
    /// `G V^T`, and `Y = U (G V^T - sum_j P G V^T) - (sum_j P U) G V^T + G c^T` with respect to `P`, hence `J Y` with respect to the scores.
    pub(super) fn second(
        &self,
        grad: &Tensor,
        [a, b, c]: [Option<&Tensor>; 3],
        needs: [bool; 4],
    ) -> Result<[Option<Tensor>; 4]> {
        let (a, b, c) = (self.wide(a)?, self.wide_of_heads(b)?, self.wide_of_heads(c)?);
        let grad = grad.to_dtype(self.weights.dtype())?;
        let by_weights = grad.matmul(&transposed(&self.value)?)?;
        let by_scores = self.by_scores(&by_weights)?.times(self.scale)?;
        let u = self.scores_by(a.as_ref(), b.as_ref())?;
        let ju = u.as_ref().map(|u| self.by_scores(u)).transpose()?;
        let from_u = u.as_ref().map(|u| self.through_weights(u, &by_weights)).transpose()?;
        let from_c = c.as_ref().map(|c| grad.matmul(&transposed(c)?)).transpose()?;
        let y = sum([from_u, from_c])?;
        let jy = y.map(|y| self.by_scores(&y)?.times(self.scale)).transpose()?;

        let product = |x: Option<&Tensor>, y: Option<&Tensor>| match (x, y) {
            (Some(x), Some(y)) => x.matmul(y).map(Some),
            _ => Ok(None),
        };
        let flip = |t: Option<&Tensor>| t.map(transposed).transpose();
        let mut all = [None, None, None, None];
        if needs[0] {
            let direct = product(Some(&self.weights), c.as_ref())?;
            all[0] = self.narrow(sum([direct, product(ju.as_ref(), Some(&self.value))?])?)?;
        }
        if needs[1] {
            let direct = product(Some(&by_scores), b.as_ref())?;
            all[1] = self.narrow(sum([direct, product(jy.as_ref(), Some(&self.key))?])?)?;
        }
        if needs[2] {
            let direct = product(Some(&transposed(&by_scores)?), a.as_ref())?;
            let other = product(flip(jy.as_ref())?.as_ref(), Some(&self.query))?;
            all[2] = self.narrow_of_heads(sum([direct, other])?)?;
        }
        if needs[3] {
            all[3] = self.narrow_of_heads(product(flip(ju.as_ref())?.as_ref(), Some(&grad))?)?;
        }
        Ok(all)
    }

    /// `U (X - sum_j P X) - (sum_j P U) X`: the gradient with respect to the weights of the sum of `U` times `J X`.
    fn through_weights(&self, u: &Tensor, x: &Tensor) -> Result<Tensor> {
        let mean = |t: &Tensor| self.weights.mul(t)?.sum_dim(Some(&[-1]), true);
        u.mul(&x.sub(&mean(x)?)?)?.sub(&mean(u)?.mul(x)?)
    }
}
