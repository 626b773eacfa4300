//! How fast attention is: `attention [WORD]`, one line for each case whose name contains `WORD`.
//!
//! The shortest of many rounds counts. Rates are in 10^9 operations per second, a multiply-add being two and keys that causal
//! attention forbids none. Gradients are five products where attention is two.

use pullback_kernels::attention::{
    AttentionOptions, AttentionResults, attention, attention_backward,
};
use pullback_kernels::{DType, StridedMut, StridedRef, parallel};
use std::time::{Duration, Instant};

/// How long a case is measured.
const TIME: Duration = Duration::from_millis(600);

/// Batch, heads, queries and keys, width.
const CASES: [(&str, [i64; 4]); 4] = [
    ("length256", [4, 8, 256, 64]),
    ("length2048", [1, 4, 2048, 64]),
    ("length512x128", [1, 8, 512, 128]),
    ("length64", [16, 8, 64, 64]),
];

fn main() {
    let word = std::env::args().nth(1).unwrap_or_default();
    for threads in [1, 2] {
        parallel::set_num_threads(threads);
        for (name, sizes) in CASES {
            for (is_causal, is_backward) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                let kind = if is_causal { "causal" } else { "full" };
                let what = if is_backward { "gradients" } else { "attention" };
                let name = format!("{name}.{kind}.{what}.t{threads}");
                if !name.contains(&word) {
                    continue;
                }
                let seconds = time(sizes, is_causal, is_backward);
                let [batch, heads, length, width] = sizes.map(|size| size as f64);
                let pairs = if is_causal { length * (length + 1.0) / 2.0 } else { length * length };
                let products = if is_backward { 10.0 } else { 4.0 };
                let rate = products * batch * heads * pairs * width / seconds * 1e-9;
                println!("{name:36} {:9.3} ms {rate:8.1}", seconds * 1e3);
            }
        }
    }
}

/// The shortest round in seconds.
fn time(sizes: [i64; 4], is_causal: bool, is_backward: bool) -> f64 {
    let [batch, heads, length, width] = sizes;
    let count = (batch * heads * length * width) as usize;
    let numbers = |seed: usize| -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 + seed) % 1009) as f32 / 504.5 - 1.0).collect()
    };
    let operands = [numbers(0), numbers(5), numbers(11)];
    let (mut out, mut sums) = (numbers(0), vec![0.0_f32; count / width as usize]);
    let mut grads = [numbers(0), numbers(0), numbers(0)];
    let strides = [heads * length * width, length * width, width, 1];
    let sum_strides = [heads * length, length, 1];
    let options = AttentionOptions { scale: (width as f64).sqrt().recip(), is_causal, mask: None };
    // SAFETY: buffers of as many elements as shapes and strides reach.
    let whole =
        |x: &[f32]| unsafe { StridedRef::new(x.as_ptr().cast(), DType::F32, &sizes, &strides) };
    // SAFETY: as above.
    let whole_mut = |x: &mut [f32]| unsafe {
        StridedMut::new(x.as_mut_ptr().cast(), DType::F32, &sizes, &strides)
    };
    let [query, key, value] = operands.each_ref().map(|x| whole(x));
    let (mut best, start) = (f64::INFINITY, Instant::now());
    let mut is_first = true;
    while is_first || start.elapsed() < TIME {
        let round = Instant::now();
        if is_backward && !is_first {
            let [by_query, by_key, by_value] = &mut grads.each_mut().map(|x| whole_mut(x));
            // SAFETY: as above.
            let logarithms = unsafe {
                StridedRef::new(sums.as_ptr().cast(), DType::F32, &sizes[..3], &sum_strides)
            };
            let results = AttentionResults { out: whole(&out), sums: logarithms, grad: query };
            attention_backward([by_query, by_key, by_value], results, query, [key, value], options)
                .expect("sizes fit");
        } else {
            // SAFETY: as above.
            let mut logarithms = unsafe {
                StridedMut::new(sums.as_mut_ptr().cast(), DType::F32, &sizes[..3], &sum_strides)
            };
            attention(&mut whole_mut(&mut out), &mut logarithms, query, [key, value], options)
                .expect("sizes fit");
        }
        if !(is_backward && is_first) {
            best = best.min(round.elapsed().as_secs_f64());
        }
        is_first = false;
    }
    best
}
