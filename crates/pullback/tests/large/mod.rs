//! Samples made so large that kernels share their work and run long enough to be left.
//!
//! Samples are small; each is made larger in four ways (see [`Growth`]), of which some make no sense for an op and are
//! left out when it says so.

use pullback::autograd::{self, BackwardOptions};
use pullback::dispatch::{Arg, OpDef, Outputs, Traits, Value};
use pullback::{C128, DType, Result, Tensor, manual_seed, memory, threads};
use std::time::Instant;

pub(crate) fn with_threads<R>(count: usize, f: impl FnOnce() -> R) -> R {
    let before = threads::num_threads();
    threads::set_num_threads(count);
    let result = f();
    threads::set_num_threads(before);
    result
}

/// How a sample is made larger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Growth {
    /// Every size but 1, by one factor: matrices fit each other, windows grow with images.
    All,
    /// The first size, of the tensors that share it with the largest: more rows, larger batches.
    First,
    /// The last size, of the tensors that share it with the largest: longer rows.
    Last,
    /// A new first dimension: many small problems.
    Batch,
}

pub(crate) const GROWTHS: [Growth; 4] = [Growth::All, Growth::First, Growth::Last, Growth::Batch];
/// About how many elements the largest tensor gets: some blocks of the coarsest grain.
const ELEMENTS: i64 = 150_000;

/// What a call costs.
#[derive(Clone, Copy)]
struct Cost {
    /// Elements of the results.
    elements: f64,
    tensors: f64,
    /// Bytes that were taken on the way to the results.
    bytes: f64,
    seconds: f64,
}

impl Cost {
    fn all(self) -> [f64; 4] {
        [self.elements, self.tensors, self.bytes, self.seconds]
    }
}

/// Calls that cost more are not made: the product of two long vectors would fill the memory, and a window as large as its image
/// take minutes.
const LARGEST: Cost = Cost { elements: 4e6, tensors: 300.0, bytes: 1e9, seconds: 0.1 };
/// Less than this shows no power by which a cost grows: a page of memory, the call itself.
const LEAST: Cost = Cost { elements: 1.0, tensors: 1.0, bytes: 4096.0, seconds: 5e-5 };

/// What takes longer with a 64th of the elements takes too long with all.
const SLOWEST: f64 = 4e-4;

/// What becomes of tensors of a sample whose largest has the shape `model`.
fn grown_shape(growth: Growth, elements: i64, shape: &[i64], model: &[i64]) -> Option<Vec<i64>> {
    let numel: i64 = model.iter().product();
    let factor = (elements / numel.max(1)).max(2);
    let mut grown = shape.to_vec();
    match growth {
        Growth::All => {
            let wide = model.iter().filter(|&&size| size > 1).count();
            let factor = (factor as f64).powf(1.0 / wide.max(1) as f64).ceil() as i64;
            grown.iter_mut().filter(|size| **size > 1).for_each(|size| *size *= factor);
        }
        Growth::First if shape.first() == model.first() => *grown.first_mut()? *= factor,
        Growth::Last if shape.last() == model.last() => *grown.last_mut()? *= factor,
        Growth::First | Growth::Last => {}
        Growth::Batch => grown.insert(0, factor),
    }
    Some(grown)
}

/// How much nearer to zero each of many elements is brought, over and over. (A prime number of them, so that no two rows of a
/// tensor are alike.)
fn shrinks(numel: i64) -> Result<Tensor> {
    let all: Vec<f64> = (0..1009).map(|k| 1.0 - f64::from(k * 7919 % 1009) / 131_072.0).collect();
    let values: Vec<f64> = all.iter().copied().cycle().take(numel as usize).collect();
    Tensor::from_slice(&values, &[numel])
}

/// The elements over and over, each time a little nearer to zero if they are floating-point.
fn grown(t: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let old = t.shape().to_vec();
    let offset = shape.len() - old.len();
    let mut repeated = t.detach()?;
    for (dim, (&size, &from)) in shape[offset..].iter().zip(&old).enumerate() {
        let index: Vec<i64> = (0..size).map(|at| at % from).collect();
        repeated = repeated.index_select(dim as i64, &Tensor::from_slice(&index, &[size])?)?;
    }
    let repeated = repeated.expand(shape, false)?.clone_tensor(None)?;
    if !t.dtype().is_differentiable() {
        return Ok(repeated);
    }
    let shrinks = shrinks(shape.iter().product())?.view(shape)?;
    repeated.mul(&shrinks)?.to_dtype(t.dtype())
}

fn map_tensors(
    values: &[Value],
    f: &mut dyn FnMut(usize, &Tensor) -> Result<Tensor>,
) -> Result<Vec<Value>> {
    let map = |(index, value): (usize, &Value)| {
        Ok(match value {
            Value::Tensor(t) => Value::Tensor(f(index, t)?),
            Value::Tensors(list) => {
                Value::Tensors(list.iter().map(|t| f(index, t)).collect::<Result<_>>()?)
            }
            Value::OptTensors(list) => {
                let map = |t: &Option<Tensor>| t.as_ref().map(|t| f(index, t)).transpose();
                Value::OptTensors(list.iter().map(map).collect::<Result<_>>()?)
            }
            other => other.clone(),
        })
    };
    values.iter().enumerate().map(map).collect()
}

/// The sample with about as many elements, unless there is nothing to make larger.
fn grow(growth: Growth, elements: i64, values: &[Value]) -> Result<Option<Vec<Value>>> {
    let mut model: Vec<i64> = Vec::new();
    map_tensors(values, &mut |_, t| {
        if t.numel() > model.iter().product::<i64>() || model.is_empty() {
            model = t.shape().to_vec();
        }
        Ok(t.clone())
    })?;
    if model.is_empty() || model.contains(&0) {
        return Ok(None);
    }
    let mut fits = true;
    let result = map_tensors(values, &mut |_, t| {
        let shape = grown_shape(growth, elements, t.shape(), &model);
        let shape = shape.filter(|shape| shape.iter().product::<i64>() <= 8 * ELEMENTS);
        let Some(shape) = shape else {
            fits = false;
            return Ok(t.clone());
        };
        grown(t, &shape)
    })?;
    Ok(fits.then_some(result))
}

/// The bytes of the elements in row-major order.
pub(crate) fn bytes(t: &Tensor) -> Result<Vec<u8>> {
    let flat = t.resolve_conj()?.resolve_neg()?.reshape(&[-1])?.contiguous()?;
    flat.view_dtype(DType::U8)?.to_vec::<u8>()
}

/// The bytes of all results and of the gradients of all inputs.
pub(crate) fn run(def: &'static OpDef, values: &[Value]) -> Result<Vec<Vec<u8>>> {
    let is_differentiable = !def.is(Traits::NOT_DIFFERENTIABLE);
    let written = |index: usize| def.schema().args[index].alias.is_some_and(|a| a.is_write);
    let (mut leaves, mut targets) = (Vec::new(), Vec::new());
    let inputs = map_tensors(values, &mut |index, t| {
        let leaf = t.clone_tensor(None)?;
        let wants = is_differentiable
            && t.dtype().is_differentiable()
            && !def.args[index].not_differentiable;
        if wants {
            leaf.requires_grad_(true)?;
            leaves.push(leaf.clone());
        }
        // Who writes to its arguments gets no leaves.
        let input = if written(index) { leaf.clone_tensor(None)? } else { leaf };
        if written(index) {
            targets.push(input.clone());
        }
        Ok(input)
    })?;
    manual_seed(1);
    let args: Vec<Arg<'_>> = inputs.iter().map(Value::as_arg).collect();
    let outputs: Outputs = autograd::call(def, &args)?;
    let outputs = [outputs.as_slice(), &targets].concat();
    let mut all = outputs.iter().map(|t| bytes(&t.detach()?)).collect::<Result<Vec<_>>>()?;
    let roots: Vec<&Tensor> = outputs.iter().filter(|t| t.requires_grad()).collect();
    if roots.is_empty() || leaves.is_empty() {
        return Ok(all);
    }
    let starts = roots.iter().map(|t| start(t)).collect::<Result<Vec<_>>>()?;
    let starts: Vec<_> = starts.iter().map(Some).collect();
    let options = BackwardOptions { allow_unused: true, ..BackwardOptions::default() };
    let leaves: Vec<&Tensor> = leaves.iter().collect();
    for grad in autograd::grad(&roots, &leaves, &starts, options)?.iter().flatten() {
        all.push(bytes(grad)?);
    }
    Ok(all)
}

/// A gradient to start from, of numbers whose sums are rounded.
fn start(like: &Tensor) -> Result<Tensor> {
    let value = |at: i64| C128::new((at * 7919 % 1013) as f64 / 977.0 - 0.5, 0.0);
    let values: Vec<C128> = (0..like.numel()).map(value).collect();
    Tensor::from_slice(&values, like.shape())?.to_dtype(like.dtype())
}

/// Whether the elements of the result are whatever its memory held before.
pub(crate) fn is_unset(def: &OpDef) -> bool {
    def.name.starts_with("empty") || def.name.starts_with("new_empty")
}

/// What a call of the functional form costs.
fn cost(def: &'static OpDef, values: &[Value]) -> Result<Cost> {
    let inputs = map_tensors(values, &mut |_, t| t.clone_tensor(None))?;
    let args: Vec<Arg<'_>> = inputs.iter().map(Value::as_arg).collect();
    let before = memory::live_bytes();
    memory::reset_peak();
    let begin = Instant::now();
    let results = autograd::call(def, &args)?;
    let seconds = begin.elapsed().as_secs_f64();
    let results = results.as_slice();
    Ok(Cost {
        elements: results.iter().map(|t| t.numel() as f64).sum(),
        tensors: results.len() as f64,
        bytes: memory::peak_bytes().saturating_sub(before) as f64,
        seconds,
    })
}

/// The sample made large, if that makes sense and its results are of a size to be looked at.
pub(crate) fn large(
    def: &'static OpDef,
    growth: Growth,
    values: &[Value],
) -> Result<Option<Vec<Value>>> {
    let (some, more) = (ELEMENTS / 256, ELEMENTS / 64);
    let (Some(first), Some(second)) = (grow(growth, some, values)?, grow(growth, more, values)?)
    else {
        return Ok(None);
    };
    let (first, largest) = (cost(def, &first)?, LARGEST.all());
    if first.seconds > SLOWEST || first.all().iter().zip(largest).any(|(&cost, most)| cost > most) {
        return Ok(None);
    }
    let second = cost(def, &second)?;
    // A cost grows by a power of what the inputs grow by.
    let at_last = |i: usize| {
        let (first, second) = (first.all()[i].max(LEAST.all()[i]), second.all()[i]);
        second * (second / first).max(1.0).powi(3)
    };
    if second.seconds > SLOWEST || (0..4).any(|i| at_last(i) > largest[i]) {
        return Ok(None);
    }
    grow(growth, ELEMENTS, values)
}
