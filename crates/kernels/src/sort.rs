//! Sorting along a dimension: `sort`, `argsort`, `topk`, `kthvalue`, `median`, `mode`, and `unique`
//! of all elements; `unique_consecutive` finds equal neighbours.
//!
//! Every element becomes an unsigned key whose order is the order of the result (NaN above everything, both
//! zeros equal), packed with its index; a pair is therefore unique and any sort of pairs is stable.
//! Long lines are sorted by radix, shorter ones by comparison, several short ones side by side (`network`); `algorithm` chooses.
//! Descending order inverts the key, so ties still keep their original order.

mod algorithm;
mod key;
mod network;
mod radix;
mod select;
mod unique_consecutive;

pub use unique_consecutive::{
    count_unique_consecutive, unique_consecutive, unique_consecutive_rows,
};

use crate::line::{
    LineIter, ViewLayout, along, check_dim, check_dtype, check_shape, get, put, read_line,
};
use crate::plan::announce;
use crate::{Bool, DType, Error, Result, StridedMut, StridedRef, for_dtype, interrupt, memory};
use algorithm::{LineSizes, SortAlgorithm};
use key::{KeyBits, SortKey, nan_key};
use network::{Selection, middle};
use radix::{Pair, SortWorkspace, WidePair, flip_of, read_pairs, sort_pairs};
use select::SelectWorkspace;
use smallvec::SmallVec;

/// Calls `$f::<T, P>` with the element type of `$dtype` and the pair type that suits it and lines of `$n`.
macro_rules! with_pair {
    ($dtype:expr, $n:expr, $f:ident($($arg:expr),*), else $other:expr) => {{
        let is_short = u32::try_from($n).is_ok();
        match $dtype {
            DType::Bool => if is_short { $f::<Bool, u64>($($arg),*) } else { $f::<Bool, WidePair>($($arg),*) },
            dtype => for_dtype!(dtype, real, T => {
                if key::is_narrow::<T>() && is_short { $f::<T, u64>($($arg),*) } else { $f::<T, WidePair>($($arg),*) }
            }, else $other),
        }
    }};
}

/// Sorts along `dim`, stably: `values` ascending (or descending) and the `indices` they came from. NaN counts as the
/// largest value.
///
/// # Errors
/// For complex dtypes.
pub fn sort(
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
    descending: bool,
) -> Result<()> {
    check_dtype("sort", values.dtype(), input.dtype())?;
    check_shape("sort", values.shape(), input.shape())?;
    sort_into(Some(values), indices, &input, dim, descending)
}

/// The indices that sort `input` along `dim` stably, ascending or descending: the `indices` of [`sort`].
///
/// # Errors
/// For complex dtypes.
pub fn argsort(
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
    descending: bool,
) -> Result<()> {
    sort_into(None, indices, &input, dim, descending)
}

fn sort_into(
    values: Option<&StridedMut<'_>>,
    indices: &StridedMut<'_>,
    input: &StridedRef<'_>,
    dim: usize,
    descending: bool,
) -> Result<()> {
    check_dim(dim, input.ndim())?;
    check_dtype("sort", indices.dtype(), DType::I64)?;
    check_shape("sort", indices.shape(), input.shape())?;
    let (n, _) = along(input.shape(), input, dim);
    // Lines without elements may be too many to walk through.
    if input.numel() == 0 {
        return Ok(());
    }
    with_pair!(input.dtype(), n, sort_lines(values, indices, input, dim, descending), else {
        Err(Error::unsupported(" Sort does not support complex dtypes on CPU".into()))
    })
}

/// The sizes of lines that have `n` elements of `T`.
fn sizes_of<T, const V: usize>(lines: &LineIter<V>, n: usize) -> LineSizes {
    let are_adjacent = lines.inner().is_some_and(|strides| strides[0] == size_of::<T>() as isize);
    LineSizes { n, count: lines.count(), are_adjacent }
}

fn sort_lines<T: SortKey, P: Pair>(
    values: Option<&StridedMut<'_>>,
    indices: &StridedMut<'_>,
    input: &StridedRef<'_>,
    dim: usize,
    descending: bool,
) -> Result<()> {
    let shape = input.shape();
    let (n, step) = along(shape, input, dim);
    let (_, index_step) = along(shape, indices, dim);
    let value_view = values.map_or(ViewLayout::from(indices), ViewLayout::from);
    let (_, value_step) = values.map_or((n, 0), |v| along(shape, v, dim));
    let views = [ViewLayout::from(input), value_view, ViewLayout::from(indices)];
    let lines = LineIter::new(shape, Some(dim), views);
    let flip = flip_of::<T>(descending);
    let algorithm = algorithm::of_sort(sizes_of::<T, _>(&lines, n));
    announce("sort", &algorithm);
    if algorithm.is_side_by_side() {
        network::lines::<T>(values, indices, input, dim, flip, Selection::FirstK(n));
        return Ok(());
    }
    let grain = (4096 / n.max(1)).max(1);
    crate::parallel::try_for_restartable_range(lines.count(), grain, &|range| {
        let mut workspace = SortWorkspace::<P>::new(n)?;
        lines.visit(range, |[from, to, index_to]| {
            let line = input.ptr().wrapping_offset(from);
            read_pairs::<T, P>(line, step, n, flip, &mut workspace.pairs);
            sort_pairs(&mut workspace);
            for (i, p) in workspace.pairs.iter().enumerate() {
                interrupt::check_every::<14>(i);
                let i = i as isize;
                // SAFETY: the line lies inside the views, whose dtypes were checked.
                unsafe {
                    put(indices.ptr().offset(index_to), i * index_step, p.index() as i64);
                    if let Some(values) = values {
                        let value: T = get(line, p.index() as isize * step);
                        put(values.ptr().offset(to), i * value_step, value);
                    }
                }
            }
        });
        Ok(())
    })
}

/// The `k` largest (or smallest) values along `dim`, best first, and their indices; of equal values the first ones.
///
/// # Errors
/// If `k` exceeds the size; for bool and complex dtypes.
pub fn topk(
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    (k, dim): (usize, usize),
    largest: bool,
) -> Result<()> {
    check_dim(dim, input.ndim())?;
    let (n, _) = along(input.shape(), &input, dim);
    if k > n {
        return Err(Error::runtime("selected index k out of range".into()));
    }
    check_dtype("topk", values.dtype(), input.dtype())?;
    check_dtype("topk", indices.dtype(), DType::I64)?;
    check_shape("topk", indices.shape(), values.shape())?;
    check_selected("topk", values, &input, dim, k)?;
    let kind = match input.dtype() {
        DType::Bool => "bool",
        dtype if dtype.is_complex() => "complex",
        _ => "",
    };
    if !kind.is_empty() {
        return Err(Error::unsupported(format!("topk does not support {kind} dtypes on CPU")));
    }
    let (values, indices) = (&*values, &*indices);
    let input = &input;
    with_pair!(input.dtype(), n, topk_lines(values, indices, input, (k, dim), largest), else {
        Ok(())
    })
}

/// Refuses an output that is not the input's shape with size `k` along `dim`.
fn check_selected(
    name: &str,
    out: &StridedMut<'_>,
    input: &StridedRef<'_>,
    dim: usize,
    k: usize,
) -> Result<()> {
    let fits = out.ndim() == input.ndim()
        && out
            .shape()
            .iter()
            .zip(input.shape())
            .enumerate()
            .all(|(d, (&o, &s))| if d == dim { o == k as i64 } else { o == s });
    if fits {
        return Ok(());
    }
    // bounded: by the rank.
    let mut expected = input.shape().to_vec();
    if let Some(size) = expected.get_mut(dim) {
        *size = k as i64;
    }
    check_shape(name, out.shape(), &expected)
}

/// Elements that are looked at together for candidates.
const GROUP: usize = 64;

/// How many candidates are kept before they are cut down to `k`.
fn capacity(k: usize) -> usize {
    4 * k + GROUP
}

/// Keeps the best `k` of these pairs, sorted.
fn keep_best<P: Pair>(k: usize, pairs: &mut Vec<P>) {
    let is_long = pairs.len() > LONG;
    if k < pairs.len() && k > 0 {
        if is_long {
            pairs.select_nth_unstable_by(k - 1, interrupt::interruptible_cmp());
        } else {
            pairs.select_nth_unstable(k - 1);
        }
    }
    pairs.truncate(k);
    if is_long {
        pairs.sort_unstable_by(interrupt::interruptible_cmp());
    } else {
        pairs.sort_unstable();
    }
}

/// More pairs than this are sorted and selected among with looks for an interruption.
const LONG: usize = 1 << 18;

/// Longest part of a line that is looked at beforehand, which stays in the nearest cache.
const PREVIEW: usize = 2048;

crate::multiversion! {
/// The smallest keys of the positions that are equal modulo `GROUP`; there are whole groups.
fn smallest<T: SortKey>(items: &[T], flip: u64) -> [u64; GROUP] {
    let mut least = [u64::MAX; GROUP];
    let (groups, _) = items.as_chunks::<GROUP>();
    for group in groups {
        for (least, item) in least.iter_mut().zip(group) {
            *least = (item.key() ^ flip).min(*least);
        }
    }
    least
}
}

/// A key below which, it included, there are at least `k` of these: the `k`-th smallest of the smallest of many groups.
fn threshold_of<T: SortKey>(items: &[T], k: usize, flip: u64) -> u64 {
    let least = smallest(items, flip);
    let mut some: SmallVec<[u64; GROUP]> = SmallVec::from_slice(&least);
    // Few groups are sorted sooner, and nearly as good.
    while some.len() >= 8 * k.max(2) {
        let half = some.len() / 2;
        for i in 0..half {
            some[i] = some[i].min(some[i + half]);
        }
        some.truncate(half);
    }
    *some.select_nth_unstable(k - 1).1
}

/// Collects pairs that may be among the best `k`: whenever the buffer is full, it is cut down to the best `k`, the worst of
/// which is from then on the threshold that others must beat.
fn candidates<T: SortKey, P: Pair>(
    ptr: *const u8,
    step: isize,
    (n, k): (usize, usize),
    flip: u64,
    pairs: &mut Vec<P>,
) {
    let capacity = capacity(k);
    pairs.clear();
    let mut threshold = u64::MAX;
    if (1..=GROUP / 4).contains(&k) && step == size_of::<T>() as isize && n >= 2 * GROUP {
        // SAFETY: the caller gives a line of `n` elements of `T`, here without gaps.
        let preview = unsafe { std::slice::from_raw_parts(ptr.cast::<T>(), n.min(PREVIEW)) };
        // One above: equal ones are wanted.
        threshold = threshold_of(preview, k, flip).saturating_add(1);
    }
    let mut items = [T::default(); GROUP];
    for at in (0..n).step_by(GROUP) {
        interrupt::check_every::<8>(at / GROUP);
        let length = GROUP.min(n - at);
        // SAFETY: the caller gives a line of `n` elements of `T`.
        unsafe { read_line(ptr.offset(at as isize * step), step, &mut items[..length]) };
        if !beats(&items, flip, threshold) {
            continue;
        }
        for (i, &item) in items[..length].iter().enumerate() {
            let key = item.key() ^ flip;
            // An equal key that comes later is never better, but before the first cut all are wanted.
            if key < threshold || threshold == u64::MAX {
                // bounded: there is room for the capacity.
                pairs.push(P::new(key, at + i));
            }
        }
        if pairs.len() + GROUP > capacity && k > 0 {
            if pairs.len() > LONG {
                pairs.select_nth_unstable_by(k - 1, interrupt::interruptible_cmp());
            } else {
                pairs.select_nth_unstable(k - 1);
            }
            threshold = pairs[k - 1].key();
            pairs.truncate(k);
        }
    }
}

crate::multiversion! {
/// Whether any key of the group is below the threshold (the tail of a short group may say yes for nothing).
fn beats<T: SortKey>(items: &[T; GROUP], flip: u64, threshold: u64) -> bool {
    let mut any = threshold == u64::MAX;
    for item in items {
        any |= (item.key() ^ flip) < threshold;
    }
    any
}
}

fn topk_lines<T: SortKey, P: Pair>(
    values: &StridedMut<'_>,
    indices: &StridedMut<'_>,
    input: &StridedRef<'_>,
    (k, dim): (usize, usize),
    largest: bool,
) -> Result<()> {
    // Nothing is written, and candidates would never be cut down.
    if k == 0 {
        return Ok(());
    }
    let (n, step) = along(input.shape(), input, dim);
    let (_, value_step) = along(input.shape(), values, dim);
    let (_, index_step) = along(input.shape(), indices, dim);
    let views = [ViewLayout::from(input), ViewLayout::from(values), ViewLayout::from(indices)];
    let lines = LineIter::new(input.shape(), Some(dim), views);
    let flip = flip_of::<T>(largest);
    let algorithm = algorithm::of_topk(sizes_of::<T, _>(&lines, n), k);
    announce("topk", &algorithm);
    if algorithm.is_side_by_side() {
        network::lines::<T>(Some(values), indices, input, dim, flip, Selection::FirstK(k));
        return Ok(());
    }
    let has_candidates = algorithm == SortAlgorithm::Candidates;
    crate::parallel::try_for_restartable_range(
        lines.count(),
        (16_384 / n.max(1)).max(1),
        &|range| {
            let mut pairs = memory::with_capacity::<P>(n.min(capacity(k)))?;
            lines.visit(range, |[from, to, index_to]| {
                let line = input.ptr().wrapping_offset(from);
                if has_candidates {
                    candidates::<T, P>(line, step, (n, k), flip, &mut pairs);
                } else {
                    read_pairs::<T, P>(line, step, n, flip, &mut pairs);
                }
                keep_best(k, &mut pairs);
                for (i, p) in pairs.iter().enumerate() {
                    interrupt::check_every::<14>(i);
                    let i = i as isize;
                    // SAFETY: the line lies inside the views, whose dtypes were checked.
                    unsafe {
                        put(indices.ptr().offset(index_to), i * index_step, p.index() as i64);
                        let value: T = get(line, p.index() as isize * step);
                        put(values.ptr().offset(to), i * value_step, value);
                    }
                }
            });
            Ok(())
        },
    )
}

/// The `k`-th smallest value along `dim` (`k` counts from 1) and its index; outputs have size 1 there. NaN counts as the
/// largest value; of equal values the one that a stable sort puts at `k`.
///
/// # Errors
/// If `k` is not in `1..=size`; for bool and complex dtypes.
pub fn kthvalue(
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    k: usize,
    dim: usize,
) -> Result<()> {
    let n = line_length("kthvalue", &input, dim)?;
    if k == 0 || k > n {
        return Err(Error::runtime(format!(
            "kthvalue(): selected number k out of range for dimension {dim}"
        )));
    }
    let dtype = input.dtype();
    if dtype == DType::Bool || dtype.is_complex() {
        return Err(Error::not_implemented("kthvalue_cpu", dtype));
    }
    select_element("kthvalue", values, indices, input, Selection::Kth(k - 1), dim)
}

/// The lower median along `dim`, or the first NaN if there is one, and its index; outputs have size 1 there.
///
/// # Errors
/// If lines have no elements; for bool and complex dtypes.
pub fn median(
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    if input.dtype() == DType::Bool {
        return Err(Error::not_implemented("median_out", DType::Bool));
    }
    select_element("median", values, indices, input, Selection::Median, dim)
}

/// The lower median along `dim` of what is not NaN, or the first NaN if nothing else is there, and its index; outputs have
/// size 1 there.
///
/// # Errors
/// If lines have no elements; for bool and complex dtypes.
pub fn nanmedian(
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    let n = line_length("median", &input, dim)?;
    if input.dtype() == DType::Bool {
        return Err(Error::not_implemented("median_out", DType::Bool));
    }
    if !may_have_nan(&input) {
        return select_element("median", values, indices, input, Selection::Kth(middle(n)), dim);
    }
    select_element_with("median", values, indices, input, (Selection::Median, true), dim)
}

/// Whether there is a NaN, or could be one as the view has gaps.
fn may_have_nan(input: &StridedRef<'_>) -> bool {
    fn any<T: PartialEq>(items: &[T]) -> bool {
        // (Only NaN differs from itself.)
        items.chunks(1024).enumerate().any(|(at, part)| {
            interrupt::check_every::<6>(at);
            part.iter().fold(false, |any, item| {
                #[allow(clippy::eq_op, reason = "a number differs from itself if it is NaN")]
                let is_nan = item != item;
                any | is_nan
            })
        })
    }
    for_dtype!(input.dtype(), float, T => input.as_slice::<T>().is_none_or(any), else false)
}

/// The most frequent value along `dim` and its last index; outputs have size 1 there. Of equally frequent values the
/// smallest; each NaN is a value of its own.
///
/// # Errors
/// If lines have no elements; for complex dtypes.
pub fn mode(
    values: &mut StridedMut<'_>,
    indices: &mut StridedMut<'_>,
    input: StridedRef<'_>,
    dim: usize,
) -> Result<()> {
    select_element("mode", values, indices, input, Selection::Mode, dim)
}

/// The length of lines, of which none may be empty.
fn line_length(name: &str, input: &StridedRef<'_>, dim: usize) -> Result<usize> {
    check_dim(dim, input.ndim())?;
    match along(input.shape(), input, dim).0 {
        0 => Err(Error::index(format!(
            "{name}(): Expected reduction dim {dim} to have non-zero size."
        ))),
        n => Ok(n),
    }
}

/// One element of each line and its index.
fn select_element(
    name: &str,
    values: &StridedMut<'_>,
    indices: &StridedMut<'_>,
    input: StridedRef<'_>,
    selection: Selection,
    dim: usize,
) -> Result<()> {
    select_element_with(name, values, indices, input, (selection, false), dim)
}

/// [`select_element`] with a second part of `selection`: whether a median ignores NaN.
fn select_element_with(
    name: &str,
    values: &StridedMut<'_>,
    indices: &StridedMut<'_>,
    input: StridedRef<'_>,
    selection: (Selection, bool),
    dim: usize,
) -> Result<()> {
    let n = line_length(name, &input, dim)?;
    check_dtype(name, values.dtype(), input.dtype())?;
    check_dtype(name, indices.dtype(), DType::I64)?;
    check_shape(name, indices.shape(), values.shape())?;
    check_selected(name, values, &input, dim, 1)?;
    let input = &input;
    with_pair!(input.dtype(), n, select_lines(values, indices, input, selection, dim), else {
        Err(Error::not_implemented(name, input.dtype()))
    })
}

/// The index of the last of the first longest run of equal elements, of a line of pairs.
fn mode_index<T: SortKey, P: Pair>(workspace: &mut SortWorkspace<P>) -> usize {
    let nan = nan_key::<T>();
    sort_pairs(workspace);
    let (mut longest, mut mode) = (0, 0);
    let mut pace = interrupt::WorkCounter::new();
    for run in workspace.pairs.chunk_by(|a, b| a.key() == b.key() && Some(a.key()) != nan) {
        pace.spend(run.len());
        if let Some(last) = run.last().filter(|_| run.len() > longest) {
            (longest, mode) = (run.len(), last.index());
        }
    }
    mode
}

fn select_lines<T: SortKey, P: Pair>(
    values: &StridedMut<'_>,
    indices: &StridedMut<'_>,
    input: &StridedRef<'_>,
    (selection, ignores_nan): (Selection, bool),
    dim: usize,
) -> Result<()> {
    let (n, step) = along(input.shape(), input, dim);
    let views = [ViewLayout::from(input), ViewLayout::from(values), ViewLayout::from(indices)];
    let lines = LineIter::new(input.shape(), Some(dim), views);
    let algorithm = algorithm::of_selection(sizes_of::<T, _>(&lines, n), selection, ignores_nan);
    announce("selection of an element", &algorithm);
    if algorithm.is_side_by_side() {
        network::lines::<T>(Some(values), indices, input, dim, 0, selection);
        return Ok(());
    }
    crate::parallel::try_for_restartable_range(lines.count(), (16_384 / n).max(1), &|range| {
        let mut workspace =
            SortWorkspace::<P>::new(if selection == Selection::Mode { n } else { 0 })?;
        let mut keys = SelectWorkspace::new(if selection == Selection::Mode { 0 } else { n })?;
        lines.visit(range, |[from, to, index_to]| {
            let line = input.ptr().wrapping_offset(from);
            let at = match selection {
                Selection::FirstK(at) | Selection::Kth(at) => Some(at),
                Selection::Median => Some(middle(n)),
                Selection::Mode => None,
            };
            let index = if let Some(at) = at {
                // SAFETY: a line of the input.
                unsafe { read_keys::<T>(line, step, keys.line()) };
                let at = if ignores_nan { middle(keys.count_non_nan().max(1)) } else { at };
                let nan_counts = selection == Selection::Median && !ignores_nan;
                keys.position(at, nan_counts && nan_key::<T>().is_some())
            } else {
                read_pairs::<T, P>(line, step, n, 0, &mut workspace.pairs);
                mode_index::<T, P>(&mut workspace)
            };
            // SAFETY: the line lies inside the views, whose dtypes were checked.
            unsafe {
                put(indices.ptr(), index_to, index as i64);
                put(values.ptr(), to, get::<T>(line, index as isize * step));
            }
        });
        Ok(())
    })
}

/// Reads the keys of a line.
///
/// # Safety
/// There are as many elements, `step` bytes apart.
unsafe fn read_keys<T: SortKey>(line: *const u8, step: isize, keys: &mut [T::Key]) {
    if step == size_of::<T>() as isize {
        // SAFETY: the elements have no gaps.
        let line = unsafe { std::slice::from_raw_parts(line.cast::<T>(), keys.len()) };
        return interrupt::chunks(keys.len()).for_each(|part| {
            keys_of(&line[part.clone()], &mut keys[part]);
        });
    }
    for (i, key) in keys.iter_mut().enumerate() {
        interrupt::check_every::<14>(i);
        // SAFETY: the caller's promise.
        *key = T::Key::of(unsafe { get::<T>(line, i as isize * step) }.key());
    }
}

crate::multiversion! {
fn keys_of<T: SortKey>(line: &[T], keys: &mut [T::Key]) {
    for (key, item) in keys.iter_mut().zip(line) {
        *key = T::Key::of(item.key());
    }
}
}

/// The distinct elements of a tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unique {
    /// Flat position of the first occurrence of each distinct element, in ascending order of elements; reading
    /// the input there (`index::take`) gives the sorted distinct elements.
    pub positions: Vec<i64>,
    /// For each element of the input, in row-major order, the number of its distinct element.
    pub inverse: Vec<i64>,
    /// How often each distinct element occurs.
    pub counts: Vec<i64>,
}

/// The distinct elements in ascending order. Each NaN counts as distinct, as in PyTorch; both zeros are one.
///
/// # Errors
/// For complex dtypes.
pub fn unique(input: StridedRef<'_>) -> Result<Unique> {
    let n = input.numel();
    with_pair!(input.dtype(), n, unique_of(&input), else {
        Err(Error::not_implemented("unique", input.dtype()))
    })
}

fn unique_of<T: SortKey, P: Pair>(input: &StridedRef<'_>) -> Result<Unique> {
    let n = input.numel();
    let mut workspace = SortWorkspace::<P>::new(n)?;
    let nan_key = nan_key::<T>();
    let lines = LineIter::new(input.shape(), None, [ViewLayout::from(input)]);
    lines.visit(0..lines.count(), |[at]| {
        // SAFETY: the walk stays inside the view.
        let value: T = unsafe { get(input.ptr(), at) };
        // bounded: there is room.
        workspace.pairs.push(P::new(value.key(), workspace.pairs.len()));
    });
    announce("unique", &algorithm::of_pairs(n));
    sort_pairs(&mut workspace);
    let mut found = Unique { inverse: memory::filled(0, n)?, ..Unique::default() };
    let mut last = None;
    for (at, p) in workspace.pairs.into_iter().enumerate() {
        interrupt::check_every::<14>(at);
        if last != Some(p.key()) || nan_key == last {
            memory::push(&mut found.positions, p.index() as i64)?;
            memory::push(&mut found.counts, 0)?;
            last = Some(p.key());
        }
        let number = found.counts.len() - 1;
        found.counts[number] += 1;
        found.inverse[p.index()] = number as i64;
    }
    Ok(found)
}
