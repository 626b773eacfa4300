//! Reductions and scans against naive twins on random shapes, strides and dtypes.

mod array;

use array::{Array, REAL, TestRng, close, lines};
use pullback_kernels::{C128, DType, Result, StridedMut, StridedRef, parallel, reduce, scan};

/// The groups of row-major positions that one result each is made from, in the order of results.
fn groups(shape: &[i64], dims: &[usize]) -> Vec<Vec<usize>> {
    let kept: Vec<i64> =
        shape.iter().enumerate().map(|(d, &s)| if dims.contains(&d) { 1 } else { s }).collect();
    let strides = array::row_major(&kept);
    let count: i64 = kept.iter().product();
    let mut groups = vec![Vec::new(); count as usize];
    for at in 0..shape.iter().product::<i64>() as usize {
        let (mut rest, mut group) = (at as i64, 0);
        for d in (0..shape.len()).rev() {
            if !dims.contains(&d) {
                group += rest % shape[d] * strides[d];
            }
            rest /= shape[d];
        }
        groups[group as usize].push(at);
    }
    groups
}

fn reduced(shape: &[i64], dims: &[usize]) -> Vec<i64> {
    shape.iter().enumerate().map(|(d, &s)| if dims.contains(&d) { 1 } else { s }).collect()
}

fn some_dims(rng: &mut TestRng, ndim: usize) -> Vec<usize> {
    match rng.below(3) {
        0 => (0..ndim).collect(),
        1 if ndim > 0 => vec![rng.below(ndim)],
        _ => (0..ndim).filter(|_| rng.below(2) == 0).collect(),
    }
}

/// Many short lines, or the same as narrow columns.
fn many_lines(rng: &mut TestRng) -> Vec<i64> {
    let most = [8, 20, 140][rng.below(3)];
    let length = 1 + rng.below(most);
    let mut shape = vec![1 + rng.below(6000 / length) as i64, length as i64];
    if rng.below(2) == 0 {
        shape.swap(0, 1);
    }
    shape
}

type Kernel = fn(&mut StridedMut<'_>, StridedRef<'_>, &[usize]) -> Result<()>;

/// Compares a real kernel with a twin that sees the items of each result.
fn compare(
    kernel: Kernel,
    out: impl Fn(DType) -> DType,
    dtypes: &[DType],
    tolerance: f64,
    twin: impl Fn(&[f64]) -> f64,
) {
    let mut rng = TestRng(tolerance.to_bits());
    for round in 0..400 {
        let dtype = dtypes[round % dtypes.len()];
        let shape = match round % 50 {
            49 => vec![3, 300, 40 + round as i64],
            r if r % 5 == 4 => many_lines(&mut rng),
            _ => rng.shape(),
        };
        let dims = if round % 5 == 4 {
            vec![rng.below(shape.len())]
        } else {
            some_dims(&mut rng, shape.len())
        };
        let input = rng.array(dtype, &shape, round % 4 == 0);
        let mut result = rng.layout(out(dtype), &reduced(&shape, &dims));
        if kernel(&mut result.view_mut(), input.view(), &dims).is_err() {
            assert!(shape.contains(&0), "{dtype:?} {shape:?} {dims:?}");
            continue;
        }
        for (i, group) in groups(&shape, &dims).iter().enumerate() {
            let items: Vec<f64> = group.iter().map(|&at| input.at(at)).collect();
            let (found, wanted) = (result.at(i), twin(&items));
            let loose = if matches!(out(dtype), DType::F16 | DType::BF16) { 0.01 } else { 0.0 };
            assert!(
                close(found, wanted, tolerance + loose),
                "{dtype:?} {shape:?} {:?} dims {dims:?} at {i}: {found} {wanted}",
                input.strides
            );
        }
    }
}

fn sum_dtype(dtype: DType) -> DType {
    if dtype.is_integral(true) { DType::I64 } else { dtype }
}
const FLOAT: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

#[test]
fn sums_products_and_means_equal_their_twins() {
    compare(reduce::sum, sum_dtype, &REAL, 1e-5, |x| x.iter().sum());
    compare(reduce::mean, |d| d, &FLOAT, 1e-5, |x| x.iter().sum::<f64>() / x.len() as f64);
    compare(reduce::nansum, sum_dtype, &REAL, 1e-5, |x| x.iter().filter(|v| !v.is_nan()).sum());
    compare(
        reduce::count_nonzero,
        |_| DType::I64,
        &REAL,
        0.0,
        |x| x.iter().filter(|&&v| v != 0.0).count() as f64,
    );
    compare(
        reduce::any,
        |_| DType::Bool,
        &REAL,
        0.0,
        |x| f64::from(u8::from(x.iter().any(|&v| v != 0.0))),
    );
    compare(
        reduce::all,
        |_| DType::Bool,
        &REAL,
        0.0,
        |x| f64::from(u8::from(x.iter().all(|&v| v != 0.0))),
    );
    compare(reduce::prod, |_| DType::F64, &FLOAT[..2], 1e-9, |x| x.iter().product());
}

#[test]
fn bits_laid_over_each_other_equal_their_twins() {
    // (Results are compared as doubles, which loses the last bits of the words alike.)
    compare(
        reduce::xor_bits,
        |_| DType::U64,
        &FLOAT,
        0.0,
        |x| x.iter().fold(0, |all, v| all ^ v.to_bits()) as f64,
    );
    let whole = [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::Bool];
    let word = |v: &f64| *v as i64 as u64;
    let over = |x: &[f64]| x.iter().fold(0, |all, v| all ^ word(v)) as f64;
    compare(reduce::xor_bits, |_| DType::U64, &whole, 0.0, over);
}

fn best(x: &[f64], is_better: impl Fn(f64, f64) -> bool) -> (usize, f64) {
    let mut best = (0, x[0]);
    for (i, &v) in x.iter().enumerate() {
        if !best.1.is_nan() && (v.is_nan() || is_better(v, best.1)) {
            best = (i, v);
        }
    }
    best
}

#[test]
fn amin_amax_argmin_argmax_equal_their_twins() {
    compare(reduce::amax, |d| d, &REAL, 0.0, |x| best(x, |a, b| a > b).1);
    compare(reduce::amin, |d| d, &REAL, 0.0, |x| best(x, |a, b| a < b).1);
    compare(reduce::argmax, |_| DType::I64, &REAL, 0.0, |x| best(x, |a, b| a > b).0 as f64);
    compare(reduce::argmin, |_| DType::I64, &REAL, 0.0, |x| best(x, |a, b| a < b).0 as f64);
}

#[test]
fn var_std_and_norms_equal_their_twins() {
    let var = |x: &[f64], correction: f64| {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (x.len() as f64 - correction).max(0.0)
    };
    compare(|o, i, d| reduce::var(o, i, d, 1.0), |d| d, &FLOAT, 2e-5, |x| var(x, 1.0));
    compare(|o, i, d| reduce::std(o, i, d, 0.0), |d| d, &FLOAT, 2e-5, |x| var(x, 0.0).sqrt());
    let norm =
        |p: f64| move |x: &[f64]| x.iter().map(|v| v.abs().powf(p)).sum::<f64>().powf(1.0 / p);
    compare(|o, i, d| reduce::norm(o, i, d, 2.0), |d| d, &FLOAT, 1e-5, norm(2.0));
    compare(|o, i, d| reduce::norm(o, i, d, 1.0), |d| d, &FLOAT, 1e-5, norm(1.0));
    compare(|o, i, d| reduce::norm(o, i, d, 3.5), |d| d, &FLOAT, 1e-5, norm(3.5));
    compare(
        |o, i, d| reduce::norm(o, i, d, 0.0),
        |d| d,
        &FLOAT,
        1e-5,
        |x| x.iter().filter(|&&v| v != 0.0).count() as f64,
    );
    compare(
        |o, i, d| reduce::norm(o, i, d, f64::INFINITY),
        |d| d,
        &FLOAT,
        1e-5,
        |x| best(&x.iter().map(|v| v.abs()).collect::<Vec<_>>(), |a, b| a > b).1,
    );
    compare(
        reduce::logsumexp,
        |d| d,
        &FLOAT,
        1e-5,
        |x| {
            let max =
                x.iter().fold(f64::NEG_INFINITY, |a, &b| if a > b || a.is_nan() { a } else { b });
            let max = if max.is_infinite() { 0.0 } else { max };
            x.iter().map(|v| (v - max).exp()).sum::<f64>().ln() + max
        },
    );
}

#[test]
fn complex_sums_means_and_variances_equal_their_twins() {
    let mut rng = TestRng(5);
    for round in 0..100 {
        let dtype = [DType::C64, DType::C128][round % 2];
        let shape = rng.shape();
        let dims = some_dims(&mut rng, shape.len());
        let input = rng.array(dtype, &shape, false);
        let out_shape = reduced(&shape, &dims);
        let (mut sum, mut prod) = (rng.layout(dtype, &out_shape), rng.layout(dtype, &out_shape));
        let (mut var, mut mean) =
            (rng.layout(dtype.to_real(), &out_shape), rng.layout(dtype, &out_shape));
        let mut norm = rng.layout(dtype.to_real(), &out_shape);
        reduce::sum(&mut sum.view_mut(), input.view(), &dims).unwrap();
        reduce::prod(&mut prod.view_mut(), input.view(), &[]).unwrap_or(());
        reduce::var_mean(&mut var.view_mut(), &mut mean.view_mut(), input.view(), &dims, 1.0)
            .unwrap();
        reduce::norm(&mut norm.view_mut(), input.view(), &dims, 2.0).unwrap();
        for (i, group) in groups(&shape, &dims).iter().enumerate() {
            let items: Vec<C128> = group.iter().map(|&at| input.complex_at(at)).collect();
            let total: C128 = items.iter().sum();
            let middle = total / items.len() as f64;
            let spread = items.iter().map(|z| (z - middle).norm_sqr()).sum::<f64>();
            let wanted = spread / (items.len() as f64 - 1.0).max(0.0);
            assert!((sum.complex_at(i) - total).norm() <= 1e-4 * (1.0 + total.norm()));
            assert!(items.is_empty() || (mean.complex_at(i) - middle).norm() < 1e-4);
            assert!(close(var.at(i), wanted, 1e-5), "{} {wanted}", var.at(i));
            assert!(close(norm.at(i), items.iter().map(C128::norm_sqr).sum::<f64>().sqrt(), 1e-5));
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut rng = TestRng(9);
    let shapes = [vec![1_000_003], vec![3000, 700], vec![50_000, 20], vec![7, 40_000]];
    for (shape, dims) in shapes.iter().zip([vec![0], vec![0], vec![0], vec![1]]) {
        let mut input = Array::zeros(DType::F32, shape);
        input
            .view_mut()
            .as_slice_mut::<f32>()
            .unwrap()
            .iter_mut()
            .for_each(|x| *x = rng.unit() as f32);
        let run = |kernel: Kernel, threads: usize| {
            parallel::set_num_threads(threads);
            let mut out = Array::zeros(DType::F32, &reduced(shape, &dims));
            kernel(&mut out.view_mut(), input.view(), &dims).unwrap();
            out.bytes()
        };
        let kernels: [Kernel; 3] =
            [reduce::sum, |o, i, d| reduce::var(o, i, d, 1.0), reduce::logsumexp];
        for kernel in kernels {
            assert_eq!(run(kernel, 1), run(kernel, 2), "{shape:?}");
        }
        let mut exact = Array::zeros(DType::F64, &reduced(shape, &dims));
        reduce::sum(&mut exact.view_mut(), input.view(), &dims).unwrap();
        let mut out = Array::zeros(DType::F32, &reduced(shape, &dims));
        reduce::sum(&mut out.view_mut(), input.view(), &dims).unwrap();
        for i in 0..out.numel() {
            assert!(close(out.at(i), exact.at(i), 1e-6));
        }
    }
}

#[test]
fn empty_reductions_without_identity_are_refused() {
    let empty = Array::zeros(DType::F32, &[0, 3]);
    let mut all = Array::zeros(DType::F32, &[1, 1]);
    let mut row = Array::zeros(DType::F32, &[1, 3]);
    let text = |r: Result<()>| r.unwrap_err().message().to_string();
    assert_eq!(
        text(reduce::amax(&mut row.view_mut(), empty.view(), &[0])),
        "amax(): Expected reduction dim 0 to have non-zero size."
    );
    assert_eq!(
        text(reduce::amin(&mut all.view_mut(), empty.view(), &[0, 1])),
        "amin(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
    );
    assert!(
        text(reduce::norm(&mut row.view_mut(), empty.view(), &[0], f64::INFINITY))
            .contains("the inf norm on the dimension 0")
    );
    reduce::prod(&mut row.view_mut(), empty.view(), &[0]).unwrap();
    assert_eq!(row.values(), [1.0; 3]);
    reduce::logsumexp(&mut row.view_mut(), empty.view(), &[0]).unwrap();
    assert_eq!(row.values(), [f64::NEG_INFINITY; 3]);
    reduce::mean(&mut row.view_mut(), empty.view(), &[0]).unwrap();
    assert!(row.values().iter().all(|v| v.is_nan()));
}

#[test]
fn many_results_of_no_items_are_what_the_reduction_begins_with() {
    for shape in [[300, 0], [0, 300]] {
        let dims = [usize::from(shape[1] == 0)];
        let empty = Array::zeros(DType::F32, &shape);
        let run = |kernel: Kernel, dtype: DType| {
            let mut out = Array::zeros(dtype, &reduced(&shape, &dims));
            kernel(&mut out.view_mut(), empty.view(), &dims).unwrap();
            (0..out.numel()).map(|i| out.at(i)).collect::<Vec<_>>()
        };
        assert_eq!(run(reduce::sum, DType::F32), [0.0; 300]);
        assert_eq!(run(reduce::prod, DType::F32), [1.0; 300]);
        assert_eq!(run(reduce::all, DType::Bool), [1.0; 300]);
        assert_eq!(run(reduce::count_nonzero, DType::I64), [0.0; 300]);
        assert!(run(|o, i, d| reduce::var(o, i, d, 1.0), DType::F32).iter().all(|v| v.is_nan()));
        assert_eq!(run(reduce::logsumexp, DType::F32), [f64::NEG_INFINITY; 300]);
    }
}

type Scan = fn(&mut StridedMut<'_>, StridedRef<'_>, usize) -> Result<()>;

fn compare_scan(
    kernel: Scan,
    out: impl Fn(DType) -> DType,
    dtypes: &[DType],
    twin: impl Fn(f64, f64) -> f64,
    start: f64,
) {
    let mut rng = TestRng(3);
    for round in 0..200 {
        let dtype = dtypes[round % dtypes.len()];
        let shape = if round % 40 == 39 { vec![70, 1000 + round as i64] } else { rng.shape() };
        let dim = rng.below(shape.len().max(1));
        let input = rng.array(dtype, &shape, false);
        let mut result = rng.layout(out(dtype), &shape);
        kernel(&mut result.view_mut(), input.view(), dim).unwrap();
        for (base, step, n) in lines(&shape, dim) {
            let mut state = start;
            for i in 0..n {
                state = twin(state, input.at(base + i * step));
                let found = result.at(base + i * step);
                let loose =
                    if matches!(out(dtype), DType::F16 | DType::BF16) { 0.01 } else { 1e-5 };
                assert!(
                    close(found, state, loose),
                    "{dtype:?} {shape:?} {dim} {i}: {found} {state}"
                );
            }
        }
    }
}

#[test]
fn scans_equal_their_twins() {
    compare_scan(scan::cumsum, sum_dtype, &REAL, |s, x| s + x, 0.0);
    compare_scan(scan::cumprod, |_| DType::F64, &FLOAT[..2], |s, x| s * x, 1.0);
    compare_scan(
        scan::logcumsumexp,
        |d| d,
        &FLOAT,
        |s: f64, x| {
            let (a, b) = (s.min(x), s.max(x));
            b + (a - b).exp().ln_1p()
        },
        f64::NEG_INFINITY,
    );
}

#[test]
fn cummax_and_cummin_keep_the_last_of_equals() {
    let x = Array::vector(&[1.0_f32, 3.0, 3.0, f32::NAN, 5.0]);
    let (mut v, mut i) = (Array::zeros(DType::F32, &[5]), Array::zeros(DType::I64, &[5]));
    scan::cummax(&mut v.view_mut(), &mut i.view_mut(), x.view(), 0).unwrap();
    assert_eq!(i.values(), [0.0, 1.0, 2.0, 3.0, 3.0]);
    assert_eq!(&v.values()[..3], &[1.0, 3.0, 3.0]);
    assert!(v.at(4).is_nan());
    let x = Array::of(&[3, 2], &[4_i32, 1, 2, 1, 2, 5]);
    let (mut v, mut i) = (Array::zeros(DType::I32, &[3, 2]), Array::zeros(DType::I64, &[3, 2]));
    scan::cummin(&mut v.view_mut(), &mut i.view_mut(), x.view(), 0).unwrap();
    assert_eq!(v.values(), [4.0, 1.0, 2.0, 1.0, 2.0, 1.0]);
    assert_eq!(i.values(), [0.0, 0.0, 1.0, 1.0, 2.0, 1.0]);
}
