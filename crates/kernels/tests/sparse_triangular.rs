//! Triangular systems whose matrix is sparse: the product of triangle and solution is the right-hand side.

mod tensor;

use pullback_kernels::index::CsrIndices;
use pullback_kernels::{C128, DType, linalg};
use tensor::{Rng, Tensor};

/// What products may be off by, relative to one.
const TOLERANCES: [(DType, f64); 4] =
    [(DType::F32, 2e-3), (DType::F64, 1e-9), (DType::C64, 2e-3), (DType::C128, 1e-9)];

#[test]
fn sparse_triangular_systems_are_solved_by_their_triangle() {
    let mut rng = Rng(12);
    for (dtype, tolerance) in TOLERANCES {
        for (n, k, upper, unit) in [
            (4, 2, true, false),
            (70, 3, false, false),
            (33, 1, true, true),
            (20, 900, false, true),
        ] {
            // Every third element is specified, and the diagonal; the other triangle means nothing.
            let is_there = |r: i64, c: i64| r == c || (r * 7 + c * 5) % 3 == 0;
            let cells = (0..n * n).map(|at| (at / n, at % n)).filter(|&(r, c)| is_there(r, c));
            let cells: Vec<(i64, i64)> = cells.collect();
            let starts: Vec<i64> =
                (0..=n).map(|row| cells.iter().filter(|&&(r, _)| r < row).count() as i64).collect();
            let columns: Vec<i64> = cells.iter().map(|&(_, c)| c).collect();
            let drawn = rng.tensor(dtype, &[cells.len() as i64]).values();
            let mut values = Tensor::full(dtype, &[cells.len() as i64], 0.0);
            let mut dense: Vec<C128> =
                (0..n * n).map(|at| f64::from(at / n == at % n).into()).collect();
            for (at, &(r, c)) in cells.iter().enumerate() {
                let size = n as f64;
                values.set_flat(at, if r == c { C128::new(size, 1.0) } else { drawn[at] / size });
                if (r == c && !unit) || (r != c && upper == (c > r)) {
                    dense[(r * n + c) as usize] = values.at(&[at as i64]);
                }
            }
            let b = rng.tensor(dtype, &[n, k]);
            let mut x = Tensor::full(dtype, &[n, k], 0.0);
            b.values().into_iter().enumerate().for_each(|(at, value)| x.set_flat(at, value));
            let indices = CsrIndices { crow_indices: &starts, col_indices: &columns };
            let triangle = linalg::Triangle { upper, unit };
            linalg::solve_triangular_sparse(&mut x.view_mut(), indices, values.view(), triangle)
                .unwrap();
            let (solution, size) = (x.values(), n as usize);
            for (at, expected) in b.values().into_iter().enumerate() {
                let (r, c) = (at / k as usize, at % k as usize);
                let found: C128 =
                    (0..size).map(|p| dense[r * size + p] * solution[p * k as usize + c]).sum();
                let error = (found - expected).norm();
                assert!(error <= tolerance * (1.0 + expected.norm()), "{dtype:?} {n} {k}: {error}");
            }
        }
    }
}

#[test]
fn sparse_triangles_without_a_diagonal_have_no_solution() {
    let indices = CsrIndices { crow_indices: &[0, 1, 2], col_indices: &[0, 0] };
    let values = Tensor::full(DType::F64, &[2], 2.0);
    for (unit, expected) in [(false, None), (true, Some([1.0, -1.0]))] {
        let mut x = Tensor::full(DType::F64, &[2, 1], 1.0);
        let triangle = linalg::Triangle { upper: false, unit };
        linalg::solve_triangular_sparse(&mut x.view_mut(), indices, values.view(), triangle)
            .unwrap();
        let found: Vec<f64> = x.values().iter().map(|v| v.re).collect();
        match expected {
            Some(expected) => assert_eq!(found, expected),
            None => assert!(found.iter().all(|v| v.is_nan()), "{found:?}"),
        }
    }
    let unsorted = CsrIndices { crow_indices: &[0, 2, 2], col_indices: &[1, 0] };
    let mut x = Tensor::full(DType::F64, &[2, 1], 1.0);
    let triangle = linalg::Triangle { upper: false, unit: true };
    let error =
        linalg::solve_triangular_sparse(&mut x.view_mut(), unsorted, values.view(), triangle);
    assert!(error.unwrap_err().to_string().contains("must be in order"));
}
