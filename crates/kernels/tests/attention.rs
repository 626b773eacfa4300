//! Attention against sums written down plainly.

mod tensor;

use pullback_kernels::attention::{
    AttentionOptions, AttentionResults, attention, attention_backward,
};
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
    fn new(
        rng: &mut Rng,
        dtype: DType,
        sizes: Sizes,
        is_causal: bool,
        mask: Option<DType>,
    ) -> Case {
        let [batch, heads, own, queries, keys, width, out_width] = sizes.map(|size| size as i64);
        let mut mask = mask.map(|dtype| rng.tensor(dtype, &[batch, heads, queries, keys]));
        if let Some(mask) = &mut mask {
            // Some keys are forbidden, and to some queries all are.
            let is_bool = mask.dtype == DType::Bool;
            for i in 0..mask.numel() {
                let is_forbidden = rng.below(4) == 0 || i / keys as usize % 5 == 3;
                if is_bool {
                    mask.set_flat(i, C128::new(f64::from(u8::from(!is_forbidden)), 0.0));
                } else if is_forbidden {
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

    fn options(&self) -> AttentionOptions<'_> {
        let mask = self.mask.as_ref().map(|mask| mask.view());
        AttentionOptions { scale: SCALE, is_causal: self.is_causal, mask }
    }

    fn results(&self, rng: &mut Rng) -> (Tensor, Tensor) {
        let [batch, heads, _, queries, _, _, out_width] = self.sizes.map(|size| size as i64);
        let dtype = self.query.dtype;
        let mut out = rng.tensor(dtype, &[batch, heads, queries, out_width]);
        let mut sums = rng.tensor(wide(dtype), &[batch, heads, queries]);
        let operands = [self.key.view(), self.value.view()];
        let (out_view, sums_view) = (&mut out.view_mut(), &mut sums.view_mut());
        attention(out_view, sums_view, self.query.view(), operands, self.options()).unwrap();
        (out, sums)
    }

    /// The gradients of query, key and value, given that of the output.
    fn gradients(&self, rng: &mut Rng, grad: &Tensor) -> [Tensor; 3] {
        let (out, sums) = self.results(rng);
        let operands = [&self.query, &self.key, &self.value];
        let mut grads = operands.map(|of| rng.tensor(of.dtype, &of.shape));
        let [by_query, by_key, by_value] = &mut grads;
        let results = AttentionResults { out: out.view(), sums: sums.view(), grad: grad.view() };
        attention_backward(
            [&mut by_query.view_mut(), &mut by_key.view_mut(), &mut by_value.view_mut()],
            results,
            self.query.view(),
            [self.key.view(), self.value.view()],
            self.options(),
        )
        .unwrap();
        grads
    }

    /// What is added to the score of a query and a key.
    fn masked(&self, mask: &[f64], at: usize) -> f64 {
        match &self.mask {
            Some(mask) if mask.dtype == DType::Bool => {
                if mask_at(mask, at) {
                    0.0
                } else {
                    f64::NEG_INFINITY
                }
            }
            Some(_) => mask[at],
            None => 0.0,
        }
    }

    /// The gradients by their formula.
    fn expected_gradients(&self, grad: &Tensor) -> [Vec<f64>; 3] {
        let [batch, heads, own, queries, keys, width, out_width] = self.sizes;
        let operands = [&self.query, &self.key, &self.value, grad].map(Tensor::reals);
        let [query, key, value, grad] = &operands;
        let mask = self.mask.as_ref().map(Tensor::reals).unwrap_or_default();
        let mut grads = [query, key, value].map(|of| vec![0.0; of.len()]);
        for row in 0..batch * heads * queries {
            let (at, i) = (row / queries, row % queries);
            let first = (at / heads * own + at % heads / (heads / own)) * keys;
            let allowed = if self.is_causal { keys.min(i + 1) } else { keys };
            let q = &query[row * width..][..width];
            let g = &grad[row * out_width..][..out_width];
            let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
            let weights: Vec<f64> = (0..allowed)
                .map(|j| {
                    let score = dot(q, &key[(first + j) * width..]) * SCALE;
                    (score + self.masked(&mask, row * keys + j)).exp()
                })
                .collect();
            let sum: f64 = weights.iter().sum();
            if sum == 0.0 {
                continue;
            }
            let by_weight: Vec<f64> =
                (0..allowed).map(|j| dot(g, &value[(first + j) * out_width..])).collect();
            let mean = dot(&weights, &by_weight) / sum;
            for j in 0..allowed {
                let weight = weights[j] / sum;
                let slope = weight * (by_weight[j] - mean) * SCALE;
                for e in 0..width {
                    grads[0][row * width + e] += slope * key[(first + j) * width + e];
                    grads[1][(first + j) * width + e] += slope * q[e];
                }
                for f in 0..out_width {
                    grads[2][(first + j) * out_width + f] += weight * g[f];
                }
            }
        }
        grads
    }

    /// What is expected: outputs, then logarithms.
    fn expected(&self) -> (Vec<f64>, Vec<f64>) {
        let [batch, heads, own, queries, keys, width, out_width] = self.sizes;
        let (query, key, value) = (self.query.reals(), self.key.reals(), self.value.reals());
        let mask = self.mask.as_ref().map(Tensor::reals).unwrap_or_default();
        let (mut outs, mut sums) = (vec![], vec![]);
        for row in 0..batch * heads * queries {
            let (at, i) = (row / queries, row % queries);
            let first = (at / heads * own + at % heads / (heads / own)) * keys;
            let allowed = if self.is_causal { keys.min(i + 1) } else { keys };
            let score = |j: usize| {
                let products =
                    (0..width).map(|e| query[row * width + e] * key[(first + j) * width + e]);
                products.sum::<f64>() * SCALE + self.masked(&mask, row * keys + j)
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

/// The dtype that is computed in.
fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// Whether a mask of truth values is true at a place.
fn mask_at(mask: &Tensor, flat: usize) -> bool {
    let mut index = vec![0; mask.shape.len()];
    let mut rest = flat as i64;
    for d in (0..index.len()).rev() {
        index[d] = rest % mask.shape[d];
        rest /= mask.shape[d];
    }
    mask.at(&index).re != 0.0
}

const SIZES: [Sizes; 11] = [
    [2, 4, 2, 7, 9, 5, 3],
    [1, 2, 2, 50, 300, 16, 64],
    [1, 3, 1, 300, 70, 20, 70],
    [2, 1, 1, 1, 1, 1, 1],
    [1, 1, 1, 13, 600, 8, 130],
    [1, 1, 1, 530, 520, 9, 8],
    [3, 6, 2, 20, 31, 33, 17],
    [1, 2, 1, 8, 0, 4, 3],
    [1, 2, 1, 8, 5, 0, 3],
    [1, 2, 1, 8, 5, 3, 0],
    [0, 2, 1, 8, 5, 4, 3],
];

/// Cases of all dtypes, sizes and kinds of masks.
fn cases(rng: &mut Rng) -> Vec<(Case, String)> {
    let mut all = vec![];
    for sizes in SIZES {
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            let masks = [None, Some(dtype), Some(DType::Bool), Some(DType::F32)];
            for mask in [masks[0], masks[1 + rng.below(3) as usize]] {
                let is_causal = rng.below(2) == 0;
                let case = Case::new(rng, dtype, sizes, is_causal, mask);
                all.push((case, format!("{dtype:?} {sizes:?} causal {is_causal} mask {mask:?}")));
            }
        }
    }
    all
}

#[test]
fn attention_equals_plain_sums() {
    let mut rng = Rng(5);
    for (case, what) in cases(&mut rng) {
        let ((out, sums), expected) = (case.results(&mut rng), case.expected());
        out.assert_reals(&expected.0, &what);
        sums.assert_reals(&expected.1, &format!("logarithms of {what}"));
    }
}

#[test]
fn gradients_of_attention_equal_plain_sums() {
    let mut rng = Rng(6);
    for (case, what) in cases(&mut rng) {
        let [batch, heads, _, queries, _, _, out_width] = case.sizes.map(|size| size as i64);
        let grad = rng.tensor(case.query.dtype, &[batch, heads, queries, out_width]);
        let (grads, expected) = (case.gradients(&mut rng, &grad), case.expected_gradients(&grad));
        for ((name, grad), expected) in ["query", "key", "value"].iter().zip(grads).zip(expected) {
            grad.assert_reals(&expected, &format!("{name} of {what}"));
        }
    }
}

#[test]
fn results_have_the_same_bits_for_any_number_of_threads() {
    let mut rng = Rng(8);
    // (Few heads, whose keys are dealt out to several tasks, and many.)
    for sizes in [[1, 2, 1, 400, 1100, 24, 40], [3, 6, 3, 70, 90, 24, 40]] {
        for is_causal in [false, true] {
            let case = Case::new(&mut rng, DType::F32, sizes, is_causal, None);
            let [batch, heads, _, queries, _, _, width] = sizes.map(|size| size as i64);
            let grad = rng.dense(DType::F32, &[batch, heads, queries, width]);
            let of = |threads| {
                parallel::set_num_threads(threads);
                let (out, sums) = case.results(&mut Rng(1));
                let grads = case.gradients(&mut Rng(1), &grad).map(|grad| grad.values());
                (out.values(), sums.values(), grads)
            };
            assert!(of(1) == of(3));
        }
    }
}

#[test]
fn a_query_does_not_see_what_causal_attention_hides_from_it() {
    let mut rng = Rng(9);
    let sizes = [1, 1, 1, 100, 100, 8, 8];
    let mut case = Case::new(&mut rng, DType::F32, sizes, true, None);
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

#[test]
fn wrong_shapes_of_gradients_are_errors() {
    let mut rng = Rng(4);
    let case = Case::new(&mut rng, DType::F32, [1, 2, 2, 4, 5, 3, 2], false, None);
    let (out, sums) = case.results(&mut rng);
    let mut call = |key: &[i64], grad: &[i64], dtype: DType| {
        let (grad, query) = (rng.dense(dtype, grad), &mut rng.dense(DType::F32, &[1, 2, 4, 3]));
        let (key, value) =
            (&mut rng.dense(DType::F32, key), &mut rng.dense(DType::F32, &[1, 2, 5, 2]));
        attention_backward(
            [&mut query.view_mut(), &mut key.view_mut(), &mut value.view_mut()],
            AttentionResults { out: out.view(), sums: sums.view(), grad: grad.view() },
            case.query.view(),
            [case.key.view(), case.value.view()],
            case.options(),
        )
    };
    assert!(call(&[1, 2, 5, 3], &[1, 2, 4, 2], DType::F32).is_ok());
    assert!(call(&[1, 2, 4, 3], &[1, 2, 4, 2], DType::F32).is_err());
    assert!(call(&[1, 2, 5, 3], &[1, 2, 4, 3], DType::F32).is_err());
    assert!(call(&[1, 2, 5, 3], &[1, 2, 4, 2], DType::F16).is_err());
}
