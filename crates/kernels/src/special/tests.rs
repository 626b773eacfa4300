//! Identities that tie the functions to one another and to those of the standard library; `python/tests/test_special_values.py`
//! compares them with numbers of many digits.

use super::{airy, bessel, elementary, gamma, incomplete, modified, normal, polynomial, zeta};

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
    let places: [(Function, &[f64]); 6] = [
        (bessel::j0, &[1.0, 8.0, 16.0]),
        (bessel::y1, &[1.0, 1.5, 8.0]),
        (modified::k0, &[1.0, 2.0, 8.0]),
        (airy::ai, &[-8.0, 0.0, 2.0]),
        (normal::erfcx, &[0.25, 2.0, 4.0]),
        (gamma::digamma, &[1.0, 1.25, 2.0, 10.0]),
    ];
    for (function, ends) in places {
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
                polynomial::chebyshev_u(b, a),
            ));
        }
        for x in [a, 1f64.next_up(), -1f64.next_up(), 1.0 - 1e-16] {
            std::hint::black_box((
                polynomial::chebyshev_t(x, 1e18),
                polynomial::chebyshev_w(x, 1e18),
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
