//! Orthogonal polynomials of an argument `x` and an order `n`, both of which may be numbers; shapes broadcast, dtypes promote,
//! integers give the default floating dtype.
//!
//! Of the order the whole part counts, and polynomials of negative orders are 0. None has a derivative, as in PyTorch. The time of
//! Hermite's, Laguerre's and Legendre's grows with the order.

use crate::dispatch::{Arg, OpDef};
use crate::error::ensure;
use crate::{Device, Result, Scalar};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = SPECIAL_POLYNOMIAL;

/// {TEXT}{FORM}
#[op("special_{F}{OVERLOAD}({X} x, {N} n) -> Tensor", module = "special", out, not_differentiable,
     operand(x, n), meta = META, cpu = F, batch = pointwise, samples = SAMPLES,
     each(
        SpecialChebyshevPolynomialT { F: chebyshev_polynomial_t, META: float_with_numbers,
            TEXT: "Chebyshev's polynomial of the first kind, `T_n(x)`." },
        SpecialChebyshevPolynomialU { F: chebyshev_polynomial_u, META: float_with_numbers,
            TEXT: "Chebyshev's polynomial of the second kind, `U_n(x)`." },
        SpecialChebyshevPolynomialV { F: chebyshev_polynomial_v, META: float_with_numbers,
            TEXT: "Chebyshev's polynomial of the third kind, `V_n(x)`." },
        SpecialChebyshevPolynomialW { F: chebyshev_polynomial_w, META: float_with_numbers,
            TEXT: "Chebyshev's polynomial of the fourth kind, `W_n(x)`." },
        SpecialShiftedChebyshevPolynomialT { F: shifted_chebyshev_polynomial_t, META: float_with_numbers,
            TEXT: "Chebyshev's polynomial of the first kind, `T_n(2x - 1)`." },
        SpecialShiftedChebyshevPolynomialU { F: shifted_chebyshev_polynomial_u, META: float_with_numbers,
            TEXT: "Chebyshev's polynomial of the second kind, `U_n(2x - 1)`." },
        SpecialShiftedChebyshevPolynomialV { F: shifted_chebyshev_polynomial_v, META: float_with_numbers,
            TEXT: "Chebyshev's polynomial of the third kind, `V_n(2x - 1)`." },
        SpecialShiftedChebyshevPolynomialW { F: shifted_chebyshev_polynomial_w, META: float_with_numbers,
            TEXT: "Chebyshev's polynomial of the fourth kind, `W_n(2x - 1)`." },
        SpecialHermitePolynomialH { F: hermite_polynomial_h, META: float_with_numbers,
            TEXT: "Hermite's polynomial of the physicists, `H_n(x)`; NaN for orders above 512 (128 in single precision), whose values are beyond the range." },
        SpecialHermitePolynomialHe { F: hermite_polynomial_he, META: float_with_numbers,
            TEXT: "Hermite's polynomial of the statisticians, `He_n(x)`; NaN for orders above 512 (128 in single precision)." },
        SpecialLaguerrePolynomialL { F: laguerre_polynomial_l, META: float_of_order(n),
            TEXT: "Laguerre's polynomial, `L_n(x)`. Orders above 2^24, which take a step each, are refused." },
        SpecialLegendrePolynomialP { F: legendre_polynomial_p, META: float_of_order(n),
            TEXT: "Legendre's polynomial, `P_n(x)`. Orders above 2^24, which take a step each, are refused." }),
     each(_ { OVERLOAD: "", X: Tensor, N: Tensor, SAMPLES: polynomial, FORM: "" },
          Of { OVERLOAD: ".x_scalar", X: Scalar, N: Tensor, SAMPLES: polynomial_of, FORM: " Of one argument, a number." },
          By { OVERLOAD: ".n_scalar", X: Tensor, N: Scalar, SAMPLES: polynomial_by, FORM: " Of one order, a number." }))]
impl SpecialPolynomial {}

/// The largest order of the polynomials whose recurrence takes a step for each order.
const MOST: f64 = 16_777_216.0;

/// Refuses orders whose recurrences would not end in reasonable time.
pub(in crate::ops) fn check_orders(order: &Arg<'_>) -> Result<()> {
    let most = match order {
        Arg::Scalar(order) if !matches!(order, Scalar::Complex(..)) => order.to_f64(),
        Arg::Tensor(orders)
            if orders.numel() > 0
                && !orders.dtype().is_complex()
                && orders.device() != Device::Meta =>
        {
            let all = orders.to_vec::<f64>()?;
            // (The maximum ignores NaN, whose polynomial is 0.)
            all.into_iter().fold(0.0, f64::max)
        }
        _ => 0.0,
    };
    ensure!(
        most <= MOST,
        value,
        "polynomials of orders above {MOST} are not computed: each takes as many steps, but an order of {most} was given"
    );
    Ok(())
}
