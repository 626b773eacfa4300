//! New tensors as a Rust program asks for them: `Tensor::zeros([2, 3])?`, with [`TensorOptions`] before it where the
//! defaults do not fit.
//!
//! Everything here calls the ops of `factory`, `spaced` and `random`; nothing is computed.

use super::data::TensorData;
use super::factory::{
    arange_start_step_with, empty_with, eye_m_with, full_with, ones_with, zeros_with,
};
use super::spaced::linspace_with;
use crate::ops::random::factory::{rand_with, randint_low_with, randn_with, randperm_with};
use crate::{DType, Device, Dims, Generator, Result, Scalar, Tensor};

/// Sizes of a tensor: `[2, 3]`, a slice or a list of `i64`, one number, or `()` for none.
pub trait Sizes {
    /// The sizes, outermost first.
    fn sizes(&self) -> Dims;
}

impl<const N: usize> Sizes for [i64; N] {
    fn sizes(&self) -> Dims {
        Dims::from_slice(self)
    }
}
impl Sizes for [i64] {
    fn sizes(&self) -> Dims {
        Dims::from_slice(self)
    }
}
impl Sizes for Vec<i64> {
    fn sizes(&self) -> Dims {
        Dims::from_slice(self)
    }
}
impl Sizes for Dims {
    fn sizes(&self) -> Dims {
        self.clone()
    }
}
impl Sizes for i64 {
    fn sizes(&self) -> Dims {
        Dims::from_slice(&[*self])
    }
}
impl Sizes for () {
    fn sizes(&self) -> Dims {
        Dims::new()
    }
}
impl<S: Sizes + ?Sized> Sizes for &S {
    fn sizes(&self) -> Dims {
        (*self).sizes()
    }
}

/// The properties of a new tensor. The defaults are those of the functions of [`Tensor`]: the
/// default dtype (`f32` at first; for data, whole numbers and [`TensorOptions::full`] that of the
/// values), main memory, no gradient, the default generator.
///
/// ```
/// use pullback::{DType, Generator, Tensor};
/// # fn main() -> pullback::Result<()> {
/// let weights = Tensor::options()
///     .dtype(DType::F64)
///     .generator(&Generator::new(7))
///     .requires_grad(true)
///     .randn([2, 3])?;
/// assert!(weights.requires_grad() && weights.dtype() == DType::F64);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options make nothing until one of their functions is called"]
pub struct TensorOptions {
    dtype: Option<DType>,
    device: Option<Device>,
    requires_grad: bool,
    generator: Option<Generator>,
}

impl TensorOptions {
    /// The defaults.
    pub fn new() -> Self {
        TensorOptions::default()
    }
    /// Sets the type of the elements.
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = Some(dtype);
        self
    }
    /// Sets the device.
    pub fn device(mut self, device: Device) -> Self {
        self.device = Some(device);
        self
    }
    /// Sets whether the tensor is a leaf that requires grad.
    pub fn requires_grad(mut self, requires: bool) -> Self {
        self.requires_grad = requires;
        self
    }
    /// Sets the generator that random numbers are drawn from. Other functions ignore it.
    pub fn generator(mut self, generator: &Generator) -> Self {
        self.generator = Some(generator.clone());
        self
    }

    /// The generator that was set.
    pub fn drawn_from(&self) -> Option<&Generator> {
        self.generator.as_ref()
    }

    fn finish(&self, made: Result<Tensor>) -> Result<Tensor> {
        if self.requires_grad { made?.with_grad() } else { made }
    }
}

/// Functions of the options, and functions of `Tensor` that take the defaults.
macro_rules! makers {
    ($($(#[$text:meta])* fn $name:ident($options:ident $(, $arg:ident: $type:ty)*) $body:block)*) => {
        impl TensorOptions {
            $($(#[$text])*
            #[track_caller]
            pub fn $name(&self, $($arg: $type),*) -> Result<Tensor> {
                let $options = self;
                self.finish($body)
            })*
        }
        impl Tensor {
            $($(#[$text])*
            ///
            /// Of the default options; [`Tensor::options`] sets others.
            #[track_caller]
            pub fn $name($($arg: $type),*) -> Result<Tensor> {
                let $options = &TensorOptions::default();
                $body
            })*
        }
    };
}

makers! {
    /// Elements that are not set.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    fn empty(o, shape: impl Sizes) {
        empty_with(&shape.sizes(), o.dtype, None, o.device, None, None)
    }

    /// Zeros.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    fn zeros(o, shape: impl Sizes) { zeros_with(&shape.sizes(), o.dtype, None, o.device, None) }

    /// Ones.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes; out of memory.
    fn ones(o, shape: impl Sizes) { ones_with(&shape.sizes(), o.dtype, None, o.device, None) }

    /// Every element is `value`; its kind (truth value, whole, real, complex) decides the dtype where none is set.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes and values that the dtype cannot hold; out of memory.
    fn full(o, shape: impl Sizes, value: impl Into<Scalar>) {
        full_with(&shape.sizes(), value.into(), o.dtype, None, o.device, None)
    }

    /// Independent numbers of the standard normal distribution: PyTorch's, for the same seed.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes and dtypes that are not floating; out of memory.
    fn randn(o, shape: impl Sizes) {
        randn_with(&shape.sizes(), o.generator.as_ref(), o.dtype, None, o.device, None)
    }

    /// Independent numbers of the uniform distribution on `[0, 1)`: PyTorch's, for the same seed.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes and dtypes that are not floating; out of memory.
    fn rand(o, shape: impl Sizes) {
        rand_with(&shape.sizes(), o.generator.as_ref(), o.dtype, None, o.device, None)
    }

    /// Independent whole numbers in `[low, high)`, `i64` unless a dtype is set.
    ///
    /// # Errors
    /// `RuntimeError` for an empty range and negative sizes; out of memory.
    fn randint(o, low: i64, high: i64, shape: impl Sizes) {
        let size = shape.sizes();
        randint_low_with(low, high, &size, o.generator.as_ref(), o.dtype, None, o.device, None)
    }

    /// A random order of `0..n`, `i64` unless a dtype is set.
    ///
    /// # Errors
    /// `RuntimeError` for a negative `n`; out of memory.
    fn randperm(o, n: i64) {
        randperm_with(n, o.generator.as_ref(), o.dtype, None, o.device, None)
    }

    /// `start, start + 1, ..` up to `end`, which is left out: `i64` for whole bounds, else the default dtype.
    ///
    /// # Errors
    /// `RuntimeError` if `end` is less than `start`; out of memory.
    fn arange(o, start: impl Into<Scalar>, end: impl Into<Scalar>) {
        let one = Scalar::Int(1);
        arange_start_step_with(start.into(), end.into(), one, o.dtype, None, o.device, None)
    }

    /// `start, start + step, ..` up to `end`, which is left out.
    ///
    /// # Errors
    /// `RuntimeError` for a step of zero or away from `end`; out of memory.
    fn arange_step(o, start: impl Into<Scalar>, end: impl Into<Scalar>, step: impl Into<Scalar>) {
        let (start, end, step) = (start.into(), end.into(), step.into());
        arange_start_step_with(start, end, step, o.dtype, None, o.device, None)
    }

    /// `steps` numbers at equal distances from `start` to `end`, both of which are there.
    ///
    /// # Errors
    /// `RuntimeError` for negative steps; out of memory.
    fn linspace(o, start: impl Into<Scalar>, end: impl Into<Scalar>, steps: i64) {
        linspace_with(start.into(), end.into(), steps, o.dtype, None, o.device, None)
    }

    /// The identity matrix of `n` rows.
    ///
    /// # Errors
    /// `RuntimeError` for a negative `n`; out of memory.
    fn eye(o, n: i64) { eye_m_with(n, n, o.dtype, None, o.device, None) }

    /// A tensor of numbers, truth values, or arrays and lists of these to any depth. Elements have Rust's type unless a
    /// dtype is set: `[1.0, 2.0]` is of `f64`.
    ///
    /// ```
    /// use pullback::{DType, Tensor};
    /// # fn main() -> pullback::Result<()> {
    /// let x = Tensor::from([[1.0_f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!((x.shape(), x.dtype()), (&[2, 2][..], DType::F32));
    /// assert_eq!(Tensor::from(vec![true, false])?.dtype(), DType::Bool);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `ValueError` for rows of different lengths; out of memory.
    fn from(o, data: impl TensorData) {
        super::data::tensor_of(&data)
            .and_then(|made| made.to(o.dtype, o.device, false, None))
    }
}

impl Tensor {
    /// The beginning of a new tensor that is not made with the default options.
    pub fn options() -> TensorOptions {
        TensorOptions::default()
    }
    /// A copy with memory of its own, with history: what Python's `clone()` is. (Rust's `clone` is another handle of the
    /// same tensor.)
    ///
    /// # Errors
    /// Out of memory.
    #[track_caller]
    pub fn copy(&self) -> Result<Tensor> {
        self.clone_tensor_default()
    }
    /// `self + scale * other`.
    ///
    /// # Errors
    /// `RuntimeError` for shapes that do not broadcast; out of memory.
    #[track_caller]
    pub fn add_scaled(&self, other: &Tensor, scale: impl Into<Scalar>) -> Result<Tensor> {
        self.add_with(other, scale.into())
    }
    /// Writes `self + scale * other` into `self`, and returns it.
    ///
    /// # Errors
    /// As for `add_`.
    #[track_caller]
    pub fn add_scaled_(&self, other: &Tensor, scale: impl Into<Scalar>) -> Result<Tensor> {
        self.add__with(other, scale.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn options_reach_the_tensor() -> Result<()> {
        let made = Tensor::options().dtype(DType::F64).requires_grad(true).ones([2, 3])?;
        assert_eq!((made.dtype(), made.shape()), (DType::F64, &[2, 3][..]));
        assert!(made.requires_grad() && made.is_leaf());
        let meta = Tensor::options().device(Device::Meta).zeros(4)?;
        assert_eq!((meta.device(), meta.shape()), (Device::Meta, &[4][..]));
        Ok(())
    }

    #[test]
    fn a_generator_gives_the_same_numbers_again_and_leaves_the_default_one_alone() -> Result<()> {
        let before = crate::default_generator().state();
        let draw = || Tensor::options().generator(&Generator::new(3)).rand([5]);
        assert_eq!(draw()?.to_vec::<f32>()?, draw()?.to_vec::<f32>()?);
        assert_eq!(crate::default_generator().state(), before);
        Ok(())
    }

    #[test]
    fn values_are_those_of_the_ops() -> Result<()> {
        assert_eq!(Tensor::arange(2, 5)?.to_vec::<i64>()?, [2, 3, 4]);
        assert_eq!(Tensor::arange_step(0.0, 1.0, 0.5)?.to_vec::<f32>()?, [0.0, 0.5]);
        assert_eq!(Tensor::eye(2)?.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(Tensor::full([2], true)?.dtype(), DType::Bool);
        assert_eq!(Tensor::full((), 2.5)?.item()?.to_f64(), 2.5);
        assert_eq!(Tensor::linspace(0, 1, 3)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
        Ok(())
    }

    #[test]
    fn nested_data_has_the_shape_of_its_nesting() -> Result<()> {
        let x = Tensor::from([[[1_i32, 2, 3]], [[4, 5, 6]]])?;
        assert_eq!((x.shape(), x.dtype()), (&[2, 1, 3][..], DType::I32));
        assert_eq!(x.to_vec::<i32>()?, [1, 2, 3, 4, 5, 6]);
        let none: [[f32; 0]; 2] = [[], []];
        assert_eq!(Tensor::from(none)?.shape(), [2, 0]);
        assert_eq!(Tensor::from(3.0)?.shape(), [0_i64; 0]);
        let error = Tensor::from(vec![vec![1.0], vec![2.0, 3.0]]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value);
        assert!(error.message().contains("expected sequence of length 1 at dim 1 (got 2)"));
        let half = Tensor::options().dtype(DType::F16).from([1.5, 2.0])?;
        assert_eq!(half.dtype(), DType::F16);
        Ok(())
    }
}
