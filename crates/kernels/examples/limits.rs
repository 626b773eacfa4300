//! What this machine's memory and arithmetic allow, for `cargo xtask bench`: `limits THREADS FILE`.
//!
//! Not the kernels are measured but loops that do nothing else: fused multiply-adds in registers, and two ways through
//! arrays of forty megabytes. The file gets an object of rates: `f32` and `f64` in 10^9 operations per second, `triad` and
//! `scale` in GB/s, of all threads together. The best of several repeats counts, as nothing makes a loop too fast.

#[cfg(target_arch = "x86_64")]
use pullback_kernels::simd::SimdLevel;
use pullback_kernels::simd::level;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;
use std::hint::black_box;
use std::time::Instant;

/// Numbers of an array, as in the benchmark's cases.
const NUMBERS: usize = 10_000_000;
const ARRAY_REPEATS: usize = 20;
/// Multiply-adds of each accumulator, which take some twenty milliseconds.
const STEPS: usize = 10_000_000;
const STEP_REPEATS: usize = 4;
/// Independent sums: enough to hide the latency of an addition, few enough for sixteen registers.
const SUMS: usize = 12;

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [threads, path] = words.as_slice() else {
        return Err("usage: limits THREADS FILE".to_owned());
    };
    let threads = threads.parse().ok().filter(|&count: &usize| count > 0);
    let threads = threads.ok_or("THREADS is a positive whole number")?;
    let rates = [
        ("f32", arithmetic(threads, single_steps)),
        ("f64", arithmetic(threads, double_steps)),
        ("triad", triad(threads)),
        ("scale", scale(threads)),
    ];
    let lines = rates.map(|(name, rate)| format!("  \"{name}\": {rate:.2}"));
    let text = format!("{{\n{}\n}}\n", lines.join(",\n"));
    print!("{text}");
    std::fs::write(path, text).map_err(|error| format!("cannot write {path}: {error}"))
}

/// 10^9 operations per second of all threads. `steps` returns how many operations it did.
fn arithmetic(threads: usize, steps: fn() -> usize) -> f64 {
    let once = || {
        let start = Instant::now();
        let operations: usize = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(steps)).collect();
            workers.into_iter().map(|worker| worker.join().unwrap_or(0)).sum()
        });
        operations as f64 / start.elapsed().as_secs_f64() * 1e-9
    };
    (0..STEP_REPEATS).map(|_| once()).fold(0.0, f64::max)
}

/// GB/s of `a = b + 3 c`: two arrays read, one written past the caches, as a result that nobody reads at once should be.
fn triad(threads: usize) -> f64 {
    let (b, c) = (vec![1.0_f32; NUMBERS], vec![2.0_f32; NUMBERS]);
    let mut a = vec![0.0_f32; NUMBERS];
    let share = share(threads);
    bandwidth(12, || {
        std::thread::scope(|scope| {
            let inputs = b.chunks(share).zip(c.chunks(share));
            for (a, (b, c)) in a.chunks_mut(share).zip(inputs) {
                scope.spawn(move || triad_of(a, b, c));
            }
        });
    })
}

/// GB/s of `a = x a`: one array read and written.
fn scale(threads: usize) -> f64 {
    let mut a = vec![1.0_f32; NUMBERS];
    let share = share(threads);
    bandwidth(8, || {
        let factor = black_box(1.0_f32);
        std::thread::scope(|scope| {
            for a in a.chunks_mut(share) {
                scope.spawn(move || a.iter_mut().for_each(|a| *a *= factor));
            }
        });
    })
}

/// The numbers of one thread: whole lines of the cache.
fn share(threads: usize) -> usize {
    NUMBERS.div_ceil(threads).next_multiple_of(16)
}

/// GB/s of a pass that moves so many bytes per number.
fn bandwidth(bytes: usize, mut pass: impl FnMut()) -> f64 {
    let mut once = || {
        let start = Instant::now();
        pass();
        (bytes * NUMBERS) as f64 / start.elapsed().as_secs_f64() * 1e-9
    };
    (0..ARRAY_REPEATS).map(|_| once()).fold(0.0, f64::max)
}

#[cfg(target_arch = "x86_64")]
fn triad_of(a: &mut [f32], b: &[f32], c: &[f32]) {
    let three = 3.0;
    // SAFETY: any bits are numbers, and a vector is four of them.
    let (head, body, tail) = unsafe { a.align_to_mut::<arch::__m128>() };
    let (first, last) = (head.len(), b.len() - tail.len());
    let chunks = b[first..last].chunks_exact(4).zip(c[first..last].chunks_exact(4));
    for (vector, (b, c)) in body.iter_mut().zip(chunks) {
        // SAFETY: both chunks have four numbers, and `vector` is one aligned vector of the result. Its instruction is one
        // that every x86-64 processor has.
        unsafe {
            let product =
                arch::_mm_mul_ps(arch::_mm_set1_ps(three), arch::_mm_loadu_ps(c.as_ptr()));
            let sum = arch::_mm_add_ps(arch::_mm_loadu_ps(b.as_ptr()), product);
            arch::_mm_stream_ps(std::ptr::from_mut(vector).cast(), sum);
        }
    }
    // SAFETY: every x86-64 processor has it; it orders the stores above before what follows.
    unsafe { arch::_mm_sfence() };
    for at in (0..first).chain(last..a.len()) {
        a[at] = b[at] + three * c[at];
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn triad_of(a: &mut [f32], b: &[f32], c: &[f32]) {
    for (a, (b, c)) in a.iter_mut().zip(b.iter().zip(c)) {
        *a = b + 3.0 * c;
    }
}

/// A loop of multiply-adds in the registers of one level; returns the number of operations.
#[cfg(target_arch = "x86_64")]
macro_rules! register_steps {
    ($name:ident, $features:literal, $of_number:path, $fused:path, $lanes:literal) => {
        #[target_feature(enable = $features)]
        fn $name() -> usize {
            let (factor, addend) = ($of_number(black_box(0.999)), $of_number(black_box(0.001)));
            let mut sums = [$of_number(black_box(1.0)); SUMS];
            for _ in 0..STEPS {
                for sum in &mut sums {
                    *sum = $fused(*sum, factor, addend);
                }
            }
            black_box(sums);
            2 * $lanes * SUMS * STEPS
        }
    };
}

#[cfg(target_arch = "x86_64")]
register_steps!(single_avx512, "avx512f", arch::_mm512_set1_ps, arch::_mm512_fmadd_ps, 16);
#[cfg(target_arch = "x86_64")]
register_steps!(double_avx512, "avx512f", arch::_mm512_set1_pd, arch::_mm512_fmadd_pd, 8);
#[cfg(target_arch = "x86_64")]
register_steps!(single_avx2, "avx2,fma", arch::_mm256_set1_ps, arch::_mm256_fmadd_ps, 8);
#[cfg(target_arch = "x86_64")]
register_steps!(double_avx2, "avx2,fma", arch::_mm256_set1_pd, arch::_mm256_fmadd_pd, 4);

/// The same in the registers of sixteen bytes that every machine has; the compiler makes the vectors.
macro_rules! array_steps {
    ($name:ident, $number:ty, $lanes:literal) => {
        fn $name() -> usize {
            let (factor, addend) = (black_box(0.999), black_box(0.001));
            let mut sums = [black_box(1.0 as $number); $lanes * SUMS];
            for _ in 0..STEPS {
                for sum in &mut sums {
                    // Without the instruction, fusing would be a call of a function.
                    *sum = if cfg!(target_arch = "x86_64") {
                        *sum * factor + addend
                    } else {
                        sum.mul_add(factor, addend)
                    };
                }
            }
            black_box(sums);
            2 * $lanes * SUMS * STEPS
        }
    };
}

array_steps!(single_baseline, f32, 4);
array_steps!(double_baseline, f64, 2);

fn single_steps() -> usize {
    match level() {
        // SAFETY: `level` returns only what the processor was found to have.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => unsafe { single_avx512() },
        // SAFETY: `level` returns only what the processor was found to have.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => unsafe { single_avx2() },
        _ => single_baseline(),
    }
}

fn double_steps() -> usize {
    match level() {
        // SAFETY: `level` returns only what the processor was found to have.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => unsafe { double_avx512() },
        // SAFETY: `level` returns only what the processor was found to have.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => unsafe { double_avx2() },
        _ => double_baseline(),
    }
}
