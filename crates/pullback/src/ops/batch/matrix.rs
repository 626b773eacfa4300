//! Batching rules of matrix products, and of ops that take batches of matrices themselves.

use super::values::Values;
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::error::ensure;
use crate::tensor::shape::wrap_dim;
use crate::{DType, Result, Scalar, Tensor};

/// An argument of a rule together with its name.
type NamedOperand<'a> = (&'static str, &'a Tensor);

fn check_rank(call: &BatchedCall<'_>, (name, tensor): NamedOperand<'_>, rank: usize) -> Result<()> {
    ensure!(
        tensor.ndim() == rank,
        runtime,
        "{}: argument {name} must be {rank}-D, but it has {} dimensions",
        call.def.name,
        tensor.ndim()
    );
    Ok(())
}

/// The product of two arguments whose examples are vectors, matrices or batches of matrices.
fn product(
    call: &BatchedCall<'_>,
    a: NamedOperand<'_>,
    b: NamedOperand<'_>,
    rank: usize,
) -> Result<Tensor> {
    check_rank(call, a, rank)?;
    check_rank(call, b, rank)?;
    let (a, b) = (a.1, b.1);
    if rank == 3 {
        ensure!(
            a.shape()[0] == b.shape()[0],
            runtime,
            "batch1 and batch2 must have same number of batches, got {} and {}",
            a.shape()[0],
            b.shape()[0]
        );
    }
    call.either(a).matmul(&call.either(b))
}

fn times_vector(
    call: &BatchedCall<'_>,
    matrix: NamedOperand<'_>,
    vector: NamedOperand<'_>,
) -> Result<Tensor> {
    check_rank(call, matrix, 2)?;
    check_rank(call, vector, 1)?;
    let (m, v) = (call.either(matrix.1), call.either(vector.1));
    match (call.is_batched(matrix.1), call.is_batched(vector.1)) {
        (true, true) => m.matmul(&v.unsqueeze(-1)?)?.squeeze_dim(-1),
        // The vectors of all examples are the rows of one matrix.
        (false, true) => v.matmul(&m.t()?),
        _ => m.matmul(&v),
    }
}

/// The rule of `mm`.
pub(crate) fn mm(call: &BatchedCall<'_>, self_: &Tensor, mat2: &Tensor) -> Result<Outcome> {
    Ok(product(call, ("self", self_), ("mat2", mat2), 2)?.into())
}

/// The rule of `_int_mm`, in 32-bit integers. (Invalid arguments are refused with the error of the first example.)
pub(crate) fn int_mm(call: &BatchedCall<'_>, self_: &Tensor, mat2: &Tensor) -> Result<Outcome> {
    let is_small = matches!(self_.dtype(), DType::I8 | DType::U8) && mat2.dtype() == DType::I8;
    if !is_small {
        return super::one_by_one(call);
    }
    check_rank(call, ("self", self_), 2)?;
    check_rank(call, ("mat2", mat2), 2)?;
    let wide = |tensor: &Tensor| call.either(tensor).to_dtype(DType::I32);
    Ok(wide(self_)?.matmul(&wide(mat2)?)?.into())
}

/// The rule of `bmm`.
pub(crate) fn bmm(call: &BatchedCall<'_>, self_: &Tensor, mat2: &Tensor) -> Result<Outcome> {
    Ok(product(call, ("self", self_), ("mat2", mat2), 3)?.into())
}

/// The rule of `mv`.
pub(crate) fn mv(call: &BatchedCall<'_>, self_: &Tensor, vec: &Tensor) -> Result<Outcome> {
    Ok(times_vector(call, ("self", self_), ("vec", vec))?.into())
}

/// The dot products of two vectors of each example.
fn inner(call: &BatchedCall<'_>, a: &Tensor, b: &Tensor) -> Result<Outcome> {
    let (row, column) = (a.unsqueeze(-2)?, b.unsqueeze(-1)?);
    let product = row.matmul(&column)?;
    Ok(product.reshape(&[call.size])?.into())
}

/// The rule of `dot`.
pub(crate) fn dot(call: &BatchedCall<'_>, self_: &Tensor, tensor: &Tensor) -> Result<Outcome> {
    check_rank(call, ("self", self_), 1)?;
    check_rank(call, ("tensor", tensor), 1)?;
    inner(call, &call.either(self_), &call.either(tensor))
}

/// The rule of `vdot`.
pub(crate) fn vdot(call: &BatchedCall<'_>, self_: &Tensor, other: &Tensor) -> Result<Outcome> {
    check_rank(call, ("self", self_), 1)?;
    check_rank(call, ("other", other), 1)?;
    inner(call, &call.either(self_).conj()?, &call.either(other))
}

/// The terms of `beta * self + alpha * product`, of `rank` dimensions; `self` is not read where `beta` is 0.
struct ProductSum<'a> {
    self_: &'a Tensor,
    beta: Scalar,
    alpha: Scalar,
    rank: usize,
}

impl ProductSum<'_> {
    fn with(&self, call: &BatchedCall<'_>, product: Tensor) -> Result<Outcome> {
        let ProductSum { self_, beta, alpha, rank } = *self;
        let product =
            if alpha.is(1.0) { product } else { product.mul(&Tensor::wrapped(alpha)?)? };
        if beta.is(0.0) {
            return call.finish(&product);
        }
        let own = call.aligned(self_, rank)?;
        let own = if beta.is(1.0) { own } else { own.mul(&Tensor::wrapped(beta)?)? };
        call.finish(&own.add(&product)?)
    }
}

/// The rule of `addmm`.
pub(crate) fn addmm(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    mat1: &Tensor,
    mat2: &Tensor,
    beta: Scalar,
    alpha: Scalar,
) -> Result<Outcome> {
    let product = batched(call, product(call, ("mat1", mat1), ("mat2", mat2), 2)?, 2)?;
    ProductSum { self_, beta, alpha, rank: 2 }.with(call, product)
}

/// The rule of `baddbmm`.
pub(crate) fn baddbmm(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    batch1: &Tensor,
    batch2: &Tensor,
    beta: Scalar,
    alpha: Scalar,
) -> Result<Outcome> {
    let product = batched(call, product(call, ("batch1", batch1), ("batch2", batch2), 3)?, 3)?;
    ProductSum { self_, beta, alpha, rank: 3 }.with(call, product)
}

/// The rule of `addbmm`.
pub(crate) fn addbmm(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    batch1: &Tensor,
    batch2: &Tensor,
    beta: Scalar,
    alpha: Scalar,
) -> Result<Outcome> {
    let product = batched(call, product(call, ("batch1", batch1), ("batch2", batch2), 3)?, 3)?;
    let product = product.sum_dim(Some(&[1]), false)?;
    ProductSum { self_, beta, alpha, rank: 2 }.with(call, product)
}

/// The rule of `addmv`.
pub(crate) fn addmv(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    mat: &Tensor,
    vec: &Tensor,
    beta: Scalar,
    alpha: Scalar,
) -> Result<Outcome> {
    let product = batched(call, times_vector(call, ("mat", mat), ("vec", vec))?, 1)?;
    ProductSum { self_, beta, alpha, rank: 1 }.with(call, product)
}

/// The product expanded to the batch, where only the other summand is batched.
fn batched(call: &BatchedCall<'_>, product: Tensor, rank: usize) -> Result<Tensor> {
    if product.ndim() > rank {
        return Ok(product);
    }
    product.unsqueeze(0)?.expand(&super::behind(call.size, product.shape()), false)
}

/// The rule of linear equations: right-hand sides that are vectors become matrices of one column.
pub(crate) fn linear_solve(call: &BatchedCall<'_>, a: &Tensor, b: &Tensor) -> Result<Outcome> {
    if a.ndim() < 2 || b.ndim() == 0 {
        return super::one_by_one(call);
    }
    let is_vector =
        b.ndim() == 1 || a.ndim() == b.ndim() + 1 && a.shape()[..b.ndim()] == *b.shape();
    let rank = a.ndim().max(b.ndim() + usize::from(is_vector));
    let right = call.front(b)?;
    let right = if is_vector { right.unsqueeze(-1)? } else { right };
    let mut values = Values::given(call);
    values.set("A", super::widened(&call.front(a)?, rank)?);
    values.set("B", super::widened(&right, rank)?);
    let mut outputs = values.call()?.tensors();
    if is_vector {
        outputs[0] = outputs[0].squeeze_dim(-1)?;
    }
    Ok(Outcome::Batched(crate::dispatch::Outputs::Tensors(outputs)))
}

/// The rule of equations with factors `LD` and their pivots, which have one dimension less.
pub(crate) fn factored(
    call: &BatchedCall<'_>,
    ld: &Tensor,
    pivots: &Tensor,
    b: &Tensor,
) -> Result<Outcome> {
    if ld.ndim() < 2 || b.ndim() < 2 {
        return super::one_by_one(call);
    }
    let rank = ld.ndim().max(b.ndim());
    let mut values = Values::given(call);
    values.set("LD", super::widened(&call.front(ld)?, rank)?);
    values.set("pivots", super::widened(&call.front(pivots)?, rank - 1)?);
    values.set("B", super::widened(&call.front(b)?, rank)?);
    call.run(&values).map(Outcome::Batched)
}

/// The rule of equations with matrices `A`, their factors `LU` and pivots, which have one dimension less.
pub(crate) fn factored_matrix(
    call: &BatchedCall<'_>,
    a: &Tensor,
    lu: &Tensor,
    pivots: &Tensor,
    b: &Tensor,
) -> Result<Outcome> {
    if a.ndim() < 2 || b.ndim() < 2 {
        return super::one_by_one(call);
    }
    let rank = a.ndim().max(b.ndim());
    let mut values = Values::given(call);
    for (name, tensor, rank) in
        [("A", a, rank), ("LU", lu, rank), ("pivots", pivots, rank - 1), ("B", b, rank)]
    {
        values.set(name, super::widened(&call.front(tensor)?, rank)?);
    }
    call.run(&values).map(Outcome::Batched)
}

/// The rule of ops on matrices and tolerances that broadcast to their batch.
pub(crate) fn with_tolerances(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    atol: Option<&Tensor>,
    rtol: Option<&Tensor>,
) -> Result<Outcome> {
    if self_.ndim() < 2 {
        return super::one_by_one(call);
    }
    let mut values = Values::given(call);
    values.set_subject(call.front(self_)?);
    for (name, tolerance) in [("atol", atol), ("rtol", rtol)] {
        if let Some(tolerance) = tolerance {
            values.set(name, call.aligned(tolerance, self_.ndim() - 2)?);
        }
    }
    call.run(&values).map(Outcome::Batched)
}

/// The rule of ops on matrices some of whose results are empty, and then without a batch.
pub(crate) fn matrices_or_nothing(
    call: &BatchedCall<'_>,
    a: &Tensor,
    b: &Tensor,
) -> Result<Outcome> {
    if a.ndim() < 2 || b.ndim() < 2 {
        return super::one_by_one(call);
    }
    let values = call.values(&mut |_, tensor| call.front(tensor))?;
    let mut outputs = call.run(&values)?.tensors();
    for output in &mut outputs {
        if output.shape() == [0] {
            *output = output.unsqueeze(0)?.expand(&[call.size, 0], false)?;
        }
    }
    Ok(Outcome::Batched(crate::dispatch::Outputs::Tensors(outputs)))
}

/// The rule of `diag_embed`, whose dimensions are those of the result.
pub(crate) fn diag_embed(
    call: &BatchedCall<'_>,
    self_: &Tensor,
    offset: i64,
    dim1: i64,
    dim2: i64,
) -> Result<Outcome> {
    if self_.ndim() == 0 {
        return super::one_by_one(call);
    }
    let rank = self_.ndim() + 1;
    let further = |dim: i64| Ok::<_, crate::Error>(wrap_dim(dim, rank)? as i64 + 1);
    Ok(call.front(self_)?.diag_embed(offset, further(dim1)?, further(dim2)?)?.into())
}

/// The rule of `block_diag`: each block, with the batch in front, between zeros.
pub(crate) fn block_diag(call: &BatchedCall<'_>, tensors: &[Tensor]) -> Result<Outcome> {
    if tensors.iter().any(|t| t.ndim() > 2) {
        return super::one_by_one(call);
    }
    let blocks = tensors
        .iter()
        .map(|t| {
            let front = call.front(t)?;
            (t.ndim()..2).try_fold(front, |block, _| block.unsqueeze(1))
        })
        .collect::<Result<Vec<_>>>()?;
    let width: i64 = blocks.iter().map(|b| b.shape()[2]).sum();
    let mut before = 0;
    // bounded: by the number of tensors.
    let mut rows = Vec::with_capacity(blocks.len());
    for block in &blocks {
        let after = width - before - block.shape()[2];
        rows.push(block.constant_pad_nd(&[before, after], crate::Scalar::Int(0))?);
        before += block.shape()[2];
    }
    Ok(crate::ops::shape::join::cat(&rows, 1)?.into())
}
