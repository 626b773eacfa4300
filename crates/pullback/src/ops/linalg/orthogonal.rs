//! Orthogonal (unitary) matrices as products of Householder reflections in LAPACK's compact form; and the older forms
//! of decompositions.
//!
//! `H1 H2 ... Hk = I - V T V^H` with `T = (I + D S)^-1 D`, where D holds the factors tau and S is `V^H V` strictly
//! above the diagonal (R. Schreiber, C. Van Loan, "A storage-efficient WY representation for products of Householder
//! transformations", 1989, in the inverted form of T. Joffrain et al., "Accumulating Householder transformations,
//! revisited", ACM TOMS 32, 2006). So these ops are made of matrix products and a triangular system, whose derivatives
//! they have.

use super::decomposition::{batch_shape, eye, h, regular, sizes};
use super::layout::{check_field, columns, rows, transposed};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::classes::no_derivative;
use crate::tensor::Cpu;
use crate::tensor::shape::list;
use crate::{DType, ErrorKind, Result, Tensor, TensorSpec};
use pullback_kernels::linalg as kernel;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&GEQRF, &LINALG_HOUSEHOLDER_PRODUCT, &ORMQR, &SVD];

/// The QR decomposition of matrices (*, m, n) in LAPACK's compact form: `a` holds R in its upper triangle, and below it
/// the Householder vectors `v` without their leading ones; `tau` (*, min(m, n)) holds the factors of the reflections
/// `H = I - tau v v^H`. The orthogonal factor is `Q = H1 H2 ... Hk`.
///
/// # Errors
/// `RuntimeError` for fewer than two dimensions; `NotImplementedError` for half precision and integer dtypes.
#[op("geqrf(Tensor self) -> (Tensor a, Tensor tau)", out, autocast = fp32, method = geqrf, batch = matrices)]
impl Geqrf {
    fn meta(self_: &Tensor) -> Result<[TensorSpec; 2]> {
        ensure!(self_.ndim() >= 2, runtime, "torch.geqrf: input must have at least 2 dimensions.");
        check_field("geqrf_cpu", self_)?;
        let (m, n) = sizes(self_.shape());
        let tau = rows(self_, &batch_shape(self_, &[m.min(n)]), self_.dtype());
        Ok([columns(self_, self_.shape()), tau])
    }
    fn cpu(cpu: Cpu, a: &Tensor, tau: &Tensor, self_: &Tensor) -> Result<()> {
        let (own, to) = (transposed(self_)?, transposed(a)?);
        let own = own.view_ref(cpu);
        Ok(kernel::geqrf(&mut to.view_mut(cpu), &mut tau.view_mut(cpu), own)?)
    }
    fn vjp_self() -> Result<Tensor> {
        no_derivative("the derivative for 'geqrf'")
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let shapes: [&[i64]; 4] = [&[3, 3], &[2, 4, 2], &[2, 3], &[0, 2]];
        shapes.map(|shape| Sample::of(s.normal(shape)).without_gradient()).into()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![
            InvalidSample::new(
                Sample::of(s.normal(&[3])),
                ErrorKind::Runtime,
                "torch.geqrf: input must have at least 2 dimensions.",
            ),
            InvalidSample::new(
                Sample::of(s.integers(&[2, 2], 0, 3)),
                ErrorKind::NotImplemented,
                "\"geqrf_cpu\" not implemented for 'Long'",
            ),
        ]
    }
}

/// The parts of the compact WY representation: `V` (*, m, k) with its unit diagonal, the strictly upper triangular `D S`,
/// and the diagonal of D as a column.
fn reflections(input: &Tensor, tau: &Tensor) -> Result<(Tensor, Tensor, Tensor)> {
    let k = tau.shape()[tau.ndim() - 1];
    let m = input.shape()[input.ndim() - 2];
    let ones = eye(m, input)?.narrow(-1, 0, k)?;
    let v = input.narrow(-1, 0, k)?.tril(-1)?.add(&ones)?;
    let d = tau.unsqueeze(-1)?;
    let inner = h(&v)?.matmul(&v)?.triu(1)?.mul(&d)?;
    Ok((v, inner, d))
}

/// The first n columns of the product `H1 H2 ... Hk` of Householder reflections, whose vectors are below the diagonal
/// of `input` (*, m, n), m >= n, and whose factors are `tau` (*, k), k <= n. The columns of the result (*, m, n) are
/// orthonormal if the reflections are those of a QR decomposition.
///
/// # Errors
/// `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for half precision and integer dtypes.
#[op("linalg_householder_product(Tensor input, Tensor tau) -> Tensor", module = "linalg", out, alias("orgqr"), call_as("orgqr(tau = input2)"), autocast = fp32, method = linalg_householder_product)]
impl LinalgHouseholderProduct {
    fn composite(input: &Tensor, tau: &Tensor) -> Result<Tensor> {
        check_product(input, tau)?;
        let (m, n) = sizes(input.shape());
        let (v, inner, d) = reflections(input, tau)?;
        // (Only the first n rows of V contribute to the first n columns of the product.)
        let right = h(&v.narrow(-2, 0, n)?)?.mul(&d)?;
        let right = inner.linalg_solve_triangular_with(&right, true, true, true)?;
        let ones = eye(m, input)?.narrow(-1, 0, n)?;
        // The transpose is computed, so that the result is column-major.
        transposed(&transposed(&right)?.matmul(&transposed(&v)?)?.neg()?.add(&transposed(&ones)?)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |input: &[i64], tau: &[i64]| {
            Sample::new([s.normal(input).into(), s.normal(tau).into()])
        };
        vec![
            sample(&[3, 3], &[3]),
            sample(&[4, 2], &[2]),
            sample(&[2, 3, 2], &[2, 1]),
            sample(&[3, 2], &[0]),
            sample(&[0, 0], &[0]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |input: &[i64], tau: Tensor, phrase| {
            let sample = Sample::new([s.normal(input).into(), tau.into()]);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        let f32 = Sampler::new(DType::F32);
        vec![
            bad(
                &[3],
                s.normal(&[3]),
                "torch.linalg.householder_product: input must have at least 2 dimensions.",
            ),
            bad(
                &[2, 3],
                s.normal(&[2]),
                "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]",
            ),
            bad(
                &[3, 2],
                s.normal(&[3]),
                "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]",
            ),
            bad(
                &[2, 3, 2],
                s.normal(&[2]),
                "Expected tau to have one dimension less than input, but got tau.ndim equal to 1 and input.ndim is equal to 3",
            ),
            bad(
                &[2, 3, 2],
                s.normal(&[3, 2]),
                "Expected batch dimensions of tau to be equal to input.shape[:-2], but got [3]",
            ),
            bad(
                &[3, 2],
                f32.normal(&[2]),
                "torch.linalg.householder_product: tau dtype Float does not match input dtype Double",
            ),
        ]
    }
}

fn check_product(input: &Tensor, tau: &Tensor) -> Result<()> {
    let name = "torch.linalg.householder_product";
    ensure!(input.ndim() >= 2, runtime, "{name}: input must have at least 2 dimensions.");
    let (m, n) = sizes(input.shape());
    ensure!(
        m >= n,
        runtime,
        "{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
    );
    ensure!(
        tau.ndim() + 1 == input.ndim(),
        runtime,
        "{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {} and input.ndim is equal to {}",
        tau.ndim(),
        input.ndim()
    );
    ensure!(
        n >= tau.shape()[tau.ndim() - 1],
        runtime,
        "{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
    );
    check_batch(name, input, tau)?;
    ensure!(
        tau.dtype() == input.dtype(),
        runtime,
        "{name}: tau dtype {} does not match input dtype {}",
        tau.dtype().scalar_name(),
        input.dtype().scalar_name()
    );
    check_field("orgqr_cpu", input)
}

fn check_batch(name: &str, input: &Tensor, tau: &Tensor) -> Result<()> {
    let batch = &tau.shape()[..tau.ndim() - 1];
    ensure!(
        batch == &input.shape()[..input.ndim() - 2],
        runtime,
        "{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {}",
        list(batch)
    );
    Ok(())
}

/// The product `Q C` of the square matrix `Q = H1 H2 ... Hk` of Householder reflections in compact form (vectors below
/// the diagonal of `self`, factors `input2`) with `C` = `input3`; `C Q` unless `left`; with `transpose`, `Q^H` takes
/// the place of `Q`. The matrix `Q` is never formed.
///
/// # Errors
/// `RuntimeError` for shapes or dtypes that do not fit; `NotImplementedError` for half precision and integer dtypes.
#[op("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor", exact_out, autocast = fp32, method = ormqr)]
impl Ormqr {
    fn composite(
        self_: &Tensor,
        input2: &Tensor,
        input3: &Tensor,
        left: bool,
        transpose: bool,
    ) -> Result<Tensor> {
        check_ormqr(self_, input2, input3, left)?;
        let (v, inner, d) = reflections(self_, input2)?;
        // Applies the factor `T` of `I - V T V^H`, or its adjoint, to `b`.
        let middle = |b: &Tensor| {
            if transpose {
                let adjoint = h(&add_one(&inner)?)?;
                adjoint.linalg_solve_triangular_with(b, false, true, true)?.mul(&d.conj()?)
            } else {
                inner.linalg_solve_triangular_with(&b.mul(&d)?, true, true, true)
            }
        };
        // `T^H = D^H (1 + D S)^-H`: the factor comes after the triangular system.
        if left {
            let moved = v.matmul(&middle(&h(&v)?.matmul(input3)?)?)?;
            return by_columns(&input3.sub(&moved)?);
        }
        let moved = input3.matmul(&v.matmul(&middle(&h(&v)?)?)?)?;
        by_columns(&input3.sub(&moved)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |input: &[i64], tau: &[i64], other: &[i64]| {
            Sample::new([s.normal(input).into(), s.normal(tau).into(), s.normal(other).into()])
        };
        vec![
            sample(&[3, 2], &[2], &[3, 2]),
            sample(&[3, 2], &[2], &[3, 1]).with("transpose", true),
            sample(&[2, 3, 2], &[2, 2], &[2, 2, 3]).with("left", false),
            sample(&[3, 3], &[3], &[1, 3]).with("left", false).with("transpose", true),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |input: &[i64], tau: &[i64], other: Tensor, phrase| {
            let sample = Sample::new([s.normal(input).into(), s.normal(tau).into(), other.into()]);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        let f32 = Sampler::new(DType::F32);
        vec![
            bad(
                &[3],
                &[3],
                s.normal(&[3, 1]),
                "torch.ormqr: input must have at least 2 dimensions.",
            ),
            bad(
                &[3, 2],
                &[3],
                s.normal(&[3, 1]),
                "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1])",
            ),
            bad(
                &[3, 2],
                &[2],
                s.normal(&[2, 1]),
                "torch.ormqr: other.shape[-2] must be equal to input.shape[-2]",
            ),
            bad(
                &[3, 2],
                &[2],
                f32.normal(&[3, 1]),
                "torch.ormqr: Expected input and other to have the same dtype",
            ),
        ]
    }
}

fn add_one(inner: &Tensor) -> Result<Tensor> {
    inner.add(&eye(inner.shape()[inner.ndim() - 1], inner)?)
}

/// A column-major copy of the matrices.
fn by_columns(a: &Tensor) -> Result<Tensor> {
    transposed(&transposed(a)?.contiguous()?)
}

fn check_ormqr(input: &Tensor, tau: &Tensor, other: &Tensor, left: bool) -> Result<()> {
    let name = "torch.ormqr";
    ensure!(input.ndim() >= 2, runtime, "{name}: input must have at least 2 dimensions.");
    ensure!(other.ndim() >= 2, runtime, "{name}: other must have at least 2 dimensions.");
    let (side, at) = if left { (-2, other.ndim() - 2) } else { (-1, other.ndim() - 1) };
    let (m, n) = sizes(input.shape());
    let size = other.shape()[at];
    ensure!(
        tau.ndim() + 1 == input.ndim(),
        runtime,
        "{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {} and input.ndim is equal to {}",
        tau.ndim(),
        input.ndim()
    );
    let k = tau.shape()[tau.ndim() - 1];
    ensure!(
        size >= k,
        runtime,
        "{name}: other.shape[{side}] must be greater than or equal to tau.shape[-1]"
    );
    ensure!(
        k == size.min(n),
        runtime,
        "{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
    );
    ensure!(size == m, runtime, "{name}: other.shape[{side}] must be equal to input.shape[-2]");
    check_batch(name, input, tau)?;
    ensure!(
        input.shape()[..input.ndim() - 2] == other.shape()[..other.ndim() - 2],
        runtime,
        "{name}: Expected batch dimensions of other to be equal to input.shape[:-2], but got {}",
        list(&other.shape()[..other.ndim() - 2])
    );
    for (what, t) in [("tau", tau), ("other", other)] {
        ensure!(
            t.dtype() == input.dtype(),
            runtime,
            "{name}: Expected input and {what} to have the same dtype, but input has dtype {} and {what} has dtype {}",
            input.dtype().scalar_name(),
            t.dtype().scalar_name()
        );
    }
    check_field("ormqr_cpu", input)
}

/// The singular value decomposition `A = U diag(S) V^H` in its older form, which gives V in place of its adjoint;
/// `some` stands for the reduced factors. Without `compute_uv`, U and V are zeros. It is deprecated: `torch.linalg.svd`
/// takes its place.
#[op("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", exact_out, autocast = fp32, method = svd)]
impl Svd {
    fn composite(self_: &Tensor, some: bool, compute_uv: bool) -> Result<[Tensor; 3]> {
        ensure!(
            self_.ndim() >= 2,
            runtime,
            "linalg.svd: input should have at least 2 dimensions, but has {} dimensions instead",
            self_.ndim()
        );
        if compute_uv {
            let [u, s, vh] = self_.linalg_svd(!some)?;
            return Ok([u, s, h(&vh)?]);
        }
        let (m, n) = sizes(self_.shape());
        let zeros =
            |size: i64| TensorSpec::beside(self_, &batch_shape(self_, &[size, size])).zeros();
        Ok([zeros(m)?, self_.linalg_svdvals()?, zeros(n)?])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        vec![
            Sample::of(s.normal(&[3, 2])),
            Sample::of(regular(s, &[3])).with("some", false),
            Sample::of(s.normal(&[2, 2, 3])).with("compute_uv", false),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::of(s.normal(&[3])),
            ErrorKind::Runtime,
            "linalg.svd: input should have at least 2 dimensions, but has 1 dimensions instead",
        )]
    }
}
