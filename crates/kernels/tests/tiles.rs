//! Products by the processor's tiles (AMX), whose sizes are those around a tile's edges, on machines that have them; elsewhere
//! the same products by the loops that this machine has. And `PULLBACK_CPU`, which chooses among them.

mod tensor;

use pullback_kernels::plan::{Announced, watched};
use pullback_kernels::{C128, DType, Scalar, gemm, parallel};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tensor::{Rng, Tensor};

/// The number of threads is the whole process's.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Small integers, of which every sum of products here is exact in single precision.
fn integers(rng: &mut Rng, dtype: DType, shape: &[i64]) -> Tensor {
    let mut t = rng.tensor(dtype, shape);
    for i in 0..t.numel() {
        t.set_flat(i, C128::new((rng.below(17) - 8) as f64, 0.0));
    }
    t
}

/// The nearest number of the dtype, as the kernels' own conversion of a double has it.
fn rounded(dtype: DType, value: f64) -> f64 {
    Tensor::full(dtype, &[1], value).reals()[0]
}

/// `alpha * a @ b + beta * c`, each element rounded once.
fn naive(a: &Tensor, b: &Tensor, c: &Tensor, alpha: f64, beta: f64) -> Vec<f64> {
    let (m, k, n) = (a.shape[0], a.shape[1], b.shape[1]);
    let element = |i: i64, j: i64| {
        let sum: f64 = (0..k).map(|p| a.at(&[i, p]).re * b.at(&[p, j]).re).sum();
        rounded(c.dtype, alpha * sum + beta * c.at(&[i, j]).re)
    };
    (0..m * n).map(|i| element(i / n, i % n)).collect()
}

fn product(c: &mut Tensor, a: &Tensor, b: &Tensor, alpha: f64, beta: f64) -> Vec<Announced> {
    let run = || {
        let factors = (Scalar::Float(alpha), Scalar::Float(beta));
        gemm::matmul(&mut c.view_mut(), a.view(), b.view(), factors.0, factors.1).unwrap();
    };
    watched(run).1
}

#[test]
fn products_of_integers_are_exact_around_the_edges_of_tiles() {
    let _alone = alone();
    let mut rng = Rng(21);
    let edges = [15, 16, 17, 31, 32, 33, 48, 70];
    for k in [1, 2, 31, 32, 33, 64, 65] {
        for m in edges {
            for n in edges {
                let a = integers(&mut rng, DType::BF16, &[m, k]);
                let b = integers(&mut rng, DType::BF16, &[k, n]);
                let mut c = integers(&mut rng, DType::BF16, &[m, n]);
                let factors = if k % 2 == 0 { (1.0, 0.0) } else { (0.5, 2.0) };
                let expected = naive(&a, &b, &c, factors.0, factors.1);
                product(&mut c, &a, &b, factors.0, factors.1);
                let what = format!("{m}x{k}x{n} {:?} {:?} {:?}", a.strides, b.strides, c.strides);
                assert_eq!(c.reals(), expected, "{what}");
            }
        }
    }
}

#[test]
fn products_of_integers_are_exact_where_rows_columns_and_sums_have_several_blocks() {
    let _alone = alone();
    let mut rng = Rng(25);
    parallel::set_num_threads(2);
    // Longer sums than a block of steps has; more rows than are multiplied at a time; more columns than a group has; few rows.
    for (m, k, n) in [(140, 1060, 40), (300, 40, 70), (40, 544, 530), (16, 1024, 96), (600, 33, 17)]
    {
        for round in 0..6 {
            let a = integers(&mut rng, DType::BF16, &[m, k]);
            let b = integers(&mut rng, DType::BF16, &[k, n]);
            let mut c = integers(&mut rng, DType::BF16, &[m, n]);
            let factors = if round % 3 < 2 { (1.0, 0.0) } else { (0.5, 2.0) };
            let expected = naive(&a, &b, &c, factors.0, factors.1);
            product(&mut c, &a, &b, factors.0, factors.1);
            let what = format!("{m}x{k}x{n} {:?} {:?} {:?}", a.strides, b.strides, c.strides);
            assert_eq!(c.reals(), expected, "{what}");
        }
    }
}

#[test]
fn batches_of_integers_are_exact() {
    let _alone = alone();
    let mut rng = Rng(22);
    for (batch, m, k, n) in [(5, 33, 40, 17), (2, 130, 70, 90), (0, 32, 32, 32), (3, 32, 0, 32)] {
        let a = integers(&mut rng, DType::BF16, &[batch, m, k]);
        let b = integers(&mut rng, DType::BF16, &[batch, k, n]);
        let mut c = Tensor::full(DType::BF16, &[batch, m, n], f64::NAN);
        gemm::bmm(&mut c.view_mut(), a.view(), b.view(), Scalar::Int(1), Scalar::Int(0)).unwrap();
        let element = |i: i64| {
            let (batch, i, j) = (i / (m * n), i / n % m, i % n);
            let terms = (0..k).map(|p| a.at(&[batch, i, p]).re * b.at(&[batch, p, j]).re);
            rounded(DType::BF16, terms.sum())
        };
        let expected: Vec<f64> = (0..batch * m * n).map(element).collect();
        assert_eq!(c.reals(), expected, "{batch} of {m}x{k}x{n}");
    }
}

#[test]
fn what_is_not_finite_stays_in_its_row_and_column() {
    let _alone = alone();
    let (m, k, n) = (33, 35, 34);
    for value in [f64::NAN, f64::INFINITY] {
        let mut a = Tensor::full(DType::BF16, &[m, k], 1.0);
        let mut b = Tensor::full(DType::BF16, &[k, n], 1.0);
        let mut c = Tensor::full(DType::BF16, &[m, n], 0.0);
        // The last element of either operand, beside which the packed ones have zeros.
        a.set_flat((m * k - 1) as usize, C128::new(value, 0.0));
        b.set_flat((k * n - 1) as usize, C128::new(value, 0.0));
        product(&mut c, &a, &b, 1.0, 0.0);
        for i in 0..m {
            for j in 0..n {
                let got = c.at(&[i, j]).re;
                let is_touched = i == m - 1 || j == n - 1;
                let expected = if is_touched { value } else { k as f64 };
                let is_same = got == expected || got.is_nan() && expected.is_nan();
                assert!(is_same, "{value}: element ({i}, {j}) is {got}");
            }
        }
    }
}

#[test]
fn one_and_two_threads_give_the_same_bits() {
    let _alone = alone();
    let mut rng = Rng(23);
    for (m, k, n) in
        [(130, 300, 200), (33, 3000, 50), (1000, 65, 40), (40, 65, 1000), (64, 700, 900)]
    {
        let (a, b) = (rng.tensor(DType::BF16, &[m, k]), rng.tensor(DType::BF16, &[k, n]));
        let run = |threads: usize| {
            parallel::set_num_threads(threads);
            let mut c = Tensor::full(DType::BF16, &[m, n], 0.0);
            product(&mut c, &a, &b, 1.0, 0.0);
            c.data
        };
        assert!(run(1) == run(2), "{m}x{k}x{n}");
    }
}

#[test]
fn products_of_bytes_wrap_around_the_edges_of_tiles() {
    let _alone = alone();
    let mut rng = Rng(24);
    for dtype in [DType::I8, DType::U8] {
        let lowest = if dtype == DType::I8 { -128 } else { 0 };
        for (m, k, n) in
            [(16, 64, 16), (17, 63, 33), (31, 65, 32), (33, 129, 47), (64, 3, 70), (140, 2100, 40)]
        {
            let mut bytes = |dtype: DType, shape: &[i64], lowest: i64| {
                let mut t = rng.tensor(dtype, shape);
                for i in 0..t.numel() {
                    t.set_flat(i, C128::new((lowest + rng.below(256)) as f64, 0.0));
                }
                t
            };
            let a = bytes(dtype, &[m, k], lowest);
            let b = bytes(DType::I8, &[k, n], -128);
            let mut c = Tensor::full(DType::I32, &[m, n], 7.0);
            let expected = naive(&a, &b, &c, 1.0, 0.0);
            gemm::int_matmul(&mut c.view_mut(), a.view(), b.view()).unwrap();
            assert_eq!(
                c.reals(),
                expected,
                "{dtype:?} {m}x{k}x{n} {:?} {:?}",
                a.strides,
                b.strides
            );
        }
    }
}

/// Whether the processor says that it has tiles; this process may still be refused them.
fn has_tiles() -> bool {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    ["amx_tile", "amx_bf16", "amx_int8"].iter().all(|flag| flags.contains(flag))
}

/// The child of the test below: prints the plans of a product of halves and of one of bytes.
#[test]
fn tells_its_plans() {
    let _alone = alone();
    let (a, mut c) =
        (Tensor::full(DType::BF16, &[64, 64], 1.0), Tensor::full(DType::BF16, &[64, 64], 0.0));
    let halves = product(&mut c, &a, &a, 1.0, 0.0);
    assert_eq!(c.reals(), vec![64.0; 64 * 64]);
    let (a, mut c) =
        (Tensor::full(DType::I8, &[64, 64], 1.0), Tensor::full(DType::I32, &[64, 64], 0.0));
    let multiply = || gemm::int_matmul(&mut c.view_mut(), a.view(), a.view()).unwrap();
    let bytes = watched(multiply).1;
    assert_eq!(c.reals(), vec![64.0; 64 * 64]);
    println!("plans {} {}", halves[0].plan, bytes[0].plan);
}

#[test]
fn the_variable_chooses_whether_tiles_are_used() {
    let this = std::env::current_exe().expect("a test has a file");
    let told = |word: &str| {
        let mut child = Command::new(&this);
        child.args(["--exact", "tells_its_plans", "--nocapture"]).env("PULLBACK_CPU", word);
        let output = child.output().expect("the test starts");
        assert!(output.status.success(), "{word}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for word in ["generic", "avx2"] {
        let out = told(word);
        assert!(out.contains("plans Widened Quads"), "{word}: {out}");
    }
    let out = told("avx512");
    assert!(!out.contains("Tiles") && out.contains(" Quads"), "{out}");
    for word in ["amx", "AMX", ""] {
        let out = told(word);
        assert_eq!(out.contains("plans Tiles Tiles"), has_tiles(), "{word}: {out}");
    }
}
