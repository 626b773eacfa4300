//! Sampling of images against a naive twin, and its gradients against differences.

mod tensor;

use pullback_kernels::DType;
use pullback_kernels::grid::{self, Interpolation, PaddingMode, SampleOptions};
use pullback_kernels::parallel::{num_threads, set_num_threads};
use pullback_kernels::simd::{SimdLevel, set_level};
use tensor::{Rng, Tensor};

const INTERPOLATIONS: [Interpolation; 3] =
    [Interpolation::Linear, Interpolation::Nearest, Interpolation::Cubic];
const PADDING_MODES: [PaddingMode; 3] =
    [PaddingMode::Zeros, PaddingMode::Border, PaddingMode::Reflection];

fn samplings() -> Vec<SampleOptions> {
    let mut all = Vec::new();
    for interpolation in INTERPOLATIONS {
        for padding_mode in PADDING_MODES {
            for align_corners in [false, true] {
                all.push(SampleOptions { interpolation, padding_mode, align_corners });
            }
        }
    }
    all
}

/// A point in elements, moved into the image if that is what happens to it.
fn moved(point: f64, size: i64, sampling: SampleOptions) -> f64 {
    let last = size as f64 - 1.0;
    let limited = |x: f64| if x > 0.0 { x.min(last) } else { 0.0 };
    match sampling.padding_mode {
        PaddingMode::Zeros => point,
        PaddingMode::Border => limited(point),
        PaddingMode::Reflection => {
            let (low, high) = if sampling.align_corners { (0.0, last) } else { (-0.5, last + 0.5) };
            if high == low || !point.is_finite() {
                return 0.0;
            }
            let mut x = point;
            // Folded back until it is inside.
            while x < low || x > high {
                x = if x < low { 2.0 * low - x } else { 2.0 * high - x };
            }
            limited(x)
        }
    }
}

/// The elements along a dimension that a relative point is made of, and their weights.
fn taps(relative: f64, size: i64, sampling: SampleOptions) -> Vec<(f64, f64)> {
    let n = size as f64;
    let point = if sampling.align_corners {
        f64::midpoint(relative, 1.0) * (n - 1.0)
    } else {
        ((relative + 1.0) * n - 1.0) / 2.0
    };
    match sampling.interpolation {
        Interpolation::Nearest => vec![(moved(point, size, sampling).round_ties_even(), 1.0)],
        Interpolation::Linear => {
            let x = moved(point, size, sampling);
            vec![(x.floor(), x.floor() + 1.0 - x), (x.floor() + 1.0, x - x.floor())]
        }
        Interpolation::Cubic => (-1..3)
            .map(|step| {
                let at = point.floor() + f64::from(step);
                let d = (point - at).abs();
                let weight = if d <= 1.0 {
                    1.25 * d * d * d - 2.25 * d * d + 1.0
                } else {
                    -0.75 * (d * d * d - 5.0 * d * d + 8.0 * d - 4.0)
                };
                (moved(at, size, sampling), weight)
            })
            .collect(),
    }
}

/// The value of one plane at a point, whose last number belongs to the first dimension.
fn naive(plane: &[f64], sizes: &[i64], point: &[f64], sampling: SampleOptions) -> f64 {
    let Some((&size, inner)) = sizes.split_first() else { return plane[0] };
    let width = plane.len() / size as usize;
    let along = taps(point[sizes.len() - 1], size, sampling);
    let mut sum = 0.0;
    for (at, weight) in along {
        if at >= 0.0 && at < size as f64 {
            let start = at as usize * width;
            sum += weight * naive(&plane[start..start + width], inner, point, sampling);
        }
    }
    sum
}

struct Call {
    input: Tensor,
    grid: Tensor,
    grad: Tensor,
}

/// Images and points around them, in random layouts; none lies on a kink.
fn call(rng: &mut Rng, dtype: DType, rank: usize) -> Call {
    let (n, c) = (rng.below(3) + 1, rng.below(4));
    let mut image = vec![n, c];
    image.extend((0..rank).map(|_| rng.below(5) + 1));
    let mut points = vec![n];
    points.extend((0..rank).map(|_| rng.below(5)));
    if rng.below(6) == 0 {
        // More than one block.
        points[rank] = 300;
    }
    let mut out = vec![n, c];
    out.extend_from_slice(&points[1..]);
    points.push(rank as i64);
    let mut grid = rng.tensor(dtype, &points);
    for at in 0..grid.numel() {
        // Odd multiples of 1/64 up to 2, which no size here makes whole or half of.
        let odd = 2 * rng.below(128) - 127;
        grid.set_flat(at, (odd as f64 / 64.0 + 1.0 / 512.0).into());
    }
    Call { input: rng.tensor(dtype, &image), grid, grad: rng.tensor(dtype, &out) }
}

/// All values, by the twin.
fn expected(call: &Call, image: &[f64], points: &[f64], sampling: SampleOptions) -> Vec<f64> {
    let sizes = &call.input.shape[2..];
    let (n, c) = (call.input.shape[0] as usize, call.input.shape[1] as usize);
    let plane: usize = sizes.iter().product::<i64>() as usize;
    let each = points.len() / sizes.len() / n.max(1);
    let mut all = Vec::new();
    for channel in 0..n * c {
        let part = &image[channel * plane..(channel + 1) * plane];
        for p in 0..each {
            let at = (channel / c * each + p) * sizes.len();
            all.push(naive(part, sizes, &points[at..at + sizes.len()], sampling));
        }
    }
    all
}

#[test]
fn values_equal_the_naive_twin() {
    let mut rng = Rng(3);
    for round in 0..120 {
        let dtype = [DType::F32, DType::F64, DType::F16, DType::BF16][round % 4];
        set_level(SimdLevel::ALL[round % 3]);
        let call = call(&mut rng, dtype, 2 + round / 4 % 2);
        for sampling in samplings() {
            let mut out = rng.tensor(dtype, &call.grad.shape);
            grid::grid_sample(&mut out.view_mut(), call.input.view(), call.grid.view(), sampling)
                .unwrap();
            let wanted = expected(&call, &call.input.reals(), &call.grid.reals(), sampling);
            let what = format!("{:?} {:?} {sampling:?}", call.input.shape, call.grid.shape);
            out.assert_reals(&wanted, &what);
        }
    }
    set_level(SimdLevel::Avx512);
}

#[test]
fn gradients_equal_differences_of_the_naive_twin() {
    let mut rng = Rng(4);
    for round in 0..40 {
        set_level(SimdLevel::ALL[round % 3]);
        let call = call(&mut rng, DType::F64, 2 + round % 2);
        let (image, points) = (call.input.reals(), call.grid.reals());
        let grad = call.grad.reals();
        for sampling in samplings() {
            let mut by_input = rng.tensor(DType::F64, &call.input.shape);
            let mut by_grid = rng.tensor(DType::F64, &call.grid.shape);
            grid::grid_sample_backward(
                Some(&mut by_input.view_mut()),
                Some(&mut by_grid.view_mut()),
                call.grad.view(),
                call.input.view(),
                call.grid.view(),
                sampling,
            )
            .unwrap();
            let dot = |values: Vec<f64>| -> f64 {
                values.iter().zip(&grad).map(|(value, grad)| value * grad).sum()
            };
            let slope = |up: f64, down: f64, h: f64| (up - down) / (2.0 * h);
            let what = format!("{:?} {:?} {sampling:?}", call.input.shape, call.grid.shape);
            // Some of the elements.
            for at in (0..image.len()).step_by(1 + image.len() / 7) {
                let with = |h: f64| {
                    let mut image = image.clone();
                    image[at] += h;
                    dot(expected(&call, &image, &points, sampling))
                };
                let wanted = slope(with(0.5), with(-0.5), 0.5);
                assert!((by_input.reals()[at] - wanted).abs() < 1e-9, "{what} {at}");
            }
            for at in (0..points.len()).step_by(1 + points.len() / 7) {
                let with = |h: f64| {
                    let mut points = points.clone();
                    points[at] += h;
                    dot(expected(&call, &image, &points, sampling))
                };
                let wanted = slope(with(1e-6), with(-1e-6), 1e-6);
                let got = by_grid.reals()[at];
                assert!(
                    (got - wanted).abs() < 1e-6 * (1.0 + wanted.abs()),
                    "{what} {got} {wanted}"
                );
            }
        }
    }
    set_level(SimdLevel::Avx512);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut rng = Rng(5);
    let input = rng.dense(DType::F32, &[2, 40, 17, 19]);
    let points = rng.dense(DType::F32, &[2, 50, 40, 2]);
    let grad = rng.dense(DType::F32, &[2, 40, 50, 40]);
    let before = num_threads();
    let sampling = SampleOptions {
        interpolation: Interpolation::Cubic,
        padding_mode: PaddingMode::Reflection,
        align_corners: false,
    };
    let run = |threads: usize| {
        set_num_threads(threads);
        let mut out = Tensor::full(DType::F32, &grad.shape, 7.0);
        let mut by_input = Tensor::full(DType::F32, &input.shape, 7.0);
        let mut by_grid = Tensor::full(DType::F32, &points.shape, 7.0);
        grid::grid_sample(&mut out.view_mut(), input.view(), points.view(), sampling).unwrap();
        grid::grid_sample_backward(
            Some(&mut by_input.view_mut()),
            Some(&mut by_grid.view_mut()),
            grad.view(),
            input.view(),
            points.view(),
            sampling,
        )
        .unwrap();
        [out.reals(), by_input.reals(), by_grid.reals()]
    };
    assert!(run(1) == run(4));
    set_num_threads(before);
}

#[test]
fn places_that_are_no_numbers_read_nothing_outside() {
    let image = Tensor::from(DType::F32, &[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let far = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e30];
    let points: Vec<f64> = far.iter().flat_map(|&x| [x, 0.0]).collect();
    let grid = Tensor::from(DType::F32, &[1, 1, 4, 2], &points);
    for sampling in samplings() {
        let mut out = Tensor::full(DType::F32, &[1, 1, 1, 4], 9.0);
        grid::grid_sample(&mut out.view_mut(), image.view(), grid.view(), sampling).unwrap();
        let inside = |value: f64| value.is_nan() || (0.0..=4.0).contains(&value);
        if sampling.interpolation != Interpolation::Cubic {
            assert!(out.reals().into_iter().all(inside), "{sampling:?} {:?}", out.reals());
        }
        let mut by_input = Tensor::full(DType::F32, &[1, 1, 2, 2], 9.0);
        let grad = Tensor::full(DType::F32, &[1, 1, 1, 4], 1.0);
        grid::grid_sample_backward(
            Some(&mut by_input.view_mut()),
            None,
            grad.view(),
            image.view(),
            grid.view(),
            sampling,
        )
        .unwrap();
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let mut rng = Rng(6);
    let sampling = samplings()[0];
    for (image, points, out) in [
        (vec![1, 1, 2, 2], vec![2, 1, 1, 2], vec![2, 1, 1, 1]),
        (vec![1, 1, 2, 2], vec![1, 1, 1, 3], vec![1, 1, 1, 1]),
        (vec![1, 1, 2], vec![1, 1, 1], vec![1, 1, 1]),
        (vec![1, 1, 0, 2], vec![1, 1, 1, 2], vec![1, 1, 1, 1]),
        (vec![1, 1, 2, 2], vec![1, 1, 1, 2], vec![1, 1, 1, 2]),
    ] {
        let (x, p) = (rng.dense(DType::F32, &image), rng.dense(DType::F32, &points));
        let mut y = rng.dense(DType::F32, &out);
        assert!(grid::grid_sample(&mut y.view_mut(), x.view(), p.view(), sampling).is_err());
    }
    let (x, p) = (rng.dense(DType::I64, &[1, 1, 2, 2]), rng.dense(DType::I64, &[1, 1, 1, 2]));
    let mut y = rng.dense(DType::I64, &[1, 1, 1, 1]);
    assert!(grid::grid_sample(&mut y.view_mut(), x.view(), p.view(), sampling).is_err());
}
