//! Rust data as tensors: numbers, and arrays, slices and lists of these.

use crate::error::{bail, ensure};
use crate::{Bool, C64, C128, Dims, Element, Result, Tensor, bf16, f16};
use pullback_kernels::memory;

/// What [`Tensor::from`] takes.
pub trait TensorData {
    /// The type of the elements.
    type Element: Element;
    /// Adds the sizes, from the outermost to the innermost: those of the first entry at each depth.
    fn read_sizes(&self, sizes: &mut Dims);
    /// Adds the elements in row-major order; `sizes` are those from this depth on, of which `depth` are outside.
    ///
    /// # Errors
    /// `ValueError` if another size is found.
    fn read_elements(
        &self,
        sizes: &[i64],
        depth: usize,
        elements: &mut Vec<Self::Element>,
    ) -> Result<()>;
}

macro_rules! numbers {
    ($($number:ty => $element:ty),*) => {$(
        impl TensorData for $number {
            type Element = $element;
            fn read_sizes(&self, _: &mut Dims) {}
            fn read_elements(&self, _: &[i64], _: usize, elements: &mut Vec<$element>) -> Result<()> {
                // (The list has room for all elements.)
                elements.push((*self).into());
                Ok(())
            }
        }
    )*};
}
numbers!(f16 => f16, bf16 => bf16, f32 => f32, f64 => f64, i8 => i8, i16 => i16, i32 => i32, i64 => i64, u8 => u8,
         u16 => u16, u32 => u32, u64 => u64, bool => Bool, Bool => Bool, C64 => C64, C128 => C128);

impl<T: TensorData> TensorData for [T] {
    type Element = T::Element;
    fn read_sizes(&self, sizes: &mut Dims) {
        sizes.push(self.len() as i64);
        if let Some(first) = self.first() {
            first.read_sizes(sizes);
        }
    }
    fn read_elements(
        &self,
        sizes: &[i64],
        depth: usize,
        elements: &mut Vec<T::Element>,
    ) -> Result<()> {
        let Some((&size, inner)) = sizes.split_first() else {
            bail!(value, "expected no sequence at dim {depth}, got one of length {}", self.len());
        };
        ensure!(
            size == self.len() as i64,
            value,
            "expected sequence of length {size} at dim {depth} (got {})",
            self.len()
        );
        self.iter().try_for_each(|entry| entry.read_elements(inner, depth + 1, elements))
    }
}

/// Arrays and lists are read as slices.
macro_rules! by_slice {
    ([$($parameter:tt)*] $type:ty) => {
        impl<T: TensorData, $($parameter)*> TensorData for $type {
            type Element = T::Element;
            fn read_sizes(&self, sizes: &mut Dims) {
                self[..].read_sizes(sizes);
            }
            fn read_elements(
                &self,
                sizes: &[i64],
                depth: usize,
                elements: &mut Vec<T::Element>,
            ) -> Result<()> {
                self[..].read_elements(sizes, depth, elements)
            }
        }
    };
}
by_slice!([] Vec<T>);
by_slice!([const N: usize] [T; N]);

impl<T: TensorData + ?Sized> TensorData for &T {
    type Element = T::Element;
    fn read_sizes(&self, sizes: &mut Dims) {
        (**self).read_sizes(sizes);
    }
    fn read_elements(
        &self,
        sizes: &[i64],
        depth: usize,
        elements: &mut Vec<T::Element>,
    ) -> Result<()> {
        (**self).read_elements(sizes, depth, elements)
    }
}

/// A tensor of the data, with Rust's type.
pub(super) fn tensor_of<D: TensorData>(data: &D) -> Result<Tensor> {
    let mut sizes = Dims::new();
    data.read_sizes(&mut sizes);
    let count = crate::tensor::checked_numel(&sizes)?;
    let mut elements = memory::with_capacity(count as usize)?;
    data.read_elements(&sizes, 0, &mut elements)?;
    Tensor::from_slice(&elements, &sizes)
}
