//! Pointwise ops on sparse tensors: ops that map zero to zero, on the specified elements alone, and arithmetic of two tensors.

use super::coordinates::{SparseElements, SparseFormat, dense_copy, index_vector, list_of, taken};
use super::{check_same_shape, parts};
use crate::dispatch::{Arg, Call, Form, check_cast, each_tensor, receiver};
use crate::error::{bail, ensure};
use crate::tensor::shape::{broadcast_shapes, list};
use crate::tensor::{Cpu, Layout, Sparse, promote};
use crate::{DType, Dims, Error, Result, Scalar, Tensor, interrupt};
use pullback_kernels::memory;
use smallvec::SmallVec;

/// The kernel of ops that map zero to zero: the op itself on the values of `self`.
pub(crate) fn values(_: Cpu, call: &Call<'_>) -> Result<Tensor> {
    on_values(call)
}

fn on_values(call: &Call<'_>) -> Result<Tensor> {
    let input = receiver(call.args);
    let coalesced = if is_coalesced(input)? {
        input.clone()
    } else {
        SparseElements::ordered(input)?.into_coo()?
    };
    let parts = parts(&coalesced)?;
    let values = called_with(call, parts.values())?;
    ensure!(
        values.shape() == parts.values().shape(),
        runtime,
        "{}() of a sparse tensor must give an element for each element",
        call.def.name
    );
    Tensor::from_sparse(parts.with_values(values), input.layout(), input.shape())
}

/// As [`values`], made of ops that are recorded one by one.
pub(crate) fn recorded_values(call: &Call<'_>) -> Result<Tensor> {
    let input = receiver(call.args);
    let coalesced = if is_coalesced(input)? { input.clone() } else { input.coalesce()? };
    coalesced.with_sparse_values(&called_with(call, &coalesced.values()?)?)
}

/// The result of a call's op with `values` in place of `self`.
fn called_with(call: &Call<'_>, values: &Tensor) -> Result<Tensor> {
    let others = &call.args[1..];
    check_are_numbers(call, others)?;
    let args: SmallVec<[Arg<'_>; 8]> =
        std::iter::once(Arg::Tensor(values)).chain(others.iter().copied()).collect();
    Ok(crate::autograd::call(call.def, &args)?.one())
}

/// Whether each coordinate is specified once.
fn is_coalesced(tensor: &Tensor) -> Result<bool> {
    Ok(match &*parts(tensor)? {
        Sparse::Coo(coo) => coo.is_coalesced,
        Sparse::Compressed(_) => true,
    })
}

/// The ops with a second operand take numbers only, under which zero stays zero.
fn check_are_numbers(call: &Call<'_>, others: &[Arg<'_>]) -> Result<()> {
    let mut wrong = None;
    each_tensor(others, |other| {
        if other.ndim() != 0 || other.is_sparse() {
            wrong = Some(other);
        }
    });
    let Some(other) = wrong else { return Ok(()) };
    bail!(
        not_implemented,
        "Could not run 'aten::{}' with arguments from the 'SparseCPU' backend: its second argument must be a number or have no dimensions, but has shape {} and layout {}",
        call.def.name,
        list(other.shape()),
        other.layout().spelled()
    )
}

/// `pow` by a number: as [`values`], for exponents that leave zero zero.
pub(crate) fn power(call: &Call<'_>, exponent: Scalar) -> Result<Tensor> {
    check_exponent(exponent)?;
    on_values(call)
}

/// `pow` by a number, made of ops that are recorded one by one.
pub(crate) fn recorded_power(call: &Call<'_>, exponent: Scalar) -> Result<Tensor> {
    check_exponent(exponent)?;
    recorded_values(call)
}

/// Refuses exponents that make something else than zero of zero.
fn check_exponent(exponent: Scalar) -> Result<()> {
    ensure!(
        exponent.to_f64() > 0.0,
        runtime,
        "pow: a sparse tensor can be raised to powers above 0 only, which leave zeros zero, but got {exponent:?}"
    );
    Ok(())
}

/// `add`, with the second operand times `alpha`.
pub(crate) fn add(
    cpu: Cpu,
    form: Form<'_>,
    self_: &Tensor,
    other: &Tensor,
    alpha: Scalar,
) -> Result<Tensor> {
    sum(cpu, "add", form, [self_, other], alpha)
}

/// `sub`, with the second operand times `alpha`.
pub(crate) fn subtract(
    cpu: Cpu,
    form: Form<'_>,
    self_: &Tensor,
    other: &Tensor,
    alpha: Scalar,
) -> Result<Tensor> {
    ensure!(
        !matches!(alpha, Scalar::Bool(_)),
        runtime,
        "Boolean alpha only supported for Boolean results."
    );
    sum(cpu, "sub", form, [self_, other], -alpha)
}

fn sum(
    cpu: Cpu,
    name: &str,
    form: Form<'_>,
    [a, b]: [&Tensor; 2],
    alpha: Scalar,
) -> Result<Tensor> {
    let dtype = promote::result_type(&[a, b])?;
    match (a.is_sparse(), b.is_sparse()) {
        (true, true) => {
            check_same_shape(name, a, b)?;
            both(a, b, alpha, dtype)
        }
        (false, true) if a.shape() == b.shape() => {
            let is_inplace = matches!(form, Form::Inplace);
            let target = if is_inplace {
                check_cast(dtype, a.dtype())?;
                a.clone()
            } else {
                dense_copy(a)?.to_dtype(dtype)?
            };
            add_to_dense(cpu, &target, b, alpha)?;
            Ok(target)
        }
        // Of compressed layouts, in either order.
        (true, false) if a.layout().is_compressed() && a.shape() == b.shape() => {
            let sum = scaled(&b.to_dtype(dtype)?, alpha)?;
            add_to_dense(cpu, &sum, a, Scalar::Int(1))?;
            Ok(sum)
        }
        (true, false) => bail!(
            runtime,
            "{name}(sparse, dense) is not supported. Use {name}(dense, sparse) instead."
        ),
        _ => {
            check_same_shape(name, a, b)?;
            Ok(a.clone())
        }
    }
}

/// A row-major copy times a number.
fn scaled(tensor: &Tensor, factor: Scalar) -> Result<Tensor> {
    let copy = dense_copy(tensor)?;
    if factor.is(1.0) { Ok(copy) } else { copy.times(factor) }
}

/// The sum of two sparse tensors, in the layout of the first. Coalesced if both are.
fn both(a: &Tensor, b: &Tensor, alpha: Scalar, dtype: DType) -> Result<Tensor> {
    let (first, second) = (SparseElements::of(a)?, SparseElements::of(b)?);
    if first.sparse_dim() != second.sparse_dim() && a.layout() == b.layout() {
        // A tensor that specifies nothing fits every other one.
        if second.count() == 0 {
            let values = first.values.to_dtype(dtype)?;
            return first.with_values(values).in_layout_of(a);
        }
        if first.count() == 0 {
            let values = scaled(&second.values.to_dtype(dtype)?, alpha)?;
            return second.with_values(values).in_layout_of(b);
        }
    }
    ensure!(
        first.sparse_dim() == second.sparse_dim(),
        runtime,
        "add: expected 'self' and 'other' to have same number of sparse dimensions, but got {} and {}",
        first.sparse_dim(),
        second.sparse_dim()
    );
    let is_coalesced = first.is_coalesced && second.is_coalesced;
    let other = scaled(&second.values.to_dtype(dtype)?, alpha)?;
    let values = crate::ops::shape::join::cat(&[first.values.to_dtype(dtype)?, other], 0)?;
    let joined = |(a, b): (&Vec<i64>, &Vec<i64>)| Ok(memory::collect(a.iter().chain(b).copied())?);
    let indices =
        first.indices.iter().zip(&second.indices).map(joined).collect::<Result<Vec<_>>>()?;
    let sum = SparseElements { indices, values, is_coalesced: false, ..first };
    let sum = if is_coalesced || a.layout().is_compressed() { sum.coalesced()? } else { sum };
    sum.in_layout_of(a)
}

/// Adds the specified elements, times `alpha`, to a strided tensor.
fn add_to_dense(cpu: Cpu, target: &Tensor, sparse: &Tensor, alpha: Scalar) -> Result<()> {
    let elements = SparseElements::of(sparse)?;
    let values = elements.values.to_dtype(target.dtype())?;
    let mut flat = Dims::from_slice(&[elements.sizes().iter().product()]);
    flat.extend_from_slice(elements.dense_sizes());
    let targets = list_of(&elements.linear_indices()?)?;
    if target.is_contiguous() {
        target.view(&flat)?.index_add__with(0, &targets, &values, alpha)?;
        return Ok(());
    }
    let sum = dense_copy(target)?.view(&flat)?;
    sum.index_add__with(0, &targets, &values, alpha)?;
    target.copy_data(cpu, &sum.view(target.shape())?)
}

/// `mul`: a number times the values; of two tensors the elements that are specified in each sparse one.
pub(crate) fn multiply(form: Form<'_>, self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    if matches!(form, Form::Inplace) && !self_.is_sparse() {
        // Elements that one of the tensors does not specify become zero.
        return by_dense(other, self_)?.to_dense(None);
    }
    match (self_.is_sparse(), other.is_sparse()) {
        // (The tensor is a number, of which several values may be specified.)
        (true, true) if other.ndim() == 0 && self_.ndim() > 0 => {
            by_dense(self_, &other.to_dense(None)?)
        }
        (true, true) if self_.ndim() == 0 && other.ndim() > 0 => {
            by_dense(other, &self_.to_dense(None)?)
        }
        (true, true) if do_lists_broadcast(self_, other)? => {
            // The values are computed as in the gradients of a product whose dense factor
            // broadcasts.
            let shape = broadcast_shapes(&[self_.shape(), other.shape()])?;
            multiply(form, &self_.expand(&shape, false)?, &other.expand(&shape, false)?)
        }
        (true, true) => {
            check_sparse_sizes(self_, other)?;
            common(self_, other)
        }
        (true, false) => by_dense(self_, other),
        (false, true) => by_dense(other, self_),
        (false, false) => self_.mul(other),
    }
}

/// Whether two coordinate lists have different sparse dimensions.
fn do_lists_broadcast(a: &Tensor, b: &Tensor) -> Result<bool> {
    if [a, b].iter().any(|t| t.layout() != Layout::SparseCoo) {
        return Ok(false);
    }
    let count = a.sparse_dim()? as usize;
    Ok(a.ndim() != b.ndim() || a.shape()[..count] != b.shape()[..count])
}

/// Refuses compressed tensors of different shapes. (The dense dimensions of coordinate lists broadcast.)
fn check_sparse_sizes(a: &Tensor, b: &Tensor) -> Result<()> {
    if [a, b].iter().any(|t| t.layout() != Layout::SparseCoo) {
        return check_same_shape("mul", a, b);
    }
    broadcast_shapes(&[a.shape(), b.shape()]).map(|_| ())
}

/// A sparse tensor times a strided one that broadcasts to it.
fn by_dense(sparse: &Tensor, dense: &Tensor) -> Result<Tensor> {
    if dense.ndim() == 0 {
        let parts = parts(sparse)?;
        // (The tensor's dtype, and not that of its values alone, takes part in promotion.)
        let dtype = promote::result_type(&[sparse, dense])?;
        let values = parts.values().to_dtype(dtype)?.mul(&dense.to_dtype(dtype)?)?;
        return Tensor::from_sparse(parts.with_values(values), sparse.layout(), sparse.shape());
    }
    let shape = broadcast_shapes(&[sparse.shape(), dense.shape()])?;
    if sparse.layout() == Layout::SparseCoo && shape[..] != *sparse.shape() {
        return by_dense(&sparse.expand(&shape, false)?, dense);
    }
    let wide = dense.expand(sparse.shape(), false).map_err(|error| {
        error.explained(|| {
            Error::runtime(format!(
                "mul: a dense tensor of shape {} does not broadcast to the sparse one of shape {}",
                list(dense.shape()),
                list(sparse.shape())
            ))
        })
    })?;
    let elements = SparseElements::of(sparse)?;
    let elements = if sparse.layout().is_compressed() { elements.coalesced()? } else { elements };
    let indices = super::coordinates::table(&elements.indices, elements.count())?;
    let factors = wide.values_at(&indices, false)?;
    let dtype = promote::result_type(&[sparse, dense])?;
    let values = elements.values.to_dtype(dtype)?.mul(&factors.to_dtype(dtype)?)?;
    let format = SparseFormat::of(sparse)?;
    elements.with_values(values).in_format(sparse.layout(), format)
}

/// The product of two sparse tensors of one shape: the elements that both specify.
fn common(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dtype = promote::result_type(&[a, b])?;
    let (first, second) = (SparseElements::ordered(a)?, SparseElements::ordered(b)?);
    ensure!(
        first.sparse_dim() == second.sparse_dim(),
        runtime,
        "mul: expected 'self' and 'other' to have same number of sparse dimensions, but got {} and {}",
        first.sparse_dim(),
        second.sparse_dim()
    );
    let found = second.find(&first.linear_indices()?)?;
    let (mut mine, mut others) = (Vec::new(), Vec::new());
    for (at, other) in found.iter().enumerate() {
        interrupt::check_every::<14>(at);
        if let Some(other) = other {
            memory::push(&mut mine, at)?;
            memory::push(&mut others, *other)?;
        }
    }
    let indices = taken(&first.indices, &mine)?;
    let left = first.values.index_select(0, &index_vector(&mine)?)?.to_dtype(dtype)?;
    let right = second.values.index_select(0, &index_vector(&others)?)?.to_dtype(dtype)?;
    let shape = broadcast_shapes(&[a.shape(), b.shape()])?;
    SparseElements { indices, values: left.mul(&right)?, shape, ..first }.in_layout_of(a)
}

/// `div` and related ops by a number, or a tensor without dimensions.
pub(crate) fn divide(call: &Call<'_>, other: &Tensor) -> Result<Tensor> {
    ensure!(
        !other.is_sparse() && other.ndim() == 0,
        runtime,
        "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {} for divisor)",
        list(other.shape())
    );
    on_values(call)
}
