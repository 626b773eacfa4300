//! How the lines of a dimension are transformed: a function of their length and of where they lie.
//!
//! (What a single line needs, from butterflies to Bluestein's algorithm, is what `rustfft` plans by its length alone.)

use crate::lines::Lines;
use crate::long;
use crate::tile::{is_tiled, lanes};

/// The ways of transforming the lines of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FftAlgorithm {
    /// Lines that follow each other without gaps: many in one call.
    Joined,
    /// Neighbouring lines one by one, through buffers where their numbers lie apart.
    Tiled,
    /// As many neighbouring lines at once as a vector has lanes.
    Lanes,
    /// Long lines, each as a matrix whose columns and rows are transformed, which threads share.
    FourStep,
}

/// How a pass over lines of complex numbers is computed; `T` is the type of their parts.
pub(crate) fn of_complex<T>(lines: &Lines, n: usize) -> FftAlgorithm {
    if long::factors(n).is_some() {
        FftAlgorithm::FourStep
    } else if fills_lanes::<T>(lines, n) {
        FftAlgorithm::Lanes
    } else {
        of_single_lines(lines, (n, n), true)
    }
}

/// How a pass from or to `n` real numbers is computed, whose lines have these lengths before and after.
pub(crate) fn of_real<T>(lines: &Lines, n: usize, lengths: (usize, usize)) -> FftAlgorithm {
    let is_half = lengths.0.min(lengths.1) == n / 2 + 1;
    if is_half && n.is_multiple_of(2) && fills_lanes::<T>(lines, n / 2) {
        FftAlgorithm::Lanes
    } else {
        of_single_lines(lines, lengths, false)
    }
}

/// Whether lines of `n` complex numbers are transformed in tiles: there are enough neighbours to fill them, but for a third of the
/// lanes.
fn fills_lanes<T>(lines: &Lines, n: usize) -> bool {
    let (neighbours, lanes) = (lines.inner(), lanes::<T>());
    let used = neighbours.div_ceil(lanes).saturating_mul(lanes);
    is_tiled(n) && neighbours >= lanes && used <= neighbours.saturating_mul(3) / 2
}

/// How lines are transformed one by one, of these lengths before and after. `takes_many` says whether the transform takes
/// several lines by one call, as that of complex numbers does.
pub(crate) fn of_single_lines(
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
        of_complex::<f32>(&Lines::new(&shape, dim, side, side, n), n)
    }

    #[test]
    fn short_lines_are_joined_where_they_follow_each_other() {
        assert_eq!(plan([5, 64], 1), FftAlgorithm::Joined);
        assert_eq!(plan([64, 5], 0), FftAlgorithm::Tiled);
        assert_eq!(plan([50, 65], 1), FftAlgorithm::Joined);
    }

    #[test]
    fn many_neighbours_of_a_power_of_two_take_a_lane_each() {
        let expected = |other| if is_tiled(64) { FftAlgorithm::Lanes } else { other };
        assert_eq!(plan([16, 64], 1), expected(FftAlgorithm::Joined));
        assert_eq!(plan([64, 16], 0), expected(FftAlgorithm::Tiled));
        assert_eq!(plan([17, 64], 1), FftAlgorithm::Joined);
        assert_eq!(plan([37, 64], 1), expected(FftAlgorithm::Joined));
        let side = Side { strides: &[65, 1] };
        let lines = Lines::new(&[16, 65], 1, side, side, 128);
        assert_eq!(of_real::<f32>(&lines, 128, (128, 65)), expected(FftAlgorithm::Tiled));
        assert_eq!(of_real::<f32>(&lines, 129, (129, 65)), FftAlgorithm::Tiled);
        assert_eq!(of_real::<f32>(&lines, 128, (128, 128)), FftAlgorithm::Tiled);
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
        assert_eq!(of_single_lines(&lines, (64, 33), false), FftAlgorithm::Tiled);
    }
}
