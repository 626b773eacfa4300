//! Resizing against a naive twin, and against what PyTorch was recorded to give for ties and bytes.

mod tensor;

use pullback_kernels::upsample::{UpsampleMode, UpsampleOptions, upsample, upsample_backward};
use pullback_kernels::{DType, ErrorKind, parallel};
use smallvec::SmallVec;
use std::f64::consts::PI;
use tensor::{Rng, Tensor};

const MODES: [UpsampleMode; 7] = [
    UpsampleMode::Nearest,
    UpsampleMode::NearestExact,
    UpsampleMode::Linear,
    UpsampleMode::Cubic,
    UpsampleMode::LinearAntialias,
    UpsampleMode::CubicAntialias,
    UpsampleMode::LanczosAntialias,
];

/// The weight that old element `j` of `from` has in new element `i` of `to`.
fn weight(mode: UpsampleMode, align: bool, (from, to): (i64, i64), i: i64, j: i64) -> f64 {
    let scale = match (align, to) {
        (true, 1) => 0.0,
        (true, _) => (from - 1) as f64 / (to - 1) as f64,
        _ => from as f64 / to as f64,
    };
    let cubic = |x: f64, a: f64| match x.abs() {
        x if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
        x if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * a,
        _ => 0.0,
    };
    let sinc = |x: f64| {
        if x == 0.0 { 1.0 } else { (x * PI).sin() / (x * PI) }
    };
    let hat = |x: f64| (1.0 - x.abs()).max(0.0);
    let is_at = |place: f64| f64::from(u8::from((place.floor() as i64).min(from - 1) == j));
    let centre = if align { scale * i as f64 } else { scale * (i as f64 + 0.5) - 0.5 };
    // What lies outside is the element at the border.
    let clamped = |f: &dyn Fn(f64) -> f64, centre: f64| {
        (-3..from + 3).filter(|k| (*k).clamp(0, from - 1) == j).map(|k| f(k as f64 - centre)).sum()
    };
    let window = |f: &dyn Fn(f64) -> f64, reach: f64| {
        let (wide, middle) = (scale.max(1.0), scale * (i as f64 + 0.5));
        let first = ((middle - reach * wide + 0.5) as i64).max(0);
        let end = ((middle + reach * wide + 0.5) as i64).min(from);
        let at = |k: i64| f((k as f64 - middle + 0.5) / wide);
        let sum: f64 = (first..end).map(at).sum();
        if (first..end).contains(&j) { at(j) / if sum == 0.0 { 1.0 } else { sum } } else { 0.0 }
    };
    // (Nearest elements have no corners to align.)
    let plain = from as f64 / to as f64;
    match mode {
        UpsampleMode::Nearest => is_at(plain * i as f64),
        UpsampleMode::NearestExact => is_at(plain * (i as f64 + 0.5)),
        UpsampleMode::Linear => clamped(&hat, centre.max(0.0)),
        UpsampleMode::Cubic => clamped(&|x| cubic(x, -0.75), centre),
        UpsampleMode::LinearAntialias => window(&hat, 1.0),
        UpsampleMode::CubicAntialias => window(&|x| cubic(x, -0.5), 2.0),
        UpsampleMode::LanczosAntialias => {
            window(&|x| if x.abs() < 3.0 { sinc(x) * sinc(x / 3.0) } else { 0.0 }, 3.0)
        }
    }
}

/// The weight of an old element (number in its plane) in a new one.
fn weight_of(options: &UpsampleOptions, from: &[i64], to: &[i64], new: usize, old: usize) -> f64 {
    let (mut new, mut old, mut product) = (new as i64, old as i64, 1.0);
    for d in (0..from.len()).rev() {
        let (i, j) = (new % to[d], old % from[d]);
        product *= weight(options.mode, options.align_corners, (from[d], to[d]), i, j);
        new /= to[d];
        old /= from[d];
    }
    product
}

fn options(mode: UpsampleMode, align_corners: bool, rank: usize) -> UpsampleOptions {
    UpsampleOptions { mode, align_corners, factors: SmallVec::from_elem(None, rank) }
}

#[test]
fn images_and_gradients_equal_sums_over_all_elements() {
    let mut rng = Rng(7);
    for case in 0..300 {
        let rank = rng.below(3) as usize + 1;
        let options = options(MODES[case % 7], case % 2 == 0, rank);
        let halves = !options.mode.is_antialias();
        let dtype =
            [DType::F64, DType::F32, DType::F16][rng.below(if halves { 3 } else { 2 }) as usize];
        let sizes = |rng: &mut Rng| (0..rank).map(|_| rng.below(6) + 1).collect::<Vec<_>>();
        let (from, to) = (sizes(&mut rng), sizes(&mut rng));
        let (x, grad) = (
            rng.tensor(dtype, &[&[2, 2], &from[..]].concat()),
            rng.tensor(dtype, &[&[2, 2], &to[..]].concat()),
        );
        let mut out = Tensor::full(dtype, &grad.shape, 7.0);
        let mut back = Tensor::full(dtype, &x.shape, 7.0);
        upsample(&mut out.view_mut(), x.view(), &options).unwrap();
        upsample_backward(&mut back.view_mut(), grad.view(), &options).unwrap();
        let count = |sizes: &[i64]| sizes.iter().product::<i64>() as usize;
        let (old, new) = (count(&from), count(&to));
        let (xs, grads) = (x.reals(), grad.reals());
        let w = |i: usize, j: usize| weight_of(&options, &from, &to, i, j);
        let expected: Vec<f64> = (0..4 * new)
            .map(|at| (0..old).map(|j| w(at % new, j) * xs[at / new * old + j]).sum())
            .collect();
        out.assert_reals(&expected, &format!("{options:?} {from:?} {to:?}"));
        let expected: Vec<f64> = (0..4 * old)
            .map(|at| (0..new).map(|i| w(i, at % old) * grads[at / old * new + i]).sum())
            .collect();
        back.assert_reals(&expected, &format!("the gradient of {options:?} {from:?} {to:?}"));
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let mut rng = Rng(3);
    let (x, grad) =
        (rng.tensor(DType::F32, &[2, 3, 61, 67]), rng.tensor(DType::F32, &[2, 3, 150, 90]));
    for mode in MODES {
        let options = options(mode, false, 2);
        let run = |threads: usize| {
            parallel::set_num_threads(threads);
            let mut out = Tensor::full(DType::F32, &grad.shape, 0.0);
            let mut back = Tensor::full(DType::F32, &x.shape, 0.0);
            upsample(&mut out.view_mut(), x.view(), &options).unwrap();
            upsample_backward(&mut back.view_mut(), grad.view(), &options).unwrap();
            (out.data, back.data)
        };
        let (one, four) = (run(1), run(4));
        parallel::set_num_threads(2);
        assert!(one == four, "{mode:?}");
    }
}

fn line(mode: UpsampleMode, dtype: DType, x: &[f64], to: i64, factor: Option<f64>) -> Vec<f64> {
    let x = Tensor::from(dtype, &[1, 1, x.len() as i64], x);
    let mut out = Tensor::full(dtype, &[1, 1, to], 0.0);
    let mut options = options(mode, false, 1);
    options.factors[0] = factor;
    upsample(&mut out.view_mut(), x.view(), &options).unwrap();
    out.reals()
}

#[test]
fn nearest_elements_are_found_in_single_precision() {
    let numbers: Vec<f64> = (0..200).map(f64::from).collect();
    for dtype in [DType::F32, DType::F64, DType::U8] {
        // 19 * 54 / 38 is 27, and 174.5 * 50 / 349 is 25; rounded they are a little less.
        let got = line(UpsampleMode::Nearest, dtype, &numbers[..54], 38, None);
        assert_eq!(got[19], 26.0);
        let got = line(UpsampleMode::NearestExact, dtype, &numbers[..50], 349, None);
        assert_eq!(got[174], 24.0);
        // A factor decides where elements lie, not the sizes.
        let got = line(UpsampleMode::Nearest, dtype, &numbers[..4], 5, Some(1.3));
        assert_eq!(got, [0.0, 0.0, 1.0, 2.0, 3.0]);
    }
}

#[test]
fn strange_factors_stay_within_the_image() {
    let x = [1.0, 2.0, 3.0];
    for mode in MODES {
        for factor in [f64::NAN, f64::INFINITY, 5e-324, 1e300, -2.0, 0.0] {
            let got = line(mode, DType::F64, &x, 4, Some(factor));
            assert_eq!(got.len(), 4, "{mode:?} {factor}");
        }
    }
}

/// Bytes of a 3 x 4 image resized to 2 x 3 and to 5 x 7 by PyTorch 2.15 on a CPU.
#[test]
fn bytes_are_those_of_pytorch() {
    let image = [12., 200., 33., 71., 255., 0., 140., 9., 87., 61., 222., 180.];
    for (mode, to, expected) in RECORDED {
        let x = Tensor::from(DType::U8, &[1, 1, 3, 4], &image);
        let mut out = Tensor::full(DType::U8, &[1, 1, to[0], to[1]], 0.0);
        upsample(&mut out.view_mut(), x.view(), &options(*mode, false, 2)).unwrap();
        let got: Vec<u8> = out.reals().iter().map(|&v| v as u8).collect();
        assert_eq!(got, *expected, "{mode:?} {to:?}");
    }
}

#[test]
fn dtypes_and_shapes_are_checked() {
    let run = |mode, dtype, from: &[i64], to: &[i64]| {
        let x = Tensor::full(dtype, from, 1.0);
        let mut out = Tensor::full(dtype, to, 0.0);
        upsample(&mut out.view_mut(), x.view(), &options(mode, false, from.len() - 2))
    };
    let error = run(UpsampleMode::Linear, DType::U8, &[1, 1, 2], &[1, 1, 3]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotImplemented);
    let error = run(UpsampleMode::CubicAntialias, DType::F16, &[1, 1, 2, 2], &[1, 1, 3, 3]);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotImplemented);
    assert!(run(UpsampleMode::Nearest, DType::F32, &[1, 1, 0], &[1, 1, 3]).is_err());
    assert!(run(UpsampleMode::Nearest, DType::F32, &[1, 2, 3], &[2, 1, 3]).is_err());
    assert!(run(UpsampleMode::Nearest, DType::F32, &[0, 2, 3], &[0, 2, 5]).is_ok());
}

const RECORDED: &[(UpsampleMode, [i64; 2], &[u8])] = &[
    (UpsampleMode::Nearest, [2, 3], &[12, 200, 33, 255, 0, 140]),
    (
        UpsampleMode::Nearest,
        [5, 7],
        &[
            12, 12, 200, 200, 33, 33, 71, 12, 12, 200, 200, 33, 33, 71, 255, 255, 0, 0, 140, 140,
            9, 255, 255, 0, 0, 140, 140, 9, 87, 87, 61, 61, 222, 222, 180,
        ],
    ),
    (UpsampleMode::NearestExact, [2, 3], &[12, 33, 71, 87, 222, 180]),
    (
        UpsampleMode::NearestExact,
        [5, 7],
        &[
            12, 12, 200, 33, 33, 71, 71, 12, 12, 200, 33, 33, 71, 71, 255, 255, 0, 140, 140, 9, 9,
            87, 87, 61, 222, 222, 180, 180, 87, 87, 61, 222, 222, 180, 180,
        ],
    ),
    (UpsampleMode::Linear, [2, 3], &[86, 105, 57, 116, 124, 148]),
    (
        UpsampleMode::Linear,
        [5, 7],
        &[
            12, 79, 187, 117, 36, 57, 71, 109, 113, 119, 98, 74, 57, 46, 255, 164, 18, 70, 131, 56,
            9, 154, 112, 45, 113, 184, 139, 112, 87, 78, 63, 142, 219, 195, 180,
        ],
    ),
    (UpsampleMode::Cubic, [2, 3], &[86, 111, 50, 117, 121, 152]),
    (
        UpsampleMode::Cubic,
        [5, 7],
        &[
            0, 79, 215, 138, 16, 47, 82, 111, 121, 120, 97, 64, 43, 33, 255, 159, 8, 58, 139, 62,
            0, 172, 109, 23, 105, 201, 150, 102, 74, 59, 60, 151, 235, 218, 193,
        ],
    ),
    (UpsampleMode::LinearAntialias, [2, 3], &[110, 99, 56, 117, 115, 139]),
    (
        UpsampleMode::LinearAntialias,
        [5, 7],
        &[
            12, 79, 187, 117, 36, 57, 71, 109, 113, 119, 98, 74, 57, 46, 255, 164, 18, 70, 131, 56,
            9, 154, 112, 45, 113, 184, 139, 112, 87, 78, 63, 142, 219, 195, 180,
        ],
    ),
    (UpsampleMode::CubicAntialias, [2, 3], &[113, 99, 45, 115, 113, 147]),
    (
        UpsampleMode::CubicAntialias,
        [5, 7],
        &[
            0, 68, 211, 131, 22, 53, 80, 97, 114, 128, 100, 64, 47, 40, 255, 173, 7, 62, 138, 54,
            0, 159, 112, 31, 112, 199, 148, 112, 76, 65, 61, 149, 232, 210, 190,
        ],
    ),
    (UpsampleMode::LanczosAntialias, [2, 3], &[118, 98, 37, 110, 110, 157]),
    (
        UpsampleMode::LanczosAntialias,
        [5, 7],
        &[
            0, 68, 217, 150, 16, 47, 95, 100, 120, 129, 100, 55, 35, 37, 255, 167, 9, 52, 140, 62,
            0, 174, 108, 21, 105, 209, 160, 106, 70, 52, 67, 157, 232, 220, 191,
        ],
    ),
];
