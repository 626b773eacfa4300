//! New tensors with the dtype and device of another one: `zeros_like` and `new_zeros` and their kin.
//!
//! The like-functions take the other tensor's shape and order of dimensions too. Options that the caller
//! gives win over the other tensor's; nothing here has a derivative.

use super::factory::{FactoryOptions, fill_new_if_enabled, refused, strided, zero_new};
use crate::dispatch::OpDef;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::classes::samples::{creation_beside, creation_like};
use crate::tensor::Cpu;
use crate::{DType, Device, ErrorKind, Layout, MemoryFormat, Result, Scalar, Tensor, TensorSpec};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &EMPTY_LIKE,
    &ZEROS_LIKE,
    &ONES_LIKE,
    &FULL_LIKE,
    &NEW_EMPTY,
    &NEW_EMPTY_STRIDED,
    &NEW_ZEROS,
    &NEW_ONES,
    &NEW_FULL,
];

/// A tensor of the same shape, dtype, device and order of dimensions with elements not set.
#[op(
    "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", narrow_floats,
    function_only,
    not_differentiable,
    samples = creation_like, batch = pass, sparse = unset(cpu, self, dtype, layout, memory_format))]
impl EmptyLike {
    fn meta(
        self_: &Tensor,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory).blank_like(self_, memory_format)
    }
    fn cpu(result: &Tensor) -> Result<()> {
        fill_new_if_enabled(result);
        Ok(())
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::of(s.normal(&[2, 3])).with("memory_format", MemoryFormat::ChannelsLast),
            ErrorKind::Runtime,
            "required rank 4 tensor to use channels_last format",
        )]
    }
}

/// Zeros in the shape of `self`.
#[op(
    "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", narrow_floats,
    function_only,
    not_differentiable,
    samples = creation_like, batch = pass, sparse = blank(cpu, self, dtype, layout, memory_format))]
impl ZerosLike {
    fn meta(
        self_: &Tensor,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory).blank_like(self_, memory_format)
    }
    fn cpu(result: &Tensor) -> Result<()> {
        zero_new(result);
        Ok(())
    }
}

/// Ones in the shape of `self`.
#[op(
    "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", narrow_floats,
    function_only,
    not_differentiable,
    samples = creation_like, batch = pass, sparse = ones_like(cpu, self, dtype, layout)
)]
impl OnesLike {
    fn meta(
        self_: &Tensor,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory).like(self_, memory_format)
    }
    fn cpu(cpu: Cpu, result: &Tensor) -> Result<()> {
        result.fill_with(cpu, Scalar::Int(1))
    }
}

/// The shape of `self`, every element `fill_value`.
#[op(
    "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", narrow_floats,
    function_only,
    not_differentiable, batch = pass, sparse = filled_like(cpu, self, fill_value, dtype, layout)
)]
impl FullLike {
    fn meta(
        self_: &Tensor,
        fill_value: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
        memory_format: Option<MemoryFormat>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory)
            .like(self_, memory_format)?
            .holding(fill_value)
    }
    fn cpu(cpu: Cpu, result: &Tensor, fill_value: Scalar) -> Result<()> {
        result.fill_with(cpu, fill_value)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let fill = |sample: Sample| sample.with("fill_value", Scalar::Float(2.5));
        creation_like(s).into_iter().map(fill).collect()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![InvalidSample::new(
            Sample::of(s.integers(&[2], 0, 5)).with("fill_value", Scalar::Complex(0.0, 1.0)),
            ErrorKind::Runtime,
            "without overflow",
        )]
    }
}

/// Shape `size`, dtype and device of `self`, elements not set.
#[op(
    "new_empty(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", narrow_floats,
    method_only,
    not_differentiable,
    samples = creation_beside, batch = sizes(self, size), sparse = blank_beside(self, size, dtype, layout, device)
)]
impl NewEmpty {
    fn meta(
        self_: &Tensor,
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory).blank_beside(self_, size)
    }
    fn cpu(result: &Tensor) -> Result<()> {
        fill_new_if_enabled(result);
        Ok(())
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![refused([s.normal(&[2]).into(), [-1].into()], "negative dimension -1: [-1]")]
    }
}

/// These sizes and strides, dtype and device of `self`, elements not set.
#[op(
    "new_empty_strided(Tensor self, int[] size, int[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", narrow_floats,
    method_only,
    not_differentiable, batch = strided_sizes(self, size, stride)
)]
impl NewEmptyStrided {
    fn meta(
        self_: &Tensor,
        size: &[i64],
        stride: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        strided(FactoryOptions(dtype, layout, device, pin_memory).beside(self_, size)?, stride)
    }
    fn cpu(result: &Tensor) -> Result<()> {
        result.fill_if_enabled();
        Ok(())
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        [
            Sample::new([s.normal(&[2]).into(), [2, 3].into(), [1, 2].into()]),
            Sample::new([s.normal(&[]).into(), [2].into(), [0].into()]).with("dtype", DType::I8),
        ]
        .map(Sample::without_gradient)
        .into()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        vec![refused(
            [s.normal(&[2]).into(), [2].into(), [1, 1].into()],
            "dimensionality of sizes (1) must match dimensionality of strides (2)",
        )]
    }
}

/// Zeros of shape `size` with dtype and device of `self`.
#[op(
    "new_zeros(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", narrow_floats,
    method_only,
    not_differentiable,
    samples = creation_beside, batch = sizes(self, size), sparse = blank_beside(self, size, dtype, layout, device)
)]
impl NewZeros {
    fn meta(
        self_: &Tensor,
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory).blank_beside(self_, size)
    }
    fn cpu(result: &Tensor) -> Result<()> {
        zero_new(result);
        Ok(())
    }
}

/// Ones of shape `size` with dtype and device of `self`.
#[op(
    "new_ones(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", narrow_floats,
    method_only,
    not_differentiable,
    samples = creation_beside, batch = sizes(self, size)
)]
impl NewOnes {
    fn meta(
        self_: &Tensor,
        size: &[i64],
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory).beside(self_, size)?.checked()
    }
    fn cpu(cpu: Cpu, result: &Tensor) -> Result<()> {
        result.fill_with(cpu, Scalar::Int(1))
    }
}

/// Shape `size`, every element `fill_value`, with dtype and device of `self`.
#[op(
    "new_full(Tensor self, int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", narrow_floats,
    method_only,
    not_differentiable, batch = sizes(self, size)
)]
impl NewFull {
    fn meta(
        self_: &Tensor,
        size: &[i64],
        fill_value: Scalar,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        FactoryOptions(dtype, layout, device, pin_memory)
            .beside(self_, size)?
            .checked()?
            .holding(fill_value)
    }
    fn cpu(cpu: Cpu, result: &Tensor, fill_value: Scalar) -> Result<()> {
        result.fill_with(cpu, fill_value)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let fill = |sample: Sample| sample.with("fill_value", Scalar::Float(2.5));
        creation_beside(s).into_iter().map(fill).collect()
    }
}
