//! `vmap`: a function of one example, made to work on a batch of them.

use crate::autograd::arithmetic;
use crate::autograd::batch::{LevelGuard, Randomness, add_dim, remove_dim};
use crate::error::ensure;
use crate::generator::default_generator;
use crate::tensor::shape::wrap_dim;
use crate::{Error, Result, Tensor};

/// An input of [`vmap`].
#[derive(Clone, Copy)]
pub struct Batched<'a> {
    /// The tensor.
    pub tensor: &'a Tensor,
    /// The dimension that counts examples; `None` if all examples have this tensor.
    pub dim: Option<i64>,
}

impl<'a> Batched<'a> {
    /// A batch whose first dimension counts examples.
    #[must_use]
    pub fn first(tensor: &'a Tensor) -> Batched<'a> {
        Batched { tensor, dim: Some(0) }
    }
    /// A tensor that is the same for all examples.
    #[must_use]
    pub fn shared(tensor: &'a Tensor) -> Batched<'a> {
        Batched { tensor, dim: None }
    }
}

/// The options of [`vmap_with`].
#[derive(Clone, Copy, Debug)]
pub struct Vmap {
    /// What random ops do within the function.
    pub randomness: Randomness,
    /// The dimension of the result that counts examples.
    pub out_dim: i64,
    /// The number of examples that are computed at a time, to save memory; all if it is `None`.
    pub chunk_size: Option<usize>,
}

impl Default for Vmap {
    fn default() -> Vmap {
        Vmap { randomness: Randomness::Error, out_dim: 0, chunk_size: None }
    }
}

/// What `f`, a function of one example, gives for each of a batch: the first dimension of the result counts examples.
/// Random ops are refused: see [`vmap_with`].
///
/// # Errors
/// Those of `f`; `ValueError` if no input is batched, or they are of different sizes.
pub fn vmap(
    f: impl FnOnce(&[&Tensor]) -> Result<Tensor>,
    inputs: &[Batched<'_>],
) -> Result<Tensor> {
    let size = size_of(inputs)?;
    run(f, inputs, size, Vmap::default())
}

/// As [`vmap`], of a function with several results.
///
/// # Errors
/// As [`vmap`].
pub fn vmaps(
    f: impl FnOnce(&[&Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[Batched<'_>],
) -> Result<Vec<Tensor>> {
    run_all(f, inputs, size_of(inputs)?, Vmap::default())
}

/// As [`vmap`], with its options. `f` runs once for each chunk.
///
/// # Errors
/// As [`vmap`]; `ValueError` for chunks of no examples, `IndexError` for an `out_dim` that the result does not have.
pub fn vmap_with(
    options: Vmap,
    mut f: impl FnMut(&[&Tensor]) -> Result<Tensor>,
    inputs: &[Batched<'_>],
) -> Result<Tensor> {
    let size = size_of(inputs)?;
    let length = match options.chunk_size {
        Some(length) => i64::try_from(length).unwrap_or(i64::MAX),
        None => size.max(1),
    };
    ensure!(length > 0, value, "vmap: chunk_size should be None or greater than 0. (got {length})");
    if size <= length {
        return run(f, inputs, size, options);
    }
    let is_same = options.randomness == Randomness::Same;
    let state = is_same.then(|| default_generator().state());
    let mut parts = Vec::new();
    let mut start = 0;
    while start < size {
        if let Some(state) = &state {
            default_generator().set_state(state)?;
        }
        let own = length.min(size - start);
        let narrowed = inputs.iter().map(|input| match input.dim {
            Some(dim) => arithmetic::narrow(input.tensor, dim, start, own),
            None => Ok(input.tensor.clone()),
        });
        let narrowed = narrowed.collect::<Result<Vec<_>>>()?;
        let chunk: Vec<Batched<'_>> = narrowed
            .iter()
            .zip(inputs)
            .map(|(tensor, input)| Batched { tensor, dim: input.dim })
            .collect();
        parts.push(run(&mut f, &chunk, own, options)?);
        start += own;
    }
    arithmetic::cat(&parts, options.out_dim)
}

/// The number of examples.
fn size_of(inputs: &[Batched<'_>]) -> Result<i64> {
    let mut size = None;
    for Batched { tensor, dim } in inputs {
        let Some(dim) = dim else { continue };
        let dim = wrap_dim(*dim, tensor.ndim())?;
        let own = tensor.shape().get(dim).copied();
        ensure!(
            own.is_some(),
            value,
            "vmap: a tensor without dimensions has none that counts examples"
        );
        ensure!(
            size.is_none() || size == own,
            value,
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {:?} and {:?}",
            size.unwrap_or(0),
            own.unwrap_or(0)
        );
        size = own;
    }
    size.ok_or_else(|| Error::value("vmap: at least one input must be batched"))
}

/// Runs `f` within one level, for all `size` examples.
fn run(
    f: impl FnOnce(&[&Tensor]) -> Result<Tensor>,
    inputs: &[Batched<'_>],
    size: i64,
    options: Vmap,
) -> Result<Tensor> {
    Ok(run_all(|examples| Ok(vec![f(examples)?]), inputs, size, options)?.remove(0))
}

/// As [`run`], of a function with several results.
fn run_all(
    f: impl FnOnce(&[&Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[Batched<'_>],
    size: i64,
    options: Vmap,
) -> Result<Vec<Tensor>> {
    let level = LevelGuard::new(size, options.randomness)?;
    let one = |input: &Batched<'_>| match input.dim {
        Some(dim) => add_dim(input.tensor, dim, level.id()),
        None => Ok(input.tensor.clone()),
    };
    let examples = inputs.iter().map(one).collect::<Result<Vec<_>>>()?;
    let examples: Vec<&Tensor> = examples.iter().collect();
    let results = f(&examples)?;
    results.iter().map(|one| remove_dim(one, level.id(), size, options.out_dim)).collect()
}
