//! Products of vectors: `cross`, `linalg.vecdot`, `addr`, `kron`, and the powers of Vandermonde matrices.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::promote::{promote_types, result_type};
use crate::tensor::shape::{broadcast_shapes, wrap_dim, wrap_own_dim};
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::linalg;
use pullback_macros::op;
use std::sync::atomic::AtomicBool;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&CROSS, &LINALG_CROSS, &LINALG_VECDOT, &ADDR, &KRON, &VANDER, &LINALG_VANDER];

fn pair(s: &Sampler, a: &[i64], b: &[i64]) -> Sample {
    Sample::new([s.normal(a).into(), s.normal(b).into()])
}

/// The cross product of vectors of length 3 along `dim`: `out[0] = a[1] * b[2] - a[2] * b[1]`, and cyclically for the
/// other components. The other dimensions broadcast.
#[op("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", exact_out, module = "linalg", batch = along)]
impl LinalgCross {
    fn meta(self_: &Tensor, other: &Tensor, dim: i64) -> Result<TensorSpec> {
        Ok(TensorSpec::beside(self_, &cross_shape(self_, other, dim)?))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, other: &Tensor, dim: i64) -> Result<()> {
        let shape = result.shape();
        let (a, b) = (self_.expand(shape, false)?, other.expand(shape, false)?);
        let dim = wrap_own_dim(dim, shape.len())?;
        Ok(linalg::cross(&mut result.view_mut(cpu), a.view_ref(cpu), b.view_ref(cpu), dim)?)
    }
    fn vjp_self(grad: &Tensor, other: &Tensor, dim: i64) -> Result<Tensor> {
        other.conj()?.linalg_cross_with(grad, dim)
    }
    fn vjp_other(grad: &Tensor, self_: &Tensor, dim: i64) -> Result<Tensor> {
        grad.linalg_cross_with(&self_.conj()?, dim)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: Option<&Tensor>,
        other_p: &Tensor,
        other_t: Option<&Tensor>,
        dim: i64,
    ) -> Result<Option<Tensor>> {
        crate::ops::pointwise::arithmetic::by_both(
            self_t.map(|t| t.linalg_cross_with(other_p, dim)),
            other_t.map(|t| self_p.linalg_cross_with(t, dim)),
        )
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            pair(s, &[3], &[3]),
            pair(s, &[2, 3], &[1, 3]),
            pair(s, &[3, 1], &[3, 2]).with("dim", 0_i64),
            pair(s, &[0, 3], &[1, 3]),
            Sample::new([s.transposed(2, 3).into(), s.normal(&[2, 3]).into()]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |sample, kind, phrase| InvalidSample::new(sample, kind, phrase);
        let (runtime, index) = (ErrorKind::Runtime, ErrorKind::Index);
        let floats = Sample::new([s.integers(&[3], 0, 5).into(), s.normal(&[3]).into()]);
        let bools = Sample::new([s.bools(&[3]).into(), s.bools(&[3]).into()]);
        vec![
            bad(pair(s, &[2, 3], &[3]), runtime, "inputs must have the same number of dimensions."),
            bad(pair(s, &[2, 2], &[2, 2]), runtime, "must have length 3. Got 2 and 2"),
            bad(pair(s, &[2, 3], &[4, 3]), runtime, "must match the size of tensor b (4)"),
            bad(pair(s, &[3, 3], &[3, 3]).with("dim", 2_i64), index, "Dimension out of range"),
            bad(pair(s, &[], &[]), index, "Dimension specified as -1 but tensor has no dimensions"),
            bad(floats, runtime, "expected scalar type Long but found Double"),
            bad(bools, ErrorKind::NotImplemented, "\"cross\" not implemented for 'Bool'"),
        ]
    }
}

fn cross_shape(a: &Tensor, b: &Tensor, dim: i64) -> Result<Dims> {
    ensure!(
        a.ndim() == b.ndim(),
        runtime,
        "linalg.cross: inputs must have the same number of dimensions."
    );
    let at = wrap_own_dim(dim, a.ndim())?;
    ensure!(
        a.shape()[at] == 3 && b.shape()[at] == 3,
        runtime,
        "linalg.cross: inputs dimension {dim} must have length 3. Got {} and {}",
        a.shape()[at],
        b.shape()[at]
    );
    ensure!(
        a.dtype() == b.dtype(),
        runtime,
        "expected scalar type {} but found {}",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    ensure!(
        a.dtype() != DType::Bool,
        not_implemented,
        "\"cross\" not implemented for '{}'",
        DType::Bool.scalar_name()
    );
    broadcast_shapes(&[a.shape(), b.shape()])
}

/// The cross product of vectors of length 3 along `dim`. Without `dim` it is along the first dimension of size 3, which
/// is deprecated; `torch.linalg.cross` is preferred.
#[op("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", exact_out)]
impl Cross {
    fn composite(self_: &Tensor, other: &Tensor, dim: Option<i64>) -> Result<Tensor> {
        static WARNED: AtomicBool = AtomicBool::new(false);
        if let Some(dim) = dim {
            return self_.linalg_cross_with(other, dim);
        }
        let Some(first) = self_.shape().iter().position(|&n| n == 3) else {
            bail!(runtime, "no dimension of size 3 in input")
        };
        crate::warning::warn_once(
            &WARNED,
            "Using torch.cross without specifying the dim arg is deprecated. It takes the first dimension of size 3, which need not be the last: give dim, or use torch.linalg.cross",
        );
        self_.linalg_cross_with(other, first as i64)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            pair(s, &[2, 3], &[2, 3]).with("dim", 1_i64),
            pair(s, &[2, 3], &[2, 3]),
            pair(s, &[3, 3], &[3, 1]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        vec![
            bad(pair(s, &[2, 2], &[2, 2]), "no dimension of size 3 in input"),
            bad(pair(s, &[], &[]), "no dimension of size 3 in input"),
            bad(pair(s, &[3, 2], &[3, 2]).with("dim", 1_i64), "must have length 3. Got 2 and 2"),
        ]
    }
}

/// Dot products along `dim`, with the conjugate of `x`: `sum(conj(x) * y)`. The other dimensions broadcast.
#[op("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", exact_out, module = "linalg", autocast = lower)]
impl LinalgVecdot {
    fn composite(x: &Tensor, y: &Tensor, dim: i64) -> Result<Tensor> {
        ensure!(
            x.dtype().is_differentiable(),
            not_implemented,
            "linalg.vecdot: Expected a floating point or complex tensor as input. Got {}",
            x.dtype().scalar_name()
        );
        ensure!(
            x.dtype() == y.dtype(),
            runtime,
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type {} and y of type {} instead",
            x.dtype().scalar_name(),
            y.dtype().scalar_name()
        );
        x.conj()?.mul(y)?.sum_dim(Some(&[dim]), false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            pair(s, &[2, 3], &[3]),
            pair(s, &[2, 3], &[2, 1]).with("dim", 0_i64),
            pair(s, &[], &[]),
            pair(s, &[2, 0], &[2, 0]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let integers = Sample::new([s.integers(&[3], 0, 5).into(), s.integers(&[3], 0, 5).into()]);
        let mixed = Sample::new([s.normal(&[3]).into(), s.integers(&[3], 0, 5).into()]);
        let (runtime, refused) = (ErrorKind::Runtime, ErrorKind::NotImplemented);
        vec![
            InvalidSample::new(integers, refused, "Expected a floating point or complex tensor"),
            InvalidSample::new(mixed, runtime, "found x of type Double and y of type Long"),
            InvalidSample::new(
                pair(s, &[2, 3], &[2]),
                runtime,
                "must match the size of tensor b (2)",
            ),
        ]
    }
}

/// Refuses a factor `alpha` or `beta` that a result of this dtype cannot represent.
fn check_factor(name: &str, factor: Scalar, dtype: DType) -> Result<()> {
    let is_bool = matches!(factor, Scalar::Bool(_));
    ensure!(
        !is_bool || dtype == DType::Bool,
        runtime,
        "Boolean {name} only supported for Boolean results."
    );
    let is_whole = factor.is_integral();
    ensure!(
        is_whole || !dtype.is_integral(true),
        runtime,
        "For integral input tensors, argument {name} must not be a floating point number."
    );
    ensure!(
        !matches!(factor, Scalar::Complex(..)) || dtype.is_complex(),
        runtime,
        "value cannot be converted to type {} without overflow: {name} is complex",
        dtype.spelled()
    );
    Ok(())
}

/// The sum of a matrix and an outer product: `beta * self + alpha * outer(vec1, vec2)`. `self` broadcasts to the shape
/// of the product and is not read if `beta` is 0. Of bools, the product is "and" and the sum "or".
#[op("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", inplace = method, out)]
impl Addr {
    fn composite(
        self_: &Tensor,
        vec1: &Tensor,
        vec2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<Tensor> {
        for (name, vector) in [("vec1", vec1), ("vec2", vec2)] {
            ensure!(
                vector.ndim() == 1,
                runtime,
                "addr: Expected 1-D argument {name}, but got {}-D",
                vector.ndim()
            );
        }
        let dtype = result_type(&[self_, vec1, vec2])?;
        check_factor("beta", beta, dtype)?;
        check_factor("alpha", alpha, dtype)?;
        let start = self_.expand(&[vec1.numel(), vec2.numel()], false)?;
        if dtype == DType::Bool {
            return either(&start, &vec1.outer(vec2)?, beta, alpha);
        }
        if beta.is(0.0) {
            return vec1.to_dtype(dtype)?.outer(vec2)?.times(alpha);
        }
        start.to_dtype(dtype)?.times(beta)?.addcmul_with(&vec1.unsqueeze(1)?, vec2, alpha)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let with = |bias: &[i64]| {
            Sample::new([s.normal(bias).into(), s.normal(&[2]).into(), s.normal(&[3]).into()])
        };
        vec![
            with(&[2, 3]),
            with(&[3]).with("beta", Scalar::Float(0.5)).with("alpha", Scalar::Float(2.0)),
            with(&[]).with("beta", Scalar::Int(0)),
            with(&[2, 3]).with("alpha", Scalar::Int(0)),
            Sample::new([s.normal(&[0, 3]).into(), s.normal(&[0]).into(), s.normal(&[3]).into()]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let of = |shapes: [&[i64]; 3]| Sample::new(shapes.map(|shape| s.normal(shape).into()));
        let whole = || {
            let t = |shape: &[i64]| Value::Tensor(s.integers(shape, 0, 5));
            Sample::new([t(&[2, 3]), t(&[2]), t(&[3])])
        };
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        vec![
            bad(of([&[2, 3], &[2, 1], &[3]]), "addr: Expected 1-D argument vec1, but got 2-D"),
            bad(of([&[2, 3], &[2], &[]]), "addr: Expected 1-D argument vec2, but got 0-D"),
            bad(of([&[2, 3], &[2], &[4]]), "The expanded size of the tensor (4)"),
            bad(
                whole().with("beta", Scalar::Float(2.5)),
                "beta must not be a floating point number",
            ),
            bad(whole().with("alpha", Scalar::Bool(true)), "Boolean alpha only supported"),
        ]
    }
}

/// The logical form of `addr`, for bools: "or" of `self` and the "and" of the vectors.
fn either(start: &Tensor, products: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    let nothing = || start.ne(start);
    let products = if alpha.is(0.0) { nothing()? } else { products.clone() };
    if beta.is(0.0) { Ok(products) } else { start.logical_or(&products) }
}

/// The Kronecker product: a block matrix whose blocks are each element of `self` times the whole of `other`. Sizes
/// multiply; missing leading dimensions count as 1.
#[op("kron(Tensor self, Tensor other) -> Tensor", out)]
impl Kron {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        let rank = self_.ndim().max(other.ndim());
        let whole = |t: &Tensor| {
            let mut shape = Dims::from_elem(1, rank - t.ndim());
            shape.extend_from_slice(t.shape());
            shape
        };
        let (a, b) = (whole(self_), whole(other));
        let size = |(m, n): (&i64, &i64)| {
            m.checked_mul(*n).ok_or_else(|| {
                crate::Error::runtime(format!("kron(): the size {m} * {n} overflows"))
            })
        };
        let shape = a.iter().zip(&b).map(size).collect::<Result<Dims>>()?;
        let spread = |sizes: &Dims, second: bool| -> Dims {
            sizes.iter().flat_map(|&n| if second { [1, n] } else { [n, 1] }).collect()
        };
        let (left, right) = (self_.reshape(&spread(&a, false))?, other.reshape(&spread(&b, true))?);
        left.mul(&right)?.reshape(&shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            pair(s, &[2, 2], &[3]),
            pair(s, &[], &[3]),
            pair(s, &[2], &[2, 1, 2]),
            pair(s, &[0, 2], &[2, 2]),
            Sample::new([s.transposed(2, 3).into(), s.transposed(3, 2).into()]),
        ]
    }
}

/// The powers 0 to `count` - 1 of each element, along a new last dimension.
fn powers(x: &Tensor, count: i64) -> Result<Tensor> {
    let mut shape = Dims::from_slice(x.shape());
    shape.push(1);
    let ones = x.new_full(&shape, Scalar::Int(1))?;
    if count == 1 {
        return Ok(ones);
    }
    *shape.last_mut().expect("just pushed") = count - 1;
    let others = x.unsqueeze(-1)?.expand(&shape, false)?.cumprod(-1)?;
    crate::ops::shape::join::cat(&[ones, others], -1)
}

/// The Vandermonde matrix of a vector: each row holds `N` powers of an element (as many as there are elements if
/// `None`), falling to the power 0, or with `increasing` rising from it. Integers give int64.
#[op("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", function_only)]
impl Vander {
    fn composite(x: &Tensor, n: Option<i64>, increasing: bool) -> Result<Tensor> {
        ensure!(x.ndim() == 1, runtime, "x must be a one-dimensional tensor.");
        let count = n.unwrap_or(x.numel());
        ensure!(count >= 0, runtime, "N must be non-negative.");
        let dtype = if x.dtype().is_integral(true) {
            promote_types(x.dtype(), DType::I64)?
        } else {
            x.dtype()
        };
        if count == 0 {
            return x.to_dtype(dtype)?.new_zeros(&[x.numel(), 0]);
        }
        let matrix = powers(&x.to_dtype(dtype)?, count)?;
        if increasing { Ok(matrix) } else { matrix.flip(&[1]) }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample =
            |n: Value, increasing: bool| Sample::new([s.normal(&[3]).into(), n, increasing.into()]);
        vec![
            sample(Value::None, false),
            sample(Value::Int(4), true),
            sample(Value::Int(1), false),
            sample(Value::Int(0), false),
            Sample::of(s.normal(&[0])),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        vec![
            bad(Sample::of(s.normal(&[2, 3])), "x must be a one-dimensional tensor."),
            bad(Sample::of(s.normal(&[2])).with("N", -1_i64), "N must be non-negative."),
        ]
    }
}

/// The Vandermonde matrices of vectors along the last dimension: each row holds the powers 0 to `N` - 1 of an element,
/// where `N` is the length of the vectors if `None`. Integers give int64.
#[op("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", module = "linalg")]
impl LinalgVander {
    fn composite(x: &Tensor, n: Option<i64>) -> Result<Tensor> {
        ensure!(
            !matches!(x.dtype(), DType::Bool | DType::F16 | DType::BF16),
            not_implemented,
            "linalg.vander supports floating point, complex, and integer tensors, but got {}",
            x.dtype().scalar_name()
        );
        let vectors = if x.ndim() == 0 { x.unsqueeze(0)? } else { x.clone() };
        let last = wrap_dim(-1, vectors.ndim())?;
        let count = n.unwrap_or(vectors.shape()[last]);
        ensure!(count > 1, runtime, "N must be greater than 1.");
        if vectors.dtype().is_integral(false) {
            return powers(&vectors.to_dtype(DType::I64)?, count);
        }
        powers(&vectors, count)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[3])),
            Sample::of(s.normal(&[2, 3])).with("N", 4_i64),
            Sample::of(s.normal(&[])).with("N", 3_i64),
            Sample::of(s.normal(&[2, 0])).with("N", 2_i64),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bools = Sample::of(s.bools(&[3]));
        let one = Sample::of(s.normal(&[3])).with("N", 1_i64);
        let phrase = "linalg.vander supports floating point, complex, and integer tensors";
        vec![
            InvalidSample::new(bools, ErrorKind::NotImplemented, phrase),
            InvalidSample::new(one, ErrorKind::Runtime, "N must be greater than 1."),
            InvalidSample::new(
                Sample::of(s.normal(&[1])),
                ErrorKind::Runtime,
                "N must be greater than 1.",
            ),
        ]
    }
}
