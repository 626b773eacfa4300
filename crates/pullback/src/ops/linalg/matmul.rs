//! Matrix products. `mm`, `bmm`, `mv` and their `add` forms have kernels and rules; `matmul` and `linear` are
//! made of them (`dot`, `contraction` and `einsum` have the rest).
//!
//! Operands are multiplied with the strides that they have: transposed and expanded ones are not copied. The gradient
//! of a matrix has the memory layout of the matrix, so that the gradient of a transposed weight is dense.

use crate::dispatch::OpDef;
use crate::dispatch::flops::of_products;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::pointwise::arithmetic::by_both;
use crate::tensor::Cpu;
use crate::tensor::shape::{broadcast_shapes, broadcast_strides};
use crate::{DType, Dims, Error, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::gemm;
use pullback_kernels::spelling::Spelled;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] =
    &[&MM, &ADDMM, &BMM, &BADDBMM, &ADDBMM, &MV, &ADDMV, &MATMUL, &LINEAR];

const ZERO: Scalar = Scalar::Int(0);
const ONE: Scalar = Scalar::Int(1);

/// The name of a dtype in the error messages of matrix products.
fn c_name(dtype: DType) -> Spelled<String, DType> {
    let pytorch = match dtype {
        DType::F16 | DType::BF16 => format!("c10::{}", dtype.scalar_name().pytorch()),
        other => other.scalar_name().pytorch().to_lowercase(),
    };
    Spelled::new(pytorch, dtype)
}

/// The numbers of rows and columns of the product of two matrices.
#[inline]
pub(super) fn product_sizes(name: &str, a: &Tensor, b: &Tensor) -> Result<(i64, i64)> {
    ensure!(a.ndim() == 2, runtime, "{name}: self must be a matrix, got {}-D tensor", a.ndim());
    ensure!(b.ndim() == 2, runtime, "{name}: mat2 must be a matrix, got {}-D tensor", b.ndim());
    let (&[m, k], &[k2, n]) = (a.shape(), b.shape()) else {
        unreachable!("both have two dimensions")
    };
    ensure!(
        k == k2,
        runtime,
        "{name}: mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {k2}x{n})"
    );
    Ok((m, n))
}

/// The spec of the product of two matrices.
#[inline]
fn matrix_spec(name: &str, a: &Tensor, b: &Tensor) -> Result<TensorSpec> {
    let (m, n) = product_sizes(name, a, b)?;
    if a.dtype() != b.dtype() {
        return Err(different_dtypes(name, a.dtype(), b.dtype()));
    }
    Ok(TensorSpec::beside(a, &[m, n]))
}

/// The error for two matrices of different dtypes, in the words that PyTorch has for the op.
#[cold]
fn different_dtypes(name: &str, a: DType, b: DType) -> Error {
    Error::runtime(if name == "addmm" {
        let (a, b) = (a.scalar_name(), b.scalar_name());
        format!("mat1 and mat2 must have the same dtype, but got {a} and {b}")
    } else {
        let (a, b) = (c_name(a), c_name(b));
        format!("expected m1 and m2 to have the same dtype, but got: {a} != {b}")
    })
}

/// The spec of the products of two batches of matrices.
fn batch_spec(a: &Tensor, b: &Tensor) -> Result<TensorSpec> {
    ensure!(a.ndim() == 3, runtime, "batch1 must be a 3D tensor");
    ensure!(b.ndim() == 3, runtime, "batch2 must be a 3D tensor");
    let (s, t) = (a.shape(), b.shape());
    ensure!(
        s[0] == t[0] && s[2] == t[1],
        runtime,
        "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
        s[0],
        s[2],
        t[0],
        t[1]
    );
    check_scalar_type(a, b)?;
    Ok(TensorSpec::beside(a, &[s[0], s[1], t[2]]))
}

fn check_scalar_type(a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        a.dtype() == b.dtype(),
        runtime,
        "expected scalar type {} but found {}",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    Ok(())
}

/// The spec of `beta * input + alpha * product` for a product of this shape of tensors like `like`, where `input`
/// broadcasts to it. Refuses factors that the dtype cannot represent.
fn sum_spec(
    input: &Tensor,
    product: TensorSpec,
    (beta, alpha): (Scalar, Scalar),
    like: &Tensor,
) -> Result<TensorSpec> {
    beta.check_fits(like.dtype())?;
    alpha.check_fits(like.dtype())?;
    ensure!(
        input.dtype() == like.dtype(),
        runtime,
        "self and mat2 must have the same dtype, but got {} and {}",
        input.dtype().scalar_name(),
        like.dtype().scalar_name()
    );
    broadcast_strides(input.shape(), input.strides(), &product.shape)?;
    Ok(product)
}

/// Sets `result` to the broadcast `input`, unless `beta` is 0 and `input` is not read.
fn start(cpu: Cpu, result: &Tensor, input: &Tensor, beta: Scalar) -> Result<()> {
    if beta.is(0.0) { Ok(()) } else { result.copy_data(cpu, input) }
}

/// `beta * input + alpha * (a @ b)` of floats of one byte, in single precision and rounded once.
///
/// # Errors
/// `NotImplementedError` for powers of two without sign and pairs of numbers.
fn float8_product(
    cpu: Cpu,
    result: &Tensor,
    input: Option<&Tensor>,
    [a, b]: [&Tensor; 2],
    (beta, alpha): (Scalar, Scalar),
) -> Result<()> {
    let dtype = result.dtype();
    ensure!(
        !matches!(dtype, DType::F8E8M0FNU | DType::F4E2M1FNX2),
        not_implemented,
        "\"addmm_impl_cpu_\" not implemented for '{}'",
        dtype.scalar_name()
    );
    let wide = TensorSpec::of(result.shape(), DType::F32).empty()?;
    if let Some(input) = input {
        start(cpu, &wide, input, beta)?;
    }
    let (a, b) = (a.converted(cpu, DType::F32)?, b.converted(cpu, DType::F32)?);
    gemm::matmul(&mut wide.view_mut(cpu), a.view_ref(cpu), b.view_ref(cpu), alpha, beta)?;
    result.copy_data(cpu, &wide)
}

/// The gradient of `a` in `a @ b`, in the memory layout of `a`.
fn left_grad(grad: &Tensor, b: &Tensor, is_column_major: bool, alpha: Scalar) -> Result<Tensor> {
    let out =
        if is_column_major { b.conj()?.mm(&grad.t()?)?.t()? } else { grad.mm(&b.conj()?.t()?)? };
    out.times(alpha.conj())
}

/// The gradient of `b` in `a @ b`, in the memory layout of `b`.
fn right_grad(grad: &Tensor, a: &Tensor, is_column_major: bool, alpha: Scalar) -> Result<Tensor> {
    let out =
        if is_column_major { grad.t()?.mm(&a.conj()?)?.t()? } else { a.conj()?.t()?.mm(grad)? };
    out.times(alpha.conj())
}

fn matrix_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::new([s.normal(&[2, 3]).into(), s.normal(&[3, 4]).into()]),
        Sample::new([s.transposed(2, 3).into(), s.transposed(3, 2).into()]),
        Sample::new([s.normal(&[2, 0]).into(), s.normal(&[0, 3]).into()]),
        Sample::new([s.normal(&[0, 3]).into(), s.normal(&[3, 2]).into()]),
    ]
}

/// The product of two matrices: `out[i, j] = sum over k of self[i, k] * mat2[k, j]`; (m, k) times (k, n).
/// Integers wrap; dtypes must be equal.
#[op("mm(Tensor self, Tensor mat2) -> Tensor", narrow_floats, exact_out, profiler_flops, autocast = lower, batch = mm(self, mat2), sparse = mm(cpu, self, mat2))]
impl Mm {
    fn meta(self_: &Tensor, mat2: &Tensor) -> Result<TensorSpec> {
        matrix_spec("mm", self_, mat2)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, mat2: &Tensor) -> Result<()> {
        if result.dtype().is_narrow_float() {
            return float8_product(cpu, result, None, [self_, mat2], (ZERO, ONE));
        }
        let (mut out, a, b) = (result.view_mut(cpu), self_.view_ref(cpu), mat2.view_ref(cpu));
        Ok(gemm::matmul(&mut out, a, b, ONE, ZERO)?)
    }
    fn flops(self_: &Tensor, mat2: &Tensor) -> Result<u64> {
        Ok(of_products(self_.shape(), mat2.shape()))
    }
    fn vjp_self(grad: &Tensor, mat2: &Tensor, self_column_major: bool) -> Result<Tensor> {
        left_grad(grad, mat2, self_column_major, ONE)
    }
    fn vjp_mat2(grad: &Tensor, self_: &Tensor, mat2_column_major: bool) -> Result<Tensor> {
        right_grad(grad, self_, mat2_column_major, ONE)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: Option<&Tensor>,
        mat2_p: &Tensor,
        mat2_t: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        by_both(self_t.map(|t| t.mm(mat2_p)), mat2_t.map(|t| self_p.mm(t)))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        matrix_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |a: &[i64], b: &[i64], phrase| {
            let sample = Sample::new([s.normal(a).into(), s.normal(b).into()]);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[2, 3], &[4, 3], "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x3)"),
            bad(&[2, 3], &[3], "mat2 must be a matrix, got 1-D tensor"),
        ]
    }
}

/// `beta * self + alpha * (mat1 @ mat2)`; `self` broadcasts to (m, n) and is not read if `beta` is 0.
#[op(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", narrow_floats,
    inplace = method,
    exact_out, apart(self), profiler_flops, autocast = lower, batch = addmm(self, mat1, mat2, beta, alpha), sparse = addmm(cpu, self, mat1, mat2, beta, alpha))]
impl Addmm {
    fn meta(
        self_: &Tensor,
        mat1: &Tensor,
        mat2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<TensorSpec> {
        sum_spec(self_, matrix_spec("addmm", mat1, mat2)?, (beta, alpha), mat2)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        mat1: &Tensor,
        mat2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<()> {
        if result.dtype().is_narrow_float() {
            return float8_product(cpu, result, Some(self_), [mat1, mat2], (beta, alpha));
        }
        start(cpu, result, self_, beta)?;
        let (mut out, a, b) = (result.view_mut(cpu), mat1.view_ref(cpu), mat2.view_ref(cpu));
        Ok(gemm::matmul(&mut out, a, b, alpha, beta)?)
    }
    fn flops(mat1: &Tensor, mat2: &Tensor) -> Result<u64> {
        Ok(of_products(mat1.shape(), mat2.shape()))
    }
    fn vjp_self(grad: &Tensor, beta: Scalar) -> Result<Tensor> {
        grad.times(beta.conj())
    }
    fn vjp_mat1(
        grad: &Tensor,
        mat2: &Tensor,
        mat1_column_major: bool,
        alpha: Scalar,
    ) -> Result<Tensor> {
        left_grad(grad, mat2, mat1_column_major, alpha)
    }
    fn vjp_mat2(
        grad: &Tensor,
        mat1: &Tensor,
        mat2_column_major: bool,
        alpha: Scalar,
    ) -> Result<Tensor> {
        right_grad(grad, mat1, mat2_column_major, alpha)
    }
    fn jvp(
        self_t: Option<&Tensor>,
        mat1_p: &Tensor,
        mat1_t: Option<&Tensor>,
        mat2_p: &Tensor,
        mat2_t: Option<&Tensor>,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<Option<Tensor>> {
        let product = by_both(mat1_t.map(|t| t.mm(mat2_p)), mat2_t.map(|t| mat1_p.mm(t)))?;
        by_both(product.map(|p| p.times(alpha)), self_t.map(|t| t.times(beta)))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let with = |bias: &[i64]| {
            Sample::new([s.normal(bias).into(), s.normal(&[2, 3]).into(), s.normal(&[3, 4]).into()])
        };
        vec![
            with(&[4]),
            with(&[2, 4]).with("beta", Scalar::Float(0.5)).with("alpha", Scalar::Float(2.0)),
            with(&[]),
        ]
    }
}

/// The products of the matrices of two batches: (b, n, m) times (b, m, p) gives (b, n, p). Batches do not broadcast;
/// dtypes must be equal.
#[op("bmm(Tensor self, Tensor mat2) -> Tensor", exact_out, profiler_flops, autocast = lower, batch = bmm(self, mat2), sparse = bmm(cpu, self, mat2))]
impl Bmm {
    fn meta(self_: &Tensor, mat2: &Tensor) -> Result<TensorSpec> {
        batch_spec(self_, mat2)
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, mat2: &Tensor) -> Result<()> {
        let (mut out, a, b) = (result.view_mut(cpu), self_.view_ref(cpu), mat2.view_ref(cpu));
        Ok(gemm::bmm(&mut out, a, b, ONE, ZERO)?)
    }
    fn flops(self_: &Tensor, mat2: &Tensor) -> Result<u64> {
        Ok(of_products(self_.shape(), mat2.shape()))
    }
    fn vjp_self(grad: &Tensor, mat2: &Tensor) -> Result<Tensor> {
        grad.bmm(&mat2.conj()?.transpose(1, 2)?)
    }
    fn vjp_mat2(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        self_.conj()?.transpose(1, 2)?.bmm(grad)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: Option<&Tensor>,
        mat2_p: &Tensor,
        mat2_t: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        by_both(self_t.map(|t| t.bmm(mat2_p)), mat2_t.map(|t| self_p.bmm(t)))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([s.normal(&[2, 3, 2]).into(), s.normal(&[2, 2, 4]).into()]),
            Sample::new([s.normal(&[0, 3, 2]).into(), s.normal(&[0, 2, 4]).into()]),
        ]
    }
}

/// `beta * self + alpha * bmm(batch1, batch2)`; `self` broadcasts and is not read if `beta` is 0.
#[op(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace = method,
    exact_out, apart(self), profiler_flops, autocast = lower, batch = baddbmm(self, batch1, batch2, beta, alpha)
)]
impl Baddbmm {
    fn meta(
        self_: &Tensor,
        batch1: &Tensor,
        batch2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<TensorSpec> {
        let (own, a, b) = (self_.dtype(), batch1.dtype(), batch2.dtype());
        ensure!(
            own == a && own == b,
            runtime,
            "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}",
            own.spelled(),
            a.spelled(),
            b.spelled()
        );
        sum_spec(self_, batch_spec(batch1, batch2)?, (beta, alpha), batch2)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        batch1: &Tensor,
        batch2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<()> {
        start(cpu, result, self_, beta)?;
        let (mut out, a, b) = (result.view_mut(cpu), batch1.view_ref(cpu), batch2.view_ref(cpu));
        Ok(gemm::bmm(&mut out, a, b, alpha, beta)?)
    }
    fn flops(batch1: &Tensor, batch2: &Tensor) -> Result<u64> {
        Ok(of_products(batch1.shape(), batch2.shape()))
    }
    fn vjp_self(grad: &Tensor, beta: Scalar) -> Result<Tensor> {
        grad.times(beta.conj())
    }
    fn vjp_batch1(grad: &Tensor, batch2: &Tensor, alpha: Scalar) -> Result<Tensor> {
        grad.bmm(&batch2.conj()?.transpose(1, 2)?)?.times(alpha.conj())
    }
    fn vjp_batch2(grad: &Tensor, batch1: &Tensor, alpha: Scalar) -> Result<Tensor> {
        batch1.conj()?.transpose(1, 2)?.bmm(grad)?.times(alpha.conj())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let batches = |bias: &[i64]| {
            Sample::new([
                s.normal(bias).into(),
                s.normal(&[2, 3, 2]).into(),
                s.normal(&[2, 2, 4]).into(),
            ])
        };
        vec![
            batches(&[2, 3, 4]),
            batches(&[4]).with("beta", Scalar::Float(0.5)).with("alpha", Scalar::Float(3.0)),
        ]
    }
}

/// `beta * self + alpha * (sum over b of batch1[b] @ batch2[b])`; `self` broadcasts, and the in-place form gives it the
/// result's shape.
#[op(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace = method,
    resizes_self,
    exact_out, apart(self), autocast = lower, batch = addbmm(self, batch1, batch2, beta, alpha)
)]
impl Addbmm {
    fn meta(
        self_: &Tensor,
        batch1: &Tensor,
        batch2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<TensorSpec> {
        let mut spec = batch_spec(batch1, batch2)?;
        spec.shape.remove(0);
        sum_spec(self_, spec, (beta, alpha), batch2)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        batch1: &Tensor,
        batch2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<()> {
        start(cpu, result, self_, beta)?;
        let mut out = result.view_mut(cpu);
        if batch1.shape()[0] == 0 {
            // (A product over no element leaves `beta` times the current value.)
            let a = TensorSpec::beside(batch1, &[result.shape()[0], 0]).empty()?;
            let b = TensorSpec::beside(batch2, &[0, result.shape()[1]]).empty()?;
            return Ok(gemm::matmul(&mut out, a.view_ref(cpu), b.view_ref(cpu), alpha, beta)?);
        }
        for index in 0..batch1.shape()[0] {
            let (a, b) = (batch1.select(0, index)?, batch2.select(0, index)?);
            let factor = if index == 0 { beta } else { ONE };
            gemm::matmul(&mut out, a.view_ref(cpu), b.view_ref(cpu), alpha, factor)?;
        }
        Ok(())
    }
    fn vjp_self(grad: &Tensor, beta: Scalar) -> Result<Tensor> {
        grad.times(beta.conj())
    }
    fn vjp_batch1(
        grad: &Tensor,
        batch2: &Tensor,
        batch1_shape: &[i64],
        alpha: Scalar,
    ) -> Result<Tensor> {
        let grad = grad.unsqueeze(0)?.expand(&[batch1_shape[0], -1, -1], false)?;
        grad.bmm(&batch2.conj()?.transpose(1, 2)?)?.times(alpha.conj())
    }
    fn vjp_batch2(
        grad: &Tensor,
        batch1: &Tensor,
        batch2_shape: &[i64],
        alpha: Scalar,
    ) -> Result<Tensor> {
        let grad = grad.unsqueeze(0)?.expand(&[batch2_shape[0], -1, -1], false)?;
        batch1.conj()?.transpose(1, 2)?.bmm(&grad)?.times(alpha.conj())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![Sample::new([
            s.normal(&[3, 4]).into(),
            s.normal(&[2, 3, 2]).into(),
            s.normal(&[2, 2, 4]).into(),
        ])]
    }
}

/// A vector as a matrix of one column.
fn column(vec: &Tensor) -> Result<Tensor> {
    let (n, stride) = (vec.shape()[0], vec.strides()[0]);
    vec.alias_with(&[n, 1], &[stride, 1], vec.storage_offset())
}

fn check_vector(mat: &Tensor, vec: &Tensor, out: i64) -> Result<()> {
    let rank = if out < 0 { 1 } else { out };
    ensure!(
        mat.ndim() == 2 && vec.ndim() == 1 && rank <= 1,
        runtime,
        "vector + matrix @ vector expected, got {rank}, {}, {}",
        mat.ndim(),
        vec.ndim()
    );
    let (m, k, n) = (mat.shape()[0], mat.shape()[1], vec.shape()[0]);
    ensure!(k == n, runtime, "size mismatch, got input ({m}), mat ({m}x{k}), vec ({n})");
    ensure!(
        mat.dtype() == vec.dtype(),
        runtime,
        "addmv input tensors must have the same dtype, but got {}, {}, and {}",
        mat.dtype().scalar_name(),
        mat.dtype().scalar_name(),
        vec.dtype().scalar_name()
    );
    Ok(())
}

/// A matrix times a vector: `out[i] = sum over k of self[i, k] * vec[k]`.
#[op("mv(Tensor self, Tensor vec) -> Tensor", exact_out, batch = mv(self, vec), sparse = mv(cpu, self, vec))]
impl Mv {
    fn meta(self_: &Tensor, vec: &Tensor) -> Result<TensorSpec> {
        check_vector(self_, vec, -1)?;
        Ok(TensorSpec::beside(self_, &self_.shape()[..1]))
    }
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor, vec: &Tensor) -> Result<()> {
        let (out, vec) = (column(result)?, column(vec)?);
        let (mat, vec) = (self_.view_ref(cpu), vec.view_ref(cpu));
        Ok(gemm::matmul(&mut out.view_mut(cpu), mat, vec, ONE, ZERO)?)
    }
    fn vjp_self(grad: &Tensor, vec: &Tensor) -> Result<Tensor> {
        grad.outer(&vec.conj()?)
    }
    fn vjp_vec(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        self_.conj()?.t()?.mv(grad)
    }
    fn jvp(
        self_p: &Tensor,
        self_t: Option<&Tensor>,
        vec_p: &Tensor,
        vec_t: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        by_both(self_t.map(|t| t.mv(vec_p)), vec_t.map(|t| self_p.mv(t)))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::new([s.normal(&[2, 3]).into(), s.normal(&[3]).into()]),
            Sample::new([s.transposed(3, 2).into(), s.normal(&[2]).into()]),
            Sample::new([s.normal(&[2, 0]).into(), s.normal(&[0]).into()]),
        ]
    }
}

/// `beta * self + alpha * (mat @ vec)`; `self` broadcasts and is not read if `beta` is 0.
#[op(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    inplace,
    exact_out,
    apart(self), batch = addmv(self, mat, vec, beta, alpha), sparse = addmv(cpu, self, mat, vec, beta, alpha)
)]
impl Addmv {
    fn meta(
        self_: &Tensor,
        mat: &Tensor,
        vec: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<TensorSpec> {
        check_vector(mat, vec, self_.ndim() as i64)?;
        let m = mat.shape()[0];
        ensure!(
            self_.numel() == 1 || self_.shape() == [m],
            runtime,
            "size mismatch, got input ({}), mat ({m}x{}), vec ({})",
            self_.numel(),
            mat.shape()[1],
            vec.shape()[0]
        );
        sum_spec(self_, TensorSpec::beside(mat, &[m]), (beta, alpha), vec)
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        mat: &Tensor,
        vec: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<()> {
        start(cpu, result, self_, beta)?;
        let (out, vec) = (column(result)?, column(vec)?);
        let (mat, vec) = (mat.view_ref(cpu), vec.view_ref(cpu));
        Ok(gemm::matmul(&mut out.view_mut(cpu), mat, vec, alpha, beta)?)
    }
    fn vjp_self(grad: &Tensor, beta: Scalar) -> Result<Tensor> {
        grad.times(beta.conj())
    }
    fn vjp_mat(grad: &Tensor, vec: &Tensor, alpha: Scalar) -> Result<Tensor> {
        grad.outer(&vec.conj()?)?.times(alpha.conj())
    }
    fn vjp_vec(grad: &Tensor, mat: &Tensor, alpha: Scalar) -> Result<Tensor> {
        mat.conj()?.t()?.mv(grad)?.times(alpha.conj())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let with = |bias: &[i64]| {
            Sample::new([s.normal(bias).into(), s.normal(&[2, 3]).into(), s.normal(&[3]).into()])
        };
        vec![
            with(&[2]),
            with(&[]).with("beta", Scalar::Float(0.5)).with("alpha", Scalar::Float(2.0)),
        ]
    }
}

/// Whether a product of a tensor of three or more dimensions and one of one or two is best computed as one product of
/// matrices: if the smaller one needs a gradient (a batched gradient would have to be summed), or if it costs no copy.
fn folds(a: &Tensor, b: &Tensor) -> Result<bool> {
    let is_left_larger = a.ndim() >= b.ndim();
    let (large, small) = if is_left_larger { (a, b) } else { (b, a) };
    if large.ndim() < 3 || small.ndim() > 2 {
        return Ok(false);
    }
    if small.requires_grad() && crate::autograd::mode::is_recording() {
        return Ok(true);
    }
    if a.ndim() == 2 {
        return Ok(false);
    }
    if large.numel() == 0 {
        return Ok(true);
    }
    let large = if is_left_larger { large.clone() } else { large.detached()?.transpose(-1, -2)? };
    let (shape, strides) = (large.shape(), large.strides());
    Ok((0..large.ndim() - 2).all(|i| strides[i] == strides[i + 1] * shape[i + 1]))
}

fn folded(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let is_left_larger = a.ndim() >= b.ndim();
    let large = if is_left_larger { a.clone() } else { b.transpose(-1, -2)? };
    let small = if is_left_larger || a.ndim() == 1 {
        if is_left_larger { b.clone() } else { a.clone() }
    } else {
        a.t()?
    };
    let rank = large.ndim();
    let mut shape = Dims::from_slice(&large.shape()[..rank - 1]);
    let flat = large.reshape(&[shape.iter().product(), large.shape()[rank - 1]])?;
    if small.ndim() == 1 {
        return flat.mv(&small)?.unsafe_view(&shape);
    }
    shape.push(small.shape()[1]);
    let out = flat.mm(&small)?.unsafe_view(&shape)?;
    if is_left_larger { Ok(out) } else { out.transpose(-1, -2)?.contiguous() }
}

fn batched(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (da, db) = (a.ndim(), b.ndim());
    let a = if da == 1 { a.unsqueeze(0)? } else { a.clone() };
    let b = if db == 1 { b.unsqueeze(1)? } else { b.clone() };
    let (sa, sb) = (Dims::from_slice(a.shape()), Dims::from_slice(b.shape()));
    let ((batch_a, mat_a), (batch_b, mat_b)) =
        (sa.split_at(sa.len() - 2), sb.split_at(sb.len() - 2));
    let mut shape = broadcast_shapes(&[batch_a, batch_b])?;
    let count = shape.iter().product();
    let spread = |t: &Tensor, mat: &[i64]| {
        let full: Dims = shape.iter().chain(mat).copied().collect();
        let t = t.expand(&full, false)?;
        t.reshape(&[count, mat[0], mat[1]])
    };
    let out = spread(&a, mat_a)?.bmm(&spread(&b, mat_b)?)?;
    if da > 1 {
        shape.push(mat_a[0]);
    }
    if db > 1 {
        shape.push(mat_b[1]);
    }
    out.unsafe_view(&shape)
}

/// The matrix product: vectors give a dot product, a matrix and a vector a vector, matrices a matrix; further
/// leading dimensions are batches, which broadcast. Dtypes must be equal.
#[op("matmul(Tensor self, Tensor other) -> Tensor", exact_out, alias("__matmul__"), autocast = lower)]
impl Matmul {
    fn composite(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
        ensure!(
            self_.ndim() > 0 && other.ndim() > 0,
            runtime,
            "both arguments to matmul need to be at least 1D, but they are {}D and {}D",
            self_.ndim(),
            other.ndim()
        );
        match (self_.ndim(), other.ndim()) {
            (1, 1) => self_.dot(other),
            (2, 1) => self_.mv(other),
            (1, 2) => {
                let row = self_.unsqueeze(0)?.mm(other)?;
                // (A tensor subclass that overrides its ops would not notice that the shape of one of its tensors
                // changes in place.)
                if row.overrides_ops() { row.squeeze_dim(0) } else { row.squeeze_dim_(0) }
            }
            (2, 2) => self_.mm(other),
            _ if folds(self_, other)? => folded(self_, other),
            _ => batched(self_, other),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let shapes: [(&[i64], &[i64]); 11] = [
            (&[3], &[3]),
            (&[2, 3], &[3]),
            (&[3], &[3, 2]),
            (&[2, 3], &[3, 4]),
            (&[2, 2, 3], &[3, 2]),
            (&[2, 2, 3], &[3]),
            (&[2, 3], &[2, 3, 2]),
            (&[3], &[2, 3, 2]),
            (&[2, 1, 2, 3], &[2, 3, 2]),
            (&[1, 2, 3], &[2, 3, 2]),
            (&[2, 0, 3], &[2, 3, 2]),
        ];
        shapes.iter().map(|(a, b)| Sample::new([s.normal(a).into(), s.normal(b).into()])).collect()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |a: &[i64], b: &[i64], phrase| {
            let sample = Sample::new([s.normal(a).into(), s.normal(b).into()]);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(
                &[],
                &[2],
                "both arguments to matmul need to be at least 1D, but they are 0D and 1D",
            ),
            bad(
                &[2, 1, 3],
                &[3, 3, 2],
                "The size of tensor a (2) must match the size of tensor b (3)",
            ),
        ]
    }
}

/// `input @ weight.T + bias` over the last dimension: (*, in) and (out, in) give (*, out).
#[op("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", module = "nn", autocast = lower)]
impl Linear {
    fn composite(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let Some(bias) = bias else { return input.matmul(&weight.t()?) };
        if input.ndim() == 2 {
            return bias.addmm(input, &weight.t()?);
        }
        if input.ndim() == 0 || !input.is_contiguous() || weight.ndim() != 2 || bias.ndim() > 1 {
            return input.matmul(&weight.t()?)?.add(bias);
        }
        let mut shape = Dims::from_slice(input.shape());
        let last = shape.pop().unwrap_or(1);
        let flat = input.reshape(&[shape.iter().product(), last])?;
        shape.push(weight.shape()[0]);
        bias.addmm(&flat, &weight.t()?)?.unsafe_view(&shape)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let with = |x: &[i64], w: &[i64], b: &[i64]| {
            Sample::new([s.normal(x).into(), s.normal(w).into(), s.normal(b).into()])
        };
        vec![
            with(&[2, 3], &[4, 3], &[4]),
            with(&[2, 2, 3], &[4, 3], &[4]),
            with(&[3], &[2, 3], &[2]),
            Sample::new([s.normal(&[2, 3]).into(), s.normal(&[4, 3]).into()]),
            Sample::new([s.normal(&[3]).into(), s.normal(&[3]).into()]),
        ]
    }
}
