//! Decompositions and solvers by what they promise: products give back the input, factors have their
//! shape, errors name the batch element.

mod tensor;

use pullback_kernels::simd::{SimdLevel, set_level};
use pullback_kernels::{C128, DType, Result, linalg};
use tensor::{Rng, Tensor};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];
const ORDERS: [i64; 8] = [0, 1, 2, 5, 16, 33, 65, 70];

/// A matrix of a batch, by rows.
struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<C128>,
}

impl Matrix {
    fn of(t: &Tensor, batch: usize) -> Matrix {
        let (m, n) = (t.shape[t.shape.len() - 2] as usize, t.shape[t.shape.len() - 1] as usize);
        let values = t.values()[batch * m * n..(batch + 1) * m * n].to_vec();
        Matrix { rows: m, columns: n, values }
    }
    fn at(&self, r: usize, c: usize) -> C128 {
        self.values[r * self.columns + c]
    }
    fn times(&self, other: &Matrix) -> Matrix {
        assert_eq!(self.columns, other.rows);
        let at = |i: usize| {
            let (r, c) = (i / other.columns, i % other.columns);
            (0..self.columns).map(|p| self.at(r, p) * other.at(p, c)).sum()
        };
        let values = (0..self.rows * other.columns).map(at).collect();
        Matrix { rows: self.rows, columns: other.columns, values }
    }
    fn adjoint(&self) -> Matrix {
        let at = |i: usize| self.at(i % self.rows, i / self.rows).conj();
        let values = (0..self.rows * self.columns).map(at).collect();
        Matrix { rows: self.columns, columns: self.rows, values }
    }
    fn assert_near(&self, other: &Matrix, tolerance: f64, what: &str) {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns), "{what}");
        for (i, (a, b)) in self.values.iter().zip(&other.values).enumerate() {
            assert!((a - b).norm() <= tolerance * (1.0 + b.norm()), "{what}: {i}: {a} {b}");
        }
    }
    fn eye(n: usize) -> Matrix {
        let values =
            (0..n * n).map(|i| C128::new(f64::from(u8::from(i / n == i % n)), 0.0)).collect();
        Matrix { rows: n, columns: n, values }
    }
    fn diagonal(s: &[f64]) -> Matrix {
        let mut m = Matrix::eye(s.len());
        for (i, &s) in s.iter().enumerate() {
            m.values[i * m.columns + i] = C128::new(s, 0.0);
        }
        m
    }
}

fn real_of(dtype: DType) -> DType {
    dtype.to_real()
}

fn tolerance(dtype: DType) -> f64 {
    if dtype.to_real() == DType::F32 { 2e-3 } else { 1e-9 }
}

/// A random matrix that is well conditioned: a large diagonal is added.
fn regular(rng: &mut Rng, dtype: DType, batch: i64, n: i64) -> Tensor {
    let mut t = rng.tensor(dtype, &[batch, n, n]);
    let values = t.values();
    for b in 0..batch as usize {
        for d in 0..n as usize {
            // Shifted by one row, so that pivoting has something to do.
            let at = (b * n as usize + (d + 1) % n as usize) * n as usize + d;
            t.set_flat(at, values[at] + C128::new(n as f64 * 0.5 + 1.0, 0.0));
        }
    }
    t
}

/// Lets the tensor show the transposed matrices.
fn turn(t: &mut Tensor) {
    let rank = t.shape.len();
    t.shape.swap(rank - 2, rank - 1);
    t.strides.swap(rank - 2, rank - 1);
}

/// Transposed copies.
fn turned(t: &Tensor) -> Tensor {
    let mut out = Tensor::full(t.dtype, &t.shape, 0.0);
    t.values().into_iter().enumerate().for_each(|(at, value)| out.set_flat(at, value));
    turn(&mut out);
    out
}

/// The factors of matrices, their pivots and codes.
fn factored(a: &Tensor) -> (Tensor, Tensor, Vec<i32>) {
    let mut lu = Tensor::full(a.dtype, &a.shape, 0.0);
    let mut pivots = Tensor::full(DType::I32, &a.shape[..a.shape.len() - 1], 0.0);
    let codes = linalg::factor(&mut lu.view_mut(), &mut pivots.view_mut(), a.view()).unwrap();
    (lu, pivots, codes)
}

/// Solves equations of a form of `a`.
fn solve_form(
    x: &mut Tensor,
    a: &Tensor,
    b: &Tensor,
    transposed: bool,
    conjugated: bool,
) -> Vec<i32> {
    let ((lu, pivots, codes), b) = (factored(a), turned(b));
    let factors = linalg::LuFactors { a: a.view(), lu: lu.view(), pivots: pivots.view() };
    turn(x);
    let form = linalg::SystemForm { transposed, conjugated };
    linalg::solve(&mut x.view_mut(), factors, b.view(), form).unwrap();
    turn(x);
    codes
}

fn solve(x: &mut Tensor, a: &Tensor, b: &Tensor) -> Result<Vec<i32>> {
    Ok(solve_form(x, a, b, false, false))
}

/// The inverses, which are those that the factors give.
fn inv(out: &mut Tensor, a: &Tensor) -> Result<Vec<i32>> {
    turn(out);
    let codes = linalg::inv(&mut out.view_mut(), a.view())?;
    let (lu, pivots, same) = factored(a);
    assert_eq!(codes, same);
    let mut again = turned(a);
    let factors = linalg::LuFactors { a: a.view(), lu: lu.view(), pivots: pivots.view() };
    linalg::invert(&mut again.view_mut(), factors)?;
    let bits = |t: &Tensor| -> Vec<[u64; 2]> {
        t.values().iter().map(|v| [v.re.to_bits(), v.im.to_bits()]).collect()
    };
    assert!(codes.iter().any(|&code| code != 0) || bits(&again) == bits(out));
    turn(out);
    Ok(codes)
}

fn det(out: &mut Tensor, a: &Tensor) -> Result<()> {
    let (lu, pivots, _) = factored(a);
    linalg::det(&mut out.view_mut(), lu.view(), pivots.view())
}

#[test]
fn factors_solve_equations_of_transposed_and_conjugated_matrices() {
    let mut rng = Rng(29);
    for dtype in DTYPES {
        for (n, k) in [(1, 2), (5, 3), (16, 1), (33, 40), (64, 2), (65, 3), (130, 40)] {
            for form in 0..8 {
                let (transposed, conjugated, triangular) =
                    (form & 1 > 0, form & 2 > 0, form & 4 > 0);
                let mut a = regular(&mut rng, dtype, 2, n);
                if triangular {
                    for (at, value) in a.values().into_iter().enumerate() {
                        let (r, c) = (at as i64 / n % n, at as i64 % n);
                        let diagonal = C128::new(n as f64, 0.0);
                        let value = if r == c { value + diagonal } else { value };
                        a.set_flat(at, if r >= c { value } else { C128::default() });
                    }
                }
                let (b, mut x) = (rng.tensor(dtype, &[2, n, k]), rng.tensor(dtype, &[2, n, k]));
                assert_eq!(solve_form(&mut x, &a, &b, transposed, conjugated), [0, 0]);
                for i in 0..2 {
                    let mut m = Matrix::of(&a, i);
                    if transposed != conjugated {
                        m.values.iter_mut().for_each(|value| *value = value.conj());
                    }
                    let m = if transposed { m.adjoint() } else { m };
                    let what = format!("{dtype:?} {n} {k} {form}");
                    let product = m.times(&Matrix::of(&x, i));
                    product.assert_near(&Matrix::of(&b, i), tolerance(dtype), &what);
                }
            }
        }
    }
}

#[test]
fn solutions_inverses_and_determinants_fit() {
    let mut rng = Rng(1);
    for dtype in DTYPES {
        for n in ORDERS {
            let a = regular(&mut rng, dtype, 2, n);
            let b = rng.tensor(dtype, &[2, n, 3]);
            let (mut x, mut i, mut d) = (
                rng.tensor(dtype, &[2, n, 3]),
                rng.tensor(dtype, &[2, n, n]),
                rng.tensor(dtype, &[2]),
            );
            solve(&mut x, &a, &b).unwrap();
            inv(&mut i, &a).unwrap();
            det(&mut d, &a).unwrap();
            for k in 0..2 {
                let (ma, what) = (Matrix::of(&a, k), format!("{dtype:?} {n}"));
                ma.times(&Matrix::of(&x, k)).assert_near(
                    &Matrix::of(&b, k),
                    tolerance(dtype),
                    &what,
                );
                ma.times(&Matrix::of(&i, k)).assert_near(
                    &Matrix::eye(n as usize),
                    tolerance(dtype),
                    &what,
                );
                if n <= 16 {
                    let (got, want) = (d.values()[k], naive_det(&ma));
                    assert!(
                        (got - want).norm() <= tolerance(dtype) * (1.0 + want.norm()),
                        "{what} det {got} {want}"
                    );
                }
            }
        }
    }
}

#[test]
fn large_matrices_that_need_pivots_solve_many_right_hand_sides() {
    let mut rng = Rng(5);
    for dtype in DTYPES {
        for n in [65, 130] {
            for k in [3, 32, 50] {
                let near = |got: Matrix, want: &Matrix, what: &str| {
                    got.assert_near(want, tolerance(dtype), &format!("{dtype:?} {n} {k} {what}"));
                };
                // (Not dominated by its diagonal: rows are exchanged.)
                let (a, b) = (rng.tensor(dtype, &[1, n, n]), rng.tensor(dtype, &[1, n, k]));
                let mut x = rng.tensor(dtype, &[1, n, k]);
                let mut inverse = rng.tensor(dtype, &[1, n, n]);
                assert_eq!(solve(&mut x, &a, &b).unwrap(), [0]);
                assert_eq!(inv(&mut inverse, &a).unwrap(), [0]);
                let (a, b) = (Matrix::of(&a, 0), Matrix::of(&b, 0));
                near(a.times(&Matrix::of(&x, 0)), &b, "solution");
                near(a.times(&Matrix::of(&inverse, 0)), &Matrix::eye(n as usize), "inverse");
            }
        }
    }
}

#[test]
fn triangular_systems_are_solved_without_pivots() {
    let mut rng = Rng(11);
    for dtype in DTYPES {
        for (n, k) in [(3, 2), (65, 1), (70, 5), (130, 0), (130, 70)] {
            for upper in [false, true] {
                let mut a = rng.tensor(dtype, &[2, n, n]);
                let values = a.values();
                for (at, value) in values.into_iter().enumerate() {
                    let (r, c) = (at as i64 / n % n, at as i64 % n);
                    let value = if r == c { C128::new(n as f64, 0.0) } else { value };
                    let is_inside = r == c || upper == (c > r);
                    a.set_flat(at, if is_inside { value } else { C128::default() });
                }
                let b = rng.tensor(dtype, &[2, n, k]);
                let mut x = rng.tensor(dtype, &[2, n, k]);
                let codes = solve(&mut x, &a, &b).unwrap();
                assert_eq!(codes, [0, 0]);
                for i in 0..2 {
                    let what = format!("{dtype:?} {n} {k} {upper}");
                    let product = Matrix::of(&a, i).times(&Matrix::of(&x, i));
                    product.assert_near(&Matrix::of(&b, i), tolerance(dtype), &what);
                }
                // A zero on the diagonal is a singular matrix as before.
                a.set_flat(((n - 1) * n + n - 1) as usize, C128::default());
                let codes = solve(&mut x, &a, &b).unwrap();
                assert_eq!(codes, [n as i32, 0], "{dtype:?} {n} {k} {upper}");
            }
        }
    }
}

fn naive_det(a: &Matrix) -> C128 {
    let (n, mut m, mut det) = (a.rows, a.values.clone(), C128::new(1.0, 0.0));
    for p in 0..n {
        let best =
            (p..n).max_by(|&x, &y| m[x * n + p].norm().total_cmp(&m[y * n + p].norm())).unwrap();
        if best != p {
            (0..n).for_each(|c| m.swap(p * n + c, best * n + c));
            det = -det;
        }
        det *= m[p * n + p];
        for r in p + 1..n {
            let f = m[r * n + p] / m[p * n + p];
            for c in p..n {
                let v = m[p * n + c];
                m[r * n + c] -= f * v;
            }
        }
    }
    det
}

#[test]
fn svd_gives_back_the_matrix() {
    let mut rng = Rng(2);
    for dtype in DTYPES {
        for (m, n) in
            [(0, 3), (1, 1), (3, 5), (5, 3), (20, 20), (40, 7), (7, 40), (80, 40), (300, 9)]
        {
            for full in [false, true] {
                let k = m.min(n);
                let a = rng.tensor(dtype, &[2, m, n]);
                let (c, r) = if full { (m, n) } else { (k, k) };
                let (mut u, mut s, mut v) = (
                    rng.tensor(dtype, &[2, m, c]),
                    rng.tensor(real_of(dtype), &[2, k]),
                    rng.tensor(dtype, &[2, r, n]),
                );
                linalg::svd(
                    Some(&mut u.view_mut()),
                    &mut s.view_mut(),
                    Some(&mut v.view_mut()),
                    a.view(),
                    full,
                )
                .unwrap();
                for i in 0..2 {
                    let what = format!("{dtype:?} {m} {n} {full}");
                    let (mu, mv) = (Matrix::of(&u, i), Matrix::of(&v, i));
                    let k = k as usize;
                    let ss = s.reals()[i * k..(i + 1) * k].to_vec();
                    assert!(ss.windows(2).all(|w| w[0] >= w[1]) && ss.iter().all(|&s| s >= 0.0));
                    let cut_u = Matrix {
                        rows: m as usize,
                        columns: k,
                        values: (0..m as usize * k).map(|f| mu.at(f / k, f % k)).collect(),
                    };
                    let cut_v = Matrix {
                        rows: k,
                        columns: n as usize,
                        values: (0..n as usize * k)
                            .map(|f| mv.at(f / n as usize, f % n as usize))
                            .collect(),
                    };
                    cut_u.times(&Matrix::diagonal(&ss)).times(&cut_v).assert_near(
                        &Matrix::of(&a, i),
                        tolerance(dtype),
                        &what,
                    );
                    mu.adjoint().times(&mu).assert_near(
                        &Matrix::eye(c as usize),
                        tolerance(dtype),
                        &what,
                    );
                    mv.times(&mv.adjoint()).assert_near(
                        &Matrix::eye(r as usize),
                        tolerance(dtype),
                        &what,
                    );
                }
            }
        }
    }
}

/// What is between the largest and the smallest numbers of a dtype, and far from one.
fn scales(dtype: DType) -> [f64; 3] {
    if matches!(dtype, DType::F32 | DType::C64) { [1.0, 1e-34, 1e34] } else { [1.0, 1e-290, 1e290] }
}

#[test]
fn singular_values_and_qr_hold_at_every_scale() {
    let mut rng = Rng(8);
    for dtype in DTYPES {
        for (m, n, has_rank_one) in
            [(5, 3, false), (40, 7, false), (40, 7, true), (30, 30, true), (270, 260, false)]
        {
            let one = Matrix::of(&rng.tensor(dtype, &[m, n]), 0);
            let values: Vec<C128> = (0..(m * n) as usize)
                .map(|f| {
                    let (row, column) = (f / n as usize, f % n as usize);
                    if has_rank_one {
                        one.at(row, 0) * one.at(0, column)
                    } else {
                        one.at(row, column)
                    }
                })
                .collect();
            let mut results = Vec::new();
            for scale in scales(dtype) {
                let mut a = Tensor::full(dtype, &[m, n], 0.0);
                values.iter().enumerate().for_each(|(flat, v)| a.set_flat(flat, v * scale));
                let mut s = Tensor::full(real_of(dtype), &[n], 0.0);
                linalg::svd(None, &mut s.view_mut(), None, a.view(), false).unwrap();
                let k = n.min(m);
                let (mut u, mut v) =
                    (Tensor::full(dtype, &[m, k], 0.0), Tensor::full(dtype, &[k, n], 0.0));
                let mut with = Tensor::full(real_of(dtype), &[n], 0.0);
                let (mut u_, mut v_) = (u.view_mut(), v.view_mut());
                linalg::svd(Some(&mut u_), &mut with.view_mut(), Some(&mut v_), a.view(), false)
                    .unwrap();
                let (mut q, mut r) =
                    (Tensor::full(dtype, &[m, k], 0.0), Tensor::full(dtype, &[k, n], 0.0));
                linalg::qr(Some(&mut q.view_mut()), &mut r.view_mut(), a.view(), false).unwrap();
                let q = Matrix::of(&q, 0);
                let what = format!("{dtype:?} {m} {n} {scale:e} {has_rank_one}");
                let eye = Matrix::eye(k as usize);
                q.adjoint().times(&q).assert_near(&eye, tolerance(dtype), &what);
                let values = s.reals().into_iter().chain(with.reals());
                results.push((what, values.map(|s| s / scale).collect::<Vec<f64>>()));
            }
            let largest = results[0].1[0];
            for (what, values) in &results {
                for (got, want) in values.iter().zip(results[0].1[..n as usize].iter().cycle()) {
                    let error = (got - want).abs() / largest;
                    assert!(error <= tolerance(dtype), "{what}: {got} {want}");
                }
            }
        }
    }
}

#[test]
fn qr_gives_back_the_matrix() {
    let mut rng = Rng(3);
    for dtype in DTYPES {
        for (batch, m, n) in [
            (2, 1, 1),
            (2, 3, 5),
            (2, 5, 3),
            (2, 20, 20),
            (2, 4, 0),
            (4, 1, 1),
            (16, 3, 5),
            (19, 6, 4),
            (5, 32, 32),
            (1, 17, 40),
            (1, 70, 33),
            (1, 96, 96),
            (1, 300, 9),
        ] {
            for complete in [false, true] {
                let k = if complete { m } else { m.min(n) };
                let a = rng.tensor(dtype, &[batch, m, n]);
                let (mut q, mut r) =
                    (rng.tensor(dtype, &[batch, m, k]), rng.tensor(dtype, &[batch, k, n]));
                linalg::qr(Some(&mut q.view_mut()), &mut r.view_mut(), a.view(), complete).unwrap();
                for i in 0..batch as usize {
                    let what = format!("{dtype:?} {batch} {m} {n} {complete}");
                    let (mq, mr) = (Matrix::of(&q, i), Matrix::of(&r, i));
                    mq.times(&mr).assert_near(&Matrix::of(&a, i), tolerance(dtype), &what);
                    mq.adjoint().times(&mq).assert_near(
                        &Matrix::eye(k as usize),
                        tolerance(dtype),
                        &what,
                    );
                    for row in 0..k as usize {
                        for c in 0..row.min(n as usize) {
                            assert_eq!(mr.at(row, c), C128::default(), "{what}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn qr_has_the_signs_of_lapack() {
    let a = Tensor::from(DType::F64, &[3, 3], &[1., 2., 3., 4., 5., 6., 7., 8., 10.]);
    let mut r = Tensor::full(DType::F64, &[3, 3], 0.0);
    linalg::qr(None, &mut r.view_mut(), a.view(), false).unwrap();
    let signs: Vec<bool> = [0, 4, 8].iter().map(|&i| r.reals()[i] > 0.0).collect();
    assert_eq!(signs, [false, true, true]);
    let eye = Tensor::from(DType::F64, &[3, 3], &[1., 0., 0., 0., 1., 0., 0., 0., 1.]);
    linalg::qr(None, &mut r.view_mut(), eye.view(), false).unwrap();
    assert_eq!(r.reals(), [1., 0., 0., 0., 1., 0., 0., 0., 1.]);
    let five = Tensor::from(DType::F64, &[5, 2, 1], &[3., 4., -3., 4., 2., 0., -2., 0., 0., 0.]);
    let mut r = Tensor::full(DType::F64, &[5, 1, 1], 0.0);
    linalg::qr(None, &mut r.view_mut(), five.view(), false).unwrap();
    assert_eq!(r.reals(), [-5., 5., 2., -2., 0.]);
}

#[test]
fn complex_qr_has_the_phases_of_lapack() {
    // Recorded with NumPy 2.4.6.
    let values = [
        (1.0, 2.0),
        (0.5, -1.0),
        (2.0, 0.0),
        (-1.0, 0.5),
        (3.0, 1.0),
        (0.0, -2.0),
        (0.0, 1.0),
        (1.0, -1.0),
        (-1.0, 1.0),
    ];
    let mut a = Tensor::full(DType::C128, &[3, 3], 0.0);
    for (i, (re, im)) in values.into_iter().enumerate() {
        a.set_flat(i, C128::new(re, im));
    }
    let mut r = Tensor::full(DType::C128, &[3, 3], 0.0);
    linalg::qr(None, &mut r.view_mut(), a.view(), false).unwrap();
    let expected = [-2.692_582_403_567_252, -2.372_616_771_589_459, 1.208_697_424_507_991_1];
    let diagonal = [0, 4, 8].map(|i| Matrix::of(&r, 0).values[i]);
    for (got, expected) in diagonal.iter().zip(expected) {
        assert!((got - C128::new(expected, 0.0)).norm() < 1e-12, "{got} against {expected}");
    }
}

#[test]
fn cholesky_by_halves_reads_one_triangle_and_names_the_minor() {
    let mut rng = Rng(41);
    for dtype in [DType::F32, DType::F64] {
        for n in [16, 17, 33, 80, 129, 200] {
            for upper in [false, true, false, true] {
                let b = Matrix::of(&rng.tensor(dtype, &[1, n, n]), 0);
                let mut spd = b.times(&b.adjoint());
                for d in 0..n as usize {
                    spd.values[d * n as usize + d] += C128::new(n as f64, 0.0);
                }
                let mut a = rng.tensor(dtype, &[n, n]);
                for (at, &value) in spd.values.iter().enumerate() {
                    let (row, column) = (at / n as usize, at % n as usize);
                    let is_read = if upper { row <= column } else { row >= column };
                    a.set_flat(at, if is_read { value } else { C128::new(f64::NAN, 0.0) });
                }
                let mut l = rng.tensor(dtype, &[n, n]);
                let codes = linalg::cholesky(&mut l.view_mut(), a.view(), upper).unwrap();
                assert_eq!(codes, [0]);
                let f = Matrix::of(&l, 0);
                let product = if upper { f.adjoint().times(&f) } else { f.times(&f.adjoint()) };
                let name =
                    format!("cholesky {dtype:?} {n} {upper} {:?} {:?}", a.strides, l.strides);
                product.assert_near(&spd, tolerance(dtype) * n as f64, &name);
                let bad = n as usize * 2 / 3;
                a.set_flat(bad * n as usize + bad, C128::new(-1.0, 0.0));
                let codes = linalg::cholesky(&mut l.view_mut(), a.view(), upper).unwrap();
                assert_eq!(codes, [bad as i32 + 1], "{name}");
                assert!(l.reals().iter().all(|v| v.is_nan()), "{name}");
            }
        }
    }
}

#[test]
fn cholesky_and_eigh_give_back_the_matrix() {
    let mut rng = Rng(4);
    for dtype in DTYPES {
        for n in [0, 1, 2, 7, 30] {
            for upper in [false, true] {
                let b = Matrix::of(&rng.tensor(dtype, &[1, n, n]), 0);
                let mut spd = b.times(&b.adjoint());
                for d in 0..n as usize {
                    spd.values[d * n as usize + d] += C128::new(1.0, 0.0);
                }
                let mut a = rng.tensor(dtype, &[n, n]);
                spd.values.iter().enumerate().for_each(|(i, &v)| a.set_flat(i, v));
                let (mut l, mut v, mut w) = (
                    rng.tensor(dtype, &[n, n]),
                    rng.tensor(dtype, &[n, n]),
                    rng.tensor(real_of(dtype), &[n]),
                );
                linalg::cholesky(&mut l.view_mut(), a.view(), upper).unwrap();
                let f = Matrix::of(&l, 0);
                let product = if upper { f.adjoint().times(&f) } else { f.times(&f.adjoint()) };
                product.assert_near(&spd, tolerance(dtype), &format!("cholesky {dtype:?} {n}"));
                linalg::eigh(&mut w.view_mut(), Some(&mut v.view_mut()), a.view(), upper).unwrap();
                let (mv, ws) = (Matrix::of(&v, 0), w.reals());
                assert!(ws.windows(2).all(|w| w[0] <= w[1]));
                mv.times(&Matrix::diagonal(&ws)).times(&mv.adjoint()).assert_near(
                    &spd,
                    tolerance(dtype) * 10.0,
                    &format!("eigh {dtype:?} {n}"),
                );
            }
        }
    }
}

/// Symmetric matrices with known eigenvalues: spread, repeated, graded, in pairs, nearly all alike, of rank one.
fn spectra(n: usize) -> Vec<Vec<f64>> {
    let of = |f: &dyn Fn(usize) -> f64| (0..n).map(f).collect();
    vec![
        of(&|i| i as f64 - 3.0),
        of(&|i| f64::from(u8::from(i % 3 == 0))),
        of(&|i| 0.1_f64.powi(i.min(30) as i32)),
        of(&|i| if i % 2 == 0 { -1.0 } else { 1.0 }),
        of(&|i| 1.0 + 1e-9 * i as f64),
        of(&|i| if i == n / 2 { 2.0 } else { 0.0 }),
    ]
}

#[test]
fn eigenvalues_hold_at_every_scale_and_when_they_repeat() {
    let mut rng = Rng(7);
    let scales = [(DType::F32, [1.0, 1e-36, 1e36]), (DType::F64, [1.0, 1e-300, 1e300])];
    for (dtype, scale) in scales.iter().flat_map(|(d, scales)| scales.map(|s| (*d, s))) {
        for n in [1_usize, 2, 3, 4, 16, 17, 64, 100] {
            for mut values in spectra(n) {
                // A reflection turns the diagonal.
                let u: Vec<f64> = (0..n).map(|_| rng.real()).collect();
                let norm: f64 = u.iter().map(|u| u * u).sum();
                let h = |i: usize, j: usize| f64::from(u8::from(i == j)) - 2.0 * u[i] * u[j] / norm;
                let at = |i, j| (0..n).map(|k| h(i, k) * values[k] * h(j, k)).sum::<f64>() * scale;
                let a: Vec<f64> = (0..n * n).map(|i| at(i / n, i % n)).collect();
                let a = Tensor::from(dtype, &[n as i64, n as i64], &a);
                values.sort_by(f64::total_cmp);
                let largest = values.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
                let mut results = Vec::new();
                for level in SimdLevel::ALL {
                    set_level(level);
                    let mut w = Tensor::full(dtype, &[n as i64], 0.0);
                    let mut v = Tensor::full(dtype, &[n as i64, n as i64], 0.0);
                    linalg::eigh(&mut w.view_mut(), Some(&mut v.view_mut()), a.view(), false)
                        .unwrap();
                    let mut alone = Tensor::full(dtype, &[n as i64], 0.0);
                    linalg::eigh(&mut alone.view_mut(), None, a.view(), false).unwrap();
                    results.push((alone.reals(), w.reals(), v.reals()));
                    let (w, v) = (w.reals(), Matrix::of(&v, 0));
                    let what = format!("{dtype:?} {n} {scale:e}");
                    let tolerance = if dtype == DType::F32 { 3e-6 } else { 3e-14 };
                    for (got, want) in alone.reals().iter().chain(&w).zip(values.iter().cycle()) {
                        let error = (got / scale - want).abs() / largest.max(1e-300);
                        assert!(error <= tolerance, "{what}: {got} {want}");
                    }
                    v.adjoint().times(&v).assert_near(&Matrix::eye(n), tolerance, &what);
                    let w: Vec<f64> = w.iter().map(|w| w / scale / largest).collect();
                    let back = v.times(&Matrix::diagonal(&w)).times(&v.adjoint());
                    let a: Vec<f64> = a.reals().iter().map(|a| a / scale / largest).collect();
                    let values = a.iter().map(|&a| C128::new(a, 0.0)).collect();
                    let a = Matrix { rows: n, columns: n, values };
                    back.assert_near(&a, tolerance, &what);
                }
                // (Beyond, `faer` has the vectors, in the instructions of its own choice.)
                let is_same = |r: &[(Vec<f64>, Vec<f64>, Vec<f64>)]| n > 64 || r[0] == r[1];
                assert!(results.windows(2).all(is_same), "{dtype:?} {n}: levels differ");
            }
        }
    }
}

#[test]
fn many_small_matrices_are_factorised_as_one_is() {
    let mut rng = Rng(5);
    for dtype in [DType::F32, DType::F64] {
        for (batch, n) in [(4, 1), (16, 3), (21, 7), (5, 32)] {
            let b = rng.tensor(dtype, &[batch, n, n]);
            let mut a = rng.tensor(dtype, &[batch, n, n]);
            let size = (n * n) as usize;
            let of = |i: usize| {
                let b = Matrix::of(&b, i);
                let mut spd = b.times(&b.adjoint());
                for d in 0..n as usize {
                    spd.values[d * n as usize + d] += C128::new(1.0, 0.0);
                }
                spd
            };
            for i in 0..batch as usize {
                for (at, value) in of(i).values.into_iter().enumerate() {
                    a.set_flat(i * size + at, value);
                }
            }
            // The last pivot of matrix 2 is none.
            a.set_flat(3 * size - 1, C128::new(-1.0, 0.0));
            for upper in [false, true] {
                let mut l = rng.tensor(dtype, &[batch, n, n]);
                let codes = linalg::cholesky(&mut l.view_mut(), a.view(), upper).unwrap();
                for (i, &code) in codes.iter().enumerate() {
                    assert_eq!(code, if i == 2 { n as i32 } else { 0 });
                    if i == 2 {
                        assert!(l.reals()[i * size..(i + 1) * size].iter().all(|v| v.is_nan()));
                        continue;
                    }
                    let f = Matrix::of(&l, i);
                    let product = if upper { f.adjoint().times(&f) } else { f.times(&f.adjoint()) };
                    let what = format!("{dtype:?} {batch} {n} {upper}");
                    product.assert_near(&of(i), tolerance(dtype), &what);
                }
            }
        }
    }
}

#[test]
fn one_triangle_and_the_real_diagonal_are_read() {
    let mut rng = Rng(6);
    for (dtype, n, upper) in [DType::F64, DType::C128]
        .into_iter()
        .flat_map(|dtype| [3, 40].map(|n| (dtype, n)))
        .flat_map(|(dtype, n)| [false, true].map(|upper| (dtype, n, upper)))
    {
        let mut a = rng.tensor(dtype, &[n, n]);
        let free = Matrix::of(&a, 0);
        let mut whole = Tensor::full(dtype, &[n, n], 0.0);
        let values = a.values();
        for (flat, value) in values.into_iter().enumerate() {
            let (r, c) = (flat / n as usize, flat % n as usize);
            let is_read = r == c || upper == (r < c);
            a.set_flat(flat, if is_read { value } else { C128::new(f64::NAN, 0.0) });
        }
        for r in 0..n as usize {
            for c in 0..n as usize {
                let value = match (r == c, upper == (r < c)) {
                    (true, _) => C128::new(free.at(r, c).re, 0.0),
                    (false, true) => free.at(r, c),
                    (false, false) => free.at(c, r).conj(),
                };
                whole.set_flat(r * n as usize + c, value);
            }
        }
        let values = |a: &Tensor| {
            let mut w = Tensor::full(DType::F64, &[n], 0.0);
            linalg::eigh(&mut w.view_mut(), None, a.view(), upper).unwrap();
            w.reals()
        };
        for (a, b) in values(&a).iter().zip(values(&whole)) {
            assert!((a - b).abs() < 1e-11, "{dtype:?} {n} {upper}: {a} against {b}");
        }
    }
}

#[test]
fn failures_have_a_code_or_are_named() {
    let zero = Tensor::full(DType::F32, &[2, 2], 0.0);
    let nan = Tensor::full(DType::F32, &[2, 2], f64::NAN);
    let two = Tensor::from(DType::F32, &[2, 2, 2], &[1., 0., 0., 1., 1., 2., 2., 4.]);
    let mut x = Tensor::full(DType::F32, &[2, 2], 0.0);
    let mut y = Tensor::full(DType::F32, &[2, 2, 2], 0.0);
    let mut s = Tensor::full(DType::F32, &[2], 0.0);
    let text = |r: pullback_kernels::Result<()>| r.unwrap_err().message().to_owned();
    let is_nan = |t: &Tensor, from: usize| t.reals()[from..].iter().all(|v| v.is_nan());
    assert_eq!(solve(&mut x, &zero, &zero).unwrap(), [1]);
    assert!(is_nan(&x, 0));
    assert_eq!(inv(&mut y, &two).unwrap(), [0, 2]);
    assert!(y.reals()[..4] == [1., 0., 0., 1.] && is_nan(&y, 4));
    assert_eq!(linalg::cholesky(&mut x.view_mut(), zero.view(), false).unwrap(), [1]);
    let minor = Tensor::from(DType::F32, &[2, 2], &[1., 0., 0., -1.]);
    assert_eq!(linalg::cholesky(&mut x.view_mut(), minor.view(), true).unwrap(), [2]);
    assert!(is_nan(&x, 0));
    assert_eq!(linalg::cholesky(&mut x.view_mut(), nan.view(), false).unwrap(), [1]);
    assert_eq!(
        text(linalg::svd(None, &mut s.view_mut(), None, nan.view(), true)),
        "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
    );
    let int = Tensor::full(DType::I32, &[2, 2], 0.0);
    assert_eq!(
        text(linalg::inv(&mut x.view_mut(), int.view()).map(drop)),
        "linalg.inv: Expected a floating point or complex tensor as input. Got Int"
    );
}

#[test]
fn cross_products_are_those_of_their_components() {
    let mut rng = Rng(17);
    let dtypes = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::BF16,
        DType::C64,
        DType::C128,
        DType::I64,
        DType::I8,
        DType::U8,
    ];
    for round in 0..180 {
        let dtype = dtypes[round % dtypes.len()];
        let mut shape: Vec<i64> = (0..=rng.below(3)).map(|_| rng.below(6)).collect();
        let dim = rng.below(shape.len() as i64) as usize;
        shape[dim] = 3;
        let (a, b) = (rng.tensor(dtype, &shape), rng.tensor(dtype, &shape));
        let mut out = rng.tensor(dtype, &shape);
        linalg::cross(&mut out.view_mut(), a.view(), b.view(), dim).unwrap();
        let inner: usize = shape[dim + 1..].iter().product::<i64>() as usize;
        let (x, y) = (a.values(), b.values());
        let expected: Vec<C128> = (0..x.len())
            .map(|at| {
                let (own, first) = (at / inner % 3, at - at / inner % 3 * inner);
                let (next, last) = (first + (own + 1) % 3 * inner, first + (own + 2) % 3 * inner);
                x[next] * y[last] - x[last] * y[next]
            })
            .collect();
        out.assert_close(&expected, &format!("{dtype:?} {shape:?} {dim}"));
    }
    let bools = rng.dense(DType::Bool, &[3]);
    let mut out = rng.dense(DType::Bool, &[3]);
    assert!(linalg::cross(&mut out.view_mut(), bools.view(), bools.view(), 0).is_err());
    let (pair, mut two) = (rng.dense(DType::F32, &[2]), rng.dense(DType::F32, &[2]));
    assert!(linalg::cross(&mut two.view_mut(), pair.view(), pair.view(), 0).is_err());
}
