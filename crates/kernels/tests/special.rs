//! Functions that are computed in registers, several numbers side by side: what a number becomes depends neither on the
//! instructions that the machine has nor on the numbers beside it. How exact the functions are is tested in `accuracy`, in
//! `src/special/tests.rs` and in `python/tests/test_special_values.py`.

mod tensor;

use pullback_kernels::elementwise as ew;
use pullback_kernels::simd::{SimdLevel, set_level};
use pullback_kernels::{DType, Iter, Result};
use tensor::Tensor;

type Kernel = fn(&mut Iter) -> Result<()>;

/// The results of a kernel for numbers that follow one another.
fn results(kernel: Kernel, dtype: DType, inputs: &[&[f64]]) -> Vec<String> {
    let shape = [inputs[0].len() as i64];
    let mut out = Tensor::full(dtype, &shape, 0.0);
    let inputs: Vec<_> = inputs.iter().map(|values| Tensor::from(dtype, &shape, values)).collect();
    let views: Vec<_> = inputs.iter().map(Tensor::view).collect();
    kernel(&mut Iter::new(&[out.view_mut()], &views).unwrap()).unwrap();
    out.values().iter().map(|value| format!("{:?}", value.re)).collect()
}

/// Numbers around 2, of both signs, large ones, limits.
fn numbers(n: usize, step: usize) -> Vec<f64> {
    let edges = [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 89.5, -101.0, 1e30];
    let number = |i: usize| match i * step % 41 {
        index @ 0..9 => edges[index],
        9 => 3.0,
        _ => (i * step % 257) as f64 * 0.0625 - 4.0,
    };
    (0..n).map(number).collect()
}

fn check(label: &str, kernel: Kernel, dtype: DType, inputs: &[&[f64]]) {
    let whole = results(kernel, dtype, inputs);
    for level in SimdLevel::ALL {
        set_level(level);
        assert_eq!(results(kernel, dtype, inputs), whole, "{label} {dtype:?} {level:?}");
        for (first, n) in [(0, 1), (3, 10), (17, 16), (250, 33)] {
            let parts: Vec<_> = inputs.iter().map(|values| &values[first..first + n]).collect();
            let part = results(kernel, dtype, &parts);
            assert_eq!(part, whole[first..first + n], "{label} {dtype:?} {level:?} {first} {n}");
        }
    }
    set_level(SimdLevel::Avx512);
}

#[test]
fn functions_of_one_number_depend_neither_on_the_level_nor_on_neighbours() {
    let kernels: [(&str, Kernel); 28] = [
        ("erf", ew::erf),
        ("erfc", ew::erfc),
        ("lgamma", ew::lgamma),
        ("digamma", ew::digamma),
        ("log2", ew::log2),
        ("log10", ew::log10),
        ("sin", ew::sin),
        ("cos", ew::cos),
        ("tan", ew::tan),
        ("asin", ew::asin),
        ("acos", ew::acos),
        ("atan", ew::atan),
        ("airy_ai", ew::airy_ai),
        ("exp", ew::exp),
        ("exp2", ew::exp2),
        ("sigmoid", ew::sigmoid),
        ("i0", ew::i0),
        ("i0e", ew::i0e),
        ("i1", ew::i1),
        ("i1e", ew::i1e),
        ("modified_bessel_i1", ew::modified_bessel_i1),
        ("bessel_j0", ew::bessel_j0),
        ("bessel_j1", ew::bessel_j1),
        ("bessel_y0", ew::bessel_y0),
        ("bessel_y1", ew::bessel_y1),
        ("erfcx", ew::erfcx),
        ("log_ndtr", ew::log_ndtr),
        ("ndtr", ew::ndtr),
    ];
    // (Where usual numbers stand beside others, and where they do not.)
    let usual: Vec<f64> = numbers(700, 5).iter().map(|x| x.clamp(-80.0, 80.0)).collect();
    for (label, kernel) in kernels {
        for dtype in [DType::F32, DType::F64] {
            check(label, kernel, dtype, &[&numbers(700, 5)]);
            check(label, kernel, dtype, &[&usual]);
        }
    }
}

#[test]
fn functions_of_two_numbers_depend_neither_on_the_level_nor_on_neighbours() {
    let kernels: [(&str, Kernel); 11] = [
        ("pow", ew::pow),
        ("atan2", ew::atan2),
        ("hypot", ew::hypot),
        ("zeta", ew::zeta),
        ("igamma", ew::igamma),
        ("igammac", ew::igammac),
        ("chebyshev_polynomial_t", ew::chebyshev_polynomial_t),
        ("shifted_chebyshev_polynomial_w", ew::shifted_chebyshev_polynomial_w),
        ("hermite_polynomial_h", ew::hermite_polynomial_h),
        ("laguerre_polynomial_l", ew::laguerre_polynomial_l),
        ("legendre_polynomial_p", ew::legendre_polynomial_p),
    ];
    let order = vec![3.0; 700];
    for (label, kernel) in kernels {
        let is_polynomial = label.contains("polynomial");
        for dtype in [DType::F32, DType::F64] {
            check(label, kernel, dtype, &[&numbers(700, 5), &order]);
            if is_polynomial {
                // (Orders as large as some of the numbers are would take long.)
                let orders: Vec<f64> = (0..700).map(|i| f64::from(i / 40 % 9) - 1.0).collect();
                check(label, kernel, dtype, &[&numbers(700, 5), &orders]);
            } else {
                check(label, kernel, dtype, &[&numbers(700, 5), &numbers(700, 3)]);
                let small: Vec<f64> = numbers(700, 7).iter().map(|x| x.abs().min(9.0)).collect();
                check(label, kernel, dtype, &[&small, &numbers(700, 3)]);
            }
        }
    }
}
