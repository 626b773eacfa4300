//! Transforms against the sum that defines them, for many lengths, strides and dimensions.

use num_complex::Complex;
use pullback_fft::{complex_to_complex, complex_to_real, real_to_complex};
use pullback_kernels::plan::watched;
use pullback_kernels::simd::{self, SimdLevel};
use pullback_kernels::{C64, C128, DType, Element, ErrorKind, StridedMut, StridedRef, parallel};

/// An array of a test, in memory of its own.
struct Array<T> {
    memory: Vec<T>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d];
    }
    strides
}

/// Strides of an array whose dimensions lie in this order, the last one innermost.
fn ordered(shape: &[i64], order: &[usize]) -> Vec<i64> {
    let (mut strides, mut reach) = (vec![0; shape.len()], 1);
    for &d in order.iter().rev() {
        strides[d] = reach;
        reach *= shape[d];
    }
    strides
}

impl<T: Element + Default> Array<T> {
    fn new(shape: &[i64], strides: &[i64]) -> Self {
        let reach: i64 = shape.iter().zip(strides).map(|(&s, &t)| (s - 1).max(0) * t).sum();
        let memory = vec![T::default(); reach as usize + 1];
        Array { memory, shape: shape.to_vec(), strides: strides.to_vec() }
    }
    fn offsets(&self) -> Vec<usize> {
        let numel = self.shape.iter().product::<i64>();
        let offset = |mut at: i64| {
            let mut offset = 0;
            for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
                offset += at % size * stride;
                at /= size;
            }
            offset as usize
        };
        (0..numel).map(offset).collect()
    }
    fn values(&self) -> Vec<T> {
        self.offsets().into_iter().map(|at| self.memory[at]).collect()
    }
    fn filled(shape: &[i64], strides: &[i64], make: impl Fn(usize) -> T) -> Self {
        let mut array = Self::new(shape, strides);
        for (nr, at) in array.offsets().into_iter().enumerate() {
            array.memory[at] = make(nr);
        }
        array
    }
    fn view(&self) -> StridedRef<'_> {
        let ptr = self.memory.as_ptr().cast();
        // SAFETY: the memory holds what shape and strides reach.
        unsafe { StridedRef::new(ptr, T::DTYPE, &self.shape, &self.strides) }
    }
    fn view_mut(&mut self) -> StridedMut<'_> {
        let ptr = self.memory.as_mut_ptr().cast();
        // SAFETY: as above, borrowed exclusively.
        unsafe { StridedMut::new(ptr, T::DTYPE, &self.shape, &self.strides) }
    }
}

/// Numbers between -1 and 1, the same for the same `nr`.
fn number(nr: usize) -> f64 {
    let mut z = (nr as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((z ^ (z >> 27)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// The sum itself, along one dimension of a row-major array.
fn naive(values: &[C128], shape: &[i64], dim: usize, forward: bool) -> Vec<C128> {
    let n = shape[dim] as usize;
    let inner: usize = shape[dim + 1..].iter().product::<i64>() as usize;
    let step = if forward { -std::f64::consts::TAU } else { std::f64::consts::TAU };
    let roots: Vec<C128> = (0..n).map(|j| C128::cis(step * j as f64 / n as f64)).collect();
    let mut out = vec![C128::default(); values.len()];
    for (at, value) in out.iter_mut().enumerate() {
        let (k, line) = (at / inner % n, at - at / inner % n * inner);
        *value = (0..n).map(|j| values[line + j * inner] * roots[j * k % n]).sum();
    }
    out
}

fn naive_all(values: &[C128], shape: &[i64], dims: &[usize], forward: bool) -> Vec<C128> {
    dims.iter().fold(values.to_vec(), |v, &dim| naive(&v, shape, dim, forward))
}

fn check(got: &[C128], want: &[C128], tolerance: f64, what: &str) {
    let size = want.iter().map(|w| w.norm()).fold(1.0, f64::max);
    for (nr, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).norm() <= tolerance * size, "{what}, {nr}: {g} for {w}");
    }
    assert_eq!(got.len(), want.len(), "{what}");
}

/// Complex, real and back, in both precisions, of one shape and order.
fn check_shape(shape: &[i64], order: &[usize], dims: &[usize]) {
    let what = format!("{shape:?} {order:?} {dims:?}");
    let strides = ordered(shape, order);
    let source = Array::filled(shape, &strides, |nr| C128::new(number(2 * nr), number(2 * nr + 1)));
    let single = Array::filled(shape, &strides, |nr| {
        C64::new(number(2 * nr) as f32, number(2 * nr + 1) as f32)
    });
    for forward in [true, false] {
        let want = naive_all(&source.values(), shape, dims, forward);
        let half: Vec<C128> = want.iter().map(|w| w * 0.5).collect();
        for target in [row_major(shape), strides.clone()] {
            let mut out = Array::<C128>::new(shape, &target);
            complex_to_complex(&mut out.view_mut(), source.view(), dims, forward, 0.5).unwrap();
            check(&out.values(), &half, 1e-13, &what);
            let mut out = Array::<C64>::new(shape, &target);
            complex_to_complex(&mut out.view_mut(), single.view(), dims, forward, 1.0).unwrap();
            let got: Vec<C128> =
                out.values().iter().map(|c| C128::new(c.re.into(), c.im.into())).collect();
            check(&got, &want, 1e-5, &what);
        }
    }
    check_real(shape, &strides, dims, &what);
}

fn check_real(shape: &[i64], strides: &[i64], dims: &[usize], what: &str) {
    let last = dims[dims.len() - 1];
    let source = Array::filled(shape, strides, number);
    let numbers: Vec<C128> = source.values().iter().map(|&x| C128::new(x, 0.0)).collect();
    let want = naive_all(&numbers, shape, dims, true);
    let mut whole = Array::<C128>::new(shape, &row_major(shape));
    real_to_complex(&mut whole.view_mut(), source.view(), dims, 1.0).unwrap();
    if shape[last] > 2 {
        check(&whole.values(), &want, 1e-13, what);
    }
    let mut halved = shape.to_vec();
    halved[last] = shape[last] / 2 + 1;
    let inner: i64 = shape[last + 1..].iter().product();
    let is_first = |at: usize| at as i64 / inner % shape[last] < halved[last];
    let first: Vec<C128> = (0..want.len()).filter(|&at| is_first(at)).map(|at| want[at]).collect();
    let mut half =
        Array::<C128>::new(&halved, &ordered(&halved, &(0..shape.len()).rev().collect::<Vec<_>>()));
    real_to_complex(&mut half.view_mut(), source.view(), dims, 2.0).unwrap();
    let twice: Vec<C128> = first.iter().map(|w| w * 2.0).collect();
    check(&half.values(), &twice, 1e-13, what);
    let numel: i64 = dims.iter().map(|&d| shape[d]).product();
    let mut back = Array::<f64>::new(shape, strides);
    complex_to_real(&mut back.view_mut(), half.view(), dims, 0.5 / numel as f64).unwrap();
    let got: Vec<C128> = back.values().iter().map(|&x| C128::new(x, 0.0)).collect();
    check(&got, &numbers, 1e-13, what);
    let narrow = Array::filled(shape, strides, |nr| number(nr) as f32);
    let mut half = Array::<C64>::new(&halved, &row_major(&halved));
    real_to_complex(&mut half.view_mut(), narrow.view(), dims, 1.0).unwrap();
    let mut back = Array::<f32>::new(shape, strides);
    complex_to_real(&mut back.view_mut(), half.view(), dims, 1.0 / numel as f64).unwrap();
    let got: Vec<C128> = back.values().iter().map(|&x| C128::new(x.into(), 0.0)).collect();
    check(&got, &numbers, 1e-5, what);
}

#[test]
fn every_length_gives_the_sum() {
    for n in (1..70).chain([97, 100, 101, 127, 128, 211, 243, 256, 257, 343, 499, 512, 1009]) {
        check_shape(&[n], &[0], &[0]);
        if n < 40 {
            check_shape(&[2, n], &[1, 0], &[1]);
            check_shape(&[n, 3], &[0, 1], &[0]);
        }
    }
}

#[test]
fn several_dimensions_in_any_order_and_layout() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
        for dims in [&[0][..], &[1], &[2], &[0, 1], &[2, 0], &[1, 2], &[2, 1, 0], &[0, 1, 2]] {
            check_shape(&[4, 3, 5], &order, dims);
            check_shape(&[1, 6, 2], &order, dims);
        }
    }
    check_shape(&[2, 3, 2, 4, 3], &[4, 0, 3, 1, 2], &[3, 0, 4, 1]);
    // More lines than a tile has.
    check_shape(&[37, 41], &[0, 1], &[0]);
    check_shape(&[64, 67], &[0, 1], &[0, 1]);
}

#[test]
fn many_lines_of_powers_of_two_give_the_sum() {
    for n in [8, 16, 32, 64, 128, 256, 512] {
        for lines in [8, 16, 24, 37] {
            check_shape(&[lines, n], &[0, 1], &[1]);
            check_shape(&[lines, n], &[1, 0], &[1]);
            check_shape(&[n, lines], &[0, 1], &[0]);
        }
    }
    check_shape(&[16, 1024], &[0, 1], &[1]);
    check_shape(&[1024, 19], &[0, 1], &[0]);
    // Neighbours that are not adjacent, and dimensions that are transformed in place.
    check_shape(&[32, 16, 3], &[0, 1, 2], &[0]);
    check_shape(&[32, 3, 16], &[0, 2, 1], &[2, 0]);
    check_shape(&[64, 32], &[0, 1], &[0, 1]);
    check_shape(&[64, 32], &[1, 0], &[1, 0]);
}

#[test]
fn long_lines_are_those_of_an_impulse_and_of_a_wave() {
    // Lengths that are split, and one that is not; the sum itself would take too long.
    for n in [1_i64 << 16, 1 << 17, 3 * 5 * 7 * 11 * 13 * 8, 100_003] {
        for (shape, dim) in [([n, 1], 0), ([2, n], 1)] {
            let (at, size) = (12_345, n as f64);
            let inner = if dim == 0 { 1 } else { n };
            let source = Array::filled(&shape, &row_major(&shape), |nr| {
                let (j, line) = (nr as i64 % inner.max(n), nr as i64 / n);
                C128::new(f64::from(u8::from(j == at)), 0.0) * (line + 1) as f64
            });
            let mut out = Array::<C128>::new(&shape, &row_major(&shape));
            complex_to_complex(&mut out.view_mut(), source.view(), &[dim], true, 1.0).unwrap();
            let wave = |k: i64| {
                C128::cis(
                    -std::f64::consts::TAU * ((at as i128 * k as i128) % n as i128) as f64 / size,
                )
            };
            let want: Vec<C128> =
                (0..shape[0] * shape[1]).map(|nr| wave(nr % n) * (nr / n + 1) as f64).collect();
            check(&out.values(), &want, 1e-13, &format!("{shape:?}"));
            let mut back = Array::<C128>::new(&shape, &row_major(&shape));
            complex_to_complex(&mut back.view_mut(), out.view(), &[dim], false, 1.0 / size)
                .unwrap();
            check(&back.values(), &source.values(), 1e-13, &format!("{shape:?} back"));
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let of_threads = |threads: usize| {
        parallel::set_num_threads(threads);
        let shape = [128, 300];
        let source = Array::filled(&shape, &row_major(&shape), |nr| {
            C64::new(number(nr) as f32, number(nr + 7) as f32)
        });
        let mut out = Array::<C64>::new(&shape, &row_major(&shape));
        complex_to_complex(&mut out.view_mut(), source.view(), &[0, 1], true, 1.0).unwrap();
        let long = Array::filled(&[1 << 17], &[1], |nr| C64::new(number(nr) as f32, 0.0));
        let mut spectrum = Array::<C64>::new(&[1 << 17], &[1]);
        complex_to_complex(&mut spectrum.view_mut(), long.view(), &[0], true, 1.0).unwrap();
        out.values()
            .into_iter()
            .chain(spectrum.values())
            .map(|c| (c.re.to_bits(), c.im.to_bits()))
            .collect::<Vec<_>>()
    };
    let one = of_threads(1);
    assert!(one == of_threads(2) && one == of_threads(5));
    parallel::set_num_threads(2);
}

#[test]
fn a_line_gives_the_same_bits_wherever_it_lies() {
    let make = |nr: usize| C64::new(number(nr) as f32, number(nr + 1) as f32);
    let n = 60_usize;
    let line = Array::filled(&[n as i64], &[1], make);
    let mut alone = Array::<C64>::new(&[n as i64], &[1]);
    complex_to_complex(&mut alone.view_mut(), line.view(), &[0], true, 1.0).unwrap();
    let columns = Array::filled(&[n as i64, 21], &[21, 1], |nr| make(nr / 21));
    let mut out = Array::<C64>::new(&[n as i64, 21], &[21, 1]);
    complex_to_complex(&mut out.view_mut(), columns.view(), &[0], true, 1.0).unwrap();
    for (nr, value) in out.values().iter().enumerate() {
        assert_eq!(*value, alone.values()[nr / 21]);
    }
}

#[test]
fn imaginary_parts_that_real_spectra_lack_are_not_looked_at() {
    for n in [6_i64, 7] {
        let half = n / 2 + 1;
        let spectrum = |edge: f64| {
            Array::filled(&[half], &[1], |nr| {
                let is_edge = nr == 0 || n % 2 == 0 && nr as i64 == half - 1;
                Complex::new(number(nr), if is_edge { edge } else { number(nr + 9) })
            })
        };
        let to_real = |edge: f64| {
            let mut out = Array::<f64>::new(&[n], &[1]);
            complex_to_real(&mut out.view_mut(), spectrum(edge).view(), &[0], 1.0).unwrap();
            out.values()
        };
        assert_eq!(to_real(0.0), to_real(f64::NAN));
    }
}

#[test]
fn every_pass_announces_how_it_is_computed() {
    let plans = |shape: &[i64], dims: &[usize]| -> Vec<(&str, String)> {
        let source = Array::filled(shape, &row_major(shape), |nr| C128::new(number(nr), 0.0));
        let mut out = Array::<C128>::new(shape, &row_major(shape));
        let run = || complex_to_complex(&mut out.view_mut(), source.view(), dims, true, 1.0);
        let (done, list) = watched(run);
        done.unwrap();
        list.into_iter().map(|announced| (announced.computation, announced.plan)).collect()
    };
    let complex = "Fourier transform of complex numbers";
    let of = |list: &[&str]| list.iter().map(|&plan| (complex, plan.into())).collect::<Vec<_>>();
    assert_eq!(plans(&[3, 32], &[0, 1]), of(&["Joined", "Tiled"]));
    let has_lanes = cfg!(target_arch = "x86_64") && simd::level() >= SimdLevel::Avx2;
    // (A plan is listed once while it stays the same.)
    let expected: &[&str] = if has_lanes { &["Lanes"] } else { &["Joined", "Tiled"] };
    assert_eq!(plans(&[8, 32], &[0, 1]), of(expected));
    assert_eq!(plans(&[1, 1 << 16], &[1]), of(&["FourStep"]));
    let real = Array::filled(&[3, 32], &[32, 1], number);
    let mut half = Array::<C128>::new(&[3, 17], &[17, 1]);
    let mut back = Array::<f64>::new(&[3, 32], &[32, 1]);
    let (done, list) = watched(|| {
        real_to_complex(&mut half.view_mut(), real.view(), &[1], 1.0)?;
        complex_to_real(&mut back.view_mut(), half.view(), &[1], 1.0)
    });
    done.unwrap();
    let computations: Vec<&str> = list.iter().map(|announced| announced.computation).collect();
    let wanted = ["Fourier transform of real numbers", "Fourier transform to real numbers"];
    assert_eq!(computations, wanted);
    assert!(list.iter().all(|announced| announced.plan == "Tiled"));
}

#[test]
fn arrays_without_lines_and_wrong_ones() {
    let source = Array::<C64>::new(&[0, 4], &[4, 1]);
    let mut out = Array::<C64>::new(&[0, 4], &[4, 1]);
    complex_to_complex(&mut out.view_mut(), source.view(), &[1], true, 1.0).unwrap();
    let mut wrong = Array::<C64>::new(&[3, 4], &[4, 1]);
    let refused = complex_to_complex(&mut wrong.view_mut(), source.view(), &[1], true, 1.0);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Runtime);
    let numbers = Array::<i64>::new(&[4], &[1]);
    let mut out = Array::<C64>::new(&[3], &[1]);
    let refused = real_to_complex(&mut out.view_mut(), numbers.view(), &[0], 1.0);
    let error = refused.unwrap_err();
    assert!(error.message().contains(DType::I64.scalar_name().pytorch()), "{error}");
    let refused = real_to_complex(&mut out.view_mut(), numbers.view(), &[], 1.0);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Runtime);
}
