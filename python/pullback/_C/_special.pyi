# Written by `cargo xtask gen` from the op registry; edits are lost.

from collections.abc import Sequence
from typing import Any, overload

from .. import return_types
from .._tensor import Tensor
from ..types import DeviceLikeType, Number, _bool, _complex, _dtype, _float, _int, _layout, _size
from . import Generator, memory_format

def special_airy_ai(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Airy's function `Ai`, which swings below 0 and decays above. It has no derivative; halves are refused."""
def special_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's function of the first kind, order 0; NaN at infinity. Halves are refused."""
def special_bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's function of the first kind, order 1; NaN at infinity. Halves are refused."""
def special_bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's function of the second kind, order 0: negative infinity at 0, NaN below and at infinity. Halves are refused."""
def special_bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's function of the second kind, order 1: negative infinity at 0, NaN below and at infinity. Halves are refused."""
@overload
def special_chebyshev_polynomial_t(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the first kind, `T_n(x)`."""
@overload
def special_chebyshev_polynomial_t(x: Number | _complex, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_t(x: Tensor, n: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_u(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the second kind, `U_n(x)`."""
@overload
def special_chebyshev_polynomial_u(x: Number | _complex, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_u(x: Tensor, n: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_v(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the third kind, `V_n(x)`."""
@overload
def special_chebyshev_polynomial_v(x: Number | _complex, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_v(x: Tensor, n: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_w(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the fourth kind, `W_n(x)`."""
@overload
def special_chebyshev_polynomial_w(x: Number | _complex, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_chebyshev_polynomial_w(x: Tensor, n: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def special_digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `digamma`."""
def special_entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`-self ln(self)`, a term of an entropy: 0 at 0 (where the gradient is infinite), negative infinity below (where it is NaN)."""
def special_erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `erf`."""
def special_erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `erfc`."""
def special_erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The scaled complementary error function, `e^(x²) erfc(x)`: infinite far below 0. Halves are refused."""
def special_erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `erfinv`."""
def special_exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `exp2`."""
def special_expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `sigmoid`."""
def special_expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `expm1`."""
def special_gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `igamma`."""
def special_gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `igammac`."""
def special_gammaln(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `lgamma`."""
@overload
def special_hermite_polynomial_h(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hermite's polynomial of the physicists, `H_n(x)`; NaN for orders above 512 (128 in single precision), whose values are beyond the range."""
@overload
def special_hermite_polynomial_h(x: Number | _complex, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_hermite_polynomial_h(x: Tensor, n: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_hermite_polynomial_he(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hermite's polynomial of the statisticians, `He_n(x)`; NaN for orders above 512 (128 in single precision)."""
@overload
def special_hermite_polynomial_he(x: Number | _complex, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_hermite_polynomial_he(x: Tensor, n: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def special_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `i0`."""
def special_i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`e^-|x| I0(x)`; 0 at infinity. The gradient at 0 is 0."""
def special_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, order 1; NaN at infinity."""
def special_i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`e^-|x| I1(x)`; 0 at infinity."""
@overload
def special_laguerre_polynomial_l(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Laguerre's polynomial, `L_n(x)`. Orders above 2^24, which take a step each, are refused."""
@overload
def special_laguerre_polynomial_l(x: Number | _complex, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_laguerre_polynomial_l(x: Tensor, n: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_legendre_polynomial_p(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Legendre's polynomial, `P_n(x)`. Orders above 2^24, which take a step each, are refused."""
@overload
def special_legendre_polynomial_p(x: Number | _complex, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_legendre_polynomial_p(x: Tensor, n: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def special_log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `log1p`."""
def special_log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the normal distribution, accurate far below 0 too. Halves are refused."""
def special_log_softmax(input: Tensor, dim: _int, *, dtype: _dtype | None = None) -> Tensor:
    """As `log_softmax`."""
def special_logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """As `logit`."""
def special_logsumexp(input: Tensor, dim: _int | _size, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """As `logsumexp`."""
def special_modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `i0`, for single and double precision only."""
def special_modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `special.i1`, for single and double precision only."""
def special_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind, order 0: infinite at 0, NaN below. Halves are refused."""
def special_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind, order 1: infinite at 0, NaN below. Halves are refused."""
def special_multigammaln(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """As `mvlgamma`."""
def special_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The normal distribution: the probability that a normal number is at most `self`. Integers give the default floating dtype."""
def special_ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the normal distribution: infinite at 0 and 1, NaN outside. Halves are refused."""
def special_polygamma(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `polygamma`."""
def special_psi(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `digamma`."""
def special_round(input: Tensor, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
    """As `round`."""
def special_scaled_modified_bessel_k0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`e^x K0(x)`: infinite at 0, NaN below. It has no derivative; halves are refused."""
def special_scaled_modified_bessel_k1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`e^x K1(x)`: infinite at 0, NaN below. It has no derivative; halves are refused."""
@overload
def special_shifted_chebyshev_polynomial_t(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the first kind, `T_n(2x - 1)`."""
@overload
def special_shifted_chebyshev_polynomial_t(x: Number | _complex, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_t(x: Tensor, n: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_u(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the second kind, `U_n(2x - 1)`."""
@overload
def special_shifted_chebyshev_polynomial_u(x: Number | _complex, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_u(x: Tensor, n: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_v(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the third kind, `V_n(2x - 1)`."""
@overload
def special_shifted_chebyshev_polynomial_v(x: Number | _complex, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_v(x: Tensor, n: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_w(x: Tensor, n: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the fourth kind, `W_n(2x - 1)`."""
@overload
def special_shifted_chebyshev_polynomial_w(x: Number | _complex, n: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_shifted_chebyshev_polynomial_w(x: Tensor, n: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
def special_sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `sinc`."""
def special_softmax(input: Tensor, dim: _int, dtype: _dtype | None = None) -> Tensor:
    """As `softmax`."""
def special_spherical_bessel_j0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The spherical Bessel function of the first kind, order 0: `sin(x) / x`, 1 at 0. It has no derivative; halves are refused."""
@overload
def special_xlog1py(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`self ln(1 + other)`, 0 where `self` is 0 unless `other` is NaN. Integers give the default floating dtype."""
@overload
def special_xlog1py(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_xlog1py(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_xlogy(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `xlogy`."""
@overload
def special_xlogy(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_xlogy(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_zeta(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz's zeta function, the sum of `(other + k)^-self` for whole `k >= 0`: infinite where a term or the sum is (`self` 1),
    NaN for `self` below 1, and for a negative `other` unless `self` is whole. It has no derivative by `self`; halves are refused."""
@overload
def special_zeta(self: Number | _complex, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def special_zeta(input: Tensor, other: Number | _complex, *, out: Tensor | None = None) -> Tensor: ...
