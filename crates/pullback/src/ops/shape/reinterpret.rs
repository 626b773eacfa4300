//! The same bytes read as another dtype: complex numbers as pairs of real ones and back, and any dtype
//! as any other. Nothing is computed; sizes, strides and offset are rescaled, or refused where they do
//! not divide.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{DType, Dims, ErrorKind, Result, Tensor};
use pullback_macros::op;

/// Sizes and strides.
type Layout = (Dims, Dims);

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&VIEW_AS_REAL, &VIEW_AS_COMPLEX, &VIEW_DTYPE];

/// Another tensor over the same memory with elements of another dtype.
fn retyped(t: &Tensor, dtype: DType, layout: Layout, offset: i64) -> Result<Tensor> {
    Tensor::from_geometry(t.geometry().retyped(dtype, layout, offset)?)
}

/// Complex numbers as pairs of real ones: a last dimension of size 2.
#[op("view_as_real(Tensor(a) self) -> Tensor(a)", function_only, view, bijective, jvp = linear, batch = pass)]
impl ViewAsReal {
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        ensure!(
            self_.dtype().is_complex(),
            type_error,
            "view_as_real is only supported for complex tensors"
        );
        ensure!(
            !self_.is_conj(),
            runtime,
            "view_as_real doesn't work on unresolved conjugated tensors. Use resolve_conj() first, which gives a tensor that does NOT alias the original"
        );
        let mut shape = Dims::from_slice(self_.shape());
        let mut strides: Dims = self_.strides().iter().map(|s| s * 2).collect();
        shape.push(2);
        strides.push(1);
        retyped(self_, self_.dtype().to_real(), (shape, strides), self_.storage_offset() * 2)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.view_as_complex().or_else(|_| grad.contiguous()?.view_as_complex())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let of = |shape: &[i64]| Sample::of(s.normal(shape));
        if s.dtype.is_complex() { vec![of(&[3, 2]), of(&[]), of(&[0])] } else { Vec::new() }
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let phrase = "view_as_real is only supported for complex tensors";
        vec![InvalidSample::new(Sample::of(s.normal(&[2])), ErrorKind::Type, phrase)]
    }
}

/// Pairs of real numbers (a last dimension of size 2) as complex ones.
#[op("view_as_complex(Tensor(a) self) -> Tensor(a)", function_only, view, bijective, jvp = linear, autocast = fp32, batch = pass)]
impl ViewAsComplex {
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        let dtype = self_.dtype();
        ensure!(
            !dtype.is_complex(),
            type_error,
            "view_as_complex is not supported for complex tensors"
        );
        ensure!(
            matches!(dtype, DType::F16 | DType::F32 | DType::F64),
            not_implemented,
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {}",
            dtype.scalar_name()
        );
        let (mut shape, mut strides) =
            (Dims::from_slice(self_.shape()), Dims::from_slice(self_.strides()));
        ensure!(!shape.is_empty(), runtime, "Input tensor must have one or more dimensions");
        ensure!(shape.pop() == Some(2), runtime, "Tensor must have a last dimension of size 2");
        ensure!(
            strides.pop() == Some(1),
            runtime,
            "Tensor must have a last dimension with stride 1"
        );
        ensure!(
            strides.iter().zip(&shape).all(|(s, &n)| s % 2 == 0 || n < 2),
            runtime,
            "Tensor must have a stride divisible by 2 for all but last dimension"
        );
        ensure!(
            self_.storage_offset() % 2 == 0,
            runtime,
            "Tensor must have a storage_offset divisible by 2"
        );
        strides.iter_mut().for_each(|s| *s /= 2);
        retyped(self_, dtype.to_complex(), (shape, strides), self_.storage_offset() / 2)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.resolve_conj()?.view_as_real()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() { Vec::new() } else { vec![Sample::of(s.normal(&[3, 2]))] }
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], phrase| {
            InvalidSample::new(Sample::of(s.normal(shape)), ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[], "Input tensor must have one or more dimensions"),
            bad(&[2, 3], "Tensor must have a last dimension of size 2"),
        ]
    }
}

/// The same bytes read as another dtype; the last dimension grows or shrinks if the sizes of elements differ.
/// Shares memory and version, but has no gradient: to autograd it is no view.
#[op(
    "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    view,
    not_differentiable,
    method_only, batch = pass
)]
impl ViewDtype {
    fn cpu(self_: &Tensor, dtype: DType) -> Result<Tensor> {
        ensure!(
            !self_.is_conj(),
            runtime,
            "torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype."
        );
        ensure!(
            !self_.is_neg(),
            runtime,
            "torch.Tensor.view is not supported for tensors with negative bit set when converting to a different dtype."
        );
        let (mut shape, mut strides) =
            (Dims::from_slice(self_.shape()), Dims::from_slice(self_.strides()));
        let (old, new) = (self_.dtype().size() as i64, dtype.size() as i64);
        let mut offset = self_.storage_offset();
        if old != new {
            let words = format!(
                "to view {} as {} (different element sizes)",
                self_.dtype().scalar_name(),
                dtype.scalar_name()
            );
            ensure!(!shape.is_empty(), runtime, "self.dim() cannot be 0 {words}");
            let last = shape.len() - 1;
            ensure!(
                strides[last] == 1,
                runtime,
                "self.stride(-1) must be 1 {words}, but got {}",
                strides[last]
            );
            if old > new {
                let ratio = old / new;
                shape[last] *= ratio;
                strides[..last].iter_mut().for_each(|s| *s *= ratio);
                offset *= ratio;
            } else {
                let ratio = new / old;
                ensure!(
                    shape[last] % ratio == 0,
                    runtime,
                    "self.size(-1) must be divisible by {ratio} {words}, but got {}",
                    shape[last]
                );
                ensure!(
                    offset % ratio == 0,
                    runtime,
                    "self.storage_offset() must be divisible by {ratio} {words}, but got {offset}"
                );
                for dim in 0..last {
                    ensure!(
                        strides[dim] % ratio == 0,
                        runtime,
                        "self.stride({dim}) must be divisible by {ratio} {words}, but got {}",
                        strides[dim]
                    );
                    strides[dim] /= ratio;
                }
                shape[last] /= ratio;
                offset /= ratio;
            }
        }
        retyped(self_, dtype, (shape, strides), offset)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let read = |shape: &[i64], dtype: DType| Sample::of(s.normal(shape)).with("dtype", dtype);
        let of = |shape, dtype| read(shape, dtype).without_gradient();
        vec![of(&[2, 4], s.dtype), of(&[], s.dtype), of(&[3], DType::I16), of(&[2, 4], DType::I64)]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |t: Tensor, phrase| {
            let sample = Sample::of(t).with("dtype", DType::F32);
            InvalidSample::new(sample, ErrorKind::Runtime, phrase)
        };
        vec![
            bad(s.normal(&[]), "self.dim() cannot be 0 to view Double as Float"),
            bad(s.bools(&[3]), "self.size(-1) must be divisible by 4"),
        ]
    }
}
