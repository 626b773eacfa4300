//! Datasets and loaders: batches in order, errors, panics, threads that end.

use pullback::Error;
use pullback_nn::data::*;
use pullback_nn::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Examples that take the longer the earlier they stand; one fails, one panics.
struct Slow {
    len: usize,
    fails: Option<usize>,
    panics: Option<usize>,
    read: Arc<AtomicUsize>,
}

impl Slow {
    fn new(len: usize) -> Slow {
        Slow { len, fails: None, panics: None, read: Arc::default() }
    }
}

impl Dataset for Slow {
    type Item = (i64, Tensor);
    fn len(&self) -> usize {
        self.len
    }
    fn get(&self, index: usize) -> Result<(i64, Tensor)> {
        std::thread::sleep(Duration::from_micros(50 * (self.len - index) as u64));
        self.read.fetch_add(1, Ordering::Relaxed);
        assert!(self.panics != Some(index), "as it was asked to");
        if self.fails == Some(index) {
            return Err(Error::value("as it was asked to"));
        }
        Ok((index as i64, Tensor::full([2], index as i64)?))
    }
}

fn options(workers: usize) -> DataLoaderOptions {
    DataLoaderOptions { batch_size: 3, workers, ..Default::default() }
}

#[test]
fn batches_come_in_order_whatever_the_number_of_threads() -> Result<()> {
    for workers in [0, 1, 2, 5] {
        let loader = DataLoader::new(Slow::new(20), options(workers))?;
        let (mut all, mut batches) = (Vec::new(), loader.iter()?);
        assert_eq!((batches.len(), loader.len()), (7, 7));
        while let Some(batch) = batches.next() {
            let (numbers, rows) = batch?;
            assert_eq!(rows.shape(), [numbers.numel(), 2]);
            all.extend(numbers.to_vec::<i64>()?);
            assert_eq!(batches.len(), 7 - all.len().div_ceil(3));
        }
        assert_eq!(all, (0..20).collect::<Vec<_>>(), "{workers} threads");
        assert!(batches.next().is_none());
    }
    let short = DataLoaderOptions { drop_last: true, ..options(2) };
    assert_eq!(DataLoader::new(Slow::new(20), short)?.iter()?.count(), 6);
    assert_eq!(DataLoader::new(Slow::new(0), options(2))?.iter()?.count(), 0);
    Ok(())
}

#[test]
fn errors_and_panics_are_those_of_their_batch() -> Result<()> {
    for workers in [1, 3] {
        let data = Slow { fails: Some(4), panics: Some(7), ..Slow::new(12) };
        let got: Vec<_> = DataLoader::new(data, options(workers))?.iter()?.collect();
        let texts: Vec<Option<String>> =
            got.into_iter().map(|batch| batch.err().map(|error| error.to_string())).collect();
        assert_eq!(texts[0], None);
        assert_eq!(texts[1].as_deref(), Some("as it was asked to"));
        assert_eq!(texts[2].as_deref(), Some("the dataset panicked while batch 2 was made"));
        assert_eq!(texts[3], None);
    }
    Ok(())
}

#[test]
fn threads_are_ahead_by_what_was_said_and_end_with_the_pass() -> Result<()> {
    let data = Slow::new(300);
    let read = data.read.clone();
    let ahead = DataLoaderOptions { prefetch: 1, ..options(2) };
    let mut batches = DataLoader::new(data, ahead)?.iter()?;
    batches.next().expect("there are batches")?;
    std::thread::sleep(Duration::from_millis(300));
    // The one that was given, and two ahead of it.
    assert!(read.load(Ordering::Relaxed) <= 3 * 3, "{read:?}");
    drop(batches);
    let after = read.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(read.load(Ordering::Relaxed), after);
    Ok(())
}

#[test]
fn parts_of_examples_become_parts_of_batches() -> Result<()> {
    let data = TensorDataset::new([Tensor::arange(0, 6)?.view(&[3, 2])?, Tensor::arange(0, 3)?])?;
    let shifted = data.map(|[x, y]| Ok(([x, y.clone()], (y.item()?.to_f64(), "text".to_owned()))));
    let loader = DataLoader::new(shifted, options(1))?;
    let ([x, y], (number, texts)) = loader.iter()?.next().expect("there is a batch")?;
    assert_eq!((x.shape(), y.shape()), (&[3, 2][..], &[3][..]));
    assert_eq!(number.to_vec::<f64>()?, [0.0, 1.0, 2.0]);
    assert_eq!(texts, ["text"; 3]);
    Ok(())
}

#[test]
fn what_makes_no_sense_is_refused() -> Result<()> {
    let none = DataLoaderOptions { batch_size: 0, ..Default::default() };
    assert!(DataLoader::new(vec![1_i64], none).is_err());
    let sampler: Arc<dyn Sampler> = Arc::new(SequentialSampler { len: 1 });
    let both = DataLoaderOptions { sampler: Some(sampler), shuffle: true, ..Default::default() };
    assert!(DataLoader::new(vec![1_i64], both).is_err());
    assert!(TensorDataset::new([Tensor::zeros([2])?, Tensor::zeros([3])?]).is_err());
    assert!(TensorDataset::new([Tensor::zeros(())?]).is_err());
    assert!(random_split(vec![1, 2, 3], &[1, 1], None).is_err());
    assert!(TensorDataset::new([Tensor::zeros([2])?])?.get(2).is_err());
    Ok(())
}
