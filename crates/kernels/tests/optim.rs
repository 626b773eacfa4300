//! Optimiser steps against their formulas in doubles, clipping norms, and the negative log
//! likelihood against its naive twin.

mod tensor;

use pullback_kernels::loss::{self, Reduction};
use pullback_kernels::optim::{self, AdamOptions, ParamTensors, SgdOptions};
use pullback_kernels::{DType, Error};
use tensor::{Rng, Tensor};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

#[test]
fn sgd_follows_its_formula() {
    let mut rng = Rng(1);
    for dtype in DTYPES {
        for bits in 0..64 {
            let on = |b: i32| bits >> b & 1 == 1;
            let o = SgdOptions {
                lr: 0.1,
                momentum: if on(0) { 0.9 } else { 0.0 },
                dampening: if on(1) { 0.3 } else { 0.0 },
                weight_decay: if on(2) { 0.2 } else { 0.0 },
                nesterov: on(0) && on(3),
                maximize: on(4),
                is_first_step: on(5),
                grad_scale: on(1).then_some(4.0),
            };
            let (mut p, mut g, mut b) = (
                rng.tensor(dtype, &[7, 5]),
                rng.tensor(dtype, &[7, 5]),
                rng.tensor(dtype, &[7, 5]),
            );
            let (ps, gs, bs) = (p.reals(), g.reals(), b.reals());
            let mut buffers = [b.view_mut()];
            let (mut pv, mut gv) = (p.view_mut(), g.view_mut());
            optim::sgd(
                &mut ParamTensors { param: &mut pv, grad: &mut gv, buffers: &mut buffers },
                &o,
            )
            .unwrap();
            let (mut ep, mut eb) = (vec![], vec![]);
            for i in 0..ps.len() {
                let g = gs[i] / o.grad_scale.unwrap_or(1.0) * if o.maximize { -1.0 } else { 1.0 }
                    + o.weight_decay * ps[i];
                let b =
                    if o.is_first_step { g } else { o.momentum * bs[i] + (1.0 - o.dampening) * g };
                let step = if o.momentum == 0.0 {
                    g
                } else if o.nesterov {
                    g + o.momentum * b
                } else {
                    b
                };
                ep.push(ps[i] - o.lr * step);
                eb.push(if o.momentum == 0.0 { bs[i] } else { b });
            }
            p.assert_reals(&ep, &format!("{dtype:?} {o:?}"));
            b.assert_reals(&eb, &format!("{dtype:?} {o:?}"));
            if let Some(scale) = o.grad_scale {
                g.assert_reals(
                    &gs.iter().map(|g| g / scale).collect::<Vec<_>>(),
                    "unscaled gradient",
                );
            }
        }
    }
}

#[test]
fn adam_and_adamw_follow_their_formulas() {
    let mut rng = Rng(2);
    for dtype in DTYPES {
        for bits in 0..16 {
            let on = |b: i32| bits >> b & 1 == 1;
            let o = AdamOptions {
                lr: 0.01,
                beta1: 0.9,
                beta2: 0.99,
                eps: 1e-3,
                step: 3.0,
                weight_decay: if on(0) { 0.2 } else { 0.0 },
                amsgrad: on(1),
                maximize: on(2),
                grad_scale: on(1).then_some(2.0),
            };
            let mut t: Vec<Tensor> = (0..5).map(|_| rng.tensor(dtype, &[9, 3])).collect();
            for buffer in &mut t[3..] {
                for i in 0..27 {
                    let v = buffer.values()[i].re.abs();
                    buffer.set_flat(i, v.into());
                }
            }
            let old: Vec<Vec<f64>> = t.iter().map(Tensor::reals).collect();
            let [p, g, m, v, top] = &mut t[..] else { unreachable!() };
            let mut buffers = [m.view_mut(), v.view_mut(), top.view_mut()];
            let (mut pv, mut gv) = (p.view_mut(), g.view_mut());
            let step = if on(3) { optim::adamw } else { optim::adam };
            step(&mut ParamTensors { param: &mut pv, grad: &mut gv, buffers: &mut buffers }, &o)
                .unwrap();
            let mut new = vec![vec![0.0; 27]; 3];
            for i in 0..27 {
                let mut g =
                    old[1][i] / o.grad_scale.unwrap_or(1.0) * if o.maximize { -1.0 } else { 1.0 };
                let mut p = old[0][i];
                if on(3) {
                    p -= o.lr * o.weight_decay * p;
                } else {
                    g += o.weight_decay * p;
                }
                let m = o.beta1 * old[2][i] + (1.0 - o.beta1) * g;
                let v = o.beta2 * old[3][i] + (1.0 - o.beta2) * g * g;
                // The third buffer is named `top`; without amsgrad it stays as it was.
                let second = if o.amsgrad { v.max(old[4][i]) } else { v };
                let denominator = second.sqrt() / (1.0 - o.beta2.powf(o.step)).sqrt() + o.eps;
                new[0][i] = p - o.lr / (1.0 - o.beta1.powf(o.step)) * m / denominator;
                new[1][i] = m;
                new[2][i] = v;
            }
            for (t, new, name) in [
                (&t[0], &new[0], "param"),
                (&t[2], &new[1], "exp_avg"),
                (&t[3], &new[2], "exp_avg_sq"),
            ] {
                t.assert_reals(new, &format!("{name} {dtype:?} {o:?}"));
            }
        }
    }
}

#[test]
fn norms_over_several_tensors_equal_the_naive_sum() {
    let mut rng = Rng(3);
    for dtype in DTYPES {
        let mut t =
            [rng.tensor(dtype, &[40, 30]), rng.tensor(dtype, &[7]), rng.tensor(dtype, &[0, 3])];
        let all: Vec<f64> = t.iter().flat_map(Tensor::reals).collect();
        let views: Vec<_> = t.iter().map(Tensor::view).collect();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-4 * b, "{a} {b}");
        near(
            optim::total_norm(&views, 2.0).unwrap(),
            all.iter().map(|v| v * v).sum::<f64>().sqrt(),
        );
        near(optim::total_norm(&views, 1.0).unwrap(), all.iter().map(|v| v.abs()).sum());
        near(
            optim::total_norm(&views, f64::INFINITY).unwrap(),
            all.iter().fold(0.0, |a, v| v.abs().max(a)),
        );
        near(
            optim::total_norm(&views, 3.0).unwrap(),
            all.iter().map(|v| v.abs().powi(3)).sum::<f64>().cbrt(),
        );
        let before = t[0].reals();
        optim::scale(&mut [t[0].view_mut()], 0.5).unwrap();
        t[0].assert_reals(&before.iter().map(|v| v * 0.5).collect::<Vec<_>>(), "scale");
    }
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
                    let x = rng.tensor(dtype, &shape);
                    let weight = weighted.then(|| rng.tensor(dtype, &[5]));
                    let mut target = rng.tensor(DType::I64, &target_shape);
                    let n = target.numel();
                    let ts: Vec<i64> =
                        (0..n).map(|i| if i == 1 { -100 } else { rng.below(5) }).collect();
                    ts.iter().enumerate().for_each(|(i, &t)| target.set_flat(i, (t as f64).into()));
                    let scalar: &[i64] = &[];
                    let out_shape =
                        if reduction == Reduction::None { &target_shape[..] } else { scalar };
                    let (mut y, mut total) = (rng.tensor(dtype, out_shape), rng.tensor(dtype, &[]));
                    loss::nll_loss(
                        &mut y.view_mut(),
                        &mut total.view_mut(),
                        x.view(),
                        target.view(),
                        weight.as_ref().map(Tensor::view),
                        reduction,
                        -100,
                    )
                    .unwrap();
                    let inner: usize = target_shape.iter().skip(1).product::<i64>() as usize;
                    let (xs, ws) = (x.reals(), weight.as_ref().map_or(vec![1.0; 5], Tensor::reals));
                    let at = |i: usize, c: i64| {
                        if shape.len() == 1 {
                            c as usize
                        } else {
                            (i / inner * 5 + c as usize) * inner + i % inner
                        }
                    };
                    let each: Vec<f64> =
                        (0..n)
                            .map(|i| {
                                if ts[i] < 0 { 0.0 } else { -ws[ts[i] as usize] * xs[at(i, ts[i])] }
                            })
                            .collect();
                    let sum_w: f64 = ts.iter().filter(|&&t| t >= 0).map(|&t| ws[t as usize]).sum();
                    let what = format!("{dtype:?} {shape:?} {reduction:?}");
                    let close = |t: &Tensor, want: &[f64]| {
                        for (a, b) in t.reals().iter().zip(want) {
                            assert!(
                                (a - b).abs() <= t.tolerance() * (2.0 + b.abs() + b * b),
                                "{what} {a} {b}"
                            );
                        }
                    };
                    match reduction {
                        Reduction::None => close(&y, &each),
                        Reduction::Sum => close(&y, &[each.iter().sum()]),
                        Reduction::Mean => close(&y, &[each.iter().sum::<f64>() / sum_w]),
                    }
                    let grad = rng.tensor(dtype, out_shape);
                    let mut gx = rng.tensor(dtype, &shape);
                    loss::nll_loss_backward(
                        &mut gx.view_mut(),
                        grad.view(),
                        target.view(),
                        weight.as_ref().map(Tensor::view),
                        reduction,
                        -100,
                        total.view(),
                    )
                    .unwrap();
                    let mut ex = vec![0.0; xs.len()];
                    for i in (0..n).filter(|&i| ts[i] >= 0) {
                        let g = grad.reals()[if reduction == Reduction::None { i } else { 0 }];
                        let g = if reduction == Reduction::Mean { g / total.reals()[0] } else { g };
                        ex[at(i, ts[i])] = -ws[ts[i] as usize] * g;
                    }
                    close(&gx, &ex);
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
