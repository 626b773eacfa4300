//! Matrix products against a naive twin, over dtypes, shapes, strides and factors; and the same bits
//! for one and two threads.

mod tensor;

use pullback_kernels::simd::{SimdLevel, set_level};
use pullback_kernels::{C128, DType, Scalar, gemm, parallel};
use std::sync::{Mutex, PoisonError};
use tensor::{Rng, Tensor};

/// Runs a test once with each instruction set that the machine has. The level is the whole process's, and products of
/// halves depend on it: one test at a time.
fn on_every_level(test: impl Fn()) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for level in SimdLevel::ALL {
        if set_level(level) == level {
            test();
        }
    }
    set_level(SimdLevel::Avx512);
    drop(alone);
}

const FLOATS: [DType; 6] =
    [DType::F32, DType::F64, DType::C64, DType::C128, DType::F16, DType::BF16];
const INTEGERS: [DType; 5] = [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64];

fn naive(a: &Tensor, b: &Tensor, c: &Tensor, alpha: f64, beta: f64) -> Vec<C128> {
    let (m, k, n) = (a.shape[0], a.shape[1], b.shape[1]);
    let mut out = Vec::new();
    for i in 0..m {
        for j in 0..n {
            let sum: C128 = (0..k).map(|p| a.at(&[i, p]) * b.at(&[p, j])).sum();
            out.push(
                sum * alpha + if beta == 0.0 { C128::default() } else { c.at(&[i, j]) * beta },
            );
        }
    }
    out
}

fn check(rng: &mut Rng, dtype: DType, m: i64, k: i64, n: i64, alpha: f64, beta: f64) {
    let (a, b) = (rng.tensor(dtype, &[m, k]), rng.tensor(dtype, &[k, n]));
    let mut c = rng.tensor(dtype, &[m, n]);
    let expected = naive(&a, &b, &c, alpha, beta);
    let factor = |f: f64| {
        if dtype.is_integral(true) { Scalar::Int(f as i64) } else { Scalar::Float(f) }
    };
    gemm::matmul(&mut c.view_mut(), a.view(), b.view(), factor(alpha), factor(beta)).unwrap();
    c.assert_close(
        &expected,
        &format!("{dtype:?} {m}x{k}x{n} {alpha} {beta} {:?} {:?}", a.strides, b.strides),
    );
}

#[test]
fn products_equal_the_naive_sum() {
    on_every_level(check_products);
}

fn check_products() {
    let mut rng = Rng(1);
    for dtype in FLOATS.into_iter().chain(INTEGERS) {
        for (m, k, n) in [
            (0, 3, 2),
            (3, 0, 2),
            (1, 1, 1),
            (4, 4, 4),
            (16, 16, 16),
            (1, 70, 9),
            (9, 70, 1),
            (7, 5, 3),
            (33, 65, 34),
            (70, 3, 80),
            (5, 1101, 20),
            (40, 262, 110),
            (23, 1030, 96),
            (2, 300, 2),
            (3, 257, 4),
            (5, 1, 9),
            (30, 1, 61),
        ] {
            for (alpha, beta) in [(1.0, 0.0), (1.0, 1.0), (2.0, -3.0), (0.0, 2.0)] {
                check(&mut rng, dtype, m, k, n, alpha, beta);
            }
        }
        for _ in 0..40 {
            let (m, k, n) = (rng.below(40) + 1, rng.below(40) + 1, rng.below(40) + 1);
            check(&mut rng, dtype, m, k, n, 1.0, 0.0);
        }
    }
}

#[test]
fn zero_beta_does_not_read_the_output() {
    on_every_level(check_zero_beta);
}

fn check_zero_beta() {
    for (m, k, n) in [(4, 4, 4), (4, 0, 4), (1, 9, 5), (50, 50, 50)] {
        let mut rng = Rng(2);
        let (a, b) = (rng.tensor(DType::F32, &[m, k]), rng.tensor(DType::F32, &[k, n]));
        let mut c = Tensor::full(DType::F32, &[m, n], f64::NAN);
        gemm::matmul(&mut c.view_mut(), a.view(), b.view(), Scalar::Int(1), Scalar::Int(0))
            .unwrap();
        assert!(c.values().iter().all(|v| v.re.is_finite()));
    }
}

#[test]
fn batches_equal_single_products() {
    on_every_level(check_batches);
}

fn check_batches() {
    let mut rng = Rng(3);
    for dtype in FLOATS.into_iter().chain(INTEGERS) {
        for (batch, m, k, n) in [(0, 2, 2, 2), (3, 4, 5, 6), (5, 1, 9, 3), (2, 40, 41, 42)] {
            let (a, b) = (rng.tensor(dtype, &[batch, m, k]), rng.tensor(dtype, &[batch, k, n]));
            let mut c = rng.tensor(dtype, &[batch, m, n]);
            let mut expected = Vec::new();
            for i in 0..batch {
                for r in 0..m {
                    for s in 0..n {
                        expected.push((0..k).map(|p| a.at(&[i, r, p]) * b.at(&[i, p, s])).sum());
                    }
                }
            }
            gemm::bmm(&mut c.view_mut(), a.view(), b.view(), Scalar::Int(1), Scalar::Int(0))
                .unwrap();
            c.assert_close(&expected, &format!("bmm {dtype:?}"));
        }
    }
}

#[test]
fn dot_equals_the_naive_sum() {
    on_every_level(check_dots);
}

fn check_dots() {
    let mut rng = Rng(4);
    for dtype in FLOATS.into_iter().chain(INTEGERS) {
        for n in [0, 1, 5, 64, 1000] {
            let (a, b) = (rng.tensor(dtype, &[n]), rng.tensor(dtype, &[n]));
            let mut out = Tensor::full(dtype, &[], 0.0);
            gemm::dot(&mut out.view_mut(), a.view(), b.view()).unwrap();
            let sum: C128 = (0..n).map(|i| a.at(&[i]) * b.at(&[i])).sum();
            out.assert_close(&[sum], &format!("dot {dtype:?} {n}"));
        }
    }
}

#[test]
fn columns_in_one_piece_equal_the_naive_sum() {
    on_every_level(check_columns);
}

/// The weight of a linear layer: few rows, few columns, and more elements than are transposed at once.
fn check_columns() {
    let mut rng = Rng(11);
    let sizes = [
        (2, 100, 70),
        (3, 64, 19),
        (7, 131, 37),
        (48, 40, 50),
        (49, 40, 50),
        (90, 131, 4),
        (90, 64, 3),
        (50, 1031, 1200),
    ];
    for dtype in FLOATS {
        let most = if dtype == DType::F32 { sizes.len() } else { sizes.len() - 1 };
        for &(m, k, n) in &sizes[..most] {
            let (a, mut b) = (rng.tensor(dtype, &[m, k]), Tensor::full(dtype, &[n, k], 0.0));
            rng.fill(&mut b);
            b.shape.swap(0, 1);
            b.strides.swap(0, 1);
            let mut c = rng.tensor(dtype, &[m, n]);
            let expected = naive(&a, &b, &c, 2.0, -3.0);
            gemm::matmul(&mut c.view_mut(), a.view(), b.view(), Scalar::Int(2), Scalar::Int(-3))
                .unwrap();
            c.assert_close(&expected, &format!("{dtype:?} {m}x{k}x{n} {:?}", a.strides));
        }
    }
}

#[test]
fn one_and_two_threads_give_the_same_bits() {
    on_every_level(check_threads);
}

fn check_threads() {
    let mut rng = Rng(5);
    for dtype in [DType::F32, DType::F64, DType::C64, DType::BF16] {
        for (m, k, n) in [
            (500, 700, 64),
            (64, 700, 500),
            (400, 1500, 400),
            (385, 600, 3),
            (3000, 500, 1),
            (1, 500, 3000),
            (16, 500, 3000),
            (3, 1500, 900),
            (1, 300_000, 1),
        ] {
            let (a, b) = (rng.tensor(dtype, &[m, k]), rng.tensor(dtype, &[k, n]));
            let mut columns = Tensor::full(dtype, &[n, k], 0.0);
            rng.fill(&mut columns);
            columns.shape.swap(0, 1);
            columns.strides.swap(0, 1);
            let run = |b: &Tensor, threads: usize| {
                parallel::set_num_threads(threads);
                let mut c = Tensor::full(dtype, &[m, n], 0.0);
                gemm::matmul(&mut c.view_mut(), a.view(), b.view(), Scalar::Int(1), Scalar::Int(0))
                    .unwrap();
                c.data
            };
            assert!(run(&b, 1) == run(&b, 2), "{dtype:?} {m}x{k}x{n}");
            let one = run(&columns, 1);
            assert!(one == run(&columns, 2), "{dtype:?} {m}x{k}x{n} by columns");
        }
    }
}

/// A tensor of bytes over their whole range, or all of one value.
fn bytes(rng: &mut Rng, dtype: DType, shape: &[i64], value: Option<f64>) -> Tensor {
    let lowest = if dtype == DType::I8 { -128 } else { 0 };
    let mut t = rng.tensor(dtype, shape);
    for i in 0..t.numel() {
        let drawn = (lowest + rng.below(256)) as f64;
        t.set_flat(i, C128::new(value.unwrap_or(drawn), 0.0));
    }
    t
}

#[test]
fn products_of_bytes_are_exact_in_32_bits() {
    on_every_level(check_bytes);
}

fn check_bytes() {
    let mut rng = Rng(6);
    let run = |a: &Tensor, b: &Tensor, c: &mut Tensor| {
        gemm::int_matmul(&mut c.view_mut(), a.view(), b.view()).unwrap();
        c.assert_close(
            &naive(a, b, c, 1.0, 0.0),
            &format!("{:?} {:?} {:?} {:?}", a.shape, b.shape, a.strides, b.strides),
        );
    };
    for dtype in [DType::I8, DType::U8] {
        let drawn = (0..60).map(|_| [rng.below(70), rng.below(50), rng.below(120)]);
        let mut sizes: Vec<[i64; 3]> = drawn.collect();
        sizes.extend([[0, 3, 2], [3, 0, 2], [3, 2, 0], [1, 1, 1], [8, 4, 48], [9, 2051, 97]]);
        sizes.extend([[120, 200, 150], [1, 4099, 1], [16, 6000, 50]]);
        for [m, k, n] in sizes {
            let a = bytes(&mut rng, dtype, &[m, k], None);
            let b = bytes(&mut rng, DType::I8, &[k, n], None);
            run(&a, &b, &mut rng.tensor(DType::I32, &[m, n]));
        }
        // What would saturate, did anything.
        let edges = if dtype == DType::I8 { [-128.0, 127.0] } else { [0.0, 255.0] };
        for (left, right) in edges.into_iter().flat_map(|x| [(x, -128.0), (x, 127.0)]) {
            let a = bytes(&mut rng, dtype, &[9, 3001], Some(left));
            let b = bytes(&mut rng, DType::I8, &[3001, 50], Some(right));
            run(&a, &b, &mut rng.tensor(DType::I32, &[9, 50]));
        }
    }
}

#[test]
fn products_of_bytes_have_the_same_bits_for_two_threads() {
    on_every_level(|| {
        let mut rng = Rng(7);
        let a = bytes(&mut rng, DType::I8, &[130, 300], None);
        let b = bytes(&mut rng, DType::I8, &[300, 200], None);
        let run = |threads: usize| {
            parallel::set_num_threads(threads);
            let mut c = Tensor::full(DType::I32, &[130, 200], 0.0);
            gemm::int_matmul(&mut c.view_mut(), a.view(), b.view()).unwrap();
            c.data
        };
        assert!(run(1) == run(2));
    });
}

#[test]
fn products_of_other_bytes_are_refused() {
    let of = |dtype: DType, shape: &[i64]| Tensor::full(dtype, shape, 1.0);
    let error = |c: DType, a: DType, b: DType, depth: i64| {
        let (a, b, mut c) = (of(a, &[2, 3]), of(b, &[depth, 2]), of(c, &[2, 2]));
        let result = gemm::int_matmul(&mut c.view_mut(), a.view(), b.view());
        result.unwrap_err().message().to_owned()
    };
    assert!(error(DType::I32, DType::I8, DType::U8, 3).contains("int32 of int8 and uint8"));
    assert!(error(DType::I64, DType::I8, DType::I8, 3).contains("int64 of int8 and int8"));
    let phrase = "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x2)";
    assert!(error(DType::I32, DType::U8, DType::I8, 4).contains(phrase));
}

#[test]
fn bad_shapes_and_dtypes_are_refused() {
    let (a, b) = (Tensor::full(DType::F32, &[2, 3], 1.0), Tensor::full(DType::F32, &[4, 5], 1.0));
    let mut c = Tensor::full(DType::F32, &[2, 5], 1.0);
    let error = gemm::matmul(&mut c.view_mut(), a.view(), b.view(), Scalar::Int(1), Scalar::Int(0));
    assert!(
        error
            .unwrap_err()
            .message()
            .contains("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)")
    );
    for dtype in [DType::Bool, DType::U16, DType::U32, DType::U64, DType::C32] {
        let phrase = format!("not implemented for '{}'", dtype.scalar_name().pytorch());
        let t = Tensor::full(dtype, &[2, 2], 1.0);
        let mut c = Tensor::full(dtype, &[2, 2], 1.0);
        let (one, zero) = (Scalar::Int(1), Scalar::Int(0));
        let error = gemm::matmul(&mut c.view_mut(), t.view(), t.view(), one, zero);
        assert!(error.unwrap_err().message().contains(&phrase), "{phrase}");
        let t = Tensor::full(dtype, &[2, 2, 2], 1.0);
        let mut c = Tensor::full(dtype, &[2, 2, 2], 1.0);
        let error = gemm::bmm(&mut c.view_mut(), t.view(), t.view(), one, zero);
        assert!(error.unwrap_err().message().contains(&phrase), "{phrase} in batches");
    }
}
