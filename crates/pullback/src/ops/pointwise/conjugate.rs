//! Conjugates and negatives as views, what resolves them, and the parts of complex numbers.
//!
//! `_conj` and `_neg_view` flip a bit of the tensor (`tensor::unresolved`) and compute nothing; `conj_physical` computes.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::shape::view_spec::ViewSpec;
use crate::tensor::{Flag, TensorSpec, has_negatives};
use crate::{DType, ErrorKind, Result, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &CONJ,
    &CONJ_VIEW,
    &CONJ_COPY,
    &CONJ_PHYSICAL,
    &CONJ_PHYSICAL_IN_PLACE,
    &CONJ_COMPUTED,
    &NEG_VIEW,
    &NEG_VIEW_COPY,
    &RESOLVE_CONJ,
    &RESOLVE_NEG,
    &REAL_VIEW,
    &IMAG_VIEW,
];

/// The view spec of the conjugates of `t`.
fn conjugated(t: &Tensor) -> Result<ViewSpec> {
    ensure!(
        t.dtype().is_complex(),
        runtime,
        "_conj() is for complex tensors, got {}: conj() gives real ones as they are",
        t.dtype().scalar_name()
    );
    Ok(ViewSpec::of(t))
}

/// The view spec of the negatives of `t`.
fn negated(t: &Tensor) -> Result<ViewSpec> {
    ensure!(
        has_negatives(t.dtype()),
        not_implemented,
        "\"neg_cpu\" not implemented for '{}'",
        t.dtype().scalar_name()
    );
    Ok(ViewSpec::of(t))
}

/// A view of `t` with these bits flipped.
fn flipped(t: &Tensor, view: ViewSpec, bits: u32) -> Result<Tensor> {
    let view = view.shown(t)?;
    view.set_sign_bits(t.sign_bits() ^ bits);
    Ok(view)
}

fn complex_samples(s: &Sampler) -> Vec<Sample> {
    if s.dtype.is_complex() { crate::ops::classes::samples::unary(s) } else { Vec::new() }
}

/// The complex conjugates: a view of complex tensors, which computes nothing; real tensors are returned as they are.
#[op("conj(Tensor(a) self) -> Tensor(a)", method = conj_op, samples = unary)]
impl Conj {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.conj()
    }
}

/// A view of the conjugates of a complex tensor: what is written through it is conjugated on its way.
#[op("_conj(Tensor(a) self) -> Tensor(a)", view, bijective, unresolved, node = "Conj", method = conj_view,
     jvp = linear, batch = pass)]
impl ConjView {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        conjugated(self_)?.spec(self_)
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        flipped(self_, conjugated(self_)?, Flag::CONJ)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.conj()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        complex_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let real = Sample::of(s.normal(&[2]));
        vec![InvalidSample::new(real, ErrorKind::Runtime, "_conj() is for complex tensors")]
    }
}

/// A copy of the conjugates.
#[op("_conj_copy(Tensor self) -> Tensor", exact_out, function_only, copy_of = CONJ_VIEW, node = "ConjBackward0_copy")]
impl ConjCopy {}

/// The complex conjugate of every element, computed at once; real tensors are returned as they are.
#[op("conj_physical(Tensor self) -> Tensor", exact_out, samples = unary)]
impl ConjPhysical {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        if self_.dtype().is_complex() { self_.conj_computed() } else { Ok(self_.clone()) }
    }
}

/// Replaces every element by its complex conjugate. Real tensors keep their elements, and count as written to.
#[op("conj_physical_(Tensor(a!) self) -> Tensor(a!)", method = conj_physical_, samples = unary)]
impl ConjPhysicalInPlace {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        self_.conj_computed_()
    }
}

/// The complex conjugate of every element in memory of its own.
#[op("_conj_physical(Tensor self) -> Tensor", inplace, method = conj_computed, node = "ConjPhysical",
     meta = broadcast, cpu = conj, batch = pointwise, samples = unary, jvp = linear, sparse = values)]
impl ConjComputed {
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.conj_physical()
    }
}

/// A view of the negatives: what is written through it is negated on its way.
#[op("_neg_view(Tensor(a) self) -> Tensor(a)", view, bijective, unresolved, method = neg_view, node = "NegView",
     jvp = linear, batch = pass, samples = unary)]
impl NegView {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        negated(self_)?.spec(self_)
    }
    fn cpu(self_: &Tensor) -> Result<Tensor> {
        flipped(self_, negated(self_)?, Flag::NEG)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.neg_view()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let phrase = "\"neg_cpu\" not implemented for 'Bool'";
        vec![InvalidSample::new(Sample::of(s.bools(&[2])), ErrorKind::NotImplemented, phrase)]
    }
}

/// A copy of the negatives.
#[op("_neg_view_copy(Tensor self) -> Tensor", exact_out, function_only, copy_of = NEG_VIEW, node = "NegViewBackward0_copy")]
impl NegViewCopy {}

/// The tensor itself, unless it is a view of conjugates (`is_conj()`): then a copy that holds them.
#[op("resolve_conj(Tensor(a) self) -> Tensor(a)", samples = unary)]
impl ResolveConj {
    fn unchanged(self_: &Tensor) -> bool {
        !self_.is_conj()
    }
    fn composite(self_: &Tensor) -> Result<Tensor> {
        if self_.is_conj() { self_.clone_tensor(None) } else { Ok(self_.clone()) }
    }
}

/// The tensor itself, unless it is a view of negatives (`is_neg()`): then a copy that holds them.
#[op("resolve_neg(Tensor(a) self) -> Tensor(a)", samples = unary)]
impl ResolveNeg {
    fn unchanged(self_: &Tensor) -> bool {
        !self_.is_neg()
    }
    fn composite(self_: &Tensor) -> Result<Tensor> {
        if self_.is_neg() { self_.clone_tensor(None) } else { Ok(self_.clone()) }
    }
}

/// The pairs of real numbers that a complex tensor, or else its conjugate view, has in memory; and
/// whether it was the conjugate view.
fn pairs(t: &Tensor) -> Result<(Tensor, bool)> {
    let is_conj = t.is_conj();
    let plain = if is_conj { t.conj()? } else { t.clone() };
    Ok((plain.view_as_real()?, is_conj))
}

/// A view of the real parts; real tensors are returned as they are.
#[op("real(Tensor(a) self) -> Tensor(a)", attribute, writable, method = real_view, samples = unary)]
impl RealView {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        if self_.dtype().is_complex() { pairs(self_)?.0.select(-1, 0) } else { Ok(self_.clone()) }
    }
}

/// A view of the imaginary parts of a complex tensor.
#[op("imag(Tensor(a) self) -> Tensor(a)", attribute, writable, method = imag_view)]
impl ImagView {
    fn composite(self_: &Tensor) -> Result<Tensor> {
        ensure!(
            self_.dtype().is_complex(),
            type_error,
            "imag is not implemented for tensors with non-complex dtypes."
        );
        let (pairs, is_conj) = pairs(self_)?;
        let pairs = if is_conj { pairs.neg_view()? } else { pairs };
        pairs.select(-1, 1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let complex =
            |shape: &[i64]| s.normal(shape).to_dtype(DType::C128).expect("samples are small");
        vec![Sample::of(complex(&[2, 3])), Sample::of(complex(&[])), Sample::of(complex(&[0]))]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::of(s.normal(&[2])),
            ErrorKind::Type,
            "imag is not implemented for tensors",
        )]
    }
}
