//! Orthogonal polynomials of an argument `x` and an order `n`, both of which may be numbers; shapes broadcast, dtypes promote,
//! integers give the default floating dtype.
//!
//! Of the order the whole part counts, and polynomials of negative orders are 0. None has a derivative, as in PyTorch. The time of
//! Hermite's, Laguerre's and Legendre's grows with the order.

use crate::dispatch::{Arg, OpDef};
use crate::error::ensure;
use crate::{Device, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &SPECIAL_CHEBYSHEV_POLYNOMIAL_T,
    &SPECIAL_CHEBYSHEV_POLYNOMIAL_T_OF,
    &SPECIAL_CHEBYSHEV_POLYNOMIAL_T_BY,
    &SPECIAL_CHEBYSHEV_POLYNOMIAL_U,
    &SPECIAL_CHEBYSHEV_POLYNOMIAL_U_OF,
    &SPECIAL_CHEBYSHEV_POLYNOMIAL_U_BY,
    &SPECIAL_CHEBYSHEV_POLYNOMIAL_V,
    &SPECIAL_CHEBYSHEV_POLYNOMIAL_V_OF,
    &SPECIAL_CHEBYSHEV_POLYNOMIAL_V_BY,
    &SPECIAL_CHEBYSHEV_POLYNOMIAL_W,
    &SPECIAL_CHEBYSHEV_POLYNOMIAL_W_OF,
    &SPECIAL_CHEBYSHEV_POLYNOMIAL_W_BY,
    &SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_T,
    &SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_T_OF,
    &SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_T_BY,
    &SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_U,
    &SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_U_OF,
    &SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_U_BY,
    &SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_V,
    &SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_V_OF,
    &SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_V_BY,
    &SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_W,
    &SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_W_OF,
    &SPECIAL_SHIFTED_CHEBYSHEV_POLYNOMIAL_W_BY,
    &SPECIAL_HERMITE_POLYNOMIAL_H,
    &SPECIAL_HERMITE_POLYNOMIAL_H_OF,
    &SPECIAL_HERMITE_POLYNOMIAL_H_BY,
    &SPECIAL_HERMITE_POLYNOMIAL_HE,
    &SPECIAL_HERMITE_POLYNOMIAL_HE_OF,
    &SPECIAL_HERMITE_POLYNOMIAL_HE_BY,
    &SPECIAL_LAGUERRE_POLYNOMIAL_L,
    &SPECIAL_LAGUERRE_POLYNOMIAL_L_OF,
    &SPECIAL_LAGUERRE_POLYNOMIAL_L_BY,
    &SPECIAL_LEGENDRE_POLYNOMIAL_P,
    &SPECIAL_LEGENDRE_POLYNOMIAL_P_OF,
    &SPECIAL_LEGENDRE_POLYNOMIAL_P_BY,
];

/// Chebyshev's polynomial of the first kind, `T_n(x)`.
#[op("special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     meta = float, cpu = chebyshev_polynomial_t, batch = pointwise, samples = polynomial)]
impl SpecialChebyshevPolynomialT {}

/// Chebyshev's polynomial of the first kind, `T_n(x)`, at a number `x`.
#[op("special_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     operand(x), meta = float_with_numbers, cpu = chebyshev_polynomial_t, batch = pointwise, method = special_chebyshev_polynomial_t_of, samples = polynomial_of)]
impl SpecialChebyshevPolynomialTOf {}

/// Chebyshev's polynomial of the first kind, `T_n(x)`, of a number `n` as order.
#[op("special_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor", module = "special", out, not_differentiable,
     operand(n), meta = float_with_numbers, cpu = chebyshev_polynomial_t, batch = pointwise, method = special_chebyshev_polynomial_t_by, samples = polynomial_by)]
impl SpecialChebyshevPolynomialTBy {}

/// Chebyshev's polynomial of the second kind, `U_n(x)`.
#[op("special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     meta = float, cpu = chebyshev_polynomial_u, batch = pointwise, samples = polynomial)]
impl SpecialChebyshevPolynomialU {}

/// Chebyshev's polynomial of the second kind, `U_n(x)`, at a number `x`.
#[op("special_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     operand(x), meta = float_with_numbers, cpu = chebyshev_polynomial_u, batch = pointwise, method = special_chebyshev_polynomial_u_of, samples = polynomial_of)]
impl SpecialChebyshevPolynomialUOf {}

/// Chebyshev's polynomial of the second kind, `U_n(x)`, of a number `n` as order.
#[op("special_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor", module = "special", out, not_differentiable,
     operand(n), meta = float_with_numbers, cpu = chebyshev_polynomial_u, batch = pointwise, method = special_chebyshev_polynomial_u_by, samples = polynomial_by)]
impl SpecialChebyshevPolynomialUBy {}

/// Chebyshev's polynomial of the third kind, `V_n(x)`.
#[op("special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     meta = float, cpu = chebyshev_polynomial_v, batch = pointwise, samples = polynomial)]
impl SpecialChebyshevPolynomialV {}

/// Chebyshev's polynomial of the third kind, `V_n(x)`, at a number `x`.
#[op("special_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     operand(x), meta = float_with_numbers, cpu = chebyshev_polynomial_v, batch = pointwise, method = special_chebyshev_polynomial_v_of, samples = polynomial_of)]
impl SpecialChebyshevPolynomialVOf {}

/// Chebyshev's polynomial of the third kind, `V_n(x)`, of a number `n` as order.
#[op("special_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor", module = "special", out, not_differentiable,
     operand(n), meta = float_with_numbers, cpu = chebyshev_polynomial_v, batch = pointwise, method = special_chebyshev_polynomial_v_by, samples = polynomial_by)]
impl SpecialChebyshevPolynomialVBy {}

/// Chebyshev's polynomial of the fourth kind, `W_n(x)`.
#[op("special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     meta = float, cpu = chebyshev_polynomial_w, batch = pointwise, samples = polynomial)]
impl SpecialChebyshevPolynomialW {}

/// Chebyshev's polynomial of the fourth kind, `W_n(x)`, at a number `x`.
#[op("special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     operand(x), meta = float_with_numbers, cpu = chebyshev_polynomial_w, batch = pointwise, method = special_chebyshev_polynomial_w_of, samples = polynomial_of)]
impl SpecialChebyshevPolynomialWOf {}

/// Chebyshev's polynomial of the fourth kind, `W_n(x)`, of a number `n` as order.
#[op("special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor", module = "special", out, not_differentiable,
     operand(n), meta = float_with_numbers, cpu = chebyshev_polynomial_w, batch = pointwise, method = special_chebyshev_polynomial_w_by, samples = polynomial_by)]
impl SpecialChebyshevPolynomialWBy {}

/// Chebyshev's polynomial of the first kind, `T_n(2x - 1)`.
#[op("special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     meta = float, cpu = shifted_chebyshev_polynomial_t, batch = pointwise, samples = polynomial)]
impl SpecialShiftedChebyshevPolynomialT {}

/// Chebyshev's polynomial of the first kind, `T_n(2x - 1)`, at a number `x`.
#[op("special_shifted_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     operand(x), meta = float_with_numbers, cpu = shifted_chebyshev_polynomial_t, batch = pointwise, method = special_shifted_chebyshev_polynomial_t_of, samples = polynomial_of)]
impl SpecialShiftedChebyshevPolynomialTOf {}

/// Chebyshev's polynomial of the first kind, `T_n(2x - 1)`, of a number `n` as order.
#[op("special_shifted_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor", module = "special", out, not_differentiable,
     operand(n), meta = float_with_numbers, cpu = shifted_chebyshev_polynomial_t, batch = pointwise, method = special_shifted_chebyshev_polynomial_t_by, samples = polynomial_by)]
impl SpecialShiftedChebyshevPolynomialTBy {}

/// Chebyshev's polynomial of the second kind, `U_n(2x - 1)`.
#[op("special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     meta = float, cpu = shifted_chebyshev_polynomial_u, batch = pointwise, samples = polynomial)]
impl SpecialShiftedChebyshevPolynomialU {}

/// Chebyshev's polynomial of the second kind, `U_n(2x - 1)`, at a number `x`.
#[op("special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     operand(x), meta = float_with_numbers, cpu = shifted_chebyshev_polynomial_u, batch = pointwise, method = special_shifted_chebyshev_polynomial_u_of, samples = polynomial_of)]
impl SpecialShiftedChebyshevPolynomialUOf {}

/// Chebyshev's polynomial of the second kind, `U_n(2x - 1)`, of a number `n` as order.
#[op("special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor", module = "special", out, not_differentiable,
     operand(n), meta = float_with_numbers, cpu = shifted_chebyshev_polynomial_u, batch = pointwise, method = special_shifted_chebyshev_polynomial_u_by, samples = polynomial_by)]
impl SpecialShiftedChebyshevPolynomialUBy {}

/// Chebyshev's polynomial of the third kind, `V_n(2x - 1)`.
#[op("special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     meta = float, cpu = shifted_chebyshev_polynomial_v, batch = pointwise, samples = polynomial)]
impl SpecialShiftedChebyshevPolynomialV {}

/// Chebyshev's polynomial of the third kind, `V_n(2x - 1)`, at a number `x`.
#[op("special_shifted_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     operand(x), meta = float_with_numbers, cpu = shifted_chebyshev_polynomial_v, batch = pointwise, method = special_shifted_chebyshev_polynomial_v_of, samples = polynomial_of)]
impl SpecialShiftedChebyshevPolynomialVOf {}

/// Chebyshev's polynomial of the third kind, `V_n(2x - 1)`, of a number `n` as order.
#[op("special_shifted_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor", module = "special", out, not_differentiable,
     operand(n), meta = float_with_numbers, cpu = shifted_chebyshev_polynomial_v, batch = pointwise, method = special_shifted_chebyshev_polynomial_v_by, samples = polynomial_by)]
impl SpecialShiftedChebyshevPolynomialVBy {}

/// Chebyshev's polynomial of the fourth kind, `W_n(2x - 1)`.
#[op("special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     meta = float, cpu = shifted_chebyshev_polynomial_w, batch = pointwise, samples = polynomial)]
impl SpecialShiftedChebyshevPolynomialW {}

/// Chebyshev's polynomial of the fourth kind, `W_n(2x - 1)`, at a number `x`.
#[op("special_shifted_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     operand(x), meta = float_with_numbers, cpu = shifted_chebyshev_polynomial_w, batch = pointwise, method = special_shifted_chebyshev_polynomial_w_of, samples = polynomial_of)]
impl SpecialShiftedChebyshevPolynomialWOf {}

/// Chebyshev's polynomial of the fourth kind, `W_n(2x - 1)`, of a number `n` as order.
#[op("special_shifted_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor", module = "special", out, not_differentiable,
     operand(n), meta = float_with_numbers, cpu = shifted_chebyshev_polynomial_w, batch = pointwise, method = special_shifted_chebyshev_polynomial_w_by, samples = polynomial_by)]
impl SpecialShiftedChebyshevPolynomialWBy {}

/// Hermite's polynomial of the physicists, `H_n(x)`; NaN for orders above 512 (128 in single precision), whose values are beyond the range.
#[op("special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     meta = float, cpu = hermite_polynomial_h, batch = pointwise, samples = polynomial)]
impl SpecialHermitePolynomialH {}

/// Hermite's polynomial of the physicists, `H_n(x)` at a number `x`; NaN for orders above 512 (128 in single precision), whose values are beyond the range.
#[op("special_hermite_polynomial_h.x_scalar(Scalar x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     operand(x), meta = float_with_numbers, cpu = hermite_polynomial_h, batch = pointwise, method = special_hermite_polynomial_h_of, samples = polynomial_of)]
impl SpecialHermitePolynomialHOf {}

/// Hermite's polynomial of the physicists, `H_n(x)` of a number `n` as order; NaN for orders above 512 (128 in single precision), whose values are beyond the range.
#[op("special_hermite_polynomial_h.n_scalar(Tensor x, Scalar n) -> Tensor", module = "special", out, not_differentiable,
     operand(n), meta = float_with_numbers, cpu = hermite_polynomial_h, batch = pointwise, method = special_hermite_polynomial_h_by, samples = polynomial_by)]
impl SpecialHermitePolynomialHBy {}

/// Hermite's polynomial of the statisticians, `He_n(x)`; NaN for orders above 512 (128 in single precision).
#[op("special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     meta = float, cpu = hermite_polynomial_he, batch = pointwise, samples = polynomial)]
impl SpecialHermitePolynomialHe {}

/// Hermite's polynomial of the statisticians, `He_n(x)` at a number `x`; NaN for orders above 512 (128 in single precision).
#[op("special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     operand(x), meta = float_with_numbers, cpu = hermite_polynomial_he, batch = pointwise, method = special_hermite_polynomial_he_of, samples = polynomial_of)]
impl SpecialHermitePolynomialHeOf {}

/// Hermite's polynomial of the statisticians, `He_n(x)` of a number `n` as order; NaN for orders above 512 (128 in single precision).
#[op("special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> Tensor", module = "special", out, not_differentiable,
     operand(n), meta = float_with_numbers, cpu = hermite_polynomial_he, batch = pointwise, method = special_hermite_polynomial_he_by, samples = polynomial_by)]
impl SpecialHermitePolynomialHeBy {}

/// Laguerre's polynomial, `L_n(x)`. Orders above 2^24, which take a step each, are refused.
#[op("special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     meta = float_of_order(n), cpu = laguerre_polynomial_l, batch = pointwise, samples = polynomial)]
impl SpecialLaguerrePolynomialL {}

/// Laguerre's polynomial, `L_n(x)`, at a number `x`.
#[op("special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     operand(x), meta = float_of_order(n), cpu = laguerre_polynomial_l, batch = pointwise, method = special_laguerre_polynomial_l_of, samples = polynomial_of)]
impl SpecialLaguerrePolynomialLOf {}

/// Laguerre's polynomial, `L_n(x)`, of a number `n` as order.
#[op("special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> Tensor", module = "special", out, not_differentiable,
     operand(n), meta = float_of_order(n), cpu = laguerre_polynomial_l, batch = pointwise, method = special_laguerre_polynomial_l_by, samples = polynomial_by)]
impl SpecialLaguerrePolynomialLBy {}

/// Legendre's polynomial, `P_n(x)`. Orders above 2^24, which take a step each, are refused.
#[op("special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     meta = float_of_order(n), cpu = legendre_polynomial_p, batch = pointwise, samples = polynomial)]
impl SpecialLegendrePolynomialP {}

/// Legendre's polynomial, `P_n(x)`, at a number `x`.
#[op("special_legendre_polynomial_p.x_scalar(Scalar x, Tensor n) -> Tensor", module = "special", out, not_differentiable,
     operand(x), meta = float_of_order(n), cpu = legendre_polynomial_p, batch = pointwise, method = special_legendre_polynomial_p_of, samples = polynomial_of)]
impl SpecialLegendrePolynomialPOf {}

/// Legendre's polynomial, `P_n(x)`, of a number `n` as order.
#[op("special_legendre_polynomial_p.n_scalar(Tensor x, Scalar n) -> Tensor", module = "special", out, not_differentiable,
     operand(n), meta = float_of_order(n), cpu = legendre_polynomial_p, batch = pointwise, method = special_legendre_polynomial_p_by, samples = polynomial_by)]
impl SpecialLegendrePolynomialPBy {}

/// The largest order of the polynomials that take a step for each.
const MOST: f64 = 16_777_216.0;

/// Refuses orders that would take for ever.
pub(in crate::ops) fn check_orders(order: &Arg<'_>) -> Result<()> {
    let most = match order {
        Arg::Scalar(order) if !matches!(order, Scalar::Complex(..)) => order.to_f64(),
        Arg::Tensor(orders)
            if orders.numel() > 0
                && !orders.dtype().is_complex()
                && orders.device() != Device::Meta =>
        {
            let all = orders.to_vec::<f64>()?;
            // (The maximum passes NaN by, of which the polynomial is 0.)
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
