//! Element types: the `DType` tag, the `Element` trait that ties it to a Rust type, and
//! `for_dtype!`, the one place where a tag becomes a type. `Bool` is a byte of its own so that
//! memory that came from elsewhere (numpy, DLPack) can never be an invalid Rust `bool`.

use crate::spelling::Spelled;
use half::{bf16, f16};
use num_complex::Complex;

/// One byte that is true if it is not zero.
#[derive(Clone, Copy, Default, Debug)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// Wraps `value` as the byte 0 or 1.
    #[inline(always)]
    pub fn new(value: bool) -> Self {
        Self(u8::from(value))
    }
    /// Whether the byte is not zero.
    #[inline(always)]
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Bool::new(value)
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// Complex number of two `f16`: a storage format. What computes with it converts to [`C64`] and
/// rounds once.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
#[repr(C, align(4))]
pub struct C32 {
    /// The real part.
    pub re: f16,
    /// The imaginary part.
    pub im: f16,
}
/// Complex number of two `bf16`: a storage format as [`C32`] is, which fewer ops know.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
#[repr(C, align(4))]
pub struct BC32 {
    /// The real part.
    pub re: bf16,
    /// The imaginary part.
    pub im: bf16,
}
/// Complex number of two `f32`.
pub type C64 = Complex<f32>;
/// Complex number of two `f64`.
pub type C128 = Complex<f64>;

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// Truth value, one byte.
    Bool,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// IEEE 754 half precision.
    F16,
    /// bfloat16: the upper half of an `f32`.
    BF16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// Complex of two `f16`.
    C32,
    /// Complex of two `f32`.
    C64,
    /// Complex of two `f64`.
    C128,
    /// One byte, 4 bits of exponent and 3 of fraction: see [`Float8::E4M3FN`](crate::Float8::E4M3FN).
    F8E4M3FN,
    /// One byte, 5 bits of exponent and 2 of fraction.
    F8E5M2,
    /// As `F8E4M3FN`, with one zero and one NaN.
    F8E4M3FNUZ,
    /// As `F8E5M2`, with one zero, one NaN and no infinity.
    F8E5M2FNUZ,
    /// A power of two in one byte.
    F8E8M0FNU,
    /// Two numbers of 4 bits in one byte, which are stored and moved and never converted.
    F4E2M1FNX2,
    /// Complex of two `bf16`, which are stored, moved, compared and converted.
    BC32,
}

impl DType {
    /// How many dtypes there are (for tables indexed by `dtype as usize`).
    pub const COUNT: usize = 23;
    /// Every dtype, in tag order.
    pub const ALL: [DType; Self::COUNT] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C32,
        DType::C64,
        DType::C128,
        DType::F8E4M3FN,
        DType::F8E5M2,
        DType::F8E4M3FNUZ,
        DType::F8E5M2FNUZ,
        DType::F8E8M0FNU,
        DType::F4E2M1FNX2,
        DType::BC32,
    ];

    /// Whether elements are stored and moved, and few ops compute with them: the floating dtypes of one byte, and `BC32`.
    #[inline(always)]
    pub const fn is_mostly_stored(self) -> bool {
        self as u8 > DType::C128 as u8
    }

    /// Whether it is a floating dtype of one byte (two numbers in one, of `F4E2M1FNX2`): these are stored and moved, and few ops
    /// compute with them.
    #[inline(always)]
    pub const fn is_narrow_float(self) -> bool {
        self.is_mostly_stored() && !matches!(self, DType::BC32)
    }

    /// Bytes of one element.
    #[inline(always)]
    pub const fn size(self) -> usize {
        match self {
            DType::Bool
            | DType::U8
            | DType::I8
            | DType::F8E4M3FN
            | DType::F8E5M2
            | DType::F8E4M3FNUZ
            | DType::F8E5M2FNUZ
            | DType::F8E8M0FNU
            | DType::F4E2M1FNX2 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 | DType::C32 | DType::BC32 => 4,
            DType::I64 | DType::U64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }
    /// Whether it is `f16`, `bf16`, `f32`, `f64` or one of those of a byte.
    #[inline(always)]
    pub const fn is_floating_point(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64) || self.is_narrow_float()
    }
    /// Whether it is complex.
    #[inline(always)]
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C32 | DType::C64 | DType::C128 | DType::BC32)
    }
    /// Whether it is an integer; `include_bool` says whether bool counts as one.
    #[inline(always)]
    pub const fn is_integral(self, include_bool: bool) -> bool {
        match self {
            DType::Bool => include_bool,
            _ => !self.is_floating_point() && !self.is_complex(),
        }
    }
    /// Whether values can be negative.
    pub const fn is_signed(self) -> bool {
        !matches!(
            self,
            DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::F8E8M0FNU
        )
    }
    /// Whether tensors of this dtype can require gradients (real floating and complex).
    #[inline(always)]
    pub const fn is_differentiable(self) -> bool {
        self.is_floating_point() || self.is_complex()
    }
    /// The real dtype of a complex one's parts; other dtypes unchanged.
    pub const fn to_real(self) -> DType {
        match self {
            DType::C32 => DType::F16,
            DType::BC32 => DType::BF16,
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }
    /// The complex dtype whose parts hold this one, and in which ops compute: for `bf16` it is `C64`.
    pub const fn to_complex(self) -> DType {
        match self {
            DType::BC32 => DType::BC32,
            DType::F16 | DType::C32 => DType::C32,
            DType::F64 | DType::C128 => DType::C128,
            _ => DType::C64,
        }
    }
    /// PyTorch's name without the module: `float32`, `int64`, `bool`, ...
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C32 => "complex32",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
            DType::F8E4M3FN => "float8_e4m3fn",
            DType::F8E5M2 => "float8_e5m2",
            DType::F8E4M3FNUZ => "float8_e4m3fnuz",
            DType::F8E5M2FNUZ => "float8_e5m2fnuz",
            DType::F8E8M0FNU => "float8_e8m0fnu",
            DType::F4E2M1FNX2 => "float4_e2m1fn_x2",
            DType::BC32 => "bcomplex32",
        }
    }
    /// The name that PyTorch's kernel errors print, `Float`, `Long`, `ComplexDouble`, for texts of errors: as Rust shows these, they
    /// have the dtype as Rust prints it, `F32`.
    pub const fn scalar_name(self) -> Spelled<&'static str, DType> {
        Spelled::new(self.pytorch_scalar_name(), self)
    }
    /// [`DType::name`] for texts of errors, as [`DType::scalar_name`].
    pub const fn spelled(self) -> Spelled<&'static str, DType> {
        Spelled::new(self.name(), self)
    }
    const fn pytorch_scalar_name(self) -> &'static str {
        match self {
            DType::Bool => "Bool",
            DType::U8 => "Byte",
            DType::I8 => "Char",
            DType::I16 => "Short",
            DType::I32 => "Int",
            DType::I64 => "Long",
            DType::U16 => "UInt16",
            DType::U32 => "UInt32",
            DType::U64 => "UInt64",
            DType::F16 => "Half",
            DType::BF16 => "BFloat16",
            DType::F32 => "Float",
            DType::F64 => "Double",
            DType::C32 => "ComplexHalf",
            DType::C64 => "ComplexFloat",
            DType::C128 => "ComplexDouble",
            DType::F8E4M3FN => "Float8_e4m3fn",
            DType::F8E5M2 => "Float8_e5m2",
            DType::F8E4M3FNUZ => "Float8_e4m3fnuz",
            DType::F8E5M2FNUZ => "Float8_e5m2fnuz",
            DType::F8E8M0FNU => "Float8_e8m0fnu",
            DType::F4E2M1FNX2 => "Float4_e2m1fn_x2",
            DType::BC32 => "BComplex32",
        }
    }
}

/// A Rust type that tensors can hold.
///
/// # Safety
/// It has no padding, and any bytes are a value; `Bits` has its size and alignment.
pub unsafe trait Element: Copy + Send + Sync + Default + std::fmt::Debug + 'static {
    /// The dtype of tensors that hold this type.
    const DTYPE: DType;
    /// The type that stands for all types of this size where elements are only moved: an unsigned
    /// integer, or a complex number.
    type Bits: Element;
    /// Converts from a real double; integers lose the fraction, and values out of range become what
    /// x86's conversion makes of them.
    fn from_f64(value: f64) -> Self;
    /// Converts from an integer, wrapping.
    fn from_i64(value: i64) -> Self;
    /// Converts from a complex number; real types keep the real part.
    fn from_c128(value: C128) -> Self;
    /// The real part as a double.
    fn to_f64(self) -> f64;
    /// The value as an integer: wrapping for integers, truncating for floats.
    fn to_i64(self) -> i64;
    /// The value as a complex number.
    fn to_c128(self) -> C128;
    /// Whether it differs from zero (NaN does).
    fn is_true(self) -> bool;
}

/// A real number without its fraction, in the 64 bits that x86's conversion gives: the least number
/// for values out of range and NaN.
#[inline(always)]
pub(crate) fn truncated(value: f64) -> i64 {
    // (`as` gives the least number for values below the range, but the largest for those above and
    // 0 for NaN.)
    if value < 9_223_372_036_854_775_808.0 { value as i64 } else { i64::MIN }
}

/// A real number without its fraction in 32 bits, as x86 converts it: the least number for values out of range and NaN.
#[inline(always)]
pub(crate) fn truncated_32(value: f64) -> i32 {
    if value < 2_147_483_648.0 { value as i32 } else { i32::MIN }
}

/// A real number without its fraction as an unsigned 64-bit integer; negative numbers wrap.
#[inline(always)]
pub(crate) fn truncated_unsigned(value: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    let is_high = value >= HALF;
    let rest = truncated(if is_high { value - HALF } else { value }) as u64;
    if is_high { rest ^ (1 << 63) } else { rest }
}

macro_rules! integer_element {
    ($($t:ty => $tag:ident, $bits:ty, $truncated:ident);*) => {$(
        // SAFETY: an integer, and one of its size.
        unsafe impl Element for $t {
            const DTYPE: DType = DType::$tag;
            type Bits = $bits;
            // By way of the integer that PyTorch's x86 builds go through, of which the lower bits are kept.
            #[inline(always)] fn from_f64(value: f64) -> Self { $truncated(value) as $t }
            #[inline(always)] fn from_i64(value: i64) -> Self { value as $t }
            #[inline(always)] fn from_c128(value: C128) -> Self { Self::from_f64(value.re) }
            #[inline(always)] fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)] fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)] fn to_c128(self) -> C128 { C128::new(self as f64, 0.0) }
            #[inline(always)] fn is_true(self) -> bool { self != 0 }
        }
    )*};
}
integer_element!(
    u8 => U8, u8, truncated; i8 => I8, u8, truncated_32; i16 => I16, u16, truncated_32;
    i32 => I32, u32, truncated_32; i64 => I64, u64, truncated; u16 => U16, u16, truncated_32;
    u32 => U32, u32, truncated; u64 => U64, u64, truncated_unsigned
);

// SAFETY: a transparent byte.
unsafe impl Element for Bool {
    const DTYPE: DType = DType::Bool;
    type Bits = u8;
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        Bool::new(value != 0.0)
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        Bool::new(value != 0)
    }
    #[inline(always)]
    fn from_c128(value: C128) -> Self {
        Bool::new(value.re != 0.0 || value.im != 0.0)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self.get()))
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        i64::from(self.get())
    }
    #[inline(always)]
    fn to_c128(self) -> C128 {
        C128::new(self.to_f64(), 0.0)
    }
    #[inline(always)]
    fn is_true(self) -> bool {
        self.get()
    }
}

macro_rules! float_element {
    ($($t:ty => $tag:ident, $bits:ty, $from:expr, $to:expr, $is_true:expr);*) => {$(
        // SAFETY: a floating-point number, and the integer of its size.
        unsafe impl Element for $t {
            const DTYPE: DType = DType::$tag;
            type Bits = $bits;
            #[inline(always)] fn from_f64(value: f64) -> Self { $from(value) }
            #[inline(always)] fn from_i64(value: i64) -> Self { $from(value as f64) }
            #[inline(always)] fn from_c128(value: C128) -> Self { $from(value.re) }
            #[inline(always)] fn to_f64(self) -> f64 { $to(self) }
            #[inline(always)] fn to_i64(self) -> i64 { truncated($to(self)) }
            #[inline(always)] fn to_c128(self) -> C128 { C128::new($to(self), 0.0) }
            #[inline(always)] fn is_true(self) -> bool { $is_true(self) }
        }
    )*};
}
float_element!(
    f16 => F16, u16, f16::from_f64, f16::to_f64, |v: f16| v.to_bits() & 0x7fff != 0;
    bf16 => BF16, u16, bf16::from_f64, bf16::to_f64, |v: bf16| v.to_bits() & 0x7fff != 0;
    f32 => F32, u32, |v: f64| v as f32, f64::from, |v: f32| v != 0.0;
    f64 => F64, u64, |v: f64| v, |v: f64| v, |v: f64| v != 0.0
);

macro_rules! complex_element {
    ($($t:ty, $part:ty => $tag:ident);*) => {$(
        // SAFETY: two numbers, without padding.
        unsafe impl Element for $t {
            const DTYPE: DType = DType::$tag;
            type Bits = $t;
            #[inline(always)] fn from_f64(value: f64) -> Self { Complex::new(value as $part, 0.0) }
            #[inline(always)] fn from_i64(value: i64) -> Self { Complex::new(value as $part, 0.0) }
            #[inline(always)] fn from_c128(value: C128) -> Self {
                Complex::new(value.re as $part, value.im as $part)
            }
            #[inline(always)] fn to_f64(self) -> f64 { self.re as f64 }
            #[inline(always)] fn to_i64(self) -> i64 { truncated(self.re as f64) }
            #[inline(always)] fn to_c128(self) -> C128 { C128::new(self.re as f64, self.im as f64) }
            #[inline(always)] fn is_true(self) -> bool { self.re != 0.0 || self.im != 0.0 }
        }
    )*};
}
complex_element!(C64, f32 => C64; C128, f64 => C128);

macro_rules! half_complex_element {
    ($($t:ident, $part:ty => $tag:ident);*) => {$(
        // SAFETY: two numbers of two bytes, without padding, at multiples of four bytes.
        unsafe impl Element for $t {
            const DTYPE: DType = DType::$tag;
            type Bits = u32;
            #[inline(always)] fn from_f64(value: f64) -> Self {
                $t { re: <$part>::from_f64(value), im: <$part>::ZERO }
            }
            #[inline(always)] fn from_i64(value: i64) -> Self { Self::from_f64(value as f64) }
            #[inline(always)] fn from_c128(value: C128) -> Self {
                $t { re: <$part>::from_f64(value.re), im: <$part>::from_f64(value.im) }
            }
            #[inline(always)] fn to_f64(self) -> f64 { self.re.to_f64() }
            #[inline(always)] fn to_i64(self) -> i64 { truncated(self.to_f64()) }
            #[inline(always)] fn to_c128(self) -> C128 { C128::new(self.re.to_f64(), self.im.to_f64()) }
            #[inline(always)] fn is_true(self) -> bool { self.re.is_true() || self.im.is_true() }
        }
    )*};
}
half_complex_element!(C32, f16 => C32; BC32, bf16 => BC32);

/// Runs an expression with a type alias bound to the Rust type of a dtype.
///
/// `for_dtype!(dtype, all, T => expr)`; the family (`all`, `stored`, `float8`, `real`, `integral`, `float`, `complex`,
/// `float_complex`, `numeric`) says which dtypes have an arm; for the others the `else` block runs.
/// `C32` is in `all` alone: it is stored and moved, and computed with as `C64`. `BC32` and floating dtypes of one byte are in no family but
/// `stored`: of the ops that know the elements of their arguments few take them, and the dispatcher refuses them for the others.
#[macro_export]
macro_rules! for_dtype {
    (@arms $dtype:expr, $T:ident, $body:expr, $other:expr, [$($tag:ident = $t:ty),*]) => {
        match $dtype {
            $($crate::DType::$tag => { type $T = $t; $body })*
            #[allow(unreachable_patterns, reason = "a family may list every dtype")]
            _ => $other,
        }
    };
    ($dtype:expr, all, $T:ident => $body:expr) => {
        $crate::for_dtype!(@arms $dtype, $T, $body, unreachable!("{:?} is refused before", $dtype), [
            Bool = $crate::Bool, U8 = u8, I8 = i8, I16 = i16, I32 = i32, I64 = i64, U16 = u16, U32 = u32,
            U64 = u64, F16 = $crate::f16, BF16 = $crate::bf16, F32 = f32, F64 = f64,
            C32 = $crate::C32, C64 = $crate::C64, C128 = $crate::C128])
    };
    ($dtype:expr, stored, $T:ident => $body:expr, else $other:expr) => {
        $crate::for_dtype!(@arms $dtype, $T, $body, $other, [
            Bool = $crate::Bool, U8 = u8, I8 = i8, I16 = i16, I32 = i32, I64 = i64, U16 = u16, U32 = u32,
            U64 = u64, F16 = $crate::f16, BF16 = $crate::bf16, F32 = f32, F64 = f64,
            C32 = $crate::C32, C64 = $crate::C64, C128 = $crate::C128, BC32 = $crate::BC32,
            F8E4M3FN = $crate::float8::F8E4M3FN, F8E5M2 = $crate::float8::F8E5M2,
            F8E4M3FNUZ = $crate::float8::F8E4M3FNUZ, F8E5M2FNUZ = $crate::float8::F8E5M2FNUZ,
            F8E8M0FNU = $crate::float8::F8E8M0FNU])
    };
    ($dtype:expr, float8, $T:ident => $body:expr, else $other:expr) => {
        $crate::for_dtype!(@arms $dtype, $T, $body, $other, [
            F8E4M3FN = $crate::float8::F8E4M3FN, F8E5M2 = $crate::float8::F8E5M2,
            F8E4M3FNUZ = $crate::float8::F8E4M3FNUZ, F8E5M2FNUZ = $crate::float8::F8E5M2FNUZ,
            F8E8M0FNU = $crate::float8::F8E8M0FNU])
    };
    ($dtype:expr, real, $T:ident => $body:expr, else $other:expr) => {
        $crate::for_dtype!(@arms $dtype, $T, $body, $other, [
            U8 = u8, I8 = i8, I16 = i16, I32 = i32, I64 = i64, U16 = u16, U32 = u32,
            U64 = u64, F16 = $crate::f16, BF16 = $crate::bf16, F32 = f32, F64 = f64])
    };
    ($dtype:expr, numeric, $T:ident => $body:expr, else $other:expr) => {
        $crate::for_dtype!(@arms $dtype, $T, $body, $other, [
            U8 = u8, I8 = i8, I16 = i16, I32 = i32, I64 = i64, U16 = u16, U32 = u32,
            U64 = u64, F16 = $crate::f16, BF16 = $crate::bf16, F32 = f32, F64 = f64,
            C64 = $crate::C64, C128 = $crate::C128])
    };
    ($dtype:expr, integral, $T:ident => $body:expr, else $other:expr) => {
        $crate::for_dtype!(@arms $dtype, $T, $body, $other, [
            U8 = u8, I8 = i8, I16 = i16, I32 = i32, I64 = i64, U16 = u16, U32 = u32, U64 = u64])
    };
    ($dtype:expr, float, $T:ident => $body:expr, else $other:expr) => {
        $crate::for_dtype!(@arms $dtype, $T, $body, $other, [
            F16 = $crate::f16, BF16 = $crate::bf16, F32 = f32, F64 = f64])
    };
    ($dtype:expr, complex, $T:ident => $body:expr, else $other:expr) => {
        $crate::for_dtype!(@arms $dtype, $T, $body, $other, [C64 = $crate::C64, C128 = $crate::C128])
    };
    ($dtype:expr, float_complex, $T:ident => $body:expr, else $other:expr) => {
        $crate::for_dtype!(@arms $dtype, $T, $body, $other, [
            F16 = $crate::f16, BF16 = $crate::bf16, F32 = f32, F64 = f64,
            C64 = $crate::C64, C128 = $crate::C128])
    };
}
