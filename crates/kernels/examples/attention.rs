//! How fast attention is: `attention [WORD]`, one line for each case whose name contains `WORD`.
//!
//! The shortest of many rounds counts. Rates are in 10^9 operations per second, a multiply-add being two and keys that causal
//! attention forbids none.

use pullback_kernels::attention::{AttentionOptions, attention};
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
            for is_causal in [false, true] {
                let name =
                    format!("{name}.{}.t{threads}", if is_causal { "causal" } else { "full" });
                if name.contains(&word) {
                    let seconds = time(sizes, is_causal);
                    let [batch, heads, length, width] = sizes.map(|size| size as f64);
                    let pairs =
                        if is_causal { length * (length + 1.0) / 2.0 } else { length * length };
                    let rate = 4.0 * batch * heads * pairs * width / seconds * 1e-9;
                    println!("{name:32} {:9.3} ms {rate:8.1}", seconds * 1e3);
                }
            }
        }
    }
}

/// The shortest round in seconds.
fn time(sizes: [i64; 4], is_causal: bool) -> f64 {
    let [batch, heads, length, width] = sizes;
    let count = (batch * heads * length * width) as usize;
    let numbers = |seed: usize| -> Vec<f32> {
        (0..count).map(|i| ((i * 7919 + seed) % 1009) as f32 / 504.5 - 1.0).collect()
    };
    let (query, key, value) = (numbers(0), numbers(5), numbers(11));
    let (mut out, mut sums) = (numbers(0), vec![0.0_f32; count / width as usize]);
    let strides = [heads * length * width, length * width, width, 1];
    let sum_strides = [heads * length, length, 1];
    let options = AttentionOptions { scale: (width as f64).sqrt().recip(), is_causal, mask: None };
    let mut best = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed() < TIME {
        // SAFETY: buffers of as many elements as shapes and strides reach.
        let (mut to, mut logarithms, [query, key, value]) = unsafe {
            let view = |x: &Vec<f32>| x.as_ptr().cast::<u8>();
            let refs = [&query, &key, &value].map(view);
            (
                StridedMut::new(out.as_mut_ptr().cast(), DType::F32, &sizes, &strides),
                StridedMut::new(sums.as_mut_ptr().cast(), DType::F32, &sizes[..3], &sum_strides),
                refs.map(|at| StridedRef::new(at, DType::F32, &sizes, &strides)),
            )
        };
        let round = Instant::now();
        attention(&mut to, &mut logarithms, query, [key, value], options).expect("sizes fit");
        best = best.min(round.elapsed().as_secs_f64());
    }
    best
}
