//! How fast products are: `products [WORD]`, one line for each case whose name contains `WORD`.
//!
//! The shortest of many rounds counts, as nothing makes a product too fast. Rates are in 10^9 operations per second, a
//! multiply-add being two.

use pullback_kernels::{DType, Scalar, StridedMut, StridedRef, gemm, parallel};
use std::time::{Duration, Instant};

/// How long a case is measured.
const TIME: Duration = Duration::from_millis(600);
const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::BF16, DType::F16];

/// Batch, rows, columns, depth; whether the left and the right operand are transposed.
struct Case {
    name: &'static str,
    batch: usize,
    sizes: [usize; 3],
    transposed: [bool; 2],
}

const fn case(name: &'static str, batch: usize, sizes: [usize; 3], transposed: [bool; 2]) -> Case {
    Case { name, batch, sizes, transposed }
}

const CASES: [Case; 28] = [
    case("square256", 1, [256, 256, 256], [false, false]),
    case("square512", 1, [512, 512, 512], [false, false]),
    case("square1024", 1, [1024, 1024, 1024], [false, false]),
    case("square2048", 1, [2048, 2048, 2048], [false, false]),
    case("nt256", 1, [256, 256, 256], [false, true]),
    case("nt512", 1, [512, 512, 512], [false, true]),
    case("nt1024", 1, [1024, 1024, 1024], [false, true]),
    case("nt2048", 1, [2048, 2048, 2048], [false, true]),
    case("linear2", 1, [2, 1024, 1024], [false, true]),
    case("linear4", 1, [4, 1024, 1024], [false, true]),
    case("linear8", 1, [8, 1024, 4096], [false, true]),
    case("linear16", 1, [16, 1024, 1024], [false, true]),
    case("linear32", 1, [32, 4096, 2048], [false, true]),
    case("linear64", 1, [64, 1024, 1024], [false, true]),
    case("linear16small", 1, [16, 256, 256], [false, true]),
    case("wide4", 1, [4, 50000, 64], [false, true]),
    case("wide64", 1, [64, 50000, 64], [false, true]),
    case("head2", 1, [4096, 2, 1024], [false, false]),
    case("head4", 1, [4096, 4, 1024], [false, false]),
    case("head4nt", 1, [4096, 4, 1024], [false, true]),
    case("head16", 1, [4096, 16, 1024], [false, false]),
    case("head10", 1, [4096, 10, 1024], [false, false]),
    case("head10nt", 1, [4096, 10, 1024], [false, true]),
    case("tn512", 1, [512, 512, 512], [true, false]),
    case("skinny", 1, [32, 1024, 1024], [false, false]),
    case("tall", 1, [8192, 64, 64], [false, false]),
    case("batched32", 64, [32, 32, 32], [false, false]),
    case("batched64", 64, [64, 64, 64], [false, false]),
];

fn main() {
    let word = std::env::args().nth(1).unwrap_or_default();
    for threads in [1, 2] {
        parallel::set_num_threads(threads);
        for case in &CASES {
            for dtype in DTYPES {
                let name = format!("{}.{}.t{threads}", case.name, dtype.name());
                if name.contains(&word) {
                    let rate = rate(case, dtype);
                    println!("{name:32} {rate:8.1}");
                }
            }
        }
    }
}

/// The rate of the shortest round.
fn rate(case: &Case, dtype: DType) -> f64 {
    let [m, n, k] = case.sizes;
    let (a, b) = (numbers(dtype, case.batch * m * k), numbers(dtype, case.batch * k * n));
    let mut c = numbers(dtype, case.batch * m * n);
    let strides = |rows: usize, columns: usize, is_transposed: bool| {
        let (rs, cs) = if is_transposed { (1, rows) } else { (columns, 1) };
        [rows * columns, rs, cs].map(|stride| stride as i64)
    };
    let (sa, sb) = (strides(m, k, case.transposed[0]), strides(k, n, case.transposed[1]));
    let sc = strides(m, n, false);
    let shape = |rows: usize, columns: usize| [case.batch, rows, columns].map(|size| size as i64);
    let (ha, hb, hc) = (shape(m, k), shape(k, n), shape(m, n));
    let mut best = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed() < TIME {
        // SAFETY: buffers of as many elements as shapes and strides reach.
        let (mut to, left, right) = unsafe {
            (
                StridedMut::new(c.as_mut_ptr().cast(), dtype, &hc, &sc),
                StridedRef::new(a.as_ptr().cast(), dtype, &ha, &sa),
                StridedRef::new(b.as_ptr().cast(), dtype, &hb, &sb),
            )
        };
        let round = Instant::now();
        gemm::bmm(&mut to, left, right, Scalar::Int(1), Scalar::Int(0)).expect("sizes fit");
        best = best.min(round.elapsed().as_secs_f64());
    }
    (2 * case.batch * m * n * k) as f64 / best * 1e-9
}

/// `n` numbers of a dtype between one half and two, as bytes.
fn numbers(dtype: DType, n: usize) -> Vec<u64> {
    let bytes: Vec<u8> = (0..n)
        .flat_map(|i| {
            let value = 0.5 + (i * 7919 % 1009) as f64 / 700.0;
            match dtype {
                DType::F64 => value.to_ne_bytes().to_vec(),
                DType::F32 => (value as f32).to_ne_bytes().to_vec(),
                DType::BF16 => pullback_kernels::bf16::from_f64(value).to_ne_bytes().to_vec(),
                _ => pullback_kernels::f16::from_f64(value).to_ne_bytes().to_vec(),
            }
        })
        .collect();
    let word = |chunk: &[u8]| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(bytes)
    };
    bytes.chunks(8).map(word).collect()
}
