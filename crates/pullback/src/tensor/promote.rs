//! Type promotion: which dtype a computation over several tensors and numbers happens in.
//!
//! Three ranks take part: tensors with dimensions, 0-dim tensors, and wrapped numbers. A lower rank
//! decides only if its category (bool < integer < floating < complex) is higher than every higher rank's.

use super::{Flag, Tensor};
use crate::{DType, Result};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

static DEFAULT: AtomicU8 = AtomicU8::new(DType::F32 as u8);

/// The dtype of new floating-point tensors.
pub fn default_dtype() -> DType {
    DType::ALL[DEFAULT.load(Relaxed) as usize]
}

/// The complex dtype of filled tensors, which printing leaves out: never one of halves, other than
/// that of numbers in a list or beside tensors where halves are the default.
pub(crate) fn usual_complex() -> DType {
    if default_dtype() == DType::F64 { DType::C128 } else { DType::C64 }
}

/// Sets the dtype of new floating-point tensors.
///
/// # Errors
/// `TypeError` unless it is a floating-point dtype.
pub fn set_default_dtype(dtype: DType) -> crate::Result<()> {
    crate::error::ensure!(
        dtype.is_floating_point(),
        type_error,
        "only floating-point types are supported as the default type"
    );
    crate::error::ensure!(
        !dtype.is_narrow_float(),
        type_error,
        "couldn't find storage object {}Storage",
        dtype.scalar_name()
    );
    DEFAULT.store(dtype as u8, Relaxed);
    Ok(())
}

/// The dtype that can hold both `a` and `b`, as PyTorch's table has it.
///
/// # Errors
/// `RuntimeError` for a floating dtype of one byte and another dtype: there is no table for these.
pub fn promote_types(a: DType, b: DType) -> Result<DType> {
    crate::error::ensure!(
        a == b || !(a.is_narrow_float() || b.is_narrow_float()),
        runtime,
        "Promotion for Float8 Types is not supported, attempted to promote {} and {}",
        a.scalar_name(),
        b.scalar_name()
    );
    Ok(if a == b { a } else { of_table(a, b) })
}

/// What two different dtypes promote to.
#[expect(clippy::match_same_arms, reason = "the table's rows, in the order they apply")]
fn of_table(a: DType, b: DType) -> DType {
    use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let (low, high) = if rank(a) <= rank(b) { (a, b) } else { (b, a) };
    if high.is_complex() {
        // Complex dtypes and those of real numbers with a fraction meet in the wider parts; integers have no say.
        if [low, high].contains(&DType::BC32) {
            return of_pairs(if low == DType::BC32 { high } else { low });
        }
        let low = if low.is_differentiable() { low.to_complex() } else { high };
        return if low.size() > high.size() { low } else { high };
    }
    match (low, high) {
        (Bool, other) | (other, Bool) => other,
        (l, h) if h.is_floating_point() && !l.is_floating_point() => h,
        (F16, BF16) | (BF16, F16) => F32,
        (F16 | BF16, h) => h,
        (F32, F64) | (F64, F32) => F64,
        // Unsigned with signed: the next larger signed type; u64 with any signed gives f32 in no build,
        // PyTorch refuses it; the larger tag keeps the value range best.
        (U8, I8) | (I8, U8) => I16,
        (U8, h) | (h, U8) => h,
        (U16, h) | (h, U16) if h.is_signed() => {
            if h.size() <= 2 {
                I32
            } else {
                h
            }
        }
        (U32, h) | (h, U32) if h.is_signed() => {
            if h.size() <= 4 {
                I64
            } else {
                h
            }
        }
        (U64, h) | (h, U64) if h.is_signed() => default_dtype(),
        (I8, I16) | (I16, I8) => I16,
        (l, h) => {
            if l.size() >= h.size() {
                l
            } else {
                h
            }
        }
    }
}

/// What `bcomplex32` and another dtype promote to.
fn of_pairs(other: DType) -> DType {
    match other {
        DType::F64 | DType::C128 => DType::C128,
        DType::F16 | DType::F32 | DType::C32 | DType::C64 => DType::C64,
        _ => DType::BC32,
    }
}

fn rank(dtype: DType) -> u8 {
    if dtype == DType::Bool {
        0
    } else if dtype.is_integral(false) {
        1
    } else if dtype.is_floating_point() {
        2
    } else {
        3
    }
}

/// The running result over operands of the three ranks.
#[derive(Clone, Copy, Default)]
pub(crate) struct Promotion {
    dims: Option<DType>,
    zero_dim: Option<DType>,
    wrapped: Option<DType>,
}

fn join(a: Option<DType>, b: DType) -> Result<Option<DType>> {
    a.map_or(Ok(b), |a| promote_types(a, b)).map(Some)
}

/// The complex dtype of `dtype`'s precision.
///
/// # Errors
/// `RuntimeError` where there is none.
pub fn complex_of(dtype: DType) -> Result<DType> {
    crate::error::ensure!(
        dtype.is_differentiable() && !dtype.is_narrow_float(),
        runtime,
        "Unknown Complex ScalarType for {}",
        dtype.scalar_name()
    );
    Ok(dtype.to_complex())
}

impl Promotion {
    #[inline]
    pub(crate) fn add(&mut self, tensor: &Tensor) -> Result<()> {
        let dtype = tensor.dtype();
        if tensor.has_flag(Flag::WRAPPED_NUMBER) {
            let dtype = match dtype {
                DType::F64 => default_dtype(),
                DType::C128 => default_dtype().to_complex(),
                other => other,
            };
            self.wrapped = join(self.wrapped, dtype)?;
        } else if tensor.ndim() == 0 {
            self.zero_dim = join(self.zero_dim, dtype)?;
        } else {
            self.dims = join(self.dims, dtype)?;
        }
        Ok(())
    }

    pub(crate) fn result(self) -> Result<DType> {
        let combine = |higher: Option<DType>, lower: Option<DType>| match (higher, lower) {
            (None, lower) => Ok(lower),
            (higher, None) => Ok(higher),
            (Some(h), Some(l)) => {
                if rank(l) <= rank(h) {
                    Ok(Some(h))
                } else if h.is_floating_point() && l.is_complex() {
                    // A complex number meets a real tensor: the tensor's precision decides.
                    complex_of(h).map(Some)
                } else {
                    promote_types(h, l).map(Some)
                }
            }
        };
        let of_tensors = combine(self.dims, self.zero_dim)?;
        Ok(combine(of_tensors, self.wrapped)?.unwrap_or(DType::F32))
    }
}

/// The dtype that operands compute in together.
///
/// # Errors
/// Those of [`promote_types`].
pub fn result_type(tensors: &[&Tensor]) -> Result<DType> {
    if let [a, b] = tensors {
        // The usual case, without the general rules.
        if a.dtype() == b.dtype() && (a.flags() | b.flags()) & Flag::WRAPPED_NUMBER == 0 {
            return Ok(a.dtype());
        }
    }
    let mut promotion = Promotion::default();
    for tensor in tensors {
        promotion.add(tensor)?;
    }
    promotion.result()
}

/// Whether `from` can be stored in `to` by an in-place or `out=` op.
pub fn can_cast(from: DType, to: DType) -> bool {
    rank(from) <= rank(to)
}
