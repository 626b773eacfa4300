//! Elements in and out: views for kernels, copies, conversions, construction from Rust data.
//!
//! Nothing here records history; the ops `copy_`, `clone` and `to` are made of these.

use super::shape::broadcast_strides;
use super::uninitialized;
use super::version::{Version, Writer};
use super::{
    Cpu, Device, Flag, Geometry, Key, TensorSpec, check_fits, checked_numel, contiguous_strides,
    extent, preserved_strides,
};
use crate::error::ensure;
use crate::{DType, Element, Error, Result, Scalar, Tensor};
use pullback_kernels::memory;
use pullback_kernels::{Iter, StridedMut, StridedRef, elementwise, for_dtype};

/// The size in bytes up to which a copy of dense memory does not pay for the preparations of a kernel.
const SMALL_COPY: usize = 1 << 15;

/// Writes the elements of the input into the output, converted if that has another dtype.
fn copy_or_cast(iter: &mut Iter) -> Result<()> {
    if iter.dtype(0) == iter.input_dtype(0) {
        elementwise::copy(iter)?;
    } else {
        elementwise::cast(iter)?;
    }
    Ok(())
}

impl Tensor {
    /// The elements for a kernel to read, as they lie in memory: of a resolved tensor.
    #[inline]
    pub(crate) fn view_ref(&self, _: Cpu) -> StridedRef<'_> {
        debug_assert!(!self.is_unresolved(), "a kernel would read past the conj or neg bit");
        let g = self.geometry();
        // SAFETY: a geometry's sizes and strides were checked against its storage, which it keeps alive.
        unsafe { StridedRef::new(g.data_ptr(), g.dtype, &g.shape, &g.strides) }
    }
    /// The elements for a kernel to write. The caller is an op that was allowed to write here: the
    /// tensor is fresh, or is the checked target of an in-place or `out=` form.
    #[inline]
    pub(crate) fn view_mut(&self, _: Cpu) -> StridedMut<'_> {
        debug_assert!(!self.is_unresolved(), "a kernel would write past the conj or neg bit");
        self.stored_mut()
    }
    /// The stored elements for writing, whatever bits the tensor has.
    #[inline]
    pub(super) fn stored_mut(&self) -> StridedMut<'_> {
        let g = self.geometry();
        // SAFETY: as above; that nobody else uses the elements meanwhile is the caller's check.
        unsafe { StridedMut::new(g.written_ptr(), g.dtype, &g.shape, &g.strides) }
    }

    /// As [`Tensor::view_mut`], with other sizes and strides: the kernel sees dimensions of size 1 that the tensor
    /// does not have. The tensor is row-major.
    ///
    /// # Panics
    /// If they reach beyond its elements.
    #[inline]
    pub(crate) fn view_mut_as<'a>(
        &'a self,
        _: Cpu,
        shape: &'a [i64],
        strides: &'a [i64],
    ) -> StridedMut<'a> {
        debug_assert!(!self.is_unresolved(), "a kernel would write past the conj or neg bit");
        let g = self.geometry();
        let is_inside = extent(shape, strides).is_ok_and(|reach| reach <= g.numel);
        assert!(
            g.is_contiguous && is_inside,
            "sizes {shape:?} and strides {strides:?} leave the tensor: this is a bug"
        );
        // SAFETY: as above; sizes and strides reach no more elements than the row-major tensor has.
        unsafe { StridedMut::new(g.written_ptr(), g.dtype, shape, strides) }
    }

    /// Writes the elements of `source` (converted, broadcast) here. No history, no version.
    #[inline]
    pub(crate) fn copy_data(&self, cpu: Cpu, source: &Tensor) -> Result<()> {
        let flags = self.flags() | source.flags();
        if flags & (Flag::UNRESOLVED | Key::Meta as u32) != 0 {
            return self.copy_unusual(cpu, source);
        }
        self.copy_stored(cpu, source)
    }

    /// [`Tensor::copy_data`] where one of the two tensors has no memory, or a bit.
    #[cold]
    fn copy_unusual(&self, cpu: Cpu, source: &Tensor) -> Result<()> {
        if self.device() == Device::Meta {
            return Ok(());
        }
        source.check_memory()?;
        self.copy_unresolved(cpu, source)
    }

    /// Copies the stored elements, whatever bits the tensors have.
    pub(super) fn copy_stored(&self, cpu: Cpu, source: &Tensor) -> Result<()> {
        self.materialize()?;
        let (to, from) = (self.geometry(), source.geometry());
        let bytes = to.numel as usize * to.dtype.size();
        if to.is_contiguous
            && from.is_contiguous
            && to.dtype == from.dtype
            && bytes <= SMALL_COPY
            && to.shape.ends_with(&from.shape)
        {
            if to.numel == from.numel {
                // SAFETY: both have this many bytes in a row; `copy` allows them to overlap.
                unsafe { std::ptr::copy(from.data_ptr(), to.written_ptr(), bytes) };
                return Ok(());
            }
            if from.numel > 0 && !super::shares_storage(self, source) {
                // Whole rows, one row repeated.
                let row = from.numel as usize * from.dtype.size();
                for start in (0..bytes).step_by(row) {
                    // SAFETY: a row of distinct memory, inside of what both have.
                    unsafe {
                        let ptr = to.written_ptr().add(start);
                        std::ptr::copy_nonoverlapping(from.data_ptr(), ptr, row);
                    }
                }
                return Ok(());
            }
        }
        if to.is_contiguous
            && from.is_contiguous
            && to.shape == from.shape
            && !super::shares_storage(self, source)
        {
            let operands = [(to.written_ptr(), to.dtype), (from.data_ptr().cast_mut(), from.dtype)];
            // SAFETY: both have this many elements in a row, in distinct memory; only the first is written.
            return copy_or_cast(&mut unsafe { Iter::contiguous(&operands, 1, to.numel as usize) });
        }
        let strides = broadcast_strides(source.shape(), source.strides(), self.shape())?;
        let moved;
        let source = if super::overlaps_partly(self, source) {
            moved = source.dense_copy(cpu)?;
            return self.copy_data(cpu, &moved);
        } else {
            source
        };
        // SAFETY: broadcasting reaches only elements that the tensor reaches.
        let from =
            unsafe { StridedRef::new(source.data_ptr(), source.dtype(), self.shape(), &strides) };
        copy_or_cast(&mut Iter::new(&[self.stored_mut()], &[from])?)
    }

    /// A copy with the same order of dimensions in memory, without history.
    pub(crate) fn dense_copy(&self, cpu: Cpu) -> Result<Tensor> {
        self.converted(cpu, self.dtype())
    }

    /// A copy in another dtype, without history.
    pub(crate) fn converted(&self, cpu: Cpu, dtype: DType) -> Result<Tensor> {
        let out = self.empty_as(dtype)?;
        out.copy_data(cpu, self)?;
        Ok(out)
    }

    /// An uninitialised tensor of this shape, with the same order of dimensions in memory.
    pub(crate) fn empty_as(&self, dtype: DType) -> Result<Tensor> {
        if self.is_contiguous() && self.device() == super::Device::Cpu {
            return Tensor::empty_of(self.shape(), dtype);
        }
        let strides = preserved_strides(self.shape(), self.strides());
        Tensor::empty_strided(self.shape(), &strides, dtype, self.device())
    }

    /// The elements in row-major order: the tensor itself if it is dense already, else a copy without history.
    pub(crate) fn dense(&self, cpu: Cpu) -> Result<Tensor> {
        if self.is_contiguous() && !self.is_unresolved() {
            return Ok(self.clone());
        }
        let out = Tensor::empty_of(self.shape(), self.dtype())?;
        out.copy_data(cpu, self)?;
        Ok(out)
    }

    /// Another tensor over the same memory, without history and without link to a base.
    #[inline]
    pub(crate) fn alias_with(&self, shape: &[i64], strides: &[i64], offset: i64) -> Result<Tensor> {
        Tensor::from_geometry(self.geometry().with_view(shape, strides, offset)?)
    }

    /// A tensor of the same geometry over a lazy clone of its storage, without history.
    pub(crate) fn lazy_clone_of_storage(&self) -> Result<Tensor> {
        let g = self.geometry();
        let Some(storage) = &g.storage else { return Tensor::of_same_geometry(g) };
        let (shape, strides) = (super::dims(&g.shape), super::dims(&g.strides));
        let clone = Geometry::new(storage.lazy_clone()?, g.offset, shape, strides, g.dtype)?;
        let clone = Tensor::from_geometry(clone.on(g.device))?;
        clone.set_sign_bits(self.sign_bits());
        Ok(clone)
    }

    pub(crate) fn version_counter(&self) -> Option<&Version> {
        let g = self.geometry();
        g.version.as_deref().or_else(|| g.storage.as_ref().map(super::Storage::version))
    }
    /// The version: the number of in-place writes to the memory, through this tensor or any that shares its counter.
    #[inline]
    pub fn version(&self) -> u32 {
        self.version_counter().map_or(0, Version::get)
    }
    /// Counts one in-place write.
    #[inline]
    pub(crate) fn bump_version(&self, writer: Writer) {
        if !self.has_flag(Flag::INFERENCE)
            && let Some(counter) = self.version_counter()
        {
            counter.bump(writer);
        }
    }
    /// Sets the counter.
    pub(crate) fn set_version(&self, version: u32) {
        if let Some(counter) = self.version_counter() {
            counter.set(version);
        }
    }

    /// Gives an `out=` target the shape of the result, with PyTorch's warning if it had elements.
    pub(crate) fn resize_output(&self, shape: &[i64]) -> Result<()> {
        if self.shape() == shape {
            return Ok(());
        }
        if self.numel() != 0 {
            crate::warn(format!(
                "An output with one or more elements was resized since it had shape {}, which does not match the required output shape {}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
                super::shape::list(self.shape()),
                super::shape::list(shape)
            ));
        }
        self.resize_to(shape)
    }

    /// As [`Tensor::resize_output`]; a target whose sizes change gets the strides of a new result.
    pub(crate) fn resize_output_as(&self, spec: &TensorSpec) -> Result<()> {
        if self.shape() == spec.shape.as_slice() {
            return Ok(());
        }
        self.resize_output(&spec.shape)?;
        let Some(strides) = &spec.strides else { return Ok(()) };
        // (The memory has room for elements without gaps.)
        if extent(&spec.shape, strides)? == self.numel() {
            let g = self.geometry();
            self.set_geometry(g.with_view(&spec.shape, strides, g.offset)?);
        }
        Ok(())
    }

    /// Changes the sizes in place, row-major; the storage grows if it must.
    pub(crate) fn resize_to(&self, shape: &[i64]) -> Result<()> {
        checked_numel(shape)?;
        let g = self.geometry();
        let strides = contiguous_strides(shape);
        let bytes =
            (g.offset + extent(shape, &strides)?).checked_mul(g.dtype.size() as i64).ok_or_else(
                || Error::runtime(format!("size in bytes overflows for shape {shape:?}")),
            )?;
        if let Some(storage) = &g.storage {
            let held = storage.nbytes();
            storage.grow(bytes as usize)?;
            if uninitialized::is_filling_uninitialized() {
                uninitialized::fill(storage, held, bytes as usize, g.dtype);
            }
        }
        self.set_geometry(g.with_view(shape, &strides, g.offset)?);
        Ok(())
    }

    /// A tensor of `shape` holding `data`.
    ///
    /// # Errors
    /// `RuntimeError` if the number of elements differs.
    pub fn from_slice<T: Element>(data: &[T], shape: &[i64]) -> Result<Tensor> {
        let numel = checked_numel(shape)?;
        ensure!(
            numel as usize == data.len(),
            runtime,
            "shape {shape:?} needs {numel} elements, got {}",
            data.len()
        );
        let out = Tensor::empty_of(shape, T::DTYPE)?;
        if let Some(slice) = out.stored_mut().as_slice_mut::<T>() {
            elementwise::copy_slice(slice, data);
        }
        Ok(out)
    }

    /// Writes `value` to every element.
    pub(crate) fn fill_with(&self, cpu: Cpu, value: Scalar) -> Result<()> {
        self.materialize()?;
        let mut iter = Iter::new(&[self.view_mut(cpu)], &[])?;
        Ok(elementwise::fill(&mut iter, value)?)
    }

    /// Writes `value` into a tensor of one element. No history, no version.
    pub(crate) fn set_item(&self, cpu: Cpu, value: f64) -> Result<()> {
        if self.numel() != 1 || !super::KeySet::joined(self.flags()).is_empty() {
            return self.fill_with(cpu, Scalar::Float(value));
        }
        self.materialize()?;
        let ptr = self.geometry().written_ptr();
        // SAFETY: one live element of this dtype; that nobody else uses it meanwhile is the caller's check.
        unsafe {
            match self.dtype() {
                DType::F32 => ptr.cast::<f32>().write(value as f32),
                DType::F64 => ptr.cast::<f64>().write(value),
                _ => return self.fill_with(cpu, Scalar::Float(value)),
            }
        }
        Ok(())
    }

    /// Writes `value` to every element of a tensor that was just made.
    pub(crate) fn fill_new(&self, value: Scalar) -> Result<()> {
        let mut iter = Iter::new(&[self.stored_mut()], &[])?;
        Ok(elementwise::fill(&mut iter, value)?)
    }

    /// The elements in row-major order, converted to `T`.
    ///
    /// # Errors
    /// Out of memory.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let cpu = Cpu::of(self)?;
        let same = self.dtype() == T::DTYPE;
        let copy =
            if same { self.dense(cpu)? } else { self.converted(cpu, T::DTYPE)?.dense(cpu)? };
        Ok(memory::copied(copy.view_ref(cpu).as_slice::<T>().unwrap_or_default())?)
    }

    /// A 0-dim tensor of `value` in `dtype`.
    ///
    /// # Errors
    /// Out of memory.
    pub fn scalar_of(value: impl Into<Scalar>, dtype: DType) -> Result<Tensor> {
        let out = TensorSpec::of(&[], dtype).empty()?;
        let value = value.into();
        let ptr = out.geometry().written_ptr();
        for_dtype!(dtype, stored, T => {
            // SAFETY: the storage has one element of this dtype, 64-byte aligned, and nobody else knows it.
            unsafe { ptr.cast::<T>().write(value.to::<T>()) }
        }, else return Err(no_numbers(dtype)));
        Ok(out)
    }

    /// A number as PyTorch wraps Python's: a 0-dim tensor of the number's own dtype, which has low rank in type promotion.
    #[inline]
    pub fn wrapped(value: impl Into<Scalar>) -> Result<Tensor> {
        let value = value.into();
        let out = Tensor::scalar_of(value, value.dtype())?;
        out.set_flag_fresh(Flag::WRAPPED_NUMBER);
        Ok(out)
    }

    /// The only element, if it is an `f32` or `f64` and no layer has to see the read.
    #[inline]
    pub fn item_float(&self) -> Option<f64> {
        if self.numel() != 1 || !super::KeySet::joined(self.flags()).is_empty() {
            return None;
        }
        let ptr = self.data_ptr();
        // SAFETY: one live element of this dtype.
        unsafe {
            match self.dtype() {
                DType::F32 => Some(f64::from(ptr.cast::<f32>().read())),
                DType::F64 => Some(ptr.cast::<f64>().read()),
                _ => None,
            }
        }
    }
    /// The only element, as [`Tensor::item`] returns it where no layer overrides the op.
    ///
    /// # Errors
    /// `RuntimeError` unless there is exactly one element.
    pub fn element(&self) -> Result<Scalar> {
        let n = self.numel();
        ensure!(n == 1, runtime, "a Tensor with {n} elements cannot be converted to Scalar");
        self.check_elements()?;
        ensure!(
            self.dtype() != DType::F4E2M1FNX2,
            not_implemented,
            "{}",
            no_numbers(self.dtype()).marked()
        );
        Ok(self.element_at(0))
    }
}

/// The error for a dtype whose elements are no single numbers: two of four bits in a byte.
#[cold]
pub(crate) fn no_numbers(dtype: DType) -> Error {
    let name = dtype.scalar_name();
    Error::not_implemented(format!("\"_local_scalar_dense_cpu\" not implemented for '{name}'"))
}

impl Geometry {
    /// Checks that a view of `shape`/`strides` from `offset` stays inside the storage.
    pub(crate) fn check_bounds(&self, shape: &[i64], strides: &[i64], offset: i64) -> Result<()> {
        let have = self.storage.as_ref().map_or(0, super::Storage::nbytes);
        check_fits(shape, strides, (offset, self.dtype, have))
    }
}
