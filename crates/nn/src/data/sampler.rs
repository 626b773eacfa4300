//! Samplers: the order in which examples come, which for the same seed is PyTorch's.

use pullback::{Error, Generator, Result, Tensor};

/// An order of examples.
pub trait Sampler: Send + Sync {
    /// The numbers of one pass.
    ///
    /// # Errors
    /// Those of drawing.
    fn indices(&self) -> Result<Vec<usize>>;
}

/// The numbers in ascending order.
#[derive(Clone, Copy, Debug)]
pub struct SequentialSampler {
    /// How many numbers there are.
    pub len: usize,
}

impl Sampler for SequentialSampler {
    fn indices(&self) -> Result<Vec<usize>> {
        Ok((0..self.len).collect())
    }
}

/// The numbers in random order. Without a generator of its own, each pass takes its seed from the default one.
#[derive(Clone, Debug)]
pub struct RandomSampler {
    /// How many there are.
    pub len: usize,
    /// The generator of the order.
    pub generator: Option<Generator>,
}

/// A seed, as PyTorch draws one: a whole number of any size from a generator.
pub(super) fn draw_seed(generator: Option<&Generator>) -> Result<u64> {
    let number = Tensor::options().dtype(pullback::DType::I64).empty(())?;
    number.random__with(generator)?;
    Ok(number.item()?.to_i64() as u64)
}

impl Sampler for RandomSampler {
    fn indices(&self) -> Result<Vec<usize>> {
        let generator = match &self.generator {
            Some(generator) => generator.clone(),
            None => Generator::new(draw_seed(None)?),
        };
        whole(&Tensor::options().generator(&generator).randperm(self.len as i64)?)
    }
}

/// Some numbers in random order.
#[derive(Clone, Debug)]
pub struct SubsetRandomSampler {
    /// The numbers.
    pub indices: Vec<usize>,
    /// The generator of the order, the default one if there is none.
    pub generator: Option<Generator>,
}

impl Sampler for SubsetRandomSampler {
    fn indices(&self) -> Result<Vec<usize>> {
        let order = drawn_from(self.generator.as_ref()).randperm(self.indices.len() as i64)?;
        Ok(whole(&order)?.into_iter().map(|place| self.indices[place]).collect())
    }
}

/// Numbers drawn with probabilities in proportion to weights.
#[derive(Clone, Debug)]
pub struct WeightedRandomSampler {
    weights: Tensor,
    num_samples: usize,
    replacement: bool,
    generator: Option<Generator>,
}

impl WeightedRandomSampler {
    /// `num_samples` numbers, with or without replacement.
    ///
    /// # Errors
    /// `ValueError` if there are to be none.
    pub fn new(
        weights: &[f64],
        num_samples: usize,
        replacement: bool,
        generator: Option<&Generator>,
    ) -> Result<Self> {
        if num_samples == 0 {
            return Err(Error::value(
                "num_samples should be a positive integer value, but got num_samples=0",
            ));
        }
        let generator = generator.cloned();
        Ok(WeightedRandomSampler {
            weights: Tensor::from(weights)?,
            num_samples,
            replacement,
            generator,
        })
    }
}

impl Sampler for WeightedRandomSampler {
    fn indices(&self) -> Result<Vec<usize>> {
        let (count, generator) = (self.num_samples as i64, self.generator.as_ref());
        whole(&self.weights.multinomial_with(count, self.replacement, generator)?)
    }
}

fn drawn_from(generator: Option<&Generator>) -> pullback::TensorOptions {
    generator.map_or_else(Tensor::options, |g| Tensor::options().generator(g))
}

fn whole(numbers: &Tensor) -> Result<Vec<usize>> {
    Ok(numbers.to_vec::<i64>()?.into_iter().map(|number| number as usize).collect())
}
