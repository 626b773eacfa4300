//! How examples become a batch.

use pullback::{Error, Result, Tensor};

/// Examples that can be collated: tensors are stacked, numbers become a tensor, pairs and arrays
/// are collated part by part.
pub trait Collate: Sized {
    /// The type of a batch.
    type Batch: Send;
    /// Collates examples; there is at least one.
    ///
    /// # Errors
    /// `RuntimeError` for tensors of different shapes.
    fn collate(examples: Vec<Self>) -> Result<Self::Batch>;
}

impl Collate for Tensor {
    type Batch = Tensor;
    fn collate(examples: Vec<Tensor>) -> Result<Tensor> {
        Tensor::stack(&examples, 0)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Collate for $number {
            type Batch = Tensor;
            fn collate(examples: Vec<$number>) -> Result<Tensor> {
                Tensor::from(examples)
            }
        }
    )*};
}
numbers!(f32, f64, i32, i64, u8, bool);

impl Collate for String {
    type Batch = Vec<String>;
    fn collate(examples: Vec<String>) -> Result<Vec<String>> {
        Ok(examples)
    }
}

impl<A: Collate, B: Collate> Collate for (A, B) {
    type Batch = (A::Batch, B::Batch);
    fn collate(examples: Vec<(A, B)>) -> Result<Self::Batch> {
        let (a, b) = examples.into_iter().unzip();
        Ok((A::collate(a)?, B::collate(b)?))
    }
}

impl<C: Collate, const N: usize> Collate for [C; N] {
    type Batch = [C::Batch; N];
    fn collate(examples: Vec<[C; N]>) -> Result<Self::Batch> {
        let mut parts: [Vec<C>; N] = std::array::from_fn(|_| Vec::with_capacity(examples.len()));
        for example in examples {
            for (part, item) in parts.iter_mut().zip(example) {
                part.push(item);
            }
        }
        let batches = parts.into_iter().map(C::collate).collect::<Result<Vec<_>>>()?;
        batches.try_into().map_err(|_| Error::runtime("a batch has as many parts as an example"))
    }
}
