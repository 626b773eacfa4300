//! Identities that tie the functions to one another and to those of the standard library; `python/tests/test_special_values.py`
//! compares them with numbers of many digits.

use super::polynomial::PolynomialSequence;
use super::{
    airy, bessel, elementary, gamma, incomplete, modified, normal, polynomial, single,
    single_gamma, zeta,
};

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * b.abs().max(1e-300), "{a:e} {b:e}");
}

/// Numbers from `low` to `high` at equal ratios.
fn steps(low: f64, high: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(low), move |x| Some(x * 1.0371).filter(|&x| x < high))
}

#[test]
fn wronskians_of_bessel_functions_are_known() {
    for x in steps(1e-3, 1e8) {
        // DLMF 10.5.2 and 10.28.2.
        let swing = bessel::j1(x) * bessel::y0(x) - bessel::j0(x) * bessel::y1(x);
        close(swing, 2.0 / (std::f64::consts::PI * x), 1e-14);
        let (i0, i1) = (modified::i0e(x), modified::i1e(x));
        close(i0 * modified::k1e(x) + i1 * modified::k0e(x), 1.0 / x, 1e-14);
    }
}

#[test]
fn quantiles_are_the_inverse_of_the_distribution() {
    for p in steps(1e-300, 0.5) {
        close(normal::ndtr(normal::ndtri(p)), p, 2e-12);
        close(normal::log_ndtr(normal::ndtri(p)), p.ln(), 1e-15 * 20.0);
    }
    for p in steps(1e-3, 0.5) {
        let scaled = normal::erfinv(1.0 - 2.0 * p) / std::f64::consts::FRAC_1_SQRT_2;
        close(scaled, -normal::ndtri(p), 1e-12);
    }
}

#[test]
fn pieces_meet_at_their_ends() {
    type Function = fn(f64) -> f64;
    let points: [(Function, &[f64]); 6] = [
        (bessel::j0, &[1.0, 8.0, 16.0]),
        (bessel::y1, &[1.0, 1.5, 8.0]),
        (modified::k0, &[1.0, 2.0, 8.0]),
        (airy::ai, &[-8.0, 0.0, 2.0]),
        (normal::erfcx, &[0.25, 2.0, 4.0]),
        (gamma::digamma, &[1.0, 1.25, 2.0, 10.0]),
    ];
    for (function, ends) in points {
        for &end in ends {
            let (before, at) = (function(end.next_down()), function(end));
            assert!((before - at).abs() <= 4e-15 * at.abs().max(1.0), "{end} {before:e} {at:e}");
        }
    }
}

#[test]
fn incomplete_gamma_functions_of_whole_orders_are_sums() {
    for x in steps(1e-5, 700.0) {
        close(incomplete::igamma(1.0, x, incomplete::TINY), -(-x).exp_m1(), 1e-14);
        close(incomplete::igammac(1.0, x, incomplete::TINY), (-x).exp(), 1e-12);
        let sum = 1.0 + x + x * x / 2.0;
        close(incomplete::igammac(3.0, x, incomplete::TINY), sum * (-x).exp(), 1e-12);
    }
    // Temme's expansion, the series and the fraction meet where one takes over from another.
    for a in [32.0, 100.0, 1e4] {
        for x in [0.6 * a, 1.4 * a] {
            let (below, above) = (f64::next_down(x), f64::next_up(x));
            close(
                incomplete::igamma(a, below, incomplete::TINY),
                incomplete::igamma(a, above, incomplete::TINY),
                1e-11,
            );
            close(
                incomplete::igammac(a, below, incomplete::TINY),
                incomplete::igammac(a, above, incomplete::TINY),
                1e-11,
            );
        }
    }
}

#[test]
fn zeta_and_its_relatives_meet_known_values() {
    let pi = std::f64::consts::PI;
    close(zeta::zeta(2.0, 1.0), pi * pi / 6.0, 1e-15);
    close(zeta::zeta(4.0, 1.0), pi.powi(4) / 90.0, 1e-15);
    close(zeta::zeta(2.0, -0.5), pi * pi / 2.0 + 4.0, 1e-15);
    close(zeta::polygamma(1.0, -0.5), pi * pi / 2.0 + 4.0, 1e-15);
    close(zeta::polygamma(2.0, 1.0), -2.0 * 1.202_056_903_159_594_2, 1e-15);
    close(zeta::polygamma(3.0, 0.5), pi.powi(4), 1e-15);
    // DLMF 25.11.3, below zero too.
    for q in [0.3, 2.7, 40.0, -1.3, -1e6 - 0.25] {
        close(
            zeta::zeta(3.0, q) - zeta::zeta(3.0, q + 1.0),
            q.powi(-3),
            1e-12 * (q.abs().powi(3) + 1.0),
        );
    }
    // Beyond the range of its factors: the first term is all.
    close(zeta::polygamma(180.0, 20.0).abs().ln(), 757.0 - 181.0 * 20f64.ln(), 0.05);
}

#[test]
fn no_argument_takes_long_or_panics() {
    let numbers =
        [0.0, -0.0, 5e-324, 1e-300, 0.5, 1.0, 3.7, 1e5, 1e18, 1e300, f64::INFINITY, f64::NAN];
    for a in numbers.iter().flat_map(|&x| [x, -x]) {
        for b in numbers.iter().flat_map(|&x| [x, -x]) {
            std::hint::black_box((
                zeta::zeta(a, b),
                incomplete::igamma(a, b, incomplete::TINY),
                incomplete::igammac(a, b, incomplete::TINY),
            ));
            std::hint::black_box((elementary::xlog1py(a, b), elementary::limited(a, b)));
            std::hint::black_box((
                zeta::polygamma(a.abs().min(1e18).floor() + 1.0, b),
                polynomial::ChebyshevU::at(b, a, 0.0),
            ));
        }
        for x in [a, 1f64.next_up(), -1f64.next_up(), 1.0 - 1e-16] {
            std::hint::black_box((
                polynomial::ChebyshevT::at(x, 1e18, 0.0),
                polynomial::ChebyshevW::at(x, 1e18, 0.0),
            ));
        }
        std::hint::black_box((
            elementary::sinc(a),
            airy::ai(a),
            normal::ndtri(a),
            gamma::digamma(a),
        ));
    }
}

#[test]
fn incomplete_gamma_functions_of_singles_leave_out_nothing_that_singles_show() {
    let (tiny, single) = (incomplete::TINY, incomplete::TINY_SINGLE);
    for i in 1..400 {
        for j in 1..120 {
            let a = 0.003 * f64::from(i) * f64::from(i).sqrt();
            let x = a * 0.025 * f64::from(j);
            for f in [incomplete::igamma, incomplete::igammac] {
                let (exact, quick) = (f(a, x, tiny), f(a, x, single));
                // (A fiftieth of a unit in the last place of a single.)
                assert!((quick - exact).abs() <= 2e-9 * exact, "{a} {x}: {quick} for {exact}");
            }
        }
    }
}

/// Singles of many sizes, limits and what is out of range.
const SINGLES: [f32; 24] = [
    0.0,
    -0.0,
    1e-45,
    1e-20,
    0.0005,
    0.002,
    0.1,
    0.5,
    1.0,
    1.000_000_1,
    1.6,
    2.0,
    3.3,
    5.0,
    7.9,
    15.9,
    16.1,
    18.1,
    30.0,
    33.0,
    400.0,
    1e20,
    f32::INFINITY,
    -1.5,
];

type Pairs = fn(&mut [f64], &[f64], &[f64]);

/// Whether a function of pairs of singles gives what one of doubles gives, and the same beside other pairs as alone.
fn check_pairs(pairs: Pairs, exact: fn(f64, f64) -> f64, most: f64) {
    let with_nan = SINGLES.into_iter().chain([f32::NAN]).map(f64::from);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for x in with_nan.clone() {
        for y in with_nan.clone().chain((1..40).map(|i| 0.11 * f64::from(i))) {
            // Others lie between, so that usual ones stand beside hard ones and in every place.
            a.extend([x, 2.5]);
            b.extend([y, 0.25]);
        }
    }
    let mut out = vec![0.0; a.len()];
    pairs(&mut out, &a, &b);
    for i in 0..a.len() {
        let mut alone = [0.0];
        pairs(&mut alone, &a[i..=i], &b[i..=i]);
        assert!(alone[0].to_bits() == out[i].to_bits() || alone[0].is_nan(), "{} {}", a[i], b[i]);
        let exact = exact(a[i], b[i]);
        let is_same = out[i] == exact || (out[i].is_nan() && exact.is_nan());
        // (Beyond the range of singles both are 0 or infinite.)
        let is_out = (exact as f32).is_infinite() || exact.abs() < 1e-45;
        let is_close = (out[i] - exact).abs() <= most * exact.abs();
        let is_close = is_close || (is_out && (out[i] as f32 - exact as f32).abs() < 2e-45);
        assert!(is_same || is_close, "{} {}: {} for {exact}", a[i], b[i], out[i]);
    }
}

#[test]
fn functions_of_pairs_of_singles_are_those_of_doubles_whatever_stands_beside() {
    let lower = |a, x| incomplete::igamma(a, x, incomplete::TINY);
    let upper = |a, x| incomplete::igammac(a, x, incomplete::TINY);
    check_pairs(single_gamma::igamma::<false>, lower, 2e-9);
    check_pairs(single_gamma::igamma::<true>, upper, 2e-9);
    check_pairs(single_gamma::zeta, zeta::zeta, 1e-11);
}

#[test]
fn incomplete_gamma_functions_of_singles_hold_where_sum_and_fraction_meet() {
    for i in 1..160 {
        let a = vec![0.1 * f64::from(i); 64];
        let x: Vec<f64> = (0..64).map(|j| a[0] + 2.0 + 0.125 * f64::from(j - 32)).collect();
        let (mut lower, mut upper) = ([0.0; 64], [0.0; 64]);
        single_gamma::igamma::<false>(&mut lower, &a, &x);
        single_gamma::igamma::<true>(&mut upper, &a, &x);
        for ((&x, lower), upper) in x.iter().zip(lower).zip(upper).filter(|((x, _), _)| **x > 0.0) {
            let exact = incomplete::igammac(a[0], x, incomplete::TINY);
            assert!((upper - exact).abs() <= 1e-9 * exact, "{} {x}: {upper} for {exact}", a[0]);
            let exact = incomplete::igamma(a[0], x, incomplete::TINY);
            assert!((lower - exact).abs() <= 1e-9 * exact, "{} {x}: {lower} for {exact}", a[0]);
        }
    }
}

/// Whether polynomials of neighbours are those of each number alone.
fn check_line<S: PolynomialSequence>() {
    let x: Vec<f64> = SINGLES.into_iter().chain([f32::NAN, -1.0]).map(f64::from).collect();
    let x: Vec<f64> = x.iter().chain(&x).chain(&x).copied().collect();
    let mut out = vec![0.0; x.len()];
    let mut check = |n: &[f64]| {
        polynomial::line::<S>(&mut out, &x, n, 128.0);
        for ((&x, &n), &got) in x.iter().zip(n).zip(&out) {
            let alone = S::at(x, n, 128.0);
            let is_same = got.to_bits() == alone.to_bits() || (got.is_nan() && alone.is_nan());
            assert!(is_same, "order {n} at {x}: {got} for {alone}");
        }
    };
    for n in
        [0.0, 1.0, 2.0, 3.0, 5.5, 6.0, 6.5, 7.0, 33.0, 128.0, 128.5, 129.0, 300.0, -1.0, f64::NAN]
    {
        check(&vec![n; x.len()]);
    }
    check(&(0..x.len()).map(|i| (i % 7) as f64).collect::<Vec<_>>());
}

#[test]
fn polynomials_side_by_side_are_those_of_each_number() {
    check_line::<polynomial::ChebyshevT>();
    check_line::<polynomial::ChebyshevU>();
    check_line::<polynomial::ChebyshevV>();
    check_line::<polynomial::ChebyshevW>();
    check_line::<polynomial::ShiftedChebyshevT>();
    check_line::<polynomial::ShiftedChebyshevU>();
    check_line::<polynomial::ShiftedChebyshevV>();
    check_line::<polynomial::ShiftedChebyshevW>();
    check_line::<polynomial::HermiteH>();
    check_line::<polynomial::HermiteHe>();
    check_line::<polynomial::LaguerreL>();
    check_line::<polynomial::LegendreP>();
}

#[test]
fn functions_of_singles_have_the_limits_of_those_of_doubles() {
    type Twins = (fn(f64) -> f64, fn(f64) -> f64);
    let twins: [Twins; 6] = [
        (single::i0, modified::i0),
        (single::i0e, modified::i0e),
        (single::i1, modified::i1),
        (single::i1e, modified::i1e),
        (single::erfcx, normal::erfcx),
        (single::log_ndtr, normal::log_ndtr),
    ];
    for (k, (quick, exact)) in twins.into_iter().enumerate() {
        for x in SINGLES.into_iter().chain([f32::NAN, 14.4, 14.6, 3e38, -1e19, -27.0]) {
            for x in [f64::from(x), -f64::from(x)] {
                let (quick, exact) = (quick(x) as f32, exact(x) as f32);
                let is_same =
                    quick.to_bits() == exact.to_bits() || (quick.is_nan() && exact.is_nan());
                // One rounding of a number just beside the middle of two.
                let is_next = quick == exact.next_up() || quick == exact.next_down();
                assert!(is_same || is_next && exact.is_finite(), "{k} at {x}: {quick} for {exact}");
            }
        }
    }
    // The power of e is infinite before the number is as far out as the function's own limit.
    assert_eq!(normal::erfcx(-26.99), f64::INFINITY);
    assert_eq!(normal::erfcx(f64::NEG_INFINITY), f64::INFINITY);
    assert!(normal::erfcx(-26.6).is_finite());
}
