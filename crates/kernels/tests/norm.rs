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
            for centred in [true, false] {
                let p = affine(&mut rng, dtype, n);
                let x = rng.tensor(dtype, &shape);
                let (xs, w) = (x.reals(), reals(p.weight.as_ref()));
                let b = if centred { reals(p.bias.as_ref()) } else { vec![] };
                let rows = xs.len() as i64 / n;
                let mut y = rng.tensor(dtype, &shape);
                let (mut mean, mut rstd) =
                    (rng.tensor(dtype, &[rows]), rng.tensor(DType::F32, &[rows]));
                let (weight, bias) =
                    (p.weight.as_ref().map(Tensor::view), p.bias.as_ref().map(Tensor::view));
                let n = n as usize;
                if centred {
                    norm::layer_norm(
                        &mut y.view_mut(),
                        &mut mean.view_mut(),
                        &mut rstd.view_mut(),
                        x.view(),
                        weight,
                        bias,
                        n,
                        1e-3,
                    )
                    .unwrap();
                } else {
                    norm::rms_norm(
                        &mut y.view_mut(),
                        &mut rstd.view_mut(),
                        x.view(),
                        weight,
                        n,
                        1e-3,
                    )
                    .unwrap();
                }
                let f = |x: &[f64], w: &[f64], b: &[f64]| {
                    naive_norm(x, &|i| i / n, &|i| i % n, w, b, 1e-3, centred)
                };
                let what = format!("{dtype:?} {shape:?} {centred}");
                y.assert_reals(&f(&xs, &w, &b), &what);
                if dtype != DType::F64 && dtype != DType::F32 {
                    continue;
                }
                let grad = rng.tensor(dtype, &shape);
                let mut gx = rng.tensor(dtype, &shape);
                let (mut gw, mut gb) =
                    (rng.tensor(dtype, &[n as i64]), rng.tensor(dtype, &[n as i64]));
                if centred {
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
                } else {
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
                }
                let g = grad.reals();
                let (full_w, full_b) =
                    (if w.is_empty() { vec![1.0; n] } else { w.clone() }, vec![0.0; n]);
                assert_near(&gx, &difference(&xs, &g, &|x| f(x, &w, &b)), &what);
                assert_near(&gw, &difference(&full_w, &g, &|w| f(&xs, w, &b)), &what);
                if centred {
                    assert_near(&gb, &difference(&full_b, &g, &|b| f(&xs, &w, b)), &what);
                }
            }
        }
    }
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
            let c = shape[1] as usize;
            let inner = shape[2..].iter().product::<i64>() as usize;
            let p = affine(&mut rng, dtype, shape[1]);
            let x = rng.tensor(dtype, &shape);
            let (xs, w, b) = (x.reals(), reals(p.weight.as_ref()), reals(p.bias.as_ref()));
            let (weight, bias) =
                (p.weight.as_ref().map(Tensor::view), p.bias.as_ref().map(Tensor::view));
            let mut y = rng.tensor(dtype, &shape);
            let stat = [shape[0], groups as i64];
            let stat_type = if dtype == DType::F64 { dtype } else { DType::F32 };
            let (mut mean, mut rstd) = (rng.tensor(stat_type, &stat), rng.tensor(stat_type, &stat));
            norm::group_norm(
                &mut y.view_mut(),
                &mut mean.view_mut(),
                &mut rstd.view_mut(),
                x.view(),
                weight,
                bias,
                groups,
                1e-3,
            )
            .unwrap();
            let f = |x: &[f64], w: &[f64], b: &[f64]| {
                naive_norm(x, &|i| i / (inner * c / groups), &|i| i / inner % c, w, b, 1e-3, true)
            };
            let what = format!("{dtype:?} {shape:?} {groups}");
            y.assert_reals(&f(&xs, &w, &b), &what);
            if dtype != DType::F64 && dtype != DType::F32 {
                continue;
            }
            let grad = rng.tensor(dtype, &shape);
            let mut gx = rng.tensor(dtype, &shape);
            let (mut gw, mut gb) =
                (rng.tensor(dtype, &shape[1..2]), rng.tensor(dtype, &shape[1..2]));
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
            let g = grad.reals();
            let full_w = if w.is_empty() { vec![1.0; c] } else { w.clone() };
            assert_near(&gx, &difference(&xs, &g, &|x| f(x, &w, &b)), &what);
            assert_near(&gw, &difference(&full_w, &g, &|w| f(&xs, w, &b)), &what);
            assert_near(&gb, &difference(&vec![0.0; c], &g, &|b| f(&xs, &w, b)), &what);
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

#[test]
fn batch_norm_equals_the_naive_twin() {
    let mut rng = Rng(4);
    for dtype in DTYPES {
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
        for shape in shapes.map(<[i64]>::to_vec) {
            let c = shape[1] as usize;
            let inner = shape[2..].iter().product::<i64>() as usize;
            let p = affine(&mut rng, dtype, shape[1]);
            let x = rng.tensor(dtype, &shape);
            let (xs, w, b) = (x.reals(), reals(p.weight.as_ref()), reals(p.bias.as_ref()));
            let (weight, bias) =
                (p.weight.as_ref().map(Tensor::view), p.bias.as_ref().map(Tensor::view));
            let mut y = rng.tensor(dtype, &shape);
            let stat_type = if dtype == DType::F64 { dtype } else { DType::F32 };
            let (mut mean, mut rstd) =
                (rng.tensor(stat_type, &shape[1..2]), rng.tensor(stat_type, &shape[1..2]));
            let (mut run_mean, mut run_var) = (
                Tensor::full(stat_type, &shape[1..2], 0.5),
                Tensor::full(stat_type, &shape[1..2], 2.0),
            );
            let how = BatchNormOptions { training: true, momentum: 0.25, eps: 1e-3 };
            let saved = Some((&mut mean.view_mut(), &mut rstd.view_mut()));
            norm::batch_norm(
                &mut y.view_mut(),
                saved,
                x.view(),
                weight,
                bias,
                Some(&mut run_mean.view_mut()),
                Some(&mut run_var.view_mut()),
                how,
            )
            .unwrap();
            let f = |x: &[f64], w: &[f64], b: &[f64]| {
                naive_norm(x, &|i| i / inner % c, &|i| i / inner % c, w, b, 1e-3, true)
            };
            let what = format!("{dtype:?} {shape:?}");
            y.assert_reals(&f(&xs, &w, &b), &what);
            let count = (xs.len() / c) as f64;
            for ch in 0..c {
                let all: Vec<f64> =
                    (0..xs.len()).filter(|i| i / inner % c == ch).map(|i| xs[i]).collect();
                let m = all.iter().sum::<f64>() / count;
                let v = all.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (count - 1.0);
                assert!((run_mean.reals()[ch] - (0.375 + 0.25 * m)).abs() < 1e-4, "{what}");
                assert!((run_var.reals()[ch] - (1.5 + 0.25 * v)).abs() < 1e-4, "{what}");
            }
            let mut eval = rng.tensor(dtype, &shape);
            let how_eval = BatchNormOptions { training: false, ..how };
            norm::batch_norm(
                &mut eval.view_mut(),
                None,
                x.view(),
                weight,
                bias,
                Some(&mut run_mean.view_mut()),
                Some(&mut run_var.view_mut()),
                how_eval,
            )
            .unwrap();
            let (rm, rv) = (run_mean.reals(), run_var.reals());
            let f_eval = |x: &[f64]| -> Vec<f64> {
                (0..x.len())
                    .map(|i| {
                        let ch = i / inner % c;
                        (x[i] - rm[ch]) / (rv[ch] + 1e-3).sqrt() * w.get(ch).copied().unwrap_or(1.0)
                            + b.get(ch).copied().unwrap_or(0.0)
                    })
                    .collect()
            };
            eval.assert_reals(&f_eval(&xs), &what);
            if dtype != DType::F64 && dtype != DType::F32 || shape[0] == 2 && inner == 1 {
                continue;
            }
            let grad = rng.tensor(dtype, &shape);
            let g = grad.reals();
            let mut gx = rng.tensor(dtype, &shape);
            let (mut gw, mut gb) =
                (rng.tensor(dtype, &shape[1..2]), rng.tensor(dtype, &shape[1..2]));
            norm::batch_norm_backward(
                Some(&mut gx.view_mut()),
                Some(&mut gw.view_mut()),
                Some(&mut gb.view_mut()),
                grad.view(),
                x.view(),
                weight,
                mean.view(),
                rstd.view(),
                how,
            )
            .unwrap();
            let full_w = if w.is_empty() { vec![1.0; c] } else { w.clone() };
            if xs.len() > 400 {
                // Too many for differences: the sums of the formula.
                let (means, rstds) = (mean.reals(), rstd.reals());
                let channel = |i: usize| i / inner % c;
                let h = |i: usize| (xs[i] - means[channel(i)]) * rstds[channel(i)];
                let (mut by_w, mut by_b) = (vec![0.0; c], vec![0.0; c]);
                for i in 0..xs.len() {
                    by_w[channel(i)] += g[i] * h(i);
                    by_b[channel(i)] += g[i];
                }
                let by_x = |i: usize| {
                    let ch = channel(i);
                    let rest = (by_b[ch] + h(i) * by_w[ch]) / count;
                    full_w[ch] * rstds[ch] * (g[i] - rest)
                };
                assert_near(&gx, &(0..xs.len()).map(by_x).collect::<Vec<_>>(), &what);
                assert_near(&gw, &by_w, &what);
                assert_near(&gb, &by_b, &what);
                continue;
            }
            assert_near(&gx, &difference(&xs, &g, &|x| f(x, &w, &b)), &what);
            assert_near(&gw, &difference(&full_w, &g, &|w| f(&xs, w, &b)), &what);
            assert_near(&gb, &difference(&vec![0.0; c], &g, &|b| f(&xs, &w, b)), &what);
            norm::batch_norm_backward(
                Some(&mut gx.view_mut()),
                None,
                None,
                grad.view(),
                x.view(),
                weight,
                run_mean.view(),
                run_var.view(),
                how_eval,
            )
            .unwrap();
            assert_near(&gx, &difference(&xs, &g, &f_eval), &what);
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
