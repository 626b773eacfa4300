//! LU factorisation with partial pivoting, `A = P L U`, and equations with its factors.
//!
//! The compact form holds U and, below its diagonal, L without its unit diagonal. Pivots are LAPACK's: for each step
//! the row, counted from 1, that it was swapped with. Derivatives: S. F. Walter, L. Lehmann, "Algorithmic
//! differentiation of linear algebra functions with application in optimum experimental design" (2010); those of
//! rectangular matrices follow from those of the square part.

use super::decomposition::{batch_shape, eye, first_failure, h, regular, sizes, write_codes};
use super::layout::{check_field, columns, has_elements, is_field, rows, transposed};
use crate::dispatch::OpDef;
use crate::dispatch::batch::{BatchedCall, Outcome};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::shape::join::cat;
use crate::tensor::Cpu;
use crate::{DType, Dims, Error, ErrorKind, Result, Scalar, Tensor, TensorSpec};
use pullback_kernels::linalg as kernel;
use pullback_macros::op;
use std::sync::atomic::AtomicBool;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &LINALG_LU_FACTOR_EX,
    &LINALG_LU_FACTOR,
    &LINALG_LU,
    &LU_PERMUTATION,
    &LU_UNPACK,
    &LINALG_LU_SOLVE,
    &LU_SOLVE,
    &LU_WITH_INFO,
];

fn check_rank(name: &str, a: &Tensor) -> Result<()> {
    ensure!(
        a.ndim() >= 2,
        runtime,
        "{name}: Expected tensor with 2 or more dimensions. Got size: {} instead",
        crate::tensor::shape::list(a.shape())
    );
    Ok(())
}

/// Refuses matrices with a zero pivot.
fn check_pivots(name: &str, a: &Tensor, info: &Tensor) -> Result<()> {
    let Some((element, d)) = first_failure(a, info)? else { return Ok(()) };
    bail!(
        runtime,
        "torch.linalg.{name}: {element}U[{d},{d}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    )
}

/// The LU factorisation `A = P L U` of matrices (*, m, n) with partial pivoting in LAPACK's compact form, together with
/// error codes.
///
/// `LU` (*, m, n) holds U in its upper triangle and L, without its unit diagonal, below. `pivots` (*, min(m, n)),
/// int32, has for each step the row, from 1, that was swapped with it. `info` (*), int32, is 0 or the index, from 1, of
/// the first zero on U's diagonal, which raises `LinAlgError` with `check_errors`. `pivot=False` is refused on the CPU.
///
/// # Errors
/// `RuntimeError` for fewer than two dimensions; `NotImplementedError` for half precision and integer dtypes.
#[op("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
     module = "linalg", exact_out, method = linalg_lu_factor_ex, node = "LinalgLuFactorEx", batch = matrices)]
impl LinalgLuFactorEx {
    fn meta(a: &Tensor, pivot: bool) -> Result<[TensorSpec; 3]> {
        check_rank("torch.lu_factor", a)?;
        check_field("lu_cpu", a)?;
        ensure!(
            pivot || !has_elements(a),
            runtime,
            "linalg.lu_factor: LU without pivoting is not implemented on the CPU"
        );
        let (m, n) = sizes(a.shape());
        Ok([
            columns(a, a.shape()),
            rows(a, &batch_shape(a, &[m.min(n)]), DType::I32),
            rows(a, &batch_shape(a, &[]), DType::I32),
        ])
    }
    fn cpu(
        cpu: Cpu,
        lu: &Tensor,
        pivots: &Tensor,
        info: &Tensor,
        a: &Tensor,
        check_errors: bool,
    ) -> Result<()> {
        let (own, to) = (transposed(a)?, transposed(lu)?);
        // (All memory is allocated before a target of `out=` is written.)
        let made = Tensor::empty_of(to.shape(), to.dtype())?;
        let codes = kernel::lu_factor(
            &mut made.view_mut(cpu),
            &mut pivots.view_mut(cpu),
            own.view_ref(cpu),
        )?;
        to.copy_data(cpu, &made)?;
        write_codes(cpu, info, &codes)?;
        if check_errors { check_pivots("lu_factor_ex", a, info) } else { Ok(()) }
    }
    fn vjp_a(grad_lu: &Tensor, lu: &Tensor, pivots: &Tensor) -> Result<Tensor> {
        let (m, n) = sizes(lu.shape());
        let k = m.min(n);
        let solve = |t: &Tensor, upper: bool, unit: bool, left: bool, b: &Tensor| {
            h(t)?.linalg_solve_triangular_with(b, !upper, left, unit)
        };
        let square = lu.narrow(-2, 0, k)?.narrow(-1, 0, k)?;
        let core = grad_lu.narrow(-2, 0, k)?.narrow(-1, 0, k)?;
        let ones = square.tril(-1)?.add(&eye(k, lu)?)?;
        let mut from_l = h(&ones)?.matmul(&core.tril(-1)?)?;
        let mut from_u = core.triu(0)?.matmul(&h(&square.triu(0)?)?)?;
        if n > k {
            let (u, g) = (lu.narrow(-1, k, n - k)?, grad_lu.narrow(-1, k, n - k)?);
            from_l = from_l.sub(&g.matmul(&h(&u)?)?)?;
        }
        if m > k {
            let (l, g) = (lu.narrow(-2, k, m - k)?, grad_lu.narrow(-2, k, m - k)?);
            from_u = from_u.sub(&h(&l)?.matmul(&g)?)?;
        }
        let inner = from_l.tril(-1)?.add(&from_u.triu(0)?)?;
        let inner = solve(&square, true, false, false, &inner)?;
        let mut out = solve(&square, false, true, true, &inner)?;
        if n > k {
            let g = solve(&square, false, true, true, &grad_lu.narrow(-1, k, n - k)?)?;
            out = cat(&[out, g], -1)?;
        }
        if m > k {
            let g = solve(&square, true, false, false, &grad_lu.narrow(-2, k, m - k)?)?;
            out = cat(&[out, g], -2)?;
        }
        // (This is the inverse permutation: row i of L U was row `order[i]` of A.)
        rows_of(&out, &pivots.lu_permutation(m, false)?.argsort(-1, false)?)
    }
    fn jvp(a_t: &Tensor, lu: &Tensor, pivots: &Tensor) -> Result<[Option<Tensor>; 3]> {
        let (m, n) = sizes(lu.shape());
        let k = m.min(n);
        let moved = rows_of(a_t, &pivots.lu_permutation(m, false)?)?;
        let square = lu.narrow(-2, 0, k)?.narrow(-1, 0, k)?;
        let lower = |b: &Tensor| square.linalg_solve_triangular_with(b, false, true, true);
        let upper = |b: &Tensor| square.linalg_solve_triangular_with(b, true, false, false);
        let inner = upper(&lower(&moved.narrow(-2, 0, k)?.narrow(-1, 0, k)?)?)?;
        let ones = square.tril(-1)?.add(&eye(k, lu)?)?;
        let l = ones.matmul(&inner.tril(-1)?)?;
        let u = inner.triu(0)?.matmul(&square.triu(0)?)?;
        let mut out = l.add(&u)?;
        if n > k {
            let (own, rest) = (lu.narrow(-1, k, n - k)?, moved.narrow(-1, k, n - k)?);
            out = cat(&[out, lower(&rest.sub(&l.matmul(&own)?)?)?], -1)?;
        }
        if m > k {
            let (own, rest) = (lu.narrow(-2, k, m - k)?, moved.narrow(-2, k, m - k)?);
            out = cat(&[out, upper(&rest.sub(&own.matmul(&u)?)?)?], -2)?;
        }
        Ok([Some(out), None, None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let mut out = lu_samples(s);
        out.push(Sample::of(s.normal(&[70, 66])).without_gradient());
        out
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let zeros = s.normal(&[2, 2, 2]).times(Scalar::Int(0)).expect("samples are small");
        let bad = |sample, kind, phrase| InvalidSample::new(sample, kind, phrase);
        let (runtime, missing) = (ErrorKind::Runtime, ErrorKind::NotImplemented);
        let halves = Sampler::new(DType::F16).normal(&[2, 2]);
        vec![
            bad(
                Sample::of(s.normal(&[3])),
                runtime,
                "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: [3] instead",
            ),
            bad(
                Sample::of(s.normal(&[2, 2])).with("pivot", false),
                runtime,
                "LU without pivoting is not implemented on the CPU",
            ),
            bad(
                Sample::of(zeros).with("check_errors", true),
                runtime,
                "torch.linalg.lu_factor_ex: (Batch element 0): U[1,1] is zero",
            ),
            bad(Sample::of(halves), missing, "\"lu_cpu\" not implemented for 'Half'"),
        ]
    }
}

fn lu_samples(s: &Sampler) -> Vec<Sample> {
    vec![
        Sample::of(regular(s, &[3])),
        Sample::of(s.normal(&[2, 2, 2])),
        Sample::of(s.normal(&[4, 2])),
        Sample::of(s.normal(&[2, 4])),
        Sample::of(s.transposed(3, 2)),
        Sample::of(s.normal(&[0, 2])),
        Sample::of(s.normal(&[2, 0, 0])),
    ]
}

/// The LU factorisation `A = P L U` of matrices (*, m, n) in LAPACK's compact form, and its pivots, as
/// `torch.linalg.lu_factor_ex` describes them.
///
/// # Errors
/// Besides those of `torch.linalg.lu_factor_ex`, `LinAlgError` where U has a zero on its diagonal.
#[op("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", module = "linalg", exact_out, method = linalg_lu_factor)]
impl LinalgLuFactor {
    fn composite(a: &Tensor, pivot: bool) -> Result<[Tensor; 2]> {
        let [lu, pivots, info] = a.linalg_lu_factor_ex_with(pivot, false)?;
        check_pivots("lu_factor", a, &info)?;
        Ok([lu, pivots])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        lu_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let zeros = s.normal(&[2, 2]).times(Scalar::Int(0)).expect("samples are small");
        vec![InvalidSample::new(
            Sample::of(zeros),
            ErrorKind::Runtime,
            "torch.linalg.lu_factor: U[1,1] is zero and using it on lu_solve would result in a division by zero.",
        )]
    }
}

/// The LU decomposition `A = P L U` of matrices (*, m, n) with partial pivoting: a permutation `P` (*, m, m), `L` (*,
/// m, k) lower triangular with ones on its diagonal, and `U` (*, k, n) upper triangular, with k = min(m, n).
/// `pivot=False` is refused on the CPU.
///
/// # Errors
/// `RuntimeError` for fewer than two dimensions; `NotImplementedError` for half precision and integer dtypes.
#[op("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", module = "linalg", exact_out, method = linalg_lu)]
impl LinalgLu {
    fn composite(a: &Tensor, pivot: bool) -> Result<[Tensor; 3]> {
        check_rank("linalg.lu", a)?;
        let [lu, pivots, _] = a.linalg_lu_factor_ex_with(pivot, false)?;
        unpack(&lu, &pivots)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        lu_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::of(s.normal(&[3])),
            ErrorKind::Runtime,
            "linalg.lu: Expected tensor with 2 or more dimensions. Got size: [3] instead",
        )]
    }
}

/// The permutation (*, rows), int64, that LAPACK's pivots (*, k) stand for: which row of a matrix of `rows` rows each
/// row of `L U` is. With `solves` the pivots are those of a system to be solved, which only changes the text of the
/// error.
///
/// # Errors
/// `RuntimeError` for pivots that are not in `1..=rows`.
#[op("_lu_permutation(Tensor pivots, int rows, bool solves=False) -> Tensor", internal, not_differentiable, method = lu_permutation)]
impl LuPermutation {
    fn meta(pivots: &Tensor, rows: i64) -> Result<TensorSpec> {
        ensure!(pivots.ndim() > 0, runtime, "lu_unpack: pivots must have at least 1 dimension");
        let batch = &pivots.shape()[..pivots.ndim() - 1];
        let shape: Dims = batch.iter().copied().chain([rows]).collect();
        Ok(super::layout::rows(pivots, &shape, DType::I64))
    }
    fn cpu(cpu: Cpu, result: &Tensor, pivots: &Tensor, solves: bool) -> Result<()> {
        let (k, rows) = (pivots.shape()[pivots.ndim() - 1], result.shape()[result.ndim() - 1]);
        let numbers = pivots.converted(cpu, DType::I32)?.to_vec::<i32>()?;
        let mut all = pullback_kernels::memory::filled(0_i64, result.numel() as usize)?;
        let width = (rows as usize).max(1);
        for (i, rows) in all.chunks_exact_mut(width).enumerate() {
            let k = k as usize;
            let made = kernel::permutation_of(&numbers[i * k..(i + 1) * k], rows);
            made.map_err(|pivot| bad_pivot(pivot, solves))?;
        }
        result.copy_data(cpu, &Tensor::from_slice(&all, result.shape())?)
    }
    fn batch(call: &BatchedCall<'_>) -> Result<Outcome> {
        crate::ops::batch::pass(call)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        let sample = |pivots: &[i32], shape: &[i64], rows: i64| {
            Sample::of(Tensor::from_slice(pivots, shape).expect("samples are small"))
                .with("rows", rows)
        };
        vec![sample(&[3, 2, 3], &[3], 3), sample(&[2, 2, 1, 4], &[2, 2], 4), sample(&[], &[0], 2)]
    }
}

fn bad_pivot(pivot: i32, solves: bool) -> Error {
    let text = match (solves, pivot < 1) {
        (true, true) => "Pivots given to lu_solve must all be greater or equal to 1.",
        (true, false) => "Pivots given to lu_solve must all be smaller or equal to LU.size(-2).",
        _ => "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.",
    };
    Error::runtime(format!("{text} Did you properly pass the result of lu_factor? (Got {pivot})"))
}

/// The permutation matrix `P` (*, m, m) of pivots, in the dtype of `like`: row i of `P B` is the row of `B` that
/// pivoting moved to row i.
fn permutation(pivots: &Tensor, m: i64, like: &Tensor) -> Result<Tensor> {
    permutation_by(pivots.lu_permutation(m, false)?, m, like)
}

/// The rows `order` (*, m) of the matrices `x` (*, m, n).
fn rows_of(x: &Tensor, order: &Tensor) -> Result<Tensor> {
    x.gather(-2, &order.unsqueeze(-1)?.expand(x.shape(), false)?)
}

/// The permutation matrix of the row indices `rows`.
fn permutation_by(rows: Tensor, m: i64, like: &Tensor) -> Result<Tensor> {
    let numbers = crate::ops::creation::factory::arange_with(
        Scalar::Int(m),
        Some(DType::I64),
        None,
        Some(like.device()),
        None,
    )?;
    rows.unsqueeze(-2)?.eq(&numbers.unsqueeze(-1)?)?.to_dtype(like.dtype())
}

/// The factors `P`, `L` and `U` of the compact form.
fn unpack(lu: &Tensor, pivots: &Tensor) -> Result<[Tensor; 3]> {
    let (l, u) = triangles(lu)?;
    Ok([permutation(pivots, lu.shape()[lu.ndim() - 2], lu)?, l, u])
}

/// The triangular factors of the compact form: `L` with its unit diagonal, and `U`.
fn triangles(lu: &Tensor) -> Result<(Tensor, Tensor)> {
    let (m, n) = sizes(lu.shape());
    let k = m.min(n);
    let (left, top) = (lu.narrow(-1, 0, k)?, lu.narrow(-2, 0, k)?);
    // (The identity of m x k.)
    let ones = eye(m, lu)?.narrow(-1, 0, k)?;
    Ok((left.tril(-1)?.add(&ones)?.contiguous()?, top.triu(0)?.contiguous()?))
}

/// The factors `P`, `L` and `U` of the compact form that `torch.linalg.lu_factor` gives. Without `unpack_data`, `L` and
/// `U` are empty; without `unpack_pivots`, `P` is.
#[op("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
     function_only, exact_out, method = lu_unpack)]
impl LuUnpack {
    fn composite(
        lu_data: &Tensor,
        lu_pivots: &Tensor,
        unpack_data: bool,
        unpack_pivots: bool,
    ) -> Result<[Tensor; 3]> {
        check_rank("torch.lu_unpack", lu_data)?;
        ensure!(
            !unpack_pivots || lu_pivots.dtype() == DType::I32,
            runtime,
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        );
        let (m, n) = sizes(lu_data.shape());
        let expected = batch_shape(lu_data, &[m.min(n)]);
        ensure!(
            !unpack_pivots || lu_pivots.shape() == expected.as_slice(),
            value,
            "Expected LU_pivots to have shape {} but got {} instead.",
            crate::tensor::shape::list(&expected),
            crate::tensor::shape::list(lu_pivots.shape())
        );
        let none = || TensorSpec::beside(lu_data, &[0]).empty();
        let p = if unpack_pivots { permutation(lu_pivots, m, lu_data)? } else { none()? };
        let (l, u) = if unpack_data { triangles(lu_data)? } else { (none()?, none()?) };
        Ok([p, l, u])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64]| {
            let (m, n) = sizes(shape);
            let pivots: Dims = shape[..shape.len() - 2].iter().copied().chain([m.min(n)]).collect();
            let ones = TensorSpec::of(&pivots, DType::I32).full(Scalar::Int(m.min(2)));
            Sample::new([s.normal(shape).into(), ones.expect("samples are small").into()])
        };
        vec![
            sample(&[3, 3]),
            sample(&[2, 2, 3]),
            sample(&[4, 2]),
            sample(&[3, 3]).with("unpack_data", false).without_gradient(),
            sample(&[3, 3]).with("unpack_pivots", false),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let pivots =
            |of: &[i32]| Tensor::from_slice(of, &[of.len() as i64]).expect("samples are small");
        let bad = |lu: &[i64], pivots: Tensor, kind, phrase| {
            InvalidSample::new(Sample::new([s.normal(lu).into(), pivots.into()]), kind, phrase)
        };
        let runtime = ErrorKind::Runtime;
        vec![
            bad(
                &[2, 2],
                pivots(&[100, 2]),
                runtime,
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.",
            ),
            bad(
                &[2, 2],
                pivots(&[1]),
                ErrorKind::Value,
                "Expected LU_pivots to have shape [2] but got [1] instead.",
            ),
            bad(
                &[2],
                pivots(&[1, 2]),
                runtime,
                "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: [2] instead",
            ),
            bad(
                &[2, 2],
                s.integers(&[2], 1, 2),
                runtime,
                "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.",
            ),
        ]
    }
}

/// The solution `X` of `A X = B` where `LU` and `pivots` are what `torch.linalg.lu_factor` gives for `A` (*, n, n); of
/// `X A = B` unless `left`. With `adjoint`, `A^H` takes the place of `A`. Batches broadcast.
#[op("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
     module = "linalg", exact_out, method = linalg_lu_solve)]
impl LinalgLuSolve {
    fn composite(
        lu: &Tensor,
        pivots: &Tensor,
        b: &Tensor,
        left: bool,
        adjoint: bool,
    ) -> Result<Tensor> {
        check_solve(lu, pivots, b, left)?;
        let n = lu.shape()[lu.ndim() - 2];
        let p = permutation_by(pivots.lu_permutation(n, true)?, n, lu)?;
        let from = |t: &Tensor, upper: bool, unit: bool, b: &Tensor| {
            let (t, upper) = if adjoint { (h(t)?, !upper) } else { (t.clone(), upper) };
            t.linalg_solve_triangular_with(b, upper, left, unit)
        };
        match (left, adjoint) {
            (true, false) => {
                from(lu, true, false, &from(lu, false, true, &transposed(&p)?.matmul(b)?)?)
            }
            // (In this order the result is column-major.)
            (true, true) => {
                let x = from(lu, false, true, &from(lu, true, false, b)?)?;
                transposed(&transposed(&x)?.matmul(&transposed(&p)?)?)
            }
            (false, false) => {
                from(lu, false, true, &from(lu, true, false, b)?)?.matmul(&transposed(&p)?)
            }
            (false, true) => from(lu, true, false, &from(lu, false, true, &b.matmul(&p)?)?),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if !is_field(s.dtype) {
            return Vec::new();
        }
        let sample = |a: &[i64], b: &[i64]| {
            let [lu, pivots, _] = regular(s, a).linalg_lu_factor_ex().expect("samples are small");
            Sample::new([
                lu.contiguous().expect("samples are small").into(),
                pivots.into(),
                s.normal(b).into(),
            ])
        };
        vec![
            sample(&[3], &[3, 2]),
            sample(&[2, 2], &[2, 1]).with("adjoint", true),
            sample(&[3], &[2, 2, 3]).with("left", false),
            sample(&[2], &[1, 2]).with("left", false).with("adjoint", true),
            sample(&[0], &[0, 2]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |lu: &[i64], pivots: Tensor, b: &[i64], phrase| {
            let sample = Sample::new([s.normal(lu).into(), pivots.into(), s.normal(b).into()]);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        let pivots =
            |of: &[i32]| Tensor::from_slice(of, &[of.len() as i64]).expect("samples are small");
        vec![
            bad(
                &[2, 3],
                pivots(&[1, 2]),
                &[2, 1],
                "torch.linalg.lu_solve: A must be batches of square matrices, but they are 2 by 3 matrices",
            ),
            bad(
                &[2, 2],
                pivots(&[1]),
                &[2, 1],
                "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix",
            ),
            bad(
                &[2, 2],
                pivots(&[1, 2]),
                &[3, 1],
                "linalg.lu_solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)",
            ),
            bad(
                &[2, 2],
                pivots(&[1, 2]),
                &[2],
                "linalg.lu_solve: The input tensor B must have at least 2 dimensions.",
            ),
            bad(
                &[2, 2],
                s.integers(&[2], 1, 2),
                &[2, 1],
                "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32",
            ),
            bad(
                &[2, 2],
                pivots(&[0, 2]),
                &[2, 1],
                "Pivots given to lu_solve must all be greater or equal to 1.",
            ),
            bad(
                &[2, 2],
                pivots(&[3, 2]),
                &[2, 1],
                "Pivots given to lu_solve must all be smaller or equal to LU.size(-2).",
            ),
        ]
    }
}

fn check_solve(lu: &Tensor, pivots: &Tensor, b: &Tensor, left: bool) -> Result<()> {
    let name = "linalg.lu_solve";
    check_rank(&format!("torch.{name}"), lu)?;
    let (m, n) = sizes(lu.shape());
    ensure!(
        pivots.dtype() == DType::I32,
        runtime,
        "{name}: pivots should be a Tensor of scalar type torch.int32"
    );
    ensure!(
        lu.dtype() == b.dtype(),
        runtime,
        "{name}: Expected LU and B to have the same dtype, but found LU of type {} and B of type {} instead",
        lu.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    ensure!(
        m == n,
        runtime,
        "torch.{name}: A must be batches of square matrices, but they are {m} by {n} matrices"
    );
    ensure!(b.ndim() >= 2, runtime, "{name}: The input tensor B must have at least 2 dimensions.");
    let (rows, columns) = sizes(b.shape());
    ensure!(
        n == if left { rows } else { columns },
        runtime,
        "{name}: Incompatible shapes of A and B for the equation {} ({n}x{n} and {rows}x{columns})",
        if left { "AX = B" } else { "XA = B" }
    );
    ensure!(
        pivots.ndim() > 0 && pivots.shape()[pivots.ndim() - 1] == n,
        runtime,
        "{name}: Number of pivots per batch should be same as the dimension of the matrix"
    );
    ensure!(
        pivots.shape()[..pivots.ndim() - 1] == lu.shape()[..lu.ndim() - 2],
        runtime,
        "{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape {} instead",
        crate::tensor::shape::list(pivots.shape())
    );
    check_field("lu_solve_cpu", lu)
}

/// The solution `X` of `A X = self`, where `LU_data` and `LU_pivots` are what `torch.linalg.lu_factor` gives for `A`.
/// `torch.linalg.lu_solve`, which takes the factorisation first, is preferred.
#[op("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", exact_out, autocast = fp32, method = lu_solve)]
impl LuSolve {
    fn composite(self_: &Tensor, lu_data: &Tensor, lu_pivots: &Tensor) -> Result<Tensor> {
        static WARNED: AtomicBool = AtomicBool::new(false);
        crate::warning::warn_once(
            &WARNED,
            "torch.lu_solve is deprecated in favor of torch.linalg.lu_solve, which takes the factors first",
        );
        lu_data.linalg_lu_solve(lu_pivots, self_)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if !is_field(s.dtype) {
            return Vec::new();
        }
        let [lu, pivots, _] = regular(s, &[3]).linalg_lu_factor_ex().expect("samples are small");
        let lu = lu.contiguous().expect("samples are small");
        vec![Sample::new([s.normal(&[3, 2]).into(), lu.into(), pivots.into()])]
    }
}

/// The compact LU factorisation, its pivots and the error codes `info`: what `torch.lu` is made of. With `check_errors`
/// a singular matrix raises an error.
#[op("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
     function_only, autocast = fp32, method = lu_with_info)]
impl LuWithInfo {
    fn composite(self_: &Tensor, pivot: bool, check_errors: bool) -> Result<[Tensor; 3]> {
        self_.linalg_lu_factor_ex_with(pivot, check_errors)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        lu_samples(s)
    }
}
