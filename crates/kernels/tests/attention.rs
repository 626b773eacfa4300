//! Attention against sums written down plainly.

mod tensor;

use pullback_kernels::attention::{AttentionOptions, attention};
use pullback_kernels::{C128, DType, parallel};
use tensor::{Rng, Tensor};

/// Batch, heads, heads of keys, queries, keys, widths of keys and of values.
type Sizes = [usize; 7];

/// Operands and how they are weighed.
struct Case {
    sizes: Sizes,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Option<Tensor>,
    is_causal: bool,
}

const SCALE: f64 = 0.7;

impl Case {
    fn new(rng: &mut Rng, dtype: DType, sizes: Sizes, is_causal: bool, is_masked: bool) -> Case {
        let [batch, heads, own, queries, keys, width, out_width] = sizes.map(|size| size as i64);
        let mut mask = is_masked.then(|| rng.tensor(dtype, &[batch, heads, queries, keys]));
        if let Some(mask) = &mut mask {
            // Some keys are forbidden, and to some queries all are.
            for i in 0..mask.numel() {
                if rng.below(4) == 0 || i / keys as usize % 5 == 3 {
                    mask.set_flat(i, C128::new(f64::NEG_INFINITY, 0.0));
                }
            }
        }
        Case {
            sizes,
            query: rng.tensor(dtype, &[batch, heads, queries, width]),
            key: rng.tensor(dtype, &[batch, own, keys, width]),
            value: rng.tensor(dtype, &[batch, own, keys, out_width]),
            mask,
            is_causal,
        }
    }

    fn results(&self, rng: &mut Rng) -> (Tensor, Tensor) {
        let [batch, heads, _, queries, _, _, out_width] = self.sizes.map(|size| size as i64);
        let dtype = self.query.dtype;
        let mut out = rng.tensor(dtype, &[batch, heads, queries, out_width]);
        let mut sums = rng.tensor(dtype, &[batch, heads, queries]);
        let options = AttentionOptions {
            scale: SCALE,
            is_causal: self.is_causal,
            mask: self.mask.as_ref().map(|mask| mask.view()),
        };
        let operands = [self.key.view(), self.value.view()];
        let (out_view, sums_view) = (&mut out.view_mut(), &mut sums.view_mut());
        attention(out_view, sums_view, self.query.view(), operands, options).unwrap();
        (out, sums)
    }

    /// What is expected: outputs, then logarithms.
    fn expected(&self) -> (Vec<f64>, Vec<f64>) {
        let [batch, heads, own, queries, keys, width, out_width] = self.sizes;
        let (query, key, value) = (self.query.reals(), self.key.reals(), self.value.reals());
        let mask = self.mask.as_ref().map(Tensor::reals);
        let (mut outs, mut sums) = (vec![], vec![]);
        for row in 0..batch * heads * queries {
            let (at, i) = (row / queries, row % queries);
            let first = (at / heads * own + at % heads / (heads / own)) * keys;
            let allowed = if self.is_causal { keys.min(i + 1) } else { keys };
            let score = |j: usize| {
                let products =
                    (0..width).map(|e| query[row * width + e] * key[(first + j) * width + e]);
                let mask = mask.as_ref().map_or(0.0, |mask| mask[row * keys + j]);
                products.sum::<f64>() * SCALE + mask
            };
            let weights: Vec<f64> = (0..allowed).map(|j| score(j).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for f in 0..out_width {
                let values = weights.iter().enumerate();
                let all: f64 = values.map(|(j, w)| w * value[(first + j) * out_width + f]).sum();
                outs.push(if sum == 0.0 { 0.0 } else { all / sum });
            }
            sums.push(if sum == 0.0 { 0.0 } else { sum.ln() });
        }
        (outs, sums)
    }
}

#[test]
fn attention_equals_plain_sums() {
    let mut rng = Rng(5);
    let sizes: [Sizes; 9] = [
        [2, 4, 2, 7, 9, 5, 3],
        [1, 2, 2, 50, 300, 16, 64],
        [1, 3, 1, 300, 70, 20, 70],
        [2, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 13, 600, 8, 130],
        [3, 6, 2, 20, 31, 33, 17],
        [1, 2, 1, 8, 0, 4, 3],
        [1, 2, 1, 8, 5, 0, 3],
        [0, 2, 1, 8, 5, 4, 3],
    ];
    for sizes in sizes {
        for (dtype, how) in [DType::F32, DType::F64].into_iter().zip([0, 1]).cycle().take(8) {
            let turn = rng.below(4) + how;
            let case = Case::new(&mut rng, dtype, sizes, turn % 2 == 0, turn % 4 < 2);
            let ((out, sums), expected) = (case.results(&mut rng), case.expected());
            let what =
                format!("{sizes:?} causal {} masked {}", case.is_causal, case.mask.is_some());
            out.assert_reals(&expected.0, &what);
            sums.assert_reals(&expected.1, &format!("logarithms of {what}"));
        }
    }
}

#[test]
fn results_have_the_same_bits_for_any_number_of_threads() {
    let mut rng = Rng(8);
    let case = Case::new(&mut rng, DType::F32, [1, 2, 1, 400, 500, 24, 40], true, false);
    let of = |threads| {
        parallel::set_num_threads(threads);
        let (out, sums) = case.results(&mut Rng(1));
        (out.values(), sums.values())
    };
    assert!(of(1) == of(3));
}

#[test]
fn a_query_does_not_see_what_causal_attention_hides_from_it() {
    let mut rng = Rng(9);
    let sizes = [1, 1, 1, 100, 100, 8, 8];
    let mut case = Case::new(&mut rng, DType::F32, sizes, true, false);
    let (before, _) = case.results(&mut Rng(1));
    // The last key is all queries' but the last.
    for i in 99 * 8..100 * 8 {
        case.key.set_flat(i, C128::new(1e30, 0.0));
        case.value.set_flat(i, C128::new(f64::NAN, 0.0));
    }
    let (after, _) = case.results(&mut Rng(1));
    let tile = 96 * 8;
    assert!(before.values()[..tile] == after.values()[..tile]);
    assert!(after.reals()[99 * 8..].iter().all(|x| x.is_nan()));
}

#[test]
fn wrong_shapes_and_dtypes_are_errors() {
    let mut rng = Rng(3);
    let options = AttentionOptions { scale: 1.0, is_causal: false, mask: None };
    let shape = [1, 2, 4, 3];
    let mut call = |key: &[i64], dtype: DType| {
        let (query, key, value) =
            (rng.dense(DType::F32, &shape), rng.dense(dtype, key), rng.dense(DType::F32, &shape));
        let (mut out, mut sums) =
            (rng.dense(DType::F32, &shape), rng.dense(DType::F32, &shape[..3]));
        let operands = [key.view(), value.view()];
        attention(&mut out.view_mut(), &mut sums.view_mut(), query.view(), operands, options)
    };
    assert!(call(&shape, DType::F32).is_ok());
    assert!(call(&[1, 2, 4, 5], DType::F32).is_err());
    assert!(call(&[1, 2, 4], DType::F32).is_err());
    assert!(call(&shape, DType::F64).is_err());
}
