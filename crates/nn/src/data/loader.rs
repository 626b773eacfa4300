//! Batches of a dataset, made ahead by threads if there are any.

use super::sampler::draw_seed;
use super::worker::Workers;
use super::{Collate, Dataset, RandomSampler, Sampler, SequentialSampler};
use pullback::{Error, Generator, Result};
use std::fmt;
use std::sync::Arc;

/// Options of [`DataLoader`].
#[derive(Clone)]
pub struct DataLoaderOptions {
    /// The number of examples of a batch.
    pub batch_size: usize,
    /// Whether examples come in another random order in each pass.
    pub shuffle: bool,
    /// Whether a last batch that is smaller is left out.
    pub drop_last: bool,
    /// The number of threads that make batches; with none, batches are made when they are
    /// requested.
    pub workers: usize,
    /// The number of batches that each thread may be ahead.
    pub prefetch: usize,
    /// The order of examples, in place of the one that `shuffle` selects.
    pub sampler: Option<Arc<dyn Sampler>>,
    /// The generator of the order, the default one if there is none.
    pub generator: Option<Generator>,
}

impl Default for DataLoaderOptions {
    fn default() -> Self {
        DataLoaderOptions {
            batch_size: 1,
            shuffle: false,
            drop_last: false,
            workers: 0,
            prefetch: 2,
            sampler: None,
            generator: None,
        }
    }
}

impl fmt::Debug for DataLoaderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataLoaderOptions")
            .field("batch_size", &self.batch_size)
            .field("shuffle", &self.shuffle)
            .field("drop_last", &self.drop_last)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

/// Batches of a dataset, in order whatever the number of threads.
///
/// ```
/// use pullback_nn::prelude::*;
/// # fn main() -> Result<()> {
/// let data = TensorDataset::new([Tensor::arange(0, 10)?, Tensor::arange(10, 20)?])?;
/// let options = DataLoaderOptions { batch_size: 4, workers: 2, ..Default::default() };
/// let loader = DataLoader::new(data, options)?;
/// let mut sizes = vec![];
/// for batch in loader.iter()? {
///     let [x, y] = batch?;
///     assert!(y.sub(&x)?.eq(&Tensor::full((), 10)?)?.all()?.is_nonzero()?);
///     sizes.push(x.numel());
/// }
/// assert_eq!(sizes, [4, 4, 2]);
/// # Ok(())
/// # }
/// ```
pub struct DataLoader<D> {
    data: Arc<D>,
    options: DataLoaderOptions,
}

impl<D: Dataset> DataLoader<D> {
    /// Batches of a dataset.
    ///
    /// # Errors
    /// `ValueError` for a batch of no examples, and for a sampler beside `shuffle`.
    pub fn new(data: D, options: DataLoaderOptions) -> Result<Self> {
        if options.batch_size == 0 {
            return Err(Error::value(
                "batch_size should be a positive integer value, but got batch_size=0",
            ));
        }
        if options.sampler.is_some() && options.shuffle {
            return Err(Error::value("sampler option is mutually exclusive with shuffle"));
        }
        Ok(DataLoader { data: Arc::new(data), options })
    }
    /// The dataset.
    pub fn dataset(&self) -> &D {
        &self.data
    }
    /// The number of batches of a pass, unless a sampler has another number of examples.
    pub fn len(&self) -> usize {
        let (count, size) = (self.data.len(), self.options.batch_size);
        if self.options.drop_last { count / size } else { count.div_ceil(size) }
    }
    /// Whether a pass has no batches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers of the examples of each batch of a pass.
    fn batches(&self) -> Result<Vec<Vec<usize>>> {
        let (len, generator) = (self.data.len(), self.options.generator.clone());
        // PyTorch draws a seed for its workers before the order.
        draw_seed(generator.as_ref())?;
        let indices = match &self.options.sampler {
            Some(sampler) => sampler.indices()?,
            None if self.options.shuffle => RandomSampler { len, generator }.indices()?,
            None => SequentialSampler { len }.indices()?,
        };
        let mut batches: Vec<Vec<usize>> =
            indices.chunks(self.options.batch_size).map(<[usize]>::to_vec).collect();
        let short = |batch: &Vec<usize>| batch.len() < self.options.batch_size;
        if self.options.drop_last && batches.last().is_some_and(short) {
            batches.pop();
        }
        Ok(batches)
    }
}

impl<D> DataLoader<D>
where
    D: Dataset + 'static,
    D::Item: Collate,
{
    /// One pass over the batches.
    ///
    /// # Errors
    /// Those of drawing the order, `RuntimeError` if no thread can be started.
    #[allow(clippy::iter_not_returning_iterator, reason = "drawing the order can fail")]
    pub fn iter(&self) -> Result<Batches<D>> {
        let batches = self.batches()?;
        let source = if self.options.workers == 0 {
            BatchSource::Here { data: self.data.clone(), batches: batches.into_iter() }
        } else {
            let (workers, prefetch) = (self.options.workers, self.options.prefetch);
            BatchSource::Workers(Workers::start(&self.data, batches, workers, prefetch)?)
        };
        Ok(Batches { source })
    }
}

/// A batch of a dataset.
pub(super) type BatchOf<D> = <<D as Dataset>::Item as Collate>::Batch;

/// One pass over a [`DataLoader`]. When it is dropped, its threads end.
pub struct Batches<D: Dataset>
where
    D::Item: Collate,
{
    source: BatchSource<D>,
}

enum BatchSource<D: Dataset>
where
    D::Item: Collate,
{
    Here { data: Arc<D>, batches: std::vec::IntoIter<Vec<usize>> },
    Workers(Workers<BatchOf<D>>),
}

/// Reads the examples of a batch and collates them.
pub(super) fn batch_of<D>(data: &D, indices: &[usize]) -> Result<BatchOf<D>>
where
    D: Dataset,
    D::Item: Collate,
{
    let examples = indices.iter().map(|&index| data.get(index)).collect::<Result<Vec<_>>>()?;
    D::Item::collate(examples)
}

impl<D: Dataset> Iterator for Batches<D>
where
    D::Item: Collate,
{
    type Item = Result<BatchOf<D>>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            BatchSource::Here { data, batches } => Some(batch_of(&**data, &batches.next()?)),
            BatchSource::Workers(workers) => workers.next(),
        }
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.source {
            BatchSource::Here { batches, .. } => batches.len(),
            BatchSource::Workers(workers) => workers.left(),
        };
        (left, Some(left))
    }
}

impl<D: Dataset> ExactSizeIterator for Batches<D> where D::Item: Collate {}
