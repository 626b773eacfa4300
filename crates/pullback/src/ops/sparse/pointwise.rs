//! Element by element: what leaves zero zero, on the specified elements alone, and arithmetic of two tensors.

use super::places::{Form, Places, dense_copy, list_of, places_of, taken};
use super::{check_same_shape, one, parts, tensor};
use crate::dispatch::Form as CallForm;
use crate::dispatch::{Arg, OpDef, Outputs, check_cast};
use crate::error::{bail, ensure};
use crate::tensor::{Cpu, Sparse, promote, shape::list};
use crate::{DType, Dims, Error, Result, Scalar, Tensor, interrupt};
use pullback_kernels::memory;
use smallvec::SmallVec;

/// The same op on the values of the first argument. For ops that map zero to zero.
pub(crate) fn values(
    _: Cpu,
    def: &'static OpDef,
    _: CallForm<'_>,
    args: &[Arg<'_>],
) -> Result<Outputs> {
    let input = tensor(args, 0);
    let settled =
        if settled(input)? { input.clone() } else { Places::ordered(input)?.into_coo()? };
    let parts = parts(&settled)?;
    let mut args: SmallVec<[Arg<'_>; 8]> = SmallVec::from_slice(args);
    args[0] = Arg::Tensor(parts.values());
    check_others_are_numbers(def, &args)?;
    let values = crate::autograd::call(def, &args)?.one();
    ensure!(
        values.shape() == parts.values().shape(),
        runtime,
        "{}() of a sparse tensor must give an element for each element",
        def.name
    );
    one(Tensor::from_sparse(parts.with_values(values), input.layout(), input.shape())?)
}

/// The same, made of ops that are recorded one by one.
pub(crate) fn recorded_values(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let input = tensor(args, 0);
    let settled = if settled(input)? { input.clone() } else { input.coalesce()? };
    let values = settled.values()?;
    let mut args: SmallVec<[Arg<'_>; 8]> = SmallVec::from_slice(args);
    args[0] = Arg::Tensor(&values);
    check_others_are_numbers(def, &args)?;
    let values = crate::autograd::call(def, &args)?.one();
    one(settled.with_sparse_values(&values)?)
}

/// Whether each place is specified once.
fn settled(tensor: &Tensor) -> Result<bool> {
    Ok(match &*parts(tensor)? {
        Sparse::Coo(coo) => coo.is_coalesced,
        Sparse::Compressed(_) => true,
    })
}

/// The ops with a second operand take numbers only, under which zero stays zero.
fn check_others_are_numbers(def: &OpDef, args: &[Arg<'_>]) -> Result<()> {
    for arg in &args[1..] {
        if let Arg::Tensor(other) = arg {
            ensure!(
                other.ndim() == 0 && !other.is_sparse(),
                not_implemented,
                "Could not run 'aten::{}' with arguments from the 'SparseCPU' backend: its second argument must be a number or have no dimensions, but has shape {} and layout {}",
                def.name,
                list(other.shape()),
                other.layout().spelled()
            );
        }
    }
    Ok(())
}

/// `pow` by a number: as [`values`], for exponents that leave zero zero.
pub(crate) fn power(
    cpu: Cpu,
    def: &'static OpDef,
    form: CallForm<'_>,
    args: &[Arg<'_>],
) -> Result<Outputs> {
    check_exponent(args)?;
    values(cpu, def, form, args)
}

/// `pow` by a number, made of ops that are recorded one by one.
pub(crate) fn recorded_power(def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    check_exponent(args)?;
    recorded_values(def, args)
}

/// Refuses exponents that make something else than zero of zero.
fn check_exponent(args: &[Arg<'_>]) -> Result<()> {
    if let Some(Arg::Scalar(exponent)) = args.get(1) {
        ensure!(
            exponent.to_f64() > 0.0,
            runtime,
            "pow: a sparse tensor can be raised to powers above 0 only, which leave zeros zero, but got {exponent:?}"
        );
    }
    Ok(())
}

fn alpha(args: &[Arg<'_>]) -> Scalar {
    match args.get(2) {
        Some(Arg::Scalar(alpha)) => *alpha,
        _ => Scalar::Int(1),
    }
}

/// `add`, with the second operand times `alpha`.
pub(crate) fn add(
    cpu: Cpu,
    _: &'static OpDef,
    form: CallForm<'_>,
    args: &[Arg<'_>],
) -> Result<Outputs> {
    sum(cpu, "add", form, tensor(args, 0), tensor(args, 1), alpha(args))
}

/// `sub`, with the second operand times `alpha`.
pub(crate) fn subtract(
    cpu: Cpu,
    _: &'static OpDef,
    form: CallForm<'_>,
    args: &[Arg<'_>],
) -> Result<Outputs> {
    let alpha = match alpha(args) {
        Scalar::Bool(_) => bail!(runtime, "Boolean alpha only supported for Boolean results."),
        number => -number,
    };
    sum(cpu, "sub", form, tensor(args, 0), tensor(args, 1), alpha)
}

fn sum(
    cpu: Cpu,
    name: &str,
    form: CallForm<'_>,
    a: &Tensor,
    b: &Tensor,
    alpha: Scalar,
) -> Result<Outputs> {
    let dtype = promote::result_type(&[a, b]);
    match (a.is_sparse(), b.is_sparse()) {
        (true, true) => {
            check_same_shape(name, a, b)?;
            one(both(a, b, alpha, dtype)?)
        }
        (false, true) if a.shape() == b.shape() => {
            let is_inplace = matches!(form, CallForm::Inplace);
            let target = if is_inplace {
                check_cast(dtype, a.dtype())?;
                a.clone()
            } else {
                dense_copy(a)?.to_dtype(dtype)?
            };
            add_to_dense(cpu, &target, b, alpha)?;
            one(target)
        }
        // Of compressed layouts, in either order.
        (true, false) if a.layout().is_compressed() && a.shape() == b.shape() => {
            let sum = scaled(&b.to_dtype(dtype)?, alpha)?;
            add_to_dense(cpu, &sum, a, Scalar::Int(1))?;
            one(sum)
        }
        (true, false) => bail!(
            runtime,
            "{name}(sparse, dense) is not supported. Use {name}(dense, sparse) instead."
        ),
        _ => {
            check_same_shape(name, a, b)?;
            one(a.clone())
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
    let (first, second) = (Places::of(a)?, Places::of(b)?);
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
    let sum = Places { indices, values, is_coalesced: false, ..first };
    let sum = if is_coalesced || a.layout().is_compressed() { sum.coalesced()? } else { sum };
    sum.in_layout_of(a)
}

/// Adds the specified elements, times `alpha`, to a strided tensor.
fn add_to_dense(cpu: Cpu, target: &Tensor, sparse: &Tensor, alpha: Scalar) -> Result<()> {
    let places = Places::of(sparse)?;
    let values = places.values.to_dtype(target.dtype())?;
    let mut flat = Dims::from_slice(&[places.sizes().iter().product()]);
    flat.extend_from_slice(places.dense_sizes());
    let targets = list_of(&places.numbers()?)?;
    if target.is_contiguous() {
        target.view(&flat)?.index_add__with(0, &targets, &values, alpha)?;
        return Ok(());
    }
    let sum = dense_copy(target)?.view(&flat)?;
    sum.index_add__with(0, &targets, &values, alpha)?;
    target.copy_data(cpu, &sum.view(target.shape())?)
}

/// `mul`: a number times the values; of two tensors the elements that are specified in each sparse one.
pub(crate) fn multiply(
    _: Cpu,
    _: &'static OpDef,
    form: CallForm<'_>,
    args: &[Arg<'_>],
) -> Result<Outputs> {
    let (a, b) = (tensor(args, 0), tensor(args, 1));
    if matches!(form, CallForm::Inplace) && !a.is_sparse() {
        // What is not specified becomes zero.
        return one(by_dense(b, a)?.to_dense(None)?);
    }
    match (a.is_sparse(), b.is_sparse()) {
        (true, true) => {
            check_same_shape("mul", a, b)?;
            one(common(a, b)?)
        }
        (true, false) => one(by_dense(a, b)?),
        (false, true) => one(by_dense(b, a)?),
        (false, false) => one(a.mul(b)?),
    }
}

/// A sparse tensor times a strided one that broadcasts to it.
fn by_dense(sparse: &Tensor, dense: &Tensor) -> Result<Tensor> {
    if dense.ndim() == 0 {
        let parts = parts(sparse)?;
        // (The tensor's dtype, and not that of its values alone, takes part in promotion.)
        let dtype = promote::result_type(&[sparse, dense]);
        let values = parts.values().to_dtype(dtype)?.mul(&dense.to_dtype(dtype)?)?;
        return Tensor::from_sparse(parts.with_values(values), sparse.layout(), sparse.shape());
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
    let places = Places::of(sparse)?;
    let places = if sparse.layout().is_compressed() { places.coalesced()? } else { places };
    let indices = super::places::table(&places.indices, places.count())?;
    let factors = wide.values_at(&indices, false)?;
    let dtype = promote::result_type(&[sparse, dense]);
    let values = places.values.to_dtype(dtype)?.mul(&factors.to_dtype(dtype)?)?;
    let form = Form::of(sparse)?;
    places.with_values(values).in_form(sparse.layout(), form)
}

/// The product of two sparse tensors of one shape: of what both specify.
fn common(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dtype = promote::result_type(&[a, b]);
    let (first, second) = (Places::ordered(a)?, Places::ordered(b)?);
    ensure!(
        first.sparse_dim() == second.sparse_dim(),
        runtime,
        "mul: expected 'self' and 'other' to have same number of sparse dimensions, but got {} and {}",
        first.sparse_dim(),
        second.sparse_dim()
    );
    let found = second.find(&first.numbers()?)?;
    let (mut mine, mut others) = (Vec::new(), Vec::new());
    for (at, other) in found.iter().enumerate() {
        interrupt::check_every::<14>(at);
        if let Some(other) = other {
            memory::push(&mut mine, at)?;
            memory::push(&mut others, *other)?;
        }
    }
    let indices = taken(&first.indices, &mine)?;
    let left = first.values.index_select(0, &places_of(&mine)?)?.to_dtype(dtype)?;
    let right = second.values.index_select(0, &places_of(&others)?)?.to_dtype(dtype)?;
    Places { indices, values: left.mul(&right)?, ..first }.in_layout_of(a)
}

/// `div` and its kin by a number, or a tensor without dimensions.
pub(crate) fn divide(
    cpu: Cpu,
    def: &'static OpDef,
    form: CallForm<'_>,
    args: &[Arg<'_>],
) -> Result<Outputs> {
    let divisor = tensor(args, 1);
    ensure!(
        !divisor.is_sparse() && divisor.ndim() == 0,
        runtime,
        "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {} for divisor)",
        list(divisor.shape())
    );
    values(cpu, def, form, args)
}
