//! Work on the rows of a list, which differ in size.

use super::try_for_range;
use crate::Result;

/// Calls `work` with the index of each of `count` rows, of which `size` gives the size, and returns the first error; rows not
/// yet begun are then skipped. Rows up to `grain` run in groups of about that size, on several threads; larger ones follow, one
/// after the other in the calling thread, since they share themselves out. Groups depend on the sizes alone.
pub fn try_for_rows(
    count: usize,
    grain: usize,
    size: &(dyn Fn(usize) -> usize + Sync),
    work: &(dyn Fn(usize) -> Result<()> + Sync),
) -> Result<()> {
    let is_small = |row: &usize| size(*row) <= grain;
    let total: usize = (0..count).filter(is_small).map(size).sum();
    let rows = count.saturating_mul(grain).div_ceil(total.max(1));
    try_for_range(count, rows, &|mut range| range.by_ref().filter(is_small).try_for_each(work))?;
    (0..count).filter(|row| !is_small(row)).try_for_each(work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use std::sync::Mutex;

    fn visited(sizes: &[usize], grain: usize) -> Vec<usize> {
        let seen = Mutex::new(Vec::new());
        let work = |row| {
            seen.lock().unwrap().push(row);
            Ok(())
        };
        try_for_rows(sizes.len(), grain, &|row| sizes[row], &work).unwrap();
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        seen
    }

    #[test]
    fn each_row_has_its_turn_once() {
        for sizes in [&[][..], &[0], &[0, 0, 0], &[1; 100], &[5, 1000, 1, 2000, 3], &[1000, 1000]] {
            for grain in [1, 10, 100_000] {
                let all: Vec<usize> = (0..sizes.len()).collect();
                assert_eq!(visited(sizes, grain), all, "{sizes:?} {grain}");
            }
        }
    }

    #[test]
    fn the_error_of_a_row_is_returned() {
        for bad in [0, 3, 9] {
            let refused = || Error::runtime(format!("row {bad}"));
            let work = |row| if row == bad { Err(refused()) } else { Ok(()) };
            let found = try_for_rows(10, 4, &|row| if row == 3 { 100 } else { 1 }, &work);
            assert_eq!(found, Err(refused()));
        }
    }
}
