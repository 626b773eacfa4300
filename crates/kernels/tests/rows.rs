//! Element-by-element kernels over rows of every layout give what they give over dense memory: bit for bit, into fresh
//! memory and in place, on one and on two threads.

mod tensor;

use pullback_kernels::elementwise as ew;
use pullback_kernels::{C128, DType, Iter, StridedMut, StridedRef, parallel};
use tensor::{Rng, Tensor};

/// A matrix with so many elements between rows and between neighbours of a row.
fn matrix(rng: &mut Rng, dtype: DType, (rows, columns): (i64, i64), layout: [i64; 2]) -> Tensor {
    let [down, along] = layout;
    let last = (rows - 1).max(0) * down + (columns - 1).max(0) * along;
    let mut t = rng.dense(dtype, &[last + 1]);
    (t.shape, t.strides) = (vec![rows, columns], layout.to_vec());
    t
}

/// The product of two tensors after copying them to dense memory.
fn dense_product(a: &Tensor, b: &Tensor) -> Vec<C128> {
    let [mut x, mut y] = [a, b].map(|t| {
        let mut dense = Tensor::full(t.dtype, &[t.numel() as i64], 0.0);
        t.values().into_iter().enumerate().for_each(|(i, value)| dense.set_flat(i, value));
        dense
    });
    let mut out = Tensor::full(a.dtype, &x.shape.clone(), 0.0);
    let (x, y) = (x.view_mut().as_ref(), y.view_mut().as_ref());
    ew::mul(&mut Iter::new(&[out.view_mut()], &[x, y]).unwrap()).unwrap();
    out.values()
}

fn check(dtype: DType, size: (i64, i64)) {
    let (rows, columns) = size;
    let mut rng = Rng((rows * 1000 + columns) as u64);
    let dense = [columns, 1];
    // Whole, one number for each row, one row for all, one number, rows with gaps, every other element.
    let layouts = [dense, [1, 0], [0, 1], [0, 0], [columns + 3, 1], [2 * columns, 2]];
    for [left, right] in layouts.iter().flat_map(|&a| layouts.map(|b| [a, b])) {
        let (a, b) = (matrix(&mut rng, dtype, size, left), matrix(&mut rng, dtype, size, right));
        let (expected, what) =
            (dense_product(&a, &b), format!("{dtype:?} {size:?} {left:?} {right:?}"));
        for threads in [1, 2] {
            parallel::set_num_threads(threads);
            for layout in [dense, [columns + 1, 1], [2 * columns, 2]] {
                let mut out = matrix(&mut rng, dtype, size, layout);
                ew::mul(&mut Iter::new(&[out.view_mut()], &[a.view(), b.view()]).unwrap()).unwrap();
                assert!(out.values() == expected, "{what} to {layout:?}");
            }
            for (own, is_left) in [(&a, true), (&b, false)] {
                if own.strides.contains(&0) {
                    continue;
                }
                let mut out = Tensor {
                    data: own.data.clone(),
                    shape: own.shape.clone(),
                    strides: own.strides.clone(),
                    ..*own
                };
                let ptr = out.view_mut().ptr();
                // SAFETY: the very same view twice, of live memory.
                let (target, own) = unsafe {
                    (
                        StridedMut::new(ptr, dtype, &own.shape, &own.strides),
                        StridedRef::new(ptr, dtype, &own.shape, &own.strides),
                    )
                };
                let inputs = if is_left { [own, b.view()] } else { [a.view(), own] };
                ew::mul(&mut Iter::new(&[target], &inputs).unwrap()).unwrap();
                assert!(out.values() == expected, "{what} in place");
            }
        }
    }
}

#[test]
fn rows_of_any_layout_give_what_dense_memory_gives() {
    use DType::*;
    for size in
        [(0, 5), (5, 0), (1, 7), (7, 1), (40, 3), (129, 16), (9, 257), (5, 700), (8, 2), (300, 17)]
    {
        for dtype in [F32, F64, BF16, F16, I16, I64, C128, Bool] {
            check(dtype, size);
        }
    }
    for (dtype, size) in [(F32, (700, 47)), (BF16, (24, 1400)), (U8, (1500, 23))] {
        check(dtype, size);
    }
}

#[test]
fn long_runs_in_place_give_what_fresh_memory_gives() {
    for (dtype, n) in
        [(DType::F32, 32_768), (DType::F32, 33_333), (DType::F64, 50_001), (DType::F32, 3_000_000)]
    {
        let mut rng = Rng(n as u64);
        let (a, b, one) =
            (rng.dense(dtype, &[n]), rng.dense(dtype, &[n]), Tensor::full(dtype, &[1], 1.5));
        let single = || {
            let mut t = Tensor { data: one.data.clone(), shape: vec![n], strides: vec![0], ..one };
            t.dtype = dtype;
            t
        };
        for threads in [1, 2] {
            parallel::set_num_threads(threads);
            // Which operands are the target: the first, the second, both; the other one is dense or a single number.
            for (first, second, is_single) in [
                (true, false, false),
                (false, true, false),
                (true, true, false),
                (true, false, true),
                (false, true, true),
            ] {
                let other = if is_single {
                    single()
                } else {
                    Tensor {
                        data: b.data.clone(),
                        shape: b.shape.clone(),
                        strides: b.strides.clone(),
                        ..b
                    }
                };
                let operand = |is_own: bool| if is_own { &a } else { &other };
                let mut fresh = Tensor::full(dtype, &[n], 0.0);
                let inputs = [operand(first).view(), operand(second).view()];
                ew::sub(&mut Iter::new(&[fresh.view_mut()], &inputs).unwrap(), 1.0.into()).unwrap();
                let mut out = Tensor {
                    data: a.data.clone(),
                    shape: a.shape.clone(),
                    strides: a.strides.clone(),
                    ..a
                };
                let ptr = out.view_mut().ptr();
                let (shape, strides) = (a.shape.clone(), a.strides.clone());
                // SAFETY: the very same view, of live memory.
                let target = unsafe { StridedMut::new(ptr, dtype, &shape, &strides) };
                let own = |is_own: bool| {
                    if is_own {
                        // SAFETY: as above.
                        unsafe { StridedRef::new(ptr, dtype, &shape, &strides) }
                    } else {
                        other.view()
                    }
                };
                ew::sub(&mut Iter::new(&[target], &[own(first), own(second)]).unwrap(), 1.0.into())
                    .unwrap();
                assert!(
                    out.values() == fresh.values(),
                    "{dtype:?} {n} {first} {second} {is_single}"
                );
            }
        }
    }
}
