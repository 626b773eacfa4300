//! Datasets: examples by number.

use pullback::{Error, Generator, Result, Tensor};
use std::sync::Arc;

/// A dataset: examples by number. Threads share it.
pub trait Dataset: Send + Sync {
    /// The type of an example.
    type Item: Send;

    /// The number of examples.
    fn len(&self) -> usize;
    /// Whether there are no examples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The example with this number.
    ///
    /// # Errors
    /// Any error of reading it.
    fn get(&self, index: usize) -> Result<Self::Item>;

    /// The dataset with a function applied to each example.
    fn map<F, T>(self, f: F) -> Mapped<Self, F>
    where
        Self: Sized,
        F: Fn(Self::Item) -> Result<T> + Send + Sync,
        T: Send,
    {
        Mapped { data: self, f }
    }
}

impl<D: Dataset + ?Sized> Dataset for Arc<D> {
    type Item = D::Item;
    fn len(&self) -> usize {
        (**self).len()
    }
    fn get(&self, index: usize) -> Result<D::Item> {
        (**self).get(index)
    }
}

impl<T: Clone + Send + Sync> Dataset for Vec<T> {
    type Item = T;
    fn len(&self) -> usize {
        Vec::len(self)
    }
    fn get(&self, index: usize) -> Result<T> {
        self.as_slice().get(index).cloned().ok_or_else(|| out_of_range(index, Vec::len(self)))
    }
}

fn out_of_range(index: usize, len: usize) -> Error {
    Error::index(format!("index {index} is out of range for a dataset of {len} examples"))
}

/// The rows of tensors with as many rows: images and labels, for example.
#[derive(Clone, Debug)]
pub struct TensorDataset<const N: usize>([Tensor; N]);

impl<const N: usize> TensorDataset<N> {
    /// The rows of these tensors.
    ///
    /// # Errors
    /// `ValueError` if they differ in their number of rows.
    pub fn new(tensors: [Tensor; N]) -> Result<Self> {
        let rows = |tensor: &Tensor| tensor.shape().first().copied();
        if tensors.iter().any(|t| rows(t).is_none() || rows(t) != rows(&tensors[0])) {
            return Err(Error::value("Size mismatch between tensors"));
        }
        Ok(TensorDataset(tensors))
    }
}

impl<const N: usize> Dataset for TensorDataset<N> {
    type Item = [Tensor; N];
    fn len(&self) -> usize {
        self.0.first().map_or(0, |tensor| tensor.shape()[0] as usize)
    }
    fn get(&self, index: usize) -> Result<[Tensor; N]> {
        if index >= self.len() {
            return Err(out_of_range(index, self.len()));
        }
        let rows = self.0.iter().map(|tensor| tensor.select(0, index as i64));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        rows.try_into().map_err(|_| Error::runtime("a row has one part for each tensor"))
    }
}

/// The dataset that [`Dataset::map`] returns.
#[derive(Clone, Debug)]
pub struct Mapped<D, F> {
    data: D,
    f: F,
}

impl<D, F, T> Dataset for Mapped<D, F>
where
    D: Dataset,
    F: Fn(D::Item) -> Result<T> + Send + Sync,
    T: Send,
{
    type Item = T;
    fn len(&self) -> usize {
        self.data.len()
    }
    fn get(&self, index: usize) -> Result<T> {
        (self.f)(self.data.get(index)?)
    }
}

/// Some examples of a dataset.
#[derive(Clone, Debug)]
pub struct Subset<D> {
    data: Arc<D>,
    indices: Vec<usize>,
}

impl<D: Dataset> Subset<D> {
    /// The examples of these numbers.
    pub fn new(data: Arc<D>, indices: Vec<usize>) -> Self {
        Subset { data, indices }
    }
    /// The numbers of its examples.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    type Item = D::Item;
    fn len(&self) -> usize {
        self.indices.len()
    }
    fn get(&self, index: usize) -> Result<D::Item> {
        let found = self.indices.as_slice().get(index);
        self.data.get(*found.ok_or_else(|| out_of_range(index, self.indices.len()))?)
    }
}

/// Divides a dataset at random into parts of these lengths: PyTorch's parts, for the same generator.
///
/// # Errors
/// `ValueError` if the lengths do not add up.
pub fn random_split<D: Dataset>(
    data: D,
    lengths: &[usize],
    generator: Option<&Generator>,
) -> Result<Vec<Subset<D>>> {
    if lengths.iter().sum::<usize>() != data.len() {
        return Err(Error::value(
            "Sum of input lengths does not equal the length of the input dataset!",
        ));
    }
    let options = generator.map_or_else(Tensor::options, |g| Tensor::options().generator(g));
    let order = options.randperm(data.len() as i64)?.to_vec::<i64>()?;
    let (data, mut order) = (Arc::new(data), order.into_iter().map(|index| index as usize));
    let part = |&length: &usize| Subset::new(data.clone(), order.by_ref().take(length).collect());
    Ok(lengths.iter().map(part).collect())
}
