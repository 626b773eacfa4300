//! Pooling against a naive twin over random windows, dtypes and layouts.

mod tensor;

use pullback_kernels::DType;
use pullback_kernels::pool::{self, AvgPoolOptions, PoolWindow};
use pullback_kernels::simd::{SimdLevel, set_level};
use smallvec::SmallVec;
use tensor::{Rng, Tensor};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

fn window(rng: &mut Rng, spatial: usize, dilated: bool) -> PoolWindow {
    let mut w = PoolWindow {
        kernel: SmallVec::default(),
        stride: SmallVec::default(),
        padding: SmallVec::default(),
        dilation: SmallVec::default(),
        ceil_mode: rng.below(2) == 0,
    };
    for _ in 0..spatial {
        let k = rng.below(3) as usize + 1;
        w.kernel.push(k);
        w.stride.push(rng.below(3) as usize + 1);
        w.padding.push(rng.below(k as i64 / 2 + 1) as usize);
        w.dilation.push(if dilated { rng.below(2) as usize + 1 } else { 1 });
    }
    w
}

/// For each output of a plane: the input positions of its window (row-major, inside only), and the
/// window's size clipped to the padded input.
fn windows(input: &[i64], output: &[i64], w: &PoolWindow) -> Vec<(Vec<usize>, i64)> {
    let spatial = input.len();
    let unflat = |mut flat: i64, shape: &[i64]| {
        let mut index = vec![0; shape.len()];
        for d in (0..shape.len()).rev() {
            index[d] = flat % shape[d];
            flat /= shape[d];
        }
        index
    };
    let kernel: Vec<i64> = w.kernel.iter().map(|&k| k as i64).collect();
    (0..output.iter().product::<i64>())
        .map(|o| {
            let at = unflat(o, output);
            let mut inside = vec![];
            let mut padded = 1;
            for d in 0..spatial {
                let start = at[d] * w.stride[d] as i64 - w.padding[d] as i64;
                padded *= (start + kernel[d]).min(input[d] + w.padding[d] as i64) - start;
            }
            for k in 0..kernel.iter().product::<i64>() {
                let ki = unflat(k, &kernel);
                let p: Vec<i64> = (0..spatial)
                    .map(|d| {
                        at[d] * w.stride[d] as i64 - w.padding[d] as i64
                            + ki[d] * w.dilation[d] as i64
                    })
                    .collect();
                if (0..spatial).all(|d| (0..input[d]).contains(&p[d])) {
                    inside.push(p.iter().zip(input).fold(0, |f, (i, s)| f * s + i) as usize);
                }
            }
            (inside, padded)
        })
        .collect()
}

#[test]
fn pooling_and_its_gradients_equal_the_naive_twin() {
    let mut rng = Rng(1);
    for dtype in DTYPES {
        let mut done = 0;
        while done < 80 {
            let spatial = rng.below(3) as usize + 1;
            let w = window(&mut rng, spatial, true);
            set_level(SimdLevel::ALL[rng.below(3) as usize]);
            // Planes that are taken side by side, less and more than go together, and rows too long for it.
            let mut shape = vec![vec![2, 3], vec![3], vec![1], vec![16], vec![5, 7]]
                .swap_remove(rng.below(5) as usize);
            let planes: i64 = shape.iter().product();
            let mut input: Vec<i64> = (0..spatial).map(|_| rng.below(9) + 1).collect();
            if rng.below(4) == 0 {
                input[spatial - 1] += 30;
            }
            shape.extend(&input);
            let Ok(out_shape) = pool::output_shape(&shape, &w) else { continue };
            let output = out_shape[shape.len() - spatial..].to_vec();
            let all = windows(&input, &output, &w);
            if all.iter().any(|(inside, _)| inside.is_empty()) {
                continue;
            }
            done += 1;
            let (size, from) = (all.len(), input.iter().product::<i64>() as usize);
            let x = rng.tensor(dtype, &shape);
            let xs = x.reals();
            let what = format!("{dtype:?} {shape:?} {w:?}");
            let (mut y, mut indices) =
                (rng.tensor(dtype, &out_shape), rng.tensor(DType::I64, &out_shape));
            pool::max_pool(&mut y.view_mut(), Some(&mut indices.view_mut()), x.view(), &w).unwrap();
            let grad = rng.tensor(dtype, &out_shape);
            let gs = grad.reals();
            let (mut ey, mut ei, mut ex) = (vec![], vec![], vec![0.0; xs.len()]);
            for p in 0..planes as usize {
                for (o, (inside, _)) in all.iter().enumerate() {
                    let best = inside
                        .iter()
                        .copied()
                        .reduce(|a, b| if xs[p * from + b] > xs[p * from + a] { b } else { a })
                        .unwrap();
                    ey.push(xs[p * from + best]);
                    ei.push(best as f64);
                    ex[p * from + best] += gs[p * size + o];
                }
            }
            y.assert_reals(&ey, &what);
            indices.assert_reals(&ei, &what);
            let mut only = rng.tensor(dtype, &out_shape);
            pool::max_pool(&mut only.view_mut(), None, x.view(), &w).unwrap();
            only.assert_reals(&ey, &what);
            let mut gx = rng.tensor(dtype, &shape);
            pool::max_pool_backward(&mut gx.view_mut(), grad.view(), indices.view(), spatial)
                .unwrap();
            gx.assert_reals(&ex, &what);
            average(&mut rng, dtype, &x, &w, spatial);
            adaptive(&mut rng, dtype, &x, spatial);
        }
    }
    set_level(SimdLevel::Avx512);
}

fn average(rng: &mut Rng, dtype: DType, x: &Tensor, w: &PoolWindow, spatial: usize) {
    let w = PoolWindow { dilation: w.dilation.iter().map(|_| 1).collect(), ..w.clone() };
    let Ok(shape) = pool::output_shape(&x.shape, &w) else { return };
    let at = x.shape.len() - spatial;
    let (input, output) = (x.shape[at..].to_vec(), shape[at..].to_vec());
    let how = AvgPoolOptions {
        count_include_pad: rng.below(2) == 0,
        divisor_override: (rng.below(3) == 0).then_some(7),
    };
    let all = windows(&input, &output, &w);
    let from = input.iter().product::<i64>() as usize;
    let (xs, what) = (x.reals(), format!("average {dtype:?} {:?} {w:?} {how:?}", x.shape));
    let mut y = rng.tensor(dtype, &shape);
    pool::avg_pool(&mut y.view_mut(), x.view(), &w, how).unwrap();
    let grad = rng.tensor(dtype, &shape);
    let mut gx = rng.tensor(dtype, &x.shape);
    pool::avg_pool_backward(&mut gx.view_mut(), grad.view(), &w, how).unwrap();
    let (gs, mut ey, mut ex) = (grad.reals(), vec![], vec![0.0; xs.len()]);
    for i in 0..gs.len() {
        let (inside, padded) = &all[i % all.len()];
        let plane = i / all.len() * from;
        let by = how.divisor_override.map_or(
            if how.count_include_pad { *padded as f64 } else { inside.len() as f64 },
            |d| d as f64,
        );
        ey.push(inside.iter().map(|&j| xs[plane + j]).sum::<f64>() / by);
        for &j in inside {
            ex[plane + j] += gs[i] / by;
        }
    }
    y.assert_reals(&ey, &what);
    gx.assert_reals(&ex, &what);
}

fn adaptive(rng: &mut Rng, dtype: DType, x: &Tensor, spatial: usize) {
    let at = x.shape.len() - spatial;
    let mut shape = x.shape.clone();
    shape[at..].iter_mut().for_each(|s| *s = rng.below(6) + 1);
    let input = &x.shape[at..];
    let mut y = rng.tensor(dtype, &shape);
    pool::adaptive_avg_pool(&mut y.view_mut(), x.view(), spatial).unwrap();
    let grad = rng.tensor(dtype, &shape);
    let mut gx = rng.tensor(dtype, &x.shape);
    pool::adaptive_avg_pool_backward(&mut gx.view_mut(), grad.view(), spatial).unwrap();
    let (xs, gs) = (x.reals(), grad.reals());
    let (mut ey, mut ex) = (vec![0.0; gs.len()], vec![0.0; xs.len()]);
    let from: usize = input.iter().product::<i64>() as usize;
    let size: usize = shape[at..].iter().product::<i64>() as usize;
    for i in 0..gs.len() {
        let mut members = vec![i / size * from];
        let (mut o, mut step) = (i % size, 1);
        for d in (0..spatial).rev() {
            let (n, l) = (shape[at + d] as usize, input[d] as usize);
            let k = o % n;
            o /= n;
            let part = k * l / n..((k + 1) * l).div_ceil(n);
            members = part
                .flat_map(|p| members.iter().map(move |m| m + p * step).collect::<Vec<_>>())
                .collect();
            step *= l;
        }
        for &m in &members {
            ey[i] += xs[m] / members.len() as f64;
            ex[m] += gs[i] / members.len() as f64;
        }
    }
    y.assert_reals(&ey, &format!("adaptive {dtype:?} {:?} {shape:?}", x.shape));
    gx.assert_reals(&ex, &format!("adaptive gradient {dtype:?} {:?} {shape:?}", x.shape));
}

#[test]
fn nan_wins_and_all_minus_infinity_points_at_the_first_element() {
    let w = PoolWindow {
        kernel: [2].as_slice().into(),
        stride: [2].as_slice().into(),
        padding: [0].as_slice().into(),
        dilation: [1].as_slice().into(),
        ceil_mode: false,
    };
    let inf = f64::NEG_INFINITY;
    let x = Tensor::from(DType::F32, &[1, 6], &[1.0, f64::NAN, inf, inf, f64::NAN, 5.0]);
    let (mut y, mut i) =
        (Tensor::full(DType::F32, &[1, 3], 0.0), Tensor::full(DType::I64, &[1, 3], 9.0));
    pool::max_pool(&mut y.view_mut(), Some(&mut i.view_mut()), x.view(), &w).unwrap();
    assert!(y.reals()[0].is_nan() && y.reals()[1] == inf && y.reals()[2].is_nan());
    assert_eq!(i.reals(), [1.0, 2.0, 4.0]);
}

#[test]
fn ties_nan_and_infinities_in_long_rows_go_to_the_element_that_the_order_of_the_window_says() {
    let mut rng = Rng(5);
    let some = [f64::NEG_INFINITY, f64::NAN, 0.0, 1.0, 2.0, -1.0, f64::INFINITY];
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::I64] {
        for (kernel, stride, padding) in
            [(2, 2, 0), (2, 1, 1), (3, 2, 1), (3, 1, 1), (3, 3, 1), (2, 2, 1), (3, 2, 0)]
        {
            let w = PoolWindow {
                kernel: [3 - stride.min(2), kernel].as_slice().into(),
                stride: [1, stride].as_slice().into(),
                padding: [0, padding].as_slice().into(),
                dilation: [1; 2].as_slice().into(),
                ceil_mode: rng.below(2) == 0,
            };
            for width in [8, 9, 15, 127, 128, 129, 257, 300, 519] {
                // More columns than are taken side by side.
                let shape = [2, 5, width];
                let count = if dtype == DType::I64 { 3 } else { some.len() as i64 };
                let x: Vec<f64> = (0..2 * 5 * width)
                    .map(|_| match rng.below(count) as usize {
                        value if dtype == DType::I64 => value as f64,
                        value => some[value],
                    })
                    .collect();
                let x = Tensor::from(dtype, &shape, &x);
                let xs = x.reals();
                let out_shape = pool::output_shape(&shape, &w).unwrap();
                let mut y = Tensor::full(dtype, &out_shape, 9.0);
                let mut i = Tensor::full(DType::I64, &out_shape, -1.0);
                pool::max_pool(&mut y.view_mut(), Some(&mut i.view_mut()), x.view(), &w).unwrap();
                let all = windows(&shape[1..], &out_shape[1..], &w);
                let (ys, is) = (y.reals(), i.reals());
                for (o, (&y, &i)) in ys.iter().zip(&is).enumerate() {
                    let plane = &xs[o / all.len() * 5 * width as usize..];
                    let inside = &all[o % all.len()].0;
                    let best = inside.iter().copied().fold(inside[0], |best, at| {
                        let wins = plane[at] > plane[best] || plane[at].is_nan();
                        if wins { at } else { best }
                    });
                    let what = format!("{dtype:?} {w:?} width {width} output {o}");
                    assert!(i == best as f64, "{what}: position {i}, expected {best}");
                    assert!(y == plane[best] || (y.is_nan() && plane[best].is_nan()), "{what}");
                }
            }
        }
    }
}

#[test]
fn integers_pool_too_and_bad_windows_are_refused() {
    let mut w = PoolWindow {
        kernel: [2].as_slice().into(),
        stride: [1].as_slice().into(),
        padding: [0].as_slice().into(),
        dilation: [1].as_slice().into(),
        ceil_mode: false,
    };
    let x = Tensor::from(DType::I32, &[1, 3], &[3.0, -2.0, -1.0]);
    let mut y = Tensor::full(DType::I32, &[1, 2], 0.0);
    pool::max_pool(&mut y.view_mut(), None, x.view(), &w).unwrap();
    assert_eq!(y.reals(), [3.0, -1.0]);
    w.padding[0] = 2;
    let error = pool::output_shape(&[1, 3], &w).unwrap_err();
    assert!(error.message().contains("pad should be at most half of effective kernel size"));
}
