//! Distances between all pairs of rows: `cdist` of two matrices, `pdist` of one.
//!
//! Values and gradients are one kernel each; where derivatives of gradients may be needed, gradients are made of
//! differentiable ops. Where rows are equal the gradient is zero, and where several differences are largest all of them
//! count.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::{broadcast_shapes, list};
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::{check_shape, distance as kernel};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&CDIST, &CDIST_FORWARD, &CDIST_BACKWARD, &PDIST];

fn check_rows(name: &str, label: &str, x: &Tensor) -> Result<()> {
    ensure!(
        x.dtype().is_floating_point(),
        runtime,
        "{name} only supports floating-point dtypes, {label} got: {}",
        x.dtype().scalar_name()
    );
    ensure!(
        x.ndim() >= 2,
        runtime,
        "{name} only supports at least 2D tensors, {label} got: {}D",
        x.ndim()
    );
    Ok(())
}

/// Refuses arguments that `cdist` does not take, except for leading dimensions that do not broadcast.
fn check(x1: &Tensor, x2: &Tensor, p: f64, compute_mode: Option<i64>) -> Result<()> {
    check_rows("cdist", "X1", x1)?;
    check_rows("cdist", "X2", x2)?;
    let (columns, others) = (x1.shape()[x1.ndim() - 1], x2.shape()[x2.ndim() - 1]);
    ensure!(
        columns == others,
        runtime,
        "X1 and X2 must have the same number of columns. X1: {columns} X2: {others}"
    );
    ensure!(p >= 0.0, runtime, "cdist only supports non-negative p values");
    let mode = compute_mode.unwrap_or(0);
    ensure!((0..=2).contains(&mode), runtime, "possible modes: 0, 1, 2, but was: {mode}");
    ensure!(
        x1.dtype() == x2.dtype(),
        runtime,
        "expected scalar type {} but found {}",
        x1.dtype().scalar_name(),
        x2.dtype().scalar_name()
    );
    ensure!(
        matches!(x1.dtype(), DType::F32 | DType::F64),
        not_implemented,
        "\"cdist\" not implemented for '{}'",
        x1.dtype().scalar_name()
    );
    Ok(())
}

/// Distances between all pairs of rows: the norm of order `p` (0, positive or infinite) of the difference of each row
/// of `x1` (*, P, M) and each row of `x2` (*, R, M), of shape (*, P, R). Leading dimensions broadcast. `compute_mode`
/// chooses between algorithms in PyTorch; here all modes use the one without matrix products. Where rows are equal the
/// gradient is 0.
#[op("cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor", function_only, autocast = fp32, method = cdist)]
impl Cdist {
    fn composite(x1: &Tensor, x2: &Tensor, p: f64, compute_mode: Option<i64>) -> Result<Tensor> {
        check(x1, x2, p, compute_mode)?;
        let (outer, other) = (&x1.shape()[..x1.ndim() - 2], &x2.shape()[..x2.ndim() - 2]);
        if outer == other {
            return x1.cdist_forward(x2, p, compute_mode);
        }
        let common = broadcast_shapes(&[outer, other])?;
        let spread = |x: &Tensor| {
            let mut shape = common.clone();
            shape.extend_from_slice(&x.shape()[x.ndim() - 2..]);
            x.expand(&shape, false)
        };
        spread(x1)?.cdist_forward(&spread(x2)?, p, compute_mode)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![
            Sample::new([s.normal(&[3, 2]).into(), s.normal(&[2, 2]).into()]),
            Sample::new([s.normal(&[2, 1, 2, 3]).into(), s.normal(&[3, 2, 3]).into()])
                .with("p", 3.0),
            Sample::new([s.normal(&[0, 2]).into(), s.normal(&[2, 2]).into()]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let call = |a: &[i64], b: &[i64]| Sample::new([s.normal(a).into(), s.normal(b).into()]);
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let whole = Sample::new([s.integers(&[2, 2], 0, 3).into(), s.normal(&[2, 2]).into()]);
        vec![
            bad(call(&[3], &[2, 3]), "only supports at least 2D tensors, X1 got: 1D"),
            bad(call(&[3, 3], &[3]), "only supports at least 2D tensors, X2 got: 1D"),
            bad(call(&[3, 3], &[2, 2]), "same number of columns. X1: 3 X2: 2"),
            bad(call(&[3, 2], &[2, 2]).with("p", -1.0), "only supports non-negative p values"),
            bad(call(&[3, 2], &[2, 2]).with("p", f64::NAN), "only supports non-negative p values"),
            bad(
                call(&[3, 2], &[2, 2]).with("compute_mode", 3),
                "possible modes: 0, 1, 2, but was: 3",
            ),
            bad(call(&[2, 3, 2], &[3, 2, 2]), "must match the size of tensor b"),
            bad(whole, "cdist only supports floating-point dtypes, X1 got: Long"),
        ]
    }
}

/// Distances between all pairs of rows: the norm of order `p` of the difference of each row of `x1` (*, P, M) and each
/// row of `x2` (*, R, M), which have the same leading dimensions.
#[op("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", function_only, node = "Cdist",
     method = cdist_forward, batch = matrices)]
impl CdistForward {
    fn meta(x1: &Tensor, x2: &Tensor, p: f64, compute_mode: Option<i64>) -> Result<TensorSpec> {
        check(x1, x2, p, compute_mode)?;
        let (outer, other) = (&x1.shape()[..x1.ndim() - 2], &x2.shape()[..x2.ndim() - 2]);
        ensure!(
            outer == other,
            runtime,
            "_cdist_forward expects the same leading dimensions, but got {} and {}",
            list(x1.shape()),
            list(x2.shape())
        );
        let mut shape = Dims::from_slice(outer);
        shape.extend([x1.shape()[outer.len()], x2.shape()[outer.len()]]);
        Ok(TensorSpec::beside(x1, &shape))
    }
    fn cpu(cpu: Cpu, result: &Tensor, x1: &Tensor, x2: &Tensor, p: f64) -> Result<()> {
        Ok(kernel::cdist(&mut result.view_mut(cpu), x1.view_ref(cpu), x2.view_ref(cpu), p)?)
    }
    fn vjp(
        grad: &Tensor,
        x1: &Tensor,
        x2: &Tensor,
        p: f64,
        result: &Tensor,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        if crate::autograd::needs_ops([Some(grad), Some(x1), Some(x2)]) {
            let each = slopes(x1, x2, p, result)?.mul(&grad.unsqueeze(-1)?)?;
            let by_x1 = needs[0].then(|| each.sum_dim(Some(&[-2]), false)).transpose()?;
            let by_x2 = needs[1].then(|| each.sum_dim(Some(&[-3]), false)?.neg()).transpose()?;
            return Ok([by_x1, by_x2]);
        }
        let transposed = |t: &Tensor| t.transpose(-1, -2);
        let by_x1 = needs[0].then(|| grad.cdist_backward(x1, x2, p, result)).transpose()?;
        let by_x2 = || transposed(grad)?.cdist_backward(x2, x1, p, &transposed(result)?);
        Ok([by_x1, needs[1].then(by_x2).transpose()?])
    }
    fn jvp(
        x1_p: &Tensor,
        x1_t: &Tensor,
        x2_p: &Tensor,
        x2_t: &Tensor,
        p: f64,
        result: &Tensor,
    ) -> Result<Tensor> {
        let change = x1_t.unsqueeze(-2)?.sub(&x2_t.unsqueeze(-3)?)?;
        slopes(x1_p, x2_p, p, result)?.mul(&change)?.sum_dim(Some(&[-1]), false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |x: &[i64], y: &[i64], p: f64| {
            Sample::new([s.normal(x).into(), s.normal(y).into(), p.into()])
                .with("compute_mode", crate::dispatch::Value::None)
        };
        let orders = [0.0, 0.7, 1.0, 1.5, 2.0, 3.0, f64::INFINITY];
        let mut all: Vec<Sample> = orders.iter().map(|&p| call(&[3, 2], &[2, 2], p)).collect();
        all.extend([
            call(&[2, 1, 9], &[2, 2, 9], 2.0),
            call(&[2, 0], &[3, 0], 2.0),
            call(&[0, 2], &[1, 2], 1.0),
        ]);
        all
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let start = [s.normal(&[2, 3, 2]).into(), s.normal(&[3, 2]).into(), 2.0.into()];
        let sample = Sample::new(start).with("compute_mode", crate::dispatch::Value::None);
        vec![InvalidSample::new(sample, ErrorKind::Runtime, "expects the same leading dimensions")]
    }
}

/// The derivative (*, P, R, M) of each norm by each difference `x1[.., i, :] - x2[.., j, :]`, made of ops.
fn slopes(x1: &Tensor, x2: &Tensor, p: f64, distances: &Tensor) -> Result<Tensor> {
    let (zero, one) = (Scalar::Int(0), Scalar::Int(1));
    let is_zero = |t: &Tensor| t.eq(&Tensor::wrapped(0)?);
    let difference = x1.unsqueeze(-2)?.sub(&x2.unsqueeze(-3)?)?;
    let distances = distances.unsqueeze(-1)?;
    if p == 0.0 {
        return difference.zeros_like();
    }
    if p == 1.0 {
        return difference.sign();
    }
    if p == f64::INFINITY {
        let is_most =
            difference.abs()?.eq(&distances)?.logical_and(&is_zero(&distances)?.logical_not()?)?;
        return difference.sign()?.mul(&is_most.to_dtype(difference.dtype())?);
    }
    // Where a norm is zero its derivative is zero, too; dividing by one in its stead keeps the derivatives finite.
    let filled = distances.masked_fill(&is_zero(&distances)?, one)?;
    if p == 2.0 {
        return difference.div(&filled)?.masked_fill(&is_zero(&distances)?, zero);
    }
    let none = is_zero(&difference)?;
    let power = |t: &Tensor, exponent: f64| t.pow_scalar(Scalar::Float(exponent));
    let each =
        power(&difference.abs()?.masked_fill(&none, one)?, p - 1.0)?.masked_fill(&none, zero)?;
    difference.sign()?.mul(&each)?.mul(&power(&filled, 1.0 - p)?)
}

/// The gradient of `_cdist_forward` with respect to `x1`, by a kernel; nothing is recorded.
#[op("_cdist_backward(Tensor grad_output, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor", internal, function_only,
     not_differentiable, method = cdist_backward, batch = matrices)]
impl CdistBackward {
    fn meta(
        grad_output: &Tensor,
        x1: &Tensor,
        x2: &Tensor,
        p: f64,
        cdist: &Tensor,
    ) -> Result<TensorSpec> {
        check(x1, x2, p, None)?;
        let fits = x1.ndim() == x2.ndim()
            && x1.ndim() == grad_output.ndim()
            && grad_output.shape() == cdist.shape()
            && x1.shape()[..x1.ndim() - 2] == x2.shape()[..x2.ndim() - 2]
            && grad_output.dtype() == x1.dtype()
            && cdist.dtype() == x1.dtype();
        ensure!(
            fits,
            runtime,
            "_cdist_backward: expected gradients and distances of one shape and dtype, but got {} and {} of {} and {}",
            list(grad_output.shape()),
            list(cdist.shape()),
            list(x1.shape()),
            list(x2.shape())
        );
        let mut pairs = Dims::from_slice(x1.shape());
        pairs[x1.ndim() - 1] = x2.shape()[x2.ndim() - 2];
        check_shape("grad_output", grad_output.shape(), &pairs)?;
        Ok(TensorSpec::like(x1))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad_output: &Tensor,
        x1: &Tensor,
        x2: &Tensor,
        p: f64,
        cdist: &Tensor,
    ) -> Result<()> {
        let rows = [x1.view_ref(cpu), x2.view_ref(cpu)];
        let grad = grad_output.view_ref(cpu);
        Ok(kernel::cdist_backward(&mut result.view_mut(cpu), grad, rows, p, cdist.view_ref(cpu))?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |p: f64| {
            let start =
                [s.normal(&[3, 2]).into(), s.normal(&[3, 4]).into(), s.normal(&[2, 4]).into()];
            Sample::new(start).with("p", p).with("cdist", s.positive(&[3, 2]))
        };
        vec![call(0.0), call(1.0), call(2.0), call(2.5), call(f64::INFINITY)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let start = [s.normal(&[3, 3]).into(), s.normal(&[3, 4]).into(), s.normal(&[2, 4]).into()];
        let sample = Sample::new(start).with("p", 2.0).with("cdist", s.positive(&[3, 2]));
        vec![InvalidSample::new(sample, ErrorKind::Runtime, "of one shape and dtype")]
    }
}

/// Distances between the rows of a matrix `self` (N, M): the norms of order `p` of the differences of all pairs of
/// rows, those of the first row first, a vector of length N (N - 1) / 2. Where rows are equal the gradient is 0.
#[op("pdist(Tensor self, float p=2) -> Tensor", function_only, autocast = fp32, method = pdist)]
impl Pdist {
    fn composite(self_: &Tensor, p: f64) -> Result<Tensor> {
        ensure!(
            self_.ndim() == 2,
            runtime,
            "pdist only supports 2D tensors, got: {}D",
            self_.ndim()
        );
        ensure!(
            self_.dtype().is_floating_point(),
            runtime,
            "pdist only supports floating-point dtypes"
        );
        ensure!(p >= 0.0, runtime, "pdist only supports non-negative p values");
        ensure!(
            matches!(self_.dtype(), DType::F32 | DType::F64),
            not_implemented,
            "\"pdist\" not implemented for '{}'",
            self_.dtype().scalar_name()
        );
        let rows = self_.shape()[0];
        // The distances of a row from those after it are the distances of a matrix of one row.
        let mut parts = pullback_kernels::memory::with_capacity(rows as usize)?;
        for i in 0..rows - 1 {
            let behind = self_.narrow(0, i + 1, rows - 1 - i)?;
            parts.push(self_.narrow(0, i, 1)?.cdist_forward(&behind, p, None)?.squeeze_dim(0)?);
        }
        if parts.is_empty() {
            return self_.narrow(0, 0, 0)?.sum_dim(Some(&[1]), false);
        }
        crate::ops::shape::join::cat(&parts, 0)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |x: &[i64], p: f64| Sample::of(s.normal(x)).with("p", p);
        vec![
            call(&[4, 3], 2.0),
            call(&[3, 2], 1.0),
            call(&[3, 2], 2.5),
            call(&[1, 2], 2.0),
            call(&[0, 2], 2.0),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        vec![
            bad(Sample::of(s.normal(&[4])), "pdist only supports 2D tensors, got: 1D"),
            bad(
                Sample::of(s.normal(&[4, 2])).with("p", -1.0),
                "only supports non-negative p values",
            ),
            bad(Sample::of(s.integers(&[4, 2], 0, 5)), "only supports floating-point dtypes"),
        ]
    }
}
