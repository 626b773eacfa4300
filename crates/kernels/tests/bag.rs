//! Bags of rows against twins that go through entries one by one.

mod array;

use array::{Array, TestRng};
use pullback_kernels::index::{self, BagGradient, BagInput, BagMode, BagOptions, BagOutput};
use pullback_kernels::{C128, DType, parallel};

const DTYPES: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

/// A table, entries, bags and factors.
struct Case {
    weight: Array,
    indices: Array,
    offsets: Array,
    factors: Array,
    options: BagOptions,
}

fn whole(array: &Array) -> Vec<i64> {
    array.values().iter().map(|&value| value as i64).collect()
}

fn whole_array(rng: &mut TestRng, dtype: DType, values: &[i64]) -> Array {
    let mut array = rng.layout(dtype, &[values.len() as i64]);
    for (at, &value) in values.iter().enumerate() {
        array.put(at, C128::new(value as f64, 0.0));
    }
    array
}

/// Small whole numbers, so that sums are exact in every dtype.
fn numbers(rng: &mut TestRng, dtype: DType, shape: &[i64]) -> Array {
    let mut array = rng.layout(dtype, shape);
    for at in 0..array.numel() {
        array.put(at, C128::new(rng.below(9) as f64 - 4.0, 0.0));
    }
    array
}

impl Case {
    fn new(rng: &mut TestRng, round: usize) -> Case {
        let dtype = DTYPES[round % 4];
        let (rows, width) = (1 + rng.below(5), 1 + rng.below(70));
        let entries = rng.below(12);
        let mode = [BagMode::Sum, BagMode::Mean, BagMode::Max][round % 3];
        let mut offsets: Vec<i64> =
            (0..rng.below(5)).map(|_| rng.below(entries + 1) as i64).collect();
        offsets.push(0);
        offsets.sort_unstable();
        let indices: Vec<i64> = (0..entries).map(|_| rng.below(rows) as i64).collect();
        let integers = if rng.below(2) == 0 { DType::I64 } else { DType::I32 };
        Case {
            weight: numbers(rng, dtype, &[rows as i64, width as i64]),
            indices: whole_array(rng, integers, &indices),
            offsets: whole_array(rng, integers, &offsets),
            factors: numbers(rng, dtype, &[entries as i64]),
            options: BagOptions {
                mode,
                padding_idx: (rng.below(2) == 0).then_some(0),
                include_last_offset: rng.below(2) == 0,
            },
        }
    }
    fn has_factors(&self) -> bool {
        self.options.mode == BagMode::Sum && self.indices.numel().is_multiple_of(2)
    }
    fn factor(&self, entry: usize) -> f64 {
        if self.has_factors() { self.factors.values()[entry] } else { 1.0 }
    }
    fn bags(&self) -> usize {
        self.offsets.numel() - usize::from(self.options.include_last_offset)
    }
    /// The entries of each bag, padding included.
    fn entries(&self) -> Vec<std::ops::Range<usize>> {
        let mut bounds = whole(&self.offsets);
        bounds.push(self.indices.numel() as i64);
        (0..self.bags()).map(|bag| bounds[bag] as usize..bounds[bag + 1] as usize).collect()
    }
    fn kept(&self, bag: &std::ops::Range<usize>) -> Vec<usize> {
        let rows = whole(&self.indices);
        bag.clone().filter(|&entry| self.options.padding_idx != Some(rows[entry])).collect()
    }
    fn run(&self) -> [Array; 4] {
        let (bags, width) = (self.bags() as i64, self.weight.shape[1]);
        let integers = self.indices.dtype;
        let places: &[i64] =
            if self.options.mode == BagMode::Max { &[bags, width] } else { &[bags] };
        let mut all = [
            Array::zeros(self.weight.dtype, &[bags, width]),
            Array::zeros(integers, &[self.indices.numel() as i64]),
            Array::zeros(integers, &[bags]),
            Array::zeros(integers, places),
        ];
        let [output, offset2bag, bag_size, max_indices] = &mut all;
        let to = BagOutput {
            output: &mut output.view_mut(),
            offset2bag: &mut offset2bag.view_mut(),
            bag_size: &mut bag_size.view_mut(),
            max_indices: &mut max_indices.view_mut(),
        };
        let from = BagInput {
            weight: self.weight.view(),
            indices: self.indices.view(),
            offsets: self.offsets.view(),
            factors: self.has_factors().then(|| self.factors.view()),
        };
        index::embedding_bag(to, &from, self.options).unwrap();
        all
    }
    /// The gradient of the table.
    fn gradient(&self, grad: &Array, offset2bag: &Array) -> Array {
        let mut found = Array::zeros(self.weight.dtype, &self.weight.shape);
        let from = BagGradient {
            grad: grad.view(),
            indices: self.indices.view(),
            offset2bag: offset2bag.view(),
            factors: self.has_factors().then(|| self.factors.view()),
        };
        let (mode, padding) = (self.options.mode, self.options.padding_idx);
        index::embedding_bag_backward(&mut found.view_mut(), &from, mode, padding, false).unwrap();
        found
    }
}

#[test]
fn bags_and_their_gradients_equal_their_twins() {
    let mut rng = TestRng(11);
    for round in 0..300 {
        parallel::set_num_threads(1 + round % 3);
        let case = Case::new(&mut rng, round);
        let [output, offset2bag, bag_size, max_indices] = case.run();
        let (rows, width) = (whole(&case.indices), case.weight.shape[1] as usize);
        let weight = case.weight.values();
        let is_exact = matches!(case.weight.dtype, DType::F32 | DType::F64);
        let grad = numbers(&mut rng, case.weight.dtype, &output.shape);
        let mut wanted_grad = vec![0.0; weight.len()];
        let mut numbers_wanted = vec![-1; rows.len()];
        for (bag, entries) in case.entries().iter().enumerate() {
            let kept = case.kept(entries);
            entries.clone().for_each(|entry| numbers_wanted[entry] = bag as i64);
            let is_sum = case.options.mode == BagMode::Sum;
            assert_eq!(whole(&bag_size)[bag], if is_sum { 0 } else { kept.len() as i64 });
            for column in 0..width {
                let at = |entry: usize| rows[entry] as usize * width + column;
                let sum: f64 =
                    kept.iter().map(|&entry| case.factor(entry) * weight[at(entry)]).sum();
                let count = kept.len().max(1) as f64;
                let most = kept.iter().copied().reduce(|most, entry| {
                    if weight[at(entry)] > weight[at(most)] { entry } else { most }
                });
                let wanted = match case.options.mode {
                    BagMode::Sum => sum,
                    BagMode::Mean => sum / count,
                    BagMode::Max => most.map_or(0.0, |entry| weight[at(entry)]),
                };
                let found = output.values()[bag * width + column];
                let bound = if is_exact { 1e-6 } else { 1e-2 } * wanted.abs();
                assert!((found - wanted).abs() <= bound, "{found} is not {wanted}");
                if case.options.mode == BagMode::Max {
                    let row = most.map_or(0, |entry| rows[entry]);
                    assert_eq!(whole(&max_indices)[bag * width + column], row);
                }
                let share = if is_sum { 1.0 } else { 1.0 / count };
                for &entry in &kept {
                    let by = grad.values()[bag * width + column] * share * case.factor(entry);
                    wanted_grad[at(entry)] += by;
                }
            }
        }
        assert_eq!(whole(&offset2bag), numbers_wanted);
        if case.options.mode == BagMode::Max {
            continue;
        }
        let found = case.gradient(&grad, &offset2bag);
        for (found, wanted) in found.values().into_iter().zip(wanted_grad) {
            let bound = if is_exact { 1e-5 } else { 2e-2 } * (1.0 + wanted.abs());
            assert!((found - wanted).abs() <= bound, "{found} is not {wanted}");
        }
    }
}

#[test]
fn gradients_can_be_divided_by_how_often_a_row_occurs() {
    let (indices, bags) = (Array::vector(&[0_i64, 0, 1]), Array::vector(&[0_i64, 1, 1]));
    let grad = Array::of(&[2, 1], &[2.0_f32, 4.0]);
    let from = BagGradient {
        grad: grad.view(),
        indices: indices.view(),
        offset2bag: bags.view(),
        factors: None,
    };
    let mut found = Array::zeros(DType::F32, &[3, 1]);
    index::embedding_bag_backward(&mut found.view_mut(), &from, BagMode::Sum, None, true).unwrap();
    assert_eq!(found.values(), [3.0, 4.0, 0.0]);
}
