//! Sparse tensors: an op gives what it gives for the dense tensor of the same elements, and so do its gradients.

use super::{differs, for_all, is_unset, replace, tensor_slots, text};
use pullback::autograd::{BackwardOptions, call, call_inplace, grad};
use pullback::dispatch::{Arg, OpDef, Traits, Value};
use pullback::gradcheck::Sample;
use pullback::{DType, ErrorKind, Layout, Result, Tensor};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Slots of a sample that hold tensors, by where they stand.
type Slots = Vec<(usize, usize, Tensor)>;

/// Whether an op is about sparse tensors, which samples are not: conversions, accessors, products of its own.
pub(super) fn is_for_sparse(def: &OpDef) -> bool {
    FOR_SPARSE.contains(&def.name)
}

const FOR_SPARSE: &[&str] = &[
    "_coalesce",
    "_coalesced_",
    "_indices",
    "_nnz",
    "_sparse_compressed_tensor_unsafe",
    "_sparse_coo_tensor_unsafe",
    "_sparse_log_softmax",
    "_sparse_mm",
    "_sparse_mm.reduce",
    "_sparse_softmax",
    "_sparse_solve_triangular",
    "_sparse_sum",
    "_to_dense",
    "_to_sparse",
    "_values",
    "_values_at",
    "ccol_indices",
    "coalesce",
    "col_indices",
    "crow_indices",
    "dense_dim",
    "hspmm",
    "indices",
    "is_coalesced",
    "row_indices",
    "smm",
    "sparse_coo_tensor",
    "sparse_dim",
    "sparse_mask",
    "sparse_resize_",
    "sparse_resize_and_clear_",
    "sparse_sampled_addmm",
    "sspaddmm",
    "to_sparse",
    "to_sparse_bsc",
    "to_sparse_bsr",
    "to_sparse_csc",
    "to_sparse_csr",
    "values",
];

/// Ops that take a sparse tensor beside a number, or another of its shape, which no sample has: `tests/sparse.rs` does.
const WITH_NUMBERS: &[&str] = &["copy_", "div.Tensor", "floor_divide"];

/// Ops that write a number in the places that a compressed tensor specifies, where they write it everywhere in a dense one:
/// `tests/sparse.rs` has them.
const IN_PLACES: &[&str] = &["ones_like", "full_like"];

/// The layouts a tensor can be given in, with the number of its sparse dimensions.
fn layouts(tensor: &Tensor) -> Vec<(Layout, i64)> {
    let rank = tensor.ndim() as i64;
    let mut all: Vec<_> = (1..=rank).rev().map(|dim| (Layout::SparseCoo, dim)).collect();
    if rank == 2 {
        all.extend([(Layout::SparseCsr, 2), (Layout::SparseCsc, 2)]);
    }
    all
}

fn in_layout(tensor: &Tensor, (layout, sparse_dim): (Layout, i64)) -> Result<Tensor> {
    if layout == Layout::SparseCoo {
        tensor.to_sparse_dim(sparse_dim)
    } else {
        tensor.to_sparse_with(Some(layout), None, None)
    }
}

/// Every second element zero.
fn thinned(tensor: &Tensor) -> Result<Tensor> {
    let count = tensor.numel();
    let keep: Vec<i64> = (0..count).map(|at| i64::from(at % 2 == 0)).collect();
    let drop = Tensor::from_slice(&keep, tensor.shape())?.eq(&Tensor::wrapped(0)?)?;
    tensor.masked_fill(&drop, 0.into())
}

fn is_differentiable(tensor: &Tensor) -> bool {
    tensor.dtype().is_differentiable() && tensor.ndim() > 0
}

/// Each way of giving some of the tensors in sparse layouts: all that can be, or one of them.
fn choices(slots: &Slots) -> Vec<Vec<Option<(Layout, i64)>>> {
    let can: Vec<usize> = (0..slots.len()).filter(|&at| is_differentiable(&slots[at].2)).collect();
    let mut all = Vec::new();
    let Some(&first) = can.first() else { return all };
    for layout in layouts(&slots[first].2) {
        let fits = |at: usize| layouts(&slots[at].2).contains(&layout);
        let together: Vec<_> =
            (0..slots.len()).map(|at| (can.contains(&at) && fits(at)).then_some(layout)).collect();
        all.push(together);
        for &one in can.iter().filter(|&&at| fits(at) && can.len() > 1) {
            all.push((0..slots.len()).map(|at| (at == one).then_some(layout)).collect());
        }
    }
    all
}

fn as_dense(outputs: &[Tensor]) -> Result<Vec<Tensor>> {
    outputs.iter().map(|output| output.to_dense(None)).collect()
}

/// What is refused, and not wrong.
fn is_refused(error: &pullback::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotImplemented | ErrorKind::Runtime)
}

fn run(def: &'static OpDef, values: &[Value]) -> Result<Vec<Tensor>> {
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    call(def, &args).map(|outputs| outputs.as_slice().to_vec())
}

#[test]
fn sparse_arguments_give_what_dense_ones_give() {
    let worked = RefCell::new(BTreeSet::new());
    let tried = RefCell::new(BTreeSet::new());
    for dtype in [DType::F64, DType::C128] {
        for_all("sparse equals dense", dtype, |def, sample| {
            // (What `empty_like` and its kind give means nothing.)
            let is_left_out = def.is(Traits::RANDOM) || is_unset(def);
            let is_left_out = is_left_out || IN_PLACES.contains(&def.name);
            if def.kernels.sparse_coo.is_none() || is_left_out {
                return Ok(());
            }
            tried.borrow_mut().insert(def.full_name());
            if check(def, sample)? {
                worked.borrow_mut().insert(def.full_name());
            }
            Ok(())
        });
    }
    let refused: Vec<_> = tried.borrow().difference(&worked.borrow()).cloned().collect();
    let refused: Vec<_> = refused.iter().filter(|name| !WITH_NUMBERS.contains(&&***name)).collect();
    assert!(refused.is_empty(), "no sample worked with sparse arguments: {refused:?}");
}

/// Compares; says whether sparse arguments were taken in any way.
fn check(def: &'static OpDef, sample: &Sample) -> std::result::Result<bool, String> {
    let values = sample.values(def).map_err(text)?;
    let mut slots = tensor_slots(&values);
    for slot in &mut slots {
        if is_differentiable(&slot.2) {
            slot.2 = thinned(&slot.2).map_err(text)?;
        }
    }
    let mut worked = false;
    for choice in choices(&slots) {
        let at = || format!("with layouts {choice:?}");
        match one(def, &values, &slots, &choice) {
            Ok(Ok(())) => worked = true,
            Ok(Err(bad)) => return Err(format!("{}: {bad}", at())),
            Err(error) if is_refused(&error) => {}
            Err(error) => return Err(format!("{}: {}", at(), text(error))),
        }
    }
    Ok(worked)
}

/// A call with sparse arguments and one with dense ones, and their gradients.
fn one(
    def: &'static OpDef,
    values: &[Value],
    slots: &Slots,
    choice: &[Option<(Layout, i64)>],
) -> Result<std::result::Result<(), String>> {
    let dense: Vec<Tensor> = slots.iter().map(|slot| slot.2.clone()).collect();
    let sparse = dense
        .iter()
        .zip(choice)
        .map(|(tensor, layout)| layout.map_or_else(|| Ok(tensor.clone()), |l| in_layout(tensor, l)))
        .collect::<Result<Vec<_>>>()?;
    if def.is(Traits::INPLACE_ONLY) {
        let of = |tensors: &[Tensor]| -> Result<Vec<Tensor>> {
            let copies =
                tensors.iter().map(|t| t.clone_tensor(None)).collect::<Result<Vec<_>>>()?;
            as_dense(&run(def, &replace(values, slots, &copies))?)
        };
        return Ok(same(&of(&sparse)?, &of(&dense)?));
    }
    for tensor in dense.iter().chain(&sparse).filter(|t| is_differentiable(t)) {
        tensor.requires_grad_(true)?;
    }
    let got = run(def, &replace(values, slots, &sparse))?;
    let expected = run(def, &replace(values, slots, &dense))?;
    if let Err(bad) = same(&as_dense(&got)?, &expected) {
        return Ok(Err(bad));
    }
    if let Some(bad) = check_inplace(def, values, slots, &sparse, &expected)? {
        return Ok(Err(format!("in place: {bad}")));
    }
    if def.vjp.is_empty() || !got.iter().any(Tensor::requires_grad) {
        return Ok(Ok(()));
    }
    let theirs = gradients(&expected, &dense)?;
    let ours = match gradients(&as_dense(&got)?, &sparse) {
        Ok(ours) => ours,
        // A rule may need an op that sparse tensors do not have.
        Err(error) if error.kind() == ErrorKind::NotImplemented => return Ok(Ok(())),
        Err(error) => return Ok(Err(format!("gradient: {}", text(error)))),
    };
    Ok(same_where_specified(&ours, &theirs, &sparse))
}

fn same(got: &[Tensor], expected: &[Tensor]) -> std::result::Result<(), String> {
    super::all_equal(got, expected, 1e-12)
}

/// The in-place form, if there is one and it takes these arguments.
fn check_inplace(
    def: &'static OpDef,
    values: &[Value],
    slots: &Slots,
    sparse: &[Tensor],
    expected: &[Tensor],
) -> Result<Option<String>> {
    if !def.is(Traits::INPLACE) || slots.first().is_none_or(|slot| (slot.0, slot.1) != (0, 0)) {
        return Ok(None);
    }
    let copies = sparse
        .iter()
        .map(|tensor| tensor.detach()?.clone_tensor(None))
        .collect::<Result<Vec<_>>>()?;
    let values = replace(values, slots, &copies);
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    match call_inplace(def, &args) {
        // (`abs_` keeps the dtype.)
        Ok(written) if written.dtype() != expected[0].dtype() => Ok(None),
        Ok(written) => Ok(differs(&written.to_dense(None)?, &expected[0].detach()?, 1e-12)),
        Err(error) if is_refused(&error) => Ok(None),
        Err(error) => Ok(Some(text(error))),
    }
}

/// Gradients of a weighted sum of the outputs.
fn gradients(outputs: &[Tensor], inputs: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
    let outputs: Vec<&Tensor> = outputs.iter().filter(|t| t.requires_grad()).collect();
    let inputs: Vec<&Tensor> = inputs.iter().filter(|t| t.requires_grad()).collect();
    let weight = |output: &&Tensor| -> Result<Option<Tensor>> {
        let weights: Vec<f64> = (0..output.numel()).map(|n| 1.0 + 0.25 * n as f64).collect();
        Tensor::from_slice(&weights, output.shape())?.to_dtype(output.dtype()).map(Some)
    };
    let weights = outputs.iter().map(weight).collect::<Result<Vec<_>>>()?;
    let weights: Vec<Option<&Tensor>> = weights.iter().map(Option::as_ref).collect();
    grad(
        &outputs,
        &inputs,
        &weights,
        BackwardOptions { allow_unused: true, ..BackwardOptions::default() },
    )
}

/// Compares gradients where the inputs specify elements; elsewhere those of sparse inputs may be left out.
fn same_where_specified(
    ours: &[Option<Tensor>],
    theirs: &[Option<Tensor>],
    inputs: &[Tensor],
) -> std::result::Result<(), String> {
    let inputs = inputs.iter().filter(|t| t.requires_grad());
    for (at, ((ours, theirs), input)) in ours.iter().zip(theirs).zip(inputs).enumerate() {
        let compared = || -> Result<Option<String>> {
            let zeros = || input.detach()?.to_dense(None)?.zeros_like();
            let of = |g: &Option<Tensor>| g.as_ref().map_or_else(zeros, |g| g.to_dense(None));
            let (mut ours, mut theirs) = (of(ours)?, of(theirs)?);
            if input.is_sparse() {
                let other = input.detach()?.to_dense(None)?.eq(&Tensor::wrapped(0)?)?;
                ours = ours.masked_fill(&other, 0.into())?;
                theirs = theirs.masked_fill(&other, 0.into())?;
            }
            Ok(differs(&ours, &theirs, 1e-10))
        };
        if let Some(bad) = compared().map_err(text)? {
            return Err(format!("gradient {at}: {bad}"));
        }
    }
    Ok(())
}
