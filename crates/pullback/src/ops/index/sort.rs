//! Order: `sort`, `argsort`, `topk`, `kthvalue`, `median`, `mode`, `unique`.
//!
//! NaN counts as larger than every number, ties keep their order. A gradient goes to the element that was
//! picked.

use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::interrupt::{self, WorkCounter};
use crate::ops::reduce::sum::{pick_into, picked_spec};
use crate::tensor::Cpu;
use crate::tensor::shape::{wrap_dim, wrap_own_dim};
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::{index, sort as kernel};
use pullback_macros::op;

use super::select::as_vector;
use pullback_kernels::memory;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &SORT,
    &SORT_STABLE,
    &ARGSORT,
    &ARGSORT_STABLE,
    &MSORT,
    &TOPK,
    &KTHVALUE,
    &MEDIAN,
    &MEDIAN_DIM,
    &NANMEDIAN,
    &NANMEDIAN_DIM,
    &MODE,
    &UNIQUE,
    &UNIQUE_PAIR,
    &UNIQUE_DIM,
    &UNIQUE_CONSECUTIVE,
];

/// Zeros with the gradient of picked elements at their indices.
fn put_back(grad: &Tensor, shape: &[i64], dim: i64, indices: &Tensor) -> Result<Tensor> {
    TensorSpec::beside(grad, shape).zeros()?.scatter(dim, indices, grad)
}

/// As `put_back`, for results without the dimension.
fn put_one_back(
    grad: &Tensor,
    shape: &[i64],
    dim: i64,
    keepdim: bool,
    indices: &Tensor,
) -> Result<Tensor> {
    if keepdim || shape.is_empty() {
        return put_back(grad, shape, dim, indices);
    }
    put_back(&grad.unsqueeze(dim)?, shape, dim, &indices.unsqueeze(dim)?)
}

/// What sorting gives: elements in the tensor's order of dimensions, and the int64 indices that they had.
fn sorted_spec(self_: &Tensor, dim: i64) -> Result<[TensorSpec; 2]> {
    refuse_complex("Sort", self_)?;
    wrap_dim(dim, self_.ndim())?;
    let values = TensorSpec::laid_as(self_);
    let indices = values.clone().computed_in(DType::I64);
    Ok([values, indices])
}

fn sample_of_distinct(s: &Sampler, shape: &[i64]) -> Option<Tensor> {
    (!s.dtype.is_complex()).then(|| s.distinct(shape))
}

/// The elements sorted along `dim`, and the indices they came from. Stable.
#[op(
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    exact_out,
    apart, batch = along
)]
impl Sort {
    fn meta(self_: &Tensor, dim: i64) -> Result<[TensorSpec; 2]> {
        sorted_spec(self_, dim)
    }
    fn cpu(
        cpu: Cpu,
        values: &Tensor,
        indices: &Tensor,
        self_: &Tensor,
        dim: i64,
        descending: bool,
    ) -> Result<()> {
        SortStable::cpu(cpu, values, indices, self_, dim, descending)
    }
    fn vjp_self(
        grad_values: &Tensor,
        self_shape: &[i64],
        dim: i64,
        indices: &Tensor,
    ) -> Result<Tensor> {
        put_back(grad_values, self_shape, dim, indices)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let Some(t) = sample_of_distinct(s, &[2, 3]) else { return Vec::new() };
        vec![Sample::of(t.clone()), Sample::of(t).with("dim", 0_i64).with("descending", true)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let complex = Sampler::new(DType::C128).normal(&[2]);
        let far = Sample::of(s.normal(&[2])).with("dim", 3_i64);
        vec![
            InvalidSample::new(
                Sample::of(complex),
                ErrorKind::Type,
                "Sort does not support complex dtypes",
            ),
            InvalidSample::new(
                far,
                ErrorKind::Index,
                "expected to be in range of [-1, 0], but got 3",
            ),
        ]
    }
}

/// As `sort`; every sort here is stable.
#[op(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    exact_out,
    apart,
    node = "SortBackward1", batch = along
)]
impl SortStable {
    fn meta(self_: &Tensor, dim: i64) -> Result<[TensorSpec; 2]> {
        sorted_spec(self_, dim)
    }
    fn cpu(
        cpu: Cpu,
        values: &Tensor,
        indices: &Tensor,
        self_: &Tensor,
        dim: i64,
        descending: bool,
    ) -> Result<()> {
        let at = wrap_dim(dim, self_.ndim())?;
        let (values, indices) = (as_vector(values)?, as_vector(indices)?);
        Ok(kernel::sort(
            &mut values.view_mut(cpu),
            &mut indices.view_mut(cpu),
            as_vector(self_)?.view_ref(cpu),
            at,
            descending,
        )?)
    }
    fn vjp_self(
        grad_values: &Tensor,
        self_shape: &[i64],
        dim: i64,
        indices: &Tensor,
    ) -> Result<Tensor> {
        put_back(grad_values, self_shape, dim, indices)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let tensors = [vec![5], vec![2, 3], vec![], vec![0]]
            .map(|shape: Vec<i64>| sample_of_distinct(s, &shape));
        let sample = |t: Tensor| Sample::of(t).with("stable", Value::None);
        let mut out: Vec<Sample> = tensors.into_iter().flatten().map(sample).collect();
        if let Some(t) = sample_of_distinct(s, &[3, 2]) {
            out.push(sample(t).with("dim", 0_i64).with("descending", true));
        }
        out
    }
}

/// The indices of the elements in sorted order.
#[op("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", not_differentiable, batch = along)]
impl Argsort {
    fn meta(self_: &Tensor, dim: i64) -> Result<TensorSpec> {
        let [_, indices] = sorted_spec(self_, dim)?;
        Ok(indices)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64, descending: bool) -> Result<()> {
        let at = wrap_dim(dim, self_.ndim())?;
        Ok(kernel::argsort(
            &mut as_vector(result)?.view_mut(cpu),
            as_vector(self_)?.view_ref(cpu),
            at,
            descending,
        )?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.integers(&[2, 3], 0, 9)).without_gradient()]
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        let complex = Sample::of(Sampler::new(DType::C128).normal(&[2]));
        let phrase = "Sort does not support complex dtypes";
        vec![InvalidSample::new(complex, ErrorKind::Type, phrase)]
    }
}

/// As `argsort`, which is always stable.
#[op(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    exact_out, not_differentiable, batch = along
)]
impl ArgsortStable {
    fn meta(self_: &Tensor, dim: i64) -> Result<TensorSpec> {
        Argsort::meta(self_, dim)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, dim: i64, descending: bool) -> Result<()> {
        Argsort::cpu(cpu, result, self_, dim, descending)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.integers(&[2, 3], 0, 9)).with("stable", true).without_gradient()]
    }
}

/// The values of `sort` along the first dimension.
#[op("msort(Tensor self) -> Tensor", exact_out, apart)]
impl Msort {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        let [values, _] = self_.sort(0, false)?;
        Ok(values)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        sample_of_distinct(s, &[3, 2]).into_iter().map(Sample::of).collect()
    }
}

/// The `k` largest (or smallest) elements along `dim`, best first, and their indices.
#[op(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    exact_out,
    apart, batch = topk(self, k)
)]
impl Topk {
    fn meta(self_: &Tensor, k: i64, dim: i64) -> Result<[TensorSpec; 2]> {
        refuse_complex("topk", self_)?;
        let at = wrap_dim(dim, self_.ndim())?;
        let size = self_.shape().get(at).copied().unwrap_or(1);
        ensure!(k >= 0 && k <= size, runtime, "selected index k out of range");
        ensure!(
            self_.dtype() != DType::Bool || k == 0 && self_.ndim() > 0,
            not_implemented,
            "topk does not support bool dtypes on CPU"
        );
        let mut shape = Dims::from_slice(self_.shape());
        if let Some(n) = shape.get_mut(at) {
            *n = k;
        }
        let values = TensorSpec::beside(self_, &shape);
        let indices = values.clone().computed_in(DType::I64);
        Ok([values, indices])
    }
    fn cpu(
        cpu: Cpu,
        values: &Tensor,
        indices: &Tensor,
        self_: &Tensor,
        k: i64,
        dim: i64,
        largest: bool,
    ) -> Result<()> {
        if values.numel() == 0 {
            return Ok(());
        }
        let at = wrap_dim(dim, self_.ndim())?;
        // (A number is picked whatever `k` is.)
        let k = if self_.ndim() == 0 { 1 } else { k };
        // (A single element that is picked of a number has no dimension to be picked along.)
        let (values, indices) = (as_vector(values)?, as_vector(indices)?);
        Ok(kernel::topk(
            &mut values.view_mut(cpu),
            &mut indices.view_mut(cpu),
            as_vector(self_)?.view_ref(cpu),
            (k as usize, at),
            largest,
        )?)
    }
    fn vjp_self(
        grad_values: &Tensor,
        self_shape: &[i64],
        dim: i64,
        indices: &Tensor,
    ) -> Result<Tensor> {
        put_back(grad_values, self_shape, dim, indices)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let Some(t) = sample_of_distinct(s, &[2, 4]) else { return Vec::new() };
        vec![
            Sample::of(t.clone()).with("k", 2_i64),
            Sample::of(t).with("k", 1_i64).with("dim", 0_i64).with("largest", false),
            Sample::of(s.normal(&[])).with("k", 0_i64),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = Sample::of(s.normal(&[3])).with("k", 4_i64);
        vec![InvalidSample::new(sample, ErrorKind::Runtime, "selected index k out of range")]
    }
}

/// The `k`-th smallest element along `dim` (counted from 1) and its index.
#[op(
    "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    exact_out,
    separate, batch = along
)]
impl Kthvalue {
    fn meta(self_: &Tensor, k: i64, dim: i64, keepdim: bool) -> Result<[TensorSpec; 2]> {
        let (at, size) = line("kthvalue", self_, dim)?;
        ensure!(
            k >= 1 && k <= size,
            runtime,
            "kthvalue(): selected number k out of range for dimension {at}"
        );
        picked_spec(self_, dim, keepdim)
    }
    fn cpu(
        cpu: Cpu,
        values: &Tensor,
        indices: &Tensor,
        self_: &Tensor,
        k: i64,
        dim: i64,
    ) -> Result<()> {
        pick_into(cpu, [values, indices], self_, dim, |values, indices, x, at| {
            kernel::kthvalue(values, indices, x, k as usize, at)
        })
    }
    fn vjp_self(
        grad_values: &Tensor,
        self_shape: &[i64],
        dim: i64,
        keepdim: bool,
        indices: &Tensor,
    ) -> Result<Tensor> {
        put_one_back(grad_values, self_shape, dim, keepdim, indices)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let Some(t) = sample_of_distinct(s, &[2, 4]) else { return Vec::new() };
        vec![
            Sample::of(t.clone()).with("k", 2_i64),
            Sample::of(t).with("k", 1_i64).with("dim", 0_i64).with("keepdim", true),
            Sample::of(s.distinct(&[])).with("k", 1_i64),
        ]
    }
}

/// The lower median along `dim` (NaN if there is one) and its index.
#[op(
    "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    exact_out,
    node = "MedianBackward1", batch = along
)]
impl MedianDim {
    fn meta(self_: &Tensor, dim: i64, keepdim: bool) -> Result<[TensorSpec; 2]> {
        check_ordered("median_out", self_)?;
        line("median", self_, dim)?;
        picked_spec(self_, dim, keepdim)
    }
    fn cpu(cpu: Cpu, values: &Tensor, indices: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        pick_into(cpu, [values, indices], self_, dim, kernel::median)
    }
    fn vjp_self(
        grad_values: &Tensor,
        self_shape: &[i64],
        dim: i64,
        keepdim: bool,
        indices: &Tensor,
    ) -> Result<Tensor> {
        put_one_back(grad_values, self_shape, dim, keepdim, indices)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let Some(t) = sample_of_distinct(s, &[2, 4]) else { return Vec::new() };
        vec![Sample::of(t).with("dim", 1_i64)]
    }
}

/// The lower median of all elements; NaN if there is one or no element.
#[op("median(Tensor self) -> Tensor", batch = reduction_by(&MEDIAN_DIM))]
impl Median {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        check_ordered("median_cpu", self_)?;
        Ok(TensorSpec::beside(self_, &[]))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        if self_.numel() == 0 {
            return result.fill_with(cpu, median_of_nothing(self_.dtype()));
        }
        let position = Tensor::empty_of(&[], DType::I64)?;
        let flat = self_.dense(cpu)?;
        let line = flat.alias_with(&[flat.numel()], &[1], flat.storage_offset())?;
        MedianDim::cpu(cpu, result, &position, &line, 0)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        let same =
            crate::ops::reduce::min_max::is_amin_or_amax(self_, result)?.to_dtype(grad.dtype())?;
        same.mul(&grad.div(&same.sum()?)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        sample_of_distinct(s, &[2, 4]).into_iter().map(Sample::of).collect()
    }
}

/// The lower median along `dim` of the elements that are not NaN, and its index; NaN if all are.
#[op(
    "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    exact_out,
    node = "NanmedianBackward1", batch = along
)]
impl NanmedianDim {
    fn meta(self_: &Tensor, dim: i64, keepdim: bool) -> Result<[TensorSpec; 2]> {
        check_ordered("median_out", self_)?;
        line("median", self_, dim)?;
        picked_spec(self_, dim, keepdim)
    }
    fn cpu(cpu: Cpu, values: &Tensor, indices: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        pick_into(cpu, [values, indices], self_, dim, kernel::nanmedian)
    }
    fn vjp_self(
        grad_values: &Tensor,
        self_shape: &[i64],
        dim: i64,
        keepdim: bool,
        indices: &Tensor,
    ) -> Result<Tensor> {
        put_one_back(grad_values, self_shape, dim, keepdim, indices)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let Some(t) = sample_of_distinct(s, &[2, 4]) else { return Vec::new() };
        vec![
            Sample::of(t.clone()).with("dim", 1_i64),
            Sample::of(t).with("dim", 0_i64).with("keepdim", true),
        ]
    }
}

/// The lower median of all elements that are not NaN; NaN if there is none.
#[op("nanmedian(Tensor self) -> Tensor", batch = reduction_by(&NANMEDIAN_DIM))]
impl Nanmedian {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        check_ordered("nanmedian_cpu", self_)?;
        Ok(TensorSpec::beside(self_, &[]))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<()> {
        if self_.numel() == 0 {
            return result.fill_with(cpu, median_of_nothing(self_.dtype()));
        }
        let position = Tensor::empty_of(&[], DType::I64)?;
        let flat = self_.dense(cpu)?;
        let line = flat.alias_with(&[flat.numel()], &[1], flat.storage_offset())?;
        NanmedianDim::cpu(cpu, result, &position, &line, 0)
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        let same =
            crate::ops::reduce::min_max::is_amin_or_amax(self_, result)?.to_dtype(grad.dtype())?;
        same.mul(&grad.div(&same.sum()?)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        sample_of_distinct(s, &[2, 4]).into_iter().map(Sample::of).collect()
    }
}

/// The most frequent element along `dim` and where it stands last; of equally frequent ones the smallest. Each NaN
/// is a value of its own.
#[op(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    exact_out,
    apart, batch = along
)]
impl Mode {
    fn meta(self_: &Tensor, dim: i64, keepdim: bool) -> Result<[TensorSpec; 2]> {
        ensure!(
            !self_.dtype().is_complex(),
            not_implemented,
            "\"mode_kernel_impl\" not implemented for '{}'",
            self_.dtype().scalar_name()
        );
        line("mode", self_, dim)?;
        picked_spec(self_, dim, keepdim)
    }
    fn cpu(cpu: Cpu, values: &Tensor, indices: &Tensor, self_: &Tensor, dim: i64) -> Result<()> {
        pick_into(cpu, [values, indices], self_, dim, kernel::mode)
    }
    fn vjp_self(
        grad_values: &Tensor,
        self_shape: &[i64],
        dim: i64,
        keepdim: bool,
        indices: &Tensor,
    ) -> Result<Tensor> {
        put_one_back(grad_values, self_shape, dim, keepdim, indices)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut all = vec![
            Sample::of(s.integers(&[3, 4], 0, 3)).without_gradient(),
            Sample::of(s.integers(&[3, 4], 0, 3))
                .with("dim", 0_i64)
                .with("keepdim", true)
                .without_gradient(),
        ];
        all.extend(sample_of_distinct(s, &[2, 1]).map(Sample::of));
        all
    }
}

/// Refuses lines without elements, which have no middle and no mode.
/// The dimension `dim` and its size, which must not be 0.
fn line(name: &str, self_: &Tensor, dim: i64) -> Result<(usize, i64)> {
    let at = wrap_dim(dim, self_.ndim())?;
    let size = self_.shape().get(at).copied().unwrap_or(1);
    ensure!(size > 0, index, "{name}(): Expected reduction dim {at} to have non-zero size.");
    Ok((at, size))
}

/// The median of no elements: NaN; for integers the number that a conversion of NaN gives.
fn median_of_nothing(dtype: DType) -> Scalar {
    match dtype {
        DType::I64 => Scalar::Int(i64::MIN),
        DType::I32 => Scalar::Int(i32::MIN.into()),
        dtype if dtype.is_integral(true) => Scalar::Int(0),
        _ => Scalar::Float(f64::NAN),
    }
}

/// Refuses the dtypes that medians are not taken of.
fn check_ordered(kernel: &str, x: &Tensor) -> Result<()> {
    let dtype = x.dtype();
    ensure!(
        dtype != DType::Bool && !dtype.is_complex(),
        not_implemented,
        "\"{kernel}\" not implemented for '{}'",
        dtype.scalar_name()
    );
    Ok(())
}

fn refuse_complex(name: &str, x: &Tensor) -> Result<()> {
    ensure!(!x.dtype().is_complex(), type_error, " {name} does not support complex dtypes on CPU");
    Ok(())
}

fn from_counts(values: &[i64], shape: &[i64], wanted: bool) -> Result<Tensor> {
    if wanted { Tensor::from_slice(values, shape) } else { Tensor::empty_of(&[0], DType::I64) }
}

/// The distinct elements, sorted; for each element the number of its distinct one; and how often each occurs (empty
/// unless asked for). Each NaN is distinct.
#[op("_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
     method = unique, dynamic_output_shape, batch = data_dependent)]
impl Unique {
    fn cpu(
        cpu: Cpu,
        self_: &Tensor,
        return_inverse: bool,
        return_counts: bool,
    ) -> Result<[Tensor; 3]> {
        let found = kernel::unique(self_.view_ref(cpu))?;
        let count = found.positions.len() as i64;
        let positions = Tensor::from_slice(&found.positions, &[count])?;
        let values = Tensor::empty_of(&[count], self_.dtype())?;
        index::take(&mut values.view_mut(cpu), self_.view_ref(cpu), positions.view_ref(cpu))?;
        Ok([
            values,
            from_counts(&found.inverse, self_.shape(), return_inverse)?,
            from_counts(&found.counts, &[count], return_counts)?,
        ])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.integers(&[2, 3], 0, 3))
                .with("return_inverse", true)
                .with("return_counts", true)
                .without_gradient(),
        ]
    }
}

/// The distinct elements, sorted, and for each element the number of its distinct one (empty unless asked for).
#[op("_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)", method = unique_pair, dynamic_output_shape, batch = data_dependent)]
impl UniquePair {
    fn cpu(cpu: Cpu, self_: &Tensor, return_inverse: bool) -> Result<[Tensor; 2]> {
        let [values, inverse, _] = Unique::cpu(cpu, self_, return_inverse, false)?;
        Ok([values, inverse])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = Sample::of(s.integers(&[2, 3], 0, 3)).with("return_inverse", true);
        vec![sample.without_gradient()]
    }
}

/// Slices along `dim` in one row each, elements replaced by their rank among all elements.
fn ranked_rows(cpu: Cpu, self_: &Tensor, dim: usize) -> Result<(usize, Vec<i64>)> {
    let front = self_.movedim_int(dim as i64, 0)?;
    let ranks = kernel::unique(front.view_ref(cpu))?.inverse;
    Ok((self_.shape()[dim] as usize, ranks))
}

/// Distinct rows out of a grouping: `firsts` are the indices of representatives, `inverse` the group of each row.
fn grouped(
    self_: &Tensor,
    dim: usize,
    firsts: &[i64],
    inverse: &[i64],
    wanted: (bool, bool),
) -> Result<[Tensor; 3]> {
    let count = firsts.len() as i64;
    let mut counts = memory::filled(0_i64, firsts.len())?;
    for &group in inverse {
        counts[group as usize] += 1;
    }
    let positions = Tensor::from_slice(firsts, &[count])?;
    Ok([
        self_.index_select(dim as i64, &positions)?,
        from_counts(inverse, &[inverse.len() as i64], wanted.0)?,
        from_counts(&counts, &[count], wanted.1)?,
    ])
}

/// The first elements of runs of equal ones; for each element the number of its run, and the lengths of runs (empty unless
/// asked for).
fn element_runs(
    cpu: Cpu,
    self_: &Tensor,
    return_inverse: bool,
    return_counts: bool,
) -> Result<[Tensor; 3]> {
    let flat = self_.dense(cpu)?.view(&[-1])?;
    let count = kernel::count_unique_consecutive(flat.view_ref(cpu))? as i64;
    let values = Tensor::empty_of(&[count], self_.dtype())?;
    let inverse = Tensor::empty_of(if return_inverse { self_.shape() } else { &[0] }, DType::I64)?;
    let counts = Tensor::empty_of(&[if return_counts { count } else { 0 }], DType::I64)?;
    let lines = inverse.view(&[-1])?;
    kernel::unique_consecutive(
        &mut values.view_mut(cpu),
        return_inverse.then(|| lines.view_mut(cpu)).as_mut(),
        return_counts.then(|| counts.view_mut(cpu)).as_mut(),
        flat.view_ref(cpu),
    )?;
    Ok([values, inverse, counts])
}

/// The distinct slices along `dim`, in lexicographic order; inverse and counts as for all elements.
#[op(
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    internal,
    function_only, dynamic_output_shape, batch = data_dependent
)]
impl UniqueDim {
    fn cpu(
        cpu: Cpu,
        self_: &Tensor,
        dim: i64,
        return_inverse: bool,
        return_counts: bool,
    ) -> Result<[Tensor; 3]> {
        let dim = wrap_own_dim(dim, self_.ndim())?;
        let (rows, ranks) = ranked_rows(cpu, self_, dim)?;
        ensure!(
            self_.numel() > 0
                || self_.shape().iter().filter(|&&n| n == 0).count() == 1 && rows == 0,
            runtime,
            "unique_dim(): There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        );
        let width = ranks.len().checked_div(rows).unwrap_or(0);
        let row = |i: usize| &ranks[i * width..(i + 1) * width];
        let mut order = memory::collect(0..rows)?;
        let mut pace = WorkCounter::new();
        order.sort_unstable_by(|&a, &b| {
            pace.spend(2);
            row(a).cmp(row(b)).then(a.cmp(&b))
        });
        let (mut firsts, mut inverse) = (Vec::new(), memory::filled(0, rows)?);
        for (position, &i) in order.iter().enumerate() {
            interrupt::check_every::<12>(position);
            if position == 0 || row(order[position - 1]) != row(i) {
                memory::push(&mut firsts, i as i64)?;
            }
            inverse[i] = firsts.len() as i64 - 1;
        }
        grouped(self_, dim, &firsts, &inverse, (return_inverse, return_counts))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.integers(&[4, 2], 0, 2))
                .with("dim", 0_i64)
                .with("return_inverse", true)
                .without_gradient(),
        ]
    }
}

/// The elements (or slices along `dim`) without those that equal their predecessor; inverse and counts per run.
#[op(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)", dynamic_output_shape, batch = data_dependent
)]
impl UniqueConsecutive {
    fn cpu(
        cpu: Cpu,
        self_: &Tensor,
        return_inverse: bool,
        return_counts: bool,
        dim: Option<i64>,
    ) -> Result<[Tensor; 3]> {
        let Some(dim) = dim else { return element_runs(cpu, self_, return_inverse, return_counts) };
        let at = wrap_own_dim(dim, self_.ndim())?;
        let input = as_vector(self_)?;
        ensure!(
            input.numel() > 0 || input.shape()[at] == 0,
            runtime,
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        );
        let rows = input.shape()[at];
        let front = input.movedim_int(at as i64, 0)?.dense(cpu)?;
        let width = front.numel() as i64 / rows.max(1);
        let firsts = kernel::unique_consecutive_rows(front.view(&[rows, width])?.view_ref(cpu))?;
        let mut inverse = memory::with_capacity(rows as usize)?;
        for (run, &first) in firsts.iter().enumerate() {
            let end = firsts.get(run + 1).copied().unwrap_or(rows);
            memory::extend(&mut inverse, (first..end).map(|_| run as i64))?;
        }
        grouped(&input, at, &firsts, &inverse, (return_inverse, return_counts))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.integers(&[6], 0, 2)).with("return_counts", true).without_gradient()]
    }
}
