//! How the lines of a dimension are transformed: a function of their length and of where they lie.
//!
//! (What a single line needs, from butterflies to Bluestein's algorithm, is what `rustfft` plans by its length alone.)

use crate::lines::Lines;
use crate::long;

/// The ways of transforming the lines of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FftAlgorithm {
    /// Lines that follow each other without gaps: many by one call.
    Joined,
    /// Neighbouring lines one by one, through buffers where their numbers lie apart.
    Tiled,
    /// Long lines, each as a matrix whose columns and rows are transformed, which threads share.
    FourStep,
}

/// How a pass over lines of complex numbers is computed.
pub(crate) fn of_complex(lines: &Lines, n: usize) -> FftAlgorithm {
    if long::factors(n).is_some() {
        FftAlgorithm::FourStep
    } else {
        of_short_lines(lines, (n, n), true)
    }
}

/// How lines that are not split are transformed, of these lengths before and after. `takes_many` says whether the transform takes
/// several lines by one call, as that of complex numbers does.
pub(crate) fn of_short_lines(
    lines: &Lines,
    lengths: (usize, usize),
    takes_many: bool,
) -> FftAlgorithm {
    if takes_many && lines.are_dense(lengths) { FftAlgorithm::Joined } else { FftAlgorithm::Tiled }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::Side;

    /// The plan for lines along the last of two dimensions, or along the first.
    fn plan(shape: [i64; 2], dim: usize) -> FftAlgorithm {
        let strides = [shape[1], 1];
        let (side, n) = (Side { strides: &strides }, shape[dim] as usize);
        of_complex(&Lines::new(&shape, dim, side, side, n), n)
    }

    #[test]
    fn short_lines_are_joined_where_they_follow_each_other() {
        assert_eq!(plan([5, 64], 1), FftAlgorithm::Joined);
        assert_eq!(plan([64, 5], 0), FftAlgorithm::Tiled);
    }

    #[test]
    fn long_lines_are_split_if_their_length_has_small_factors() {
        assert_eq!(plan([3, 1 << 16], 1), FftAlgorithm::FourStep);
        assert_eq!(plan([1 << 16, 3], 0), FftAlgorithm::FourStep);
        assert_eq!(plan([3, 65_537], 1), FftAlgorithm::Joined);
        assert_eq!(plan([3, (1 << 16) - 1], 1), FftAlgorithm::Joined);
    }

    #[test]
    fn lines_of_real_numbers_come_one_by_one() {
        let side = Side { strides: &[33, 1] };
        let lines = Lines::new(&[5, 33], 1, side, side, 64);
        assert_eq!(of_short_lines(&lines, (64, 33), false), FftAlgorithm::Tiled);
    }
}
