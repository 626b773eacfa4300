//! Smooth functions as polynomials on equal pieces of an interval.

pub(super) mod airy;
pub(super) mod angle;
pub(super) mod bessel_large;
pub(super) mod bessel_middle;
pub(super) mod bessel_single;
pub(super) mod bessel_small;
pub(super) mod error;
pub(super) mod gamma;
pub(super) mod log_gamma;
pub(super) mod modified_i;
pub(super) mod modified_k;
pub(super) mod normal;
pub(super) mod quantile;
pub(super) mod single;
pub(super) mod temme;

/// One polynomial of `N` coefficients, lowest first, for each of several equal pieces that follow one another.
pub(crate) struct PiecewisePolynomial<const N: usize> {
    /// Where the first piece begins.
    low: f64,
    /// Pieces per unit.
    scale: f64,
    rows: &'static [[f64; N]],
}

impl<const N: usize> PiecewisePolynomial<N> {
    /// The function at `x`, which lies in the interval (NaN gives NaN).
    #[inline(always)]
    pub(crate) fn at(&self, x: f64) -> f64 {
        let position = (x - self.low) * self.scale;
        let piece = (position as usize).min(self.rows.len() - 1);
        let t = 2.0 * (position - piece as f64) - 1.0;
        super::polynomial_at(t, &self.rows[piece])
    }

    /// The function at `x` in this piece as two numbers: the first one of the piece's row, and all else.
    #[inline(always)]
    pub(crate) fn parts(&self, x: f64, piece: usize) -> (f64, f64) {
        let t = 2.0 * ((x - self.low) * self.scale - piece as f64) - 1.0;
        let row = &self.rows[piece];
        (row[0], t * super::polynomial_at(t, &row[1..]))
    }

    /// The value at `x` of a table of one piece, without the search for the piece.
    #[inline(always)]
    pub(crate) fn in_first(&self, x: f64) -> f64 {
        super::polynomial_at(2.0 * ((x - self.low) * self.scale) - 1.0, &self.rows[0])
    }
}
