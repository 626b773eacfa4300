//! Keys: unsigned numbers whose order is that of the elements they are made of.

use crate::reduce::f16_bits_to_f32;
use crate::{Bool, Element, bf16, f16};
use std::ops::{Add, BitXor, Sub};

/// An unsigned integer that keys are made of.
pub(super) trait KeyBits:
    Copy
    + Ord
    + Default
    + From<bool>
    + Add<Output = Self>
    + Sub<Output = Self>
    + BitXor<Output = Self>
    + Send
    + Sync
    + 'static
{
    /// The largest key.
    const MAX: Self;
    /// Whether keys have 32 bits rather than 64.
    const IS_NARROW: bool = size_of::<Self>() == 4;
    /// The key of a 64-bit integer that fits.
    fn of(key: u64) -> Self;
    fn wide(self) -> u64;
}

impl KeyBits for u32 {
    const MAX: u32 = u32::MAX;
    #[inline(always)]
    fn of(key: u64) -> u32 {
        key as u32
    }
    #[inline(always)]
    fn wide(self) -> u64 {
        u64::from(self)
    }
}

impl KeyBits for u64 {
    const MAX: u64 = u64::MAX;
    #[inline(always)]
    fn of(key: u64) -> u64 {
        key
    }
    #[inline(always)]
    fn wide(self) -> u64 {
        self
    }
}

/// An element that can be sorted.
pub(super) trait SortKey: Element {
    /// The smallest type that holds all keys.
    type Key: KeyBits;
    /// The key: ordered as unsigned integer as the elements are.
    fn key(self) -> u64;
}

#[inline(always)]
fn key_of_f32(value: f32) -> u64 {
    // Adding zero makes both zeros one.
    let bits = (value + 0.0).to_bits();
    let key = bits ^ (((bits as i32 >> 31) as u32) | 0x8000_0000);
    u64::from(if value.is_nan() { u32::MAX } else { key })
}

macro_rules! integer_key {
    ($($t:ty, $unsigned:ty, $key:ty, $flip:expr);*) => {$(
        impl SortKey for $t {
            type Key = $key;
            #[inline(always)] fn key(self) -> u64 { u64::from(self as $unsigned ^ $flip) }
        }
    )*};
}
integer_key!(u8, u8, u32, 0; u16, u16, u32, 0; u32, u32, u32, 0; u64, u64, u64, 0;
    i8, u8, u32, 0x80; i16, u16, u32, 0x8000; i32, u32, u32, 0x8000_0000; i64, u64, u64, 0x8000_0000_0000_0000);

impl SortKey for Bool {
    type Key = u32;
    #[inline(always)]
    fn key(self) -> u64 {
        u64::from(self.get())
    }
}
impl SortKey for f16 {
    type Key = u32;
    #[inline(always)]
    fn key(self) -> u64 {
        key_of_f32(f16_bits_to_f32(self.to_bits()))
    }
}
impl SortKey for bf16 {
    type Key = u32;
    #[inline(always)]
    fn key(self) -> u64 {
        key_of_f32(f32::from_bits(u32::from(self.to_bits()) << 16))
    }
}
impl SortKey for f32 {
    type Key = u32;
    #[inline(always)]
    fn key(self) -> u64 {
        key_of_f32(self)
    }
}
impl SortKey for f64 {
    type Key = u64;
    #[inline(always)]
    fn key(self) -> u64 {
        let bits = (self + 0.0).to_bits();
        let key = bits ^ (((bits as i64 >> 63) as u64) | (1 << 63));
        if self.is_nan() { u64::MAX } else { key }
    }
}

/// Whether keys have 32 bits.
pub(super) const fn is_narrow<T: SortKey>() -> bool {
    T::Key::IS_NARROW
}

/// The key of every NaN, of types that have one.
pub(super) fn nan_key<T: SortKey>() -> Option<u64> {
    T::DTYPE.is_floating_point().then_some(T::Key::MAX.wide())
}
