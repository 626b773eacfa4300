//! The exponential of a matrix: scaling, a Padé approximant, squaring (N. J. Higham, "The scaling and squaring method for the
//! matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26, 2005), in double precision.

use super::factors::{ColMajor, Lu, in_workspace};
use super::{Field, GRAIN, squares, undefined};
use crate::dense::{SharedMut, expect_shape, load, with_output};
use crate::interrupt::on_own_thread;
use crate::{C128, DType, Error, Result, StridedMut, StridedRef, memory, parallel};
use faer::dyn_stack::StackReq;
use faer::linalg::matmul::matmul;
use faer::{Accum, Par};

/// Degrees, the largest norms for which they are exact to double precision, and the coefficients of their numerators.
const APPROXIMANTS: [(f64, &[f64]); 5] = [
    (1.495_585_217_958_292e-2, &[120.0, 60.0, 12.0, 1.0]),
    (2.539_398_330_063_23e-1, &[30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0]),
    (
        9.504_178_996_162_932e-1,
        &[17_297_280.0, 8_648_640.0, 1_995_840.0, 277_200.0, 25_200.0, 1512.0, 56.0, 1.0],
    ),
    (
        2.097_847_961_257_068,
        &[
            17_643_225_600.0,
            8_821_612_800.0,
            2_075_673_600.0,
            302_702_400.0,
            30_270_240.0,
            2_162_160.0,
            110_880.0,
            3960.0,
            90.0,
            1.0,
        ],
    ),
    (
        5.371_920_351_148_152,
        &[
            64_764_752_532_480_000.0,
            32_382_376_266_240_000.0,
            7_771_770_303_897_600.0,
            1_187_353_796_428_800.0,
            129_060_195_264_000.0,
            10_559_470_521_600.0,
            670_442_572_800.0,
            33_522_128_640.0,
            1_323_241_920.0,
            40_840_800.0,
            960_960.0,
            16_380.0,
            182.0,
            1.0,
        ],
    ),
];

/// `out = e^a` for `a` (*, n, n). What has no finite exponential becomes NaN.
///
/// # Errors
/// Shapes that do not fit, or a dtype that is neither floating nor complex.
pub fn matrix_exp(out: &mut StridedMut<'_>, a: StridedRef<'_>) -> Result<()> {
    let (batch, n) = squares("linalg.matrix_exp", a.shape())?;
    expect_shape("output", out.shape(), a.shape())?;
    match a.dtype() {
        DType::C64 | DType::C128 => run::<C128>(out, a, batch, n),
        dtype if dtype.is_floating_point() => run::<f64>(out, a, batch, n),
        dtype => Err(Error::not_implemented("matrix_exp", dtype)),
    }
}

fn run<T: Field>(
    out: &mut StridedMut<'_>,
    a: StridedRef<'_>,
    batch: usize,
    n: usize,
) -> Result<()> {
    let a = load::<T>(a)?;
    let cost = 10 * n * n * n;
    with_output::<T, _>(out, |out| {
        let out = SharedMut::new(out);
        parallel::try_for_range(batch, (GRAIN / cost.max(1)).max(1), &|range| {
            for i in range {
                let own = memory::copied(&a[i * n * n..(i + 1) * n * n])?;
                let found = on_own_thread(cost, move || exponential(own, n))?;
                // SAFETY: one task per matrix.
                unsafe { out.slice(i * n * n..(i + 1) * n * n) }.copy_from_slice(&found);
            }
            Ok(())
        })
    })
}

/// The exponential of one matrix; that of the transpose is the transpose, so that it may lie by rows or by columns.
fn exponential<T: Field>(mut a: Vec<T>, n: usize) -> Result<Vec<T>> {
    let norm = norm_of(&a, n);
    if n == 0 || norm == 0.0 {
        add_to_diagonal(&mut a, n, 1.0);
        return Ok(a);
    }
    if !norm.is_finite() {
        a.fill(undefined());
        return Ok(a);
    }
    let (largest, coefficients) =
        APPROXIMANTS.into_iter().find(|(most, _)| norm <= *most).unwrap_or(APPROXIMANTS[4]);
    let mut squarings = 0;
    let mut scale = 1.0;
    while norm * scale > largest {
        (squarings, scale) = (squarings + 1, scale * 0.5);
    }
    for v in &mut *a {
        *v = scaled(*v, scale);
    }
    let mut power = quotient(a, n, coefficients)?;
    for _ in 0..squarings {
        power = product(&power, &power, n)?;
    }
    memory::copied(power.elements())
}

fn scaled<T: Field>(value: T, by: f64) -> T {
    value.mul_add_to(T::convert(by), T::default())
}

/// The largest sum of magnitudes of a column (as it lies). Not finite if an element is not.
fn norm_of<T: Field>(a: &[T], n: usize) -> f64 {
    let mut most = 0.0;
    for column in a.chunks_exact(n.max(1)) {
        let sum: f64 = column.iter().map(|v| v.magnitude()).sum();
        most = if sum > most || sum.is_nan() { sum } else { most };
    }
    most
}

fn add_to_diagonal<T: Field>(a: &mut [T], n: usize, value: f64) {
    for d in 0..n {
        a[d * n + d] = T::convert(value).mul_add_to(T::one(), a[d * n + d]);
    }
}

fn product<T: Field>(a: &ColMajor<T>, b: &ColMajor<T>, n: usize) -> Result<ColMajor<T>> {
    let mut out = ColMajor::zeros(n, n)?;
    in_workspace(StackReq::EMPTY, n * n, |_| {
        matmul(out.view_mut(), Accum::Replace, a.view(), b.view(), T::one(), Par::Seq);
    })?;
    Ok(out)
}

/// The sum of matrices with factors, and `constant` on the diagonal.
fn combination<T: Field>(
    terms: &mut [(&mut ColMajor<T>, f64)],
    constant: f64,
    n: usize,
) -> Result<ColMajor<T>> {
    let mut sum = memory::filled(T::default(), n * n)?;
    for (matrix, factor) in terms {
        let factor = T::convert(*factor);
        for (to, &from) in sum.iter_mut().zip(&*matrix.elements()) {
            *to = factor.mul_add_to(from, *to);
        }
    }
    add_to_diagonal(&mut sum, n, constant);
    Ok(ColMajor::new(sum, n, n))
}

/// The approximant: with the odd part `U` and the even part `V` of its numerator, `(V - U)^-1 (V + U)`.
fn quotient<T: Field>(a: Vec<T>, n: usize, b: &[f64]) -> Result<ColMajor<T>> {
    let a = ColMajor::new(a, n, n);
    let mut second = product(&a, &a, n)?;
    let (odd, mut even) = if b.len() == 14 {
        let mut fourth = product(&second, &second, n)?;
        let mut sixth = product(&fourth, &second, n)?;
        let mut half = |high: [f64; 3], low: [f64; 4]| -> Result<ColMajor<T>> {
            let mut terms = [(&mut sixth, high[0]), (&mut fourth, high[1]), (&mut second, high[2])];
            let upper = combination(&mut terms, 0.0, n)?;
            let mut upper = product(terms[0].0, &upper, n)?;
            let [(sixth, _), (fourth, _), (second, _)] = terms;
            let mut terms =
                [(&mut upper, 1.0), (sixth, low[0]), (fourth, low[1]), (second, low[2])];
            combination(&mut terms, low[3], n)
        };
        (
            half([b[13], b[11], b[9]], [b[7], b[5], b[3], b[1]])?,
            half([b[12], b[10], b[8]], [b[6], b[4], b[2], b[0]])?,
        )
    } else {
        let (mut odd, mut even) = (
            combination(&mut [(&mut second, b[3])], b[1], n)?,
            combination(&mut [(&mut second, b[2])], b[0], n)?,
        );
        let mut power = product(&second, &second, n)?;
        for pair in b[4..].chunks_exact(2) {
            odd = combination(&mut [(&mut odd, 1.0), (&mut power, pair[1])], 0.0, n)?;
            even = combination(&mut [(&mut even, 1.0), (&mut power, pair[0])], 0.0, n)?;
            power = product(&power, &second, n)?;
        }
        (odd, even)
    };
    let mut odd = product(&a, &odd, n)?;
    let mut right = combination(&mut [(&mut even, 1.0), (&mut odd, 1.0)], 0.0, n)?;
    let left = combination(&mut [(&mut even, 1.0), (&mut odd, -1.0)], 0.0, n)?;
    Lu::of(left)?.solve(right.view_mut())?;
    Ok(right)
}
