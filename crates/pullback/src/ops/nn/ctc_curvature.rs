//! The second derivative of the connectionist temporal classification loss.
//!
//! The first one is the probability to be in a class at a step, of all alignments with the targets (Graves et al. 2006, section
//! 4.1). Its derivative in a direction follows the forward and backward recursions, each with its tangent, in log space. Made
//! of ops, so that it has derivatives of every order; PyTorch has none.

use crate::ops::shape::join::stack;
use crate::{DType, Result, Scalar, Tensor};
use pullback_kernels::memory;

/// A state that is not reached, in log space: far below every log-probability, and finite, so that the difference of two is
/// a number.
const NEVER: f64 = -1e30;

/// The states of the examples: labels with blanks between them and at both ends.
pub(super) struct LabelStates {
    /// The class of each state (N, S).
    classes: Tensor,
    /// 0 where the state may follow that two before it, else `NEVER`.
    skips: Tensor,
    /// 0 where a sequence may end, else `NEVER`.
    ends: Tensor,
    /// The number of steps of each example, (N, 1).
    steps: Tensor,
}

impl LabelStates {
    /// The states for targets of these lengths, which are (N, S), or one after the other. They are
    /// computed by ops alone, because targets may be batched.
    pub(super) fn new(
        targets: &Tensor,
        input_lengths: &[i64],
        target_lengths: &[i64],
        blank: i64,
    ) -> Result<LabelStates> {
        let count = target_lengths.len() as i64;
        let longest = target_lengths.iter().copied().max().unwrap_or(0);
        let beside = Tensor::options().device(targets.device());
        // (The lengths are numbers of the call, so that they have to be copied into a tensor.)
        let column =
            |lengths: &[i64]| Tensor::from_slice(lengths, &[count, 1])?.brought_to(targets);
        let lengths = column(target_lengths)?;
        let places = beside.arange(0_i64, longest)?;
        let nevers = |width: i64| beside.clone().dtype(DType::F64).full([count, width], NEVER);
        let is_beyond = places.ge(&lengths)?;
        let labels = rows(targets, target_lengths, longest)?;
        let labels = labels.masked_fill(&is_beyond, Scalar::Int(blank))?;
        let never = nevers(longest)?;
        // A label may follow the one before it without a blank where it is another.
        let repeats = match longest {
            0 => labels.eq(&labels)?,
            _ => labels.eq(&labels
                .narrow(1, 0, longest - 1)?
                .constant_pad_nd(&[1, 0], Scalar::Int(-1))?)?,
        };
        let is_first = places.eq(&Tensor::wrapped(0)?)?;
        let skips = never
            .zeros_like()?
            .masked_fill(&repeats.logical_or(&is_first)?, Scalar::Float(NEVER))?;
        let states = beside.arange(0_i64, 2 * longest + 1)?;
        let (last, own) = (lengths.mul(&Tensor::wrapped(2)?)?, Scalar::Int(0));
        let is_end = states.eq(&last)?.logical_or(&states.eq(&last.sub(&Tensor::wrapped(1)?)?)?)?;
        let ends = nevers(2 * longest + 1)?;
        Ok(LabelStates {
            classes: between(&labels.zeros_like()?.plus(blank)?, &labels, Scalar::Int(blank))?,
            skips: between(&never, &skips, Scalar::Float(NEVER))?,
            ends: ends.masked_fill(&is_end, own)?,
            steps: column(input_lengths)?,
        })
    }

    /// The numbers of classes (T, N, C) by states (T, N, S).
    fn of(&self, numbers: &Tensor) -> Result<Tensor> {
        let [steps, count] = [numbers.shape()[0], numbers.shape()[1]];
        let index = self.classes.expand(&[steps, count, self.classes.shape()[1]], false)?;
        numbers.to_dtype(DType::F64)?.gather(2, &index)
    }

    /// A mask of the examples that have exactly so many steps.
    fn ending_after(&self, steps: i64) -> Result<Tensor> {
        self.steps.eq(&Tensor::wrapped(steps)?)
    }
}

/// The labels of each example in a row of `longest`; what is behind an example's own means nothing.
fn rows(targets: &Tensor, lengths: &[i64], longest: i64) -> Result<Tensor> {
    let targets = targets.to_dtype(DType::I64)?;
    if targets.ndim() == 2 {
        return targets.narrow(1, 0, longest);
    }
    let (mut rows, mut start) = (memory::with_capacity(lengths.len())?, 0);
    for &length in lengths {
        let own = targets.narrow(0, start, length)?;
        rows.push(own.constant_pad_nd(&[0, longest - length], Scalar::Int(0))?);
        start += length;
    }
    stack(&rows, 0)
}

/// A tensor (N, 2 L + 1) in which `a` and `b`, both (N, L), alternate, with `last` at the end.
fn between(a: &Tensor, b: &Tensor, last: Scalar) -> Result<Tensor> {
    let [count, length] = [b.shape()[0], b.shape()[1]];
    let pairs = stack(&[a.clone(), b.clone()], -1)?.reshape(&[count, 2 * length])?;
    pairs.constant_pad_nd(&[0, 1], last)
}

/// Numbers and their derivative in the direction.
struct Dual {
    value: Tensor,
    tangent: Tensor,
}

impl Dual {
    fn plus(&self, value: &Tensor, tangent: &Tensor) -> Result<Dual> {
        Ok(Dual { value: self.value.add(value)?, tangent: self.tangent.add(tangent)? })
    }

    /// The logarithm of the sum of exponentials along `dim`.
    fn log_sum(&self, dim: i64) -> Result<Dual> {
        let kept = self.value.logsumexp(&[dim], true)?;
        let shares = self.value.sub(&kept)?.exp()?;
        let tangent = shares.mul(&self.tangent)?.sum_dim(Some(&[dim]), false)?;
        Ok(Dual { value: kept.squeeze_dim(dim)?, tangent })
    }

    /// The logarithm of the probability to reach each state from itself, the state `by` states
    /// before it and, where `skips` allows it, the state `2 by` states before it.
    fn arrived(&self, by: i64, skips: &Tensor) -> Result<Dual> {
        let moved = |by: i64| -> Result<[Tensor; 2]> {
            let value = self.value.constant_pad_nd(&[by, -by], Scalar::Float(NEVER))?;
            Ok([value, self.tangent.constant_pad_nd(&[by, -by], Scalar::Int(0))?])
        };
        let ([one, d_one], [two, d_two]) = (moved(by)?, moved(2 * by)?);
        let values = [self.value.clone(), one, two.add(skips)?];
        let tangents = [self.tangent.clone(), d_one, d_two];
        Dual { value: stack(&values, 0)?, tangent: stack(&tangents, 0)? }.log_sum(0)
    }
}

/// The derivative, in the direction `direction` (T, N, C), of the probabilities to be in each class at each step of the
/// alignments, of which those of the log-probabilities (T, N, C) are the logarithms.
pub(super) fn curvature(
    log_probs: &Tensor,
    direction: &Tensor,
    states: &LabelStates,
) -> Result<Tensor> {
    let (p, v) = (states.of(log_probs)?, states.of(direction)?);
    let steps = p.shape()[0];
    let at =
        |t: i64| -> Result<Dual> { Ok(Dual { value: p.select(0, t)?, tangent: v.select(0, t)? }) };
    let mut alpha: Vec<Dual> = memory::with_capacity(steps as usize)?;
    for t in 0..steps {
        let own = at(t)?;
        let before = match alpha.last() {
            Some(before) => before.arrived(1, &states.skips)?,
            None => first(&own)?,
        };
        alpha.push(before.plus(&own.value, &own.tangent)?);
    }
    // Backwards, a state is left for the one two behind it where that one may be skipped to.
    let skips = states.skips.constant_pad_nd(&[-2, 2], Scalar::Float(NEVER))?;
    let nothing = v.select(0, 0)?.zeros_like()?;
    let mut behind = Dual { value: nothing.plus(NEVER)?, tangent: nothing.clone() };
    let mut changes: Vec<Tensor> = memory::with_capacity(steps as usize)?;
    let mut beta: Vec<Dual> = memory::with_capacity(steps as usize)?;
    for t in (0..steps).rev() {
        let (own, rest, is_last) =
            (at(t)?, behind.arrived(-1, &skips)?, states.ending_after(t + 1)?);
        let reached = Dual {
            value: is_last.where_self(&states.ends, &rest.value)?,
            tangent: is_last.where_self(&nothing, &rest.tangent)?,
        };
        behind = reached.plus(&own.value, &own.tangent)?;
        // (Without the step's own probability, which `alpha` includes.)
        beta.push(reached);
    }
    beta.reverse();
    let through = |t: usize| alpha[t].plus(&beta[t].value, &beta[t].tangent);
    let total = through(0)?.log_sum(1)?;
    let (total, d_total) = (total.value.unsqueeze(1)?, total.tangent.unsqueeze(1)?);
    for t in 0..steps as usize {
        let here = through(t)?;
        let share = here.value.sub(&total)?.exp()?;
        changes.push(share.mul(&here.tangent.sub(&d_total)?)?);
    }
    let changes = stack(&changes, 0)?;
    let index = states.classes.expand(changes.shape(), false)?;
    let zeros = log_probs.to_dtype(DType::F64)?.zeros_like()?;
    zeros.scatter_add(2, &index, &changes)?.to_dtype(log_probs.dtype())
}

/// The states in which a sequence begins: its first two.
fn first(like: &Dual) -> Result<Dual> {
    let tangent = like.tangent.zeros_like()?;
    let beyond = (like.value.shape()[1] - 2).max(0);
    let begin = tangent.narrow(1, 0, like.value.shape()[1] - beyond)?;
    let value = begin.constant_pad_nd(&[0, beyond], Scalar::Float(NEVER))?;
    Ok(Dual { value, tangent })
}
