//! Derivatives checked against differences.
//!
//! For a loss `L = Re(sum(conj(v) * f(x)))` with fixed random weights `v`, the gradient that backward gives
//! is compared, element by element, with the central difference `(L(x+e) - L(x-e)) / 2e`; for complex
//! elements in both directions, `dL/da + i dL/db` (the conjugate Wirtinger gradient).

use crate::autograd::{self, BackwardOptions, Pushforward, mode};
use crate::dispatch::{Jvp, OpDef, Value};
use crate::tensor::Cpu;
use crate::{C128, DType, Result, Tensor};
use std::fmt;

/// How close a derivative has to be to a difference, and the step of the difference.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Step of the difference.
    pub step: f64,
    /// The absolute part of the tolerance.
    pub absolute: f64,
    /// The relative part of the tolerance.
    pub relative: f64,
}

impl std::default::Default for Tolerance {
    fn default() -> Self {
        Tolerance { step: 1e-6, absolute: 1e-5, relative: 1e-3 }
    }
}

/// A gradient that differs from the difference: the worst element of the first input that has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mismatch {
    /// The index among the inputs that require grad.
    pub input: usize,
    /// The element, in row-major order.
    pub element: usize,
    /// The gradient that backward gives.
    pub analytic: C128,
    /// The gradient by differences.
    pub numerical: C128,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { input, element, analytic, numerical } = self;
        write!(
            f,
            "gradient of differentiable input {input}, element {element}: backward gives {analytic}, differences give {numerical}"
        )
    }
}

impl std::error::Error for Mismatch {}

impl From<Mismatch> for crate::Error {
    fn from(mismatch: Mismatch) -> Self {
        crate::Error::runtime(mismatch.to_string())
    }
}

/// A function from tensors to tensors.
pub type CheckedFunction<'a> = &'a dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>;

/// Fixed weights of either sign, different for every position.
fn weights(like: &Tensor, salt: u64) -> Result<Tensor> {
    let n = like.numel() as usize;
    let number = |i: usize| {
        ((i as f64 + 1.0) * 0.754_877_666 + salt as f64 * 0.569_840_291).fract() * 2.0 - 1.0
    };
    let data: Vec<C128> = (0..n).map(|i| C128::new(number(i), number(i + 7919))).collect();
    Tensor::from_slice(&data, like.shape())?.copied(like.dtype())
}

fn is_checked(t: &Tensor) -> bool {
    matches!(t.dtype(), DType::F64 | DType::C128)
}

/// `Re(sum(conj(v) * y))` over all floating outputs.
fn loss(outputs: &[Tensor]) -> Result<f64> {
    let mut total = 0.0;
    for (index, y) in outputs.iter().enumerate().filter(|(_, y)| is_checked(y)) {
        let (y, v) = (y.to_vec::<C128>()?, weights(y, index as u64)?.to_vec::<C128>()?);
        total += y.iter().zip(v).map(|(y, v)| (v.conj() * y).re).sum::<f64>();
    }
    Ok(total)
}

/// The gradients that backward gives for that loss, one per input that requires grad.
///
/// # Errors
/// Any error of `f` or of the backward.
pub fn analytic(
    f: CheckedFunction<'_>,
    inputs: &[Tensor],
    create_graph: bool,
) -> Result<Vec<Tensor>> {
    let outputs = f(inputs)?;
    let wanted: Vec<&Tensor> = inputs.iter().filter(|t| t.requires_grad()).collect();
    let mut roots = Vec::new();
    let mut starts = Vec::new();
    for (index, y) in outputs.iter().enumerate().filter(|(_, y)| is_checked(y) && y.requires_grad())
    {
        roots.push(y);
        starts.push(weights(y, index as u64)?);
    }
    let zeros = |t: &Tensor| crate::TensorSpec::like(t).zeros();
    if roots.is_empty() {
        return wanted.into_iter().map(zeros).collect();
    }
    let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
    let options =
        BackwardOptions { create_graph, allow_unused: true, ..BackwardOptions::default() };
    let grads = autograd::grad(&roots, &wanted, &starts, options)?;
    grads.into_iter().zip(wanted).map(|(g, t)| g.map_or_else(|| zeros(t), Ok)).collect()
}

/// The gradients by differences, as complex numbers, one list per input that requires grad.
fn numerical(f: CheckedFunction<'_>, inputs: &[Tensor], step: f64) -> Result<Vec<Vec<C128>>> {
    let _mode = mode::no_grad();
    let mut all = Vec::new();
    for (index, input) in inputs.iter().enumerate().filter(|(_, t)| t.requires_grad()) {
        let base = input.to_vec::<C128>()?;
        let at = |position: usize, change: C128| -> Result<f64> {
            let mut data = base.clone();
            data[position] += change;
            let moved = Tensor::from_slice(&data, input.shape())?.copied(input.dtype())?;
            let mut changed: Vec<Tensor> = inputs.to_vec();
            // The strides stay as before: only the value changes.
            changed[index] = Tensor::empty_strided(
                input.shape(),
                input.strides(),
                input.dtype(),
                input.device(),
            )?;
            changed[index].copy_data(Cpu::of(&moved)?, &moved)?;
            loss(&f(&changed)?)
        };
        let slope = |position: usize, unit: C128| -> Result<f64> {
            Ok((at(position, unit * step)? - at(position, unit * -step)?) / (2.0 * step))
        };
        let mut grads = Vec::with_capacity(base.len());
        for position in 0..base.len() {
            let re = slope(position, C128::new(1.0, 0.0))?;
            let complex = input.dtype().is_complex();
            let im = if complex { slope(position, C128::new(0.0, 1.0))? } else { 0.0 };
            grads.push(C128::new(re, im));
        }
        all.push(grads);
    }
    Ok(all)
}

/// The worst element of `got` against `expected`, if it is too far: its index and both values.
fn worst(got: &[C128], expected: &[C128], tolerance: Tolerance) -> Option<(usize, C128, C128)> {
    let far = |(g, e): &(C128, C128)| {
        let limit = tolerance.absolute + tolerance.relative * e.norm();
        let distance = (g - e).norm();
        if distance.is_nan() { f64::INFINITY } else { distance - limit }
    };
    let pairs = got.iter().copied().zip(expected.iter().copied()).enumerate();
    let (index, pair) = pairs.max_by(|a, b| far(&a.1).total_cmp(&far(&b.1)))?;
    (far(&pair) > 0.0).then_some((index, pair.0, pair.1))
}

/// Checks the gradients of `f` at `inputs` (those that require grad, f64 or c128) against differences.
///
/// ```
/// use pullback::Tensor;
/// use pullback::gradcheck::{Tolerance, gradcheck};
/// # fn main() -> pullback::Result<()> {
/// let x = Tensor::from([0.5, 2.0])?.with_grad()?;
/// gradcheck(&|x| Ok(vec![x[0].mul(&x[0])?]), &[x], Tolerance::default())??;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of `f`; `Ok(Err(mismatch))` says which element is worst.
pub fn gradcheck(
    f: CheckedFunction<'_>,
    inputs: &[Tensor],
    tolerance: Tolerance,
) -> Result<std::result::Result<(), Mismatch>> {
    let analytic = analytic(f, inputs, false)?;
    let numerical = numerical(f, inputs, tolerance.step)?;
    for (number, (got, expected)) in analytic.iter().zip(&numerical).enumerate() {
        if let Some((element, analytic, numerical)) =
            worst(&got.to_vec::<C128>()?, expected, tolerance)
        {
            return Ok(Err(Mismatch { input: number, element, analytic, numerical }));
        }
    }
    Ok(Ok(()))
}

/// Checks the gradients of the gradients of `f` in the same way.
///
/// # Errors
/// As [`gradcheck`].
pub fn gradgradcheck(
    f: CheckedFunction<'_>,
    inputs: &[Tensor],
    tolerance: Tolerance,
) -> Result<std::result::Result<(), Mismatch>> {
    let first = |inputs: &[Tensor]| {
        let _mode = mode::enable_grad();
        analytic(f, inputs, true)
    };
    // The inputs that differences make do not require grad, but the inner gradient needs inputs
    // that do.
    let requires: Vec<bool> = inputs.iter().map(Tensor::requires_grad).collect();
    let inner = |inputs: &[Tensor]| {
        for (t, &requires) in inputs.iter().zip(&requires) {
            if requires && !t.requires_grad() {
                t.requires_grad_(true)?;
            }
        }
        first(inputs)
    };
    gradcheck(&inner, inputs, tolerance)
}

/// The tangent of each output of an op for given tangents of its tensor arguments, by its forward rule.
/// `None` if it has none.
///
/// # Errors
/// Any error of the rule.
pub fn op_jvp(
    def: &'static OpDef,
    values: &[Value],
    tangents: &[Option<Tensor>],
) -> Result<Option<Vec<Option<Tensor>>>> {
    if matches!(def.jvp, Jvp::None) {
        return Ok(None);
    }
    let args: Vec<_> = values.iter().map(Value::as_arg).collect();
    let outputs = autograd::call(def, &args)?;
    Pushforward::with_tangents(def, values, tangents).run(outputs.as_slice()).map(Some)
}
