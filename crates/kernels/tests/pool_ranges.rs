//! Maxima over ranges (adaptive and fractional pooling) and unpooling, against loops written down plainly.

mod tensor;

use pullback_kernels::DType;
use pullback_kernels::pool::{adaptive_max_pool, fractional_max_pool, max_unpool};
use std::ops::Range;
use tensor::{Rng, Tensor};

/// The largest element of a box, and its number in the plane.
fn largest(plane: &[f64], sizes: &[i64], ranges: &[Range<i64>]) -> (f64, f64) {
    let mut best = (f64::NEG_INFINITY, f64::NAN);
    for (number, &value) in plane.iter().enumerate() {
        let (mut rest, mut inside) = (number as i64, true);
        for (size, range) in sizes.iter().zip(ranges).rev() {
            inside &= range.contains(&(rest % size));
            rest /= size;
        }
        if inside && value > best.0 {
            best = (value, number as f64);
        }
    }
    best
}

/// The values and indices that windows along each dimension give, for each plane.
fn maxima(
    x: &Tensor,
    sizes: &[i64],
    output: &[i64],
    window: &dyn Fn(usize, usize, i64) -> Range<i64>,
) -> (Vec<f64>, Vec<f64>) {
    let size = sizes.iter().product::<i64>() as usize;
    let (mut values, mut indices) = (vec![], vec![]);
    for (number, plane) in x.reals().chunks(size).enumerate() {
        for o in 0..output.iter().product::<i64>() {
            let (mut rest, mut ranges) = (o, vec![]);
            for dim in (0..output.len()).rev() {
                ranges.insert(0, window(number, dim, rest % output[dim]));
                rest /= output[dim];
            }
            let (value, index) = largest(plane, sizes, &ranges);
            values.push(value);
            indices.push(index);
        }
    }
    (values, indices)
}

#[test]
fn adaptive_maxima_equal_those_of_each_part() {
    let mut rng = Rng(21);
    for case in 0..60 {
        let rank = case % 3 + 1;
        let dtype = [DType::F64, DType::F32, DType::BF16][case % 3];
        let mut draw = || (0..rank).map(|_| rng.below(6) + 1).collect::<Vec<_>>();
        let (sizes, output) = (draw(), draw());
        let x = rng.tensor(dtype, &[&[2, 3], &sizes[..]].concat());
        let shape = [&[2, 3], &output[..]].concat();
        let (mut out, mut indices) =
            (Tensor::full(dtype, &shape, 7.0), Tensor::full(DType::I64, &shape, 7.0));
        adaptive_max_pool(&mut out.view_mut(), &mut indices.view_mut(), x.view(), rank).unwrap();
        let window = |_: usize, d: usize, o: i64| {
            let (n, size) = (output[d], sizes[d]);
            o * size / n..((o + 1) * size + n - 1) / n
        };
        let (values, positions) = maxima(&x, &sizes, &output, &window);
        out.assert_reals(&values, "values");
        assert_eq!(indices.reals(), positions);
    }
}

#[test]
fn fractional_maxima_lie_where_the_numbers_say() {
    let mut rng = Rng(22);
    for case in 0..60 {
        let rank = case % 2 + 2;
        let kernel: Vec<i64> = (0..rank).map(|_| rng.below(3) + 1).collect();
        let output: Vec<i64> = (0..rank).map(|_| rng.below(4) + 1).collect();
        let sizes: Vec<i64> = (0..rank).map(|d| kernel[d] + output[d] - 1 + rng.below(4)).collect();
        let x = rng.tensor(DType::F64, &[&[2, 2], &sizes[..]].concat());
        let numbers: Vec<f64> = (0..4 * rank).map(|_| rng.below(1000) as f64 / 1000.0).collect();
        let samples = Tensor::from(DType::F64, &[2, 2, rank as i64], &numbers);
        let shape = [&[2, 2], &output[..]].concat();
        let (mut out, mut indices) =
            (Tensor::full(DType::F64, &shape, 7.0), Tensor::full(DType::I64, &shape, 7.0));
        let sizes_of_kernel: Vec<usize> = kernel.iter().map(|&k| k as usize).collect();
        let (mut values, mut positions) = (out.view_mut(), indices.view_mut());
        fractional_max_pool(
            &mut values,
            &mut positions,
            x.view(),
            samples.view(),
            &sizes_of_kernel,
        )
        .unwrap();
        let window = |plane: usize, d: usize, o: i64| {
            // Of two dimensions the last one has the first number.
            let u = numbers[plane * rank + if rank == 2 { 1 - d } else { d }];
            let last = sizes[d] - kernel[d];
            let alpha = last as f64 / (output[d] - 1) as f64;
            let start = if o == output[d] - 1 {
                last
            } else {
                ((o as f64 + u) * alpha) as i64 - (u * alpha) as i64
            };
            start..start + kernel[d]
        };
        let (values, positions) = maxima(&x, &sizes, &output, &window);
        out.assert_reals(&values, "values");
        assert_eq!(indices.reals(), positions);
    }
}

#[test]
fn numbers_outside_of_their_range_keep_windows_inside() {
    for number in [f64::NAN, -3.5, 1e300, f64::INFINITY] {
        let x = Tensor::full(DType::F64, &[1, 5, 6], 1.0);
        let samples = Tensor::full(DType::F64, &[1, 1, 2], number);
        let (mut out, mut indices) =
            (Tensor::full(DType::F64, &[1, 3, 2], 0.0), Tensor::full(DType::I64, &[1, 3, 2], -1.0));
        let (mut values, mut positions) = (out.view_mut(), indices.view_mut());
        fractional_max_pool(&mut values, &mut positions, x.view(), samples.view(), &[2, 3])
            .unwrap();
        assert!(indices.reals().iter().all(|&at| (0.0..30.0).contains(&at)), "{number}");
    }
}

#[test]
fn unpooling_puts_elements_at_their_indices() {
    let mut rng = Rng(23);
    let x = rng.tensor(DType::F32, &[2, 2, 3]);
    let indices =
        Tensor::from(DType::I64, &[2, 2, 3], &[0., 3., 5., 7., 8., 3., 1., 2., 3., 4., 5., 6.]);
    let mut out = Tensor::full(DType::F32, &[2, 3, 3], 7.0);
    max_unpool(&mut out.view_mut(), x.view(), indices.view(), 2).unwrap();
    let mut expected = vec![0.0; 18];
    for (i, (value, at)) in x.reals().iter().zip(indices.reals()).enumerate() {
        expected[i / 6 * 9 + at as usize] = *value;
    }
    out.assert_reals(&expected, "the last of several stays");
    let far = Tensor::full(DType::I64, &[2, 2, 3], 9.0);
    let error = max_unpool(&mut out.view_mut(), x.view(), far.view(), 2).unwrap_err();
    assert!(
        error.message().contains("Found an invalid max index: 9 (output volumes are of size 3x3)")
    );
    out.assert_reals(&expected, "nothing is written when an index is refused");
}
