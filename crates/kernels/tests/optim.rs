//! Optimiser steps against their formulas in doubles, and the negative log likelihood against its
//! naive twin.

mod tensor;

use pullback_kernels::loss::{self, Reduction};
use pullback_kernels::optim::{
    self, Adadelta, Adagrad, Adam, Adamax, Asgd, BUFFERS, NAdam, OptimState, RAdam, RmsProp, Rprop,
    Sgd, UpdateRule,
};
use pullback_kernels::{DType, Error};
use tensor::{Rng, Tensor};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// One element of a step in doubles: the parameter, the gradient and the buffers, changed in place.
type Naive<'n> = &'n dyn Fn(&mut f64, f64, &mut [f64; BUFFERS]);

/// The first step of a rule.
fn one_step(rule: &UpdateRule, state: &mut OptimState<'_, '_>) -> pullback_kernels::Result<()> {
    optim::step(rule, &rule.factors(&[1.0]), None, state)
}

/// Takes one step from random tensors and compares parameter, gradient and buffers with `naive`, for
/// every dtype, with and without a scale. Buffers that the rule does not use must stay away.
fn follows(rule: impl Into<UpdateRule>, numbers: &[f64], naive: Naive<'_>) {
    let rule = rule.into();
    let mut rng = Rng(1);
    for dtype in DTYPES {
        for scale in [None, Some(4.0)] {
            let what = format!("{dtype:?} {scale:?} {rule:?}");
            let mut tensors: Vec<Tensor> =
                (0..2 + BUFFERS).map(|_| rng.tensor(dtype, &[9, 3])).collect();
            // Averages of squares and of gradients, so that the variance of the second is positive.
            for (index, buffer) in tensors[2..].iter_mut().enumerate() {
                let value = |v: f64| if index == 0 { 1.0 + v.abs() } else { v.abs().min(1.0) };
                let values = buffer.reals().into_iter().map(value);
                values.enumerate().for_each(|(i, v)| buffer.set_flat(i, v.into()));
            }
            let old: Vec<Vec<f64>> = tensors.iter().map(Tensor::reals).collect();
            let (head, tail) = tensors.split_at_mut(2);
            let [p, g] = head else { unreachable!() };
            let used = rule.used();
            let mut buffers: Vec<_> = tail
                .iter_mut()
                .zip(used)
                .filter_map(|(buffer, used)| used.then(|| buffer.view_mut()))
                .collect();
            let mut state = OptimState {
                param: &mut p.view_mut(),
                grad: &mut g.view_mut(),
                buffers: &mut buffers,
            };
            optim::step(&rule, &rule.factors(numbers), scale, &mut state).unwrap();
            let mut new = old.clone();
            for i in 0..old[0].len() {
                new[1][i] /= scale.unwrap_or(1.0);
                let mut values = std::array::from_fn(|k| old[2 + k][i]);
                let mut param = old[0][i];
                naive(&mut param, new[1][i], &mut values);
                new[0][i] = param;
                for (k, value) in values.into_iter().enumerate() {
                    new[2 + k][i] = if used[k] { value } else { old[2 + k][i] };
                }
            }
            for (k, (tensor, new)) in tensors.iter().zip(&new).enumerate() {
                tensor.assert_reals(new, &format!("tensor {k} {what}"));
            }
        }
    }
}

fn signed(maximize: bool, g: f64) -> f64 {
    if maximize { -g } else { g }
}

#[test]
fn sgd_follows_its_formula() {
    for bits in 0..64 {
        let on = |b: i32| bits >> b & 1 == 1;
        let o = Sgd {
            lr: 0.1,
            momentum: if on(0) { 0.9 } else { 0.0 },
            dampening: if on(1) { 0.3 } else { 0.0 },
            weight_decay: if on(2) { 0.2 } else { 0.0 },
            nesterov: on(0) && on(3),
            maximize: on(4),
            is_first_step: on(5),
        };
        follows(o, &[], &|p, g, [b, ..]| {
            let g = signed(o.maximize, g) + o.weight_decay * *p;
            *b = if o.is_first_step { g } else { o.momentum * *b + (1.0 - o.dampening) * g };
            *p -= o.lr
                * if o.momentum == 0.0 {
                    g
                } else if o.nesterov {
                    g + o.momentum * *b
                } else {
                    *b
                };
        });
    }
}

#[test]
fn adam_follows_its_formula() {
    for bits in 0..16 {
        let on = |b: i32| bits >> b & 1 == 1;
        let o = Adam {
            lr: 0.01,
            beta1: if on(1) { 0.9 } else { 0.3 },
            beta2: 0.99,
            eps: 1e-3,
            weight_decay: if on(0) { 0.2 } else { 0.0 },
            amsgrad: on(1),
            maximize: on(2),
            decoupled_weight_decay: on(3),
        };
        follows(o, &[3.0], &|p, g, [m, v, top]| {
            let mut g = signed(o.maximize, g);
            if o.decoupled_weight_decay {
                *p -= o.lr * o.weight_decay * *p;
            } else {
                g += o.weight_decay * *p;
            }
            *m = o.beta1 * *m + (1.0 - o.beta1) * g;
            *v = o.beta2 * *v + (1.0 - o.beta2) * g * g;
            *top = if o.amsgrad { v.max(*top) } else { *v };
            let denominator = top.sqrt() / (1.0 - o.beta2.powi(3)).sqrt() + o.eps;
            *p -= o.lr / (1.0 - o.beta1.powi(3)) * *m / denominator;
        });
    }
}

#[test]
fn adagrad_and_adadelta_follow_their_formulas() {
    for (maximize, weight_decay) in [(false, 0.0), (true, 0.2)] {
        let o = Adagrad { lr: 0.1, lr_decay: 0.5, weight_decay, eps: 1e-3, maximize };
        follows(o, &[3.0], &|p, g, [sum, ..]| {
            let g = signed(maximize, g) + weight_decay * *p;
            *sum += g * g;
            *p -= o.lr / 2.0 * g / (sum.sqrt() + o.eps);
        });
        let o = Adadelta { lr: 0.5, rho: 0.8, eps: 1e-2, weight_decay, maximize };
        follows(o, &[3.0], &|p, g, [square, update, _]| {
            let g = signed(maximize, g) + weight_decay * *p;
            *square = 0.8 * *square + 0.2 * g * g;
            let delta = ((*update + o.eps) / (*square + o.eps)).sqrt() * g;
            *update = 0.8 * *update + 0.2 * delta * delta;
            *p -= o.lr * delta;
        });
    }
}

#[test]
fn adamax_and_asgd_follow_their_formulas() {
    for (maximize, weight_decay, mu) in [(false, 0.0, 1.0), (true, 0.2, 0.25)] {
        let o = Adamax { lr: 0.1, beta1: 0.9, beta2: 0.99, eps: 1e-2, weight_decay, maximize };
        follows(o, &[2.0], &|p, g, [m, largest, _]| {
            let g = signed(maximize, g) + weight_decay * *p;
            *m = 0.9 * *m + 0.1 * g;
            *largest = (0.99 * *largest).max(g.abs() + o.eps);
            *p -= o.lr / (1.0 - 0.81) * *m / *largest;
        });
        let o = Asgd { lr: 0.1, lambd: 0.3, alpha: 0.75, t0: 1.0, weight_decay, maximize };
        follows(o, &[2.0, 0.5, mu], &|p, g, [average, ..]| {
            let g = signed(maximize, g) + weight_decay * *p;
            *p = *p * (1.0 - 0.3 * 0.5) - 0.5 * g;
            *average += mu * (*p - *average);
        });
        let (eta, mu) = o.rates(5.0);
        assert!((eta - 0.1 / 1.15_f64.powf(0.75)).abs() < 1e-15 && mu == 0.25);
    }
}

#[test]
fn nadam_and_radam_follow_their_formulas() {
    for (maximize, weight_decay, decoupled_weight_decay) in
        [(false, 0.0, false), (true, 0.2, false), (false, 0.2, true)]
    {
        let step = |lr: f64, p: &mut f64, g: f64, m: &mut f64, v: &mut f64| {
            let mut g = signed(maximize, g);
            if decoupled_weight_decay {
                *p *= 1.0 - lr * weight_decay;
            } else {
                g += weight_decay * *p;
            }
            *m = 0.9 * *m + 0.1 * g;
            *v = 0.8 * *v + 0.2 * g * g;
            g
        };
        let (lr, beta1, beta2, eps) = (0.1, 0.9, 0.8, 1e-2);
        let o = NAdam {
            lr,
            beta1,
            beta2,
            eps,
            weight_decay,
            momentum_decay: 0.5,
            decoupled_weight_decay,
            maximize,
        };
        let mu = |t: f64| 0.9 * (1.0 - 0.5 * 0.96_f64.powf(t * 0.5));
        follows(o, &[3.0, 0.2], &|p, g, [m, v, _]| {
            let g = step(lr, p, g, m, v);
            let mean = mu(4.0) * *m / (1.0 - 0.2 * mu(4.0)) + (1.0 - mu(3.0)) * g / (1.0 - 0.2);
            *p -= lr * mean / ((*v / (1.0 - 0.8_f64.powi(3))).sqrt() + eps);
        });
        // With beta2 = 0.8 the rate is rectified from the ninth step on.
        for count in [3_i32, 30] {
            let o = RAdam { lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize };
            follows(o, &[f64::from(count)], &|p, g, [m, v, _]| {
                step(lr, p, g, m, v);
                let decayed = 0.8_f64.powi(count);
                let (limit, correction) = (9.0, 1.0 - decayed);
                let rho = limit - 2.0 * f64::from(count) * decayed / correction;
                let rate = if rho > 5.0 {
                    let ratio =
                        (rho - 4.0) * (rho - 2.0) * limit / ((limit - 4.0) * (limit - 2.0) * rho);
                    (correction * ratio).sqrt() / (v.sqrt() + eps)
                } else {
                    1.0
                };
                *p -= lr * *m / (1.0 - 0.9_f64.powi(count)) * rate;
            });
        }
    }
}

#[test]
fn rmsprop_follows_its_formula() {
    for bits in 0..8 {
        let on = |b: i32| bits >> b & 1 == 1;
        let (centered, momentum) = (on(0), if on(1) { 0.9 } else { 0.0 });
        let o = RmsProp {
            lr: 0.1,
            alpha: 0.7,
            eps: 0.1,
            weight_decay: if on(2) { 0.2 } else { 0.0 },
            momentum,
            centered,
            maximize: on(2),
        };
        follows(o, &[3.0], &|p, g, [square, mean, buffer]| {
            let g = signed(o.maximize, g) + o.weight_decay * *p;
            *square = o.alpha * *square + (1.0 - o.alpha) * g * g;
            *mean = o.alpha * *mean + (1.0 - o.alpha) * g;
            let variance = if centered { *square - *mean * *mean } else { *square };
            let move_ = g / (variance.sqrt() + o.eps);
            *buffer = momentum * *buffer + move_;
            *p -= o.lr * if on(1) { *buffer } else { move_ };
        });
    }
}

#[test]
fn rprop_follows_its_formula() {
    let mut rng = Rng(3);
    for maximize in [false, true] {
        let o =
            Rprop { step_size_min: 0.2, step_size_max: 0.9, etaminus: 0.5, etaplus: 1.2, maximize };
        // The last gradients of `follows` are positive, so that half of the signs change.
        follows(o, &[3.0], &|p, g, [previous, size, _]| {
            let g = signed(maximize, g);
            let agreement = g * *previous;
            *size *= if agreement > 0.0 {
                1.2
            } else if agreement < 0.0 {
                0.5
            } else {
                1.0
            };
            *size = size.clamp(0.2, 0.9);
            *previous = if agreement < 0.0 { 0.0 } else { g };
            *p -= if *previous == 0.0 { 0.0 } else { previous.signum() * *size };
        });
    }
    let nan = Tensor::full(DType::F64, &[1], f64::NAN);
    let (mut p, mut g, mut last) =
        (rng.tensor(DType::F64, &[1]), nan, Tensor::full(DType::F64, &[1], 1.0));
    let mut size = Tensor::full(DType::F64, &[1], 0.5);
    let before = p.reals();
    let mut buffers = [last.view_mut(), size.view_mut()];
    let o = Rprop {
        step_size_min: 0.1,
        step_size_max: 1.0,
        etaminus: 0.5,
        etaplus: 1.2,
        maximize: false,
    };
    let mut state =
        OptimState { param: &mut p.view_mut(), grad: &mut g.view_mut(), buffers: &mut buffers };
    one_step(&o.into(), &mut state).unwrap();
    assert_eq!((p.reals(), size.reals()), (before, vec![0.5]), "NaN has no sign");
}

#[test]
fn an_infinite_parameter_without_penalty_stays_infinite() {
    let o = Adam {
        lr: 0.1,
        beta1: 0.9,
        beta2: 0.99,
        eps: 1e-8,
        weight_decay: 0.0,
        amsgrad: false,
        maximize: false,
        decoupled_weight_decay: false,
    };
    let full = |value: f64| Tensor::full(DType::F32, &[20], value);
    let (mut p, mut g, mut m, mut v) = (full(f64::INFINITY), full(1.0), full(0.0), full(0.0));
    let mut buffers = [m.view_mut(), v.view_mut()];
    let mut state =
        OptimState { param: &mut p.view_mut(), grad: &mut g.view_mut(), buffers: &mut buffers };
    one_step(&o.into(), &mut state).unwrap();
    assert_eq!(p.reals(), vec![f64::INFINITY; 20]);
}

#[test]
fn a_missing_buffer_is_an_error() {
    let (mut p, mut g) = (Tensor::full(DType::F32, &[2], 1.0), Tensor::full(DType::F32, &[2], 1.0));
    let o = Adagrad { lr: 0.1, lr_decay: 0.0, weight_decay: 0.0, eps: 1e-8, maximize: false };
    let mut state =
        OptimState { param: &mut p.view_mut(), grad: &mut g.view_mut(), buffers: &mut [] };
    let error = one_step(&o.into(), &mut state).unwrap_err();
    let text = "fused_adagrad_kernel: expected 1 state buffers, got 0";
    assert_eq!(error, Error::runtime(text.to_owned()));
}

/// The index of class `c` of target `i` in an input of 5 classes.
fn class_index(shape: &[i64], i: usize, c: i64) -> usize {
    let inner = shape.iter().skip(2).product::<i64>() as usize;
    if shape.len() == 1 { c as usize } else { (i / inner * 5 + c as usize) * inner + i % inner }
}

/// Targets below 5 of this shape, the second one ignored.
fn targets(rng: &mut Rng, shape: &[i64]) -> (Tensor, Vec<i64>) {
    let mut target = rng.tensor(DType::I64, shape);
    let numbers: Vec<i64> =
        (0..target.numel()).map(|i| if i == 1 { -100 } else { rng.below(5) }).collect();
    numbers.iter().enumerate().for_each(|(i, &t)| target.set_flat(i, (t as f64).into()));
    (target, numbers)
}

fn assert_close(t: &Tensor, expected: &[f64], what: &str) {
    for (a, b) in t.reals().iter().zip(expected) {
        assert!((a - b).abs() <= t.tolerance() * (2.0 + b.abs() + b * b), "{what} {a} {b}");
    }
}

fn check_nll_loss(
    rng: &mut Rng,
    dtype: DType,
    (shape, target_shape): (&[i64], &[i64]),
    (weighted, reduction): (bool, Reduction),
) {
    let x = rng.tensor(dtype, shape);
    let weight = weighted.then(|| rng.tensor(dtype, &[5]));
    let (target, ts) = targets(rng, target_shape);
    let out_shape = if reduction == Reduction::None { target_shape } else { &[] };
    let (mut y, mut total) = (rng.tensor(dtype, out_shape), rng.tensor(dtype, &[]));
    let weights = weight.as_ref().map(Tensor::view);
    let (to, total_to) = (&mut y.view_mut(), &mut total.view_mut());
    loss::nll_loss(to, total_to, x.view(), target.view(), weights, reduction, -100).unwrap();
    let (xs, ws) = (x.reals(), weight.as_ref().map_or(vec![1.0; 5], Tensor::reals));
    let one = |i: usize| {
        if ts[i] < 0 { 0.0 } else { -ws[ts[i] as usize] * xs[class_index(shape, i, ts[i])] }
    };
    let each: Vec<f64> = (0..ts.len()).map(one).collect();
    let sum_w: f64 = ts.iter().filter(|&&t| t >= 0).map(|&t| ws[t as usize]).sum();
    let what = format!("{dtype:?} {shape:?} {reduction:?}");
    match reduction {
        Reduction::None => assert_close(&y, &each, &what),
        Reduction::Sum => assert_close(&y, &[each.iter().sum()], &what),
        Reduction::Mean => assert_close(&y, &[each.iter().sum::<f64>() / sum_w], &what),
    }
    let (grad, mut gx) = (rng.tensor(dtype, out_shape), rng.tensor(dtype, shape));
    let (to, totals) = (&mut gx.view_mut(), total.view());
    loss::nll_loss_backward(to, grad.view(), target.view(), weights, reduction, -100, totals)
        .unwrap();
    let mut expected = vec![0.0; xs.len()];
    for i in (0..ts.len()).filter(|&i| ts[i] >= 0) {
        let g = grad.reals()[if reduction == Reduction::None { i } else { 0 }];
        let g = if reduction == Reduction::Mean { g / total.reals()[0] } else { g };
        expected[class_index(shape, i, ts[i])] = -ws[ts[i] as usize] * g;
    }
    assert_close(&gx, &expected, &what);
}

#[test]
fn nll_loss_and_its_gradient_equal_the_naive_twin() {
    let mut rng = Rng(4);
    for dtype in DTYPES {
        for (shape, target_shape) in [
            (vec![5], vec![]),
            (vec![6, 5], vec![6]),
            (vec![3, 5, 4], vec![3, 4]),
            (vec![2, 5, 3, 2], vec![2, 3, 2]),
        ] {
            for weighted in [false, true] {
                for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
                    let shapes = (&shape[..], &target_shape[..]);
                    check_nll_loss(&mut rng, dtype, shapes, (weighted, reduction));
                }
            }
        }
    }
}

#[test]
fn a_target_outside_the_classes_is_an_index_error() {
    let x = Tensor::full(DType::F32, &[2, 3], 0.0);
    let target = Tensor::from(DType::I64, &[2], &[1.0, 3.0]);
    let (mut y, mut total) =
        (Tensor::full(DType::F32, &[], 0.0), Tensor::full(DType::F32, &[], 0.0));
    let error = loss::nll_loss(
        &mut y.view_mut(),
        &mut total.view_mut(),
        x.view(),
        target.view(),
        None,
        Reduction::Mean,
        -100,
    );
    assert_eq!(error, Err(Error::index("Target 3 is out of bounds.".to_owned())));
}
