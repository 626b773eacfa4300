//! The loss of sequences against the sum over all alignments, and its gradient against differences.

mod tensor;

use pullback_kernels::loss::{CtcOptions, ctc_loss, ctc_loss_backward};
use pullback_kernels::{DType, ErrorKind};
use tensor::{Rng, Tensor};

/// What an alignment spells: repetitions are merged, then blanks left out.
fn spelled(alignment: &[usize], blank: usize) -> Vec<usize> {
    let mut labels = vec![];
    let mut before = None;
    for &class in alignment {
        if Some(class) != before && class != blank {
            labels.push(class);
        }
        before = Some(class);
    }
    labels
}

/// `-ln` of the sum of the probabilities of all alignments that spell `labels`.
fn naive(
    prob: &dyn Fn(usize, usize) -> f64,
    (steps, classes): (usize, usize),
    labels: &[usize],
    blank: usize,
) -> f64 {
    let mut total = 0.0;
    for number in 0..classes.pow(steps as u32) {
        let alignment: Vec<usize> =
            (0..steps).map(|t| number / classes.pow(t as u32) % classes).collect();
        if spelled(&alignment, blank) == labels {
            total += alignment.iter().enumerate().map(|(t, &c)| prob(t, c)).sum::<f64>().exp();
        }
    }
    -total.ln()
}

struct Case {
    log_probs: Tensor,
    targets: Tensor,
    inputs: Vec<i64>,
    labels: Vec<i64>,
    blank: usize,
}

impl Case {
    fn options(&self) -> CtcOptions<'_> {
        CtcOptions { input_lengths: &self.inputs, target_lengths: &self.labels, blank: self.blank }
    }
    fn losses(&self, log_probs: &Tensor) -> (Tensor, Tensor) {
        let n = log_probs.shape[1];
        let states = 2 * self.labels.iter().max().unwrap() + 1;
        let mut loss = Tensor::full(log_probs.dtype, &[n], 7.0);
        let mut alpha = Tensor::full(log_probs.dtype, &[n, log_probs.shape[0], states], 7.0);
        let (mut out, mut states) = (loss.view_mut(), alpha.view_mut());
        ctc_loss(&mut out, &mut states, log_probs.view(), self.targets.view(), self.options())
            .unwrap();
        (loss, alpha)
    }
    /// The labels of an example.
    fn labels_of(&self, n: usize) -> Vec<usize> {
        let all: Vec<usize> = self.targets.reals().iter().map(|&v| v as usize).collect();
        let start = if self.targets.shape.len() == 2 {
            n * self.targets.shape[1] as usize
        } else {
            self.labels[..n].iter().sum::<i64>() as usize
        };
        all[start..start + self.labels[n] as usize].to_vec()
    }
}

fn cases(rng: &mut Rng, dtype: DType) -> Vec<Case> {
    let mut all = vec![];
    for case in 0..30 {
        let [t, n, c] = [rng.below(4) + 1, rng.below(3) + 1, rng.below(2) + 2];
        let blank = rng.below(c) as usize;
        let labels: Vec<i64> = (0..n).map(|_| rng.below(3)).collect();
        let inputs = (0..n).map(|_| rng.below(t + 1)).collect();
        let mut label = || {
            let other = rng.below(c - 1);
            if other >= blank as i64 { other + 1 } else { other }
        };
        let targets = if case % 2 == 0 {
            let numbers: Vec<f64> = (0..n * 2).map(|_| label() as f64).collect();
            Tensor::from(DType::I64, &[n, 2], &numbers)
        } else {
            let sum = labels.iter().sum::<i64>();
            let numbers: Vec<f64> = (0..sum).map(|_| label() as f64).collect();
            Tensor::from(DType::I64, &[sum], &numbers)
        };
        all.push(Case { log_probs: rng.tensor(dtype, &[t, n, c]), targets, inputs, labels, blank });
    }
    all
}

#[test]
fn losses_are_sums_over_all_alignments() {
    let mut rng = Rng(1);
    for dtype in [DType::F64, DType::F32] {
        for case in cases(&mut rng, dtype) {
            let [_, n, c] =
                [case.log_probs.shape[0], case.log_probs.shape[1], case.log_probs.shape[2]]
                    .map(|s| s as usize);
            let probs = case.log_probs.reals();
            let expected: Vec<f64> = (0..n)
                .map(|i| {
                    let prob = |t: usize, class: usize| probs[(t * n + i) * c + class];
                    naive(&prob, (case.inputs[i] as usize, c), &case.labels_of(i), case.blank)
                })
                .collect();
            for (got, expected) in case.losses(&case.log_probs).0.reals().iter().zip(&expected) {
                let close = (got - expected).abs() < 1e-5 || got == expected;
                assert!(close, "{got} and {expected}: {:?} {:?}", case.inputs, case.labels);
            }
        }
    }
}

/// The gradient is that of numbers of which the softmax is taken before: the kernel's through `log_softmax`.
#[test]
fn gradients_through_log_softmax_agree_with_differences() {
    let mut rng = Rng(2);
    for case in cases(&mut rng, DType::F64) {
        let shape = case.log_probs.shape.clone();
        let c = shape[2] as usize;
        let scores = case.log_probs.reals();
        let normalised = |scores: &[f64]| {
            let rows = scores.chunks(c).flat_map(|row| {
                let sum = row.iter().map(|v| v.exp()).sum::<f64>().ln();
                row.iter().map(move |v| v - sum)
            });
            Tensor::from(DType::F64, &shape, &rows.collect::<Vec<_>>())
        };
        let total = |scores: &[f64]| {
            let losses = case.losses(&normalised(scores)).0.reals();
            losses.iter().filter(|v| v.is_finite()).sum::<f64>()
        };
        let log_probs = normalised(&scores);
        let (loss, alpha) = case.losses(&log_probs);
        let mut grad = Tensor::full(DType::F64, &shape, 7.0);
        let ones = Tensor::full(DType::F64, &[shape[1]], 1.0);
        let given = (log_probs.view(), case.targets.view(), case.options());
        ctc_loss_backward(
            &mut grad.view_mut(),
            ones.view(),
            given,
            (loss.view(), alpha.view()),
            true,
        )
        .unwrap();
        let (grad, probs) = (grad.reals(), log_probs.reals());
        for i in 0..scores.len() {
            let row = i / c * c;
            let sum: f64 = grad[row..row + c].iter().sum();
            let slope = grad[i] - probs[i].exp() * sum;
            let moved = |step: f64| {
                let mut scores = scores.clone();
                scores[i] += step;
                total(&scores)
            };
            let expected = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            assert!((slope - expected).abs() < 1e-5, "{slope} and {expected} at {i}");
        }
    }
}

#[test]
fn labels_and_lengths_are_checked() {
    let mut rng = Rng(3);
    let log_probs = rng.tensor(DType::F64, &[3, 1, 4]);
    let run = |dtype: DType, targets: &[f64], inputs: &[i64], labels: &[i64], blank: usize| {
        let log_probs = Tensor::from(dtype, &[3, 1, 4], &log_probs.reals());
        let targets = Tensor::from(DType::I64, &[1, targets.len() as i64], targets);
        let mut loss = Tensor::full(dtype, &[1], 0.0);
        let mut alpha = Tensor::full(dtype, &[1, 3, 5], 0.0);
        let options = CtcOptions { input_lengths: inputs, target_lengths: labels, blank };
        ctc_loss(
            &mut loss.view_mut(),
            &mut alpha.view_mut(),
            log_probs.view(),
            targets.view(),
            options,
        )
    };
    assert!(run(DType::F64, &[1.0, 2.0], &[3], &[2], 0).is_ok());
    let error = run(DType::F64, &[1.0, 4.0], &[3], &[2], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Index);
    assert!(run(DType::F64, &[1.0, -1.0], &[3], &[2], 0).is_err());
    assert!(run(DType::F64, &[1.0, 2.0], &[4], &[2], 0).is_err());
    assert!(run(DType::F64, &[1.0, 2.0], &[3], &[3], 0).is_err());
    assert!(run(DType::F64, &[1.0, 2.0], &[3], &[-1], 0).is_err());
    assert!(run(DType::F64, &[1.0, 2.0], &[3], &[2], 4).is_err());
    let error = run(DType::F16, &[1.0, 2.0], &[3], &[2], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotImplemented);
}
