//! How fast transforms are: `transforms [WORD]`, one line for each case whose name contains `WORD`.
//!
//! The shortest of many rounds counts, as nothing makes a transform too fast. Rates are in 10^9 operations per second, five for
//! each number and each halving of the length, half of that for real numbers.

use num_complex::Complex;
use pullback_fft::{complex_to_complex, complex_to_real, real_to_complex};
use pullback_kernels::{Result, StridedMut, StridedRef, parallel};
use std::time::{Duration, Instant};

/// How long a case is measured.
const TIME: Duration = Duration::from_millis(400);

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Complex,
    FromReal,
    ToReal,
}

struct Case {
    name: &'static str,
    kind: Kind,
    shape: [usize; 2],
    dims: &'static [usize],
}

const fn case(name: &'static str, kind: Kind, shape: [usize; 2], dims: &'static [usize]) -> Case {
    Case { name, kind, shape, dims }
}

const CASES: [Case; 25] = [
    case("one64", Kind::Complex, [1, 64], &[1]),
    case("one256", Kind::Complex, [1, 256], &[1]),
    case("one1000", Kind::Complex, [1, 1000], &[1]),
    case("one1024", Kind::Complex, [1, 1024], &[1]),
    case("one4096", Kind::Complex, [1, 4096], &[1]),
    case("one65536", Kind::Complex, [1, 1 << 16], &[1]),
    case("one2^20", Kind::Complex, [1, 1 << 20], &[1]),
    case("one2^22", Kind::Complex, [1, 1 << 22], &[1]),
    case("rows16", Kind::Complex, [4096, 16], &[1]),
    case("rows64", Kind::Complex, [1024, 64], &[1]),
    case("rows256", Kind::Complex, [256, 256], &[1]),
    case("rows1000", Kind::Complex, [64, 1000], &[1]),
    case("rows1024", Kind::Complex, [64, 1024], &[1]),
    case("rows4096", Kind::Complex, [64, 4096], &[1]),
    case("eightrows1024", Kind::Complex, [8, 1024], &[1]),
    case("columns64", Kind::Complex, [64, 1024], &[0]),
    case("columns256", Kind::Complex, [256, 256], &[0]),
    case("columns1000", Kind::Complex, [1000, 64], &[0]),
    case("columns1024", Kind::Complex, [1024, 64], &[0]),
    case("both512", Kind::Complex, [512, 512], &[0, 1]),
    case("real1024", Kind::FromReal, [1024, 1024], &[1]),
    case("realboth512", Kind::FromReal, [512, 512], &[0, 1]),
    case("real400", Kind::FromReal, [200, 400], &[1]),
    case("toreal1024", Kind::ToReal, [1024, 1024], &[1]),
    case("torealboth512", Kind::ToReal, [512, 512], &[0, 1]),
];

fn view<T: pullback_kernels::Element>(list: &mut [T], shape: &[i64]) -> (*mut u8, [i64; 2]) {
    assert_eq!(list.len() as i64, shape[0] * shape[1]);
    (list.as_mut_ptr().cast(), [shape[1], 1])
}

/// The least time of a call, in nanoseconds.
fn time(mut call: impl FnMut() -> Result<()>) -> f64 {
    let (start, mut least) = (Instant::now(), f64::INFINITY);
    while start.elapsed() < TIME {
        let begin = Instant::now();
        call().expect("the arguments are right");
        least = least.min(begin.elapsed().as_nanos() as f64);
    }
    least
}

fn main() {
    let word = std::env::args().nth(1).unwrap_or_default();
    for threads in [1, 2] {
        parallel::set_num_threads(threads);
        for case in CASES.iter().filter(|case| case.name.contains(&word)) {
            let [m, n] = case.shape;
            let (shape, half) = ([m as i64, n as i64], [m as i64, n as i64 / 2 + 1]);
            let number = |nr: usize| (nr as f32 * 0.7).sin();
            let mut numbers: Vec<f32> = (0..m * n).map(number).collect();
            let mut line: Vec<Complex<f32>> =
                (0..m * n).map(|nr| Complex::new(number(nr), number(nr + 5))).collect();
            let mut out = line.clone();
            let mut bins: Vec<Complex<f32>> = line[..m * (n / 2 + 1)].to_vec();
            let f32s = view(&mut numbers, &shape);
            let (from, to) = (view(&mut line, &shape), view(&mut out, &shape));
            let halves = view(&mut bins, &half);
            use pullback_kernels::DType::{C64, F32};
            // SAFETY: the lists have as many elements as the shapes say, and live until the end of the loop.
            let (numbers, mut real_out, line, mut out, bins, mut bins_out) = unsafe {
                (
                    StridedRef::new(f32s.0, F32, &shape, &f32s.1),
                    StridedMut::new(f32s.0, F32, &shape, &f32s.1),
                    StridedRef::new(from.0, C64, &shape, &from.1),
                    StridedMut::new(to.0, C64, &shape, &to.1),
                    StridedRef::new(halves.0, C64, &half, &halves.1),
                    StridedMut::new(halves.0, C64, &half, &halves.1),
                )
            };
            let least = match case.kind {
                Kind::Complex => time(|| complex_to_complex(&mut out, line, case.dims, true, 1.0)),
                Kind::FromReal => time(|| real_to_complex(&mut bins_out, numbers, case.dims, 1.0)),
                Kind::ToReal => time(|| complex_to_real(&mut real_out, bins, case.dims, 1e-3)),
            };
            let levels: f64 = case.dims.iter().map(|&dim| (case.shape[dim] as f64).log2()).sum();
            let per_number = if case.kind == Kind::Complex { 5.0 } else { 2.5 };
            let rate = per_number * levels * (m * n) as f64 / least;
            println!(
                "{:14} {threads} threads {:10.1} us {rate:8.2} GFLOP/s",
                case.name,
                least / 1e3
            );
        }
    }
}
