//! The same bytes read as another dtype: complex numbers as pairs of real ones and back, and any dtype
//! as any other. Nothing is computed; sizes, strides and offset are rescaled, or refused where they do
//! not divide.

use super::view_spec::ViewSpec;
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{DType, ErrorKind, Result, Tensor, TensorSpec};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&VIEW_AS_REAL, &VIEW_AS_COMPLEX, &VIEW_DTYPE];

/// The view spec of complex numbers as pairs of real ones.
fn real_pairs(t: &Tensor) -> Result<ViewSpec> {
    ensure!(
        t.dtype().is_complex(),
        type_error,
        "view_as_real is only supported for complex tensors"
    );
    ensure!(
        !t.is_conj(),
        runtime,
        "view_as_real doesn't work on unresolved conjugated tensors. Use resolve_conj() first, which gives a tensor that does NOT alias the original"
    );
    let mut view = ViewSpec::of(t);
    view.dtype = t.dtype().to_real();
    view.strides.iter_mut().for_each(|s| *s *= 2);
    view.shape.push(2);
    view.strides.push(1);
    view.offset *= 2;
    Ok(view)
}

/// The view spec of pairs of real numbers as complex ones.
fn complex_numbers(t: &Tensor) -> Result<ViewSpec> {
    let dtype = t.dtype();
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
    let mut view = ViewSpec::of(t);
    view.dtype = dtype.to_complex();
    ensure!(!view.shape.is_empty(), runtime, "Input tensor must have one or more dimensions");
    ensure!(view.shape.pop() == Some(2), runtime, "Tensor must have a last dimension of size 2");
    ensure!(
        view.strides.pop() == Some(1),
        runtime,
        "Tensor must have a last dimension with stride 1"
    );
    ensure!(
        view.strides.iter().zip(&view.shape).all(|(s, &n)| s % 2 == 0 || n < 2),
        runtime,
        "Tensor must have a stride divisible by 2 for all but last dimension"
    );
    ensure!(view.offset % 2 == 0, runtime, "Tensor must have a storage_offset divisible by 2");
    view.strides.iter_mut().for_each(|s| *s /= 2);
    view.offset /= 2;
    Ok(view)
}

/// The view spec of the memory of `t` read as elements of `dtype`.
fn read_as(t: &Tensor, dtype: DType) -> Result<ViewSpec> {
    ensure!(
        !t.is_conj(),
        runtime,
        "torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype."
    );
    ensure!(
        !t.is_neg(),
        runtime,
        "torch.Tensor.view is not supported for tensors with negative bit set when converting to a different dtype."
    );
    let mut view = ViewSpec { dtype, ..ViewSpec::of(t) };
    let (old, new) = (t.dtype().size() as i64, dtype.size() as i64);
    if old == new {
        return Ok(view);
    }
    let words = format!(
        "to view {} as {} (different element sizes)",
        t.dtype().scalar_name(),
        dtype.scalar_name()
    );
    ensure!(!view.shape.is_empty(), runtime, "self.dim() cannot be 0 {words}");
    let last = view.shape.len() - 1;
    ensure!(
        view.strides[last] == 1,
        runtime,
        "self.stride(-1) must be 1 {words}, but got {}",
        view.strides[last]
    );
    if old > new {
        let ratio = old / new;
        view.shape[last] *= ratio;
        view.strides[..last].iter_mut().for_each(|s| *s *= ratio);
        view.offset *= ratio;
        return Ok(view);
    }
    let ratio = new / old;
    ensure!(
        view.shape[last] % ratio == 0,
        runtime,
        "self.size(-1) must be divisible by {ratio} {words}, but got {}",
        view.shape[last]
    );
    ensure!(
        view.offset % ratio == 0,
        runtime,
        "self.storage_offset() must be divisible by {ratio} {words}, but got {}",
        view.offset
    );
    for (dim, stride) in view.strides[..last].iter_mut().enumerate() {
        ensure!(
            *stride % ratio == 0,
            runtime,
            "self.stride({dim}) must be divisible by {ratio} {words}, but got {stride}"
        );
        *stride /= ratio;
    }
    view.shape[last] /= ratio;
    view.offset /= ratio;
    Ok(view)
}

/// Complex numbers as pairs of real ones: a last dimension of size 2.
#[op("view_as_real(Tensor(a) self) -> Tensor(a)", function_only, view, bijective, jvp = linear, batch = pass)]
impl ViewAsReal {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        real_pairs(self_)?.spec(self_)
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        real_pairs(self_)?.shown(self_)
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
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        complex_numbers(self_)?.spec(self_)
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        complex_numbers(self_)?.shown(self_)
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
    fn meta(self_: &Tensor, dtype: DType) -> Result<TensorSpec> {
        read_as(self_, dtype)?.spec(self_)
    }
    fn cpu(self_: &Tensor, dtype: DType) -> Result<Tensor> {
        read_as(self_, dtype)?.shown(self_)
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
