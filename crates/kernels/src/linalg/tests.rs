//! Factorisations against their definitions.

use super::{
    Triangle, eig, geqrf, ldl_factor, ldl_solve, lu_factor, matrix_exp, permutation_of,
    solve_triangular,
};
use crate::{C64, C128, DType, StridedMut, StridedRef};

/// Row-major numbers with a shape.
struct Array<T> {
    data: Vec<T>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl<T: crate::Element> Array<T> {
    fn new(data: Vec<T>, shape: &[i64]) -> Self {
        let mut strides = vec![1; shape.len()];
        for d in (1..shape.len()).rev() {
            strides[d - 1] = strides[d] * shape[d].max(1);
        }
        Array { data, shape: shape.to_vec(), strides }
    }
    fn zeros(shape: &[i64]) -> Self {
        let count: i64 = shape.iter().product();
        Self::new(vec![T::default(); count as usize], shape)
    }
    fn view(&self) -> StridedRef<'_> {
        let ptr = self.data.as_ptr().cast();
        // SAFETY: the data is as long as the shape says.
        unsafe { StridedRef::new(ptr, T::DTYPE, &self.shape, &self.strides) }
    }
    fn view_mut(&mut self) -> StridedMut<'_> {
        let ptr = self.data.as_mut_ptr().cast();
        // SAFETY: as above.
        unsafe { StridedMut::new(ptr, T::DTYPE, &self.shape, &self.strides) }
    }
}

/// splitmix64, as numbers in -1..1.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn complex(count: usize, seed: u64) -> Vec<C128> {
    numbers(2 * count, seed).chunks(2).map(|pair| C128::new(pair[0], pair[1])).collect()
}

/// The product of an (m, k) and a (k, n) matrix, row by row.
fn product(a: &[C128], b: &[C128], (m, k, n): (usize, usize, usize)) -> Vec<C128> {
    let mut out = vec![C128::default(); m * n];
    for i in 0..m {
        for j in 0..n {
            out[i * n + j] = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
        }
    }
    out
}

fn transposed(a: &[C128], m: usize, n: usize) -> Vec<C128> {
    (0..m * n).map(|at| a[(at % m) * n + at / m]).collect()
}

fn assert_close(got: &[C128], expected: &[C128], tolerance: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (at, (g, e)) in got.iter().zip(expected).enumerate() {
        assert!((g - e).norm() <= tolerance * (1.0 + e.norm()), "{what}: {g} for {e} at {at}");
    }
}

#[test]
fn lu_times_its_permutation_is_the_matrix() {
    for (m, n) in [(1, 1), (3, 3), (5, 2), (2, 6), (64, 64), (65, 40), (70, 90), (0, 3)] {
        let k = m.min(n);
        let a = Array::new(complex(2 * m * n, 3), &[2, n as i64, m as i64]);
        let mut lu = Array::<C128>::zeros(&a.shape);
        let mut pivots = Array::<i32>::zeros(&[2, k as i64]);
        let codes = lu_factor(&mut lu.view_mut(), &mut pivots.view_mut(), a.view()).unwrap();
        assert_eq!(codes, [0, 0]);
        for i in 0..2 {
            let at = |r: usize, c: usize| lu.data[i * m * n + c * m + r];
            let one = C128::new(1.0, 0.0);
            let l: Vec<C128> = (0..m * k)
                .map(|p| (p / k, p % k))
                .map(|(r, c)| match r.cmp(&c) {
                    std::cmp::Ordering::Equal => one,
                    std::cmp::Ordering::Greater => at(r, c),
                    std::cmp::Ordering::Less => C128::default(),
                })
                .collect();
            let u: Vec<C128> = (0..k * n)
                .map(|p| (p / n, p % n))
                .map(|(r, c)| if r <= c { at(r, c) } else { C128::default() })
                .collect();
            let mut rows = vec![0_i64; m];
            permutation_of(&pivots.data[i * k..(i + 1) * k], &mut rows).unwrap();
            let found = product(&l, &u, (m, k, n));
            let expected: Vec<C128> = rows
                .iter()
                .flat_map(|&r| (0..n).map(move |c| (r as usize, c)))
                .map(|(r, c)| a.data[i * m * n + c * m + r])
                .collect();
            assert_close(&found, &expected, 1e-12, "P A = L U");
            assert!(l.iter().all(|v| v.norm() <= 2.0_f64.sqrt() + 1e-12), "pivots are largest");
        }
    }
}

#[test]
fn lu_names_the_first_zero_pivot() {
    let a = Array::new(vec![1.0_f32, 2.0, 2.0, 4.0, 0.0, 0.0, 0.0, 0.0], &[2, 2, 2]);
    let mut lu = Array::<f32>::zeros(&a.shape);
    let mut pivots = Array::<i32>::zeros(&[2, 2]);
    let codes = lu_factor(&mut lu.view_mut(), &mut pivots.view_mut(), a.view()).unwrap();
    assert_eq!(codes, [2, 1]);
    assert_eq!(pivots.data, [2, 2, 1, 2]);
    assert_eq!(permutation_of(&[3], &mut [0, 0]), Err(3));
    assert_eq!(permutation_of(&[0], &mut [0, 0]), Err(0));
}

#[test]
fn triangular_systems_are_solved_for_every_row() {
    for n in [1_usize, 2, 7, 16, 17, 70] {
        for (upper, unit) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut a = complex(n * n, 5);
            for v in &mut a {
                *v /= n as f64;
            }
            (0..n).for_each(|d| a[d * n + d] += 2.0);
            let x = complex(2 * 3 * n, 7);
            let read = |r: usize, c: usize| match r.cmp(&c) {
                std::cmp::Ordering::Equal if unit => C128::new(1.0, 0.0),
                std::cmp::Ordering::Less if !upper => C128::default(),
                std::cmp::Ordering::Greater if upper => C128::default(),
                _ => a[r * n + c],
            };
            let transposed: Vec<C128> = (0..n * n).map(|p| read(p % n, p / n)).collect();
            let b = Array::new(product(&x, &transposed, (6, n, n)), &[2, 3, n as i64]);
            let a = Array::new(a.clone(), &[n as i64, n as i64]);
            let mut found = Array::<C128>::zeros(&b.shape);
            let triangle = Triangle { upper, unit };
            solve_triangular(&mut found.view_mut(), a.view(), b.view(), triangle).unwrap();
            assert_close(&found.data, &x, 1e-11, &format!("{triangle:?} of order {n}"));
        }
    }
}

/// `A V = V diag(w)` with vectors of length 1.
fn check_eigen(a: &[C128], w: &[C128], vectors: &[C128], n: usize, tolerance: f64) {
    for (j, v) in vectors.chunks(n.max(1)).enumerate().take(n) {
        // (Matrices lie by columns, so that this is the transpose of `A v`.)
        let moved = product(v, a, (1, n, n));
        let expected: Vec<C128> = v.iter().map(|v| v * w[j]).collect();
        assert_close(&moved, &expected, tolerance, "A v = w v");
        let length: f64 = v.iter().map(C128::norm_sqr).sum();
        assert!((length - 1.0).abs() < tolerance);
    }
}

#[test]
fn eigenvectors_of_general_matrices_are_such() {
    for n in [1_usize, 2, 3, 8, 40] {
        let count = n * n;
        let real = Array::new(numbers(2 * count, 11), &[2, n as i64, n as i64]);
        let mut w = Array::<C128>::zeros(&[2, n as i64]);
        let mut v = Array::<C128>::zeros(&[2, n as i64, n as i64]);
        eig(&mut w.view_mut(), Some(&mut v.view_mut()), real.view()).unwrap();
        let mut alone = Array::<C128>::zeros(&[2, n as i64]);
        eig(&mut alone.view_mut(), None, real.view()).unwrap();
        for i in 0..2 {
            let a: Vec<C128> =
                real.data[i * count..(i + 1) * count].iter().map(|&v| C128::new(v, 0.0)).collect();
            let (w, v) = (&w.data[i * n..(i + 1) * n], &v.data[i * count..(i + 1) * count]);
            check_eigen(&a, w, v, n, 1e-10);
            let sum: C128 = w.iter().sum();
            let trace: C128 = (0..n).map(|d| a[d * n + d]).sum();
            assert!((sum - trace).norm() < 1e-10);
        }
        let z = Array::new(complex(count, 13), &[n as i64, n as i64]);
        let mut w = Array::<C128>::zeros(&[n as i64]);
        let mut v = Array::<C128>::zeros(&[n as i64, n as i64]);
        eig(&mut w.view_mut(), Some(&mut v.view_mut()), z.view()).unwrap();
        check_eigen(&z.data, &w.data, &v.data, n, 1e-10);
    }
    let mut w = Array::<C64>::zeros(&[1]);
    let nan = Array::new(vec![f32::NAN], &[1, 1]);
    assert!(eig(&mut w.view_mut(), None, nan.view()).is_err());
}

#[test]
fn reflections_make_the_matrix_of_r() {
    for (m, n) in [(1_usize, 1_usize), (4, 4), (6, 3), (3, 6)] {
        let k = m.min(n);
        let a = Array::new(complex(m * n, 17), &[n as i64, m as i64]);
        let mut out = Array::<C128>::zeros(&a.shape);
        let mut tau = Array::<C128>::zeros(&[k as i64]);
        geqrf(&mut out.view_mut(), &mut tau.view_mut(), a.view()).unwrap();
        let at = |r: usize, c: usize| out.data[c * m + r];
        let mut found: Vec<C128> = (0..m * n)
            .map(|p| (p / n, p % n))
            .map(|(r, c)| if r <= c { at(r, c) } else { C128::default() })
            .collect();
        for i in (0..k).rev() {
            let v: Vec<C128> = (0..m)
                .map(|r| match r.cmp(&i) {
                    std::cmp::Ordering::Less => C128::default(),
                    std::cmp::Ordering::Equal => C128::new(1.0, 0.0),
                    std::cmp::Ordering::Greater => at(r, i),
                })
                .collect();
            for c in 0..n {
                let dot: C128 = (0..m).map(|r| v[r].conj() * found[r * n + c]).sum();
                for r in 0..m {
                    found[r * n + c] -= tau.data[i] * dot * v[r];
                }
            }
        }
        assert_close(&found, &transposed(&a.data, n, m), 1e-12, "Q R = A");
        assert!((0..k).all(|d| at(d, d).im == 0.0), "R's diagonal is real");
    }
}

#[test]
fn indefinite_factors_solve_equations() {
    for n in [1_usize, 2, 3, 7, 20] {
        for hermitian in [false, true] {
            let mut a = complex(n * n, 19);
            for r in 0..n {
                for c in 0..r {
                    a[c * n + r] = if hermitian { a[r * n + c].conj() } else { a[r * n + c] };
                }
                // (Small diagonals need blocks of order 2.)
                a[r * n + r] *= 1e-3;
                if hermitian {
                    a[r * n + r].im = 0.0;
                }
            }
            let x = complex(2 * n, 23);
            let b = Array::new(product(&x, &transposed(&a, n, n), (2, n, n)), &[2, n as i64]);
            let columns = Array::new(transposed(&a, n, n), &[n as i64, n as i64]);
            let mut ld = Array::<C128>::zeros(&columns.shape);
            let mut pivots = Array::<i32>::zeros(&[n as i64]);
            let (to, swaps) = (&mut ld.view_mut(), &mut pivots.view_mut());
            assert_eq!(ldl_factor(to, swaps, columns.view(), hermitian).unwrap(), [0]);
            assert!(n < 3 || pivots.data.iter().any(|&p| p < 0));
            let mut found = Array::<C128>::zeros(&b.shape);
            let factors = (ld.view(), pivots.view());
            ldl_solve(&mut found.view_mut(), factors, b.view(), hermitian).unwrap();
            assert_close(&found.data, &x, 1e-9, &format!("order {n}, hermitian {hermitian}"));
        }
    }
}

#[test]
fn exponential_agrees_with_its_series() {
    for size in [1e-3, 0.1, 0.5, 1.5, 4.0, 12.0] {
        for n in [1_usize, 2, 5] {
            let a: Vec<C128> = complex(n * n, 29).iter().map(|v| v * (size / n as f64)).collect();
            // The series of a / 2^10, squared ten times, in the same precision.
            let small: Vec<C128> = a.iter().map(|v| v / 1024.0).collect();
            let identity: Vec<C128> =
                (0..n * n).map(|p| C128::new(f64::from(u8::from(p / n == p % n)), 0.0)).collect();
            let (mut sum, mut term) = (identity.clone(), identity);
            for k in 1..30 {
                term = product(&term, &small, (n, n, n)).iter().map(|v| v / f64::from(k)).collect();
                sum.iter_mut().zip(&term).for_each(|(s, t)| *s += t);
            }
            for _ in 0..10 {
                sum = product(&sum, &sum, (n, n, n));
            }
            let a = Array::new(a, &[n as i64, n as i64]);
            let mut found = Array::<C128>::zeros(&a.shape);
            matrix_exp(&mut found.view_mut(), a.view()).unwrap();
            assert_close(&found.data, &sum, 1e-10, &format!("size {size}, order {n}"));
        }
    }
    let bad = Array::new(vec![f64::INFINITY], &[1, 1]);
    let mut found = Array::<f64>::zeros(&[1, 1]);
    matrix_exp(&mut found.view_mut(), bad.view()).unwrap();
    assert!(found.data[0].is_nan());
    let whole = Array::new(vec![1_i64], &[1, 1]);
    assert!(matrix_exp(&mut found.view_mut(), whole.view()).is_err());
    assert_eq!(found.view().dtype(), DType::F64);
}
