//! Convolutions against a naive twin over dtypes, layouts and parameters; the gradients through the
//! adjoint identity: `<conv(x, w), g> = <x, backward_input(g, w)> = <w, backward_weight(g, x)>`.

mod tensor;

use pullback_kernels::conv::{self, ConvOptions};
use pullback_kernels::simd::{SimdLevel, set_level};
use pullback_kernels::{C128, DType, parallel};
use tensor::{Rng, Tensor};

const DTYPES: [DType; 7] =
    [DType::F32, DType::F64, DType::C32, DType::C64, DType::C128, DType::F16, DType::BF16];

fn unflat(mut flat: i64, shape: &[i64]) -> Vec<i64> {
    let mut index = vec![0; shape.len()];
    for d in (0..shape.len()).rev() {
        index[d] = flat % shape[d];
        flat /= shape[d];
    }
    index
}

type Each<'a> = &'a mut dyn FnMut(&[i64], &[i64], &[i64]);

/// Calls `each(x index, weight index, output index)` for every product of the convolution.
fn for_products(x: &[i64], w: &[i64], out: &[i64], c: &ConvOptions, each: Each<'_>) {
    let spatial = c.stride.len();
    // The side the kernel slides over, and the side whose positions it is placed at.
    let (wide, narrow) = if c.transposed { (out, x) } else { (x, out) };
    let groups = c.groups as i64;
    for flat in 0..w.iter().product::<i64>() {
        let wi = unflat(flat, w);
        for group in 0..groups {
            if wi[0] / (w[0] / groups) != group {
                continue;
            }
            let wide_channel = group * w[1] + wi[1];
            for n in 0..x[0] {
                for p in 0..narrow[2..].iter().product::<i64>() {
                    let at = unflat(p, &narrow[2..]);
                    let (mut wide_at, mut narrow_at) = (vec![n, wide_channel], vec![n, wi[0]]);
                    for d in 0..spatial {
                        wide_at.push(
                            at[d] * c.stride[d] as i64 + wi[d + 2] * c.dilation[d] as i64
                                - c.padding[d] as i64,
                        );
                        narrow_at.push(at[d]);
                    }
                    if (0..spatial).all(|d| (0..wide[d + 2]).contains(&wide_at[d + 2])) {
                        if c.transposed {
                            each(&narrow_at, &wi, &wide_at);
                        } else {
                            each(&wide_at, &wi, &narrow_at);
                        }
                    }
                }
            }
        }
    }
}

fn flat(index: &[i64], shape: &[i64]) -> usize {
    index.iter().zip(shape).fold(0, |f, (i, s)| f * s + i) as usize
}

fn check(rng: &mut Rng, dtype: DType, x_shape: &[i64], w_shape: &[i64], c: &ConvOptions) {
    let (x, w) = (rng.tensor(dtype, x_shape), rng.tensor(dtype, w_shape));
    let shape = conv::output_shape(x_shape, w_shape, c).unwrap();
    let what = format!("{dtype:?} x {x_shape:?} w {w_shape:?} {c:?}");
    let bias = (rng.below(2) == 0).then(|| rng.tensor(dtype, &shape[1..2]));
    let mut out = rng.tensor(dtype, &shape);
    conv::convolution(&mut out.view_mut(), x.view(), w.view(), bias.as_ref().map(Tensor::view), c)
        .unwrap();
    let grad = rng.tensor(dtype, &shape);
    let (mut gx, mut gw) = (rng.tensor(dtype, x_shape), rng.tensor(dtype, w_shape));
    conv::convolution_backward_input(&mut gx.view_mut(), grad.view(), w.view(), c).unwrap();
    conv::convolution_backward_weight(&mut gw.view_mut(), grad.view(), x.view(), c).unwrap();
    let inner: i64 = shape[2..].iter().product();
    let mut y: Vec<C128> = (0..out.numel() as i64)
        .map(|i| bias.as_ref().map_or(C128::default(), |b| b.at(&[i / inner % shape[1]])))
        .collect();
    let (mut ex, mut ew) = (vec![C128::default(); x.numel()], vec![C128::default(); w.numel()]);
    for_products(x_shape, w_shape, &shape, c, &mut |xi, wi, oi| {
        y[flat(oi, &shape)] += x.at(xi) * w.at(wi);
        ex[flat(xi, x_shape)] += grad.at(oi) * w.at(wi);
        ew[flat(wi, w_shape)] += grad.at(oi) * x.at(xi);
    });
    out.assert_close(&y, &what);
    gx.assert_close(&ex, &format!("input gradient {what}"));
    gw.assert_close(&ew, &format!("weight gradient {what}"));
    let mut gb = rng.tensor(dtype, &shape[1..2]);
    conv::convolution_backward_bias(&mut gb.view_mut(), grad.view()).unwrap();
    let mut eb = vec![C128::default(); shape[1] as usize];
    for (i, g) in grad.values().into_iter().enumerate() {
        eb[i / inner as usize % shape[1] as usize] += g;
    }
    gb.assert_close(&eb, &format!("bias gradient {what}"));
}

/// Shapes of an input and a weight, and options, at random, for which there is an output with elements.
fn random_case(rng: &mut Rng) -> (Vec<i64>, Vec<i64>, ConvOptions) {
    loop {
        let spatial = rng.below(3) as usize + 1;
        let groups = [1, 1, 2, 3][rng.below(4) as usize];
        let (ci, co) = (rng.below(3) + 1, rng.below(4) + 1);
        let mut c = ConvOptions::plain(spatial);
        c.groups = groups as usize;
        c.transposed = rng.below(3) == 0;
        for d in 0..spatial {
            c.stride[d] = rng.below(3) as usize + 1;
            c.padding[d] = rng.below(3) as usize;
            c.dilation[d] = rng.below(2) as usize + 1;
            c.output_padding[d] = rng.below(c.stride[d].max(c.dilation[d]) as i64) as usize;
        }
        let mut x = vec![rng.below(3) + 1, ci * groups];
        let mut w = if c.transposed { vec![ci * groups, co] } else { vec![co * groups, ci] };
        for _ in 0..spatial {
            x.push(rng.below(7) + 1);
            w.push(rng.below(3) + 1);
        }
        if conv::output_shape(&x, &w, &c).is_ok_and(|shape| !shape.contains(&0)) {
            return (x, w, c);
        }
    }
}

#[test]
fn random_convolutions_and_their_gradients_equal_the_naive_twin() {
    let mut rng = Rng(7);
    for dtype in DTYPES {
        for _ in 0..60 {
            let (x, w, c) = random_case(&mut rng);
            check(&mut rng, dtype, &x, &w, &c);
        }
    }
}

#[test]
fn random_convolutions_of_integers_equal_the_naive_twin() {
    let mut rng = Rng(9);
    for dtype in [DType::I64, DType::I32, DType::I16, DType::U8] {
        for _ in 0..60 {
            let (x_shape, w_shape, c) = random_case(&mut rng);
            let (x, w) = (rng.tensor(dtype, &x_shape), rng.tensor(dtype, &w_shape));
            let shape = conv::output_shape(&x_shape, &w_shape, &c).unwrap();
            let bias = rng.tensor(dtype, &shape[1..2]);
            let mut out = rng.tensor(dtype, &shape);
            conv::convolution(&mut out.view_mut(), x.view(), w.view(), Some(bias.view()), &c)
                .unwrap();
            let inner: i64 = shape[2..].iter().product();
            let mut y: Vec<C128> =
                (0..out.numel() as i64).map(|i| bias.at(&[i / inner % shape[1]])).collect();
            for_products(&x_shape, &w_shape, &shape, &c, &mut |xi, wi, oi| {
                y[flat(oi, &shape)] += x.at(xi) * w.at(wi);
            });
            out.assert_close(&y, &format!("{dtype:?} x {x_shape:?} w {w_shape:?} {c:?}"));
        }
    }
}

#[test]
fn larger_and_special_convolutions_equal_the_naive_twin() {
    let mut rng = Rng(8);
    let conv2 = |stride: usize, padding: usize, groups: usize| ConvOptions {
        stride: [stride; 2].as_slice().into(),
        padding: [padding; 2].as_slice().into(),
        groups,
        ..ConvOptions::plain(2)
    };
    let cases = [(DType::F32, SimdLevel::Avx512), (DType::F64, SimdLevel::Avx512)];
    let lower = [
        (DType::F32, SimdLevel::Avx2),
        (DType::F64, SimdLevel::Avx2),
        (DType::F32, SimdLevel::Baseline),
    ];
    for (dtype, level) in cases.into_iter().chain(lower) {
        set_level(level);
        // Tiles of other sizes, kernels that are no squares, dilation, groups, three dimensions, one dimension.
        let wide = ConvOptions { dilation: [2, 1].as_slice().into(), ..conv2(1, 2, 2) };
        check(&mut rng, dtype, &[3, 8, 17, 23], &[14, 4, 2, 3], &wide);
        check(&mut rng, dtype, &[2, 9, 96], &[7, 9, 5], &ConvOptions::plain(1));
        check(&mut rng, dtype, &[1, 3, 6, 9, 30], &[9, 3, 3, 2, 3], &ConvOptions::plain(3));
        // Images so small that several share a product.
        check(&mut rng, dtype, &[5, 12, 4, 4], &[10, 12, 3, 3], &conv2(1, 1, 1));
        check(&mut rng, dtype, &[7, 12, 5, 3], &[10, 6, 3, 3], &conv2(2, 1, 2));
        check(&mut rng, dtype, &[4, 6, 3, 3], &[8, 6, 1, 1], &conv2(1, 0, 1));
        check(&mut rng, dtype, &[19, 5, 7, 6], &[9, 5, 3, 3], &conv2(2, 1, 1));
        check(&mut rng, dtype, &[70, 6, 2, 2], &[4, 3, 3, 3], &conv2(1, 1, 2));
        check(&mut rng, dtype, &[33, 6, 3, 3], &[8, 6, 1, 1], &conv2(1, 0, 1));
        // Depthwise ones side by side, where channels are fewer and more than go together.
        check(&mut rng, dtype, &[5, 7, 5, 4], &[7, 1, 3, 3], &conv2(1, 1, 7));
        check(&mut rng, dtype, &[3, 18, 6, 5], &[18, 1, 3, 2], &conv2(2, 1, 18));
        check(&mut rng, dtype, &[2, 3, 4, 90], &[3, 1, 3, 3], &conv2(1, 1, 3));
        check(&mut rng, dtype, &[2, 16, 20, 20], &[24, 16, 3, 3], &conv2(1, 1, 1));
        check(&mut rng, dtype, &[1, 17, 33, 31], &[33, 17, 3, 3], &conv2(2, 1, 1));
        // Several blocks of images and of output channels; kernels of more elements than a vector has.
        check(&mut rng, dtype, &[9, 20, 7, 7], &[71, 20, 3, 3], &conv2(1, 1, 1));
        check(&mut rng, dtype, &[2, 36, 9, 9], &[34, 18, 5, 4], &conv2(1, 2, 2));
        check(&mut rng, dtype, &[2, 16, 9, 9], &[20, 16, 1, 1], &conv2(1, 0, 1));
        // Few channels: in groups, more than go together, in lines of several registers, dilated, in three dimensions.
        check(&mut rng, dtype, &[5, 1, 14, 29], &[6, 1, 5, 5], &conv2(1, 2, 1));
        check(&mut rng, dtype, &[3, 6, 9, 16], &[26, 3, 3, 3], &conv2(1, 1, 2));
        check(
            &mut rng,
            dtype,
            &[2, 4, 9, 33],
            &[5, 4, 2, 3],
            &ConvOptions { groups: 1, ..wide.clone() },
        );
        check(&mut rng, dtype, &[2, 2, 4, 5, 15], &[6, 2, 2, 3, 1], &ConvOptions::plain(3));
        // Rows of the kernel as runs: of few channels, in groups, with steps, dilated in one direction only.
        check(&mut rng, dtype, &[2, 32, 8, 8], &[16, 32, 3, 3], &conv2(1, 1, 1));
        check(&mut rng, dtype, &[1, 30, 8, 9], &[96, 10, 3, 5], &conv2(2, 1, 3));
        check(&mut rng, dtype, &[3, 24, 9, 8], &[32, 12, 3, 2], &wide);
        let tall = ConvOptions { dilation: [1, 2].as_slice().into(), ..conv2(1, 1, 1) };
        check(&mut rng, dtype, &[2, 17, 11, 9], &[33, 17, 3, 3], &tall);
        check(&mut rng, dtype, &[2, 3, 21, 20], &[24, 3, 7, 7], &conv2(2, 3, 1));
        check(&mut rng, dtype, &[1, 180, 6, 6], &[16, 180, 3, 3], &conv2(1, 1, 1));
        check(&mut rng, dtype, &[2, 12, 19, 19], &[12, 1, 3, 3], &conv2(1, 1, 12));
        check(&mut rng, dtype, &[2, 12, 19, 19], &[12, 1, 5, 5], &conv2(2, 2, 12));
        check(&mut rng, dtype, &[1, 3, 40, 40], &[8, 3, 7, 7], &conv2(2, 3, 1));
    }
    set_level(SimdLevel::Avx512);
}

#[test]
fn what_is_infinite_meets_no_padding() {
    let mut rng = Rng(14);
    let options = |stride: usize, padding: usize, groups: usize| ConvOptions {
        stride: [stride; 2].as_slice().into(),
        padding: [padding; 2].as_slice().into(),
        groups,
        ..ConvOptions::plain(2)
    };
    for level in SimdLevel::ALL {
        set_level(level);
        let mut transposed = options(2, 1, 2);
        transposed.transposed = true;
        check_infinite(&mut rng, &[2, 3, 9, 8], &[6, 3, 5, 5], &options(1, 2, 1));
        check_infinite(&mut rng, &[2, 16, 8, 9], &[18, 16, 3, 3], &options(1, 1, 1));
        check_infinite(&mut rng, &[3, 6, 9, 8], &[4, 3, 3, 2], &options(2, 1, 2));
        check_infinite(&mut rng, &[2, 6, 7, 8], &[6, 1, 3, 3], &options(1, 1, 6));
        check_infinite(&mut rng, &[2, 4, 7, 8], &[4, 3, 3, 3], &transposed);
    }
    set_level(SimdLevel::Avx512);
}

/// One infinite weight and one element of the gradient that is NaN, at the border.
fn check_infinite(rng: &mut Rng, x_shape: &[i64], w_shape: &[i64], c: &ConvOptions) {
    let shape = conv::output_shape(x_shape, w_shape, c).unwrap();
    let (x, grad) = (rng.tensor(DType::F32, x_shape), rng.tensor(DType::F32, &shape));
    let (mut w, mut bad) = (rng.tensor(DType::F32, w_shape), rng.tensor(DType::F32, &shape));
    w.set_flat(0, C128::new(f64::INFINITY, 0.0));
    bad.set_flat(0, C128::new(f64::NAN, 0.0));
    let [mut out, mut gx, mut gw] =
        [&shape[..], x_shape, w_shape].map(|shape| Tensor::full(DType::F32, shape, 0.0));
    conv::convolution(&mut out.view_mut(), x.view(), w.view(), None, c).unwrap();
    conv::convolution_backward_input(&mut gx.view_mut(), grad.view(), w.view(), c).unwrap();
    conv::convolution_backward_weight(&mut gw.view_mut(), bad.view(), x.view(), c).unwrap();
    let [mut y, mut ex, mut ew] = [&out, &gx, &gw].map(|t| vec![0.0_f64; t.numel()]);
    for_products(x_shape, w_shape, &shape, c, &mut |xi, wi, oi| {
        let w = if wi.iter().all(|&i| i == 0) { f64::INFINITY } else { w.at(wi).re };
        let bad = if oi.iter().all(|&i| i == 0) { f64::NAN } else { bad.at(oi).re };
        y[flat(oi, &shape)] += x.at(xi).re * w;
        ex[flat(xi, x_shape)] += grad.at(oi).re * w;
        ew[flat(wi, w_shape)] += bad * x.at(xi).re;
    });
    for (name, got, expected) in [("out", out, y), ("input", gx, ex), ("weight", gw, ew)] {
        for (got, expected) in got.values().iter().zip(expected) {
            let is_same = got.re == expected || got.re.is_nan() && expected.is_nan();
            assert!(
                is_same || (got.re - expected).abs() <= 1e-3 * (1.0 + expected.abs()),
                "{name} {got} {expected} {x_shape:?} {w_shape:?} {c:?}"
            );
        }
    }
}

#[test]
fn gradients_of_inputs_with_steps_equal_the_naive_twin() {
    let mut rng = Rng(13);
    let options = |stride: &[usize], padding: &[usize], groups: usize| ConvOptions {
        stride: stride.into(),
        padding: padding.into(),
        groups,
        ..ConvOptions::plain(stride.len())
    };
    for dtype in [DType::F32, DType::F64, DType::C64] {
        // Kernels wider and narrower than the stride, of one element, with padding beyond the kernel; groups; other dimensions.
        let two = options(&[2, 2], &[1, 1], 1);
        check(&mut rng, dtype, &[2, 17, 9, 8], &[18, 17, 4, 4], &two);
        check(&mut rng, dtype, &[3, 16, 7, 6], &[20, 16, 3, 3], &options(&[2, 3], &[1, 0], 1));
        check(&mut rng, dtype, &[2, 32, 7, 9], &[16, 32, 1, 1], &options(&[2, 2], &[0, 0], 1));
        check(&mut rng, dtype, &[1, 16, 8, 7], &[16, 16, 2, 1], &options(&[3, 4], &[0, 3], 1));
        check(&mut rng, dtype, &[1, 16, 5, 7], &[16, 16, 3, 2], &options(&[1, 2], &[4, 5], 1));
        check(&mut rng, dtype, &[2, 32, 6, 7], &[34, 16, 3, 5], &options(&[2, 1], &[1, 2], 2));
        check(&mut rng, dtype, &[2, 16, 40], &[17, 16, 6], &options(&[5], &[2], 1));
        check(
            &mut rng,
            dtype,
            &[1, 16, 4, 5, 6],
            &[16, 16, 3, 3, 3],
            &options(&[2; 3], &[1; 3], 1),
        );
        let mut transposed = ConvOptions { transposed: true, ..options(&[2, 3], &[1, 2], 1) };
        transposed.output_padding = [1, 2].as_slice().into();
        check(&mut rng, dtype, &[2, 16, 5, 4], &[16, 18, 4, 5], &transposed);
    }
}

#[test]
fn one_and_two_threads_give_the_same_bits() {
    let mut rng = Rng(12);
    check_threads(&mut rng, [9, 40, 7, 7], [70, 40, 3, 3]);
    check_threads(&mut rng, [40, 1, 30, 30], [9, 1, 3, 3]);
}

fn check_threads(rng: &mut Rng, x_shape: [i64; 4], w_shape: [i64; 4]) {
    let c = ConvOptions { padding: [1; 2].as_slice().into(), ..ConvOptions::plain(2) };
    let (x, w) = (rng.tensor(DType::F32, &x_shape), rng.tensor(DType::F32, &w_shape));
    let out_shape = [x_shape[0], w_shape[0], x_shape[2], x_shape[3]];
    let grad = rng.tensor(DType::F32, &out_shape);
    let run = |threads: usize| {
        parallel::set_num_threads(threads);
        let [mut out, mut gx, mut gw] =
            [out_shape, x_shape, w_shape].map(|shape| Tensor::full(DType::F32, &shape, 0.0));
        conv::convolution(&mut out.view_mut(), x.view(), w.view(), None, &c).unwrap();
        conv::convolution_backward_input(&mut gx.view_mut(), grad.view(), w.view(), &c).unwrap();
        conv::convolution_backward_weight(&mut gw.view_mut(), grad.view(), x.view(), &c).unwrap();
        [out.data, gx.data, gw.data]
    };
    assert!(run(1) == run(2));
}

#[test]
fn an_empty_batch_gives_empty_outputs_and_zero_weight_gradients() {
    let mut rng = Rng(9);
    check(&mut rng, DType::F32, &[0, 3, 5, 5], &[4, 3, 3, 3], &ConvOptions::plain(2));
    check(&mut rng, DType::F32, &[0, 16, 5, 5], &[17, 16, 3, 3], &ConvOptions::plain(2));
}

#[test]
fn bad_shapes_are_refused_in_pytorchs_words() {
    let error =
        conv::output_shape(&[1, 3, 5, 5], &[4, 2, 3, 3], &ConvOptions::plain(2)).unwrap_err();
    assert!(error.message().contains("to have 2 channels, but got 3 channels instead"), "{error}");
    let error =
        conv::output_shape(&[1, 2, 2, 5], &[4, 2, 3, 3], &ConvOptions::plain(2)).unwrap_err();
    assert!(
        error.message().contains("Kernel size can't be greater than actual input size"),
        "{error}"
    );
}
