//! Functions of complex numbers, large angles and special functions at values that are known.

use super::{Random, binary, close, unary};
use crate::ulp::ulps32;
use pullback_kernels::elementwise as ew;
use pullback_kernels::{Bool, C64, C128, DType, Element, Iter, Result, StridedMut, StridedRef};

#[test]
fn complex_functions_invert_each_other_and_respect_their_cuts() {
    let mut random = Random(17);
    let mut number = || (random.next() as f64 / u64::MAX as f64 - 0.5) * 6.0;
    let z: Vec<C128> = (0..500).map(|_| C128::new(number(), number())).collect();
    type Kernel = fn(&mut Iter) -> Result<()>;
    type Exact = fn(C128) -> C128;
    let twins: [(&str, Kernel, Exact); 11] = [
        ("exp", ew::exp, |z| z.exp()),
        ("log", ew::log, |z| z.ln()),
        ("sqrt", ew::sqrt, |z| z.sqrt()),
        ("sin", ew::sin, |z| z.sin()),
        ("cos", ew::cos, |z| z.cos()),
        ("tan", ew::tan, |z| z.tan()),
        ("sinh", ew::sinh, |z| z.sinh()),
        ("cosh", ew::cosh, |z| z.cosh()),
        ("tanh", ew::tanh, |z| z.tanh()),
        ("reciprocal", ew::reciprocal, |z| 1.0 / z),
        ("sigmoid", ew::sigmoid, |z| 1.0 / (1.0 + (-z).exp())),
    ];
    for (name, kernel, twin) in twins {
        for (got, z) in unary(&z, kernel).unwrap().iter().zip(&z) {
            assert!(close(*got, twin(*z), 1e-12), "{name}({z}) = {got}, expected {}", twin(*z));
        }
    }
    let inverses: [(&str, Kernel, Kernel); 7] = [
        ("asin", ew::asin, ew::sin),
        ("acos", ew::acos, ew::cos),
        ("atan", ew::atan, ew::tan),
        ("asinh", ew::asinh, ew::sinh),
        ("acosh", ew::acosh, ew::cosh),
        ("atanh", ew::atanh, ew::tanh),
        ("log1p", ew::log1p, ew::expm1),
    ];
    for (name, inverse, forward) in inverses {
        let back = unary(&unary(&z, inverse).unwrap(), forward).unwrap();
        for (got, z) in back.iter().zip(&z) {
            assert!(close(*got, *z, 1e-10), "{name}({z}) leads back to {got}");
        }
    }
    let on_cut = unary(&[C128::new(-1.0, 0.0), C128::new(-1.0, -0.0)], ew::sqrt).unwrap();
    assert_eq!(on_cut, [C128::new(0.0, 1.0), C128::new(0.0, -1.0)]);
    let big = unary(&[C128::new(800.0, 1.0), C128::new(-800.0, 1.0)], ew::tanh).unwrap();
    assert_eq!((big[0].re, big[1].re), (1.0, -1.0));
    let quotient = binary(
        &[C64::new(1e38, 1e38), C64::new(1.0, 1.0)],
        &[C64::new(1e38, 1e38), C64::new(0.0, 0.0)],
        ew::true_divide,
    )
    .unwrap();
    assert_eq!(quotient[0], C64::new(1.0, 0.0));
    assert!(quotient[1].re == f32::INFINITY && quotient[1].im == f32::INFINITY);
    let huge =
        binary(&[C128::new(1e300, 1e300)], &[C128::new(1e300, 1e300)], ew::true_divide).unwrap();
    assert!(close(huge[0], C128::new(1.0, 0.0), 1e-15));
}

#[test]
fn large_angles_are_right() {
    let x = [1e7f32, 3.4e38, -1e30, f32::INFINITY, 0.5];
    let got = unary(&x, ew::sin).unwrap();
    for (got, x) in got.iter().zip(x) {
        assert!(ulps32(*got, f64::from(x).sin()) < 1.0, "sin({x})");
    }
    let x = [1e10f64, 1e300, -1e22];
    assert_eq!(unary(&x, ew::cos).unwrap(), x.map(f64::cos));
}

#[test]
fn arguments_of_every_size_stand_side_by_side() {
    let angles = [0.5f32, 4097.0, -9e5, 1e7, -0.0, f32::INFINITY, f32::NAN, -3.0, 4096.0, -2e6];
    let numbers = [2.0f32, 0.0, -1.0, 1e-45, f32::INFINITY, f32::NAN, f32::MAX, -0.0, 1.0, 1e-38];
    // Short enough for the caches, and long enough to be read ahead.
    for n in [1000, 70_000] {
        let check = |x: &[f32; 10], got: Vec<f32>, exact: fn(f64) -> f64| {
            for (i, got) in got.into_iter().enumerate() {
                let x = x[i % 10];
                assert!(ulps32(got, exact(f64::from(x))) <= 0.75, "{x:e} gives {got:e}");
            }
        };
        let repeated = |x: &[f32; 10]| -> Vec<f32> { x.iter().copied().cycle().take(n).collect() };
        check(&angles, unary(&repeated(&angles), ew::sin).unwrap(), f64::sin);
        check(&angles, unary(&repeated(&angles), ew::cos).unwrap(), f64::cos);
        check(&numbers, unary(&repeated(&numbers), ew::log).unwrap(), f64::ln);
        check(&numbers, unary(&repeated(&numbers), ew::log2).unwrap(), f64::log2);
        check(&numbers, unary(&repeated(&numbers), ew::log10).unwrap(), f64::log10);
    }
}

#[test]
fn special_functions_have_their_known_values() {
    let inf = f64::INFINITY;
    let digamma = unary(&[0.0, -0.0, -1.0, -1.5, 1.0, inf, -inf], ew::digamma).unwrap();
    assert!(
        digamma[0] == -inf
            && digamma[1] == inf
            && digamma[2].is_nan()
            && digamma[5] == inf
            && digamma[6].is_nan()
    );
    assert!((digamma[3] - 0.703_156_640_645_243_2).abs() < 1e-14);
    assert!((digamma[4] + 0.577_215_664_901_532_9).abs() < 1e-15);
    let lgamma = unary(&[0.0, -1.0, -1.5, 1.0, 10.0, inf, -inf], ew::lgamma).unwrap();
    assert!(
        lgamma[0] == inf
            && lgamma[1] == inf
            && lgamma[3] == 0.0
            && lgamma[5] == inf
            && lgamma[6] == inf
    );
    assert!(
        (lgamma[4] - 362_880f64.ln()).abs() < 1e-13
            && (lgamma[2] - 0.860_047_015_376_481).abs() < 1e-14
    );
}

#[test]
fn closeness_of_integers_goes_by_their_true_difference() {
    fn close<T: Element>(a: &[T], b: &[T], rtol: f64, atol: f64) -> Vec<bool> {
        let mut out = vec![Bool::default(); a.len()];
        let shape = [a.len() as i64];
        // SAFETY: dense live memory.
        unsafe {
            let views = [a, b].map(|v| StridedRef::new(v.as_ptr().cast(), T::DTYPE, &shape, &[1]));
            let to = StridedMut::new(out.as_mut_ptr().cast(), DType::Bool, &shape, &[1]);
            ew::isclose(&mut Iter::new(&[to], &views).unwrap(), rtol, atol, false).unwrap();
        }
        out.iter().map(|flag| flag.get()).collect()
    }
    // Differences that the type has no room for.
    assert_eq!(close(&[0u8, 1, 0, 255], &[1, 0, 255, 0], 0.0, 1.0), [true, true, false, false]);
    assert_eq!(close(&[i8::MAX, i8::MIN], &[i8::MIN, i8::MAX], 2.0, 0.0), [true, false]);
    assert_eq!(close(&[i64::MIN, i64::MAX], &[i64::MAX, i64::MAX - 1], 0.0, 1.0), [false, true]);
    assert_eq!(close(&[u64::MAX, 0], &[0, u64::MAX], 1.0, 0.0), [false, true]);
    let (no, yes) = (Bool::new(false), Bool::new(true));
    assert_eq!(close(&[no, yes, yes], &[yes, no, yes], 0.0, 1.0), [true, true, true]);
    assert_eq!(close(&[no, yes, yes], &[yes, no, yes], 2.0, 0.0), [true, false, true]);
}
