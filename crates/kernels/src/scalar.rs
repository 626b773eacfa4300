//! A number without a tensor: what a Python number or a Rust literal becomes as an op argument.

use crate::spelling::Spelled;
use crate::{C128, DType, Element, Error, Float8, Result, bf16};

/// A number of one of the four kinds that PyTorch tells apart: booleans, integers, real and complex numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Truth value.
    Bool(bool),
    /// Integer.
    Int(i64),
    /// An integer from 2^63 on, which only `u64` holds; smaller ones are [`Scalar::Int`].
    UInt(u64),
    /// Real number.
    Float(f64),
    /// Complex number: real and imaginary part.
    Complex(f64, f64),
}

impl Scalar {
    /// The dtype a tensor of this number has before any default is applied: bool, i64 (u64 from 2^63 on), f64, c128.
    pub const fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::UInt(_) => DType::U64,
            Scalar::Float(_) => DType::F64,
            Scalar::Complex(..) => DType::C128,
        }
    }
    /// An element as a number of its kind.
    #[inline(always)]
    pub fn of<T: Element>(value: T) -> Self {
        if T::DTYPE == DType::Bool {
            Scalar::Bool(value.is_true())
        } else if T::DTYPE.is_complex() {
            Scalar::from(value.to_c128())
        } else if T::DTYPE.is_floating_point() {
            Scalar::Float(value.to_f64())
        } else if T::DTYPE == DType::U64 {
            Scalar::from(value.to_i64() as u64)
        } else {
            Scalar::Int(value.to_i64())
        }
    }
    /// Converts to an element type, as [`Element`]'s conversions do.
    #[inline(always)]
    pub fn to<T: Element>(self) -> T {
        match self {
            Scalar::Bool(b) => T::from_i64(i64::from(b)),
            Scalar::Int(i) => T::from_i64(i),
            // (Integers keep the lower bits, as of any other integer.)
            Scalar::UInt(u) if T::DTYPE.is_integral(true) => T::from_i64(u as i64),
            Scalar::UInt(u) => T::from_f64(u as f64),
            Scalar::Float(f) => T::from_f64(f),
            Scalar::Complex(re, im) => T::from_c128(C128::new(re, im)),
        }
    }
    /// The real part as a double.
    pub fn to_f64(self) -> f64 {
        self.to::<f64>()
    }
    /// The value as an integer (truncating).
    pub fn to_i64(self) -> i64 {
        self.to::<i64>()
    }
    /// Whether it is a whole number kind (bool or integer).
    pub const fn is_integral(self) -> bool {
        matches!(self, Scalar::Bool(_) | Scalar::Int(_) | Scalar::UInt(_))
    }
    /// Whether it has no imaginary part but zero.
    pub const fn is_real(self) -> bool {
        !matches!(self, Scalar::Complex(_, im) if im != 0.0)
    }
    /// Whether it equals `value` exactly.
    pub fn is(self, value: f64) -> bool {
        match self {
            Scalar::Bool(b) => f64::from(u8::from(b)) == value,
            Scalar::Int(i) => i as f64 == value,
            Scalar::UInt(u) => u as f64 == value,
            Scalar::Float(f) => f == value,
            Scalar::Complex(re, im) => re == value && im == 0.0,
        }
    }
    /// Refuses a number that elements of `dtype` cannot hold: beyond its range, not a number for an integer, or
    /// with an imaginary part for a real one. Infinities fit every floating dtype, anything fits a bool, and
    /// negative numbers down to the largest value wrap round in unsigned dtypes.
    ///
    /// # Errors
    /// `Runtime`, with the dtype.
    pub fn check_fits(self, dtype: DType) -> Result<()> {
        let number = self.to_f64();
        let is_imaginary = matches!(self, Scalar::Complex(_, im) if im != 0.0);
        let fits = match dtype {
            dtype if dtype == DType::Bool || dtype.is_complex() => true,
            _ if is_imaginary => false,
            DType::F64 => true,
            dtype if dtype.is_narrow_float() => fits_float8(self, dtype),
            DType::F16 => !number.is_finite() || number.abs() <= 65504.0,
            DType::BF16 => !number.is_finite() || number.abs() <= bf16::MAX.to_f64(),
            DType::F32 => !number.is_finite() || number.abs() <= f64::from(f32::MAX),
            DType::U64 if self.is_integral() => true,
            DType::I64 if self.is_integral() => !matches!(self, Scalar::UInt(_)),
            _ => {
                let bits = dtype.size() as i32 * 8;
                let above = 2.0_f64.powi(bits - i32::from(dtype.is_signed()));
                let least = if dtype.is_signed() { -above } else { -above + 1.0 };
                number >= least && number < above
            }
        };
        if fits {
            return Ok(());
        }
        let spelled = match dtype {
            DType::I32 => "int".to_owned(),
            DType::F32 => "float".to_owned(),
            DType::F16 => "at::Half".to_owned(),
            DType::BF16 => "at::BFloat16".to_owned(),
            other if other.is_narrow_float() => format!("c10::{}", other.scalar_name().pytorch()),
            other => format!("{}_t", other.name()),
        };
        let name = Spelled::new(spelled, dtype);
        Err(Error::runtime(format!("value cannot be converted to type {name} without overflow")))
    }
    /// The complex conjugate.
    pub fn conj(self) -> Scalar {
        match self {
            Scalar::Complex(re, im) => Scalar::Complex(re, -im),
            other => other,
        }
    }
}

/// Whether a number lies between the least and the largest of a floating dtype of one byte. NaN does, and so does infinity
/// where the dtype has one.
fn fits_float8(number: Scalar, dtype: DType) -> bool {
    let is_integral = number.is_integral();
    let number = number.to_f64();
    let largest = match Float8::of(dtype) {
        Some(Float8::E4M3FN) => 448.0,
        Some(Float8::E5M2) if number.is_infinite() => return true,
        Some(Float8::E5M2 | Float8::E5M2FNUZ) => 57344.0,
        Some(Float8::E4M3FNUZ) => 240.0,
        // (The type has no sign and no zero; PyTorch lets integers keep their magnitude.)
        Some(Float8::E8M0FNU) if is_integral => return true,
        Some(Float8::E8M0FNU) => {
            let range = 2.0_f64.powi(-127)..=2.0_f64.powi(127);
            return number.is_nan() || range.contains(&number);
        }
        None => return true,
    };
    number.is_nan() || number.abs() <= largest
}

/// The negated number; `true` becomes -1.
impl std::ops::Neg for Scalar {
    type Output = Self;
    fn neg(self) -> Self {
        match self {
            Scalar::Bool(b) => Scalar::Int(-i64::from(b)),
            Scalar::Int(i) => Scalar::Int(i.wrapping_neg()),
            Scalar::UInt(u) => Scalar::Int((u as i64).wrapping_neg()),
            Scalar::Float(f) => Scalar::Float(-f),
            Scalar::Complex(re, im) => Scalar::Complex(-re, -im),
        }
    }
}

macro_rules! scalar_from {
    ($($t:ty => $kind:ident as $as:ty),*) => {$(
        impl From<$t> for Scalar {
            fn from(value: $t) -> Self { Scalar::$kind(value as $as) }
        }
    )*};
}
scalar_from!(bool => Bool as bool, i32 => Int as i64, i64 => Int as i64, u8 => Int as i64,
             usize => Int as i64, f32 => Float as f64, f64 => Float as f64);

impl From<u64> for Scalar {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or(Scalar::UInt(value), Scalar::Int)
    }
}

impl From<C128> for Scalar {
    fn from(value: C128) -> Self {
        Scalar::Complex(value.re, value.im)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_up_to_the_last_value_of_a_dtype() {
        let fits = |value: Scalar, dtype| value.check_fits(dtype).is_ok();
        for (value, dtype) in [(255, DType::U8), (-255, DType::U8), (-128, DType::I8)] {
            assert!(fits(Scalar::Int(value), dtype), "{value} fits {dtype:?}");
        }
        for (value, dtype) in [(256, DType::U8), (-256, DType::U8), (-129, DType::I8)] {
            assert!(!fits(Scalar::Int(value), dtype), "{value} does not fit {dtype:?}");
        }
        assert!(fits(Scalar::Int(i64::MAX), DType::I64) && fits(Scalar::Int(i64::MIN), DType::I64));
        assert!(
            fits(Scalar::from(u64::MAX), DType::U64) && !fits(Scalar::from(u64::MAX), DType::I64)
        );
        assert!(
            !fits(Scalar::Float(9.3e18), DType::I64) && !fits(Scalar::Float(f64::NAN), DType::I32)
        );
        assert!(fits(Scalar::Float(f64::INFINITY), DType::F16));
        assert!(
            !fits(Scalar::Float(65536.0), DType::F16) && !fits(Scalar::Float(1e39), DType::BF16)
        );
        assert!(fits(Scalar::Complex(1.0, 0.0), DType::F32));
        assert!(
            !fits(Scalar::Complex(1.0, 1.0), DType::F64)
                && fits(Scalar::Complex(1.0, 1.0), DType::C64)
        );
    }
    #[test]
    fn integers_from_two_to_the_63rd_keep_their_value() {
        let large = Scalar::from(u64::MAX - 3);
        assert_eq!(Scalar::from(7_u64), Scalar::Int(7));
        assert_eq!(large.to::<u64>(), u64::MAX - 3);
        assert_eq!((large.to::<i64>(), large.to::<u8>()), (-4, 252));
        assert!(large.to::<f64>() == 2.0_f64.powi(64) && large.is(2.0_f64.powi(64)));
        assert!(large.is_integral() && large.to::<crate::Bool>().get());
        assert_eq!((-large).to::<u64>(), 4);
    }
}
