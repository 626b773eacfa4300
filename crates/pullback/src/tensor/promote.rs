//! Type promotion: which dtype a computation over several tensors and numbers happens in.
//!
//! Three ranks take part: tensors with dimensions, 0-dim tensors, and wrapped numbers. A lower rank
//! decides only if its category (bool < integer < floating < complex) is higher than every higher rank's.

use super::{Flag, Tensor};
use crate::DType;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

static DEFAULT: AtomicU8 = AtomicU8::new(DType::F32 as u8);

/// The dtype of new floating-point tensors.
pub fn default_dtype() -> DType {
    DType::ALL[DEFAULT.load(Relaxed) as usize]
}

/// The complex dtype of a filled tensor, and the one that printing takes for granted: never one of halves, as those of
/// numbers in a list or beside tensors are where halves are the default.
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
    DEFAULT.store(dtype as u8, Relaxed);
    Ok(())
}

/// The dtype that can hold both `a` and `b`, as PyTorch's table has it.
#[expect(clippy::match_same_arms, reason = "the table's rows, in the order they apply")]
pub fn promote_types(a: DType, b: DType) -> DType {
    use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    if a == b {
        return a;
    }
    let (low, high) = if rank(a) <= rank(b) { (a, b) } else { (b, a) };
    if high.is_complex() {
        // Complex dtypes and those of real numbers with a fraction meet in the wider parts; integers have no say.
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

fn join(a: Option<DType>, b: DType) -> DType {
    a.map_or(b, |a| promote_types(a, b))
}

impl Promotion {
    #[inline]
    pub(crate) fn add(&mut self, tensor: &Tensor) {
        let dtype = tensor.dtype();
        if tensor.has_flag(Flag::WRAPPED_NUMBER) {
            let dtype = match dtype {
                DType::F64 => default_dtype(),
                DType::C128 => default_dtype().to_complex(),
                other => other,
            };
            self.wrapped = Some(join(self.wrapped, dtype));
        } else if tensor.ndim() == 0 {
            self.zero_dim = Some(join(self.zero_dim, dtype));
        } else {
            self.dims = Some(join(self.dims, dtype));
        }
    }

    pub(crate) fn result(self) -> DType {
        let combine = |higher: Option<DType>, lower: Option<DType>| match (higher, lower) {
            (None, lower) => lower,
            (higher, None) => higher,
            (Some(h), Some(l)) => {
                if rank(l) <= rank(h) {
                    Some(h)
                } else if h.is_floating_point() && l.is_complex() {
                    // A complex number meets a real tensor: the tensor's precision decides.
                    Some(h.to_complex())
                } else {
                    Some(promote_types(h, l))
                }
            }
        };
        combine(combine(self.dims, self.zero_dim), self.wrapped).unwrap_or(DType::F32)
    }
}

/// The dtype that operands compute in together.
pub fn result_type(tensors: &[&Tensor]) -> DType {
    if let [a, b] = tensors {
        // The usual case, without the general rules.
        if a.dtype() == b.dtype() && (a.flags() | b.flags()) & Flag::WRAPPED_NUMBER == 0 {
            return a.dtype();
        }
    }
    let mut promotion = Promotion::default();
    for tensor in tensors {
        promotion.add(tensor);
    }
    promotion.result()
}

/// Whether `from` can be stored in `to` by an in-place or `out=` op.
pub fn can_cast(from: DType, to: DType) -> bool {
    rank(from) <= rank(to)
}
