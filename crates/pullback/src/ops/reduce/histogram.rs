//! Histograms: `histc`, `histogram` and the parts of `histogramdd`.
//!
//! Edges come first, from the elements, a range or the caller; then the kernel counts. Bins are half open but for the last;
//! elements outside count nowhere. Nothing here has a derivative: `histc` takes no part in graphs, the others have nodes that
//! say so when gradients come to them.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::classes::no_derivative;
use crate::tensor::Cpu;
use crate::tensor::shape::list;
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::histogram::{self as kernel, BinSearch};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &HISTC,
    &HISTOGRAM,
    &HISTOGRAM_BINS,
    &HISTOGRAMDD_EDGES,
    &HISTOGRAMDD_COUNTS,
    &HISTOGRAMDD_TENSORS,
];

/// The outermost edges.
type EdgeRange = (f64, f64);

/// Widens the range around a single value.
fn widened((low, high): EdgeRange, by: f64) -> EdgeRange {
    if low == high { (low - by, high + by) } else { (low, high) }
}

/// The smallest and largest of some elements.
fn min_max(t: &Tensor) -> Result<EdgeRange> {
    let [low, high] = t.aminmax()?;
    Ok((low.element()?.to_f64(), high.element()?.to_f64()))
}

fn check_bins(bins: i64, dim: usize) -> Result<()> {
    ensure!(
        bins > 0,
        runtime,
        "torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}"
    );
    Ok(())
}

/// The spec of the edges of `bins` bins.
fn edge_spec(x: &Tensor, bins: i64) -> Result<TensorSpec> {
    let steps = bins.checked_add(1).ok_or_else(|| {
        crate::Error::runtime(format!("Storage size calculation overflowed with sizes=[{bins}]"))
    })?;
    TensorSpec::beside(x, &[steps]).checked()
}

fn evenly((low, high): EdgeRange, bins: i64, dtype: DType) -> Result<Tensor> {
    let steps = bins + 1;
    let (low, high) = (Scalar::Float(low), Scalar::Float(high));
    crate::ops::creation::spaced::linspace_with(low, high, steps, Some(dtype), None, None, None)
}

/// Refuses limits that are not finite or in the wrong order.
fn check_range((low, high): EdgeRange) -> Result<()> {
    ensure!(
        low.is_finite() && high.is_finite(),
        runtime,
        "torch.histc: range of [{low}, {high}] is not finite"
    );
    ensure!(low < high, runtime, "torch.histc: max must be larger than min");
    Ok(())
}

/// How many elements lie in each of `bins` bins of equal width between `min` and `max`; if these are equal, between the
/// smallest and the largest element. Nothing gives zeros.
#[op(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    exact_out,
    not_differentiable
)]
impl Histc {
    fn meta(self_: &Tensor, bins: i64, min: Scalar, max: Scalar) -> Result<TensorSpec> {
        let dtype = self_.dtype();
        ensure!(
            !dtype.is_complex(),
            type_error,
            "histc not implemented for {}",
            dtype.scalar_name()
        );
        for limit in [min, max] {
            ensure!(
                !matches!(limit, Scalar::Complex(..)),
                runtime,
                "value cannot be converted to type double without overflow: a limit is complex"
            );
        }
        check_bins(bins, 0)?;
        let range = (min.to_f64(), max.to_f64());
        if range.0 != range.1 || self_.numel() == 0 {
            check_range(widened(range, 1.0))?;
        }
        // (Last, as PyTorch does: whole numbers with bad limits are told of these.)
        ensure!(
            dtype.is_floating_point(),
            not_implemented,
            "\"histogram_cpu\" not implemented for '{}'",
            dtype.scalar_name()
        );
        edge_spec(self_, bins)?;
        Ok(TensorSpec::beside(self_, &[bins]))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        bins: i64,
        min: Scalar,
        max: Scalar,
    ) -> Result<()> {
        let dtype = result.dtype();
        let mut range = (min.to_f64(), max.to_f64());
        if range.0 == range.1 && self_.numel() > 0 {
            range = min_max(self_)?;
        }
        let range = widened(range, 1.0);
        check_range(range)?;
        let edges = evenly(range, bins, dtype)?;
        // (Half-precision numbers are compared in single precision.)
        let compute = if dtype == DType::F64 { dtype } else { DType::F32 };
        let points = self_.in_dtype(cpu, compute)?.reshape(&[-1, 1])?;
        let sums =
            counted(cpu, &points, &[edges.in_dtype(cpu, compute)?], BinSearch::Divide, None)?;
        result.copy_data(cpu, &sums)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let of = |t: Tensor, bins: i64| Sample::of(t).with("bins", bins);
        let limits = |sample: Sample, min: f64, max: f64| {
            sample.with("min", Scalar::Float(min)).with("max", Scalar::Float(max))
        };
        vec![
            of(s.normal(&[3, 4]), 4),
            limits(of(s.normal(&[20]), 5), -1.0, 1.5),
            of(s.transposed(3, 2), 1),
            of(s.normal(&[]), 3),
            of(s.normal(&[0]), 3),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let of = |bins: i64, min: Scalar, max: Scalar| {
            Sample::new([s.normal(&[3]).into(), bins.into(), min.into(), max.into()])
        };
        let (zero, one) = (Scalar::Int(0), Scalar::Int(1));
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let whole = Sample::of(s.integers(&[3], 0, 5));
        let phrase = "\"histogram_cpu\" not implemented for 'Long'";
        vec![
            bad(of(0, zero, one), "bins must be > 0, but got 0"),
            bad(of(2, one, zero), "torch.histc: max must be larger than min"),
            bad(of(2, zero, Scalar::Float(f64::INFINITY)), "is not finite"),
            bad(of(2, Scalar::Complex(0.0, 1.0), one), "without overflow"),
            bad(of(i64::MAX, zero, one), "overflow"),
            InvalidSample::new(whole, ErrorKind::NotImplemented, phrase),
        ]
    }
}

/// The sums of `points`, (n, d), in the boxes that the edges make.
fn counted(
    cpu: Cpu,
    points: &Tensor,
    edges: &[Tensor],
    search: BinSearch,
    weights: Option<&Tensor>,
) -> Result<Tensor> {
    let shape = grid_shape(edges);
    // (Refuses sizes beyond memory before the kernel multiplies them.)
    drop(TensorSpec::of(&shape, DType::F64).empty()?);
    let edges = edges.iter().map(|t| t.dense(cpu)).collect::<Result<Vec<_>>>()?;
    let edges: Vec<_> = edges.iter().map(|t| t.view_ref(cpu)).collect();
    let weights = weights.map(|t| t.view_ref(cpu));
    let sums = kernel::histogram(&points.view_ref(cpu), &edges, search, weights.as_ref())?;
    Tensor::from_slice(&sums, &shape)
}

/// The arguments of a histogram.
struct HistogramInput {
    /// One row for each point.
    points: Tensor,
    weights: Option<Tensor>,
}

/// How many bins there are between edges, dimension by dimension.
fn grid_shape(edges: &[Tensor]) -> Dims {
    edges.iter().map(|t| t.numel() - 1).collect()
}

/// The spec of the sums of a grid of bins.
fn grid_spec(x: &Tensor, bins: &[i64]) -> Result<TensorSpec> {
    TensorSpec::beside(x, bins).computed_in(DType::F64).checked()?;
    Ok(TensorSpec::beside(x, bins))
}

/// Refuses points, rows of the last dimension of `shape`, that have not as many coordinates as there are sequences of edges, and
/// weights of another shape.
fn check_points(
    (shape, dtype): (&[i64], DType),
    count: usize,
    weight: Option<(&[i64], DType)>,
) -> Result<()> {
    ensure!(
        shape.len() > 1,
        runtime,
        "torch.histogramdd: input tensor should have at least 2 dimensions, but got {}",
        shape.len()
    );
    let (rank, leading) = (shape[shape.len() - 1], &shape[..shape.len() - 1]);
    ensure!(
        rank == count as i64,
        runtime,
        "torch.histogramdd: expected {rank} sequences of bin edges for a {rank}-dimensional histogram but got {count}"
    );
    if let Some((weight_shape, weight_dtype)) = weight {
        ensure!(
            weight_dtype == dtype,
            runtime,
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got input({}), and weight({})",
            dtype.spelled(),
            weight_dtype.name()
        );
        ensure!(
            weight_shape == leading,
            runtime,
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost dimension, but got input with shape {} and weight with shape {}",
            list(shape),
            list(weight_shape)
        );
    }
    ensure!(
        matches!(dtype, DType::F32 | DType::F64),
        not_implemented,
        "\"histogramdd\" not implemented for '{}'",
        dtype.scalar_name()
    );
    Ok(())
}

/// [`check_points`] of tensors.
fn check_plan(self_: &Tensor, count: usize, weight: Option<&Tensor>) -> Result<()> {
    let weight = weight.map(|w| (w.shape(), w.dtype()));
    check_points((self_.shape(), self_.dtype()), count, weight)
}

/// [`check_points`] of elements as points of one dimension.
fn check_line_plan(self_: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    let lengths = weight.map(|w| [w.numel()]);
    let weight = weight.zip(lengths.as_ref()).map(|(w, length)| (&length[..], w.dtype()));
    check_points((&[self_.numel(), 1], self_.dtype()), 1, weight)
}

/// The points, rows of `self`'s last dimension, and their weights.
fn plan(self_: &Tensor, count: usize, weight: Option<&Tensor>) -> Result<HistogramInput> {
    let (rank, leading) = (count as i64, &self_.shape()[..self_.ndim() - 1]);
    let points = leading.iter().product();
    let weights = weight.map(|w| w.reshape(&[points])).transpose()?;
    Ok(HistogramInput { points: self_.reshape(&[points, rank])?, weights })
}

/// Refuses a list of limits that is not a pair for each dimension, and pairs that are no range. Without a list only elements
/// give limits.
fn check_ranges(rank: usize, range: Option<&[f64]>) -> Result<()> {
    let Some(range) = range else { return Ok(()) };
    ensure!(
        range.len() == 2 * rank,
        runtime,
        "torch.histogramdd: for a {rank}-dimensional histogram range should have {} elements, but got {}",
        2 * rank,
        range.len()
    );
    let pairs = range.chunks_exact(2).enumerate();
    pairs.into_iter().try_for_each(|(dim, pair)| check_limits(dim, (pair[0], pair[1])))
}

fn check_limits(dim: usize, (low, high): EdgeRange) -> Result<()> {
    ensure!(
        low.is_finite() && high.is_finite(),
        runtime,
        "torch.histogramdd: dimension {dim}'s range [{low}, {high}] is not finite"
    );
    ensure!(
        low <= high,
        runtime,
        "torch.histogramdd: min should not exceed max, but got min {low} max {high} for dimension {dim}"
    );
    Ok(())
}

/// The outermost edges of each dimension.
fn ranges(points: &Tensor, range: Option<&[f64]>) -> Result<Vec<EdgeRange>> {
    let rank = points.shape()[1] as usize;
    let of = |dim: usize| -> Result<EdgeRange> {
        let (low, high) = match range {
            Some(range) => (range[2 * dim], range[2 * dim + 1]),
            None if points.numel() == 0 => (0.0, 1.0),
            None => min_max(&points.select(1, dim as i64)?)?,
        };
        check_limits(dim, (low, high))?;
        Ok(widened((low, high), 0.5))
    };
    (0..rank).map(of).collect()
}

/// Refuses invalid numbers of bins and ranges; returns the specs of the edges and of the sums of
/// such a grid.
fn even_specs(
    x: &Tensor,
    bins: &[i64],
    range: Option<&[f64]>,
) -> Result<(Vec<TensorSpec>, TensorSpec)> {
    bins.iter().enumerate().try_for_each(|(dim, &n)| check_bins(n, dim))?;
    check_ranges(bins.len(), range)?;
    let edges = bins.iter().map(|&n| edge_spec(x, n)).collect::<Result<_>>()?;
    Ok((edges, grid_spec(x, bins)?))
}

fn even_edges(plan: &HistogramInput, bins: &[i64], range: Option<&[f64]>) -> Result<Vec<Tensor>> {
    let ranges = ranges(&plan.points, range)?;
    ranges.into_iter().zip(bins).map(|(r, &n)| evenly(r, n, plan.points.dtype())).collect()
}

/// Refuses edges that are not vectors of the points' dtype; returns the spec of the sums between
/// them.
fn edged_spec(points: &Tensor, edges: &[Tensor]) -> Result<TensorSpec> {
    for (dim, t) in edges.iter().enumerate() {
        ensure!(
            t.dtype() == points.dtype(),
            runtime,
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype {} and bins for dimension {dim} with dtype {}",
            points.dtype().spelled(),
            t.dtype().spelled()
        );
        ensure!(
            t.ndim() == 1,
            runtime,
            "torch.histogramdd: bins tensor should have one dimension, but got {} dimensions in the bins tensor for dimension {dim}",
            t.ndim()
        );
        ensure!(
            t.numel() > 0,
            runtime,
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for dimension {dim}"
        );
        check_bins(t.numel() - 1, dim)?;
    }
    grid_spec(points, &grid_shape(edges))
}

fn summed(
    cpu: Cpu,
    plan: &HistogramInput,
    edges: &[Tensor],
    search: BinSearch,
    density: bool,
) -> Result<Tensor> {
    if edges.is_empty() {
        // Points without coordinates have no elements to count: as in PyTorch, the one bin there is stays empty.
        let sum = Tensor::scalar_of(0_i64, plan.points.dtype())?;
        return if density { sum.div(&sum) } else { Ok(sum) };
    }
    let sums = counted(cpu, &plan.points, edges, search, plan.weights.as_ref())?;
    let mut sums = sums.in_dtype(cpu, plan.points.dtype())?;
    if density {
        sums = sums.div(&sums.sum()?)?;
        for (dim, edges) in edges.iter().enumerate() {
            let mut shape = Dims::from_elem(1, sums.ndim());
            shape[dim] = -1;
            sums = sums.div(&super::difference::step(edges, 0)?.reshape(&shape)?)?;
        }
    }
    Ok(sums)
}

/// A vector's elements as points of one dimension.
fn line_plan(self_: &Tensor, weight: Option<&Tensor>) -> Result<HistogramInput> {
    let weight = weight.map(|w| w.reshape(&[-1])).transpose()?;
    plan(&self_.reshape(&[-1, 1])?, 1, weight.as_ref())
}

fn float_samples(s: &Sampler, make: impl Fn(&Sampler) -> Vec<Sample>) -> Vec<Sample> {
    let samples = if s.dtype.is_complex() { Vec::new() } else { make(s) };
    samples.into_iter().map(Sample::without_gradient).collect()
}

fn edges(values: &[f64], dtype: DType) -> Tensor {
    let edges = Tensor::from_slice(values, &[values.len() as i64]).and_then(|t| t.to_dtype(dtype));
    edges.expect("samples are small")
}

/// How many elements, or what `weight` of them, lie in each of `bins` bins of equal width over `range` (from the smallest to
/// the largest element if `None`), and the bins' edges. As a `density` the areas of the bins add up to 1.
#[op(
    "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    exact_out
)]
impl Histogram {
    fn meta(
        self_: &Tensor,
        bins: i64,
        range: Option<&[f64]>,
        weight: Option<&Tensor>,
    ) -> Result<Vec<TensorSpec>> {
        check_line_plan(self_, weight)?;
        let (mut specs, sums) = even_specs(self_, &[bins], range)?;
        specs.insert(0, sums);
        Ok(specs)
    }
    fn cpu(
        cpu: Cpu,
        hist: &Tensor,
        bin_edges: &Tensor,
        self_: &Tensor,
        bins: i64,
        range: Option<&[f64]>,
        weight: Option<&Tensor>,
        density: bool,
    ) -> Result<()> {
        let plan = line_plan(self_, weight)?;
        let edges = even_edges(&plan, &[bins], range)?;
        let sums = summed(cpu, &plan, &edges, BinSearch::DivideThenCorrect, density)?;
        hist.copy_data(cpu, &sums)?;
        bin_edges.copy_data(cpu, &edges[0])
    }
    fn vjp_self() -> Result<Tensor> {
        no_derivative("derivative for aten::histogram")
    }
    fn vjp_weight() -> Result<Tensor> {
        no_derivative("derivative for aten::histogram")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        float_samples(s, |s| {
            let of = |t: Tensor, bins: i64| Sample::of(t).with("bins", bins);
            vec![
                of(s.normal(&[3, 4]), 4),
                of(s.normal(&[20]), 5).with("range", vec![-1.0, 1.5]),
                of(s.normal(&[2, 3]), 3).with("weight", s.normal(&[2, 3])),
                of(s.transposed(3, 2), 2).with("density", true),
                of(s.normal(&[]), 3),
                of(s.normal(&[0]), 3),
            ]
        })
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let of = || Sample::of(s.normal(&[3]));
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let whole = Sample::of(s.integers(&[3], 0, 5));
        let phrase = "\"histogramdd\" not implemented for 'Long'";
        vec![
            bad(of().with("bins", 0_i64), "bins must be > 0, but got 0 for dimension 0"),
            bad(
                of().with("range", vec![3.0, 1.0]),
                "min should not exceed max, but got min 3 max 1",
            ),
            bad(of().with("range", vec![1.0]), "range should have 2 elements, but got 1"),
            bad(of().with("range", vec![f64::NAN, 1.0]), "is not finite"),
            bad(
                of().with("weight", s.normal(&[2])),
                "input with shape [3, 1] and weight with shape [2]",
            ),
            bad(of().with("bins", i64::MAX), "overflow"),
            InvalidSample::new(whole, ErrorKind::NotImplemented, phrase),
        ]
    }
}

/// As `histogram` with the edges of the bins, in ascending order.
#[op(
    "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    exact_out
)]
impl HistogramBins {
    fn meta(self_: &Tensor, bins: &Tensor, weight: Option<&Tensor>) -> Result<[TensorSpec; 2]> {
        check_line_plan(self_, weight)?;
        let sums = edged_spec(self_, std::slice::from_ref(bins))?;
        Ok([sums, TensorSpec::laid_as(bins)])
    }
    fn cpu(
        cpu: Cpu,
        hist: &Tensor,
        bin_edges: &Tensor,
        self_: &Tensor,
        bins: &Tensor,
        weight: Option<&Tensor>,
        density: bool,
    ) -> Result<()> {
        let plan = line_plan(self_, weight)?;
        let sums = summed(cpu, &plan, std::slice::from_ref(bins), BinSearch::Bisect, density)?;
        hist.copy_data(cpu, &sums)?;
        bin_edges.copy_data(cpu, bins)
    }
    fn vjp_self() -> Result<Tensor> {
        no_derivative("derivative for aten::histogram")
    }
    fn vjp_bins() -> Result<Tensor> {
        no_derivative("derivative for aten::histogram")
    }
    fn vjp_weight() -> Result<Tensor> {
        no_derivative("derivative for aten::histogram")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        float_samples(s, |s| {
            let of =
                |t: Tensor| Sample::new([t.into(), edges(&[-1.5, -0.2, 0.0, 1.0], s.dtype).into()]);
            vec![
                of(s.normal(&[3, 4])),
                of(s.normal(&[2, 3])).with("weight", s.normal(&[2, 3])).with("density", true),
                of(s.normal(&[0])),
            ]
        })
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |bins: Tensor, phrase| {
            let sample = Sample::new([s.normal(&[3]).into(), bins.into()]);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(edges(&[1.0, 2.0], DType::F32), "bins for dimension 0 with dtype float32"),
            bad(s.normal(&[1, 3]), "bins tensor should have one dimension, but got 2"),
            bad(s.normal(&[0]), "bins tensor should have at least 1 element"),
            bad(s.normal(&[1]), "bins must be > 0, but got 0 for dimension 0"),
        ]
    }
}

/// The edges of `histogramdd`'s bins, a vector for each dimension.
#[op("_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
     internal, function_only, method = histogramdd_bin_edges)]
impl HistogramddEdges {
    fn meta(
        self_: &Tensor,
        bins: &[i64],
        range: Option<&[f64]>,
        weight: Option<&Tensor>,
    ) -> Result<Vec<TensorSpec>> {
        check_plan(self_, bins.len(), weight)?;
        Ok(even_specs(self_, bins, range)?.0)
    }
    fn cpu(
        cpu: Cpu,
        result: &[&Tensor],
        self_: &Tensor,
        bins: &[i64],
        range: Option<&[f64]>,
        weight: Option<&Tensor>,
    ) -> Result<()> {
        let edges = even_edges(&plan(self_, bins.len(), weight)?, bins, range)?;
        edges.iter().zip(result).try_for_each(|(edges, out)| out.copy_data(cpu, edges))
    }
    fn vjp_self() -> Result<Tensor> {
        no_derivative("derivative for aten::_histogramdd_bin_edges")
    }
    fn vjp_weight() -> Result<Tensor> {
        no_derivative("derivative for aten::_histogramdd_bin_edges")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        grid_samples(s, || Value::from([2, 3]))
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |t: Tensor, bins: &[i64], phrase| {
            let sample = Sample::of(t).with("bins", bins);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(s.normal(&[2]), &[2], "should have at least 2 dimensions"),
            bad(s.normal(&[4, 2]), &[2], "expected 2 sequences of bin edges"),
            bad(s.normal(&[4, 2]), &[2, 0], "bins must be > 0, but got 0 for dimension 1"),
        ]
    }
}

fn grid_samples(s: &Sampler, bins: impl Fn() -> Value) -> Vec<Sample> {
    float_samples(s, |s| {
        let of = |shape: &[i64]| Sample::new([s.normal(shape).into(), bins()]);
        vec![
            of(&[6, 2]),
            of(&[2, 3, 2]).with("weight", s.normal(&[2, 3])).with("density", true),
            of(&[0, 2]),
        ]
    })
}

/// How many points, rows of the last dimension, or what `weight` of them, lie in each box of a grid with `bins` bins of
/// equal width in each dimension.
#[op("_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor",
     internal, function_only, method = histogramdd_from_bin_cts)]
impl HistogramddCounts {
    fn meta(
        self_: &Tensor,
        bins: &[i64],
        range: Option<&[f64]>,
        weight: Option<&Tensor>,
    ) -> Result<TensorSpec> {
        check_plan(self_, bins.len(), weight)?;
        Ok(even_specs(self_, bins, range)?.1)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        bins: &[i64],
        range: Option<&[f64]>,
        weight: Option<&Tensor>,
        density: bool,
    ) -> Result<()> {
        let plan = plan(self_, bins.len(), weight)?;
        let edges = even_edges(&plan, bins, range)?;
        let sums = summed(cpu, &plan, &edges, BinSearch::DivideThenCorrect, density)?;
        result.copy_data(cpu, &sums)
    }
    fn vjp_self() -> Result<Tensor> {
        no_derivative("derivative for aten::_histogramdd_from_bin_cts")
    }
    fn vjp_weight() -> Result<Tensor> {
        no_derivative("derivative for aten::_histogramdd_from_bin_cts")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        grid_samples(s, || Value::from([2, 3]))
    }
}

/// As `_histogramdd_from_bin_cts` with the edges of the bins, in ascending order, for each dimension.
#[op("_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
     internal, function_only, method = histogramdd_from_bin_tensors)]
impl HistogramddTensors {
    fn meta(self_: &Tensor, bins: &[Tensor], weight: Option<&Tensor>) -> Result<TensorSpec> {
        check_plan(self_, bins.len(), weight)?;
        edged_spec(self_, bins)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        bins: &[Tensor],
        weight: Option<&Tensor>,
        density: bool,
    ) -> Result<()> {
        let plan = plan(self_, bins.len(), weight)?;
        result.copy_data(cpu, &summed(cpu, &plan, bins, BinSearch::Bisect, density)?)
    }
    fn vjp_self() -> Result<Tensor> {
        no_derivative("derivative for aten::_histogramdd_from_bin_tensors")
    }
    fn vjp_bins() -> Result<Vec<Tensor>> {
        no_derivative("derivative for aten::_histogramdd_from_bin_tensors")
    }
    fn vjp_weight() -> Result<Tensor> {
        no_derivative("derivative for aten::_histogramdd_from_bin_tensors")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |values: &[f64]| edges(values, s.dtype);
        grid_samples(s, || Value::Tensors(vec![of(&[-1.0, 0.0, 1.5]), of(&[-2.0, 2.0])]))
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let one = Value::Tensors(vec![s.normal(&[3])]);
        let sample = Sample::new([s.normal(&[4, 2]).into(), one]);
        let phrase = "expected 2 sequences of bin edges for a 2-dimensional histogram but got 1";
        vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
    }
}

/// How the bins of [`histogramdd`] are given.
#[derive(Clone, Copy, Debug)]
pub enum GridBins<'a> {
    /// The same number of bins of equal width in every dimension.
    Count(i64),
    /// A number of bins of equal width for each dimension.
    Counts(&'a [i64]),
    /// The edges for each dimension, in ascending order.
    Edges(&'a [Tensor]),
}

/// The histogram of points, rows of `input`'s last dimension, in a grid, and the edges of its bins.
///
/// # Errors
/// `RuntimeError` for bins, ranges or weights that do not fit; `NotImplementedError` for dtypes other than float and double.
pub fn histogramdd(
    input: &Tensor,
    bins: GridBins<'_>,
    range: Option<&[f64]>,
    weight: Option<&Tensor>,
    density: bool,
) -> Result<(Tensor, Vec<Tensor>)> {
    let Some(&rank) = input.shape().last() else {
        bail!(runtime, "torch.histogramdd: input tensor should have at least 2 dimensions")
    };
    let same;
    let counts = match bins {
        GridBins::Edges(edges) => {
            let sums = input.histogramdd_from_bin_tensors_with(edges, weight, density)?;
            // bounded: by the number of tensors.
            return Ok((sums, edges.to_vec()));
        }
        GridBins::Counts(counts) => counts,
        GridBins::Count(count) => {
            same = vec![count; rank as usize];
            &same
        }
    };
    let edges = input.histogramdd_bin_edges_with(counts, range, weight, density)?;
    let sums = input.histogramdd_from_bin_cts_with(counts, range, weight, density)?;
    Ok((sums, edges))
}
