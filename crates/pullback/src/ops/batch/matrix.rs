//! Products of matrices, and what takes batches of matrices already.

use crate::dispatch::batch::{Call, Outcome};
use crate::dispatch::{Arg, Value};
use crate::error::ensure;
use crate::tensor::shape::wrap_dim;
use crate::{Result, Scalar, Tensor};

fn either(call: &Call<'_>, index: usize) -> Tensor {
    let tensor = call.tensor(index);
    call.physical(tensor).unwrap_or_else(|| tensor.clone())
}

fn check_rank(call: &Call<'_>, index: usize, rank: usize) -> Result<()> {
    ensure!(
        call.tensor(index).ndim() == rank,
        runtime,
        "{}: argument {} must be {rank}-D, but it has {} dimensions",
        call.def.name,
        call.def.args[index].name,
        call.tensor(index).ndim()
    );
    Ok(())
}

/// The product of two arguments that are matrices (or batches of such) to the caller.
fn product(call: &Call<'_>, a: usize, b: usize, rank: usize) -> Result<Tensor> {
    check_rank(call, a, rank)?;
    check_rank(call, b, rank)?;
    let (left, right) = (either(call, a), either(call, b));
    if rank == 3 {
        ensure!(
            call.tensor(a).shape()[0] == call.tensor(b).shape()[0],
            runtime,
            "batch1 and batch2 must have same number of batches, got {} and {}",
            call.tensor(a).shape()[0],
            call.tensor(b).shape()[0]
        );
    }
    left.matmul(&right)
}

fn times_vector(call: &Call<'_>, matrix: usize, vector: usize) -> Result<Tensor> {
    check_rank(call, matrix, 2)?;
    check_rank(call, vector, 1)?;
    let (m, v) = (either(call, matrix), either(call, vector));
    match (call.is_batched(matrix), call.is_batched(vector)) {
        (true, true) => m.matmul(&v.unsqueeze(-1)?)?.squeeze_dim(-1),
        // The vectors of all examples are the rows of one matrix.
        (false, true) => v.matmul(&m.t()?),
        _ => m.matmul(&v),
    }
}

/// `mm`.
pub(crate) fn mm(call: &Call<'_>) -> Result<Outcome> {
    Ok(product(call, 0, 1, 2)?.into())
}

/// `bmm`.
pub(crate) fn bmm(call: &Call<'_>) -> Result<Outcome> {
    Ok(product(call, 0, 1, 3)?.into())
}

/// `mv`.
pub(crate) fn mv(call: &Call<'_>) -> Result<Outcome> {
    Ok(times_vector(call, 0, 1)?.into())
}

fn inner(call: &Call<'_>, a: &Tensor, b: &Tensor) -> Result<Outcome> {
    check_rank(call, 0, 1)?;
    check_rank(call, 1, 1)?;
    let (row, column) = (a.unsqueeze(-2)?, b.unsqueeze(-1)?);
    let product = row.matmul(&column)?;
    Ok(product.reshape(&[call.size])?.into())
}

/// `dot`.
pub(crate) fn dot(call: &Call<'_>) -> Result<Outcome> {
    inner(call, &either(call, 0), &either(call, 1))
}

/// `vdot`.
pub(crate) fn vdot(call: &Call<'_>) -> Result<Outcome> {
    inner(call, &either(call, 0).conj()?, &either(call, 1))
}

fn scalar(call: &Call<'_>, name: &str) -> Scalar {
    match call.place(name).map(|index| call.args[index]) {
        Some(Arg::Scalar(number)) => number,
        Some(Arg::Int(number)) => Scalar::Int(number),
        Some(Arg::Float(number)) => Scalar::Float(number),
        _ => Scalar::Int(1),
    }
}

/// `beta * self + alpha * product`; `self` is not looked at where `beta` is 0.
fn add_scaled(call: &Call<'_>, product: Tensor, rank: usize) -> Result<Outcome> {
    let (beta, alpha) = (scalar(call, "beta"), scalar(call, "alpha"));
    let product = if alpha.is(1.0) { product } else { product.mul(&Tensor::wrapped(alpha)?)? };
    if beta.is(0.0) {
        return call.finish(&product);
    }
    let own = call.aligned(call.tensor(0), rank)?;
    let own = if beta.is(1.0) { own } else { own.mul(&Tensor::wrapped(beta)?)? };
    call.finish(&own.add(&product)?)
}

/// `addmm`.
pub(crate) fn addmm(call: &Call<'_>) -> Result<Outcome> {
    let product = batched(call, product(call, 1, 2, 2)?, 2)?;
    add_scaled(call, product, 2)
}

/// `baddbmm`.
pub(crate) fn baddbmm(call: &Call<'_>) -> Result<Outcome> {
    let product = batched(call, product(call, 1, 2, 3)?, 3)?;
    add_scaled(call, product, 3)
}

/// `addbmm`.
pub(crate) fn addbmm(call: &Call<'_>) -> Result<Outcome> {
    let product = batched(call, product(call, 1, 2, 3)?, 3)?.sum_dim(Some(&[1]), false)?;
    add_scaled(call, product, 2)
}

/// `addmv`.
pub(crate) fn addmv(call: &Call<'_>) -> Result<Outcome> {
    let product = batched(call, times_vector(call, 1, 2)?, 1)?;
    add_scaled(call, product, 1)
}

/// The product with the batch, where only the other summand has it.
fn batched(call: &Call<'_>, product: Tensor, rank: usize) -> Result<Tensor> {
    if product.ndim() > rank {
        return Ok(product);
    }
    product.unsqueeze(0)?.expand(&super::behind(call.size, product.shape()), false)
}

/// Linear equations: a right-hand side that is a vector to the caller is one column.
pub(crate) fn linear_solve(call: &Call<'_>) -> Result<Outcome> {
    let (a, b) = (call.tensor(0), call.tensor(1));
    if a.ndim() < 2 || b.ndim() == 0 {
        return super::one_by_one(call);
    }
    let is_vector =
        b.ndim() == 1 || a.ndim() == b.ndim() + 1 && a.shape()[..b.ndim()] == *b.shape();
    let mut values: Vec<Value> = call.args.iter().map(|arg| Value::from_arg(*arg)).collect();
    let rank = a.ndim().max(b.ndim() + usize::from(is_vector));
    let left = super::widened(&call.front(a)?, rank)?;
    let right = call.front(b)?;
    let right = if is_vector { right.unsqueeze(-1)? } else { right };
    values[0] = Value::Tensor(left);
    values[1] = Value::Tensor(super::widened(&right, rank)?);
    let mut outputs = super::call(call.def, &values)?.tensors();
    if is_vector {
        outputs[0] = outputs[0].squeeze_dim(-1)?;
    }
    Ok(Outcome::Batched(crate::dispatch::Outputs::Tensors(outputs)))
}

/// Equations with factors and their pivots, `(factors, pivots, right-hand sides, ..)`: pivots have a dimension less.
pub(crate) fn factored(call: &Call<'_>) -> Result<Outcome> {
    let (factors, right) = (call.tensor(0), call.tensor(2));
    if factors.ndim() < 2 || right.ndim() < 2 {
        return super::one_by_one(call);
    }
    let rank = factors.ndim().max(right.ndim());
    let values = call.values(&mut |index, tensor| {
        super::widened(&call.front(tensor)?, rank - usize::from(index == 1))
    })?;
    call.run(&values).map(Outcome::Batched)
}

/// Matrices, and tolerances that broadcast to their batch.
pub(crate) fn with_tolerances(call: &Call<'_>) -> Result<Outcome> {
    let matrices = call.tensor(0);
    if matrices.ndim() < 2 {
        return super::one_by_one(call);
    }
    let rank = matrices.ndim() - 2;
    let values = call.values(&mut |index, tensor| match index {
        0 => call.front(tensor),
        _ => call.aligned(tensor, rank),
    })?;
    call.run(&values).map(Outcome::Batched)
}

/// Matrices of which some results have no elements, and then no batch.
pub(crate) fn matrices_or_nothing(call: &Call<'_>) -> Result<Outcome> {
    if call.tensor(0).ndim() < 2 || call.tensor(1).ndim() < 2 {
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

/// `diag_embed`: dimensions are those of the result.
pub(crate) fn diag_embed(call: &Call<'_>) -> Result<Outcome> {
    let tensor = call.tensor(0);
    let rank = tensor.ndim() + 1;
    let further = |dim: i64| Ok::<_, crate::Error>(wrap_dim(dim, rank)? as i64 + 1);
    if tensor.ndim() == 0 {
        return super::one_by_one(call);
    }
    let (dim1, dim2) = (further(call.int(2))?, further(call.int(3))?);
    Ok(call.front(tensor)?.diag_embed(call.int(1), dim1, dim2)?.into())
}

/// `block_diag`: each block, with the batch, between zeros.
pub(crate) fn block_diag(call: &Call<'_>) -> Result<Outcome> {
    let Arg::Tensors(list) = call.args[0] else { return super::one_by_one(call) };
    if list.iter().any(|t| t.ndim() > 2) {
        return super::one_by_one(call);
    }
    let blocks = list
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
