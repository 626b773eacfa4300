//! Contractions of two tensors, made of reshapes and matrix products: `outer` (over no dimension), `inner` (over the
//! last dimensions) and `tensordot` (over any). They have no kernels and no derivative rules of their own.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{Sample, Sampler};
use crate::tensor::shape::{list, wrap_own_dim};
use crate::{Dims, Result, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&OUTER, &INNER, &TENSORDOT];

/// The outer product of two vectors: `out[i, j] = self[i] * vec2[j]`, of shape (n, m) for vectors of lengths n and m.
/// Dtypes promote.
#[op("outer(Tensor self, Tensor vec2) -> Tensor", out, separate, alias("ger"))]
impl Outer {
    fn composite(self_: &Tensor, vec2: &Tensor) -> Result<Tensor> {
        ensure!(
            self_.ndim() == 1,
            runtime,
            "outer: Expected 1-D argument self, but got {}-D",
            self_.ndim()
        );
        ensure!(
            vec2.ndim() == 1,
            runtime,
            "outer: Expected 1-D argument vec2, but got {}-D",
            vec2.ndim()
        );
        self_.reshape(&[self_.shape()[0], 1])?.mul(vec2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([s.normal(&[2]).into(), s.normal(&[3]).into()])]
    }
}

/// Sums of products over the last dimensions of both tensors: shapes (*a, k) and (*b, k) give (*a, *b). For two vectors
/// this is the dot product; a 0-dimensional tensor multiplies every element of the other.
#[op("inner(Tensor self, Tensor other) -> Tensor", exact_out)]
impl Inner {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        if self_.ndim() == 0 || other.ndim() == 0 {
            return self_.mul(other);
        }
        ensure!(
            self_.shape().last() == other.shape().last(),
            runtime,
            "inner() the last dimension must match on both input tensors but got shapes {} and {}",
            list(self_.shape()),
            list(other.shape())
        );
        self_.tensordot(other, &[-1], &[-1])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([s.normal(&[2, 3]).into(), s.normal(&[4, 3]).into()]),
            Sample::new([s.normal(&[3]).into(), s.normal(&[]).into()]),
        ]
    }
}

/// The dimensions to contract, counted from 0, and the remaining ones.
fn contraction(t: &Tensor, dims: &[i64]) -> Result<(Vec<i64>, Vec<i64>)> {
    let mut picked = Vec::with_capacity(dims.len());
    for &dim in dims {
        let dim = wrap_own_dim(dim, t.ndim())? as i64;
        ensure!(
            !picked.contains(&dim),
            runtime,
            "dim {dim} appears multiple times in the list of dims"
        );
        picked.push(dim);
    }
    let rest = (0..t.ndim() as i64).filter(|d| !picked.contains(d)).collect();
    Ok((picked, rest))
}

/// The contraction of two tensors: sums products over the dimensions `dims_self` of `self` and `dims_other` of `other`,
/// which correspond one to one and have equal sizes (a size of 1 broadcasts). The result has the remaining dimensions
/// of `self`, then those of `other`, in order.
#[op(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    function_only,
    exact_out
)]
impl Tensordot {
    fn composite(
        self_: &Tensor,
        other: &Tensor,
        dims_self: &[i64],
        dims_other: &[i64],
    ) -> Result<Tensor> {
        ensure!(
            dims_self.len() == dims_other.len(),
            runtime,
            "both dimension lists should have same length, got {} and {}",
            dims_self.len(),
            dims_other.len()
        );
        let ((pick_a, rest_a), (pick_b, rest_b)) =
            (contraction(self_, dims_self)?, contraction(other, dims_other)?);
        let (mut a, mut b) = (self_.clone(), other.clone());
        for (&i, &j) in pick_a.iter().zip(&pick_b) {
            let (m, n) = (a.shape()[i as usize], b.shape()[j as usize]);
            // A dimension of size 1 broadcasts: the other tensor is summed over its dimension.
            if m == 1 && n != 1 {
                b = b.sum_dim_with(Some(&[j]), true, Some(b.dtype()))?;
            } else if n == 1 && m != 1 {
                a = a.sum_dim_with(Some(&[i]), true, Some(a.dtype()))?;
            } else if m != n {
                bail!(
                    runtime,
                    "contracted dimensions need to match, but first has size {m} in dim {i} and second has size {n} in dim {j}"
                );
            }
        }
        let sizes = |t: &Tensor, dims: &[i64]| {
            dims.iter().map(|&d| t.shape()[d as usize]).collect::<Dims>()
        };
        let (out_a, out_b, inner) =
            (sizes(&a, &rest_a), sizes(&b, &rest_b), sizes(&a, &pick_a).iter().product::<i64>());
        let (order_a, order_b) = ([rest_a, pick_a].concat(), [pick_b, rest_b].concat());
        let shape: Dims = out_a.iter().chain(&out_b).copied().collect();
        if shape.iter().all(|&size| size == 1) {
            // One element is a dot product. (The difference shows under autocast, which lowers matrix products only.)
            let flat = |t: &Tensor, order: &[i64]| t.permute(order)?.reshape(&[inner]);
            return flat(&a, &order_a)?.dot(&flat(&b, &order_b)?)?.reshape(&shape);
        }
        let left = a.permute(&order_a)?.reshape(&[out_a.iter().product(), inner])?;
        let right = b.permute(&order_b)?.reshape(&[inner, out_b.iter().product()])?;
        left.mm(&right)?.reshape(&shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([
                s.normal(&[2, 3, 4]).into(),
                s.normal(&[4, 2, 2]).into(),
                Value::from([0, 2]),
                Value::from([1, 0]),
            ]),
            Sample::new([
                s.normal(&[2]).into(),
                s.normal(&[3]).into(),
                Value::Ints(Box::default()),
                Value::Ints(Box::default()),
            ]),
        ]
    }
}
