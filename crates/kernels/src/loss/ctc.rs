//! Connectionist temporal classification (Graves et al. 2006): the probability of a sequence of labels, over all alignments
//! with the steps of an input, by the forward and backward recursions in log space.
//!
//! A sequence of `L` labels becomes one of `2 L + 1` states: blanks between the labels and at both ends. Everything is computed in
//! double precision; an example of a batch is one task.

use crate::dense::{SharedMut, expect_shape, load, with_output};
use crate::{DType, Error, Result, StridedMut, StridedRef, memory, parallel};

/// What a call is about: the classes' log-probabilities are (T, N, C).
#[derive(Clone, Copy, Debug)]
pub struct CtcOptions<'a> {
    /// How many steps each example has.
    pub input_lengths: &'a [i64],
    /// How many labels each example has.
    pub target_lengths: &'a [i64],
    /// The class of the blank.
    pub blank: usize,
}

/// The sizes of a call, and where the labels of each example begin.
struct CtcBatch<'a> {
    steps: usize,
    count: usize,
    classes: usize,
    /// States that the longest sequence has.
    states: usize,
    labels: Vec<usize>,
    starts: Vec<usize>,
    options: CtcOptions<'a>,
}

impl<'a> CtcBatch<'a> {
    /// Checks shapes, lengths and labels. `targets` are (N, S), or the labels of all examples one after the other.
    fn new(
        log_probs: StridedRef<'_>,
        targets: StridedRef<'_>,
        options: CtcOptions<'a>,
    ) -> Result<CtcBatch<'a>> {
        let fail = |text: String| Err(Error::runtime(text));
        let [steps, count, classes] = *log_probs.shape() else {
            return fail(format!("ctc_loss expects (T, N, C), but got {:?}", log_probs.shape()));
        };
        let [steps, count, classes] = [steps, count, classes].map(|n| n as usize);
        let CtcOptions { input_lengths, target_lengths, blank } = options;
        let fits = |lengths: &[i64], most: usize| {
            lengths.len() == count && lengths.iter().all(|&n| n >= 0 && n as u64 <= most as u64)
        };
        let width = targets.shape().last().map_or(0, |&n| n as usize);
        if !fits(input_lengths, steps) || !fits(target_lengths, width) || blank >= classes {
            return fail(format!(
                "ctc_loss: lengths {input_lengths:?} and {target_lengths:?} and blank {blank} do not fit {:?} and targets of shape {:?}",
                log_probs.shape(),
                targets.shape()
            ));
        }
        let mut starts = memory::with_capacity(count)?;
        let mut end = 0_usize;
        for (n, &length) in target_lengths.iter().enumerate() {
            starts.push(if targets.ndim() == 2 { n * width } else { end });
            end += length as usize;
        }
        if targets.ndim() == 1 && end != width
            || targets.ndim() == 2 && targets.shape()[0] as usize != count
        {
            return fail(format!(
                "ctc_loss: targets of shape {:?} do not fit {target_lengths:?}",
                targets.shape()
            ));
        }
        let numbers = load::<i64>(targets)?;
        for (n, &start) in starts.iter().enumerate() {
            let own = &numbers[start..start + target_lengths[n] as usize];
            if let Some(bad) = own.iter().find(|&&label| label < 0 || label as usize >= classes) {
                return Err(Error::index(format!(
                    "ctc_loss: target {bad} is out of bounds for {classes} classes"
                )));
            }
        }
        let labels = memory::collect(numbers.iter().map(|&label| label.max(0) as usize))?;
        let longest = target_lengths.iter().max().map_or(0, |&n| n as usize);
        Ok(CtcBatch { steps, count, classes, states: 2 * longest + 1, labels, starts, options })
    }
    fn example(&self, n: usize) -> Example<'_> {
        let length = self.options.target_lengths[n] as usize;
        Example {
            labels: &self.labels[self.starts[n]..self.starts[n] + length],
            steps: self.options.input_lengths[n] as usize,
            blank: self.options.blank,
        }
    }
}

/// One example: its labels, and how many steps its input has.
struct Example<'a> {
    labels: &'a [usize],
    steps: usize,
    blank: usize,
}

impl Example<'_> {
    fn states(&self) -> usize {
        2 * self.labels.len() + 1
    }
    /// The class that a state stands for.
    fn class(&self, state: usize) -> usize {
        if state.is_multiple_of(2) { self.blank } else { self.labels[state / 2] }
    }
    /// Whether the state may follow that two before it: both are labels, and not the same.
    fn skips_to(&self, state: usize) -> bool {
        state % 2 == 1 && state >= 3 && self.labels[state / 2] != self.labels[state / 2 - 1]
    }
}

/// `ln(sum e^x)`; minus infinity of none.
fn log_sum<const N: usize>(xs: [f64; N]) -> f64 {
    let most = xs.iter().fold(f64::NEG_INFINITY, |a, &b| if b > a || b.is_nan() { b } else { a });
    if most == f64::NEG_INFINITY || most.is_nan() {
        return most;
    }
    most + xs.iter().map(|x| (x - most).exp()).sum::<f64>().ln()
}

fn check_dtype(dtype: DType) -> Result<()> {
    match dtype {
        DType::F32 | DType::F64 => Ok(()),
        other => Err(Error::not_implemented("ctc_loss_cpu", other)),
    }
}

/// The negative log-likelihoods `out` (N) of the targets, and `alpha` (N, T, 2 S + 1), the logarithms of the probabilities to be in
/// each state after each step.
///
/// # Errors
/// Shapes, lengths or labels that do not fit, or a dtype other than single and double precision.
pub fn ctc_loss(
    out: &mut StridedMut<'_>,
    alpha: &mut StridedMut<'_>,
    log_probs: StridedRef<'_>,
    targets: StridedRef<'_>,
    options: CtcOptions<'_>,
) -> Result<()> {
    check_dtype(log_probs.dtype())?;
    let batch = CtcBatch::new(log_probs, targets, options)?;
    let CtcBatch { steps, count, classes, states, .. } = batch;
    expect_shape("loss", out.shape(), &[count as i64])?;
    expect_shape("log_alpha", alpha.shape(), &[count, steps, states].map(|n| n as i64))?;
    let probs = load::<f64>(log_probs)?;
    with_output::<f64, _>(out, |out| {
        with_output::<f64, _>(alpha, |alpha| {
            let (out, alpha) = (SharedMut::new(out), SharedMut::new(alpha));
            parallel::for_range(count, 1, &|range| {
                for n in range {
                    let each = steps * states;
                    // SAFETY: one task per example.
                    let (out, alpha) =
                        unsafe { (out.slice(n..n + 1), alpha.slice(n * each..(n + 1) * each)) };
                    let prob = |t: usize, class: usize| probs[(t * count + n) * classes + class];
                    out[0] = forward(alpha, states, &batch.example(n), &prob);
                }
            });
        })
    })
}

fn forward(
    alpha: &mut [f64],
    width: usize,
    example: &Example<'_>,
    prob: &dyn Fn(usize, usize) -> f64,
) -> f64 {
    alpha.fill(f64::NEG_INFINITY);
    let states = example.states();
    if example.steps == 0 {
        return if states == 1 { 0.0 } else { f64::INFINITY };
    }
    for (s, alpha) in alpha.iter_mut().enumerate().take(states.min(2)) {
        *alpha = prob(0, example.class(s));
    }
    for t in 1..example.steps {
        crate::interrupt::check();
        let (before, now) = alpha[(t - 1) * width..(t + 1) * width].split_at_mut(width);
        for s in 0..states {
            let one = if s >= 1 { before[s - 1] } else { f64::NEG_INFINITY };
            let two = if example.skips_to(s) { before[s - 2] } else { f64::NEG_INFINITY };
            now[s] = prob(t, example.class(s)) + log_sum([before[s], one, two]);
        }
    }
    let last = &alpha[(example.steps - 1) * width..][..states];
    let label = if states > 1 { last[states - 2] } else { f64::NEG_INFINITY };
    -log_sum([last[states - 1], label])
}

/// The gradient of [`ctc_loss`] as PyTorch defines it: `(e^p - e^(alpha beta + loss - p)) grad` for log-probabilities `p`, which is right
/// where these are normalised. Steps behind an example's end have none; with `zero_infinity` neither have examples whose loss is infinite.
///
/// # Errors
/// As [`ctc_loss`].
pub fn ctc_loss_backward(
    out: &mut StridedMut<'_>,
    grad: StridedRef<'_>,
    (log_probs, targets, options): (StridedRef<'_>, StridedRef<'_>, CtcOptions<'_>),
    (loss, alpha): (StridedRef<'_>, StridedRef<'_>),
    zero_infinity: bool,
) -> Result<()> {
    check_dtype(log_probs.dtype())?;
    let batch = CtcBatch::new(log_probs, targets, options)?;
    let CtcBatch { steps, count, classes, states, .. } = batch;
    expect_shape("the gradient", out.shape(), log_probs.shape())?;
    for (name, shape) in [("grad", grad.shape()), ("neg_log_likelihood", loss.shape())] {
        expect_shape(name, shape, &[count as i64])?;
    }
    expect_shape("log_alpha", alpha.shape(), &[count, steps, states].map(|n| n as i64))?;
    let (probs, grad) = (load::<f64>(log_probs)?, load::<f64>(grad)?);
    let (loss, alpha) = (load::<f64>(loss)?, load::<f64>(alpha)?);
    with_output::<f64, _>(out, |out| {
        let out = SharedMut::new(out);
        parallel::try_for_range(count, 1, &|range| {
            let mut beta = [memory::filled(0.0, states + 2)?, memory::filled(0.0, states + 2)?];
            let mut sums = memory::filled(0.0, classes)?;
            for n in range {
                let example = batch.example(n);
                let is_left_out = zero_infinity && loss[n] == f64::INFINITY;
                for t in (0..steps).rev() {
                    crate::interrupt::check();
                    let at = (t * count + n) * classes;
                    // SAFETY: the classes of one example at one step, which this task alone writes.
                    let out = unsafe { out.slice(at..at + classes) };
                    if t >= example.steps || is_left_out {
                        out.fill(0.0);
                        continue;
                    }
                    let prob = &probs[at..at + classes];
                    step_back(&mut beta, &example, prob, t);
                    let alpha = &alpha[(n * steps + t) * states..][..states];
                    sums.fill(f64::NEG_INFINITY);
                    for s in 0..example.states() {
                        let class = example.class(s);
                        sums[class] = log_sum([sums[class], alpha[s] + beta[0][s]]);
                    }
                    for (class, out) in out.iter_mut().enumerate() {
                        let p = prob[class];
                        *out = (p.exp() - (sums[class] + loss[n] - p).exp()) * grad[n];
                    }
                }
            }
            Ok(())
        })
    })
}

/// Makes `beta[0]`, the logarithms of the probabilities of what follows each state at step `t`, of those of the step behind.
fn step_back(beta: &mut [Vec<f64>; 2], example: &Example<'_>, prob: &[f64], t: usize) {
    let states = example.states();
    let [now, behind] = beta;
    std::mem::swap(now, behind);
    // (Two more states, which nothing reaches, spare the ends of the sequence cases of their own.)
    now.fill(f64::NEG_INFINITY);
    for s in 0..states {
        let own = prob[example.class(s)];
        now[s] = if t + 1 == example.steps {
            if s + 2 >= states { own } else { f64::NEG_INFINITY }
        } else {
            let two = if s + 2 < states && example.skips_to(s + 2) {
                behind[s + 2]
            } else {
                f64::NEG_INFINITY
            };
            let one = if s + 1 < states { behind[s + 1] } else { f64::NEG_INFINITY };
            own + log_sum([behind[s], one, two])
        };
    }
}
