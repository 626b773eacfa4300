//! `einsum`: sums of products written with one letter per dimension.
//!
//! The equation becomes one list of labels per operand. Operands are contracted from left to right; a label that
//! neither the output nor a later operand has is summed as soon as it occurs, so that each contraction is one batched
//! matrix product.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{Sample, Sampler};
use crate::{Dims, Result, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&EINSUM];

/// A letter, or a dimension of an ellipsis counted from its end.
type Label = u32;
const ELLIPSIS: Label = 1 << 16;

/// The row length up to which products of rows with rows are computed by elementwise products and sums, instead of by
/// many matrix products of one element each.
const LONGEST_ROW: i64 = 2048;

/// A tensor and the labels of its dimensions.
struct LabelledOperand {
    tensor: Tensor,
    labels: Vec<Label>,
}

/// The subscripts of one operand or of the output: letters, with `None` for the ellipsis.
type Term = Vec<Option<Label>>;

fn name(label: Label) -> String {
    char::from_u32(label).filter(|_| label < ELLIPSIS).map_or_else(|| "...".into(), String::from)
}

fn parse_term(text: &str, what: &str, offset: usize) -> Result<Term> {
    let (mut term, mut rest) = (Term::new(), text);
    while let Some(c) = rest.chars().next() {
        if c == '.' {
            ensure!(
                !term.contains(&None),
                runtime,
                "einsum(): found '.' for {what} for which an ellipsis was already found"
            );
            let Some(after) = rest.strip_prefix("...") else {
                bail!(runtime, "einsum(): found '.' for {what} that is not part of any ellipsis");
            };
            term.push(None);
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        if c == ' ' {
            continue;
        }
        ensure!(
            c.is_ascii_alphabetic(),
            runtime,
            "einsum(): invalid subscript given at index {} in the equation string, subscripts must be in [a-zA-Z]",
            offset + text.len() - rest.len() - 1
        );
        term.push(Some(u32::from(c)));
    }
    Ok(term)
}

/// Gives the dimensions of an operand their labels; dimensions with equal labels are replaced by their diagonal.
fn label_operand(tensor: &Tensor, term: &Term, index: usize) -> Result<LabelledOperand> {
    let (letters, rank) = (term.iter().flatten().count(), tensor.ndim());
    let has_ellipsis = term.contains(&None);
    ensure!(
        has_ellipsis || letters == rank,
        runtime,
        "einsum(): the number of subscripts in the equation ({letters}) does not match the number of dimensions ({rank}) for operand {index} and no ellipsis was given"
    );
    ensure!(
        letters <= rank,
        runtime,
        "einsum(): the number of subscripts in the equation ({letters}) is more than the number of dimensions ({rank}) for operand {index}"
    );
    let spare = (rank - letters) as u32;
    let mut all = Vec::with_capacity(rank);
    for part in term {
        match part {
            Some(label) => all.push(*label),
            None => all.extend((0..spare).rev().map(|i| ELLIPSIS + i)),
        }
    }
    let mut operand = LabelledOperand { tensor: tensor.clone(), labels: Vec::new() };
    for label in all {
        let at = operand.labels.len() as i64;
        match operand.labels.iter().position(|&l| l == label) {
            None => operand.labels.push(label),
            Some(first) => {
                let (m, n) = (operand.tensor.shape()[first], operand.tensor.shape()[at as usize]);
                ensure!(
                    m == n,
                    runtime,
                    "einsum(): subscript {} is repeated for operand {index} but the sizes don't match, {n} != {m}",
                    name(label)
                );
                let diagonal = operand.tensor.diagonal(0, first as i64, at)?;
                operand.tensor = diagonal.movedim_int(-1, first as i64)?;
            }
        }
    }
    Ok(operand)
}

/// The labels of the output. If the equation has no output, they are the ellipsis and the letters that occur once in
/// `terms`, the subscripts of the operands.
fn output_labels(
    term: Option<Term>,
    terms: &[Term],
    operands: &[LabelledOperand],
) -> Result<Vec<Label>> {
    let all: Vec<Label> = operands.iter().flat_map(|o| o.labels.iter().copied()).collect();
    let mut ellipsis: Vec<Label> = all.iter().copied().filter(|&l| l >= ELLIPSIS).collect();
    ellipsis.sort_unstable_by(|a, b| b.cmp(a));
    ellipsis.dedup();
    let Some(term) = term else {
        let named: Vec<Label> = terms.iter().flatten().copied().flatten().collect();
        let is_single = |&l: &Label| named.iter().filter(|&&m| m == l).count() == 1;
        let mut letters: Vec<Label> = named.iter().copied().filter(is_single).collect();
        letters.sort_unstable();
        return Ok([ellipsis, letters].concat());
    };
    let mut out = Vec::new();
    for part in term {
        let Some(label) = part else {
            out.extend(&ellipsis);
            continue;
        };
        ensure!(
            !out.contains(&label),
            runtime,
            "einsum(): output subscript {} appears more than once in the output",
            name(label)
        );
        ensure!(
            all.contains(&label),
            runtime,
            "einsum(): output subscript {} does not appear in the equation for any input operand",
            name(label)
        );
        out.push(label);
    }
    Ok(out)
}

/// Checks that sizes of equal labels broadcast.
fn check_sizes(operands: &[LabelledOperand]) -> Result<()> {
    let mut seen: Vec<(Label, i64)> = Vec::new();
    for (index, operand) in operands.iter().enumerate() {
        for (&label, &size) in operand.labels.iter().zip(operand.tensor.shape()) {
            match seen.iter_mut().find(|(l, _)| *l == label) {
                None => seen.push((label, size)),
                Some((_, known)) if *known == 1 => *known = size,
                Some((_, known)) => ensure!(
                    size == 1 || size == *known,
                    runtime,
                    "einsum(): subscript {} has size {size} for operand {index} which does not broadcast with previously seen size {known}",
                    name(label)
                ),
            }
        }
    }
    Ok(())
}

impl LabelledOperand {
    fn size(&self, label: Label) -> Option<i64> {
        self.labels.iter().position(|&l| l == label).map(|i| self.tensor.shape()[i])
    }
    /// Sums over the dimensions whose label `is_needed` does not accept.
    fn reduced(self, is_needed: impl Fn(Label) -> bool) -> Result<LabelledOperand> {
        let dims: Vec<i64> = (0..self.labels.len())
            .filter(|&i| !is_needed(self.labels[i]))
            .map(|i| i as i64)
            .collect();
        if dims.is_empty() {
            return Ok(self);
        }
        let labels = self.labels.iter().copied().filter(|&l| is_needed(l)).collect();
        Ok(LabelledOperand { tensor: self.tensor.sum_dim(Some(&dims), false)?, labels })
    }
    /// The operand with its dimensions in the order of three groups of labels, each flattened to one dimension.
    fn grouped(&self, groups: [&[Label]; 3], sizes: &dyn Fn(Label) -> i64) -> Result<Tensor> {
        let order: Vec<Label> = groups.concat();
        let position = |l: &Label| self.labels.iter().position(|m| m == l).unwrap_or(0) as i64;
        let dims: Vec<i64> = order.iter().map(position).collect();
        let full: Dims = order.iter().map(|&l| sizes(l)).collect();
        let shape = groups.map(|g| g.iter().map(|&l| sizes(l)).product::<i64>());
        let mut tensor = self.tensor.permute(&dims)?;
        if tensor.shape() != full.as_slice() {
            tensor = tensor.expand(&full, false)?;
        }
        tensor.reshape(&shape)
    }
}

/// Contracts two operands: multiplies them and sums over the shared labels that `is_needed` does not accept.
fn join(
    a: LabelledOperand,
    b: LabelledOperand,
    is_needed: &dyn Fn(Label) -> bool,
) -> Result<LabelledOperand> {
    let a = a.reduced(|l| is_needed(l) || b.labels.contains(&l))?;
    let b = b.reduced(|l| is_needed(l) || a.labels.contains(&l))?;
    let shared = |l: &&Label| b.labels.contains(l);
    let batch: Vec<Label> =
        a.labels.iter().filter(shared).copied().filter(|&l| is_needed(l)).collect();
    let inner: Vec<Label> =
        a.labels.iter().filter(shared).copied().filter(|&l| !is_needed(l)).collect();
    let left: Vec<Label> = a.labels.iter().copied().filter(|l| !b.labels.contains(l)).collect();
    let right: Vec<Label> = b.labels.iter().copied().filter(|l| !a.labels.contains(l)).collect();
    let size = |l: Label| match (a.size(l), b.size(l)) {
        (Some(1) | None, Some(n)) | (Some(n), _) => n,
        (None, None) => 1,
    };
    let length = |labels: &[Label]| labels.iter().map(|&l| size(l)).product::<i64>();
    let is_scalar = left.is_empty() && right.is_empty();
    let product = if is_scalar && length(&batch) > 1 && length(&inner) <= LONGEST_ROW {
        let x = a.grouped([&batch, &inner, &left], &size)?;
        let y = b.grouped([&batch, &inner, &right], &size)?;
        let product = x.mul(&y)?;
        if inner.is_empty() { product } else { product.sum_dim(Some(&[1]), false)? }
    } else {
        let x = a.grouped([&batch, &left, &inner], &size)?;
        let y = b.grouped([&batch, &inner, &right], &size)?;
        if inner.is_empty() { x.mul(&y)? } else { x.bmm(&y)? }
    };
    let labels = [batch, left, right].concat();
    let shape: Dims = labels.iter().map(|&l| size(l)).collect();
    Ok(LabelledOperand { tensor: product.reshape(&shape)?, labels })
}

/// Sums of products in Einstein's notation: `einsum("ij,jk->ik", [a, b])` is the matrix product. A letter that the
/// output does not have is summed; without `->` the output has the letters that occur once, in alphabetical
/// order; `...` stands for any further dimensions, which broadcast; a letter repeated in one operand takes its diagonal.
#[op("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor")]
impl Einsum {
    fn composite(equation: &str, tensors: &[Tensor]) -> Result<Tensor> {
        ensure!(
            !tensors.is_empty(),
            value,
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        );
        let (inputs, output) =
            equation.split_once("->").map_or((equation, None), |(i, o)| (i, Some(o)));
        let texts: Vec<&str> = inputs.split(',').collect();
        ensure!(
            texts.len() >= tensors.len(),
            runtime,
            "einsum(): more operands were provided than specified in the equation"
        );
        ensure!(
            texts.len() <= tensors.len(),
            runtime,
            "einsum(): fewer operands were provided than specified in the equation"
        );
        let (mut terms, mut operands, mut offset) = (Vec::new(), Vec::new(), 0);
        for (index, (text, tensor)) in texts.iter().zip(tensors).enumerate() {
            let term = parse_term(text, &format!("operand {index}"), offset)?;
            operands.push(label_operand(tensor, &term, index)?);
            terms.push(term);
            offset += text.len() + 1;
        }
        let output = output.map(|o| parse_term(o, "the output", inputs.len() + 2)).transpose()?;
        let wanted = output_labels(output, &terms, &operands)?;
        check_sizes(&operands)?;
        let mut rest = operands.into_iter();
        let mut result =
            rest.next().ok_or_else(|| crate::Error::runtime("einsum(): no operand"))?;
        while let Some(next) = rest.next() {
            let later: Vec<Label> =
                rest.as_slice().iter().flat_map(|o| o.labels.iter().copied()).collect();
            result = join(result, next, &|l| wanted.contains(&l) || later.contains(&l))?;
        }
        let result = result.reduced(|l| wanted.contains(&l))?;
        // bounded: by the rank.
        let order: Vec<i64> = wanted
            .iter()
            .filter_map(|l| result.labels.iter().position(|m| m == l).map(|i| i as i64))
            .collect();
        // The result is never one of the operands itself.
        let is_own = !tensors.iter().any(|t| t.is_same(&result.tensor));
        if is_own && order.iter().enumerate().all(|(i, &dim)| i as i64 == dim) {
            return Ok(result.tensor);
        }
        result.tensor.permute(&order)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |equation: &str, shapes: &[&[i64]]| {
            let tensors: Vec<Tensor> = shapes.iter().map(|shape| s.normal(shape)).collect();
            Sample::new([Value::Str(equation.into()), Value::Tensors(tensors)])
        };
        vec![
            sample("ij,jk->ik", &[&[2, 3], &[3, 4]]),
            sample("ij,j", &[&[2, 3], &[3]]),
            sample("bij,bjk->bik", &[&[2, 2, 3], &[2, 3, 2]]),
            sample("...ij,...jk->...ik", &[&[2, 2, 3], &[3, 2]]),
            sample("i,j,k->kij", &[&[2], &[3], &[2]]),
            sample("ii->i", &[&[3, 3]]),
            sample("ii", &[&[3, 3]]),
            sample("ij->ji", &[&[2, 3]]),
            sample("ij,ij->", &[&[2, 3], &[2, 1]]),
        ]
    }
}
