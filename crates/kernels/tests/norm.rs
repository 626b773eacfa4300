//! Softmax and the norms against naive twins in doubles; gradients against central differences of
//! the naive forward.

mod tensor;

use pullback_kernels::norm::{self, BatchNormOptions};
use pullback_kernels::{DType, parallel, softmax};
use tensor::{Rng, Tensor};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];
const SHAPES: [&[i64]; 7] =
    [&[3, 5], &[2, 70], &[4, 3, 6], &[2, 4, 3, 5], &[1, 2, 1], &[5, 4, 130], &[3, 0, 2]];

/// The naive softmax of `x` along `dim`.
fn naive_softmax(shape: &[i64], x: &[f64], dim: usize, log: bool) -> Vec<f64> {
    let inner: i64 = shape[dim + 1..].iter().product();
    let size = shape[dim];
    let mut out = vec![0.0; x.len()];
    for i in 0..x.len() as i64 {
        let base = i / (inner * size) * inner * size + i % inner;
        let row: Vec<f64> = (0..size).map(|j| x[(base + j * inner) as usize]).collect();
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|v| (v - top).exp()).sum();
        let v = x[i as usize] - top;
        out[i as usize] = if log { v - sum.ln() } else { v.exp() / sum };
    }
    out
}

/// The gradient of `sum(f(x) * grad)` by central differences.
fn difference(x: &[f64], grad: &[f64], f: &dyn Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let h = 1e-5;
    let value = |x: &[f64]| f(x).iter().zip(grad).map(|(y, g)| y * g).sum::<f64>();
    (0..x.len())
        .map(|i| {
            let (mut up, mut down) = (x.to_vec(), x.to_vec());
            up[i] += h;
            down[i] -= h;
            (value(&up) - value(&down)) / (2.0 * h)
        })
        .collect()
}

/// As `assert_reals`, looser by the differences' error for doubles.
fn assert_near(t: &Tensor, expected: &[f64], what: &str) {
    let tolerance = t.tolerance().max(1e-6) * 4.0;
    for (i, (got, want)) in t.reals().iter().zip(expected).enumerate() {
        assert!((got - want).abs() <= tolerance * (1.0 + want.abs()), "{what}: {i}: {got} {want}");
    }
}

#[test]
fn softmax_and_its_gradient_equal_the_naive_twin() {
    let mut rng = Rng(1);
    for dtype in DTYPES {
        for shape in SHAPES {
            for dim in 0..shape.len() {
                for log in [false, true] {
                    let x = rng.tensor(dtype, shape);
                    let mut y = rng.tensor(dtype, shape);
                    let what = format!("{dtype:?} {shape:?} {dim} {log}");
                    let f = if log { softmax::log_softmax } else { softmax::softmax };
                    f(&mut y.view_mut(), x.view(), dim).unwrap();
                    y.assert_reals(&naive_softmax(shape, &x.reals(), dim, log), &what);
                    if y.numel() > 200 {
                        continue;
                    }
                    let grad = rng.tensor(dtype, shape);
                    let mut gx = rng.tensor(dtype, shape);
                    let b =
                        if log { softmax::log_softmax_backward } else { softmax::softmax_backward };
                    b(&mut gx.view_mut(), grad.view(), y.view(), dim).unwrap();
                    let expected = difference(&x.reals(), &grad.reals(), &|x| {
                        naive_softmax(shape, x, dim, log)
                    });
                    assert_near(&gx, &expected, &what);
                }
            }
        }
    }
}

#[test]
fn softmax_survives_large_infinite_and_nan_input() {
    let values = [1e30, -1e30, 0.0, f64::NEG_INFINITY];
    let x = Tensor::from(DType::F32, &[1, 4], &values);
    let mut y = Tensor::full(DType::F32, &[1, 4], 0.0);
    softmax::softmax(&mut y.view_mut(), x.view(), 1).unwrap();
    assert_eq!(y.reals(), [1.0, 0.0, 0.0, 0.0]);
    for bad in [f64::NAN, f64::INFINITY] {
        let mut values = vec![0.5; 200];
        values[77] = bad;
        for (shape, dim) in [([1, 200], 1), ([200, 1], 0)] {
            let x = Tensor::from(DType::F32, &shape, &values);
            let mut y = Tensor::full(DType::F32, &shape, 0.0);
            softmax::softmax(&mut y.view_mut(), x.view(), dim).unwrap();
            assert!(y.reals()[77].is_nan());
        }
    }
    let x = Tensor::full(DType::F64, &[2, 3], f64::NEG_INFINITY);
    let mut y = Tensor::full(DType::F64, &[2, 3], 0.0);
    softmax::softmax(&mut y.view_mut(), x.view(), 0).unwrap();
    assert!(y.reals().iter().all(|v| v.is_nan()));
    let x = Tensor::full(DType::F32, &[], 3.0);
    let mut y = Tensor::full(DType::F32, &[], 0.0);
    softmax::softmax(&mut y.view_mut(), x.view(), 0).unwrap();
    assert_eq!(y.reals(), [1.0]);
}

struct Affine {
    weight: Option<Tensor>,
    bias: Option<Tensor>,
}

fn affine(rng: &mut Rng, dtype: DType, n: i64) -> Affine {
    let mut one = |p: i64| (rng.below(p) != 0).then(|| rng.tensor(dtype, &[n]));
    Affine { weight: one(3), bias: one(3) }
}

/// Normalises each set of indices; `channel` gives the parameter's index of an element.
fn naive_norm(
    x: &[f64],
    group: &dyn Fn(usize) -> usize,
    channel: &dyn Fn(usize) -> usize,
    w: &[f64],
    b: &[f64],
    eps: f64,
    centred: bool,
) -> Vec<f64> {
    let groups = (0..x.len()).map(group).max().map_or(0, |g| g + 1);
    let (mut count, mut mean, mut var) = (vec![0.0; groups], vec![0.0; groups], vec![0.0; groups]);
    for (i, v) in x.iter().enumerate() {
        count[group(i)] += 1.0;
        mean[group(i)] += v;
    }
    for g in 0..groups {
        mean[g] = if centred { mean[g] / count[g] } else { 0.0 };
    }
    for (i, v) in x.iter().enumerate() {
        var[group(i)] += (v - mean[group(i)]).powi(2) / count[group(i)];
    }
    let h = |i: usize| (x[i] - mean[group(i)]) / (var[group(i)] + eps).sqrt();
    (0..x.len())
        .map(|i| {
            let c = channel(i);
            h(i) * w.get(c).copied().unwrap_or(1.0) + b.get(c).copied().unwrap_or(0.0)
        })
        .collect()
}

fn reals(t: Option<&Tensor>) -> Vec<f64> {
    t.map(Tensor::reals).unwrap_or_default()
}

type Forward<'a> = &'a dyn Fn(&[f64], &[f64], &[f64]) -> Vec<f64>;

/// Gradients of input, weight and bias (if there is one) against differences of `f(x, weight, bias)`.
fn check_gradients(
    (gx, gw, gb): (&Tensor, &Tensor, Option<&Tensor>),
    grad: &Tensor,
    (x, w, b): (&[f64], &[f64], &[f64]),
    f: Forward<'_>,
    what: &str,
) {
    let (g, n) = (grad.reals(), gw.numel());
    let full_w = if w.is_empty() { vec![1.0; n] } else { w.to_vec() };
    assert_near(gx, &difference(x, &g, &|x| f(x, w, b)), what);
    assert_near(gw, &difference(&full_w, &g, &|w| f(x, w, b)), what);
    if let Some(gb) = gb {
        assert_near(gb, &difference(&vec![0.0; n], &g, &|b| f(x, w, b)), what);
    }
}

fn is_checked_by_differences(dtype: DType) -> bool {
    dtype == DType::F64 || dtype == DType::F32
}

fn check_layer_norm(rng: &mut Rng, dtype: DType, shape: &[i64], n: usize) {
    let p = affine(rng, dtype, n as i64);
    let x = rng.tensor(dtype, shape);
    let (xs, w, b) = (x.reals(), reals(p.weight.as_ref()), reals(p.bias.as_ref()));
    let rows = (xs.len() / n) as i64;
    let mut y = rng.tensor(dtype, shape);
    let (mut mean, mut rstd) = (rng.tensor(dtype, &[rows]), rng.tensor(DType::F32, &[rows]));
    let (weight, bias) = (p.weight.as_ref().map(Tensor::view), p.bias.as_ref().map(Tensor::view));
    let (to, means, rstds) = (&mut y.view_mut(), &mut mean.view_mut(), &mut rstd.view_mut());
    norm::layer_norm(to, means, rstds, x.view(), weight, bias, n, 1e-3).unwrap();
    let f =
        |x: &[f64], w: &[f64], b: &[f64]| naive_norm(x, &|i| i / n, &|i| i % n, w, b, 1e-3, true);
    let what = format!("{dtype:?} {shape:?}");
    y.assert_reals(&f(&xs, &w, &b), &what);
    if !is_checked_by_differences(dtype) {
        return;
    }
    let (grad, mut gx) = (rng.tensor(dtype, shape), rng.tensor(dtype, shape));
    let (mut gw, mut gb) = (rng.tensor(dtype, &[n as i64]), rng.tensor(dtype, &[n as i64]));
    norm::layer_norm_backward(
        Some(&mut gx.view_mut()),
        Some(&mut gw.view_mut()),
        Some(&mut gb.view_mut()),
        grad.view(),
        x.view(),
        mean.view(),
        rstd.view(),
        weight,
        n,
    )
    .unwrap();
    check_gradients((&gx, &gw, Some(&gb)), &grad, (&xs, &w, &b), &f, &what);
}

fn check_rms_norm(rng: &mut Rng, dtype: DType, shape: &[i64], n: usize) {
    let p = affine(rng, dtype, n as i64);
    let x = rng.tensor(dtype, shape);
    let (xs, w) = (x.reals(), reals(p.weight.as_ref()));
    let mut y = rng.tensor(dtype, shape);
    let mut rstd = rng.tensor(DType::F32, &[(xs.len() / n) as i64]);
    let weight = p.weight.as_ref().map(Tensor::view);
    let (to, rstds) = (&mut y.view_mut(), &mut rstd.view_mut());
    norm::rms_norm(to, rstds, x.view(), weight, n, 1e-3).unwrap();
    let f =
        |x: &[f64], w: &[f64], b: &[f64]| naive_norm(x, &|i| i / n, &|i| i % n, w, b, 1e-3, false);
    let what = format!("rms {dtype:?} {shape:?}");
    y.assert_reals(&f(&xs, &w, &[]), &what);
    if !is_checked_by_differences(dtype) {
        return;
    }
    let (grad, mut gx) = (rng.tensor(dtype, shape), rng.tensor(dtype, shape));
    let mut gw = rng.tensor(dtype, &[n as i64]);
    norm::rms_norm_backward(
        Some(&mut gx.view_mut()),
        Some(&mut gw.view_mut()),
        grad.view(),
        x.view(),
        rstd.view(),
        weight,
        n,
    )
    .unwrap();
    check_gradients((&gx, &gw, None), &grad, (&xs, &w, &[]), &f, &what);
}

#[test]
fn layer_and_rms_norm_equal_the_naive_twin() {
    let mut rng = Rng(2);
    for dtype in DTYPES {
        for (shape, n) in [
            (vec![3, 5], 5),
            (vec![2, 3, 4], 12),
            (vec![4, 100], 100),
            (vec![2, 0, 3], 3),
            (vec![70, 3], 3),
            (vec![17, 16], 16),
            (vec![18, 20], 20),
            (vec![5, 64], 64),
        ] {
            check_layer_norm(&mut rng, dtype, &shape, n);
            check_rms_norm(&mut rng, dtype, &shape, n);
        }
    }
}

fn check_group_norm(rng: &mut Rng, dtype: DType, shape: &[i64], groups: usize) {
    let c = shape[1] as usize;
    let inner = shape[2..].iter().product::<i64>() as usize;
    let p = affine(rng, dtype, shape[1]);
    let x = rng.tensor(dtype, shape);
    let (xs, w, b) = (x.reals(), reals(p.weight.as_ref()), reals(p.bias.as_ref()));
    let (weight, bias) = (p.weight.as_ref().map(Tensor::view), p.bias.as_ref().map(Tensor::view));
    let mut y = rng.tensor(dtype, shape);
    let stat = [shape[0], groups as i64];
    let stat_type = if dtype == DType::F64 { dtype } else { DType::F32 };
    let (mut mean, mut rstd) = (rng.tensor(stat_type, &stat), rng.tensor(stat_type, &stat));
    let (to, means, rstds) = (&mut y.view_mut(), &mut mean.view_mut(), &mut rstd.view_mut());
    norm::group_norm(to, means, rstds, x.view(), weight, bias, groups, 1e-3).unwrap();
    let f = |x: &[f64], w: &[f64], b: &[f64]| {
        naive_norm(x, &|i| i / (inner * c / groups), &|i| i / inner % c, w, b, 1e-3, true)
    };
    let what = format!("{dtype:?} {shape:?} {groups}");
    y.assert_reals(&f(&xs, &w, &b), &what);
    if !is_checked_by_differences(dtype) {
        return;
    }
    let (grad, mut gx) = (rng.tensor(dtype, shape), rng.tensor(dtype, shape));
    let (mut gw, mut gb) = (rng.tensor(dtype, &shape[1..2]), rng.tensor(dtype, &shape[1..2]));
    norm::group_norm_backward(
        Some(&mut gx.view_mut()),
        Some(&mut gw.view_mut()),
        Some(&mut gb.view_mut()),
        grad.view(),
        x.view(),
        mean.view(),
        rstd.view(),
        weight,
        groups,
    )
    .unwrap();
    check_gradients((&gx, &gw, Some(&gb)), &grad, (&xs, &w, &b), &f, &what);
}

#[test]
fn group_norm_equals_the_naive_twin() {
    let mut rng = Rng(3);
    for dtype in DTYPES {
        for (shape, groups) in [
            (vec![3, 4], 2),
            (vec![2, 6, 5], 3),
            (vec![2, 4, 3, 5], 4),
            (vec![0, 4, 2], 2),
            (vec![0, 4, 70], 2),
            (vec![2, 36], 6),
            (vec![3, 6, 17], 3),
        ] {
            check_group_norm(&mut rng, dtype, &shape, groups);
        }
    }
}

#[test]
fn statistics_of_another_number_of_groups_are_refused() {
    let mut rng = Rng(21);
    let x = rng.tensor(DType::F32, &[1, 3, 2]);
    let (few, many) = (rng.tensor(DType::F32, &[1]), rng.tensor(DType::F32, &[1, 3]));
    for (mean, rstd) in [(&few, &many), (&many, &few)] {
        let mut out = rng.tensor(DType::F32, &[1, 3, 2]);
        let mut out = out.view_mut();
        let (mean, rstd) = (mean.view(), rstd.view());
        let (grad_x, none) = (Some(&mut out), None);
        let refused =
            norm::group_norm_backward(grad_x, none, None, x.view(), x.view(), mean, rstd, None, 3);
        assert!(refused.unwrap_err().message().contains("one number for each of 3 groups"));
    }
}

/// One call of batch norm: its input, parameters and statistics.
struct BatchNorm {
    x: Tensor,
    p: Affine,
    mean: Tensor,
    rstd: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    /// Channels, and elements of each in a sample.
    sizes: (usize, usize),
    what: String,
}

const TRAINING: BatchNormOptions = BatchNormOptions { training: true, momentum: 0.25, eps: 1e-3 };
const EVALUATION: BatchNormOptions = BatchNormOptions { training: false, ..TRAINING };

impl BatchNorm {
    fn new(rng: &mut Rng, dtype: DType, shape: &[i64]) -> BatchNorm {
        let stat_type = if dtype == DType::F64 { dtype } else { DType::F32 };
        let channels = &shape[1..2];
        BatchNorm {
            p: affine(rng, dtype, shape[1]),
            x: rng.tensor(dtype, shape),
            mean: rng.tensor(stat_type, channels),
            rstd: rng.tensor(stat_type, channels),
            running_mean: Tensor::full(stat_type, channels, 0.5),
            running_var: Tensor::full(stat_type, channels, 2.0),
            sizes: (shape[1] as usize, shape[2..].iter().product::<i64>() as usize),
            what: format!("{dtype:?} {shape:?}"),
        }
    }
    fn channel(&self, i: usize) -> usize {
        i / self.sizes.1 % self.sizes.0
    }
    /// Weight and bias as doubles.
    fn parameters(&self) -> (Vec<f64>, Vec<f64>) {
        (reals(self.p.weight.as_ref()), reals(self.p.bias.as_ref()))
    }
    fn run(&mut self, y: &mut Tensor, how: BatchNormOptions) {
        let (means, rstds) = (&mut self.mean.view_mut(), &mut self.rstd.view_mut());
        norm::batch_norm(
            &mut y.view_mut(),
            how.training.then_some((means, rstds)),
            self.x.view(),
            self.p.weight.as_ref().map(Tensor::view),
            self.p.bias.as_ref().map(Tensor::view),
            Some(&mut self.running_mean.view_mut()),
            Some(&mut self.running_var.view_mut()),
            how,
        )
        .unwrap();
    }
    fn naive(&self, x: &[f64], w: &[f64], b: &[f64]) -> Vec<f64> {
        naive_norm(x, &|i| self.channel(i), &|i| self.channel(i), w, b, 1e-3, true)
    }
    /// The result of evaluation by the formula.
    fn naive_evaluation(&self, x: &[f64]) -> Vec<f64> {
        let (means, vars) = (self.running_mean.reals(), self.running_var.reals());
        let (w, b) = self.parameters();
        let one = |i: usize| {
            let c = self.channel(i);
            (x[i] - means[c]) / (vars[c] + 1e-3).sqrt() * w.get(c).copied().unwrap_or(1.0)
                + b.get(c).copied().unwrap_or(0.0)
        };
        (0..x.len()).map(one).collect()
    }
    /// That the running statistics moved by a quarter of the way.
    fn check_running(&self) {
        let xs = self.x.reals();
        for c in 0..self.sizes.0 {
            let all: Vec<f64> =
                (0..xs.len()).filter(|&i| self.channel(i) == c).map(|i| xs[i]).collect();
            let count = all.len() as f64;
            let m = all.iter().sum::<f64>() / count;
            let v = all.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (count - 1.0);
            assert!(
                (self.running_mean.reals()[c] - (0.375 + 0.25 * m)).abs() < 1e-4,
                "{}",
                self.what
            );
            assert!((self.running_var.reals()[c] - (1.5 + 0.25 * v)).abs() < 1e-4, "{}", self.what);
        }
    }
    /// The gradients of training by the sums of the formula, for inputs that are too large for differences.
    fn check_by_formula(&self, (gx, gw, gb): (&Tensor, &Tensor, &Tensor), g: &[f64]) {
        let (xs, means, rstds) = (self.x.reals(), self.mean.reals(), self.rstd.reals());
        let (w, _) = self.parameters();
        let h = |i: usize| (xs[i] - means[self.channel(i)]) * rstds[self.channel(i)];
        let (mut by_w, mut by_b) = (vec![0.0; self.sizes.0], vec![0.0; self.sizes.0]);
        for (i, g) in g.iter().enumerate() {
            by_w[self.channel(i)] += g * h(i);
            by_b[self.channel(i)] += g;
        }
        let count = (xs.len() / self.sizes.0) as f64;
        let by_x = |i: usize| {
            let c = self.channel(i);
            let rest = (by_b[c] + h(i) * by_w[c]) / count;
            w.get(c).copied().unwrap_or(1.0) * rstds[c] * (g[i] - rest)
        };
        assert_near(gx, &(0..xs.len()).map(by_x).collect::<Vec<_>>(), &self.what);
        assert_near(gw, &by_w, &self.what);
        assert_near(gb, &by_b, &self.what);
    }
    fn check_backward(&self, rng: &mut Rng) {
        let (dtype, shape) = (self.x.dtype, &self.x.shape);
        let (grad, mut gx) = (rng.tensor(dtype, shape), rng.tensor(dtype, shape));
        let (mut gw, mut gb) = (rng.tensor(dtype, &shape[1..2]), rng.tensor(dtype, &shape[1..2]));
        let weight = self.p.weight.as_ref().map(Tensor::view);
        norm::batch_norm_backward(
            Some(&mut gx.view_mut()),
            Some(&mut gw.view_mut()),
            Some(&mut gb.view_mut()),
            grad.view(),
            self.x.view(),
            weight,
            self.mean.view(),
            self.rstd.view(),
            TRAINING,
        )
        .unwrap();
        let (xs, (w, b)) = (self.x.reals(), self.parameters());
        if xs.len() > 400 {
            return self.check_by_formula((&gx, &gw, &gb), &grad.reals());
        }
        let f = |x: &[f64], w: &[f64], b: &[f64]| self.naive(x, w, b);
        check_gradients((&gx, &gw, Some(&gb)), &grad, (&xs, &w, &b), &f, &self.what);
        let (mean, var) = (self.running_mean.view(), self.running_var.view());
        let to = Some(&mut gx.view_mut());
        norm::batch_norm_backward(
            to,
            None,
            None,
            grad.view(),
            self.x.view(),
            weight,
            mean,
            var,
            EVALUATION,
        )
        .unwrap();
        let expected = difference(&xs, &grad.reals(), &|x| self.naive_evaluation(x));
        assert_near(&gx, &expected, &self.what);
    }
}

#[test]
fn batch_norm_equals_the_naive_twin() {
    let mut rng = Rng(4);
    // Columns and runs, short and long ones, few and many, more channels than are looked at together.
    let shapes: [&[i64]; 12] = [
        &[6, 4],
        &[70, 3],
        &[2, 6, 5],
        &[3, 2, 3, 5],
        &[2, 3, 1],
        &[3, 18, 2],
        &[1, 20, 5],
        &[2, 3, 33],
        &[2, 1, 70],
        &[300, 2, 16],
        &[130, 19],
        &[1203, 2, 5],
    ];
    for dtype in DTYPES {
        for shape in shapes {
            let mut call = BatchNorm::new(&mut rng, dtype, shape);
            let (xs, (w, b)) = (call.x.reals(), call.parameters());
            let mut y = rng.tensor(dtype, shape);
            call.run(&mut y, TRAINING);
            y.assert_reals(&call.naive(&xs, &w, &b), &call.what);
            call.check_running();
            let mut y = rng.tensor(dtype, shape);
            call.run(&mut y, EVALUATION);
            y.assert_reals(&call.naive_evaluation(&xs), &call.what);
            // (Two numbers become 1 and -1 whatever they are: differences lose all digits.)
            if is_checked_by_differences(dtype) && !(shape[0] == 2 && call.sizes.1 == 1) {
                call.check_backward(&mut rng);
            }
        }
    }
}

#[test]
fn batch_norm_of_many_narrow_samples_gives_the_same_bits_on_any_number_of_threads() {
    let mut rng = Rng(11);
    let before = parallel::num_threads();
    for shape in [&[20_001, 2, 5], &[9000, 3, 7], &[3000, 1, 64]] {
        let (x, grad) = (rng.tensor(DType::F32, shape), rng.tensor(DType::F32, shape));
        let channels = &shape[1..2];
        let run = |threads: usize| {
            parallel::set_num_threads(threads);
            let new = |shape: &[i64]| Tensor::full(DType::F32, shape, 0.0);
            let (mut y, mut mean, mut rstd) = (new(shape), new(channels), new(channels));
            let how = BatchNormOptions { training: true, momentum: 0.1, eps: 1e-5 };
            let saved = Some((&mut mean.view_mut(), &mut rstd.view_mut()));
            norm::batch_norm(&mut y.view_mut(), saved, x.view(), None, None, None, None, how)
                .unwrap();
            let (mut gx, mut gw, mut gb) = (new(shape), new(channels), new(channels));
            norm::batch_norm_backward(
                Some(&mut gx.view_mut()),
                Some(&mut gw.view_mut()),
                Some(&mut gb.view_mut()),
                grad.view(),
                x.view(),
                None,
                mean.view(),
                rstd.view(),
                how,
            )
            .unwrap();
            [y, mean, rstd, gx, gw, gb].map(|t| t.reals())
        };
        assert!(run(1) == run(3), "{shape:?}");
    }
    parallel::set_num_threads(before);
}
