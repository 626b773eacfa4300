//! Sorting against a stable sort of the standard library, on random shapes, strides and dtypes.

mod array;

use array::{Array, REAL, TestRng, lines};
use pullback_kernels::plan::watched;
use pullback_kernels::simd::{SimdLevel, set_level};
use pullback_kernels::{C128, DType, sort};
use std::cmp::Ordering;

/// The order of PyTorch's sort: NaN above everything.
fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn sorted(input: &Array, (base, step, n): (usize, usize, usize), descending: bool) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..n).collect();
    let at = |i: usize| input.at(base + i * step);
    indices.sort_by(|&i, &j| if descending { order(at(j), at(i)) } else { order(at(i), at(j)) });
    indices
}

fn sample(rng: &mut TestRng, round: usize) -> (Array, usize) {
    let dtype = REAL[round % REAL.len()];
    let shape = match round % 20 {
        // Lines that are sorted by digits, short ones and long ones.
        19 => vec![2, if round % 40 == 19 { 800 } else { 4060 } + round as i64],
        // Lines that are sorted side by side, and longer ones next to each other.
        15..19 => vec![rng.below(40) as i64 + 1, rng.below(135) as i64 + 1],
        14 => vec![200 + round as i64, 20],
        _ => rng.shape(),
    };
    let dim = rng.below(shape.len().max(1));
    (rng.array(dtype, &shape, true), dim)
}

#[test]
fn sort_is_stable_and_puts_nan_last() {
    let mut rng = TestRng(1);
    for round in 0..300 {
        let (input, dim) = sample(&mut rng, round);
        let descending = rng.below(2) == 0;
        let mut values = rng.layout(input.dtype, &input.shape);
        let mut indices = rng.layout(DType::I64, &input.shape);
        sort::sort(&mut values.view_mut(), &mut indices.view_mut(), input.view(), dim, descending)
            .unwrap();
        for line in lines(&input.shape, dim) {
            for (i, &wanted) in sorted(&input, line, descending).iter().enumerate() {
                let at = line.0 + i * line.1;
                assert_eq!(
                    indices.get::<i64>(at),
                    wanted as i64,
                    "{:?} {:?}",
                    input.dtype,
                    input.shape
                );
                let (a, b) = (values.at(at), input.at(line.0 + wanted * line.1));
                assert_eq!(a.to_bits(), b.to_bits());
            }
        }
    }
}

#[test]
fn wide_keys_sort_over_their_whole_range() {
    let mut rng = TestRng(2);
    let ints: Vec<i64> = (0..5000).map(|_| rng.roll() as i64 >> rng.below(64)).collect();
    let floats: Vec<f64> = ints.iter().map(|&i| f64::from_bits(i as u64)).collect();
    for input in [Array::vector(&ints), Array::vector(&floats)] {
        let mut values = Array::zeros(input.dtype, &[5000]);
        let mut indices = Array::zeros(DType::I64, &[5000]);
        sort::sort(&mut values.view_mut(), &mut indices.view_mut(), input.view(), 0, false)
            .unwrap();
        let wanted: Vec<f64> = if input.dtype == DType::I64 {
            let mut order: Vec<usize> = (0..5000).collect();
            order.sort_by_key(|&i| ints[i]);
            order.iter().map(|&i| i as f64).collect()
        } else {
            sorted(&input, (0, 1, 5000), false).iter().map(|&i| i as f64).collect()
        };
        assert_eq!(indices.values(), wanted);
    }
}

#[test]
fn topk_and_kthvalue_are_parts_of_the_sort() {
    let mut rng = TestRng(3);
    for round in 0..300 {
        let (input, dim) = sample(&mut rng, round);
        let n = input.shape.get(dim).map_or(1, |&s| s as usize);
        let (k, largest) = (rng.below(n + 1), rng.below(2) == 0);
        let mut shape = input.shape.clone();
        if let Some(size) = shape.get_mut(dim) {
            *size = k as i64;
        } else if k == 0 {
            continue;
        }
        let mut values = rng.layout(input.dtype, &shape);
        let mut indices = rng.layout(DType::I64, &shape);
        sort::topk(
            &mut values.view_mut(),
            &mut indices.view_mut(),
            input.view(),
            (k, dim),
            largest,
        )
        .unwrap();
        for (line, out) in lines(&input.shape, dim).into_iter().zip(lines(&shape, dim)) {
            for (i, &wanted) in sorted(&input, line, largest).iter().take(k).enumerate() {
                assert_eq!(indices.get::<i64>(out.0 + i * out.1), wanted as i64);
            }
        }
        if k == 0 {
            continue;
        }
        shape.iter_mut().skip(dim).take(1).for_each(|s| *s = 1);
        let (mut value, mut index) =
            (rng.layout(input.dtype, &shape), rng.layout(DType::I64, &shape));
        sort::kthvalue(&mut value.view_mut(), &mut index.view_mut(), input.view(), k, dim).unwrap();
        for (line, out) in lines(&input.shape, dim).into_iter().zip(lines(&shape, dim)) {
            assert_eq!(index.get::<i64>(out.0), sorted(&input, line, false)[k - 1] as i64);
        }
    }
}

#[test]
fn median_and_mode_are_parts_of_the_sort() {
    let mut rng = TestRng(6);
    for round in 0..300 {
        set_level(SimdLevel::ALL[round % 3]);
        let (input, dim) = sample(&mut rng, round);
        if input.shape.get(dim) == Some(&0) || input.dtype == DType::Bool {
            continue;
        }
        let mut shape = input.shape.clone();
        shape.iter_mut().skip(dim).take(1).for_each(|s| *s = 1);
        let (mut value, mut index) =
            (rng.layout(input.dtype, &shape), rng.layout(DType::I64, &shape));
        sort::median(&mut value.view_mut(), &mut index.view_mut(), input.view(), dim).unwrap();
        let at = |line: (usize, usize, usize), i: usize| input.at(line.0 + i * line.1);
        for (line, out) in lines(&input.shape, dim).into_iter().zip(lines(&shape, dim)) {
            let order = sorted(&input, line, false);
            let nan = order.iter().find(|&&i| at(line, i).is_nan());
            let wanted = *nan.unwrap_or(&order[(order.len() - 1) / 2]);
            assert_eq!(index.get::<i64>(out.0), wanted as i64);
        }
        sort::nanmedian(&mut value.view_mut(), &mut index.view_mut(), input.view(), dim).unwrap();
        for (line, out) in lines(&input.shape, dim).into_iter().zip(lines(&shape, dim)) {
            let order = sorted(&input, line, false);
            let numbers = order.iter().filter(|&&i| !at(line, i).is_nan()).count();
            let wanted = order[(numbers.max(1) - 1) / 2];
            assert_eq!(index.get::<i64>(out.0), wanted as i64, "{:?}", input.shape);
            assert_eq!(value.at(out.0).to_bits(), at(line, wanted).to_bits());
        }
        sort::mode(&mut value.view_mut(), &mut index.view_mut(), input.view(), dim).unwrap();
        for (line, out) in lines(&input.shape, dim).into_iter().zip(lines(&shape, dim)) {
            let order = sorted(&input, line, false);
            let runs = order.chunk_by(|&i, &j| at(line, i) == at(line, j));
            let longest = runs.clone().map(<[usize]>::len).max().unwrap();
            let wanted = runs.clone().find(|run| run.len() == longest).unwrap().last().unwrap();
            assert_eq!(index.get::<i64>(out.0), *wanted as i64);
            assert_eq!(value.at(out.0).to_bits(), at(line, *wanted).to_bits());
        }
    }
    set_level(SimdLevel::Avx512);
}

#[test]
fn topk_of_long_lines_finds_the_best() {
    let mut rng = TestRng(4);
    let data: Vec<f32> = (0..200_000).map(|_| rng.unit() as f32).collect();
    let input = Array::vector(&data);
    for k in [1, 7, 300, 5000] {
        let (mut v, mut i) = (Array::zeros(DType::F32, &[k]), Array::zeros(DType::I64, &[k]));
        sort::topk(&mut v.view_mut(), &mut i.view_mut(), input.view(), (k as usize, 0), true)
            .unwrap();
        let wanted: Vec<f64> = sorted(&input, (0, 1, data.len()), true)[..k as usize]
            .iter()
            .map(|&i| i as f64)
            .collect();
        assert_eq!(i.values(), wanted);
    }
}

#[test]
fn unique_sorts_counts_and_inverts() {
    let x = Array::of(&[2, 3], &[3.0_f32, f32::NAN, 1.0, f32::NAN, 3.0, -0.0]);
    let u = sort::unique(x.view()).unwrap();
    assert_eq!(u.positions, [5, 2, 0, 1, 3]);
    assert_eq!(u.inverse, [2, 3, 1, 4, 2, 0]);
    assert_eq!(u.counts, [1, 1, 2, 1, 1]);
    assert_eq!(
        sort::unique(Array::zeros(DType::I32, &[0]).view()).unwrap(),
        sort::Unique::default()
    );
    assert!(sort::unique(Array::zeros(DType::C64, &[2]).view()).is_err());
}

/// The first elements of runs, the run of each element, and how long each is.
fn naive_runs<T: Copy>(
    items: &[T],
    is_equal: impl Fn(T, T) -> bool,
) -> (Vec<T>, Vec<f64>, Vec<f64>) {
    let (mut values, mut inverse, mut counts) = (Vec::<T>::new(), Vec::new(), Vec::<f64>::new());
    for (i, &item) in items.iter().enumerate() {
        if i == 0 || !is_equal(items[i - 1], item) {
            values.push(item);
            counts.push(0.0);
        }
        inverse.push((values.len() - 1) as f64);
        *counts.last_mut().unwrap() += 1.0;
    }
    (values, inverse, counts)
}

#[test]
fn runs_of_equal_neighbours_are_found_as_by_hand() {
    let mut rng = TestRng(8);
    for round in 0..240 {
        set_level(SimdLevel::ALL[round % 3]);
        let dtype = REAL[round % REAL.len()];
        let n = [0, 1, 2, 17, 300, 9000][rng.below(6)];
        let mut input = Array::zeros(dtype, &[n]);
        let variety = [1, 2, 50][rng.below(3)];
        for at in 0..n as usize {
            let number = match rng.below(variety) {
                0 if dtype.is_floating_point() => [f64::NAN, -0.0, 0.0][rng.below(3)],
                other => other as f64,
            };
            input.put(at, C128::new(number, 0.0));
        }
        let bits: Vec<f64> = (0..n as usize).map(|at| input.at(at)).collect();
        let (values, inverse, counts) = naive_runs(&bits, |a, b| a == b);
        assert_eq!(sort::count_unique_consecutive(input.view()).unwrap(), values.len());
        let mut out = [
            Array::zeros(dtype, &[values.len() as i64]),
            Array::zeros(DType::I64, &[n]),
            Array::zeros(DType::I64, &[values.len() as i64]),
        ];
        let [v, i, c] = &mut out;
        let (with_inverse, with_counts) = (rng.below(2) == 0, rng.below(2) == 0);
        let (mut i_view, mut c_view) = (i.view_mut(), c.view_mut());
        sort::unique_consecutive(
            &mut v.view_mut(),
            with_inverse.then_some(&mut i_view),
            with_counts.then_some(&mut c_view),
            input.view(),
        )
        .unwrap();
        // Bit by bit: of zeros of both signs the first one stays.
        for (at, value) in values.iter().enumerate() {
            assert_eq!(out[0].at(at).to_bits(), value.to_bits(), "{dtype:?} {n}");
        }
        assert!(!with_inverse || out[1].values() == inverse);
        assert!(!with_counts || out[2].values() == counts);
    }
    set_level(SimdLevel::Avx512);
}

#[test]
fn rows_that_differ_from_the_row_before_begin_runs() {
    let x = Array::of(&[5, 2], &[1.0_f64, 0.0, 1.0, -0.0, 1.0, f64::NAN, 1.0, f64::NAN, 2.0, 1.0]);
    assert_eq!(sort::unique_consecutive_rows(x.view()).unwrap(), [0, 2, 3, 4]);
    assert_eq!(
        sort::unique_consecutive_rows(Array::zeros(DType::I32, &[3, 0]).view()).unwrap(),
        [0]
    );
    assert!(
        sort::unique_consecutive_rows(Array::zeros(DType::I32, &[0, 3]).view()).unwrap().is_empty()
    );
    assert!(sort::unique_consecutive_rows(Array::zeros(DType::C64, &[2, 2]).view()).is_err());
    assert!(sort::unique_consecutive_rows(Array::zeros(DType::I32, &[2]).view()).is_err());
}

#[test]
fn calls_announce_the_algorithm_that_they_follow() {
    let plans = |shape: &[i64], run: &dyn Fn(&Array, &mut Array, &mut Array)| {
        let input = TestRng(9).array(DType::F32, shape, false);
        let mut values = Array::zeros(DType::F32, shape);
        let mut indices = Array::zeros(DType::I64, shape);
        let ((), list) = watched(|| run(&input, &mut values, &mut indices));
        let [announced] = &list[..] else { panic!("one plan, not {list:?}") };
        format!("{} by {}", announced.computation, announced.plan)
    };
    let sort_last = |input: &Array, values: &mut Array, indices: &mut Array| {
        let dim = input.shape.len() - 1;
        sort::sort(&mut values.view_mut(), &mut indices.view_mut(), input.view(), dim, true)
            .unwrap();
    };
    assert_eq!(plans(&[20, 30], &sort_last), "sort by Network");
    assert_eq!(plans(&[500], &sort_last), "sort by Comparison");
    assert_eq!(plans(&[2, 5000], &sort_last), "sort by Radix");
    let topk_first = |k: usize| {
        move |input: &Array, _: &mut Array, _: &mut Array| {
            let shape = [k as i64, input.shape[1]];
            let mut values = Array::zeros(DType::F32, &shape);
            let mut indices = Array::zeros(DType::I64, &shape);
            let outputs = (&mut values.view_mut(), &mut indices.view_mut());
            sort::topk(outputs.0, outputs.1, input.view(), (k, 0), true).unwrap();
        }
    };
    assert_eq!(plans(&[500, 9], &topk_first(3)), "topk by NetworkTopK");
    assert_eq!(plans(&[500, 7], &topk_first(3)), "topk by Candidates");
    assert_eq!(plans(&[500, 7], &topk_first(300)), "topk by Partition");
    let median = |input: &Array, _: &mut Array, _: &mut Array| {
        let mut value = Array::zeros(DType::F32, &[1]);
        let mut index = Array::zeros(DType::I64, &[1]);
        sort::median(&mut value.view_mut(), &mut index.view_mut(), input.view(), 0).unwrap();
    };
    assert_eq!(plans(&[9000], &median), "selection of an element by FloydRivest");
    let unique = |input: &Array, _: &mut Array, _: &mut Array| {
        sort::unique(input.view()).unwrap();
    };
    assert_eq!(plans(&[40, 40], &unique), "unique by CachedRadix");
}

#[test]
fn bad_arguments_are_refused() {
    let x = Array::zeros(DType::F32, &[3]);
    let (mut v, mut i) = (Array::zeros(DType::F32, &[4]), Array::zeros(DType::I64, &[4]));
    let e = sort::topk(&mut v.view_mut(), &mut i.view_mut(), x.view(), (4, 0), true).unwrap_err();
    assert_eq!(e.message(), "selected index k out of range");
    let e = sort::kthvalue(&mut v.view_mut(), &mut i.view_mut(), x.view(), 4, 0).unwrap_err();
    assert_eq!(e.message(), "kthvalue(): selected number k out of range for dimension 0");
    let e = sort::unique_consecutive(&mut v.view_mut(), None, None, x.view()).unwrap_err();
    assert_eq!(e.message(), "unique_consecutive: expected room for 1 values, but got 4");
    let gaps = Array::with_strides(DType::F32, &[2], &[2]);
    assert!(sort::count_unique_consecutive(gaps.view()).is_err());
    assert!(sort::count_unique_consecutive(Array::zeros(DType::C128, &[2]).view()).is_err());
}
