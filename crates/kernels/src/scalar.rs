//! A number without a tensor: what a Python number or a Rust literal becomes as an op argument.

use crate::{C128, DType, Element};

/// A number of one of the four kinds that PyTorch tells apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Truth value.
    Bool(bool),
    /// Integer.
    Int(i64),
    /// Real number.
    Float(f64),
    /// Complex number: real and imaginary part.
    Complex(f64, f64),
}

impl Scalar {
    /// The dtype a tensor of this number has before any default is applied: bool, i64, f64, c128.
    pub const fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F64,
            Scalar::Complex(..) => DType::C128,
        }
    }
    /// Converts to an element type, as [`Element`]'s conversions do.
    #[inline(always)]
    pub fn to<T: Element>(self) -> T {
        match self {
            Scalar::Bool(b) => T::from_i64(i64::from(b)),
            Scalar::Int(i) => T::from_i64(i),
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
        matches!(self, Scalar::Bool(_) | Scalar::Int(_))
    }
    /// Whether it equals `value` exactly.
    pub fn is(self, value: f64) -> bool {
        match self {
            Scalar::Bool(b) => f64::from(u8::from(b)) == value,
            Scalar::Int(i) => i as f64 == value,
            Scalar::Float(f) => f == value,
            Scalar::Complex(re, im) => re == value && im == 0.0,
        }
    }
    /// The complex conjugate.
    pub fn conj(self) -> Scalar {
        match self {
            Scalar::Complex(re, im) => Scalar::Complex(re, -im),
            other => other,
        }
    }
}

/// The negated number; `true` becomes -1.
impl std::ops::Neg for Scalar {
    type Output = Self;
    fn neg(self) -> Self {
        match self {
            Scalar::Bool(b) => Scalar::Int(-i64::from(b)),
            Scalar::Int(i) => Scalar::Int(i.wrapping_neg()),
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

impl From<C128> for Scalar {
    fn from(value: C128) -> Self {
        Scalar::Complex(value.re, value.im)
    }
}
