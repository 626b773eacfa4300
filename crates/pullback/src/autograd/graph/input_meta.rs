//! The sizes, dtype, device and layout that a gradient arriving at a node must have.

use crate::tensor::{Device, Layout};
use crate::{DType, Result, Tensor, TensorSpec};
use smallvec::SmallVec;

/// The sizes of a forward output. Inline for up to three dimensions, which keeps nodes small.
pub(crate) type InputSizes = SmallVec<[i64; 3]>;

/// What a gradient that arrives at a node must look like: the properties of the forward output.
#[derive(Clone, Debug)]
pub struct InputMeta {
    /// Sizes of the forward output.
    pub shape: InputSizes,
    /// Its dtype.
    pub dtype: DType,
    /// Its device.
    pub device: Device,
    /// Its layout.
    pub layout: Layout,
}

/// A copy, made in registers if it has up to three sizes.
#[inline(always)]
fn sizes(shape: &[i64]) -> InputSizes {
    match *shape {
        [] => InputSizes::new(),
        [a] => InputSizes::from_buf_and_len([a, 0, 0], 1),
        [a, b] => InputSizes::from_buf_and_len([a, b, 0], 2),
        [a, b, c] => InputSizes::from_buf([a, b, c]),
        _ => InputSizes::from_slice(shape),
    }
}

impl InputMeta {
    /// The properties of a forward output.
    #[inline]
    pub fn of(tensor: &Tensor) -> Self {
        let g = tensor.geometry();
        InputMeta { shape: sizes(&g.shape), dtype: g.dtype, device: g.device, layout: g.layout }
    }
    /// A gradient of zeros.
    ///
    /// # Errors
    /// Out of memory.
    pub fn zeros(&self) -> Result<Tensor> {
        TensorSpec::of(&self.shape, self.dtype).on(self.device).zeros()
    }
    /// Whether these are the properties of `tensor`.
    pub(in crate::autograd) fn is_of(&self, tensor: &Tensor) -> bool {
        let g = tensor.geometry();
        self.shape.as_slice() == g.shape.as_slice()
            && self.dtype == g.dtype
            && self.device == g.device
            && self.layout == g.layout
    }
}
