//! The Moore-Penrose pseudoinverse, and least squares.
//!
//! Derivatives hold at constant rank: G. H. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear
//! least squares problems whose variables separate", SIAM J. Numer. Anal. 10 (1973), (4.12).

use super::decomposition::{batch_shape, h, regular, sizes};
use super::layout::{check_spectrum, rows};
use super::matrix_norm::{check_tolerances, number_beside, tolerance};
use crate::dispatch::OpDef;
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::reduce::any_all::is_any_true;
use crate::tensor::shape::broadcast_shapes;
use crate::tensor::{Cpu, contiguous_strides};
use crate::{DType, Device, Dims, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &LINALG_PINV_TENSOR,
    &LINALG_PINV_FLOAT,
    &LINALG_PINV,
    &LINALG_PINV_RCOND_TENSOR,
    &PINVERSE,
    &LSTSQ_KERNEL,
    &LINALG_LSTSQ,
];

fn check(a: &Tensor) -> Result<()> {
    let message = format!(
        "linalg.pinv({}{{{}}}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types",
        a.dtype().scalar_name(),
        crate::tensor::shape::list(a.shape())
    );
    ensure!(a.ndim() >= 2, runtime, "{message}");
    check_spectrum(a, &message)
}

/// The batch dimensions of the result: those of the matrices, broadcast with those of the tolerances.
fn batch_of(a: &Tensor, tolerances: [Option<&Tensor>; 2]) -> Result<Dims> {
    let own = &a.shape()[..a.ndim() - 2];
    let others = tolerances.into_iter().flatten().map(Tensor::shape);
    let all: Vec<&[i64]> = others.chain([own]).collect(); // bounded: by the arguments.
    broadcast_shapes(&all)
}

/// The reciprocals of values whose absolute value `size` is above the tolerance `least`, and zeros for the others.
fn inverted(values: &Tensor, size: &Tensor, least: &Tensor) -> Result<Tensor> {
    let is_lost = size.le(&least.unsqueeze(-1)?)?;
    let ones = values.masked_fill(&is_lost, Scalar::Int(1))?;
    ones.reciprocal()?.masked_fill(&is_lost, Scalar::Int(0))
}

/// The product `x y z` of matrices of p by q, q by p and p by q, in the order in which the intermediate matrix has the
/// order min(p, q).
fn product(x: &Tensor, y: &Tensor, z: &Tensor) -> Result<Tensor> {
    let (rows, columns) = sizes(x.shape());
    if rows > columns { x.matmul(&y.matmul(z)?) } else { x.matmul(y)?.matmul(z) }
}

/// The Moore-Penrose pseudoinverse (*, n, m) of matrices (*, m, n), by singular values, of which those not above
/// `max(atol, rtol * largest)` count as zero; with `hermitian`, by the eigenvalues of the lower triangle.
///
/// By default `atol` is 0 and `rtol` is the machine epsilon of the dtype times max(m, n), or 0 where `atol` is
/// positive. Tolerances broadcast against the batch (*). The derivative exists where the rank does not change nearby.
/// Source: G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems
/// whose variables separate" (1973).
///
/// # Errors
/// `RuntimeError` for fewer than two dimensions, integer dtypes, complex tolerances, and with `hermitian` for matrices
/// that are not square; `NotImplementedError` for half precision.
#[op("linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
     module = "linalg", out, not_differentiable(atol, rtol), method = linalg_pinv_within_tensors, node = "LinalgPinv")]
impl LinalgPinvTensor {
    fn meta(
        self_: &Tensor,
        atol: Option<&Tensor>,
        rtol: Option<&Tensor>,
        hermitian: bool,
    ) -> Result<TensorSpec> {
        check(self_)?;
        check_tolerances("pinv", atol, rtol)?;
        let (m, n) = sizes(self_.shape());
        ensure!(
            !hermitian || m == n,
            runtime,
            "linalg.eigh: A must be batches of square matrices, but they are {m} by {n} matrices"
        );
        let mut shape = batch_of(self_, [atol, rtol])?;
        shape.extend([n, m]);
        Ok(TensorSpec::beside(self_, &shape))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        atol: Option<&Tensor>,
        rtol: Option<&Tensor>,
        hermitian: bool,
    ) -> Result<()> {
        if self_.numel() == 0 {
            return Ok(());
        }
        let least = |largest: &Tensor| tolerance(self_, largest, atol, rtol);
        let inverse = if hermitian {
            let [w, v] = self_.eigh_kernel("L", true)?;
            let size = w.abs()?;
            let inverse = inverted(&w, &size, &least(&size.amax(&[-1], false)?)?)?;
            v.mul(&inverse.unsqueeze(-2)?)?.matmul(&h(&v)?)?
        } else {
            let [u, s, vh] = self_.svd_kernel(false, true)?;
            let inverse = inverted(&s, &s, &least(&s.select(-1, 0)?)?)?;
            h(&vh)?.mul(&inverse.unsqueeze(-2)?)?.matmul(&h(&u)?)?
        };
        result.copy_data(cpu, &inverse)
    }
    fn batch(
        call: &BatchedCall<'_>,
        self_: &Tensor,
        atol: Option<&Tensor>,
        rtol: Option<&Tensor>,
    ) -> Result<Outcome> {
        // (Tolerances with more dimensions than the batch would be taken for batch dimensions.)
        let adds = |t: &Tensor| t.ndim() + 2 > self_.ndim();
        if [atol, rtol].into_iter().flatten().any(adds) {
            return crate::ops::batch::one_by_one(call);
        }
        crate::ops::batch::with_tolerances(call, self_, atol, rtol)
    }
    // The gradient is -P^H g P^H + (I - A P) g^H P P^H + P^H P g^H (I - P A).
    fn vjp_self(grad: &Tensor, self_: &Tensor, result: &Tensor) -> Result<Tensor> {
        let (a, p, p_h, g_h) = (self_, result, h(result)?, h(grad)?);
        let left = product(&g_h, p, &p_h)?;
        let right = product(&p_h, p, &g_h)?;
        let left = left.sub(&product(a, p, &left)?)?;
        let right = right.sub(&product(&right, p, a)?)?;
        left.add(&right)?.sub(&product(&p_h, grad, &p_h)?)
    }
    // The tangent is -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P.
    fn jvp(self_p: &Tensor, self_t: &Tensor, result: &Tensor) -> Result<Tensor> {
        let (a, p, p_h, t_h) = (self_p, result, h(result)?, h(self_t)?);
        let left = product(p, &p_h, &t_h)?;
        let right = product(&t_h, &p_h, p)?;
        let left = left.sub(&product(&left, a, p)?)?;
        let right = right.sub(&product(p, a, &right)?)?;
        left.add(&right)?.sub(&product(p, self_t, p)?)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = pinv_samples(s);
        let real = Sampler::new(s.dtype.to_real());
        let within = |a: &[i64], name, tolerance: &[i64]| {
            Sample::of(s.normal(a)).with(name, real.positive(tolerance)).without_gradient()
        };
        out.push(within(&[2, 3, 2], "atol", &[2]));
        // (More tolerances than matrices.)
        out.push(within(&[3, 2], "atol", &[2, 1]));
        out.push(within(&[1, 3, 2], "rtol", &[2]));
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
        let complex = Sampler::new(DType::C128).normal(&[]);
        vec![
            bad(
                Sample::of(s.normal(&[3])),
                "linalg.pinv(Double{[3]}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types",
            ),
            bad(
                Sample::of(s.normal(&[3, 2])).with("hermitian", true),
                "linalg.eigh: A must be batches of square matrices, but they are 3 by 2 matrices",
            ),
            bad(
                Sample::of(s.normal(&[3, 2])).with("atol", complex),
                "torch.linalg.pinv: atol tensor of complex type is not supported. Got ComplexDouble",
            ),
            bad(
                Sample::of(s.normal(&[2, 3, 2])).with("atol", s.positive(&[3])),
                "The size of tensor a (3) must match the size of tensor b (2)",
            ),
            InvalidSample::new(
                Sample::of(Sampler::new(DType::C32).normal(&[3, 2])),
                ErrorKind::NotImplemented,
                "linalg.pinv(ComplexHalf{[3, 2]}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types",
            ),
        ]
    }
}

fn pinv_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(s.normal(&[3, 2])),
        Sample::of(s.normal(&[2, 2, 3])),
        Sample::of(regular(s, &[3])),
        Sample::of(s.normal(&[0, 3])),
    ]
}

/// The Moore-Penrose pseudoinverse (*, n, m) of matrices (*, m, n), with numbers as tolerances: singular values not
/// above `max(atol, rtol * largest)` count as zero.
#[op("linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
     module = "linalg", out, method = linalg_pinv_within)]
impl LinalgPinvFloat {
    fn composite(
        self_: &Tensor,
        atol: Option<f64>,
        rtol: Option<f64>,
        hermitian: bool,
    ) -> Result<Tensor> {
        let (atol, rtol) = (number_beside(self_, atol)?, number_beside(self_, rtol)?);
        self_.linalg_pinv_within_tensors_with(atol.as_ref(), rtol.as_ref(), hermitian)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = pinv_samples(s);
        out.push(Sample::of(s.normal(&[3, 3])).with("rtol", 1e-3));
        let positive = regular(s, &[3]);
        let positive = positive.matmul(&h(&positive).expect("samples are small"));
        let hermitian = Sample::of(positive.expect("samples are small")).with("hermitian", true);
        out.push(hermitian.without_gradient());
        out
    }
}

/// The Moore-Penrose pseudoinverse (*, n, m) of matrices (*, m, n): singular values not above `rcond` times the largest
/// count as zero.
#[op("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", module = "linalg", out, method = linalg_pinv)]
impl LinalgPinv {
    fn composite(self_: &Tensor, rcond: f64, hermitian: bool) -> Result<Tensor> {
        self_.linalg_pinv_within_with(Some(0.0), Some(rcond), hermitian)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        pinv_samples(s).into_iter().map(|sample| sample.with("rcond", 1e-3)).collect()
    }
}

/// The Moore-Penrose pseudoinverse (*, n, m) of matrices (*, m, n): singular values not above `rcond`, which broadcasts
/// against the batch, times the largest count as zero.
#[op("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor", module = "linalg", out, method = linalg_pinv_rcond)]
impl LinalgPinvRcondTensor {
    fn composite(self_: &Tensor, rcond: &Tensor, hermitian: bool) -> Result<Tensor> {
        ensure!(
            !rcond.dtype().is_complex(),
            runtime,
            "torch.linalg.pinv: rcond tensor of complex type is not supported. Got {}",
            rcond.dtype().scalar_name()
        );
        let zero = number_beside(self_, Some(0.0))?;
        self_.linalg_pinv_within_tensors_with(zero.as_ref(), Some(rcond), hermitian)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let rcond = Sampler::new(s.dtype.to_real())
            .positive(&[])
            .times(Scalar::Float(1e-3))
            .expect("samples are small");
        vec![Sample::new([s.normal(&[3, 2]).into(), rcond.into()]).without_gradient()]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let complex = Sampler::new(DType::C128).normal(&[]);
        vec![InvalidSample::new(
            Sample::new([s.normal(&[3, 2]).into(), complex.into()]),
            ErrorKind::Runtime,
            "torch.linalg.pinv: rcond tensor of complex type is not supported. Got ComplexDouble",
        )]
    }
}

/// The Moore-Penrose pseudoinverse (*, n, m) of matrices (*, m, n): singular values not above `rcond` times the largest
/// count as zero. `torch.linalg.pinv` is preferred.
#[op("pinverse(Tensor self, float rcond=1e-15) -> Tensor", autocast = fp32, method = pinverse)]
impl Pinverse {
    fn composite(self_: &Tensor, rcond: f64) -> Result<Tensor> {
        self_.linalg_pinv(rcond, false)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        pinv_samples(s)
    }
}

/// The solution that `torch.linalg.lstsq` is made of, for a `B` with as many dimensions as `A`. The solution is stored
/// column by column in the first rows of matrices of max(m, n) rows; the rank is empty for the driver gels, and
/// singular values are there for gelsd and gelss.
#[op("_linalg_lstsq(Tensor A, Tensor B, float rcond, str driver) -> (Tensor solution, Tensor rank, Tensor singular_values)",
     internal, method = lstsq_kernel, node = "LinalgLstsq", batch = matrices_or_nothing(a, b))]
impl LstsqKernel {
    fn meta(a: &Tensor, b: &Tensor, driver: &str) -> Result<[TensorSpec; 3]> {
        super::layout::check_field("linalg_lstsq_cpu", a)?;
        let rank = a.ndim();
        ensure!(
            rank >= 2 && b.ndim() == rank && b.shape()[..rank - 1] == a.shape()[..rank - 1],
            runtime,
            "torch.linalg.lstsq: A and B must have one batch and as many rows, got shapes {} and {}",
            crate::tensor::shape::list(a.shape()),
            crate::tensor::shape::list(b.shape())
        );
        ensure!(
            a.dtype() == b.dtype(),
            runtime,
            "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype {} and other's dtype {}",
            a.dtype().scalar_name(),
            b.dtype().scalar_name()
        );
        let ((m, n), (_, k)) = (sizes(a.shape()), sizes(b.shape()));
        let has = |wanted: bool, sizes: &[i64], dtype| {
            let shape: Dims = if wanted { batch_shape(a, sizes) } else { Dims::from_slice(&[0]) };
            rows(a, &shape, dtype)
        };
        let mut strides = contiguous_strides(&batch_shape(a, &[k, m.max(n)]));
        let rank = strides.len();
        strides.swap(rank - 2, rank - 1);
        let solution = TensorSpec::beside(a, &batch_shape(a, &[n, k]));
        Ok([
            TensorSpec { strides: Some(strides), ..solution },
            has(driver != "gels", &[], DType::I64),
            has(matches!(driver, "gelsd" | "gelss"), &[m.min(n)], a.dtype().to_real()),
        ])
    }
    fn cpu(
        cpu: Cpu,
        solution: &Tensor,
        rank: &Tensor,
        singular_values: &Tensor,
        a: &Tensor,
        b: &Tensor,
        rcond: f64,
        driver: &str,
    ) -> Result<()> {
        if driver == "gels" {
            return solution.copy_data(cpu, &of_full_rank(a, b)?);
        }
        if a.numel() == 0 {
            let zeros = |t: &Tensor| TensorSpec::like(t).zeros();
            rank.copy_data(cpu, &zeros(rank)?)?;
            return solution.copy_data(cpu, &zeros(solution)?);
        }
        let [u, s, vh] = a.svd_kernel(false, true)?;
        let least = s.select(-1, 0)?.times(Scalar::Float(rcond))?;
        let inverse = inverted(&s, &s, &least)?;
        let inner = h(&u)?.matmul(b)?.mul(&inverse.unsqueeze(-1)?)?;
        solution.copy_data(cpu, &h(&vh)?.matmul(&inner)?)?;
        let count = s.gt(&least.unsqueeze(-1)?)?.sum_dim(Some(&[-1]), false)?;
        rank.copy_data(cpu, &count)?;
        if singular_values.numel() > 0 { singular_values.copy_data(cpu, &s) } else { Ok(()) }
    }
    // X = P B with the pseudoinverse P: the gradient of B is P^H g; that of A is the gradient of `linalg_pinv` for g
    // B^H.
    fn vjp(
        grad_solution: Option<&Tensor>,
        a: &Tensor,
        b: &Tensor,
        rcond: f64,
        driver: &str,
        needs: [bool; 2],
    ) -> Result<[Option<Tensor>; 2]> {
        let Some(g) = grad_solution else { return Ok([None, None]) };
        let p = inverse_for(a, rcond, driver)?;
        let gb = h(&p)?.matmul(g)?;
        if !needs[0] {
            return Ok([None, Some(gb)]);
        }
        // With Y = P^H g, X = P B and the residual R = B - A X the gradient of A is -Y X^H + R (P Y)^H + P^H X (g - A^H
        // Y)^H.
        let x = p.matmul(b)?;
        let residual = b.sub(&a.matmul(&x)?)?;
        let rest = g.sub(&h(a)?.matmul(&gb)?)?;
        let ga = residual.matmul(&h(&p.matmul(&gb)?)?)?;
        let ga = ga.add(&h(&p)?.matmul(&x)?.matmul(&h(&rest)?)?)?;
        Ok([Some(ga.sub(&gb.matmul(&h(&x)?)?)?), Some(gb)])
    }
    fn jvp(
        a_p: &Tensor,
        a_t: &Tensor,
        b_p: &Tensor,
        b_t: &Tensor,
        rcond: f64,
        driver: &str,
    ) -> Result<[Option<Tensor>; 3]> {
        let p = inverse_for(a_p, rcond, driver)?;
        let x = p.matmul(b_p)?;
        let residual = b_p.sub(&a_p.matmul(&x)?)?;
        // The tangent is P (dB - dA X) + P P^H dA^H R + (I - P A) dA^H P^H X.
        let direct = p.matmul(&b_t.sub(&a_t.matmul(&x)?)?)?;
        let (t_h, p_h) = (h(a_t)?, h(&p)?);
        let second = p.matmul(&p_h.matmul(&t_h.matmul(&residual)?)?)?;
        let third = t_h.matmul(&p_h.matmul(&x)?)?;
        let third = third.sub(&p.matmul(&a_p.matmul(&third)?)?)?;
        Ok([Some(direct.add(&second)?.add(&third)?), None, None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |a: &[i64], b: &[i64], driver: &str| {
            Sample::new([s.normal(a).into(), s.normal(b).into(), 1e-10.into(), driver.into()])
        };
        vec![
            sample(&[4, 2], &[4, 2], "gels").without_gradient(),
            sample(&[2, 2, 3], &[2, 2, 1], "gelsd").without_gradient(),
            sample(&[3, 3], &[3, 2], "gelsy").without_gradient(),
        ]
    }
}

/// The solution for matrices of full rank, by the QR decomposition of the matrix or of its adjoint.
fn of_full_rank(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (m, n) = sizes(a.shape());
    if m >= n {
        let [q, r] = a.linalg_qr("reduced")?;
        return r.linalg_solve_triangular(&h(&q)?.matmul(b)?, true);
    }
    let [q, r] = h(a)?.linalg_qr("reduced")?;
    q.matmul(&h(&r)?.linalg_solve_triangular(b, false)?)
}

fn inverse_for(a: &Tensor, rcond: f64, driver: &str) -> Result<Tensor> {
    // (The driver for full rank ignores the singular values.)
    let least = if driver == "gels" { 0.0 } else { rcond };
    a.linalg_pinv(least, false)
}

/// The solution (*, n, k) of the least squares problem `min |A X - B|` for `A` = `self` (*, m, n) and `B` = `b` (*, m,
/// k), or vectors (*, m); where there are several solutions, that of least norm.
///
/// `driver` is "gels" (QR decomposition, for full rank only), "gelsy" (the default), "gelsd" or "gelss"; all but gels
/// take singular values not above `rcond` times the largest for zero. The other results are: the squared residuals (*,
/// k), if m > n, all ranks are full and the driver is not gelsy, else empty; the ranks, except for gels; and, for gelsd
/// and gelss, the singular values, which as in PyTorch have no derivative.
///
/// # Errors
/// `RuntimeError` for shapes or dtypes that do not fit, and for other drivers.
#[op("linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
     module = "linalg", out, autocast = fp32, method = linalg_lstsq)]
impl LinalgLstsq {
    fn composite(
        self_: &Tensor,
        b: &Tensor,
        rcond: Option<f64>,
        driver: Option<&str>,
    ) -> Result<[Tensor; 4]> {
        let driver = driver.unwrap_or("gelsy");
        let is_vector = check_lstsq(self_, b, driver)?;
        let (m, n) = sizes(self_.shape());
        let right = if is_vector { b.unsqueeze(-1)? } else { b.clone() };
        let usual = if matches!(self_.dtype(), DType::F32 | DType::C64) {
            f64::from(f32::EPSILON)
        } else {
            f64::EPSILON
        };
        let rcond = rcond.unwrap_or(usual * m.max(n) as f64);
        let (a, right) = in_one_batch(self_, &right)?;
        let [x, rank, values] = a.lstsq_kernel(&right, rcond, driver)?;
        let residuals = if m > n && driver != "gelsy" && is_full(&rank, n, driver)? {
            // (The square of an absolute value would have no second derivative at a residual of 0.)
            let rest = self_.matmul(&x)?.sub(&right)?;
            rest.mul(&rest.conj()?)?.real()?.sum_dim(Some(&[-2]), false)?
        } else {
            TensorSpec::beside(self_, &[0]).computed_in(self_.dtype().to_real()).empty()?
        };
        let solution = if is_vector { x.squeeze_dim(-1)? } else { x };
        let rank = if driver == "gels" { rank } else { of_own_batch(&rank, self_)? };
        let has_values = matches!(driver, "gelsd" | "gelss");
        let values = if has_values { of_own_batch(&values, self_)? } else { values };
        Ok([solution, residuals, rank, values.detach()?])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |a: &[i64], b: &[i64], driver: &str| {
            Sample::new([s.normal(a).into(), s.normal(b).into()]).with("driver", driver)
        };
        vec![
            Sample::new([regular(s, &[3]).into(), s.normal(&[3, 2]).into()]),
            sample(&[4, 2], &[4, 2], "gels"),
            sample(&[2, 4], &[2, 1], "gels"),
            sample(&[2, 3, 2], &[2, 3], "gels"),
            sample(&[2, 2, 3], &[2, 2, 1], "gelsy"),
            sample(&[1, 3, 2], &[3, 3, 1], "gelsy"),
            // Singular values have no derivative: `tests/linalg.rs` checks those of the other results.
            sample(&[2, 3, 2], &[2, 3, 1], "gelss").without_gradient(),
            sample(&[2, 3, 2], &[2, 3], "gelsd").without_gradient(),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |a: Tensor, b: Tensor, driver: &str, phrase| {
            let sample = Sample::new([a.into(), b.into()]).with("driver", driver);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        let f32 = Sampler::new(DType::F32);
        vec![
            bad(
                s.normal(&[2]),
                s.normal(&[2]),
                "gels",
                "torch.linalg.lstsq: input must have at least 2 dimensions.",
            ),
            bad(
                s.normal(&[3, 2]),
                s.normal(&[3, 2]),
                "foo",
                "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)",
            ),
            bad(
                s.normal(&[3, 2]),
                s.normal(&[2, 2]),
                "gels",
                "torch.linalg.lstsq: input.size(-2) should match other.size(-2)",
            ),
            bad(
                s.normal(&[3, 2]),
                s.normal(&[2]),
                "gels",
                "torch.linalg.lstsq: input.size(-2) should match other.size(-1)",
            ),
            bad(
                s.normal(&[3, 2]),
                f32.normal(&[3, 2]),
                "gels",
                "Expected input and other to have the same dtype, but got input's dtype Double and other's dtype Float",
            ),
            bad(
                s.normal(&[2, 2]),
                s.normal(&[3, 2, 2]),
                "gels",
                "input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1",
            ),
        ]
    }
}

/// Matrices and right-hand sides (of at most as many dimensions), both expanded to their common batch.
fn in_one_batch(a: &Tensor, right: &Tensor) -> Result<(Tensor, Tensor)> {
    let ((m, n), (_, k)) = (sizes(a.shape()), sizes(right.shape()));
    let batch_of = |t: &Tensor| Dims::from_slice(&t.shape()[..t.ndim() - 2]);
    let batch = broadcast_shapes(&[&batch_of(a), &batch_of(right)])?;
    let wide = |t: &Tensor, last: [i64; 2]| {
        let shape: Dims = batch.iter().chain(&last).copied().collect();
        t.expand(&shape, false)
    };
    Ok((wide(a, [m, n])?, wide(right, [m, k])?))
}

/// Results for each matrix of `a` alone, taken from those of the batch that `a` was expanded to, in which equal
/// matrices have equal results.
fn of_own_batch(found: &Tensor, a: &Tensor) -> Result<Tensor> {
    let mut own = found.clone();
    for (dim, &size) in a.shape()[..a.ndim() - 2].iter().enumerate() {
        // (An empty batch has no results.)
        if found.shape()[dim] > size {
            own = own.narrow(dim as i64, 0, size)?;
        }
    }
    Ok(own)
}

/// Whether every matrix has full rank; the driver "gels" assumes it.
fn is_full(rank: &Tensor, n: i64, driver: &str) -> Result<bool> {
    if driver == "gels" || rank.device() == Device::Meta {
        return Ok(true);
    }
    Ok(rank.numel() == 0 || !is_any_true(&rank.ne(&Tensor::wrapped(n)?)?)?)
}

/// Refuses arguments that are no least squares problem; returns whether `b` holds vectors.
fn check_lstsq(a: &Tensor, b: &Tensor, driver: &str) -> Result<bool> {
    let name = "torch.linalg.lstsq";
    ensure!(a.ndim() >= 2, runtime, "{name}: input must have at least 2 dimensions.");
    ensure!(b.ndim() >= 1, runtime, "{name}: other must have at least 1 dimension.");
    ensure!(
        a.dtype() == b.dtype(),
        runtime,
        "{name}: Expected input and other to have the same dtype, but got input's dtype {} and other's dtype {}",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    ensure!(
        a.ndim() >= b.ndim() && a.ndim() - b.ndim() <= 1,
        runtime,
        "{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
    );
    let is_vector =
        b.ndim() + 1 == a.ndim() && b.shape()[..b.ndim() - 1] == a.shape()[..a.ndim() - 2];
    let rows = b.shape()[b.ndim() - if is_vector { 1 } else { 2.min(b.ndim()) }];
    ensure!(
        a.shape()[a.ndim() - 2] == rows,
        runtime,
        "{name}: input.size(-2) should match other.size({})",
        if is_vector { -1 } else { -2 }
    );
    ensure!(
        matches!(driver, "gels" | "gelsy" | "gelsd" | "gelss"),
        runtime,
        "{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
    );
    super::layout::check_field("linalg_lstsq_cpu", a)?;
    Ok(is_vector)
}
