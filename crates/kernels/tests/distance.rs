//! Distances of rows, and their gradients, against sums written down plainly.

mod tensor;

use pullback_kernels::distance::{cdist, cdist_backward};
use pullback_kernels::{DType, parallel};
use tensor::{Rng, Tensor};

const ORDERS: [f64; 7] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, f64::INFINITY];

fn norm(differences: &[f64], p: f64) -> f64 {
    if p == 0.0 {
        return differences.iter().filter(|d| **d != 0.0).count() as f64;
    }
    if p == f64::INFINITY {
        return differences.iter().fold(0.0, |most, d| most.max(d.abs()));
    }
    differences.iter().map(|d| d.abs().powf(p)).sum::<f64>().powf(1.0 / p)
}

/// What the difference `d` changes of its norm `n`.
fn slope(d: f64, n: f64, p: f64) -> f64 {
    if p == 0.0 || d == 0.0 || n == 0.0 {
        return 0.0;
    }
    if p == f64::INFINITY {
        return if d.abs() == n { d.signum() } else { 0.0 };
    }
    d.signum() * d.abs().powf(p - 1.0) * n.powf(1.0 - p)
}

/// The differences of row `i` of a matrix of rows of `width` and row `j` of another.
fn differences(x: &[f64], y: &[f64], width: usize, (i, j): (usize, usize)) -> Vec<f64> {
    (0..width).map(|k| x[i * width + k] - y[j * width + k]).collect()
}

#[test]
fn distances_and_gradients_equal_plain_sums() {
    let mut rng = Rng(11);
    for case in 0..140 {
        let p = ORDERS[case % ORDERS.len()];
        let dtype = if case % 2 == 0 { DType::F64 } else { DType::F32 };
        let [b, n, m, width] = [rng.below(3), rng.below(5), rng.below(5), rng.below(20)];
        let (x, mut y) = (rng.tensor(dtype, &[b, n, width]), rng.tensor(dtype, &[b, m, width]));
        if case % 3 == 0 && b * n * m > 0 {
            // Two rows are equal.
            for k in 0..width as usize {
                y.set_flat(k, x.values()[k]);
            }
        }
        let grad = rng.tensor(dtype, &[b, n, m]);
        let mut out = Tensor::full(dtype, &[b, n, m], 7.0);
        let mut back = Tensor::full(dtype, &[b, n, width], 7.0);
        cdist(&mut out.view_mut(), x.view(), y.view(), p).unwrap();
        cdist_backward(&mut back.view_mut(), grad.view(), [x.view(), y.view()], p, out.view())
            .unwrap();
        let (xs, ys, grads) = (x.reals(), y.reals(), grad.reals());
        let [b, n, m, width] = [b, n, m, width].map(|size| size as usize);
        let (mut distances, mut slopes) = (vec![], vec![0.0; b * n * width]);
        for matrix in 0..b {
            for i in matrix * n..(matrix + 1) * n {
                for j in 0..m {
                    let ds = differences(&xs, &ys, width, (i, matrix * m + j));
                    let distance = norm(&ds, p);
                    for (k, &d) in ds.iter().enumerate() {
                        slopes[i * width + k] += slope(d, distance, p) * grads[i * m + j];
                    }
                    distances.push(distance);
                }
            }
        }
        out.assert_reals(&distances, &format!("p = {p} of {:?} and {:?}", x.shape, y.shape));
        if p != f64::INFINITY || dtype == DType::F64 {
            back.assert_reals(&slopes, &format!("the gradient, p = {p} of {:?}", x.shape));
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let mut rng = Rng(5);
    let (x, y) = (rng.tensor(DType::F32, &[150, 33]), rng.tensor(DType::F32, &[140, 33]));
    for p in ORDERS {
        let run = |threads: usize| {
            parallel::set_num_threads(threads);
            let mut out = Tensor::full(DType::F32, &[150, 140], 0.0);
            let mut back = Tensor::full(DType::F32, &[150, 33], 0.0);
            cdist(&mut out.view_mut(), x.view(), y.view(), p).unwrap();
            cdist_backward(&mut back.view_mut(), out.view(), [x.view(), y.view()], p, out.view())
                .unwrap();
            (out.data, back.data)
        };
        let (one, four) = (run(1), run(4));
        parallel::set_num_threads(2);
        assert!(one == four, "p = {p}");
    }
}

#[test]
fn orders_and_shapes_are_checked() {
    let x = Tensor::full(DType::F64, &[2, 3], 1.0);
    let run = |p: f64, out: &[i64], y: &[i64]| {
        let (mut out, y) = (Tensor::full(DType::F64, out, 0.0), Tensor::full(DType::F64, y, 0.0));
        cdist(&mut out.view_mut(), x.view(), y.view(), p)
    };
    assert!(run(2.0, &[2, 4], &[4, 3]).is_ok());
    for p in [-1.0, f64::NAN, f64::NEG_INFINITY] {
        assert!(run(p, &[2, 4], &[4, 3]).unwrap_err().message().contains("non-negative p"));
    }
    assert!(run(2.0, &[2, 4], &[4, 2]).is_err());
    assert!(run(2.0, &[4, 2], &[4, 3]).is_err());
}
