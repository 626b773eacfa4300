//! Times of transforms: the least of several, in milliseconds, by the number of threads that `OMP_NUM_THREADS` says.

use pullback_fft::{complex_to_complex, complex_to_real, real_to_complex};
use pullback_kernels::{C64, DType, StridedMut, StridedRef};
use std::time::Instant;

fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d];
    }
    strides
}

fn least(name: &str, mut work: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..30 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name:<28}{:9.3} ms", best * 1e3);
}

fn complex(shape: &[i64], dims: &[usize]) {
    let numel = shape.iter().product::<i64>() as usize;
    let source: Vec<C64> = (0..numel).map(|i| C64::new((i % 97) as f32, (i % 31) as f32)).collect();
    let mut target = vec![C64::default(); numel];
    let strides = row_major(shape);
    least(&format!("c2c {shape:?} {dims:?}"), || {
        // SAFETY: both lists hold as many numbers as the shape says.
        let (mut out, input) = unsafe {
            (
                StridedMut::new(target.as_mut_ptr().cast(), DType::C64, shape, &strides),
                StridedRef::new(source.as_ptr().cast(), DType::C64, shape, &strides),
            )
        };
        complex_to_complex(&mut out, input, dims, true, 1.0).expect("it is valid");
    });
}

fn real(shape: &[i64], dims: &[usize]) {
    let last = dims[dims.len() - 1];
    let mut half = shape.to_vec();
    half[last] = half[last] / 2 + 1;
    let numel = |shape: &[i64]| shape.iter().product::<i64>() as usize;
    let mut numbers: Vec<f32> = (0..numel(shape)).map(|i| (i % 97) as f32).collect();
    let mut spectrum = vec![C64::default(); numel(&half)];
    let (strides, half_strides) = (row_major(shape), row_major(&half));
    least(&format!("r2c {shape:?} {dims:?}"), || {
        // SAFETY: both lists hold as many numbers as their shapes say.
        let (mut out, input) = unsafe {
            (
                StridedMut::new(spectrum.as_mut_ptr().cast(), DType::C64, &half, &half_strides),
                StridedRef::new(numbers.as_ptr().cast(), DType::F32, shape, &strides),
            )
        };
        real_to_complex(&mut out, input, dims, 1.0).expect("it is valid");
    });
    least(&format!("c2r {shape:?} {dims:?}"), || {
        // SAFETY: as above.
        let (mut out, input) = unsafe {
            (
                StridedMut::new(numbers.as_mut_ptr().cast(), DType::F32, shape, &strides),
                StridedRef::new(spectrum.as_ptr().cast(), DType::C64, &half, &half_strides),
            )
        };
        complex_to_real(&mut out, input, dims, 1e-6).expect("it is valid");
    });
}

fn main() {
    complex(&[1 << 20], &[0]);
    complex(&[1 << 16], &[0]);
    complex(&[1 << 12], &[0]);
    complex(&[1_000_003], &[0]);
    complex(&[512, 512], &[0, 1]);
    complex(&[1024, 1024], &[0]);
    complex(&[1024, 1024], &[1]);
    complex(&[64, 64, 64], &[0, 1, 2]);
    real(&[1024, 1024], &[1]);
    real(&[1 << 20], &[0]);
    real(&[512, 512], &[0, 1]);
}
