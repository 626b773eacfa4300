//! Bags of rows: `embedding_bag`, and its gradient for the table.
//!
//! Entries come bag by bag; each names a row of the table. Rows are read where they are needed and converted one by one, so that a
//! large table costs what its entries cost. Threads share the bags, and in the gradient the columns, so that each sum is made by one
//! thread in order.

use super::{AHEAD, Accumulate, add_row, add_scaled_row, columns_each, prefetch_row};
use crate::dense::{Real, SharedMut, expect_shape, for_compute, load, store, with_output};
use crate::line::GRAIN;
use crate::parallel::try_for_range;
use crate::reduce::{Item, load_converted};
use crate::{Error, Result, StridedMut, StridedRef, interrupt, memory};

/// How the rows of a bag become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BagMode {
    /// Their sum.
    Sum,
    /// Their mean, zeros for an empty bag.
    Mean,
    /// The largest of each column (NaN wins), zeros for an empty bag.
    Max,
}

/// What is looked up.
pub struct BagInput<'a> {
    /// The table, `(rows, width)`.
    pub weight: StridedRef<'a>,
    /// The row of each entry.
    pub indices: StridedRef<'a>,
    /// The first entry of each bag.
    pub offsets: StridedRef<'a>,
    /// By which the row of each entry is multiplied, in a sum.
    pub factors: Option<StridedRef<'a>>,
}

/// How bags are made of entries.
#[derive(Clone, Copy)]
pub struct BagOptions {
    /// How the rows of a bag become one.
    pub mode: BagMode,
    /// Entries of this row are in no bag.
    pub padding_idx: Option<i64>,
    /// The last offset is the end of the last bag; entries behind it are in no bag.
    pub include_last_offset: bool,
}

/// Where the results go. The integers may be `i64` or `i32`.
pub struct BagOutput<'a, 'v> {
    /// `(bags, width)`.
    pub output: &'a mut StridedMut<'v>,
    /// The bag of each entry, -1 where it is in none; entries of `padding_idx` count to the bag around them.
    pub offset2bag: &'a mut StridedMut<'v>,
    /// How many entries each bag has, without those of `padding_idx`; zeros for sums.
    pub bag_size: &'a mut StridedMut<'v>,
    /// The row of each maximum, `(bags, width)`; of means the sizes of the bags, of sums zeros.
    pub max_indices: &'a mut StridedMut<'v>,
}

/// The rows of the entries, checked. For sums and means the error names the position of the invalid
/// entry.
fn checked_rows(indices: &[i64], rows: i64, options: BagOptions) -> Result<()> {
    let Some(place) = indices.iter().position(|row| !(0..rows).contains(row)) else {
        return Ok(());
    };
    let found = indices[place];
    Err(Error::runtime(if options.mode == BagMode::Max || options.padding_idx.is_some() {
        format!(
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {found}, with {rows} embeddings"
        )
    } else {
        format!(
            "Index {place} of input takes value {found} which is not in the valid range [0, {rows})"
        )
    }))
}

/// The first entry of each bag, and behind them the end of the last.
fn bounds(offsets: &[i64], entries: usize, include_last: bool) -> Result<Vec<usize>> {
    if let Some(&first) = offsets.first().filter(|&&first| first != 0) {
        return Err(Error::runtime(format!(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {first}"
        )));
    }
    if let Some(&last) = offsets.last().filter(|&&last| last > entries as i64) {
        return Err(Error::runtime(format!(
            "offsets[-1] can not be greater than input's length {entries} but got offsets[-1] of {last}"
        )));
    }
    if offsets.windows(2).any(|pair| pair[1] < pair[0]) {
        return Err(Error::runtime("embedding_bag: offsets have to be in ascending order".into()));
    }
    let mut all = memory::collect(offsets.iter().map(|&offset| offset as usize))?;
    if !include_last {
        memory::reserve(&mut all, 1)?;
        all.push(entries);
    }
    Ok(all)
}

/// The rows of a table as `T`.
struct EmbeddingTable<'a, T> {
    rows: Rows<'a, T>,
    width: usize,
}

enum Rows<'a, T> {
    /// Rows without gaps, of the dtype that is computed in.
    Dense(&'a [T]),
    /// Rows of any dtype and strides, which are converted as they are read.
    Strided(StridedRef<'a>),
}

impl<'a, T: Real + Item> EmbeddingTable<'a, T> {
    fn new(view: StridedRef<'a>) -> Self {
        let width = view.shape()[1] as usize;
        let rows = view.as_slice::<T>().map_or(Rows::Strided(view), Rows::Dense);
        EmbeddingTable { rows, width }
    }
    /// A row, in `own` if it is converted.
    fn row<'b>(&'b self, row: i64, own: &'b mut [T]) -> &'b [T] {
        match &self.rows {
            Rows::Dense(all) => &all[row as usize * self.width..][..self.width],
            Rows::Strided(view) => {
                let size = view.dtype().size() as isize;
                let [to_row, step] = [0, 1].map(|dim| view.strides()[dim] as isize * size);
                let first = view.ptr().wrapping_offset(row as isize * to_row);
                // SAFETY: the row was checked to lie in the view, whose dtype the loader is for.
                unsafe { load_converted::<T>(view.dtype())(first, step, own) };
                own
            }
        }
    }
    fn prefetch(&self, row: i64) {
        if let Rows::Dense(all) = &self.rows {
            let first = all.as_ptr().wrapping_add(row as usize * self.width);
            prefetch_row(first.cast(), self.width * size_of::<T>());
        }
    }
}

/// `output[b] = sum, mean or maximum of weight[indices[i]]` over the entries `i` of bag `b`, and what the gradient needs.
///
/// # Errors
/// For rows that the table lacks, offsets that do not begin at 0, fall, or end behind the entries; for other dtypes than floating ones.
pub fn embedding_bag(
    to: BagOutput<'_, '_>,
    from: &BagInput<'_>,
    options: BagOptions,
) -> Result<()> {
    let indices = load::<i64>(from.indices)?;
    checked_rows(&indices, from.weight.shape()[0], options)?;
    let bounds = bounds(&load::<i64>(from.offsets)?, indices.len(), options.include_last_offset)?;
    let bags = bounds.len().saturating_sub(1);
    expect_shape("output", to.output.shape(), &[bags as i64, from.weight.shape()[1]])?;
    let mut numbers = memory::filled(-1_i64, indices.len())?;
    let mut sizes = memory::filled(0_i64, bags)?;
    for (bag, pair) in bounds.windows(2).enumerate() {
        numbers[pair[0]..pair[1]].fill(bag as i64);
        if options.mode != BagMode::Sum {
            let is_kept = |row: &&i64| options.padding_idx != Some(**row);
            sizes[bag] = indices[pair[0]..pair[1]].iter().filter(is_kept).count() as i64;
        }
    }
    store(to.offset2bag, &numbers);
    store(to.bag_size, &sizes);
    let entries = Entries { indices: &indices, bounds: &bounds, options };
    for_compute!(from.weight.dtype(), "embedding_bag", T => {
        let table = EmbeddingTable::<T>::new(from.weight);
        let factors = from.factors.map(load::<T>).transpose()?;
        if let Some(factors) = &factors {
            expect_shape("per_sample_weights", &[factors.len() as i64], &[indices.len() as i64])?;
        }
        with_output::<T, _>(to.output, |output| {
            if options.mode == BagMode::Max {
                return with_output::<i64, _>(to.max_indices, |places| {
                    entries.maxima(&table, output, places)
                });
            }
            store(to.max_indices, &sizes);
            entries.sums(&table, factors.as_deref(), output)
        })
    })
}

/// The entries of all bags.
struct Entries<'a> {
    indices: &'a [i64],
    bounds: &'a [usize],
    options: BagOptions,
}

impl Entries<'_> {
    /// How many bags a thread takes at once.
    fn grain(&self, width: usize) -> usize {
        let work = self.indices.len().saturating_mul(width);
        let bags = self.bounds.len().max(2) - 1;
        (GRAIN / (work / bags).max(1)).max(1)
    }

    /// Calls `each` with the position and row of each entry of a bag.
    fn visit<T: Real + Item>(
        &self,
        bag: usize,
        table: &EmbeddingTable<'_, T>,
        own: &mut [T],
        mut each: impl FnMut(usize, i64, &[T]),
    ) {
        for place in self.bounds[bag]..self.bounds[bag + 1] {
            interrupt::check_every::<8>(place);
            if let Some(&next) = self.indices.get(place + AHEAD) {
                table.prefetch(next);
            }
            let row = self.indices[place];
            if self.options.padding_idx != Some(row) {
                each(place, row, table.row(row, own));
            }
        }
    }

    fn sums<T: Real + Item + Accumulate>(
        &self,
        table: &EmbeddingTable<'_, T>,
        factors: Option<&[T]>,
        output: &mut [T],
    ) -> Result<()> {
        let (width, out) = (table.width, SharedMut::new(output));
        let is_mean = self.options.mode == BagMode::Mean;
        try_for_range(self.bounds.len().saturating_sub(1), self.grain(width), &|bags| {
            let mut own = memory::filled(T::ZERO, width)?;
            for bag in bags {
                // SAFETY: a bag is one thread's.
                let sum = unsafe { out.slice(bag * width..(bag + 1) * width) };
                sum.fill(T::ZERO);
                let mut count = 0;
                self.visit(bag, table, &mut own, |place, _, x| {
                    count += 1;
                    match factors {
                        None => add_row(sum, x),
                        Some(factors) => add_scaled_row(sum, x, factors[place]),
                    }
                });
                if is_mean && count > 1 {
                    let count = T::of(f64::from(count));
                    for sum in sum.iter_mut() {
                        *sum /= count;
                    }
                }
            }
            Ok(())
        })
    }

    fn maxima<T: Real + Item>(
        &self,
        table: &EmbeddingTable<'_, T>,
        output: &mut [T],
        places: &mut [i64],
    ) -> Result<()> {
        let width = table.width;
        let (out, places) = (SharedMut::new(output), SharedMut::new(places));
        try_for_range(self.bounds.len().saturating_sub(1), self.grain(width), &|bags| {
            let mut own = memory::filled(T::ZERO, width)?;
            for bag in bags {
                let columns = bag * width..(bag + 1) * width;
                // SAFETY: a bag is one thread's.
                let (most, at) = unsafe { (out.slice(columns.clone()), places.slice(columns)) };
                most.fill(T::ZERO);
                at.fill(0);
                let mut is_empty = true;
                self.visit(bag, table, &mut own, |_, row, x| {
                    if std::mem::take(&mut is_empty) {
                        most.copy_from_slice(x);
                        at.fill(row);
                        return;
                    }
                    for ((most, at), &x) in most.iter_mut().zip(at.iter_mut()).zip(x) {
                        // (The first NaN is kept.)
                        if x > *most || (x.is_nan() && !most.is_nan()) {
                            (*most, *at) = (x, row);
                        }
                    }
                });
            }
            Ok(())
        })
    }
}

/// What the gradient for the table is made of.
pub struct BagGradient<'a> {
    /// The gradient of the output, `(bags, width)`.
    pub grad: StridedRef<'a>,
    /// The row of each entry.
    pub indices: StridedRef<'a>,
    /// The bag of each entry, negative for entries in none.
    pub offset2bag: StridedRef<'a>,
    /// The factor by which the row of each entry was multiplied.
    pub factors: Option<StridedRef<'a>>,
}

/// The gradient of a sum or mean for the table: `grad_weight[r] = sum of grad[b]` over the entries of row `r`, each multiplied by its factor,
/// divided by the size of its bag for means, and with `scale_grad_by_freq` by how often its row occurs.
///
/// # Errors
/// For rows and bags that are not there; for maxima, whose gradient goes to the rows of `max_indices`.
pub fn embedding_bag_backward(
    grad_weight: &mut StridedMut<'_>,
    from: &BagGradient<'_>,
    mode: BagMode,
    padding_idx: Option<i64>,
    scale_grad_by_freq: bool,
) -> Result<()> {
    let (indices, numbers) = (load::<i64>(from.indices)?, load::<i64>(from.offset2bag)?);
    let (rows, bags) = (grad_weight.shape()[0], from.grad.shape()[0]);
    expect_shape("offset2bag", &[numbers.len() as i64], &[indices.len() as i64])?;
    expect_shape("grad", from.grad.shape(), &[bags, grad_weight.shape()[1]])?;
    let options = BagOptions { mode, padding_idx, include_last_offset: false };
    checked_rows(&indices, rows, options)?;
    if mode == BagMode::Max {
        return Err(Error::runtime("embedding_bag: the gradient of maxima is a scatter".into()));
    }
    if let Some(bag) = numbers.iter().find(|&&bag| bag >= bags) {
        return Err(Error::runtime(format!(
            "embedding_bag: offset2bag names bag {bag}, but there are {bags}"
        )));
    }
    let is_kept = |place: usize| numbers[place] >= 0 && padding_idx != Some(indices[place]);
    let count = |length: i64, names: &[i64]| -> Result<Vec<i64>> {
        let mut counts = memory::filled(0_i64, length as usize)?;
        let kept = (0..indices.len()).filter(|&place| is_kept(place));
        kept.for_each(|place| counts[names[place] as usize] += 1);
        Ok(counts)
    };
    let sizes = if mode == BagMode::Mean { Some(count(bags, &numbers)?) } else { None };
    let often = if scale_grad_by_freq { Some(count(rows, &indices)?) } else { None };
    for_compute!(from.grad.dtype(), "embedding_bag_backward", T => {
        let (grad, width) = (load::<T>(from.grad)?, from.grad.shape()[1] as usize);
        let factors = from.factors.map(load::<T>).transpose()?;
        if let Some(factors) = &factors {
            expect_shape("per_sample_weights", &[factors.len() as i64], &[indices.len() as i64])?;
        }
        let scale = |place: usize| -> T {
            let mut scale = factors.as_ref().map_or(T::ONE, |factors| factors[place]);
            if let Some(sizes) = &sizes {
                scale /= T::of(sizes[numbers[place] as usize] as f64);
            }
            if let Some(often) = &often {
                scale /= T::of(often[indices[place] as usize] as f64);
            }
            scale
        };
        with_output::<T, _>(grad_weight, |out| {
            out.fill(T::ZERO);
            let out = SharedMut::new(out);
            try_for_range(width, columns_each(width, indices.len()), &|columns| {
                for place in (0..indices.len()).filter(|&place| is_kept(place)) {
                    interrupt::check_every::<8>(place);
                    let at = |row: i64| row as usize * width + columns.start;
                    // SAFETY: rows were checked; these columns are this thread's.
                    let sum = unsafe { out.slice(at(indices[place])..at(indices[place]) + columns.len()) };
                    let x = &grad[at(numbers[place])..][..columns.len()];
                    add_scaled_row(sum, x, scale(place));
                }
                Ok(())
            })
        })
    })
}
