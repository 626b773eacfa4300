//! Differences of neighbours and sums of areas: `diff`, `trapezoid`, `cumulative_trapezoid`.
//!
//! All are made of slices and sums; integers divide into the default floating dtype.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::shape::join::cat;
use crate::tensor::shape::{wrap_dim, wrap_own_dim};
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &DIFF,
    &TRAPEZOID_X,
    &TRAPEZOID_DX,
    &TRAPZ_X,
    &TRAPZ_DX,
    &CUMULATIVE_TRAPEZOID_X,
    &CUMULATIVE_TRAPEZOID_DX,
];

/// The elements along `dim` without the first, and those without the last.
fn neighbours(t: &Tensor, dim: i64) -> Result<[Tensor; 2]> {
    Ok([t.slice(dim, Some(1), None, 1)?, t.slice(dim, Some(0), Some(-1), 1)?])
}

/// Differences of neighbours; of bools, whether they differ.
pub(in crate::ops) fn step(t: &Tensor, dim: i64) -> Result<Tensor> {
    let [later, earlier] = neighbours(t, dim)?;
    if t.dtype() == DType::Bool { later.logical_xor(&earlier) } else { later.sub(&earlier) }
}

fn check_edge(self_: &Tensor, edge: &Tensor, dim: usize) -> Result<()> {
    ensure!(
        edge.ndim() == self_.ndim(),
        runtime,
        "diff expects prepend or append to be the same dimension as input, but got {} and {} dimensions",
        edge.ndim(),
        self_.ndim()
    );
    for (other, (&have, &want)) in edge.shape().iter().zip(self_.shape()).enumerate() {
        ensure!(
            other == dim || have == want,
            runtime,
            "diff expects the shape of tensor to prepend or append to match that of input except along the differencing dimension; input.size({other}) = {want}, but got tensor.size({other}) = {have}"
        );
    }
    Ok(())
}

/// The `n`-th differences along `dim`, `out[i] = self[i + 1] - self[i]` taken `n` times, of what `prepend`, `self` and
/// `append` are together. Of bools, whether neighbours differ.
#[op(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    out
)]
impl Diff {
    fn composite(
        self_: &Tensor,
        n: i64,
        dim: i64,
        prepend: Option<&Tensor>,
        append: Option<&Tensor>,
    ) -> Result<Tensor> {
        ensure!(self_.ndim() > 0, runtime, "diff expects input to be at least one-dimensional");
        ensure!(n >= 0, runtime, "order must be non-negative but got {n}");
        let at = wrap_dim(dim, self_.ndim())?;
        for edge in [prepend, append].into_iter().flatten() {
            check_edge(self_, edge, at)?;
        }
        if n == 0 {
            return self_.clone_tensor(None);
        }
        let parts: Vec<Tensor> =
            [prepend, Some(self_), append].into_iter().flatten().cloned().collect();
        let mut all = if parts.len() == 1 { self_.clone() } else { cat(&parts, dim)? };
        // A line has no more differences than its length, and none if it has no elements.
        let left = (all.shape()[at] - n).max(0);
        if left == 0 || all.numel() == 0 {
            return all.narrow(at as i64, 0, left)?.clone_tensor(None);
        }
        for _ in 0..n {
            all = step(&all, dim)?;
        }
        Ok(all)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |shape: &[i64]| Sample::of(s.normal(shape));
        vec![
            of(&[4]),
            of(&[2, 3]).with("n", 2_i64).with("dim", 0_i64),
            of(&[3]).with("n", 0_i64),
            of(&[3]).with("n", 5_i64),
            of(&[2, 3]).with("prepend", s.normal(&[2, 1])).with("append", s.normal(&[2, 2])),
            of(&[0]).with("append", s.normal(&[2])),
            of(&[2, 0]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let of = |shape: &[i64]| Sample::of(s.normal(shape));
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        vec![
            bad(of(&[]), "diff expects input to be at least one-dimensional"),
            bad(of(&[3]).with("n", -1_i64), "order must be non-negative but got -1"),
            bad(of(&[3]).with("prepend", s.normal(&[1, 1])), "to be the same dimension as input"),
            bad(of(&[2, 3]).with("append", s.normal(&[1, 1])), "input.size(0) = 2"),
            InvalidSample::new(of(&[3]).with("dim", 1_i64), ErrorKind::Index, "out of range"),
        ]
    }
}

/// The distances along `dim` of the points `x`, in as many dimensions as `y` has.
fn distances(name: &str, y: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
    ensure!(
        y.dtype() != DType::Bool && x.dtype() != DType::Bool,
        not_implemented,
        "{name}: received a bool input for `x` or `y`, but bool is not supported"
    );
    let at = wrap_own_dim(dim, y.ndim())?;
    if x.ndim() == 1 {
        let count = y.shape()[at];
        ensure!(
            x.numel() == count,
            runtime,
            "{name}: There must be one `x` value for each sample point, but got {} for {count}",
            x.numel()
        );
        let mut shape = Dims::from_elem(1, y.ndim());
        shape[at] = count;
        return step(&x.reshape(&shape)?, dim);
    }
    let mut points = x.clone();
    for _ in x.ndim()..y.ndim() {
        points = points.unsqueeze(0)?;
    }
    step(&points, dim)
}

/// Twice the area above each distance between neighbours.
fn areas(y: &Tensor, distances: &Tensor, dim: i64) -> Result<Tensor> {
    let [later, earlier] = neighbours(y, dim)?;
    later.add(&earlier)?.mul(distances)
}

fn check_distance(name: &str, y: &Tensor, dx: Scalar) -> Result<()> {
    ensure!(
        y.dtype() != DType::Bool,
        not_implemented,
        "{name}: received a bool input for `y`, but bool is not supported"
    );
    ensure!(
        !matches!(dx, Scalar::Bool(_) | Scalar::Complex(..)),
        runtime,
        "{name}: Currently, we only support dx as a real number."
    );
    Ok(())
}

/// Zeros of the shape without `dim`, if there is no point along it.
fn without_points(y: &Tensor, dim: i64) -> Result<Option<Tensor>> {
    let at = wrap_own_dim(dim, y.ndim())?;
    if y.shape()[at] != 0 {
        return Ok(None);
    }
    let mut shape = Dims::from_slice(y.shape());
    shape.remove(at);
    y.new_zeros(&shape).map(Some)
}

fn by_points(y: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
    if let Some(zeros) = without_points(y, dim)? {
        return Ok(zeros);
    }
    let distances = distances("trapezoid", y, x, dim)?;
    areas(y, &distances, dim)?.sum_dim(Some(&[dim]), false)?.over(2.0)
}

fn by_distance(y: &Tensor, dx: Scalar, dim: i64) -> Result<Tensor> {
    check_distance("trapezoid", y, dx)?;
    if let Some(zeros) = without_points(y, dim)? {
        return Ok(zeros);
    }
    let ends = y.select(dim, 0)?.add(&y.select(dim, -1)?)?;
    let middle = y.sum_dim(Some(&[dim]), false)?.sub(&ends.mul(&Tensor::wrapped(0.5)?)?)?;
    middle.mul(&Tensor::wrapped(dx)?)
}

fn point_samples(s: &Sampler) -> Vec<Sample> {
    let pair = |y: &[i64], x: &[i64]| Sample::new([s.normal(y).into(), s.normal(x).into()]);
    vec![
        pair(&[3], &[3]),
        pair(&[2, 3], &[3]),
        pair(&[2, 3], &[2]).with("dim", 0_i64),
        pair(&[2, 3], &[2, 3]),
        pair(&[2, 3, 2], &[3, 2]).with("dim", 1_i64),
        pair(&[2, 0], &[0]),
        pair(&[1], &[1]),
    ]
}

fn point_invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
    let bools = Sample::new([s.bools(&[3]).into(), s.normal(&[3]).into()]);
    let pair = |y: &[i64], x: &[i64]| Sample::new([s.normal(y).into(), s.normal(x).into()]);
    let one = "There must be one `x` value for each sample point";
    let phrase = "received a bool input for `x` or `y`, but bool is not supported";
    vec![
        InvalidSample::new(bools, ErrorKind::NotImplemented, phrase),
        InvalidSample::new(pair(&[2, 3], &[4]), ErrorKind::Runtime, one),
        InvalidSample::new(pair(&[2], &[1]), ErrorKind::Runtime, one),
        InvalidSample::new(pair(&[3], &[3]).with("dim", 1_i64), ErrorKind::Index, "out of range"),
    ]
}

fn distance_samples(s: &Sampler, dx: &'static str) -> Vec<Sample> {
    let of = |shape: &[i64]| Sample::of(s.normal(shape));
    let dx = |sample: Sample, value: f64| match dx {
        "float" => sample.with("dx", value),
        _ => sample.with("dx", Scalar::Float(value)),
    };
    vec![
        of(&[3]),
        dx(of(&[2, 3]), 0.5),
        dx(of(&[2, 3]), -2.0).with("dim", 0_i64),
        of(&[2, 0]),
        of(&[1]),
    ]
}

fn distance_invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
    let bools = Sample::of(s.bools(&[3]));
    let complex = Sample::of(s.normal(&[3])).with("dx", Scalar::Complex(0.0, 2.0));
    let phrase = "received a bool input for `y`, but bool is not supported";
    let real = "Currently, we only support dx as a real number.";
    vec![
        InvalidSample::new(bools, ErrorKind::NotImplemented, phrase),
        InvalidSample::new(complex, ErrorKind::Runtime, real),
        InvalidSample::new(Sample::of(s.normal(&[])), ErrorKind::Index, ""),
    ]
}

/// The area below points `(x, y)` along `dim`, by straight lines: `sum((x[i + 1] - x[i]) * (y[i] + y[i + 1]) / 2)`.
#[op("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", function_only)]
impl TrapezoidX {
    fn composite(y: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
        by_points(y, x, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        point_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        point_invalid_samples(s)
    }
}

/// As `trapezoid` of points that are `dx` apart.
#[op("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", function_only)]
impl TrapezoidDx {
    fn composite(y: &Tensor, dx: Scalar, dim: i64) -> Result<Tensor> {
        by_distance(y, dx, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        distance_samples(s, "number")
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        distance_invalid_samples(s)
    }
}

/// As `trapezoid`, by its older name.
#[op("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", function_only)]
impl TrapzX {
    fn composite(y: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
        by_points(y, x, dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        point_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        point_invalid_samples(s)
    }
}

/// As `trapezoid` of points that are `dx` apart, by its older name.
#[op("trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor", function_only)]
impl TrapzDx {
    fn composite(y: &Tensor, dx: f64, dim: i64) -> Result<Tensor> {
        by_distance(y, Scalar::Float(dx), dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        distance_samples(s, "float")
    }
}

/// The areas below points `(x, y)` along `dim` from the first point up to each further one, by straight lines.
#[op("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", function_only)]
impl CumulativeTrapezoidX {
    fn composite(y: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
        let distances = distances("cumulative_trapezoid", y, x, dim)?;
        areas(y, &distances, dim)?.cumsum(dim)?.over(2.0)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        point_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        point_invalid_samples(s)
    }
}

/// As `cumulative_trapezoid` of points that are `dx` apart.
#[op("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", function_only)]
impl CumulativeTrapezoidDx {
    fn composite(y: &Tensor, dx: Scalar, dim: i64) -> Result<Tensor> {
        check_distance("cumulative_trapezoid", y, dx)?;
        wrap_own_dim(dim, y.ndim())?;
        let [later, earlier] = neighbours(y, dim)?;
        later.add(&earlier)?.mul(&Tensor::wrapped(dx.to_f64() / 2.0)?)?.cumsum(dim)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        distance_samples(s, "number")
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        distance_invalid_samples(s)
    }
}
