//! Chain products of matrices, tensor equations, and the logarithm of the determinant.

use super::decomposition::{matrix_samples, regular};
use super::layout::{check_floating, check_square};
use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::list;
use crate::{Dims, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::memory;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &LINALG_MULTI_DOT,
    &CHAIN_MATMUL,
    &LINALG_MATMUL,
    &LINALG_TENSORINV,
    &LINALG_TENSORSOLVE,
    &LOGDET,
];

/// The matrix product of two tensors, which is what `torch.matmul` computes: vectors give a dot product, a matrix and a
/// vector a vector, matrices a matrix; further leading dimensions are batches, which broadcast.
#[op("linalg_matmul(Tensor self, Tensor other) -> Tensor", module = "linalg", exact_out, method = linalg_matmul)]
impl LinalgMatmul {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        self_.matmul(other)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([s.normal(&[2, 3]).into(), s.normal(&[3, 2]).into()]),
            Sample::new([s.normal(&[2, 2, 3]).into(), s.normal(&[3]).into()]),
        ]
    }
}

/// The product of two or more matrices in the order that needs the fewest multiplications. The first and the last may be vectors.
///
/// # Errors
/// `RuntimeError` for fewer than two tensors, other numbers of dimensions, mixed dtypes and shapes that do not fit.
#[op("linalg_multi_dot(Tensor[] tensors) -> Tensor", module = "linalg", exact_out, method = linalg_multi_dot)]
impl LinalgMultiDot {
    fn composite(tensors: &[Tensor]) -> Result<Tensor> {
        multi_dot(tensors)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shapes: &[&[i64]]| {
            Sample::new([Value::Tensors(shapes.iter().map(|shape| s.normal(shape)).collect())])
        };
        vec![
            sample(&[&[2, 3], &[3, 2]]),
            sample(&[&[2, 3], &[3, 1], &[1, 4]]),
            sample(&[&[3], &[3, 2], &[2, 3], &[3]]),
            sample(&[&[3], &[3, 2], &[2, 2]]),
            sample(&[&[2], &[2]]),
            sample(&[&[2, 0], &[0, 3], &[3, 2]]),
            sample(&[&[1, 4], &[4, 2], &[2, 3], &[3, 1], &[1, 2]]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shapes: &[&[i64]], phrase| {
            let tensors = shapes.iter().map(|shape| s.normal(shape)).collect();
            InvalidSample::new(Sample::new([Value::Tensors(tensors)]), ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[], "multi_dot(): expected at least 2 tensors but got 0"),
            bad(&[&[2, 2]], "multi_dot(): expected at least 2 tensors but got 1"),
            bad(
                &[&[4, 4], &[3, 4]],
                "multi_dot(): tensors 0 and 1 with shapes [4, 4] and [3, 4] cannot be multiplied",
            ),
            bad(&[&[2, 2], &[2, 2, 2]], "multi_dot(): the last tensor must be 1D or 2D but got 3D"),
            bad(
                &[&[2, 2, 2], &[2, 2]],
                "multi_dot(): the first tensor must be 1D or 2D but got 3D",
            ),
            bad(&[&[2, 2], &[2], &[2, 2]], "multi_dot(): tensor 1 must be 2D but got 1D"),
        ]
    }
}

fn multi_dot(tensors: &[Tensor]) -> Result<Tensor> {
    let n = tensors.len();
    ensure!(n >= 2, runtime, "multi_dot(): expected at least 2 tensors but got {n}");
    let (first, last) = (&tensors[0], &tensors[n - 1]);
    for (position, t) in [("first", first), ("last", last)] {
        ensure!(
            matches!(t.ndim(), 1 | 2),
            runtime,
            "multi_dot(): the {position} tensor must be 1D or 2D but got {}D",
            t.ndim()
        );
    }
    // (A vector counts as a row if it comes first and as a column if it comes last.)
    let mut matrices = tensors.to_vec();
    if first.ndim() == 1 {
        matrices[0] = first.unsqueeze(0)?;
    }
    if last.ndim() == 1 {
        matrices[n - 1] = last.unsqueeze(-1)?;
    }
    check_chain(tensors, &matrices)?;
    let product = best_product(&matrices)?;
    let product = if first.ndim() == 1 { product.squeeze_dim(0)? } else { product };
    if last.ndim() == 1 { product.squeeze_dim(-1) } else { Ok(product) }
}

fn check_chain(tensors: &[Tensor], matrices: &[Tensor]) -> Result<()> {
    for (i, t) in matrices.iter().enumerate() {
        ensure!(t.ndim() == 2, runtime, "multi_dot(): tensor {i} must be 2D but got {}D", t.ndim());
        ensure!(
            t.dtype() == matrices[0].dtype(),
            runtime,
            "multi_dot(): all tensors must have be the same dtype but tensor 0 is {} and tensor {i} {}",
            matrices[0].dtype().spelled(),
            t.dtype().spelled()
        );
        if i == 0 {
            continue;
        }
        ensure!(
            matrices[i - 1].shape()[1] == t.shape()[0],
            runtime,
            "multi_dot(): tensors {} and {i} with shapes {} and {} cannot be multiplied",
            i - 1,
            list(tensors[i - 1].shape()),
            list(tensors[i].shape())
        );
    }
    Ok(())
}

/// The product in the order with the fewest multiplications (S. S. Godbole, "On efficient computation of matrix chain
/// products", 1973): `cost[i][j]` of the matrices i to j is the minimum over the positions of the product that is
/// computed last.
fn best_product(matrices: &[Tensor]) -> Result<Tensor> {
    let n = matrices.len();
    let size = |i: usize| if i == n { matrices[n - 1].shape()[1] } else { matrices[i].shape()[0] };
    let (mut cost, mut split) = (memory::filled(0.0_f64, n * n)?, memory::filled(0_usize, n * n)?);
    for length in 1..n {
        for i in 0..n - length {
            let j = i + length;
            cost[i * n + j] = f64::INFINITY;
            for k in i..j {
                let last = size(i) as f64 * size(k + 1) as f64 * size(j + 1) as f64;
                let all = cost[i * n + k] + cost[(k + 1) * n + j] + last;
                if all < cost[i * n + j] || k == i {
                    (cost[i * n + j], split[i * n + j]) = (all, k);
                }
            }
        }
    }
    between(matrices, &split, (0, n - 1))
}

fn between(matrices: &[Tensor], split: &[usize], (i, j): (usize, usize)) -> Result<Tensor> {
    if i == j {
        return Ok(matrices[i].clone());
    }
    let k = split[i * matrices.len() + j];
    let left = between(matrices, split, (i, k))?;
    left.mm(&between(matrices, split, (k + 1, j))?)
}

/// The product of matrices in the order that needs the fewest multiplications. It is deprecated:
/// `torch.linalg.multi_dot` takes its place. The product of a single matrix is that matrix.
#[op("chain_matmul(Tensor[] matrices) -> Tensor", function_only, exact_out, method = chain_matmul_of)]
impl ChainMatmul {
    fn composite(matrices: &[Tensor]) -> Result<Tensor> {
        ensure!(!matrices.is_empty(), runtime, "chain_matmul(): Expected one or more matrices");
        if let Some(bad) = matrices.iter().find(|t| t.ndim() != 2) {
            bail!(runtime, "Tensor dimension is {}, expected 2 instead.", bad.ndim());
        }
        if let [one] = matrices {
            return one.clone_tensor(None);
        }
        multi_dot(matrices)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let matrices = vec![s.normal(&[2, 3]), s.normal(&[3, 1]), s.normal(&[1, 2])];
        vec![
            Sample::new([Value::Tensors(matrices)]),
            Sample::new([Value::Tensors(vec![s.normal(&[2, 2])])]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![
            InvalidSample::new(
                Sample::new([Value::Tensors(Vec::new())]),
                ErrorKind::Runtime,
                "chain_matmul(): Expected one or more matrices",
            ),
            InvalidSample::new(
                Sample::new([Value::Tensors(vec![s.normal(&[2]), s.normal(&[2, 2])])]),
                ErrorKind::Runtime,
                "Tensor dimension is 1, expected 2 instead.",
            ),
        ]
    }
}

/// The inverse of a tensor with respect to `tensordot` over `ind` dimensions: `tensordot(A^-1, A, ind)` is the
/// identity. The product of the first `ind` sizes equals that of the others, and the result has the others first.
///
/// # Errors
/// `RuntimeError` for sizes that do not fit; `LinAlgError` where there is no inverse.
#[op("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", module = "linalg", out, autocast = fp32, method = linalg_tensorinv)]
impl LinalgTensorinv {
    fn composite(self_: &Tensor, ind: i64) -> Result<Tensor> {
        ensure!(ind > 0, runtime, "Expected a strictly positive integer for 'ind', but got {ind}");
        let at = (ind as usize).min(self_.ndim());
        let (before, behind) = self_.shape().split_at(at);
        let (rows, columns): (i64, i64) = (before.iter().product(), behind.iter().product());
        ensure!(
            rows == columns,
            runtime,
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {columns} != {rows}"
        );
        let shape: Dims = behind.iter().chain(before).copied().collect();
        self_.reshape(&[rows, columns])?.linalg_inv()?.reshape(&shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let square = |shape: &[i64]| regular(s, &[4]).reshape(shape).expect("samples are small");
        vec![
            Sample::of(square(&[2, 2, 4])),
            Sample::of(square(&[4, 2, 2])).with("ind", 1_i64),
            Sample::of(square(&[4, 4])).with("ind", 1_i64),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], ind: i64, phrase| {
            InvalidSample::new(
                Sample::of(s.normal(shape)).with("ind", ind),
                ErrorKind::Runtime,
                phrase,
            )
        };
        vec![
            bad(
                &[2, 3, 4],
                2,
                "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got 4 != 6",
            ),
            bad(&[2, 2], 0, "Expected a strictly positive integer for 'ind', but got 0"),
        ]
    }
}

/// The solution `X` of `tensordot(A, X, X.ndim) = B` for `A` = `self` and `B` = `other`; the dimensions `dims` of `A` are moved to its end first.
///
/// # Errors
/// `RuntimeError` for sizes that do not fit; `LinAlgError` where there is no solution.
#[op("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", module = "linalg", out, autocast = fp32, method = linalg_tensorsolve)]
impl LinalgTensorsolve {
    fn composite(self_: &Tensor, other: &Tensor, dims: Option<&[i64]>) -> Result<Tensor> {
        let mut a = self_.clone();
        if let Some(dims) = dims {
            let count = dims.len() as i64;
            let to: Vec<i64> = (0..count).map(|i| self_.ndim() as i64 - count + i).collect();
            a = a.movedim(dims, &to)?;
        }
        let at = other.ndim().min(a.ndim());
        let (before, behind) = a.shape().split_at(at);
        let (rows, columns): (i64, i64) = (before.iter().product(), behind.iter().product());
        ensure!(
            rows == columns && rows == other.numel(),
            runtime,
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got {columns} != {rows}"
        );
        let shape = Dims::from_slice(behind);
        let matrix = a.reshape(&[rows, columns])?;
        matrix.linalg_solve(&other.reshape(&[rows])?)?.reshape(&shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let square = |shape: &[i64]| regular(s, &[4]).reshape(shape).expect("samples are small");
        vec![
            Sample::new([square(&[2, 2, 4]).into(), s.normal(&[2, 2]).into()]),
            Sample::new([square(&[4, 2, 2]).into(), s.normal(&[4]).into()]),
            Sample::new([square(&[2, 4, 2]).into(), s.normal(&[2, 2]).into()])
                .with("dims", [1])
                .without_gradient(),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::new([s.normal(&[4, 4]).into(), s.normal(&[4, 2]).into()]),
            ErrorKind::Runtime,
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got 1 != 16",
        )]
    }
}

/// The natural logarithm of the determinant of matrices (*, n, n), of shape (*). It is NaN where a real determinant is
/// negative and -inf where it is 0; the determinant of a matrix of order 0 is 1.
///
/// # Errors
/// `RuntimeError` for matrices that are not square; `NotImplementedError` for half precision and integer dtypes.
#[op("logdet(Tensor self) -> Tensor", method = logdet)]
impl Logdet {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        check_square("logdet", self_)?;
        check_floating("logdet", self_, false)?;
        let [sign, log] = self_.linalg_slogdet()?;
        if self_.dtype().is_complex() {
            return sign.log()?.add(&log);
        }
        let is_negative = sign.eq(&Tensor::wrapped(-1)?)?;
        log.masked_fill(&is_negative, Scalar::Float(f64::NAN))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        matrix_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |a: Tensor, kind, phrase| InvalidSample::new(Sample::of(a), kind, phrase);
        vec![
            bad(
                s.normal(&[3]),
                ErrorKind::Runtime,
                "logdet: The input tensor A must have at least 2 dimensions.",
            ),
            bad(
                s.normal(&[2, 3]),
                ErrorKind::Runtime,
                "logdet: A must be batches of square matrices, but they are 2 by 3 matrices",
            ),
            bad(
                s.integers(&[2, 2], 0, 3),
                ErrorKind::NotImplemented,
                "logdet: Expected a floating point or complex tensor as input. Got Long",
            ),
        ]
    }
}
