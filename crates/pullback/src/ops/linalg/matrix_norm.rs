//! Matrix norms, and what is made of singular values: condition numbers and ranks.

use super::decomposition::{batch_shape, h, regular, sizes};
use super::layout::{check_floating, check_spectrum, check_square};
use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::shape::{list, wrap_dim};
use crate::{DType, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &LINALG_NORM,
    &LINALG_NORM_STR,
    &LINALG_MATRIX_NORM,
    &LINALG_MATRIX_NORM_STR,
    &LINALG_COND,
    &LINALG_COND_STR,
    &LINALG_MATRIX_RANK,
    &LINALG_MATRIX_RANK_TOL_TENSOR,
    &LINALG_MATRIX_RANK_TENSOR,
    &LINALG_MATRIX_RANK_FLOAT,
    &NUCLEAR_NORM,
    &NUCLEAR_NORM_DIM,
    &FROBENIUS_NORM,
];

/// The order of a matrix norm.
#[derive(Clone, Copy, Debug, PartialEq)]
enum NormOrder {
    Frobenius,
    Nuclear,
    /// ±1 (columns), ±2 (singular values) or ±inf (rows).
    Number(f64),
}

impl NormOrder {
    fn of_number(ord: Scalar) -> Result<NormOrder> {
        ensure!(
            !matches!(ord, Scalar::Complex(..)),
            runtime,
            "linalg.matrix_norm: Expected a non-complex scalar as the order of norm."
        );
        let number = ord.to_f64();
        ensure!(
            matches!(number.abs(), 1.0 | 2.0 | f64::INFINITY),
            runtime,
            "linalg.matrix_norm: Order {} not supported.",
            spelled(ord)
        );
        Ok(NormOrder::Number(number))
    }
    fn of_name(ord: &str) -> Result<NormOrder> {
        match ord {
            "fro" => Ok(NormOrder::Frobenius),
            "nuc" => Ok(NormOrder::Nuclear),
            _ => bail!(runtime, "linalg.matrix_norm: Order {ord} not supported."),
        }
    }
    fn needs_singular_values(self) -> bool {
        matches!(self, NormOrder::Nuclear | NormOrder::Number(2.0 | -2.0))
    }
}

fn spelled(number: Scalar) -> String {
    match number {
        Scalar::Int(whole) => whole.to_string(),
        other => other.to_f64().to_string(),
    }
}

/// The two dimensions of the matrices, counted from 0.
fn pair(a: &Tensor, dim: &[i64]) -> Result<[i64; 2]> {
    ensure!(
        a.ndim() >= 2,
        runtime,
        "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
    );
    let &[rows, columns] = dim else {
        let all: Vec<String> = dim.iter().map(i64::to_string).collect();
        bail!(runtime, "linalg.matrix_norm: dim must be a 2-tuple. Got {}", all.join(" "))
    };
    let (rows, columns) = (wrap_dim(rows, a.ndim())? as i64, wrap_dim(columns, a.ndim())? as i64);
    ensure!(
        rows != columns,
        runtime,
        "linalg.matrix_norm: dims must be different. Got ({}, {})",
        dim[0],
        dim[1]
    );
    Ok([rows, columns])
}

fn matrix_norm(
    a: &Tensor,
    ord: NormOrder,
    dim: &[i64],
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let name = "linalg.matrix_norm";
    check_floating(name, a, true)?;
    let [rows, columns] = pair(a, dim)?;
    if let NormOrder::Frobenius = ord {
        return a.linalg_vector_norm_with(Scalar::Int(2), Some(&[rows, columns]), keepdim, dtype);
    }
    let NormOrder::Number(number @ (1.0 | -1.0 | f64::INFINITY | f64::NEG_INFINITY)) = ord else {
        return by_singular_values(a, ord, [rows, columns], keepdim, dtype);
    };
    let (summed, kept) = if number.abs() == 1.0 { (rows, columns) } else { (columns, rows) };
    let sums = a.linalg_vector_norm_with(Scalar::Int(1), Some(&[summed]), true, dtype)?;
    let both = [summed, kept];
    if number < 0.0 {
        return sums.amin(&both, keepdim);
    }
    if sums.shape()[kept as usize] == 0 {
        // The norm of matrices without elements.
        return sums.sum_dim(Some(&both), keepdim);
    }
    sums.amax(&both, keepdim)
}

fn by_singular_values(
    a: &Tensor,
    ord: NormOrder,
    dims: [i64; 2],
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    // (The dtypes are checked by the vector norm of a tensor without elements, so that errors are the same.)
    let narrow = TensorSpec::beside(a, &[0]).empty()?;
    narrow.linalg_vector_norm_with(Scalar::Int(2), None, false, dtype)?;
    let a = match dtype {
        Some(dtype) => a.to_dtype(dtype)?,
        None => a.clone(),
    };
    check_floating("linalg.matrix_norm", &a, false)?;
    let values = a.movedim(&dims, &[-2, -1])?.linalg_svdvals()?;
    let norm = match ord {
        NormOrder::Nuclear => values.sum_dim(Some(&[-1]), false)?,
        NormOrder::Number(n) if n < 0.0 => values.amin(&[-1], false)?,
        // (A matrix without singular values has norm 0.)
        _ if values.shape()[values.ndim() - 1] == 0 => values.sum_dim(Some(&[-1]), false)?,
        _ => values.amax(&[-1], false)?,
    };
    if !keepdim {
        return Ok(norm);
    }
    let (first, second) = (dims[0].min(dims[1]), dims[0].max(dims[1]));
    norm.unsqueeze(first)?.unsqueeze(second)
}

/// The dimensions of a matrix norm, or `None` if the norm is a vector norm.
fn norm_dims<'d>(
    a: &Tensor,
    is_ordered: bool,
    dim: Option<&'d [i64]>,
) -> Result<Option<&'d [i64]>> {
    if let Some(dim) = dim {
        ensure!(
            matches!(dim.len(), 1 | 2),
            runtime,
            "linalg.norm: If dim is specified, it must be of length 1 or 2. Got {}",
            list(dim)
        );
    } else if is_ordered {
        ensure!(
            matches!(a.ndim(), 1 | 2),
            runtime,
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.",
            a.ndim()
        );
    }
    let is_matrix = match dim {
        Some(dim) => dim.len() == 2,
        None => a.ndim() == 2,
    };
    Ok((is_ordered && is_matrix).then_some(dim.unwrap_or(&[0, 1])))
}

/// A norm of vectors (if `dim` is one dimension) or matrices (if it is two) of order `ord`.
///
/// With two dimensions and an order it is `torch.linalg.matrix_norm`, else `torch.linalg.vector_norm`. Without `dim`
/// the whole input, of one or two dimensions, is the vector or matrix; without `ord` as well, all elements together are
/// one vector and the order is 2.
///
/// # Errors
/// `RuntimeError` for another number of dimensions, and for orders that matrix norms do not have.
#[op("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     module = "linalg", exact_out, method = linalg_norm)]
impl LinalgNorm {
    fn composite(
        self_: &Tensor,
        ord: Option<Scalar>,
        dim: Option<&[i64]>,
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        if let (Some(dims), Some(ord)) = (norm_dims(self_, ord.is_some(), dim)?, ord) {
            matrix_norm(self_, NormOrder::of_number(ord)?, dims, keepdim, dtype)
        } else {
            let ord = ord.unwrap_or(Scalar::Int(2));
            self_.linalg_vector_norm_with(ord, dim, keepdim, dtype)
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| Sample::of(s.away_from_zero(shape));
        let order = |n: f64| Value::Scalar(Scalar::Float(n));
        vec![
            sample(&[3]),
            sample(&[2, 3, 2]),
            sample(&[2, 3]).with("ord", order(2.0)),
            sample(&[3]).with("ord", order(3.0)),
            sample(&[2, 3, 2]).with("ord", order(1.0)).with("dim", [0, 2]).with("keepdim", true),
            sample(&[2, 3]).with("ord", order(f64::INFINITY)).with("dim", [1]),
            sample(&[2, 3]).with("dim", [0, 1]).with("dtype", s.dtype),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], ord: f64, dim: Value, phrase| {
            let sample =
                Sample::of(s.normal(shape)).with("ord", Scalar::Float(ord)).with("dim", dim);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[2, 2], 3.0, Value::None, "linalg.matrix_norm: Order 3 not supported."),
            bad(
                &[2, 2, 2],
                2.0,
                Value::None,
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D.",
            ),
            bad(
                &[2, 2, 2],
                2.0,
                Value::from([0, 1, 2]),
                "linalg.norm: If dim is specified, it must be of length 1 or 2. Got [0, 1, 2]",
            ),
            bad(
                &[2, 2, 2],
                2.0,
                Value::from([1, 1]),
                "linalg.matrix_norm: dims must be different. Got (1, 1)",
            ),
        ]
    }
}

/// A matrix norm by its name: "fro", the Frobenius norm, or "nuc", the nuclear norm, of the matrices in the two
/// dimensions `dim`.
#[op("linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     module = "linalg", exact_out, method = linalg_norm_by_name)]
impl LinalgNormStr {
    fn composite(
        self_: &Tensor,
        ord: &str,
        dim: Option<&[i64]>,
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        let dims = norm_dims(self_, true, dim)?.or(dim).unwrap_or(&[0, 1]);
        matrix_norm(self_, NormOrder::of_name(ord)?, dims, keepdim, dtype)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample =
            |shape: &[i64], ord: &str| Sample::of(s.away_from_zero(shape)).with("ord", ord);
        vec![
            sample(&[2, 3], "fro"),
            sample(&[2, 3, 2], "nuc").with("dim", [2, 0]).with("keepdim", true),
            sample(&[2, 3, 2], "nuc").with("dim", [0, 1]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], ord: &str, phrase| {
            let sample = Sample::of(s.normal(shape)).with("ord", ord);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[2, 2], "foo", "linalg.matrix_norm: Order foo not supported."),
            bad(
                &[2],
                "fro",
                "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.",
            ),
        ]
    }
}

/// The norm of order `ord` of the matrices in the two dimensions `dim`.
///
/// Orders 1 and -1 are the largest and the smallest column sum of absolute values, inf and -inf the largest and the
/// smallest row sum, 2 and -2 the largest and the smallest singular value. The norm of a matrix without elements is 0,
/// but its smallest sum or singular value is an error. Where several are the largest, the gradient is distributed
/// evenly among them.
///
/// # Errors
/// `RuntimeError` for other orders and for a `dim` that is not two dimensions; `NotImplementedError` for integer
/// dtypes, and for half precision where singular values are needed.
#[op("linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     module = "linalg", exact_out, method = linalg_matrix_norm)]
impl LinalgMatrixNorm {
    fn composite(
        self_: &Tensor,
        ord: Scalar,
        dim: &[i64],
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        check_floating("linalg.matrix_norm", self_, true)?;
        matrix_norm(self_, NormOrder::of_number(ord)?, dim, keepdim, dtype)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let orders = [1.0, -1.0, 2.0, -2.0, f64::INFINITY, f64::NEG_INFINITY];
        let sample = |shape: &[i64], ord: f64| {
            Sample::of(s.away_from_zero(shape)).with("ord", Scalar::Float(ord))
        };
        let mut out: Vec<Sample> = orders.iter().map(|&ord| sample(&[2, 3], ord)).collect();
        out.push(sample(&[2, 3, 2], 1.0).with("dim", [2, 0]).with("keepdim", true));
        out.push(sample(&[2, 3, 2], -2.0).with("dim", [0, 1]).with("keepdim", true));
        out.push(sample(&[3, 0], 1.0));
        out.push(sample(&[0, 3], 2.0));
        out.push(sample(&[2, 2], 1.0).with("dtype", s.dtype));
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let sample = |a: Tensor, ord: f64| Sample::of(a).with("ord", Scalar::Float(ord));
        let bad = |sample, kind, phrase| InvalidSample::new(sample, kind, phrase);
        let halves = Sampler::new(DType::F16).normal(&[2, 2]);
        let (runtime, missing) = (ErrorKind::Runtime, ErrorKind::NotImplemented);
        vec![
            bad(
                sample(s.normal(&[2, 2]), 3.0),
                runtime,
                "linalg.matrix_norm: Order 3 not supported.",
            ),
            bad(
                sample(s.normal(&[2]), 1.0),
                runtime,
                "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.",
            ),
            bad(
                sample(s.normal(&[2, 2]), 1.0).with("dim", [1]),
                runtime,
                "linalg.matrix_norm: dim must be a 2-tuple. Got 1",
            ),
            bad(
                sample(s.normal(&[2, 2]), 1.0).with("dim", [1, -1]),
                runtime,
                "linalg.matrix_norm: dims must be different. Got (1, -1)",
            ),
            bad(
                sample(s.integers(&[2, 2], 0, 3), 1.0),
                missing,
                "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got Long",
            ),
            bad(
                sample(halves, 2.0),
                missing,
                "linalg.matrix_norm: Low precision dtypes not supported. Got Half",
            ),
            bad(
                sample(s.normal(&[3, 0]), -2.0),
                ErrorKind::Index,
                "amin(): Expected reduction dim",
            ),
            bad(
                sample(s.normal(&[2, 2]), 1.0).with("dtype", DType::F32),
                runtime,
                "should be convertible without narrowing to the specified dtype (Float)",
            ),
        ]
    }
}

/// A norm, by its name, of the matrices in the two dimensions `dim`: "fro", the square root of the sum of the squared
/// absolute values, or "nuc", the sum of the singular values.
#[op("linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     module = "linalg", exact_out, method = linalg_matrix_norm_by_name)]
impl LinalgMatrixNormStr {
    fn composite(
        self_: &Tensor,
        ord: &str,
        dim: &[i64],
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        check_floating("linalg.matrix_norm", self_, true)?;
        matrix_norm(self_, NormOrder::of_name(ord)?, dim, keepdim, dtype)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| Sample::of(s.away_from_zero(shape));
        vec![
            sample(&[2, 3]),
            sample(&[2, 2, 3]).with("ord", "nuc"),
            sample(&[2, 2, 3]).with("dim", [0, 2]).with("keepdim", true),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::of(s.normal(&[2, 2])).with("ord", "bar"),
            ErrorKind::Runtime,
            "linalg.matrix_norm: Order bar not supported.",
        )]
    }
}

/// The condition number `norm(A) * norm(A^-1)` for a matrix norm.
fn condition(a: &Tensor, norm: impl Fn(&Tensor) -> Result<Tensor>, name: &str) -> Result<Tensor> {
    check_square(&format!("linalg.cond(ord={name})"), a)?;
    check_floating("linalg.cond", a, false)?;
    if a.numel() == 0 {
        return TensorSpec::beside(a, &batch_shape(a, &[]))
            .computed_in(a.dtype().to_real())
            .zeros();
    }
    let [inverse, info] = a.linalg_inv_ex()?;
    // The condition number of a singular matrix is infinite.
    let is_singular = info.ne(&Tensor::wrapped(0)?)?;
    // (The NaN that stand for the inverse of a singular matrix are replaced, because they have no singular values.)
    let of_matrix = is_singular.unsqueeze(-1)?.unsqueeze(-1)?;
    let inverse = inverse.masked_fill(&of_matrix, Scalar::Int(0))?;
    let both = norm(a)?.mul(&norm(&inverse)?)?;
    both.masked_fill(&is_singular, Scalar::Float(f64::INFINITY))
}

/// The condition number `|A| |A^-1|` of matrices in the norm of order `p`: 1, -1, 2, -2, inf or -inf; `None` is 2.
/// Orders 2 and -2 are quotients of singular values and exist for matrices of any shape. The condition number of a
/// singular matrix is infinite.
///
/// # Errors
/// `ValueError` for other orders; `RuntimeError` for fewer than two dimensions and, but for orders 2 and -2, for
/// matrices that are not square.
#[op("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", module = "linalg", out, autocast = fp32, method = linalg_cond)]
impl LinalgCond {
    fn composite(self_: &Tensor, p: Option<Scalar>) -> Result<Tensor> {
        check_rank(self_)?;
        let p = p.unwrap_or(Scalar::Int(2));
        ensure!(
            !matches!(p, Scalar::Complex(..)),
            value,
            "linalg.cond: Expected a non-complex scalar as the order of norm."
        );
        let number = p.to_f64();
        ensure!(
            matches!(number.abs(), 1.0 | 2.0 | f64::INFINITY),
            value,
            "linalg.cond got an invalid norm type: {}",
            spelled(p)
        );
        let ord = NormOrder::Number(number);
        if !ord.needs_singular_values() {
            let norm = |a: &Tensor| matrix_norm(a, ord, &[-2, -1], false, None);
            return condition(self_, norm, &spelled(p));
        }
        let values = self_.linalg_svdvals()?;
        let k = values.shape()[values.ndim() - 1];
        if k == 0 || values.numel() == 0 {
            return values.sum_dim(Some(&[-1]), false);
        }
        let (first, last) = (values.select(-1, 0)?, values.select(-1, k - 1)?);
        if number > 0.0 { first.div(&last) } else { last.div(&first) }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let orders = [1.0, -1.0, 2.0, -2.0, f64::INFINITY, f64::NEG_INFINITY];
        let sample = |a: Tensor, p: f64| Sample::of(a).with("p", Scalar::Float(p));
        let mut out: Vec<Sample> = orders.iter().map(|&p| sample(regular(s, &[3]), p)).collect();
        out.push(Sample::of(s.normal(&[2, 2, 3])));
        out.push(sample(regular(s, &[2, 2]), 1.0));
        out.push(Sample::of(s.normal(&[2, 0, 0])));
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], p: Scalar, kind, phrase| {
            InvalidSample::new(Sample::of(s.normal(shape)).with("p", p), kind, phrase)
        };
        let (runtime, value) = (ErrorKind::Runtime, ErrorKind::Value);
        vec![
            bad(
                &[2],
                Scalar::Int(2),
                runtime,
                "linalg.cond: The input tensor must have at least 2 dimensions.",
            ),
            bad(&[2, 2], Scalar::Int(3), value, "linalg.cond got an invalid norm type: 3"),
            bad(
                &[2, 2],
                Scalar::Complex(0.0, 1.0),
                value,
                "linalg.cond: Expected a non-complex scalar as the order of norm.",
            ),
            bad(
                &[2, 3],
                Scalar::Int(1),
                runtime,
                "linalg.cond(ord=1): A must be batches of square matrices, but they are 2 by 3 matrices",
            ),
        ]
    }
}

fn check_rank(a: &Tensor) -> Result<()> {
    ensure!(
        a.ndim() >= 2,
        runtime,
        "linalg.cond: The input tensor must have at least 2 dimensions."
    );
    Ok(())
}

/// The condition number `|A| |A^-1|` of square matrices in a norm by its name: "fro", the Frobenius norm, or "nuc", the
/// nuclear norm.
#[op("linalg_cond.p_str(Tensor self, str p) -> Tensor", module = "linalg", out, autocast = fp32, method = linalg_cond_by_name)]
impl LinalgCondStr {
    fn composite(self_: &Tensor, p: &str) -> Result<Tensor> {
        check_rank(self_)?;
        ensure!(matches!(p, "fro" | "nuc"), value, "linalg.cond got an invalid norm type: {p}");
        let ord = NormOrder::of_name(p)?;
        condition(self_, |a| matrix_norm(a, ord, &[-2, -1], false, None), p)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(regular(s, &[3])).with("p", "fro"),
            Sample::of(regular(s, &[2, 2])).with("p", "nuc"),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![
            InvalidSample::new(
                Sample::of(s.normal(&[2, 2])).with("p", "foo"),
                ErrorKind::Value,
                "linalg.cond got an invalid norm type: foo",
            ),
            InvalidSample::new(
                Sample::of(s.normal(&[2, 3])).with("p", "fro"),
                ErrorKind::Runtime,
                "linalg.cond(ord=fro): A must be batches of square matrices, but they are 2 by 3 matrices",
            ),
        ]
    }
}

/// Refuses complex tolerances.
pub(in crate::ops) fn check_tolerances(
    name: &str,
    atol: Option<&Tensor>,
    rtol: Option<&Tensor>,
) -> Result<()> {
    for (which, t) in [("atol", atol), ("rtol", rtol)] {
        let Some(t) = t else { continue };
        ensure!(
            !t.dtype().is_complex(),
            runtime,
            "torch.linalg.{name}: {which} tensor of complex type is not supported. Got {}",
            t.dtype().scalar_name()
        );
    }
    Ok(())
}

/// The tolerance that singular values are compared with, `max(atol, rtol * largest)`: by default `rtol` is the machine
/// epsilon of the dtype times the larger of the matrix's sizes, or 0 where `atol` is positive.
pub(in crate::ops) fn tolerance(
    a: &Tensor,
    largest: &Tensor,
    atol: Option<&Tensor>,
    rtol: Option<&Tensor>,
) -> Result<Tensor> {
    let (m, n) = sizes(a.shape());
    let precision = epsilon(a.dtype()) * m.max(n) as f64;
    let relative = match (rtol, atol) {
        (Some(rtol), _) => rtol.clone(),
        (None, None) => Tensor::wrapped(precision)?,
        (None, Some(atol)) => {
            let usual = TensorSpec::beside(largest, atol.shape()).full(Scalar::Float(precision))?;
            usual.masked_fill(&atol.gt(&Tensor::wrapped(0)?)?, Scalar::Int(0))?
        }
    };
    let relative = relative.mul(largest)?;
    match atol {
        None => Ok(relative),
        Some(atol) => {
            let (a, b) = (atol.to_dtype(relative.dtype())?, relative);
            a.maximum(&b)
        }
    }
}

/// The machine epsilon of the dtype of the singular values.
fn epsilon(dtype: DType) -> f64 {
    if matches!(dtype, DType::F32 | DType::C64) { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

fn matrix_rank(
    a: &Tensor,
    atol: Option<&Tensor>,
    rtol: Option<&Tensor>,
    hermitian: bool,
) -> Result<Tensor> {
    ensure!(
        a.ndim() >= 2,
        runtime,
        "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
    );
    let message = format!(
        "This function doesn't handle types other than float and double, real or complex. Got {}",
        a.dtype().scalar_name()
    );
    check_spectrum(a, &message)?;
    check_tolerances("matrix_rank", atol, rtol)?;
    let a = a.detach()?;
    if a.numel() == 0 {
        return TensorSpec::beside(&a, &batch_shape(&a, &[])).computed_in(DType::I64).zeros();
    }
    let (values, largest) = if hermitian {
        let values = a.linalg_eigvalsh("L")?.abs()?;
        let largest = values.amax(&[-1], false)?;
        (values, largest)
    } else {
        let values = a.linalg_svdvals()?;
        let largest = values.select(-1, 0)?;
        (values, largest)
    };
    let least = tolerance(&a, &largest, atol, rtol)?;
    values.gt(&least.unsqueeze(-1)?)?.sum_dim(Some(&[-1]), false)
}

fn rank_samples(s: &Sampler) -> Vec<Sample> {
    let low = s.normal(&[3, 1]).matmul(&s.normal(&[1, 3])).expect("samples are small");
    vec![Sample::of(s.normal(&[2, 3, 2])), Sample::of(low), Sample::of(s.normal(&[2, 0, 3]))]
}

/// The rank of matrices (*, m, n): the number (*), int64, of singular values above `tol`, or of eigenvalues with an
/// absolute value above it if the matrices are `hermitian`.
#[op("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor", module = "linalg", out, not_differentiable, autocast = fp32, method = linalg_matrix_rank)]
impl LinalgMatrixRank {
    fn composite(self_: &Tensor, tol: f64, hermitian: bool) -> Result<Tensor> {
        self_.linalg_matrix_rank_within_with(Some(tol), Some(0.0), hermitian)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        rank_samples(s).into_iter().map(|sample| sample.with("tol", 0.1)).collect()
    }
}

/// The rank of matrices (*, m, n): the number (*), int64, of singular values above the tolerance `tol`, which
/// broadcasts against the batch; of absolute values of eigenvalues if the matrices are `hermitian`.
#[op("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor", module = "linalg", out, not_differentiable,
     autocast = fp32, method = linalg_matrix_rank_tol)]
impl LinalgMatrixRankTolTensor {
    fn composite(input: &Tensor, tol: &Tensor, hermitian: bool) -> Result<Tensor> {
        let zero = TensorSpec::beside(tol, &[]).zeros()?;
        matrix_rank(input, Some(tol), Some(&zero), hermitian)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let tol = Sampler::new(s.dtype.to_real()).positive(&[2]);
        vec![Sample::new([s.normal(&[2, 3, 2]).into(), tol.into()])]
    }
}

/// The rank of matrices (*, m, n): the number (*), int64, of singular values above `max(atol, rtol * largest)`, or of
/// absolute values of eigenvalues if the matrices are `hermitian`, of which the lower triangle is read.
///
/// By default `atol` is 0 and `rtol` is the machine epsilon of the dtype times max(m, n), or 0 where `atol` is
/// positive. Tolerances broadcast against the batch. The rank of a matrix without elements is 0.
///
/// # Errors
/// `RuntimeError` for fewer than two dimensions, integer dtypes and complex tolerances; `NotImplementedError` for half
/// precision.
#[op("linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
     module = "linalg", out, not_differentiable, autocast = fp32, method = linalg_matrix_rank_within_tensors)]
impl LinalgMatrixRankTensor {
    fn composite(
        input: &Tensor,
        atol: Option<&Tensor>,
        rtol: Option<&Tensor>,
        hermitian: bool,
    ) -> Result<Tensor> {
        matrix_rank(input, atol, rtol, hermitian)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = rank_samples(s);
        let real = Sampler::new(s.dtype.to_real());
        out.push(Sample::of(s.normal(&[2, 3, 2])).with("atol", real.positive(&[2])));
        out.push(Sample::of(s.normal(&[3, 3])).with("rtol", real.positive(&[])));
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let complex = Sampler::new(DType::C128).normal(&[]);
        vec![
            bad(
                Sample::of(s.normal(&[2])),
                "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.",
            ),
            bad(
                Sample::of(s.integers(&[2, 2], 0, 3)),
                "This function doesn't handle types other than float and double",
            ),
            InvalidSample::new(
                Sample::of(Sampler::new(DType::C32).normal(&[2, 2])),
                ErrorKind::NotImplemented,
                "This function doesn't handle types other than float and double, real or complex. Got ComplexHalf",
            ),
            bad(
                Sample::of(s.normal(&[2, 2])).with("atol", complex),
                "torch.linalg.matrix_rank: atol tensor of complex type is not supported. Got ComplexDouble",
            ),
        ]
    }
}

/// The rank of matrices (*, m, n): the number (*), int64, of singular values above `max(atol, rtol * largest)`, with
/// numbers as tolerances.
#[op("linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
     module = "linalg", out, not_differentiable, autocast = fp32, method = linalg_matrix_rank_within)]
impl LinalgMatrixRankFloat {
    fn composite(
        self_: &Tensor,
        atol: Option<f64>,
        rtol: Option<f64>,
        hermitian: bool,
    ) -> Result<Tensor> {
        let (atol, rtol) = (number_beside(self_, atol)?, number_beside(self_, rtol)?);
        matrix_rank(self_, atol.as_ref(), rtol.as_ref(), hermitian)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let symmetric = s.normal(&[3, 3]);
        let symmetric = symmetric.add(&h(&symmetric).expect("samples are small"));
        let mut out = rank_samples(s);
        out.push(Sample::of(s.normal(&[2, 3, 2])).with("atol", 0.5));
        out.push(
            Sample::of(symmetric.expect("samples are small"))
                .with("hermitian", true)
                .with("rtol", 0.2),
        );
        out
    }
}

/// A tolerance as a tensor on the device of `a`.
pub(in crate::ops) fn number_beside(a: &Tensor, number: Option<f64>) -> Result<Option<Tensor>> {
    let spec = TensorSpec::of(&[], DType::F64).on(a.device());
    number.map(|number| spec.full(Scalar::Float(number))).transpose()
}

/// The nuclear norm, which is the sum of the singular values, of each matrix in the last two dimensions.
#[op("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", function_only, exact_out, method = nuclear_norm)]
impl NuclearNorm {
    fn composite(self_: &Tensor, keepdim: bool) -> Result<Tensor> {
        matrix_norm(self_, NormOrder::Nuclear, &[-2, -1], keepdim, None)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3])), Sample::of(s.normal(&[2, 2, 3])).with("keepdim", true)]
    }
}

/// The nuclear norm, which is the sum of the singular values, of the matrices in the two dimensions `dim`.
#[op("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", function_only, exact_out, method = nuclear_norm_dim)]
impl NuclearNormDim {
    fn composite(self_: &Tensor, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        matrix_norm(self_, NormOrder::Nuclear, dim, keepdim, None)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::of(s.normal(&[2, 3, 2])).with("dim", [2, 0])]
    }
}

/// The square root of the sum of the squared absolute values over one or two dimensions `dim`.
#[op("frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", function_only, exact_out, method = frobenius_norm)]
impl FrobeniusNorm {
    fn composite(self_: &Tensor, dim: &[i64], keepdim: bool) -> Result<Tensor> {
        self_.linalg_vector_norm_with(Scalar::Int(2), Some(dim), keepdim, None)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3])).with("dim", [0, 1]),
            Sample::of(s.normal(&[2, 3])).with("dim", [1]).with("keepdim", true),
        ]
    }
}
