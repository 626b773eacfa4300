//! How lines are sorted, and how elements are selected from them: functions of sizes and of where the lines lie.

use super::network::{MAX_LINE, Selection};
use super::radix::{MAX_CACHED, MAX_COMPARISON_SORT};
use super::{capacity, select};

/// The ways of sorting lines, and of selecting from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortAlgorithm {
    /// Several lines side by side in registers, through a sorting network.
    Network,
    /// Several lines side by side, whose first few elements in order stay in registers.
    NetworkTopK,
    /// The pairs of keys and indices of a line, by comparison.
    Comparison,
    /// The pairs of a line that fits the nearest cache, by digits of eight bits.
    CachedRadix,
    /// The pairs of a line, by digits of eleven bits.
    Radix,
    /// All pairs of a line, parted at the wanted one.
    Partition,
    /// The pairs of a line that beat the worst of the best so far.
    Candidates,
    /// The keys of a line, parted at a pivot again and again.
    Quickselect,
    /// The keys of a line, between two keys of a sample (R. W. Floyd, R. L. Rivest, "Expected time bounds for selection", 1975).
    FloydRivest,
}

impl SortAlgorithm {
    /// Whether it works on several lines side by side.
    pub(super) fn is_side_by_side(self) -> bool {
        matches!(self, SortAlgorithm::Network | SortAlgorithm::NetworkTopK)
    }
}

/// The lines, as far as the choice depends on them.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineSizes {
    /// The elements of a line.
    pub(super) n: usize,
    /// How many lines there are.
    pub(super) count: usize,
    /// Whether the first elements of the lines are neighbours in memory.
    pub(super) are_adjacent: bool,
}

/// Fewest lines for which columns pay.
const MIN_LINES: usize = 4;
/// Fewest lines longer than [`MAX_LINE`] for which columns pay.
const MIN_LONG_LINES: usize = 8;

/// The way in which lines are worked on side by side, if that pays.
fn side_by_side(lines: LineSizes, selection: Selection) -> Option<SortAlgorithm> {
    let LineSizes { n, count, are_adjacent } = lines;
    let is_top_k = selection.is_top_k();
    let is_short = n <= MAX_LINE;
    let fewest = if is_short { MIN_LINES } else { MIN_LONG_LINES };
    let fits = is_short || (is_top_k && are_adjacent && u32::try_from(n).is_ok());
    if count < fewest || selection.length(n) == 0 || !fits {
        return None;
    }
    Some(if is_top_k { SortAlgorithm::NetworkTopK } else { SortAlgorithm::Network })
}

/// The way in which lines are sorted, none of them empty.
pub(super) fn of_sort(lines: LineSizes) -> SortAlgorithm {
    let selection = Selection::FirstK(lines.n);
    side_by_side(lines, selection).unwrap_or_else(|| of_pairs(lines.n))
}

/// The way in which the `n` pairs of one line are sorted.
pub(super) fn of_pairs(n: usize) -> SortAlgorithm {
    if n <= MAX_COMPARISON_SORT {
        SortAlgorithm::Comparison
    } else if n <= MAX_CACHED {
        SortAlgorithm::CachedRadix
    } else {
        SortAlgorithm::Radix
    }
}

/// The way in which the first `k` elements of lines are found and sorted.
pub(super) fn of_topk(lines: LineSizes, k: usize) -> SortAlgorithm {
    let one_by_one =
        if lines.n <= capacity(k) { SortAlgorithm::Partition } else { SortAlgorithm::Candidates };
    side_by_side(lines, Selection::FirstK(k)).unwrap_or(one_by_one)
}

/// The way in which one element of each line is found; a median may ignore NaN, whose number is another one in each line.
pub(super) fn of_selection(
    lines: LineSizes,
    selection: Selection,
    ignores_nan: bool,
) -> SortAlgorithm {
    if !ignores_nan && let Some(algorithm) = side_by_side(lines, selection) {
        return algorithm;
    }
    match selection {
        Selection::Mode => of_pairs(lines.n),
        _ if lines.n <= select::MAX_PIVOT_LENGTH => SortAlgorithm::Quickselect,
        _ => SortAlgorithm::FloydRivest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(n: usize, count: usize) -> LineSizes {
        LineSizes { n, count, are_adjacent: false }
    }

    #[test]
    fn sorting_goes_by_the_length_of_lines_and_their_number() {
        assert_eq!(of_sort(lines(128, 4)), SortAlgorithm::Network);
        assert_eq!(of_sort(lines(4, 4)), SortAlgorithm::NetworkTopK);
        assert_eq!(of_sort(lines(128, 3)), SortAlgorithm::Comparison);
        assert_eq!(of_sort(lines(129, 1000)), SortAlgorithm::Comparison);
        assert_eq!(of_sort(lines(769, 1000)), SortAlgorithm::CachedRadix);
        assert_eq!(of_sort(lines(4096, 1)), SortAlgorithm::CachedRadix);
        assert_eq!(of_sort(lines(4097, 1)), SortAlgorithm::Radix);
    }

    #[test]
    fn the_first_few_of_long_lines_stay_in_registers_where_lines_are_neighbours() {
        let adjacent = LineSizes { are_adjacent: true, ..lines(10_000, 8) };
        assert_eq!(of_topk(adjacent, 4), SortAlgorithm::NetworkTopK);
        assert_eq!(of_topk(adjacent, 5), SortAlgorithm::Candidates);
        assert_eq!(of_topk(LineSizes { count: 7, ..adjacent }, 4), SortAlgorithm::Candidates);
        assert_eq!(of_topk(lines(10_000, 8), 4), SortAlgorithm::Candidates);
        assert_eq!(of_topk(lines(10_000, 8), 2500), SortAlgorithm::Partition);
        assert_eq!(of_topk(lines(100, 8), 50), SortAlgorithm::Network);
    }

    #[test]
    fn one_element_is_found_by_keys_alone_but_for_the_most_frequent() {
        let of = |n, selection| of_selection(lines(n, 2), selection, false);
        assert_eq!(of(4096, Selection::Median), SortAlgorithm::Quickselect);
        assert_eq!(of(4097, Selection::Kth(9)), SortAlgorithm::FloydRivest);
        assert_eq!(of(4097, Selection::Mode), SortAlgorithm::Radix);
        assert_eq!(of_selection(lines(50, 9), Selection::Median, false), SortAlgorithm::Network);
        let ignoring = of_selection(lines(50, 9), Selection::Median, true);
        assert_eq!(ignoring, SortAlgorithm::Quickselect);
    }
}
