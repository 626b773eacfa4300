//! Runs of equal neighbours, for `unique_consecutive`: of elements, and of the rows of a matrix.
//!
//! Elements are equal as `==` says, so each NaN is a run of its own and both zeros are one. Everything is one pass in order;
//! first the runs are counted, whole registers at a time, so that results have their size from the beginning.

use crate::line::check_dtype;
use crate::{DType, Element, Error, Result, StridedMut, StridedRef, for_dtype, interrupt, memory};

/// Elements that can be compared.
trait Comparable: Element + PartialEq {}
impl<T: Element + PartialEq> Comparable for T {}

/// The elements of a dense view.
fn dense<'a, T: Element>(view: &StridedRef<'a>) -> Result<&'a [T]> {
    view.as_slice::<T>().ok_or_else(|| {
        Error::runtime(format!(
            "unique_consecutive: expected dense memory, got strides {:?}",
            view.strides()
        ))
    })
}

/// Runs `$body` with `$T` bound to the element type of a dtype that has runs.
macro_rules! for_runs {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::Bool => {
                type $T = crate::Bool;
                $body
            }
            dtype => {
                for_dtype!(dtype, real, $T => $body, else Err(Error::not_implemented("unique", dtype)))
            }
        }
    };
}

/// The number of runs of equal neighbouring elements in a dense view.
///
/// # Errors
/// For complex dtypes and views with gaps.
pub fn count_unique_consecutive(input: StridedRef<'_>) -> Result<usize> {
    for_runs!(input.dtype(), T => dense::<T>(&input).map(count))
}

crate::multiversion! {
fn count<T: Comparable>(items: &[T]) -> usize {
    let Some((_, later)) = items.split_first() else { return 0 };
    let mut runs = 1;
    for (at, (pairs, next)) in items.chunks(4096).zip(later.chunks(4096)).enumerate() {
        interrupt::check_every::<4>(at);
        let mut here = 0_u32;
        for (a, b) in pairs.iter().zip(next) {
            here += u32::from(a != b);
        }
        runs += here as usize;
    }
    runs
}
}

/// Writes the first element of each run of equal neighbours to `values`, whose length is [`count_unique_consecutive`]. Optional
/// dense `i64` outputs: `inverse`, the number of each element's run, and `counts`, the length of each run.
///
/// # Errors
/// For complex dtypes, views with gaps, and outputs of other dtypes and lengths.
pub fn unique_consecutive(
    values: &mut StridedMut<'_>,
    inverse: Option<&mut StridedMut<'_>>,
    counts: Option<&mut StridedMut<'_>>,
    input: StridedRef<'_>,
) -> Result<()> {
    check_dtype("unique_consecutive", values.dtype(), input.dtype())?;
    let (n, number) = (input.numel(), values.numel());
    let inverse = whole_numbers(inverse, n)?;
    let counts = whole_numbers(counts, number)?;
    for_runs!(input.dtype(), T => {
        let items = dense::<T>(&input)?;
        let found = count(items);
        let Some(values) = values.as_slice_mut::<T>().filter(|values| values.len() == found) else {
            return Err(Error::runtime(format!(
                "unique_consecutive: expected room for {found} values, but got {number}"
            )));
        };
        fill(items, values, inverse, counts);
        Ok(())
    })
}

/// The elements of an optional output, which must be dense, of `i64` and of length `n`.
fn whole_numbers<'a>(
    out: Option<&'a mut StridedMut<'_>>,
    n: usize,
) -> Result<Option<&'a mut [i64]>> {
    let Some(out) = out else { return Ok(None) };
    check_dtype("unique_consecutive", out.dtype(), DType::I64)?;
    let shape = out.shape();
    let Some(numbers) = out.as_slice_mut::<i64>().filter(|numbers| numbers.len() == n) else {
        return Err(Error::runtime(format!(
            "unique_consecutive: expected room for {n} numbers, but got shape {shape:?}"
        )));
    };
    Ok(Some(numbers))
}

/// Fills the requested outputs; there is a value for each run of equal elements.
fn fill<T: Comparable>(
    items: &[T],
    values: &mut [T],
    inverse: Option<&mut [i64]>,
    counts: Option<&mut [i64]>,
) {
    if items.is_empty() {
        return;
    }
    first_elements(items, values);
    if inverse.is_none() && counts.is_none() {
        return;
    }
    let (mut inverse, mut counts) = (inverse, counts);
    let (mut run, mut begin) = (0, 0);
    for i in interrupt::chunks(items.len()).flatten() {
        if i > 0 && items[i] != items[i - 1] {
            if let Some(counts) = &mut counts {
                counts[run] = (i - begin) as i64;
            }
            (run, begin) = (run + 1, i);
        }
        if let Some(inverse) = &mut inverse {
            inverse[i] = run as i64;
        }
    }
    if let Some(counts) = &mut counts {
        counts[run] = (items.len() - begin) as i64;
    }
}

/// Elements that are looked at together, for all of them may begin runs, or none.
const CHUNK: usize = 64;

/// The first elements of runs, of which there are as many as values.
fn first_elements<T: Comparable>(items: &[T], values: &mut [T]) {
    values[0] = items[0];
    let (mut done, mut next) = (1, 1);
    while next < values.len() {
        interrupt::check_every::<10>(done / CHUNK);
        let part = &items[done..items.len().min(done + CHUNK)];
        let runs = count(&items[done - 1..done + part.len()]) - 1;
        if runs == part.len() {
            values[next..next + runs].copy_from_slice(part);
        } else if runs > 0 {
            let (mut last, mut to) = (items[done - 1], next);
            for &item in part {
                // Each element is written to where the next run would begin, and stays there if one does: no branch to foresee.
                let Some(slot) = values.get_mut(to) else { break };
                *slot = item;
                to += usize::from(item != last);
                last = item;
            }
        }
        (done, next) = (done + part.len(), next + runs);
    }
}

/// The numbers of the rows that differ from the row before them, the first row included, of a dense matrix.
///
/// # Errors
/// For complex dtypes, views with gaps, and views that are not matrices.
pub fn unique_consecutive_rows(input: StridedRef<'_>) -> Result<Vec<i64>> {
    let &[rows, width] = input.shape() else {
        return Err(Error::runtime(format!(
            "unique_consecutive: expected a matrix, but got shape {:?}",
            input.shape()
        )));
    };
    let width = width as usize;
    for_runs!(input.dtype(), T => {
        let items = dense::<T>(&input)?;
        let row = |i: usize| &items[i * width..(i + 1) * width];
        let begins = |&i: &usize| {
            interrupt::check_every::<10>(i);
            i == 0 || row(i) != row(i - 1)
        };
        memory::collect((0..rows as usize).filter(begins).map(|i| i as i64))
    })
}
