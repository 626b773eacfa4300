//! Matrices from diagonals and back: `diag`, `diag_embed`, `diagflat`, `trace`, `linalg.diagonal`.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::shape::wrap_dim;
use crate::{DType, Dims, ErrorKind, Result, Tensor, TensorSpec};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&DIAG, &DIAG_EMBED, &DIAGFLAT, &TRACE, &LINALG_DIAGONAL];

/// Zeros with the last dimension of `self` on the diagonals, `offset` steps above the main one, of the planes of the
/// result's dimensions `dim1` and `dim2`.
#[op("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", narrow_floats, jvp = linear, batch = diag_embed(self, offset, dim1, dim2))]
impl DiagEmbed {
    fn meta(self_: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<TensorSpec> {
        let rank = self_.ndim() + 1;
        let (a, b) = (wrap_dim(dim1, rank)?, wrap_dim(dim2, rank)?);
        ensure!(a != b, runtime, "diagonal dimensions cannot be identical {dim1}, {dim2}");
        let mut shape = Dims::from_slice(self_.shape());
        let size = shape.pop().and_then(|n| offset.checked_abs()?.checked_add(n));
        let Some(size) = size else {
            bail!(runtime, "Storage size calculation overflowed with an offset of {offset}")
        };
        shape.insert(a.min(b), size);
        shape.insert(a.max(b), size);
        Ok(TensorSpec::beside(self_, &shape))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        self_: &Tensor,
        offset: i64,
        dim1: i64,
        dim2: i64,
    ) -> Result<()> {
        result.zero_bytes();
        result.diagonal(offset, dim1, dim2)?.copy_data(cpu, self_)
    }
    fn vjp_self(grad: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        grad.diagonal(offset, dim1, dim2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |shape: &[i64], numbers: [i64; 3]| {
            let tensor: Value = s.normal(shape).into();
            Sample::new([tensor].into_iter().chain(numbers.map(Value::Int)))
        };
        vec![
            sample(&[3], [0, -2, -1]),
            sample(&[2, 3], [1, 0, 2]),
            sample(&[2, 2], [-2, 2, 1]),
            sample(&[0], [1, 0, 1]),
            sample(&[0, 2], [0, -1, 0]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], numbers: [i64; 3], kind, phrase| {
            let tensor: Value = s.normal(shape).into();
            let sample = Sample::new([tensor].into_iter().chain(numbers.map(Value::Int)));
            InvalidSample::new(sample, kind, phrase)
        };
        let runtime = ErrorKind::Runtime;
        vec![
            bad(&[3], [0, 0, 0], runtime, "diagonal dimensions cannot be identical 0, 0"),
            bad(&[3], [0, 0, 5], ErrorKind::Index, "expected to be in range of [-2, 1], but got 5"),
            bad(&[], [0, -2, -1], ErrorKind::Index, "expected to be in range of [-1, 0]"),
            bad(&[3], [1 << 62, 0, 1], runtime, "overflow"),
            bad(&[3], [i64::MIN, 0, 1], runtime, "overflow"),
        ]
    }
}

/// Of a vector the matrix that has it on a diagonal, of a matrix a copy of the diagonal; `diagonal` steps above the main
/// one.
#[op("diag(Tensor self, int diagonal=0) -> Tensor", exact_out)]
impl Diag {
    fn composite(self_: &Tensor, diagonal: i64) -> Result<Tensor> {
        match self_.ndim() {
            1 => self_.diag_embed(diagonal, 0, 1),
            2 => self_.diagonal_copy(diagonal, 0, 1),
            n => bail!(runtime, "diag(): Supports 1D or 2D tensors. Got {n}D"),
        }
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample =
            |shape: &[i64], diagonal: i64| Sample::of(s.normal(shape)).with("diagonal", diagonal);
        vec![
            sample(&[3], 0),
            sample(&[2], -1),
            sample(&[3, 2], 0),
            sample(&[2, 3], 1),
            sample(&[2, 2], 5),
            sample(&[0], 0),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], phrase| {
            InvalidSample::new(Sample::of(s.normal(shape)), ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[], "diag(): Supports 1D or 2D tensors. Got 0D"),
            bad(&[2, 2, 2], "diag(): Supports 1D or 2D tensors. Got 3D"),
        ]
    }
}

/// The matrix that has all elements, row by row, on the diagonal `offset` steps above the main one.
#[op("diagflat(Tensor self, int offset=0) -> Tensor")]
impl Diagflat {
    fn composite(self_: &Tensor, offset: i64) -> Result<Tensor> {
        self_.reshape(&[-1])?.diag_embed(offset, 0, 1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |t: Tensor, offset: i64| Sample::of(t).with("offset", offset);
        vec![
            sample(s.normal(&[2, 2]), 1),
            sample(s.transposed(2, 3), 0),
            sample(s.normal(&[]), -1),
            sample(s.normal(&[2, 0]), 0),
        ]
    }
}

/// The sum of a matrix's diagonal; of integers in int64. No elements give 0.
#[op("trace(Tensor self) -> Tensor", autocast = fp32)]
impl Trace {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        ensure!(
            self_.ndim() == 2,
            runtime,
            "trace: expected a matrix, but got tensor with dim {}",
            self_.ndim()
        );
        ensure!(
            self_.dtype() != DType::Bool,
            not_implemented,
            "\"trace\" not implemented for 'Bool'"
        );
        self_.diagonal(0, 0, 1)?.sum()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |shape: &[i64]| Sample::of(s.normal(shape));
        vec![of(&[2, 3]), of(&[3, 3]), of(&[0, 3]), Sample::of(s.transposed(3, 2))]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let vector = Sample::of(s.normal(&[3]));
        let bools = Sample::of(s.bools(&[2, 2]));
        let phrase = "\"trace\" not implemented for 'Bool'";
        vec![
            InvalidSample::new(
                vector,
                ErrorKind::Runtime,
                "expected a matrix, but got tensor with dim 1",
            ),
            InvalidSample::new(bools, ErrorKind::NotImplemented, phrase),
        ]
    }
}

/// The diagonals of matrices, as the last dimension: `diagonal` of the last two dimensions if nothing else is said.
#[op(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    module = "linalg"
)]
impl LinalgDiagonal {
    fn composite(a: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        a.diagonal(offset, dim1, dim2)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            Sample::of(s.normal(&[2, 3, 4])),
            Sample::of(s.normal(&[3, 3])).with("offset", -1_i64),
            Sample::of(s.normal(&[2, 3, 2])).with("dim1", 0_i64).with("dim2", 2_i64),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let phrase = "expected to be in range of [-1, 0], but got -2";
        vec![InvalidSample::new(Sample::of(s.normal(&[3])), ErrorKind::Index, phrase)]
    }
}
