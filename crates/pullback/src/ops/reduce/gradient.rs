//! `gradient`: derivatives of sampled functions by differences of second order.
//!
//! Inside, the derivative at a point is that of the parabola through it and its neighbours; at the two ends that of the line
//! (`edge_order` 1) or parabola (2) through the outermost points. Its overloads differ in how the distances of the points
//! are given: one number, a number per dimension, or coordinates per dimension.

use super::difference::step;
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::shape::join::cat;
use crate::tensor::shape::wrap_dims;
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &GRADIENT,
    &GRADIENT_NUMBER_DIMS,
    &GRADIENT_DIMS,
    &GRADIENT_NUMBERS,
    &GRADIENT_NUMBERS_DIMS,
    &GRADIENT_POINTS,
    &GRADIENT_POINTS_DIMS,
];

/// The distances of neighbours along a dimension.
#[derive(Clone)]
enum Spacing {
    /// Equal distances.
    Even(Scalar),
    /// A vector of distances.
    Uneven(Tensor),
}

/// The dimensions to derive along, each with the distances there.
fn prepared(
    self_: &Tensor,
    dim: Option<&[i64]>,
    spacing: &[Spacing],
    is_list: bool,
    edge_order: i64,
) -> Result<Vec<(i64, Spacing)>> {
    ensure!(
        self_.dtype() != DType::U8,
        not_implemented,
        "torch.gradient does not support uint8 input."
    );
    let count = dim.map_or(self_.ndim(), <[i64]>::len);
    ensure!(
        !is_list || dim.is_some() || spacing.len() == count,
        runtime,
        "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = {count}', since dim argument was not given, but got a list of length {}",
        spacing.len()
    );
    ensure!(
        !is_list || spacing.len() == count,
        runtime,
        "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same length, but got a spacing argument of length {} and a dim argument of length {count}.",
        spacing.len()
    );
    ensure!(
        matches!(edge_order, 1 | 2),
        runtime,
        "torch.gradient only supports edge_order=1 and edge_order=2, but got {edge_order}."
    );
    let dims: Dims = match dim {
        Some([]) => Dims::new(),
        _ => wrap_dims(dim, self_.ndim())?.iter().map(|&d| d as i64).collect(),
    };
    for &at in &dims {
        ensure!(
            self_.shape()[at as usize] > edge_order,
            runtime,
            "torch.gradient expected each dimension size to be at least edge_order+1, but dimension {at} has size {}",
            self_.shape()[at as usize]
        );
    }
    let of = |(nr, &at): (usize, &i64)| (at, spacing[if is_list { nr } else { 0 }].clone());
    Ok(dims.iter().enumerate().map(of).collect())
}

fn derived(
    self_: &Tensor,
    dim: Option<&[i64]>,
    spacing: &[Spacing],
    is_list: bool,
    edge_order: i64,
) -> Result<Vec<Tensor>> {
    let along = |(dim, spacing): (i64, Spacing)| match spacing {
        Spacing::Even(distance) => even(self_, dim, distance, edge_order),
        Spacing::Uneven(distances) => uneven(self_, dim, &distances, edge_order),
    };
    prepared(self_, dim, spacing, is_list, edge_order)?.into_iter().map(along).collect()
}

/// The coordinates' distances.
fn distances(points: &[Tensor]) -> Result<Vec<Spacing>> {
    for t in points {
        ensure!(
            t.ndim() == 1,
            runtime,
            "torch.gradient expected each element of spacing to have one dimension, but got an element with {} dimensions!",
            t.ndim()
        );
    }
    points.iter().map(|t| step(t, 0).map(Spacing::Uneven)).collect()
}

fn numbers(spacing: &[Scalar]) -> Vec<Spacing> {
    spacing.iter().map(|&s| Spacing::Even(s)).collect()
}

/// The slice of one point along `dim`.
fn at(t: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
    let from = if index < 0 { t.shape()[dim as usize] + index } else { index };
    t.slice(dim, Some(from), Some(from + 1), 1)
}

/// `sum(weight * point)`.
fn weighted(terms: Vec<(Tensor, Tensor)>) -> Result<Tensor> {
    let mut sum: Option<Tensor> = None;
    for (weight, point) in terms {
        let term = point.mul(&weight)?;
        sum = Some(match sum {
            Some(sum) => sum.add(&term)?,
            None => term,
        });
    }
    Ok(sum.expect("there are terms"))
}

fn even(t: &Tensor, dim: i64, distance: Scalar, edge_order: i64) -> Result<Tensor> {
    let distance = Tensor::wrapped(distance)?;
    let two = Tensor::wrapped(2)?;
    let inner = t.slice(dim, Some(2), None, 1)?.sub(&t.slice(dim, Some(0), Some(-2), 1)?)?;
    let inner = inner.div(&distance.mul(&two)?)?;
    let edge = |sign: f64, positions: [i64; 3]| -> Result<Tensor> {
        let weights: &[f64] = if edge_order == 1 { &[-1.0, 1.0] } else { &[-1.5, 2.0, -0.5] };
        let term = |(weight, &position): (&f64, &i64)| -> Result<(Tensor, Tensor)> {
            Ok((Tensor::wrapped(sign * weight)?, at(t, dim, position)?))
        };
        let terms = weights.iter().zip(&positions).map(term).collect::<Result<Vec<_>>>()?;
        weighted(terms)?.div(&distance)
    };
    cat(&[edge(1.0, [0, 1, 2])?, inner, edge(-1.0, [-1, -2, -3])?], dim)
}

/// `numerator / (a * b)`.
fn ratio(numerator: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    numerator.div(&a.mul(b)?)
}

fn uneven(t: &Tensor, dim: i64, distances: &Tensor, edge_order: i64) -> Result<Tensor> {
    let mut shape = Dims::from_elem(1, t.ndim());
    shape[dim as usize] = -1;
    let all = distances.reshape(&shape)?;
    let (before, after) =
        (all.slice(dim, Some(0), Some(-1), 1)?, all.slice(dim, Some(1), None, 1)?);
    let both = before.add(&after)?;
    let point = |start: i64, end: Option<i64>| t.slice(dim, Some(start), end, 1);
    let inner = weighted(vec![
        (ratio(&after.neg()?, &before, &both)?, point(0, Some(-2))?),
        (ratio(&after.sub(&before)?, &before, &after)?, point(1, Some(-1))?),
        (ratio(&before, &after, &both)?, point(2, None)?),
    ])?;
    // The last distances are walked backwards, which reverses the signs.
    let edge = |is_last: bool, near: i64, far: i64, positions: [i64; 3]| -> Result<Tensor> {
        let signed = |t: &Tensor, is_negated: bool| {
            if is_negated == is_last { Ok(t.clone()) } else { t.neg() }
        };
        let near = at(&all, dim, near)?;
        let point = |i: usize| at(t, dim, positions[i]);
        if edge_order == 1 {
            return signed(&point(1)?.sub(&point(0)?)?, false)?.div(&near);
        }
        let far = at(&all, dim, far)?;
        let both = near.add(&far)?;
        weighted(vec![
            (ratio(&signed(&near.add(&both)?, true)?, &near, &both)?, point(0)?),
            (ratio(&signed(&both, false)?, &near, &far)?, point(1)?),
            (ratio(&signed(&near, true)?, &far, &both)?, point(2)?),
        ])
    };
    cat(&[edge(false, 0, 1, [0, 1, 2])?, inner, edge(true, -1, -2, [-1, -2, -3])?], dim)
}

fn sample(s: &Sampler) -> Sample {
    Sample::of(s.normal(&[4, 3]))
}

fn coordinates(s: &Sampler, sizes: &[i64]) -> Value {
    let points = |&n: &i64| {
        // (Their distance is large enough for accurate numerical differences.)
        let t = s.uniform(&[n], 0.0, 0.3);
        t.add(&crate::ops::creation::factory::arange(Scalar::Int(n)).expect("samples are small"))
            .and_then(|t| t.to_dtype(s.dtype))
            .expect("samples are small")
    };
    Value::Tensors(sizes.iter().map(points).collect())
}

fn invalid(sample: Sample, phrase: &'static str) -> InvalidSample {
    InvalidSample::new(sample, ErrorKind::Runtime, phrase)
}

/// The derivatives of a function along a dimension, or each, from values at points that are `spacing` apart (1 if `None`).
#[op(
    "gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
    function_only
)]
impl Gradient {
    fn composite(
        self_: &Tensor,
        spacing: Option<Scalar>,
        dim: Option<i64>,
        edge_order: i64,
    ) -> Result<Vec<Tensor>> {
        let spacing = [Spacing::Even(spacing.unwrap_or(Scalar::Int(1)))];
        derived(self_, dim.as_ref().map(std::slice::from_ref), &spacing, false, edge_order)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            sample(s),
            sample(s).with("spacing", Scalar::Float(0.5)).with("dim", -2_i64),
            sample(s).with("edge_order", 2_i64),
            Sample::of(s.normal(&[2])),
            Sample::of(s.normal(&[])).without_gradient(),
            Sample::of(s.normal(&[0, 3])).with("dim", 1_i64),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bytes = s.integers(&[4], 0, 9).to_dtype(DType::U8).expect("samples are small");
        let refused = ErrorKind::NotImplemented;
        vec![
            invalid(sample(s).with("edge_order", 3_i64), "only supports edge_order=1"),
            invalid(Sample::of(s.normal(&[1])), "each dimension size to be at least edge_order+1"),
            InvalidSample::new(Sample::of(bytes), refused, "does not support uint8 input."),
            InvalidSample::new(sample(s).with("dim", 5_i64), ErrorKind::Index, "out of range"),
        ]
    }
}

/// As `gradient` along several dimensions, with the same distances.
#[op(
    "gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
    function_only
)]
impl GradientNumberDims {
    fn composite(
        self_: &Tensor,
        spacing: Scalar,
        dim: &[i64],
        edge_order: i64,
    ) -> Result<Vec<Tensor>> {
        derived(self_, Some(dim), &[Spacing::Even(spacing)], false, edge_order)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            sample(s).with("spacing", Scalar::Int(2)).with("dim", [1, 0]),
            sample(s).with("spacing", Scalar::Int(2)).with("dim", [0]).with("edge_order", 2_i64),
        ]
    }
}

/// As `gradient` along several dimensions, with points at distance 1.
#[op("gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]", function_only)]
impl GradientDims {
    fn composite(self_: &Tensor, dim: &[i64], edge_order: i64) -> Result<Vec<Tensor>> {
        derived(self_, Some(dim), &[Spacing::Even(Scalar::Int(1))], false, edge_order)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![sample(s).with("dim", [1, 0]), sample(s).with("dim", [-1]).with("edge_order", 2_i64)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![invalid(sample(s).with("dim", [1, -1]), "dim 1 appears multiple times")]
    }
}

/// As `gradient` with a distance for each dimension.
#[op(
    "gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
    function_only
)]
impl GradientNumbers {
    fn composite(
        self_: &Tensor,
        spacing: &[Scalar],
        dim: Option<i64>,
        edge_order: i64,
    ) -> Result<Vec<Tensor>> {
        let dim = dim.as_ref().map(std::slice::from_ref);
        derived(self_, dim, &numbers(spacing), true, edge_order)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let two = vec![Scalar::Float(0.5), Scalar::Int(3)];
        vec![
            sample(s).with("spacing", two),
            sample(s).with("spacing", vec![Scalar::Float(1.5)]).with("dim", 0_i64),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let one = || sample(s).with("spacing", vec![Scalar::Int(1)]);
        let two = || sample(s).with("spacing", vec![Scalar::Int(1), Scalar::Int(2)]);
        vec![
            invalid(one(), "a list of length equal to 'self.dim() = 2'"),
            invalid(
                two().with("dim", 0_i64),
                "a spacing argument of length 2 and a dim argument of length 1",
            ),
        ]
    }
}

/// As `gradient` along several dimensions, with a distance for each.
#[op(
    "gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
    function_only
)]
impl GradientNumbersDims {
    fn composite(
        self_: &Tensor,
        spacing: &[Scalar],
        dim: &[i64],
        edge_order: i64,
    ) -> Result<Vec<Tensor>> {
        derived(self_, Some(dim), &numbers(spacing), true, edge_order)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let two = vec![Scalar::Float(0.5), Scalar::Int(3)];
        vec![sample(s).with("spacing", two).with("dim", [1, 0]).with("edge_order", 2_i64)]
    }
}

/// As `gradient` with the points' coordinates for each dimension.
#[op(
    "gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
    function_only
)]
impl GradientPoints {
    fn composite(
        self_: &Tensor,
        spacing: &[Tensor],
        dim: Option<i64>,
        edge_order: i64,
    ) -> Result<Vec<Tensor>> {
        let dim = dim.as_ref().map(std::slice::from_ref);
        derived(self_, dim, &distances(spacing)?, true, edge_order)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            sample(s).with("spacing", coordinates(s, &[4, 3])),
            sample(s)
                .with("spacing", coordinates(s, &[3]))
                .with("dim", 1_i64)
                .with("edge_order", 2_i64),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let with = |points: Value| sample(s).with("spacing", points);
        let matrix = Value::Tensors(vec![s.normal(&[2, 2]), s.normal(&[3])]);
        vec![
            invalid(with(matrix), "each element of spacing to have one dimension"),
            invalid(with(coordinates(s, &[4])), "a list of length equal to 'self.dim() = 2'"),
        ]
    }
}

/// As `gradient` along several dimensions, with the points' coordinates for each.
#[op(
    "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
    function_only
)]
impl GradientPointsDims {
    fn composite(
        self_: &Tensor,
        spacing: &[Tensor],
        dim: &[i64],
        edge_order: i64,
    ) -> Result<Vec<Tensor>> {
        derived(self_, Some(dim), &distances(spacing)?, true, edge_order)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = || sample(s).with("spacing", coordinates(s, &[3, 4])).with("dim", [1, 0]);
        vec![sample(), sample().with("edge_order", 2_i64)]
    }
}
