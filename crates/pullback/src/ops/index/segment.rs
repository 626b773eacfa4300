//! Reductions of segments: runs of rows that follow each other.
//!
//! `_segment_ids` numbers the rows by their segments; the rest is `index_add` and `index_reduce`. Not here: rows at any
//! indices (`scatter_reduce`).

use crate::dispatch::OpDef;
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::{list, wrap_own_dim};
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&SEGMENT_REDUCE, &SEGMENT_IDS];

/// Reduces segments of `data` along `axis` by "sum", "mean", "max", "min" or "prod". `lengths` (*, segments) says how long
/// they are, or `offsets` (*, segments + 1) where they begin and end; * are the dimensions before `axis`. `initial` takes
/// part in each segment; without it an empty one gives 0, NaN, -inf, inf or 1. Equal maxima or minima share the gradient evenly.
/// Unless `unsafe`, `lengths` must not be negative and must cover `axis`.
#[op(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    out,
    function_only,
    not_differentiable(lengths, indices, offsets)
)]
impl SegmentReduce {
    fn composite(
        data: &Tensor,
        reduce: &str,
        lengths: Option<&Tensor>,
        indices: Option<&Tensor>,
        offsets: Option<&Tensor>,
        axis: i64,
        unsafe_: bool,
        initial: Option<Scalar>,
    ) -> Result<Tensor> {
        ensure!(
            indices.is_none(),
            runtime,
            "segment_reduce(): indices based reduction is not supported yet."
        );
        let axis = wrap_own_dim(axis, data.ndim())?;
        let way = Way::named(reduce)?;
        ensure!(
            data.dtype().is_floating_point(),
            not_implemented,
            "\"_segment_reduce_cpu\" not implemented for '{}'",
            data.dtype().scalar_name()
        );
        let segments = match (offsets, lengths) {
            (Some(offsets), _) => Segments::of("offsets", offsets, data.shape(), axis, true)?,
            (None, Some(lengths)) => Segments::of("lengths", lengths, data.shape(), axis, unsafe_)?,
            (None, None) => {
                bail!(runtime, "segment_reduce(): Either lengths or offsets must be defined.")
            }
        };
        initial.map_or(Ok(()), |initial| initial.check_fits(data.dtype()))?;
        segments.reduced(data, way, initial)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let numbers =
            |v: &[i64], shape: &[i64]| Tensor::from_slice(v, shape).expect("samples are small");
        let call = |x: &[i64], reduce: &str| {
            let x = s.distinct(x).plus(0.05).expect("samples are small");
            Sample::new([x.into(), reduce.into()])
        };
        let mut all = Vec::new();
        for reduce in ["sum", "mean", "max", "min", "prod"] {
            let rows = call(&[5, 2], reduce).with("lengths", numbers(&[2, 0, 3], &[3]));
            let start = if reduce == "mean" { 2.0 } else { 0.07 };
            all.push(rows.with("initial", Scalar::Float(start)));
            all.push(call(&[4], reduce).with("offsets", numbers(&[0, 1, 4], &[3])));
        }
        let each = numbers(&[1, 2, 3, 0], &[2, 2]);
        all.push(call(&[2, 3], "sum").with("lengths", each).with("axis", 1));
        all.push(call(&[0], "max").with("lengths", numbers(&[0], &[1])).without_gradient());
        let part = call(&[4], "sum").with("lengths", numbers(&[1, 2], &[2]));
        all.push(part.with("unsafe", true));
        let inside = call(&[5], "prod").with("offsets", numbers(&[1, 2, 4], &[3]));
        all.push(inside);
        all
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let numbers =
            |v: &[i64]| Tensor::from_slice(v, &[v.len() as i64]).expect("samples are small");
        let call = |reduce: &str| Sample::new([s.normal(&[4]).into(), reduce.into()]);
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let whole = Sample::new([s.integers(&[2], 0, 3).into(), "sum".into()]);
        vec![
            bad(call("sum"), "Either lengths or offsets must be defined."),
            bad(
                call("foo").with("lengths", numbers(&[4])),
                "reduce argument must be either sum, prod, mean, amax or amin, got foo",
            ),
            bad(
                call("sum").with("lengths", numbers(&[3])),
                "Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1)",
            ),
            bad(call("sum").with("lengths", numbers(&[5, -1])), "lengths contains negative value"),
            bad(
                call("sum").with("lengths", numbers(&[i64::MAX, 1])).with("unsafe", true),
                "lengths reach beyond",
            ),
            bad(call("sum").with("offsets", numbers(&[3, 0])), "offsets must not decrease"),
            bad(
                call("sum").with("indices", numbers(&[0])),
                "indices based reduction is not supported yet",
            ),
            InvalidSample::new(
                whole.with("lengths", numbers(&[2])),
                ErrorKind::NotImplemented,
                "\"_segment_reduce_cpu\" not implemented for 'Long'",
            ),
        ]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
}

impl Way {
    fn named(name: &str) -> Result<Way> {
        Ok(match name {
            "sum" => Way::Sum,
            "mean" => Way::Mean,
            "max" | "amax" => Way::Max,
            "min" | "amin" => Way::Min,
            "prod" => Way::Prod,
            other => bail!(
                runtime,
                "reduce argument must be either sum, prod, mean, amax or amin, got {other}"
            ),
        })
    }
    /// The result of an empty segment.
    fn neutral(self) -> f64 {
        match self {
            Way::Sum => 0.0,
            Way::Mean => f64::NAN,
            Way::Max => f64::NEG_INFINITY,
            Way::Min => f64::INFINITY,
            Way::Prod => 1.0,
        }
    }
}

/// The number of the segment that each of `size` rows is in, along the last dimension; rows that are in none have the
/// number of segments. `bounds` (*, segments) are lengths, which must cover all rows if they are `complete`, or (*,
/// segments + 1) `offsets`.
#[op("_segment_ids(Tensor bounds, int size, bool offsets, bool complete) -> Tensor", internal, not_differentiable,
     method = segment_ids, batch = pass)]
impl SegmentIds {
    fn meta(bounds: &Tensor, size: i64, offsets: bool) -> Result<TensorSpec> {
        let dtype = bounds.dtype();
        ensure!(
            dtype == DType::I64,
            runtime,
            "expected scalar type {} but found {}",
            DType::I64.scalar_name(),
            dtype.scalar_name()
        );
        let mut shape = Dims::from_slice(bounds.shape());
        let given = shape.pop().unwrap_or(0);
        ensure!(
            !offsets || given > 0 || shape.contains(&0),
            runtime,
            "segment_reduce(): offsets must hold at least one number"
        );
        shape.push(size);
        TensorSpec::beside(bounds, &shape).checked()
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        bounds: &Tensor,
        size: i64,
        offsets: bool,
        complete: bool,
    ) -> Result<()> {
        let given = bounds.shape().last().map_or(0, |&n| n as usize);
        let leading = &bounds.shape()[..bounds.ndim().max(1) - 1];
        let lines: i64 = leading.iter().product();
        let bounds = bounds.dense(cpu)?;
        let (numbers, mut memory) = (bounds.view_ref(cpu), result.view_mut(cpu));
        let (Some(numbers), Some(ids)) = (numbers.as_slice::<i64>(), memory.as_slice_mut::<i64>())
        else {
            return Ok(());
        };
        for line in 0..lines as usize {
            let numbers = &numbers[line * given..(line + 1) * given];
            let ids = &mut ids[line * size as usize..(line + 1) * size as usize];
            if offsets {
                check_offsets(numbers, size)?;
                number_between(ids, numbers);
            } else {
                check_lengths(numbers, size, complete)?;
                number_lengths(ids, numbers);
            }
        }
        Ok(())
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        let call = |bounds: &[i64], shape: &[i64], offsets: bool| {
            let bounds = Tensor::from_slice(bounds, shape).expect("samples are small");
            let call = Sample::of(bounds).with("size", 4).with("offsets", offsets);
            call.with("complete", !offsets).without_gradient()
        };
        vec![call(&[1, 0, 3, 2, 2, 0], &[2, 3], false), call(&[1, 1, 3], &[3], true)]
    }
}

/// Numbers rows by the segments of these lengths, which were checked; those behind them have the number of segments.
fn number_lengths(ids: &mut [i64], lengths: &[i64]) {
    let mut rest = ids;
    for (id, &length) in lengths.iter().enumerate() {
        let (segment, behind) = rest.split_at_mut(length as usize);
        segment.fill(id as i64);
        rest = behind;
    }
    rest.fill(lengths.len() as i64);
}

/// Numbers rows by the segments between these offsets, which were checked; those outside have the number of segments.
fn number_between(ids: &mut [i64], offsets: &[i64]) {
    ids.fill(offsets.len() as i64 - 1);
    for (id, (&begin, &end)) in offsets.iter().zip(&offsets[1..]).enumerate() {
        ids[begin as usize..end as usize].fill(id as i64);
    }
}

fn check_lengths(lengths: &[i64], size: i64, complete: bool) -> Result<()> {
    if let Some(length) = lengths.iter().find(|n| **n < 0) {
        bail!(runtime, "lengths contains negative value! (it is {length})");
    }
    let sum = lengths.iter().fold(0_i64, |sum, &length| sum.saturating_add(length));
    ensure!(
        !complete || sum == size,
        runtime,
        "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe, but got {sum} for a size of {size}."
    );
    ensure!(
        sum <= size,
        runtime,
        "segment_reduce(): lengths reach beyond the {size} rows of data: they sum to {sum}"
    );
    Ok(())
}

fn check_offsets(offsets: &[i64], size: i64) -> Result<()> {
    if let Some((last, next)) = offsets.iter().zip(offsets.iter().skip(1)).find(|(a, b)| a > b) {
        bail!(runtime, "segment_reduce(): offsets must not decrease, but {next} follows {last}");
    }
    match offsets {
        [first, .., last] if *first < 0 || *last > size => {
            bail!(runtime, "segment_reduce(): offsets {first} to {last} are not in 0..={size}")
        }
        [only] if !(0..=size).contains(only) => {
            bail!(runtime, "segment_reduce(): offset {only} is not in 0..={size}")
        }
        _ => Ok(()),
    }
}

/// The segments of rows, in lines: the dimensions before the axis flattened.
struct Segments {
    /// The segment of each row, (lines, rows).
    ids: Tensor,
    /// How many rows each segment has, (*, segments).
    counts: Tensor,
    /// Whether rows may be in no segment.
    leaves_rows: bool,
}

impl Segments {
    fn of(
        name: &str,
        bounds: &Tensor,
        shape: &[i64],
        axis: usize,
        leaves_rows: bool,
    ) -> Result<Segments> {
        ensure!(
            matches!(bounds.dtype(), DType::I64 | DType::I32),
            not_implemented,
            "\"_segment_reduce_{name}_cpu_kernel1\" not implemented for '{}'",
            bounds.dtype().scalar_name()
        );
        ensure!(
            bounds.ndim() == axis + 1,
            runtime,
            "segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}."
        );
        ensure!(
            bounds.shape()[..axis] == shape[..axis],
            runtime,
            "segment_reduce(): Expected the dimensions of {name} {} before axis {axis} to be those of data {}",
            list(bounds.shape()),
            list(shape)
        );
        let bounds = bounds.to_dtype(DType::I64)?;
        let are_offsets = name == "offsets";
        let ids = bounds.segment_ids(shape[axis], are_offsets, !leaves_rows)?;
        let counts = if are_offsets {
            let count = bounds.shape()[axis] - 1;
            bounds.narrow(-1, 1, count)?.sub(&bounds.narrow(-1, 0, count)?)?
        } else {
            bounds
        };
        Ok(Segments { ids, counts, leaves_rows })
    }

    /// The number of additional segments in each line, for rows that are in none.
    fn spare(&self) -> i64 {
        i64::from(self.leaves_rows)
    }

    fn reduced(&self, data: &Tensor, way: Way, initial: Option<Scalar>) -> Result<Tensor> {
        let axis = self.counts.ndim() - 1;
        let count = self.counts.shape()[axis];
        let rows = self.rows(data, count)?;
        let lines: i64 = data.shape()[..axis].iter().product();
        let given = initial.map(Scalar::to_f64);
        let first = given.unwrap_or(way.neutral());
        let out = match way {
            Way::Sum => rows.sum(&rows.values, first)?,
            Way::Mean => {
                let counts = self.counts.reshape(&[lines, count, 1])?;
                let divisor = counts.clamp_min(1.into())?.to_dtype(rows.values.dtype())?;
                let mean = rows.sum(&rows.values, given.unwrap_or(0.0))?.div(&divisor)?;
                mean.masked_fill(&counts.eq(&Tensor::wrapped(0)?)?, Scalar::Float(first))?
            }
            Way::Prod => rows.product()?.times(first)?,
            Way::Max | Way::Min => rows.extremum(way, first)?,
        };
        let mut shape = Dims::from_slice(self.counts.shape());
        shape.extend_from_slice(&data.shape()[axis + 1..]);
        out.reshape(&shape)?.to_dtype(data.dtype())
    }

    /// The rows of all lines, and the segment of each.
    fn rows(&self, data: &Tensor, count: i64) -> Result<SegmentRows> {
        let axis = self.counts.ndim() - 1;
        let (before, inner) = (&data.shape()[..axis], &data.shape()[axis + 1..]);
        let (lines, size): (i64, i64) = (before.iter().product(), data.shape()[axis]);
        let wide = if data.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let mut values = data.to_dtype(wide)?.reshape(&[lines * size, inner.iter().product()])?;
        let ids = self.ids.reshape(&[lines, size])?;
        let all = count + self.spare();
        let mut positions = ids.clone();
        if lines > 1 {
            let line = TensorSpec::beside(&self.ids, &[lines, 1]).zeros()?.plus(1)?.cumsum(0)?;
            positions = ids.add(&line.plus(-1)?.times(all)?)?;
        }
        let positions = positions.reshape(&[lines * size])?;
        if self.leaves_rows {
            // Rows that are in no segment must not make a gradient NaN.
            let left = ids.eq(&Tensor::wrapped(count)?)?.reshape(&[lines * size, 1])?;
            values = values.masked_fill(&left, Scalar::Int(1))?;
        }
        Ok(SegmentRows { values, positions, segments: (lines, all, count) })
    }
}

/// Rows and the segments that they are in.
struct SegmentRows {
    /// The rows of all lines in at least single precision, (rows of all lines, width).
    values: Tensor,
    /// The segment of each row among those of all lines.
    positions: Tensor,
    /// The number of lines, of segments in each, and of those among these that are shown.
    segments: (i64, i64, i64),
}

impl SegmentRows {
    /// `value` for each segment of `rows`' dtype.
    fn start(&self, value: f64) -> Result<Tensor> {
        let (lines, all, _) = self.segments;
        let shape = [lines * all, self.values.shape()[1]];
        let zeros = TensorSpec::beside(&self.values, &shape).zeros()?;
        if value == 0.0 { Ok(zeros) } else { zeros.plus(value) }
    }
    /// The segments that are shown, (lines, segments, width).
    fn shown(&self, segments: &Tensor) -> Result<Tensor> {
        let (lines, all, count) = self.segments;
        let segments = segments.view(&[lines, all, self.values.shape()[1]])?;
        if all == count { Ok(segments) } else { segments.narrow(1, 0, count)?.clone_tensor(None) }
    }
    fn sum(&self, rows: &Tensor, first: f64) -> Result<Tensor> {
        self.shown(&self.start(first)?.index_add(0, &self.positions, rows)?)
    }
    fn fold(&self, rows: &Tensor, way: &str, first: f64) -> Result<Tensor> {
        let start = self.start(first)?;
        self.shown(&start.index_reduce_with(0, &self.positions, rows, way, false)?)
    }
    /// Products. That of a segment with NaN is the product of the others times the sum of what is NaN, so that the one element
    /// which is NaN has the product of the others for a gradient.
    fn product(&self) -> Result<Tensor> {
        let nan = NanRows::of(self)?;
        let others = self.fold(&nan.filled(self, 1.0)?, "prod", 1.0)?;
        // (Two of them make each other's gradient NaN.)
        let several = nan.counts.gt(&Tensor::wrapped(1)?)?;
        let factor = nan.sums.mul(&nan.counts.masked_fill(&several, f64::NAN.into())?)?;
        nan.or(&others.mul(&factor)?, &others)
    }
    /// Maxima or minima, of `first` too. Those that are NaN share the gradient evenly.
    fn extremum(&self, way: Way, first: f64) -> Result<Tensor> {
        let nan = NanRows::of(self)?;
        let name = if way == Way::Max { "amax" } else { "amin" };
        let best = self.fold(&nan.filled(self, way.neutral())?, name, way.neutral())?;
        let (plain, least) = (best.detach()?, Tensor::wrapped(first)?);
        let is_worse = if way == Way::Max { plain.lt(&least)? } else { plain.gt(&least)? };
        let best = best.masked_fill(&is_worse, first.into())?;
        let mean = nan.sums.div(&nan.counts.clamp_min(1.into())?)?;
        nan.or(&mean, &best)
    }
}

/// The elements that are NaN, of which the reductions of `index_reduce` have no gradient.
struct NanRows {
    /// Which elements of the rows are NaN.
    mask: Tensor,
    /// The number of NaN in each segment.
    counts: Tensor,
    /// The sums of these elements: NaN where there are any, else zero.
    sums: Tensor,
}

impl NanRows {
    fn of(rows: &SegmentRows) -> Result<NanRows> {
        let mask = rows.values.detach()?.isnan()?;
        let counts = rows.sum(&mask.to_dtype(rows.values.dtype())?, 0.0)?;
        let sums =
            rows.sum(&rows.values.masked_fill(&mask.logical_not()?, Scalar::Int(0))?, 0.0)?;
        Ok(NanRows { mask, counts, sums })
    }
    /// The rows with `value` in place of NaN.
    fn filled(&self, rows: &SegmentRows, value: f64) -> Result<Tensor> {
        rows.values.masked_fill(&self.mask, Scalar::Float(value))
    }
    /// `with` in the segments that have NaN, `without` in the others.
    fn or(&self, with: &Tensor, without: &Tensor) -> Result<Tensor> {
        self.counts.gt(&Tensor::wrapped(0)?)?.where_self(with, without)
    }
}
