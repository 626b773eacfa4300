//! Indexing kernels against element-by-element twins; out-of-range indices never write.

mod array;

use array::{Array, TestRng, close};
use pullback_kernels::index::{self, ScatterReduction, ScatterSource};
use pullback_kernels::simd::{SimdLevel, set_level};
use pullback_kernels::{DType, Error, Scalar, creation, layout, parallel};

const DTYPES: [DType; 6] = [DType::F32, DType::I64, DType::U8, DType::I16, DType::F64, DType::C128];

/// Coordinates of a row-major position, and back.
fn coordinates(shape: &[i64], mut at: usize) -> Vec<usize> {
    let mut c = vec![0; shape.len()];
    for d in (0..shape.len()).rev() {
        c[d] = at % shape[d] as usize;
        at /= shape[d] as usize;
    }
    c
}
fn position(shape: &[i64], c: &[usize]) -> usize {
    shape.iter().zip(c).fold(0, |at, (&s, &c)| at * s as usize + c)
}

fn indices(rng: &mut TestRng, dtype: DType, shape: &[i64], size: i64) -> Array {
    let mut index = rng.layout(dtype, shape);
    for i in 0..index.numel() {
        let value = rng.below(size as usize) as f64;
        index.put(i, pullback_kernels::C128::new(value, 0.0));
    }
    index
}

/// What a reduction makes of the items that meet at one element.
fn reduced(items: &[f64], reduce: ScatterReduction, dtype: DType) -> f64 {
    let sum: f64 = items.iter().sum();
    match reduce {
        ScatterReduction::Assign => items[items.len() - 1],
        ScatterReduction::Sum => sum,
        ScatterReduction::Prod => items.iter().product(),
        ScatterReduction::Mean if dtype == DType::I64 => (sum / items.len() as f64).floor(),
        ScatterReduction::Mean => sum / items.len() as f64,
        ScatterReduction::Amax => items.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ScatterReduction::Amin => items.iter().copied().fold(f64::INFINITY, f64::min),
    }
}

#[test]
fn gather_and_scatter_equal_their_twins() {
    let mut rng = TestRng(1);
    for round in 0..300 {
        set_level(SimdLevel::ALL[round % 3]);
        let mut shape: Vec<i64> = (0..=rng.below(3)).map(|_| 1 + rng.below(6) as i64).collect();
        let dim = rng.below(shape.len());
        // Rows that fit one register, two, or none.
        let width = if round % 5 == 0 { 40 } else { 9 };
        shape[dim] = 1 + rng.below(width) as i64;
        let mut small: Vec<i64> = shape.iter().map(|&s| 1 + rng.below(s as usize) as i64).collect();
        small[dim] = 1 + rng.below(width) as i64;
        let dtype = DTYPES[round % DTYPES.len()];
        let input = rng.array(dtype, &shape, false);
        let kind = [DType::I64, DType::I32][rng.below(2)];
        let index = indices(&mut rng, kind, &small, shape[dim]);
        let mut out = rng.layout(dtype, &small);
        index::gather(&mut out.view_mut(), input.view(), dim, index.view()).unwrap();
        let target = |at: usize| {
            let mut c = coordinates(&small, at);
            c[dim] = index.at(at) as usize;
            position(&shape, &c)
        };
        for at in 0..out.numel() {
            assert_eq!(out.complex_at(at), input.complex_at(target(at)));
        }
        check_scatter(&mut rng, &input, dim, (&index, &small), &target);
    }
    set_level(SimdLevel::Avx512);
}

/// `scatter` with each reduction against its twin; `target` is the position of each element of the index.
fn check_scatter(
    rng: &mut TestRng,
    input: &Array,
    dim: usize,
    (index, small): (&Array, &[i64]),
    target: &dyn Fn(usize) -> usize,
) {
    let dtype = input.view().dtype();
    let source = rng.array(dtype, small, false);
    for reduce in [
        ScatterReduction::Assign,
        ScatterReduction::Sum,
        ScatterReduction::Prod,
        ScatterReduction::Mean,
        ScatterReduction::Amax,
        ScatterReduction::Amin,
    ] {
        for include_self in [true, false] {
            let mut result = input.clone();
            let done = index::scatter(
                &mut result.view_mut(),
                dim,
                index.view(),
                ScatterSource::Tensor(source.view()),
                (reduce, include_self),
            );
            if dtype == DType::C128 || dtype == DType::U8 || dtype == DType::I16 {
                continue;
            }
            done.unwrap();
            for at in 0..input.numel() {
                let mut items: Vec<f64> = (0..source.numel())
                    .filter(|&s| target(s) == at)
                    .map(|s| source.at(s))
                    .collect();
                let old = input.at(at);
                if items.is_empty() {
                    assert_eq!(result.at(at), old);
                    continue;
                }
                if include_self && reduce != ScatterReduction::Assign {
                    items.insert(0, old);
                }
                let (got, wanted) = (result.at(at), reduced(&items, reduce, dtype));
                let what = format!("{reduce:?} {include_self} {dtype:?}");
                assert!(close(got, wanted, 1e-5), "{what}: {got} {wanted}");
            }
        }
    }
}

#[test]
fn slices_by_index_equal_their_twins() {
    let mut rng = TestRng(2);
    for round in 0..300 {
        let shape: Vec<i64> = (0..=rng.below(3)).map(|_| 1 + rng.below(6) as i64).collect();
        let dim = rng.below(shape.len());
        let count = rng.below(7) as i64;
        let mut part = shape.clone();
        part[dim] = count;
        let dtype = DTYPES[round % DTYPES.len()];
        let input = rng.array(dtype, &shape, false);
        let rows = indices(&mut rng, DType::I64, &[count], shape[dim]);
        let mut out = rng.layout(dtype, &part);
        index::index_select(&mut out.view_mut(), input.view(), dim, rows.view()).unwrap();
        let target = |at: usize| {
            let mut c = coordinates(&part, at);
            c[dim] = rows.at(c[dim]) as usize;
            position(&shape, &c)
        };
        (0..out.numel())
            .for_each(|at| assert_eq!(out.complex_at(at), input.complex_at(target(at))));
        let source = rng.array(dtype, &part, false);
        let (mut added, mut copied, mut filled) = (input.clone(), input.clone(), input.clone());
        index::index_add(&mut added.view_mut(), dim, rows.view(), source.view(), Scalar::Int(2))
            .unwrap();
        index::index_copy(&mut copied.view_mut(), dim, rows.view(), source.view()).unwrap();
        index::index_fill(&mut filled.view_mut(), dim, rows.view(), Scalar::Int(9)).unwrap();
        for at in 0..input.numel() {
            let sources: Vec<usize> = (0..source.numel()).filter(|&s| target(s) == at).collect();
            if matches!(dtype, DType::F32 | DType::F64 | DType::I64) {
                let wanted =
                    input.at(at) + sources.iter().map(|&s| 2.0 * source.at(s)).sum::<f64>();
                assert_eq!(added.at(at), wanted);
            }
            let last = sources.last().map_or(input.complex_at(at), |&s| source.complex_at(s));
            assert_eq!(copied.complex_at(at), last);
            let wanted = if sources.is_empty() { input.at(at) } else { 9.0 };
            assert_eq!(filled.at(at), wanted);
        }
    }
}

#[test]
fn long_lists_of_slices_equal_their_twins() {
    let mut rng = TestRng(9);
    let shapes: [&[i64]; 7] =
        [&[40], &[30, 2], &[30, 9], &[5, 70], &[70, 3, 5], &[2, 40, 20], &[3, 20, 7, 2]];
    for round in 0..140 {
        let shape = shapes[round % shapes.len()];
        let dim = rng.below(shape.len());
        let count = [1, 15, 16, 255, 256, 257, 700][rng.below(7)];
        let dtype = DTYPES[round % DTYPES.len()];
        let mut part = shape.to_vec();
        part[dim] = count;
        let input = rng.array(dtype, shape, false);
        let rows = indices(&mut rng, DType::I64, &[count], shape[dim]);
        let source = |at: usize| {
            let mut c = coordinates(&part, at);
            c[dim] = rows.at(c[dim]) as usize;
            position(shape, &c)
        };
        let mut out = rng.layout(dtype, &part);
        index::index_select(&mut out.view_mut(), input.view(), dim, rows.view()).unwrap();
        let mut indexed = rng.layout(dtype, &part);
        index::index(&mut indexed.view_mut(), input.view(), &[dim], &[rows.view()]).unwrap();
        let mut written = input.clone();
        let values = rng.array(dtype, &part, false);
        index::index_put(&mut written.view_mut(), &[dim], &[rows.view()], values.view(), false)
            .unwrap();
        let mut wanted: Vec<_> = (0..input.numel()).map(|at| input.complex_at(at)).collect();
        for at in 0..out.numel() {
            assert_eq!(out.complex_at(at), input.complex_at(source(at)));
            assert_eq!(indexed.complex_at(at), input.complex_at(source(at)));
            wanted[source(at)] = values.complex_at(at);
        }
        for (at, &value) in wanted.iter().enumerate() {
            assert_eq!(written.complex_at(at), value);
        }
    }
}

#[test]
fn the_last_of_repeated_slices_stays_whatever_the_number_of_threads() {
    let mut rng = TestRng(12);
    let before = parallel::num_threads();
    for (shape, dim, count) in [
        (vec![3000], 0, 70_000),
        (vec![500, 40], 0, 2000),
        (vec![40, 500], 1, 2000),
        (vec![300, 3], 0, 40_000),
    ] {
        let mut part = shape.clone();
        part[dim] = count;
        let (input, source) =
            (rng.array(DType::F32, &shape, false), rng.array(DType::F32, &part, false));
        let rows = indices(&mut rng, DType::I64, &[count], shape[dim]);
        let mut wanted: Vec<_> = (0..input.numel()).map(|at| input.at(at)).collect();
        for at in 0..source.numel() {
            let mut c = coordinates(&part, at);
            c[dim] = rows.at(c[dim]) as usize;
            wanted[position(&shape, &c)] = source.at(at);
        }
        for threads in [1, 3] {
            parallel::set_num_threads(threads);
            let mut copied = input.clone();
            index::index_copy(&mut copied.view_mut(), dim, rows.view(), source.view()).unwrap();
            assert!(copied.values() == wanted, "{shape:?} {threads}");
        }
    }
    parallel::set_num_threads(before);
}

#[test]
fn single_elements_are_picked_along_any_lines_by_any_number_of_threads() {
    let mut rng = TestRng(14);
    let before = parallel::num_threads();
    for dtype in DTYPES {
        let input = rng.array(dtype, &[5000], false);
        let rows = indices(&mut rng, DType::I64, &[70_001], 5000);
        for threads in [1, 3] {
            parallel::set_num_threads(threads);
            let mut selected = rng.layout(dtype, &[70_001]);
            let mut taken = rng.layout(dtype, &[70_001]);
            index::index_select(&mut selected.view_mut(), input.view(), 0, rows.view()).unwrap();
            index::take(&mut taken.view_mut(), input.view(), rows.view()).unwrap();
            for at in 0..selected.numel() {
                let wanted = input.complex_at(rows.at(at) as usize);
                assert_eq!(selected.complex_at(at), wanted, "{dtype:?} {at}");
                assert_eq!(taken.complex_at(at), wanted, "{dtype:?} {at}");
            }
        }
    }
    parallel::set_num_threads(before);
}

#[test]
fn masks_of_many_words_take_and_give_in_order() {
    let mut rng = TestRng(11);
    for round in 0..120 {
        let shape = [[3, 100], [1, 64], [130, 2], [65, 1], [7, 63]][round % 5];
        let dtype = DTYPES[round % DTYPES.len()];
        let share = [0, 1, 5, 9, 10][rng.below(5)];
        let mut mask = rng.layout(DType::Bool, &shape);
        for at in 0..mask.numel() {
            let value = f64::from(u8::from(rng.below(10) < share));
            mask.put(at, pullback_kernels::C128::new(value, 0.0));
        }
        let indices: Vec<usize> = (0..mask.numel()).filter(|&at| mask.at(at) != 0.0).collect();
        let input = rng.array(dtype, &shape, false);
        let mut taken = rng.layout(dtype, &[indices.len() as i64]);
        index::masked_select(&mut taken.view_mut(), input.view(), mask.view()).unwrap();
        let source = rng.array(dtype, &[indices.len() as i64 + 3], false);
        let mut written = input.clone();
        index::masked_scatter(&mut written.view_mut(), mask.view(), source.view()).unwrap();
        for (number, &at) in indices.iter().enumerate() {
            assert_eq!(taken.complex_at(number), input.complex_at(at));
            assert_eq!(written.complex_at(at), source.complex_at(number));
        }
        for at in (0..input.numel()).filter(|at| !indices.contains(at)) {
            assert_eq!(written.complex_at(at), input.complex_at(at));
        }
    }
}

#[test]
fn advanced_indexing_equals_its_twin() {
    let mut rng = TestRng(3);
    for _ in 0..300 {
        let shape: Vec<i64> = (0..2 + rng.below(3)).map(|_| 1 + rng.below(5) as i64).collect();
        let mut dims: Vec<usize> = (0..shape.len()).filter(|_| rng.below(2) == 0).collect();
        if dims.is_empty() {
            dims.push(rng.below(shape.len()));
        }
        let common: Vec<i64> = (0..rng.below(3)).map(|_| rng.below(4) as i64).collect();
        let list: Vec<Array> =
            dims.iter().map(|&d| indices(&mut rng, DType::I64, &common, shape[d])).collect();
        let views: Vec<_> = list.iter().map(Array::view).collect();
        let input = rng.array(DType::F64, &shape, false);
        let neighbours = dims[dims.len() - 1] - dims[0] + 1 == dims.len();
        let start = if neighbours { dims[0] } else { 0 };
        let rest: Vec<usize> = (0..shape.len()).filter(|d| !dims.contains(d)).collect();
        let mut result: Vec<i64> = rest.iter().map(|&d| shape[d]).collect();
        result.splice(start..start, common.iter().copied());
        let target = |at: usize| {
            let c = coordinates(&result, at);
            let which = position(&common, &c[start..start + common.len()]);
            let mut others = c[..start].iter().chain(&c[start + common.len()..]);
            let full: Vec<usize> = (0..shape.len())
                .map(|d| match dims.iter().position(|&x| x == d) {
                    Some(k) => list[k].at(which) as usize,
                    None => *others.next().unwrap(),
                })
                .collect();
            position(&shape, &full)
        };
        let mut out = rng.layout(DType::F64, &result);
        index::index(&mut out.view_mut(), input.view(), &dims, &views).unwrap();
        (0..out.numel()).for_each(|at| assert_eq!(out.at(at), input.at(target(at))));
        let values = rng.array(DType::F64, &result, false);
        for accumulate in [true, false] {
            let (mut changed, mut wanted) = (input.clone(), input.values());
            index::index_put(&mut changed.view_mut(), &dims, &views, values.view(), accumulate)
                .unwrap();
            for at in 0..values.numel() {
                let slot = &mut wanted[target(at)];
                *slot = if accumulate { *slot + values.at(at) } else { values.at(at) };
            }
            assert_eq!(changed.values(), wanted);
        }
    }
}

#[test]
fn masks_embeddings_and_searches_do_what_they_say() {
    let x = Array::of(&[2, 3], &[1.0_f32, 0.0, 2.0, 0.0, f32::NAN, 3.0]);
    assert_eq!(index::count_true(x.view()), 4);
    let mut indices = Array::zeros(DType::I64, &[4, 2]);
    index::nonzero(&mut indices.view_mut(), x.view()).unwrap();
    assert_eq!(indices.values(), [0., 0., 0., 2., 1., 1., 1., 2.]);
    let mut mask = Array::zeros(DType::Bool, &[2, 3]);
    for i in [1, 2, 5] {
        mask.put(i, 1.0.into());
    }
    let mut some = Array::zeros(DType::F32, &[3]);
    index::masked_select(&mut some.view_mut(), x.view(), mask.view()).unwrap();
    assert_eq!(some.values(), [0.0, 2.0, 3.0]);
    let mut y = Array::zeros(DType::F32, &[2, 3]);
    index::masked_scatter(
        &mut y.view_mut(),
        mask.view(),
        Array::vector(&[7.0_f32, 8.0, 9.0]).view(),
    )
    .unwrap();
    assert_eq!(y.values(), [0., 7., 8., 0., 0., 9.]);

    let weight = Array::of(&[3, 2], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let rows = Array::of(&[2, 2], &[2_i64, 0, 2, 1]);
    let mut out = Array::zeros(DType::F32, &[2, 2, 2]);
    index::embedding(&mut out.view_mut(), weight.view(), rows.view()).unwrap();
    assert_eq!(out.values(), [5., 6., 1., 2., 5., 6., 3., 4.]);
    let mut grad = Array::zeros(DType::F32, &[3, 2]);
    index::embedding_backward(&mut grad.view_mut(), out.view(), rows.view(), Some(1), true)
        .unwrap();
    assert_eq!(grad.values(), [1., 2., 0., 0., 5., 6.]);
    let mut hot = Array::zeros(DType::I64, &[2, 3]);
    index::one_hot(&mut hot.view_mut(), Array::vector(&[2_i64, 0]).view()).unwrap();
    assert_eq!(hot.values(), [0., 0., 1., 1., 0., 0.]);

    let sorted = Array::vector(&[1.0_f64, 3.0, 3.0, 7.0]);
    let values = Array::vector(&[3.0_f64, 0.0, 8.0, f64::NAN]);
    let mut found = Array::zeros(DType::I32, &[4]);
    index::searchsorted(&mut found.view_mut(), sorted.view(), values.view(), false, None).unwrap();
    assert_eq!(found.values(), [1., 0., 4., 4.]);
    index::bucketize(&mut found.view_mut(), values.view(), sorted.view(), true).unwrap();
    assert_eq!(found.values(), [3., 0., 4., 4.]);
    let input = Array::vector(&[3_i32, 1, 3]);
    assert_eq!(index::bincount_size(input.view(), 2).unwrap(), 4);
    let mut bins = Array::zeros(DType::I64, &[4]);
    index::bincount(&mut bins.view_mut(), input.view(), None).unwrap();
    assert_eq!(bins.values(), [0., 1., 0., 2.]);
}

#[test]
fn many_halves_scattered_to_one_place_are_rounded_once() {
    for dtype in [DType::F16, DType::BF16, DType::C32] {
        let (zeros, one) = (Array::zeros(DType::I64, &[1, 3000]), ScatterSource::Scalar(1.into()));
        let mut out = Array::zeros(dtype, &[1, 2]);
        let how = (ScatterReduction::Sum, true);
        index::scatter(&mut out.view_mut(), 1, zeros.view(), one, how).unwrap();
        let mut ones = Array::zeros(dtype, &[1, 3000]);
        for i in 0..3000 {
            ones.put(i, pullback_kernels::C128::new(1.0, 0.0));
        }
        let source = ScatterSource::Tensor(ones.view());
        index::scatter(&mut out.view_mut(), 1, zeros.view(), source, how).unwrap();
        // (Between 4096 and 8192 these have steps of 4 and of 32.)
        assert_eq!(out.values(), [if dtype == DType::BF16 { 6016.0 } else { 6000.0 }, 0.0]);
    }
}

#[test]
fn indices_out_of_range_are_refused_before_any_write() {
    let x = Array::of(&[3, 2], &[1.0_f32; 6]);
    let bad = Array::of(&[1, 2], &[0_i64, 5]);
    let mut out = Array::zeros(DType::F32, &[1, 2]);
    let e = index::gather(&mut out.view_mut(), x.view(), 0, bad.view()).unwrap_err();
    assert_eq!(e, Error::runtime("index 5 is out of bounds for dimension 0 with size 3".into()));
    let mut y = Array::zeros(DType::F32, &[3, 2]);
    assert!(
        index::scatter(
            &mut y.view_mut(),
            0,
            bad.view(),
            ScatterSource::Scalar(Scalar::Int(1)),
            (ScatterReduction::Assign, true)
        )
        .is_err()
    );
    assert_eq!(y.values(), [0.0; 6]);
    let bad = Array::vector(&[0_i64, -4]);
    let mut out = Array::zeros(DType::F32, &[2, 2]);
    let e = index::index(&mut out.view_mut(), x.view(), &[0], &[bad.view()]).unwrap_err();
    assert_eq!(e, Error::index("index -4 is out of bounds for dimension 0 with size 3".into()));
    let e = index::index_select(&mut out.view_mut(), x.view(), 0, bad.view()).unwrap_err();
    assert_eq!(e, Error::index("index out of range in self".into()));
    let e = index::take(
        &mut Array::zeros(DType::F32, &[2]).view_mut(),
        x.view(),
        Array::vector(&[6_i64, 0]).view(),
    )
    .unwrap_err();
    assert_eq!(e.message(), "out of range: tried to access index 6 on a tensor of 6 elements.");
    let e = index::embedding(&mut out.view_mut(), x.view(), bad.view()).unwrap_err();
    assert_eq!(e, Error::index("index out of range in self".into()));
    let e = index::bincount_size(bad.view(), 0).unwrap_err();
    assert_eq!(e.message(), "bincount only supports 1-d non-negative integral inputs.");
}

#[test]
fn layout_kernels_move_elements() {
    let mut rng = TestRng(4);
    for _ in 0..100 {
        let shape: Vec<i64> = (0..=rng.below(3)).map(|_| rng.below(5) as i64).collect();
        let dim = rng.below(shape.len());
        let x = rng.array(DType::I16, &shape, false);
        let mut out = rng.layout(DType::I16, &shape);
        layout::flip(&mut out.view_mut(), x.view(), &[dim]).unwrap();
        let flipped = |at: usize| {
            let mut c = coordinates(&shape, at);
            c[dim] = shape[dim] as usize - 1 - c[dim];
            position(&shape, &c)
        };
        (0..x.numel()).for_each(|at| assert_eq!(out.at(at), x.at(flipped(at))));
        layout::roll(&mut out.view_mut(), x.view(), &[-3], &[dim]).unwrap();
        let rolled = |at: usize| {
            let mut c = coordinates(&shape, at);
            c[dim] = (c[dim] + 3) % shape[dim] as usize;
            position(&shape, &c)
        };
        (0..x.numel()).for_each(|at| assert_eq!(out.at(at), x.at(rolled(at))));
        let mut twice = shape.clone();
        twice[dim] *= 2;
        let (mut joined, mut repeated) =
            (rng.layout(DType::I16, &twice), rng.layout(DType::I16, &twice));
        layout::cat(
            &mut joined.view_mut(),
            &[x.view(), Array::zeros(DType::I16, &[0]).view(), x.view()],
            dim,
        )
        .unwrap_or_else(|e| assert!(shape == [0], "{e}"));
        let mut repeats = vec![1; shape.len()];
        repeats[dim] = 2;
        layout::repeat(&mut repeated.view_mut(), x.view(), &repeats).unwrap();
        assert_eq!(joined.values(), repeated.values());
    }
    let ones = Array::of(&[2, 3], &[1_u8; 6]);
    let mut out = Array::zeros(DType::U8, &[2, 3]);
    layout::tril(&mut out.view_mut(), ones.view(), 0).unwrap();
    assert_eq!(out.values(), [1., 0., 0., 1., 1., 0.]);
    layout::triu(&mut out.view_mut(), ones.view(), 1).unwrap();
    assert_eq!(out.values(), [0., 1., 1., 0., 0., 1.]);
}

#[test]
fn created_numbers_are_exact() {
    let mut out = Array::zeros(DType::F32, &[5]);
    creation::linspace(&mut out.view_mut(), Scalar::Int(0), Scalar::Int(1)).unwrap();
    assert_eq!(out.values(), [0.0, 0.25, 0.5, 0.75, 1.0]);
    let size =
        creation::arange_size(Scalar::Float(0.0), Scalar::Float(1.0), Scalar::Float(0.25)).unwrap();
    assert_eq!(size, 4);
    assert_eq!(creation::arange_size(Scalar::Int(5), Scalar::Int(0), Scalar::Int(-2)).unwrap(), 3);
    assert!(creation::arange_size(Scalar::Int(0), Scalar::Int(5), Scalar::Int(0)).is_err());
    let mut out = Array::zeros(DType::I8, &[3]);
    creation::arange(&mut out.view_mut(), Scalar::Int(5), Scalar::Int(-2)).unwrap();
    assert_eq!(out.values(), [5.0, 3.0, 1.0]);
    let mut out = Array::zeros(DType::Bool, &[2, 3]);
    creation::eye(&mut out.view_mut()).unwrap();
    assert_eq!(out.values(), [1., 0., 0., 0., 1., 0.]);
}
