//! `scatter_reduce`, and `index_reduce` of whole slices: elements joined with what is at their indices, and the gradients
//! of each way to join.

use super::scatter::{scatter_sample, scatter_tensor, scattered_tensor, spread_to, zero_at};
use super::slices::check_slices;
use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::any_all::{all_examples, is_any_true};
use crate::tensor::Cpu;
use crate::tensor::shape::wrap_dim;
use crate::{DType, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::index::ScatterReduction;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&SCATTER_REDUCE, &INDEX_REDUCE];

/// The reduction that a word names.
fn way(reduce: &str) -> Result<ScatterReduction> {
    Ok(match reduce {
        "sum" => ScatterReduction::Sum,
        "prod" => ScatterReduction::Prod,
        "mean" => ScatterReduction::Mean,
        "amax" => ScatterReduction::Amax,
        "amin" => ScatterReduction::Amin,
        _ => bail!(
            runtime,
            "reduce argument must be either sum, prod, mean, amax or amin, got {reduce}."
        ),
    })
}

/// Joins the elements of `src` at the indices `index` along `dim`: `reduce` is "sum", "prod", "mean", "amax" or "amin";
/// what is there takes part if `include_self`. Ties of "amax" and "amin" share the gradient evenly. Where factors of a
/// product are zero its derivatives are right up to the fourth.
#[op(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
    inplace = method,
    exact_out,
    not_differentiable(index), batch = scatter
)]
impl ScatterReduce {
    fn meta(
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        reduce: &str,
    ) -> Result<TensorSpec> {
        ensure!(
            reduce != "mean" || self_.dtype() != DType::Bool,
            not_implemented,
            "\"scatter_gather_tensor_cpu_reduce_mean\" not implemented for 'Bool'"
        );
        way(reduce)?;
        scattered_tensor("scatter_reduce", self_, dim, index, src)
    }
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        reduce: &str,
        include_self: bool,
    ) -> Result<()> {
        scatter_tensor(cpu, self_, dim, index, src, (way(reduce)?, include_self))
    }
    fn vjp(
        grad: &Tensor,
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        reduce: &str,
        include_self: bool,
        result: &Tensor,
    ) -> Result<[Option<Tensor>; 2]> {
        let (mut own, mut theirs) =
            reduce_grads(grad, self_, (dim, index), src, (reduce, include_self), result)?;
        if !include_self {
            own = zero_at(&own, dim, index)?;
        }
        theirs = spread_to(&theirs, src.shape())?;
        Ok([Some(own), Some(theirs)])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |reduce: &str, include: bool| {
            let (_, index, _) = scatter_sample(s);
            Sample::new([
                s.distinct(&[3, 3]).into(),
                Value::Int(0),
                index.into(),
                s.positive(&[2, 3]).into(),
                reduce.into(),
            ])
            .with("include_self", include)
        };
        let reduces: &[&str] =
            if s.dtype.is_complex() { &["sum"] } else { &["sum", "prod", "mean", "amax", "amin"] };
        let mut out: Vec<Sample> =
            reduces.iter().flat_map(|r| [sample(r, true), sample(r, false)]).collect();
        out.extend(zero_samples(s));
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let index = Tensor::from_slice(&[0_i64], &[1]).expect("one number");
        let (x, src) = (s.bools(&[1]).into(), s.bools(&[1]).into());
        let sample = Sample::new([x, Value::Int(0), index.into(), src, "mean".into()]);
        let phrase = "\"scatter_gather_tensor_cpu_reduce_mean\" not implemented for 'Bool'";
        vec![InvalidSample::new(sample, ErrorKind::NotImplemented, phrase)]
    }
}

/// The index of slices along `dim` as an index of each of their elements.
fn spread_index(index: &Tensor, dim: i64, shape: &[i64]) -> Result<Tensor> {
    if shape.is_empty() {
        return index.reshape(&[]);
    }
    let mut ones = crate::Dims::from_elem(1, shape.len());
    ones[wrap_dim(dim, shape.len())?] = -1;
    index.to_dtype(DType::I64)?.reshape(&ones)?.expand(shape, false)
}

/// Joins the slices of `source` with those at the indices `index` along `dim`: `reduce` is "prod", "mean", "amax" or "amin";
/// what is there takes part if `include_self`. Gradients are those of `scatter_reduce`.
#[op(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    inplace = method,
    exact_out,
    not_differentiable(index), batch = slices(self, dim, index)
)]
impl IndexReduce {
    fn meta(
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        reduce: &str,
    ) -> Result<TensorSpec> {
        ensure!(
            matches!(reduce, "prod" | "mean" | "amax" | "amin"),
            runtime,
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
        );
        check_slices("index_reduce", self_, dim, index, source)?;
        // (Of booleans there are only products of slices, as in PyTorch: where all are true.)
        ensure!(
            self_.dtype() != DType::Bool || (reduce == "prod" && self_.ndim() > 1),
            not_implemented,
            "\"index_func_\" not implemented for 'Bool'"
        );
        Ok(TensorSpec::like(self_))
    }
    fn cpu_(
        cpu: Cpu,
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        reduce: &str,
        include_self: bool,
    ) -> Result<()> {
        let at = wrap_dim(dim, self_.ndim())?;
        let size = self_.shape().get(at).copied().unwrap_or(1);
        let rows = index.to_vec::<i64>()?;
        if let Some(row) = rows.iter().find(|row| !(0..size).contains(*row)) {
            bail!(index, "index {row} is out of bounds for dimension {at} with size {size}");
        }
        let positions = spread_index(index, dim, source.shape())?;
        scatter_tensor(cpu, self_, dim, &positions, source, (way(reduce)?, include_self))
    }
    fn vjp(
        grad: &Tensor,
        self_: &Tensor,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        reduce: &str,
        include_self: bool,
        result: &Tensor,
    ) -> Result<[Option<Tensor>; 2]> {
        let positions = spread_index(index, dim, source.shape())?;
        let (mut own, theirs) =
            reduce_grads(grad, self_, (dim, &positions), source, (reduce, include_self), result)?;
        if !include_self {
            own = zero_at(&own, dim, &positions)?;
        }
        Ok([Some(own), Some(theirs)])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |reduce: &str, dim: i64, include: bool| {
            let source = if dim == 0 { [4, 2] } else { [3, 4] };
            Sample::new([
                s.distinct(&[3, 2]).into(),
                Value::Int(dim),
                s.integers(&[4], 0, [3, 2][dim as usize]).into(),
                s.positive(&source).into(),
                reduce.into(),
            ])
            .with("include_self", include)
        };
        if s.dtype.is_complex() {
            return Vec::new();
        }
        ["prod", "mean", "amax", "amin"]
            .iter()
            .flat_map(|r| [sample(r, 0, true), sample(r, 0, false), sample(r, 1, true)])
            .collect()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let index = Tensor::from_slice(&[0_i64], &[1]).expect("one number");
        let sample = Sample::new([
            s.normal(&[2]).into(),
            Value::Int(0),
            index.into(),
            s.normal(&[1]).into(),
            "sum".into(),
        ]);
        let phrase = "Expected reduce to be one of prod, mean, amax or amin";
        let far = Tensor::from_slice(&[5_i64], &[1]).expect("one number");
        let (x, source) = (s.normal(&[2]).into(), s.normal(&[1]).into());
        let far = Sample::new([x, Value::Int(0), far.into(), source, "amax".into()]);
        vec![
            InvalidSample::new(sample, ErrorKind::Runtime, phrase),
            InvalidSample::new(
                far,
                ErrorKind::Index,
                "index 5 is out of bounds for dimension 0 with size 2",
            ),
        ]
    }
}

/// Products whose groups have no, one, two and three factors that are zero, in `self`, in `src` and in both.
fn zero_samples(s: &Sampler) -> Vec<Sample> {
    let keep = |numbers: &[i64], t: Tensor| {
        let kept = Tensor::from_slice(numbers, t.shape()).and_then(|k| k.copied(t.dtype()));
        kept.and_then(|k| t.mul(&k)).expect("samples are small")
    };
    let sample = |include: bool| {
        let own = keep(&[1, 0, 1, 0, 1, 1], s.away_from_zero(&[2, 3]));
        let theirs = keep(&[1, 0, 1, 0, 1, 1, 1, 0, 0, 1, 0, 0], s.away_from_zero(&[2, 6]));
        let index = [0_i64, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2];
        let index = Tensor::from_slice(&index, &[2, 6]).expect("samples are small");
        Sample::new([own.into(), Value::Int(1), index.into(), theirs.into(), "prod".into()])
            .with("include_self", include)
    };
    vec![sample(true), sample(false)]
}

/// Gradients of `scatter_reduce` for `self` (before indices without self are cleared) and for what was read of `src`.
fn reduce_grads(
    grad: &Tensor,
    self_: &Tensor,
    (dim, index): (i64, &Tensor),
    src: &Tensor,
    (reduce, include_self): (&str, bool),
    result: &Tensor,
) -> Result<(Tensor, Tensor)> {
    // What was read of `src`: the part of the shape of the index.
    let mut read = src.clone();
    for (d, &n) in index.shape().iter().enumerate() {
        read = read.narrow(d as i64, 0, n)?;
    }
    match reduce {
        "sum" => Ok((grad.clone(), grad.gather(dim, index)?)),
        "mean" => {
            let ones = TensorSpec::beside(grad, index.shape()).full(Scalar::Int(1))?;
            let start = TensorSpec::like(grad).full(Scalar::Int(1))?;
            let start = if include_self { start } else { zero_at(&start, dim, index)? };
            let count = start.scatter_add(dim, index, &ones)?;
            let share = grad.div(&count)?;
            Ok((share.clone(), share.gather(dim, index)?))
        }
        "prod" => product_grads(grad, self_, (dim, index), &read, include_self, result),
        _ => {
            let won = self_.eq(result)?.to_dtype(grad.dtype())?;
            let start = if include_self { won.clone() } else { zero_at(&won, dim, index)? };
            let taken = read.eq(&result.gather(dim, index)?)?.to_dtype(grad.dtype())?;
            let count = start.scatter_add(dim, index, &taken)?;
            let share = grad.div(&count)?;
            Ok((share.mul(&won)?, share.gather(dim, index)?.mul(&taken)?))
        }
    }
}

/// Orders of derivatives that the gradient of a product gives right where factors are zero.
const ZEROS: i64 = 4;

/// The gradients of a product by indices: each factor's is the product of the others. Without zeros that is the result
/// over the factor. Else the product at an index is P Z, P over the factors that are not zero and Z over the n that are. Z is
/// their elementary symmetric polynomial `e_n`, which Newton's identities give from sums of powers, so that it can be
/// derived again though its value is zero; without factor x it is `w_(n-1)`, where `w_k = e_k - x w_(k-1)`. With
/// more than [`ZEROS`] zeros it vanishes together with that many derivatives.
fn product_grads(
    grad: &Tensor,
    self_: &Tensor,
    (dim, index): (i64, &Tensor),
    read: &Tensor,
    include_self: bool,
    result: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let zero = Tensor::wrapped(0)?;
    let (own_zeros, their_zeros) = (self_.eq(&zero)?, read.eq(&zero)?);
    let part = |slope: &Tensor, grad: &Tensor| grad.mul(&slope.conj()?);
    if !(is_any_true(&their_zeros)? || include_self && is_any_true(&own_zeros)?) {
        let theirs = part(&result.gather(dim, index)?.div(read)?, &grad.gather(dim, index)?)?;
        let own = if include_self { part(&result.div(self_)?, grad)? } else { grad.clone() };
        return Ok((own, theirs));
    }
    let add = |own: &Tensor, theirs: &Tensor| -> Result<Tensor> {
        let start = if include_self { own.clone() } else { own.zeros_like()? };
        start.scatter_add(dim, index, theirs)
    };
    let dtype = grad.dtype();
    let zeros = add(&own_zeros.to_dtype(DType::I64)?, &their_zeros.to_dtype(DType::I64)?)?;
    let most = all_examples(&zeros.detach()?).max()?.item()?.to_i64().min(ZEROS);
    // P, with ones for the factors that are zero; and the values of those, with zeros for the others.
    let (own_rest, their_rest) = (
        self_.masked_fill(&own_zeros, Scalar::Int(1))?,
        read.masked_fill(&their_zeros, Scalar::Int(1))?,
    );
    let start = if include_self { own_rest.clone() } else { own_rest.zeros_like()?.plus(1)? };
    let rest = start.scatter_reduce(dim, index, &their_rest, "prod")?;
    let (own_values, their_values) =
        (self_.mul(&own_zeros.to_dtype(dtype)?)?, read.mul(&their_zeros.to_dtype(dtype)?)?);
    let mut sums = Vec::new();
    let mut symmetric = vec![rest.zeros_like()?.plus(1)?];
    for k in 1..=most {
        let power = Scalar::Int(k);
        sums.push(add(&own_values.pow_scalar(power)?, &their_values.pow_scalar(power)?)?);
        // k e_k = e_(k-1) p_1 - e_(k-2) p_2 + ...
        let mut next = rest.zeros_like()?;
        for (i, sum) in sums.iter().enumerate() {
            let term = symmetric[k as usize - 1 - i].mul(sum)?;
            next = if i % 2 == 0 { next.add(&term)? } else { next.sub(&term)? };
        }
        symmetric.push(next.over(k)?);
    }
    let is = |zeros: &Tensor, k: i64| zeros.eq(&Tensor::wrapped(k)?)?.to_dtype(dtype);
    let mut all = rest.zeros_like()?;
    for (k, e) in symmetric.iter().enumerate() {
        all = all.add(&e.mul(&is(&zeros, k as i64)?)?)?;
    }
    let all = all.mul(&rest)?;
    let slope =
        |x: &Tensor, x_rest: &Tensor, is_zero: &Tensor, at: &dyn Fn(&Tensor) -> Result<Tensor>| {
            let (zeros, mut without) = (at(&zeros)?, x.zeros_like()?.plus(1)?);
            let mut others = x.zeros_like()?;
            for k in 1..=most {
                others = others.add(&without.mul(&is(&zeros, k)?)?)?;
                without = at(&symmetric[k as usize])?.sub(&x.mul(&without)?)?;
            }
            is_zero.where_self(&others.mul(&at(&rest)?)?, &at(&all)?.div(x_rest)?)
        };
    let gathered = |t: &Tensor| t.gather(dim, index);
    let theirs = slope(read, &their_rest, &their_zeros, &gathered)?;
    let theirs = part(&theirs, &grad.gather(dim, index)?)?;
    if !include_self {
        return Ok((grad.clone(), theirs));
    }
    let own = slope(self_, &own_rest, &own_zeros, &|t: &Tensor| Ok(t.clone()))?;
    Ok((part(&own, grad)?, theirs))
}
