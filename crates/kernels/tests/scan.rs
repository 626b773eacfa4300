//! Scans and softmax along lines of every length and number, however they lie, on every level.

mod array;

use array::{Array, TestRng, close, lines};
use pullback_kernels::simd::{SimdLevel, set_level};
use pullback_kernels::{C128, DType, Result, StridedMut, StridedRef, parallel, scan, softmax};

/// Shapes around the edges of the blocks that lines are taken in, and the dimension to work along.
fn shapes() -> Vec<(Vec<i64>, usize)> {
    let mut shapes = Vec::new();
    for n in [0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 50, 129] {
        for count in [1, 2, 3, 15, 16, 17, 33, 66] {
            shapes.push((vec![count, n], 1));
            shapes.push((vec![n, count], 0));
        }
        shapes.push((vec![3, n, 4], 1));
        shapes.push((vec![40, n, 2], 1));
    }
    for shape in
        [[300, 2], [130, 8], [70, 10], [2, 1100], [20, 600], [3, 700], [20_000, 7], [3000, 50]]
    {
        shapes.push((shape.to_vec(), 1));
        shapes.push((shape.iter().rev().copied().collect(), 0));
    }
    shapes
}

/// Zeros without gaps, with gaps between rows, or column by column.
fn layout(rng: &mut TestRng, dtype: DType, shape: &[i64]) -> Array {
    let gap = i64::from(rng.below(3) == 0);
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * (shape[d].max(1) + gap);
    }
    if shape.len() == 2 && rng.below(6) == 0 {
        strides = vec![1, shape[0].max(1)];
    }
    Array::with_strides(dtype, shape, &strides)
}

fn values(
    rng: &mut TestRng,
    dtype: DType,
    shape: &[i64],
    mut of: impl FnMut(&mut TestRng) -> f64,
) -> Array {
    let mut array = layout(rng, dtype, shape);
    for i in 0..array.numel() {
        let value = of(rng);
        array.put(i, C128::new(value, 0.0));
    }
    array
}

type Scan = fn(&mut StridedMut<'_>, StridedRef<'_>, usize) -> Result<()>;
type Join = fn(f64, f64) -> f64;
type Backward = fn(&mut StridedMut<'_>, StridedRef<'_>, StridedRef<'_>, usize) -> Result<()>;

#[test]
fn lines_of_any_layout_are_scanned_in_order() {
    for (round, (shape, dim)) in shapes().into_iter().enumerate() {
        set_level(SimdLevel::ALL[round % 3]);
        parallel::set_num_threads(1 + round % 2);
        let mut rng = TestRng(round as u64);
        let dtypes =
            [DType::F32, DType::F64, DType::I64, DType::BF16, DType::C32, DType::C64, DType::I16];
        // Signs keep products whole, also in the narrow types.
        let scans: [(Scan, bool, Join); 3] = [
            (scan::cumsum, false, |a, b| a + b),
            (scan::cumsum_backward, true, |a, b| a + b),
            (scan::cumprod, false, |a, b| a * b),
        ];
        for (i, (kernel, reverse, join)) in scans.into_iter().enumerate() {
            let dtype = dtypes[(round + i) % dtypes.len()];
            let x = values(&mut rng, dtype, &shape, |d| if d.below(2) == 0 { 1.0 } else { -1.0 });
            let mut out = layout(&mut rng, dtype, &shape);
            kernel(&mut out.view_mut(), x.view(), dim).unwrap();
            for (base, step, n) in lines(&shape, dim) {
                let mut state = if i == 2 { 1.0 } else { 0.0 };
                for j in 0..n {
                    let at = base + step * if reverse { n - 1 - j } else { j };
                    state = join(state, x.at(at));
                    assert_eq!(out.at(at), state, "{i} {dtype:?} {shape:?} along {dim} at {at}");
                }
            }
        }
    }
    set_level(SimdLevel::Avx512);
}

/// The recurrence item by item.
fn check_recurrence([out, input, factor]: [&Array; 3], dim: usize, reverse: bool, what: &str) {
    for (base, step, n) in lines(input.view().shape(), dim) {
        let mut state = 0.0;
        for j in 0..n {
            let at = base + step * if reverse { n - 1 - j } else { j };
            // (The first factor is never read: it may be infinite.)
            state = input.at(at) + if j == 0 { 0.0 } else { factor.at(at) * state };
            assert!(close(out.at(at), state, 1e-2), "{what} at {at}: {} {state}", out.at(at));
        }
    }
}

#[test]
fn linear_recurrences_equal_their_twins_whatever_the_layout() {
    let dtypes =
        [DType::F32, DType::F64, DType::BF16, DType::F16, DType::C32, DType::C64, DType::C128];
    for (round, (shape, dim)) in shapes().into_iter().enumerate() {
        parallel::set_num_threads(1 + round % 2);
        let (mut rng, dtype) = (TestRng(round as u64), dtypes[round % dtypes.len()]);
        let input = values(&mut rng, dtype, &shape, |d| d.below(9) as f64 - 4.0);
        let mut factor = values(&mut rng, dtype, &shape, |d| [0.0, 0.5, -0.5][d.below(3)]);
        let reverse = round % 3 == 0;
        for (base, step, n) in lines(&shape, dim).into_iter().filter(|line| line.2 > 0) {
            let first = base + step * if reverse { n - 1 } else { 0 };
            factor.put(first, C128::new(f64::INFINITY, 0.0));
        }
        let mut out = layout(&mut rng, dtype, &shape);
        let inputs = (input.view(), factor.view());
        scan::linear_recurrence(&mut out.view_mut(), inputs, dim, reverse).unwrap();
        let what = format!("{dtype:?} {shape:?} along {dim}, reversed: {reverse}");
        check_recurrence([&out, &input, &factor], dim, reverse, &what);
    }
    parallel::set_num_threads(2);
}

#[test]
fn cummax_cummin_and_their_gradients_equal_their_twins() {
    for (round, (shape, dim)) in shapes().into_iter().enumerate() {
        set_level(SimdLevel::ALL[round % 3]);
        let mut rng = TestRng(round as u64);
        let dtypes = [DType::F32, DType::F64, DType::BF16, DType::I64, DType::U8, DType::U64];
        let dtype = dtypes[round % dtypes.len()];
        let x = values(&mut rng, dtype, &shape, |d| match d.below(30) {
            0 if dtype.is_floating_point() => f64::NAN,
            1 if dtype.is_floating_point() => f64::NEG_INFINITY,
            _ => d.below(100) as f64,
        });
        let mut out = layout(&mut rng, dtype, &shape);
        let mut indices = layout(&mut rng, DType::I64, &shape);
        scan::cummax(&mut out.view_mut(), &mut indices.view_mut(), x.view(), dim).unwrap();
        let mut expected = vec![0.0; x.numel()];
        let is_float = dtype.is_floating_point();
        let kind = if is_float { dtype } else { DType::F64 };
        let grad = values(&mut rng, kind, &shape, |d| d.below(3) as f64);
        for (base, step, n) in lines(&shape, dim) {
            let (mut top, mut index) = (f64::NEG_INFINITY, 0);
            for j in 0..n {
                let at = base + step * j;
                let v = x.at(at);
                if v.is_nan() || v >= top {
                    (top, index) = (v, j);
                }
                assert!(close(out.at(at), top, 0.0), "{dtype:?} {shape:?} along {dim} at {at}");
                assert_eq!(indices.at(at), index as f64, "{dtype:?} {shape:?} along {dim} at {at}");
                expected[base + step * index] += grad.at(at);
            }
        }
        let mut grad_x = layout(&mut rng, kind, &shape);
        let (grad, indices) = (grad.view(), indices.view());
        scan::cummax_cummin_backward(&mut grad_x.view_mut(), grad, indices, dim).unwrap();
        assert_eq!(grad_x.values(), expected, "{dtype:?} {shape:?} along {dim}");
    }
    set_level(SimdLevel::Avx512);
}

/// What a line's running maxima (or minima) and their indices are, item by item.
fn check_cummax(x: &Array, out: &Array, indices: &Array, is_max: bool, what: &str) {
    for (base, step, n) in lines(x.view().shape(), 1) {
        let (mut state, mut index) = (if is_max { f64::NEG_INFINITY } else { f64::INFINITY }, 0);
        for j in 0..n {
            let at = base + step * j;
            let v = x.at(at);
            if v.is_nan() || (if is_max { v >= state } else { v <= state }) {
                (state, index) = (v, j);
            }
            assert!(close(out.at(at), state, 0.0), "{what} at {at}: {} {state}", out.at(at));
            assert_eq!(indices.at(at), index as f64, "{what} at {at}");
        }
    }
}

#[test]
fn cummax_and_cummin_of_long_lines_equal_their_twins_on_every_level() {
    let dtypes = [DType::F32, DType::F64, DType::BF16, DType::I64, DType::U8, DType::U64];
    for (round, dtype) in dtypes.into_iter().enumerate() {
        for (count, n) in [(1, 5000), (2, 383), (17, 256), (300, 700), (300, 130)] {
            let mut rng = TestRng(round as u64);
            let mut i = 0_i64;
            // Lines that rise again and again, lines that fall, and any.
            let x = values(&mut rng, dtype, &[count, n], |d| {
                i += 1;
                match (i / n % 3, d.below(700)) {
                    (_, 0) if dtype.is_floating_point() => f64::NAN,
                    (0, _) => (i % 200) as f64,
                    (1, _) => (200 - i % 200) as f64,
                    _ => d.below(200) as f64,
                }
            });
            for level in SimdLevel::ALL {
                set_level(level);
                for is_max in [true, false] {
                    let mut out = layout(&mut rng, dtype, &[count, n]);
                    let mut indices = layout(&mut rng, DType::I64, &[count, n]);
                    let (to, positions) = (&mut out.view_mut(), &mut indices.view_mut());
                    let scan = if is_max { scan::cummax } else { scan::cummin };
                    scan(to, positions, x.view(), 1).unwrap();
                    let what = format!("{level:?} {dtype:?} {count} lines of {n}, max: {is_max}");
                    check_cummax(&x, &out, &indices, is_max, &what);
                }
            }
        }
    }
    set_level(SimdLevel::Avx512);
}

#[test]
fn rows_of_minus_infinity_have_zeros_for_softmax_and_for_the_logarithm_of_their_sum() {
    let inf = f64::INFINITY;
    let rows = [
        [0.5, -1.0, 2.0, -inf],
        [-inf; 4],
        [f64::NAN, -inf, -inf, -inf],
        [-inf, -inf, f64::NAN, 1.0],
        [-inf, 3.0, -inf, -inf],
    ];
    for dtype in [DType::F32, DType::F64] {
        for dim in [0, 1] {
            let shape: [i64; 2] = if dim == 1 { [5, 4] } else { [4, 5] };
            let mut x = Array::with_strides(dtype, &shape, &[shape[1], 1]);
            let mut y = Array::with_strides(dtype, &shape, &[shape[1], 1]);
            for (r, row) in rows.iter().enumerate() {
                for (c, &value) in row.iter().enumerate() {
                    x.put(if dim == 1 { r * 4 + c } else { c * 5 + r }, C128::new(value, 0.0));
                }
            }
            softmax::safe_softmax(&mut y.view_mut(), x.view(), dim).unwrap();
            for (r, row) in rows.iter().enumerate() {
                let is_blocked = row.iter().all(|&v| v == -inf);
                let sum: f64 = row.iter().map(|v| v.exp()).sum();
                for (c, v) in row.iter().enumerate() {
                    let twin = if is_blocked { 0.0 } else { v.exp() / sum };
                    let found = y.at(if dim == 1 { r * 4 + c } else { c * 5 + r });
                    assert!(close(found, twin, 1e-6), "{dtype:?} {dim} {r} {c}: {found} {twin}");
                }
            }
            if dim == 1 {
                let mut sums = Array::with_strides(dtype, &[5], &[1]);
                softmax::logsumexp_from_softmax(&mut sums.view_mut(), x.view(), y.view()).unwrap();
                for (r, row) in rows.iter().enumerate() {
                    let sum = row.iter().map(|v| v.exp()).sum::<f64>();
                    let twin = if sum == 0.0 { 0.0 } else { sum.ln() };
                    assert!(close(sums.at(r), twin, 1e-6), "{dtype:?} {r}: {}", sums.at(r));
                }
            }
        }
    }
}

#[test]
fn softmax_and_its_gradient_equal_their_twins() {
    for (round, (shape, dim)) in shapes().into_iter().enumerate() {
        let mut rng = TestRng(round as u64);
        let dtype = [DType::F32, DType::F64, DType::BF16][round % 3];
        let x = values(&mut rng, dtype, &shape, |d| match d.below(20) {
            0 => f64::NEG_INFINITY,
            _ => d.unit() * 8.0 - 4.0,
        });
        let grad = values(&mut rng, dtype, &shape, |d| d.unit() - 0.5);
        for log in [false, true] {
            let (forward, backward): (Scan, Backward) = if log {
                (softmax::log_softmax, softmax::log_softmax_backward)
            } else {
                (softmax::softmax, softmax::softmax_backward)
            };
            let mut bytes = Vec::new();
            for level in SimdLevel::ALL {
                set_level(level);
                let mut rng = TestRng(round as u64);
                let (mut y, mut grad_x) =
                    (layout(&mut rng, dtype, &shape), layout(&mut rng, dtype, &shape));
                forward(&mut y.view_mut(), x.view(), dim).unwrap();
                backward(&mut grad_x.view_mut(), grad.view(), y.view(), dim).unwrap();
                let what = format!("{log} {level:?} {dtype:?} {shape:?} along {dim}");
                let loose = [1e-5, 1e-12, 0.02][round % 3];
                for (base, step, n) in lines(&shape, dim) {
                    let line =
                        |a: &Array| (0..n).map(|j| a.at(base + step * j)).collect::<Vec<_>>();
                    let (x, y, g, found) = (line(&x), line(&y), line(&grad), line(&grad_x));
                    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = x.iter().map(|x| (x - top).exp()).sum();
                    let total: f64 = if log {
                        g.iter().sum()
                    } else {
                        g.iter().zip(&y).map(|(g, y)| g * y).sum()
                    };
                    for j in 0..n {
                        let power = (x[j] - top).exp() / sum;
                        let twin = if log { x[j] - top - sum.ln() } else { power };
                        assert!(close(y[j], twin, loose), "{what}: {} {twin}", y[j]);
                        let twin = if log { g[j] - power * total } else { power * (g[j] - total) };
                        assert!(close(found[j], twin, loose), "{what}: {} {twin}", found[j]);
                    }
                }
                bytes.push((y.bytes(), grad_x.bytes()));
            }
            assert!(bytes.windows(2).all(|pair| pair[0] == pair[1]), "{log} {dtype:?} {shape:?}");
        }
    }
    set_level(SimdLevel::Avx512);
}
