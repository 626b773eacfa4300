//! The vectorised functions of one number against the standard library: their error in units in the
//! last place over every exponent and around the kinks. What the kernels do with them is tested in
//! `elementwise`.

mod ulp;

use pullback_kernels::simd::{math_f32, math_f64, quick_f32};
use ulp::ulps32;

/// A small reproducible source of numbers.
fn numbers(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn ulps64(got: f64, want: f64) -> f64 {
    if got == want || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    if !got.is_finite() || !want.is_finite() {
        return f64::INFINITY;
    }
    (got.to_bits() as i64 - want.to_bits() as i64).unsigned_abs() as f64
}

#[test]
fn single_precision_functions_stay_within_their_error_bounds() {
    type Function = (&'static str, fn(f32) -> f32, fn(f64) -> f64, f32);
    let none = f32::INFINITY;
    let trig = math_f32::TRIG_LIMIT;
    let functions: [Function; 24] = [
        ("exp", math_f32::exp, f64::exp, none),
        ("exp2", math_f32::exp2, f64::exp2, none),
        ("expm1", math_f32::expm1, f64::exp_m1, none),
        ("log", math_f32::log, f64::ln, none),
        ("log2", math_f32::log2, f64::log2, none),
        ("log10", math_f32::log10, f64::log10, none),
        ("log1p", math_f32::log1p, f64::ln_1p, none),
        ("sin", math_f32::sin, f64::sin, trig),
        ("cos", math_f32::cos, f64::cos, trig),
        ("tan", math_f32::tan, f64::tan, trig),
        ("asin", math_f32::asin, f64::asin, none),
        ("acos", math_f32::acos, f64::acos, none),
        ("atan", math_f32::atan, f64::atan, none),
        ("sinh", math_f32::sinh, f64::sinh, none),
        ("cosh", math_f32::cosh, f64::cosh, none),
        ("tanh", math_f32::tanh, f64::tanh, none),
        ("quick tanh", quick_f32::tanh, f64::tanh, none),
        ("asinh", math_f32::asinh, f64::asinh, none),
        ("acosh", math_f32::acosh, f64::acosh, none),
        ("atanh", math_f32::atanh, f64::atanh, none),
        ("sigmoid", math_f32::sigmoid, |x| 1.0 / (1.0 + (-x).exp()), none),
        ("log1p_exp", math_f32::log1p_exp, |x| (-x.abs()).exp().ln_1p(), none),
        ("erf", math_f32::erf, math_f64::erf, none),
        ("erfc", math_f32::erfc, math_f64::erfc, none),
    ];
    for (name, function, exact, limit) in functions {
        let (mut worst, mut at) = (0.0, 0.0);
        // Every exponent, both signs, infinities and NaN; 15013 is prime.
        for bits in (0..=u32::MAX).step_by(15_013).chain([
            0,
            0x8000_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            1,
            0x8000_0001,
        ]) {
            let x = f32::from_bits(bits);
            if x.abs() > limit {
                continue;
            }
            let error = ulps32(function(x), exact(f64::from(x)));
            if error > worst {
                (worst, at) = (error, x);
            }
        }
        println!("{name}: {worst:.3} ulp at {at:e}");
        // std's inverse hyperbolic sine is itself less exact at tiny arguments than these bounds.
        assert!(worst <= 0.75, "{name}({at:e}) is off by {worst} units in the last place");
    }
    assert_eq!(math_f32::sin(-0.0).to_bits(), (-0.0f32).to_bits());
    assert_eq!(math_f32::tanh(-0.0).to_bits(), (-0.0f32).to_bits());
    assert_eq!(quick_f32::tanh(-0.0).to_bits(), (-0.0f32).to_bits());
    assert_eq!(math_f32::erf(-0.0).to_bits(), (-0.0f32).to_bits());
    assert_eq!(math_f32::expm1(-0.0).to_bits(), (-0.0f32).to_bits());
}

#[test]
fn functions_in_single_precision_stay_within_their_error_bounds_where_they_hold() {
    type Function = (&'static str, fn(f32) -> f32, fn(f64) -> f64, fn(f32) -> bool);
    let (exp, log) = (quick_f32::is_fast_exp_argument, quick_f32::is_fast_log_argument);
    let functions: [Function; 8] = [
        ("exp", quick_f32::exp, f64::exp, exp),
        ("exp2", quick_f32::exp2, f64::exp2, exp),
        ("sigmoid", quick_f32::sigmoid, |x| 1.0 / (1.0 + (-x).exp()), exp),
        ("log", quick_f32::log, f64::ln, log),
        ("log2", quick_f32::log2, f64::log2, log),
        ("log10", quick_f32::log10, f64::log10, log),
        ("sin", quick_f32::sin, f64::sin, |x| x.abs() <= 4096.0),
        ("cos", quick_f32::cos, f64::cos, |x| x.abs() <= 4096.0),
    ];
    for (name, function, exact, holds) in functions {
        let (mut worst, mut at) = (0.0, 0.0);
        for bits in (0..=u32::MAX).step_by(1_501) {
            let x = f32::from_bits(bits);
            if !holds(x) {
                continue;
            }
            let error = ulps32(function(x), exact(f64::from(x)));
            if error > worst {
                (worst, at) = (error, x);
            }
        }
        println!("{name}: {worst:.3} ulp at {at:e}");
        assert!(worst <= 0.75, "{name}({at:e}) is off by {worst} units in the last place");
    }
    assert!(
        ![f32::NAN, f32::INFINITY, 87.0, -87.0].into_iter().any(quick_f32::is_fast_exp_argument)
    );
    assert!([86.9, -86.9, 0.0, -0.0, 1e-45].into_iter().all(quick_f32::is_fast_exp_argument));
    let not_logs = [0.0, -0.0, -1.0, 1e-45, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    assert!(!not_logs.into_iter().any(log));
    assert!([f32::MIN_POSITIVE, 1.0, f32::MAX].into_iter().all(log));
    assert_eq!(quick_f32::log(1.0).to_bits(), 0.0_f32.to_bits());
    assert!((-126..128).all(|e| quick_f32::log2((e as f32).exp2()) == e as f32));
    assert_eq!(quick_f32::sin(-0.0).to_bits(), (-0.0_f32).to_bits());
    assert_eq!(quick_f32::sin(0.0).to_bits(), 0.0_f32.to_bits());
    assert!([4097.0, -1e9, f32::INFINITY].into_iter().all(quick_f32::is_large_angle));
}

#[test]
fn angles_near_whole_quarter_turns_keep_their_digits() {
    for n in -2600_i32..=2600 {
        let middle = (f64::from(n) * std::f64::consts::FRAC_PI_2) as f32;
        for x in [middle.next_down(), middle, middle.next_up()] {
            let errors = [
                ulps32(quick_f32::sin(x), f64::from(x).sin()),
                ulps32(quick_f32::cos(x), f64::from(x).cos()),
            ];
            assert!(errors.into_iter().all(|error| error <= 0.75), "{x:e}: {errors:?}");
        }
    }
}

#[test]
fn powers_of_doubles_are_those_of_the_library_within_a_unit() {
    let mut random = numbers(7);
    let look = |x: f64, y: f64| {
        let (got, want) = (math_f64::pow(x, y), x.powf(y));
        assert!(ulps64(got, want) <= 1.0, "{x:e}^{y:e} is {got:e}, not {want:e}");
        assert!(want.is_nan() || got.is_sign_negative() == want.is_sign_negative(), "{x:e}^{y:e}");
    };
    for _ in 0..200_000 {
        look(f64::from_bits(random()), f64::from_bits(random()));
        // Powers that are neither 0 nor infinite, some below the normal numbers.
        let unit = random() as f64 / u64::MAX as f64;
        let near = 1.0 + (random() as f64 / u64::MAX as f64 - 0.5) * 0.01;
        for x in [f64::from_bits(random() >> 1), near, 300.0 * near - 298.0] {
            if x > 0.0 {
                look(x, (2.0 * unit - 1.0) * 1080.0 / x.log2());
            }
        }
        look(-((random() % 2000) as f64) * 0.5, (random() % 60) as f64 - 20.0);
    }
    let edges = [
        0.0,
        -0.0,
        0.5,
        1.0,
        -1.0,
        2.0,
        -3.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        5e-324,
        -1e308,
        1.0 + f64::EPSILON,
        1.0 - 0.5 * f64::EPSILON,
        9_007_199_254_740_991.0,
        -9_007_199_254_740_991.0,
        9_007_199_254_740_993.0,
    ];
    for x in edges {
        for y in edges {
            look(x, y);
        }
    }
}

#[test]
fn powers_that_are_doubles_are_exact() {
    for base in 2_u64..2000 {
        let mut product = base;
        for power in 1.. {
            assert_eq!(
                math_f64::pow(base as f64, f64::from(power)),
                product as f64,
                "{base}^{power}"
            );
            assert_eq!(math_f64::pow(-(base as f64), f64::from(2 * power + 1)).signum(), -1.0);
            match product.checked_mul(base).filter(|&next| next < 1 << 53) {
                Some(next) => product = next,
                None => break,
            }
        }
    }
}

#[test]
fn powers_of_singles_stay_within_their_error_bound() {
    let mut random = numbers(5);
    let (mut worst, mut at) = (0.0, (0.0, 0.0));
    let mut look = |x: f32, y: f32| {
        let error = ulps32(math_f32::pow(x, y), f64::from(x).powf(f64::from(y)));
        if error > worst {
            (worst, at) = (error, (x, y));
        }
    };
    for _ in 0..300_000 {
        // Any number to any power, then powers that are neither 0 nor infinite, of numbers near 1 and of others.
        look(f32::from_bits(random() as u32), f32::from_bits(random() as u32));
        let unit = random() as f64 / u64::MAX as f64;
        let x = f32::from_bits(random() as u32 & 0x7fff_ffff);
        let near = (1.0 + (unit - 0.5) * 0.01) as f32;
        for x in [x, near] {
            let most = 150.0 / f64::from(x).log2();
            look(x, (most * (2.0 * unit - 1.0)) as f32);
        }
        look(-x, (random() % 9) as f32 - 4.0);
    }
    println!("pow: {worst:.3} ulp at {at:?}");
    assert!(worst <= 0.75, "pow{at:?} is off by {worst} units in the last place");
}

#[test]
fn functions_computed_in_single_precision_stay_within_their_error_bounds() {
    let gelu = |x: f64| 0.5 * x * math_f64::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
    let (mut worst_gelu, mut worst_half, mut worst_exp) = (0.0_f64, 0.0_f64, 0.0_f64);
    for bits in (0..=u32::MAX).step_by(1_501) {
        let x = f32::from_bits(bits);
        let wide = f64::from(x);
        // Infinity times zero has no value; the limit is 0.
        let exact = if x == f32::NEG_INFINITY { 0.0 } else { gelu(wide) };
        worst_gelu = worst_gelu.max(ulps32(math_f32::gelu(x), exact));
        let half = f64::from(math_f32::gelu_half(x));
        // Relative to what is no denormal number.
        if half != exact && !exact.is_nan() {
            worst_half = worst_half.max((half - exact).abs() / exact.abs().max(1e-37));
        }
        if (-87.0..=88.3).contains(&x) {
            worst_exp = worst_exp.max(ulps32(math_f32::exp_single(x), wide.exp()));
        }
    }
    println!("gelu: {worst_gelu:.3} ulp, exp_single: {worst_exp:.3} ulp");
    assert!(worst_gelu <= 8.0, "gelu is off by {worst_gelu} units in the last place");
    assert!(worst_half <= 0.5_f64.powi(15), "gelu_half is off by {worst_half:e}");
    assert!(worst_exp <= 1.0, "exp_single is off by {worst_exp} units in the last place");
    assert_eq!(math_f32::exp_single(f32::NEG_INFINITY), 0.0);
    assert_eq!(math_f32::exp_single(f32::INFINITY), f32::INFINITY);
    assert_eq!(math_f32::gelu(-0.0).to_bits(), (-0.0f32).to_bits());
    assert_eq!(math_f32::gelu(0.0).to_bits(), 0);
    assert_eq!(math_f32::gelu(f32::INFINITY), f32::INFINITY);
    assert_eq!(math_f32::gelu(f32::NEG_INFINITY), 0.0);
    assert_eq!(math_f64::gelu(f64::NEG_INFINITY), 0.0);
    assert!(math_f32::gelu(f32::NAN).is_nan() && math_f32::exp_single(f32::NAN).is_nan());
}

/// Kinks, bounds of the functions' domains, doubles of random bits and of usual sizes.
fn double_points() -> Vec<f64> {
    let mut random = numbers(23);
    let mut points: Vec<f64> = vec![
        0.0,
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        5e-324,
        -5e-324,
        1e-310,
        std::f64::consts::PI,
        std::f64::consts::FRAC_PI_2,
        709.78,
        709.79,
        -745.1,
        -745.2,
        710.4,
        -1.0,
        1.0,
    ];
    points.extend((0..100_000).map(|_| f64::from_bits(random())));
    points.extend((0..200_000).map(|_| {
        (random() as f64 / u64::MAX as f64 - 0.5) * 10f64.powi((random() % 8) as i32 - 3)
    }));
    points
}

#[test]
fn double_precision_functions_stay_within_their_error_bounds() {
    type Function = (&'static str, fn(f64) -> f64, fn(f64) -> f64, f64, f64);
    let none = f64::INFINITY;
    let trig = math_f64::TRIG_LIMIT;
    // The twins are the C library's, which are off by up to one unit themselves.
    let functions: [Function; 20] = [
        ("log2", math_f64::log2, f64::log2, none, 1.0),
        ("log10", math_f64::log10, f64::log10, none, 2.0),
        ("asin", math_f64::asin, f64::asin, none, 2.0),
        ("acos", math_f64::acos, f64::acos, none, 2.0),
        ("atan", math_f64::atan, f64::atan, none, 2.0),
        ("sin of any", math_f64::sin_of_any, f64::sin, none, 2.0),
        ("cos of any", math_f64::cos_of_any, f64::cos, none, 2.0),
        ("tan of any", math_f64::tan_of_any, f64::tan, none, 4.0),
        ("exp", math_f64::exp, f64::exp, none, 2.0),
        ("exp2", math_f64::exp2, f64::exp2, none, 2.0),
        ("expm1", math_f64::expm1, f64::exp_m1, none, 3.0),
        ("log", math_f64::log, f64::ln, none, 2.0),
        ("log1p", math_f64::log1p, f64::ln_1p, none, 3.0),
        ("sin", math_f64::sin, f64::sin, trig, 2.0),
        ("cos", math_f64::cos, f64::cos, trig, 2.0),
        ("tan", math_f64::tan, f64::tan, trig, 4.0),
        ("tanh", math_f64::tanh, f64::tanh, none, 4.0),
        ("sinh", math_f64::sinh, f64::sinh, none, 4.0),
        ("cosh", math_f64::cosh, f64::cosh, none, 4.0),
        ("sigmoid", math_f64::sigmoid, |x| 1.0 / (1.0 + (-x).exp()), none, 3.0),
    ];
    let points = double_points();
    for (name, function, exact, limit, bound) in functions {
        let (mut worst, mut at) = (0.0, 0.0);
        for &x in points.iter().filter(|x| x.is_nan() || x.abs() <= limit) {
            let error = ulps64(function(x), exact(x));
            if error > worst {
                (worst, at) = (error, x);
            }
        }
        println!("{name}: {worst} ulp at {at:e}");
        assert!(
            worst <= bound,
            "{name}({at:e}) is off by {worst} units: {:e} {:e}",
            function(at),
            exact(at)
        );
    }
}

#[test]
fn angles_and_lengths_of_points_stay_within_their_error_bounds() {
    let mut random = numbers(31);
    let edges = [0.0, 1.0, 0.5, 5e-324, 1e-310, 1e300, f64::MAX, f64::INFINITY, f64::NAN];
    let mut points: Vec<(f64, f64)> = Vec::new();
    for a in edges {
        for b in edges {
            points.extend([(a, b), (-a, b), (a, -b), (-a, -b)]);
        }
    }
    points.extend((0..200_000).map(|_| (f64::from_bits(random()), f64::from_bits(random()))));
    let mut near = || random() as f64 / u64::MAX as f64 - 0.5;
    points.extend((0..200_000).map(|_| (near(), near())));
    for (y, x) in points {
        let (angle, want) = (math_f64::atan2(y, x), y.atan2(x));
        assert!(ulps64(angle, want) <= 2.0, "atan2({y:e}, {x:e}) is {angle:e}, not {want:e}");
        assert!(
            want.is_nan() || angle.is_sign_negative() == want.is_sign_negative(),
            "{y:e} {x:e}"
        );
        let (length, want) = (math_f64::hypot(x, y), x.hypot(y));
        assert!(ulps64(length, want) <= 1.0, "hypot({x:e}, {y:e}) is {length:e}, not {want:e}");
    }
}

/// What `2/π` with a thousand digits gives, for the double nearest to a multiple of `π/2` and for large ones.
#[test]
fn sines_of_large_angles_are_right() {
    let table = [
        (6_381_956_970_095_103.0 * 2f64.powi(797), 1.0, -4.687_165_924_254_624e-19),
        (1e22, -0.852_200_849_767_188_8, 0.523_214_785_395_138_9),
        (f64::MAX, 0.004_961_954_789_184_062, -0.999_987_689_426_559_9),
    ];
    for (x, sine, cosine) in table {
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-14 * b.abs();
        assert!(close(math_f64::sin_of_any(x), sine), "sin {x:e}: {}", math_f64::sin_of_any(x));
        assert!(close(math_f64::cos_of_any(x), cosine), "cos {x:e}: {}", math_f64::cos_of_any(x));
        assert_eq!(math_f64::sin_of_any(-x), -math_f64::sin_of_any(x));
    }
    assert!(
        math_f64::sin_of_any(f64::INFINITY).is_nan() && math_f64::tan_of_any(f64::NAN).is_nan()
    );
}
