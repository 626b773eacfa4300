//! The tensor record and its counted handle.
//!
//! Everything here is about the record's memory: counting, the slots, swapping geometries. The
//! record comes from the allocator's small pools. The count is exact and readable, because autograd
//! reuses buffers that nothing else holds, and the Python binding decides by it whether wrapper or
//! tensor owns the other.

use super::{
    Counts, Device, Dims, Geometry, Key, KeySet, Layout, SpinLock, Storage, birth, checked_numel,
    memory, replaced,
};
use crate::autograd::{AccumulatorSlot, AutogradMeta, Node};
use crate::host::host;
use crate::{DType, Result};
use smallvec::SmallVec;
use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

/// An n-dimensional array that can remember how it was computed.
///
/// Cloning copies the handle, not the elements. The methods that are ops are listed by family in the module
/// [`ops`](crate::ops).
#[repr(transparent)]
pub struct Tensor(NonNull<TensorRecord>);

/// A handle that does not keep its tensor alive.
pub struct WeakTensor(NonNull<TensorRecord>);

/// Facts about a tensor, and its dispatch keys ([`Key`]), one bit each.
pub(crate) struct Flag;
impl Flag {
    /// The flag `requires_grad` of a leaf.
    pub(crate) const REQUIRES_GRAD: u32 = 1;
    /// `grad_fn` is set.
    pub(crate) const HAS_GRAD_FN: u32 = 2;
    /// Stands for a Python number: lower priority in type promotion.
    pub(crate) const WRAPPED_NUMBER: u32 = 4;
    /// Made in inference mode.
    pub(crate) const INFERENCE: u32 = 8;
    /// A view that autograd tracks: `base` is set.
    pub(crate) const VIEW: u32 = 16;
    /// Keeps its gradient although it is no leaf.
    pub(crate) const RETAINS_GRAD: u32 = 32;
    /// The Python wrapper is kept alive by this record (see the Python crate).
    pub(crate) const OWNS_PYTHON: u32 = 64;
    /// A leaf whose gradients go to another leaf's accumulator.
    pub(crate) const SHARED_ACCUMULATOR: u32 = 128;
    /// A view that keeps the ops which made it (see `autograd::variable::replay`).
    pub(crate) const REPLAYS: u32 = 1 << 12;
    /// Has a tangent, or had one until its level ended.
    pub(crate) const DUAL: u32 = 1 << 13;
    /// A view whose tangent is its own and not its base's.
    pub(crate) const OWN_TANGENT: u32 = 1 << 14;
    /// A view whose tangent is that of another tensor than its base.
    pub(crate) const FORWARD_BASE: u32 = 1 << 15;
    /// All of these; the other bits are the tensor's dispatch keys.
    pub(crate) const FACTS: u32 = 0x1_ffff;
    /// Its class has a `__torch_dispatch__`, which computes its ops (see `dispatch::python`).
    pub(crate) const PYTHON: u32 = Key::Python as u32;
    /// Its ops are computed for a whole batch (see `autograd::batch`).
    pub(crate) const BATCHED: u32 = Key::FuncTorchBatched as u32;
    /// Its elements are in tensors of its own (see `sparse`).
    pub(crate) const SPARSE: u32 = Key::Sparse as u32 | Key::SparseCsr as u32;
    /// Shows the conjugates of what its memory holds (see `unresolved`).
    pub(crate) const CONJ: u32 = Key::Conjugate as u32;
    /// Shows the negatives of what its memory holds.
    pub(crate) const NEG: u32 = Key::Negative as u32;
    /// One of the two sign bits, or both.
    pub(crate) const UNRESOLVED: u32 = Self::CONJ | Self::NEG;
    /// Its own sizes, strides or offset were set: it may not show all that its views show.
    pub(crate) const RESTRIDED: u32 = 1 << 16;
    /// Bits 8..12: how a view was made (`CreationMeta`).
    pub(crate) const CREATION_SHIFT: u32 = 8;
}

struct TensorRecord {
    counts: Counts,
    flags: AtomicU32,
    output_nr: AtomicU32,
    /// For views: the version their `grad_fn` was computed at.
    attr_version: AtomicU32,
    /// The birth of the tensor, or of its base: see `birth`. (The field lies where there would be a
    /// gap.)
    birth: AtomicU32,
    geometry: AtomicPtr<Geometry>,
    grad_fn: SpinLock<Option<Node>>,
    /// The handle of a view's base; null for others. Written once.
    base: AtomicPtr<TensorRecord>,
    /// The node that adds to a leaf's gradient.
    accumulator: AccumulatorSlot,
    meta: OnceLock<Box<Mutex<AutogradMeta>>>,
    python: AtomicPtr<()>,
    first: UnsafeCell<std::mem::MaybeUninit<Geometry>>,
    /// Further geometries: the current one and replaced ones, which others may still be reading. Boxes that this record owns, and that `geometry` and borrowed sizes point into.
    retired: SpinLock<Vec<NonNull<Geometry>>>,
}

// SAFETY: all fields that change do so through atomics and locks.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}
// SAFETY: a weak handle touches only the counts until it is upgraded.
unsafe impl Send for WeakTensor {}
// SAFETY: as above.
unsafe impl Sync for WeakTensor {}

impl Tensor {
    /// A tensor of this geometry, without history.
    #[inline(always)]
    pub(crate) fn from_geometry(geometry: Geometry) -> Result<Tensor> {
        let keys = geometry.keys();
        // SAFETY: it is moved to the place.
        unsafe { Tensor::make(keys, |ptr| geometry.move_to(ptr)) }
    }

    /// A tensor of the geometry that `construct` returns, without history. The record is allocated first, so that the geometry
    /// is constructed where it stays: one that exists before is moved there by a call of `memcpy`.
    #[inline(always)]
    pub(crate) fn constructed(construct: impl FnOnce() -> Result<Geometry>) -> Result<Tensor> {
        let ptr = memory::allocate(size_of::<TensorRecord>())?.cast::<TensorRecord>();
        match construct() {
            Ok(geometry) => {
                let keys = geometry.keys();
                // SAFETY: the block is fresh, large and aligned enough, and the geometry is moved into it.
                Ok(unsafe { Tensor::write(ptr, keys, |ptr| geometry.move_to(ptr)) })
            }
            Err(error) => {
                // SAFETY: allocated above with this size, and nobody knows it.
                unsafe { memory::release(ptr.cast(), size_of::<TensorRecord>()) };
                Err(error)
            }
        }
    }

    /// A row-major tensor of these sizes in main memory, elements not set.
    ///
    /// # Errors
    /// `RuntimeError` for negative sizes and for overflow; out of memory.
    #[inline(always)]
    pub(crate) fn row_major(shape: &Dims, dtype: DType) -> Result<Tensor> {
        let numel = checked_numel(shape)?;
        let storage = Storage::uninitialized(numel as usize * dtype.size())?;
        let ptr = memory::allocate(size_of::<TensorRecord>())?.cast::<TensorRecord>();
        // SAFETY: the block is made for a record with a geometry in it; sizes and storage belong together. (A strided tensor in
        // main memory has no keys. Not by `Tensor::make`, which would put all this together in memory for its function first.)
        unsafe {
            let first = (&raw mut (*ptr.as_ptr()).first).cast();
            Geometry::write_row_major(first, storage, shape, numel, dtype);
            Ok(Tensor::write_around(ptr, KeySet::EMPTY))
        }
    }

    /// A tensor of the same geometry, without history.
    #[inline(always)]
    pub(crate) fn of_same_geometry(geometry: &Geometry) -> Result<Tensor> {
        // SAFETY: it is copied to the place.
        unsafe { Tensor::make(geometry.keys(), |ptr| geometry.copy_to(ptr)) }
    }

    /// A tensor with the geometry that `write` puts into place, from which `keys` follow.
    ///
    /// # Safety
    /// `write` writes a geometry, and does not panic.
    #[inline(always)]
    unsafe fn make(keys: KeySet, write: impl FnOnce(*mut Geometry)) -> Result<Tensor> {
        let ptr = memory::allocate(size_of::<TensorRecord>())?.cast::<TensorRecord>();
        // SAFETY: a fresh block, large and aligned enough; the rest is the caller's promise.
        Ok(unsafe { Tensor::write(ptr, keys, write) })
    }

    /// The tensor whose record is at `ptr`, with the geometry that `write` puts into place.
    ///
    /// # Safety
    /// `ptr` is a block from [`memory::allocate`] for a record, which nobody else knows; `write` as for [`Tensor::make`].
    #[inline(always)]
    unsafe fn write(
        ptr: NonNull<TensorRecord>,
        keys: KeySet,
        write: impl FnOnce(*mut Geometry),
    ) -> Tensor {
        // SAFETY: the caller's promise.
        unsafe {
            write((&raw mut (*ptr.as_ptr()).first).cast());
            Tensor::write_around(ptr, keys)
        }
    }

    /// The tensor whose record is at `ptr`, with the geometry that is in place.
    ///
    /// # Safety
    /// `ptr` is a block from [`memory::allocate`] for a record, which nobody else knows and of which the first geometry is
    /// written.
    #[inline(always)]
    unsafe fn write_around(ptr: NonNull<TensorRecord>, keys: KeySet) -> Tensor {
        let raw = ptr.as_ptr();
        // SAFETY: the caller's promise; every field is written before anybody sees it.
        unsafe {
            (&raw mut (*raw).counts).write(Counts::new());
            (&raw mut (*raw).flags).write(AtomicU32::new(keys.word()));
            (&raw mut (*raw).output_nr).write(AtomicU32::new(0));
            (&raw mut (*raw).attr_version).write(AtomicU32::new(0));
            (&raw mut (*raw).birth).write(AtomicU32::new(birth::now()));
            (&raw mut (*raw).geometry).write(AtomicPtr::new((&raw mut (*raw).first).cast()));
            (&raw mut (*raw).grad_fn).write(SpinLock::new(None));
            (&raw mut (*raw).accumulator).write(AccumulatorSlot::default());
            (&raw mut (*raw).base).write(AtomicPtr::new(std::ptr::null_mut()));
            (&raw mut (*raw).meta).write(OnceLock::new());
            (&raw mut (*raw).python).write(AtomicPtr::new(std::ptr::null_mut()));
            (&raw mut (*raw).retired).write(SpinLock::new(Vec::new()));
        }
        Tensor(ptr)
    }

    /// Whether no other handle, strong or weak, exists. Then none can come, for new ones are made from old ones,
    /// and plain reads and writes do what otherwise takes atomic steps.
    #[inline(always)]
    fn is_sole(&self) -> bool {
        self.record().counts.is_sole()
    }

    #[inline(always)]
    fn record(&self) -> &TensorRecord {
        // SAFETY: the record lives as long as this handle counts.
        unsafe { self.0.as_ref() }
    }

    /// Storage, sizes, strides, dtype.
    #[inline(always)]
    pub(crate) fn geometry(&self) -> &Geometry {
        // SAFETY: the pointer always means a geometry that lives as long as the record.
        unsafe { &*self.record().geometry.load(Ordering::Acquire) }
    }

    /// Puts another geometry in place; the old one stays valid for those who are reading it.
    pub(crate) fn set_geometry(&self, geometry: Geometry) {
        let record = self.record();
        let is_retyped = geometry.dtype != self.dtype();
        let keys = geometry.keys();
        if keys != KeySet::of_word(self.flags() & Geometry::KEYS.word()) {
            self.swap_flags(Geometry::KEYS.word(), keys.word());
        }
        record.retired.with(|retired| {
            let current = record.geometry.load(Ordering::Acquire);
            let first = record.first.get().cast::<Geometry>();
            let emptied = std::iter::once(first)
                .chain(retired.iter().map(|old| old.as_ptr()))
                .filter(|_| geometry.storage.is_some())
                // SAFETY: all live as long as the record; one that is not shown is written only under this lock.
                .filter(|&old| old != current && unsafe { (&*old).storage.is_none() })
                // SAFETY: as above.
                .find(|&old| unsafe { (*old).is_alike(&geometry) });
            let next = if let Some(old) = emptied {
                // SAFETY: `drop_replaced` emptied it when nobody read it, and nobody could find it since. Only
                // the fields it emptied are written: its sizes and strides, which are the same, may be borrowed.
                unsafe { Geometry::refill(old, geometry) };
                old
            } else {
                let boxed = Box::into_raw(Box::new(geometry));
                retired.extend(NonNull::new(boxed));
                boxed
            };
            record.geometry.store(next, Ordering::Release);
        });
        replaced::note_tensor(self);
        if is_retyped && let Some(host) = host() {
            host.dtype_changed(self);
        }
    }

    /// Lets go of the memory of geometries that were replaced; their sizes and strides stay.
    ///
    /// # Safety
    /// Nobody holds one of those geometries, or a reference to their storage.
    pub(super) unsafe fn drop_replaced(&self) {
        let record = self.record();
        // Storages are released without the lock, because an owner outside of the library may run
        // any code.
        let mut gone: SmallVec<[_; 2]> = SmallVec::new();
        record.retired.with(|retired| {
            let current = record.geometry.load(Ordering::Acquire);
            let first = record.first.get().cast::<Geometry>();
            let all = std::iter::once(first).chain(retired.iter().map(|old| old.as_ptr()));
            for old in all.filter(|&old| old != current) {
                // SAFETY: they live as long as the record, and nobody reads these fields, as the caller promises.
                gone.push(unsafe { Geometry::empty(old) });
            }
        });
    }

    /// The sizes.
    #[inline(always)]
    pub fn shape(&self) -> &[i64] {
        &self.geometry().shape
    }
    /// The strides, in elements.
    #[inline(always)]
    pub fn strides(&self) -> &[i64] {
        &self.geometry().strides
    }
    /// Elements of the storage before the first one.
    pub fn storage_offset(&self) -> i64 {
        self.geometry().offset
    }
    /// How many dimensions.
    #[inline(always)]
    pub fn ndim(&self) -> usize {
        self.geometry().shape.len()
    }
    /// How many elements.
    #[inline(always)]
    pub fn numel(&self) -> i64 {
        self.geometry().numel
    }
    /// The element type.
    #[inline(always)]
    pub fn dtype(&self) -> DType {
        self.geometry().dtype
    }
    /// The device.
    #[inline(always)]
    pub fn device(&self) -> Device {
        self.geometry().device
    }
    /// The layout.
    #[inline(always)]
    pub fn layout(&self) -> Layout {
        self.geometry().layout
    }
    /// Whether the elements lie row by row without gaps.
    #[inline(always)]
    pub fn is_contiguous(&self) -> bool {
        self.geometry().is_contiguous
    }
    /// The storage, if the device has memory.
    pub fn storage(&self) -> Option<Storage> {
        self.geometry().storage.clone()
    }
    /// The address of the first element, for reading; code that writes calls
    /// [`Tensor::data_ptr_mut`].
    #[inline(always)]
    pub fn data_ptr(&self) -> *const u8 {
        self.geometry().data_ptr()
    }
    /// The first element's address, to be written. Memory that is shared with a lazy clone is copied first.
    ///
    /// # Errors
    /// Out of memory.
    pub fn data_ptr_mut(&self) -> Result<*mut u8> {
        self.materialize()?;
        Ok(self.geometry().written_ptr())
    }
    /// Makes sure that what is about to be written is not shared with a lazy clone.
    ///
    /// # Errors
    /// As [`Storage::materialize`].
    #[inline(always)]
    pub(crate) fn materialize(&self) -> Result<()> {
        match &self.geometry().storage {
            Some(storage) => storage.materialize(),
            None => Ok(()),
        }
    }
    /// Whether its memory may be shared with lazy clones, so that it is copied before it is
    /// written.
    pub fn is_lazy(&self) -> bool {
        self.geometry().storage.as_ref().is_some_and(Storage::is_lazy)
    }

    /// Whether two handles mean the same tensor.
    #[inline(always)]
    pub fn is_same(&self, other: &Tensor) -> bool {
        self.0 == other.0
    }
    /// Identity of the tensor: equal only for handles of one tensor that is alive.
    pub fn id(&self) -> usize {
        self.0.as_ptr() as usize
    }
    /// How many handles there are.
    #[inline(always)]
    pub fn use_count(&self) -> usize {
        self.record().counts.strong()
    }
    /// A handle that does not keep it alive.
    pub fn downgrade(&self) -> WeakTensor {
        self.record().counts.add_weak();
        WeakTensor(self.0)
    }

    #[inline(always)]
    pub(crate) fn flags(&self) -> u32 {
        self.record().flags.load(Relaxed)
    }
    #[inline(always)]
    pub(crate) fn has_flag(&self, flag: u32) -> bool {
        self.flags() & flag != 0
    }
    pub(crate) fn set_flag(&self, flag: u32, on: bool) {
        if on {
            self.record().flags.fetch_or(flag, Ordering::AcqRel);
        } else {
            self.record().flags.fetch_and(!flag, Ordering::AcqRel);
        }
    }
    /// Replaces the bits in `mask` by `bits`; returns the previous flags.
    pub(super) fn swap_flags(&self, mask: u32, bits: u32) -> u32 {
        let swapped = |flags: u32| Some(flags & !mask | bits);
        let flags = &self.record().flags;
        flags.fetch_update(Ordering::AcqRel, Ordering::Acquire, swapped).unwrap_or_else(|old| old)
    }
    /// Sets bits of a tensor that no other thread can know yet.
    #[inline(always)]
    pub(crate) fn set_flag_fresh(&self, flag: u32) {
        let flags = &self.record().flags;
        flags.store(flags.load(Relaxed) | flag, Relaxed);
    }
    #[inline(always)]
    pub(crate) fn output_slot(&self) -> &AtomicU32 {
        &self.record().output_nr
    }
    #[inline(always)]
    pub(crate) fn attr_version(&self) -> &AtomicU32 {
        &self.record().attr_version
    }
    /// The birth of the tensor; for a view, that of its base.
    #[inline(always)]
    pub(crate) fn birth(&self) -> u32 {
        self.record().birth.load(Relaxed)
    }
    /// Sets the birth of the tensor.
    #[inline(always)]
    pub(crate) fn set_birth(&self, birth: u32) {
        self.record().birth.store(birth, Relaxed);
    }
    #[inline(always)]
    pub(crate) fn grad_fn_slot(&self) -> &SpinLock<Option<Node>> {
        &self.record().grad_fn
    }
    #[inline(always)]
    pub(crate) fn accumulator_slot(&self) -> &AccumulatorSlot {
        &self.record().accumulator
    }
    /// The base of a view.
    #[inline(always)]
    pub(crate) fn base_if_any(&self) -> Option<&Tensor> {
        let slot = &self.record().base;
        if slot.load(Ordering::Acquire).is_null() {
            return None;
        }
        // SAFETY: a `Tensor` is a pointer to a record; this one is counted, and stays once it is written.
        Some(unsafe { &*std::ptr::from_ref(slot).cast::<Tensor>() })
    }
    /// Gives a tensor without any other handle its producer.
    #[inline]
    pub(crate) fn set_grad_fn_fresh(&self, node: Node, nr: u32) -> std::result::Result<(), Node> {
        if !self.is_sole() {
            return Err(node);
        }
        let record = self.record();
        record.output_nr.store(nr, Relaxed);
        record.flags.store(record.flags.load(Relaxed) | Flag::HAS_GRAD_FN, Relaxed);
        // SAFETY: nobody else has a handle, so nobody else can reach the slot.
        drop(unsafe { record.grad_fn.with_alone(|slot| slot.replace(node)) });
        Ok(())
    }
    /// Sets `base` as the base; a tensor has at most one, so that `false` means that it had one.
    pub(crate) fn set_base(&self, base: Tensor) -> bool {
        let slot = &self.record().base;
        let null = std::ptr::null_mut();
        if self.is_sole() && slot.load(Relaxed).is_null() {
            slot.store(base.0.as_ptr(), Ordering::Release);
            std::mem::forget(base);
            return true;
        }
        if slot.compare_exchange(null, base.0.as_ptr(), Ordering::AcqRel, Relaxed).is_err() {
            return false;
        }
        // The slot holds the count now.
        std::mem::forget(base);
        true
    }
    /// The leaf-only and rare state, if there is any.
    #[inline(always)]
    pub(crate) fn meta_if_any(&self) -> Option<&Mutex<AutogradMeta>> {
        self.record().meta.get().map(|m| &**m)
    }
    /// The leaf-only and rare state, made on first use.
    pub(crate) fn meta(&self) -> &Mutex<AutogradMeta> {
        self.record().meta.get_or_init(Box::default)
    }
    /// The slot of the Python wrapper, whose content only the Python binding knows.
    #[inline(always)]
    pub fn python_slot(&self) -> &AtomicPtr<()> {
        &self.record().python
    }
    /// Whether this record keeps its Python wrapper alive.
    pub fn owns_python(&self) -> bool {
        self.has_flag(Flag::OWNS_PYTHON)
    }
    /// Says whether this record keeps its Python wrapper alive.
    pub fn set_owns_python(&self, owns: bool) {
        self.set_flag(Flag::OWNS_PYTHON, owns);
    }
    /// The handle that a wrapper takes over from its record, whose last one is gone: the tensor lives on with it.
    ///
    /// # Safety
    /// `dead` is what [`crate::host::Host::tensor_released`] was given, nobody revived it before, and nobody else does at the same time.
    pub unsafe fn revive(dead: ManuallyDrop<Tensor>) -> Tensor {
        dead.record().counts.revive();
        dead.set_owns_python(false);
        ManuallyDrop::into_inner(dead)
    }
    /// A handle for the wrapper that the record owns, and whether the last one was gone already: then another thread is about
    /// to call [`crate::host::Host::tensor_released`], and the tensor is not for it to revive any more.
    ///
    /// # Safety
    /// The record owns the wrapper (so that it still exists), and nobody else does this at the same time.
    pub unsafe fn take_back(uncounted: &ManuallyDrop<Tensor>) -> (Tensor, bool) {
        let counts = &uncounted.record().counts;
        let is_gone = !counts.try_add_strong();
        if is_gone {
            counts.revive();
        }
        (Tensor(uncounted.0), is_gone)
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let g = self.geometry();
        write!(f, "Tensor({}, shape {:?}, strides {:?})", g.dtype.name(), g.shape, g.strides)
    }
}

impl Clone for Tensor {
    #[inline(always)]
    fn clone(&self) -> Self {
        self.record().counts.add_strong();
        Tensor(self.0)
    }
}

impl Drop for Tensor {
    #[inline(always)]
    fn drop(&mut self) {
        // A wrapper that the record owns may take a handle at any time (`take_back`): then only counting down tells.
        let is_sole = self.is_sole() && self.python_slot().load(Ordering::Acquire).is_null();
        if is_sole || self.record().counts.count_down() {
            drop_record(self.0);
        }
    }
}

/// Takes a record apart whose last handle is gone, unless it has a wrapper to go on with.
#[inline(never)]
fn drop_record(record: NonNull<TensorRecord>) {
    // SAFETY: the last strong handle is gone; weak ones touch only the counts.
    let it = unsafe { record.as_ref() };
    if it.flags.load(Relaxed) & Flag::OWNS_PYTHON != 0 {
        if let Some(host) = host() {
            host.tensor_released(
                it.python.load(Ordering::Acquire),
                ManuallyDrop::new(Tensor(record)),
            );
        }
        return;
    }
    let raw = record.as_ptr();
    // SAFETY: nobody else can reach these fields any more; each is dropped exactly once. `first` was
    // initialised at construction.
    unsafe {
        std::ptr::drop_in_place(&raw mut (*raw).grad_fn);
        if let Some(base) = NonNull::new((*raw).base.load(Ordering::Acquire)) {
            drop(Tensor(base));
        }
        std::ptr::drop_in_place(&raw mut (*raw).meta);
        std::ptr::drop_in_place(&raw mut (*raw).accumulator);
        let retired = (&raw const (*raw).retired).read().into_inner();
        for geometry in retired {
            drop(Box::from_raw(geometry.as_ptr()));
        }
        (*(*raw).first.get()).assume_init_drop();
    }
    release_weak(record);
}

fn release_weak(record: NonNull<TensorRecord>) {
    // SAFETY: the block is alive while the weak count is not zero.
    if unsafe { record.as_ref() }.counts.drop_weak() {
        // SAFETY: allocated with this size, nobody left.
        unsafe { memory::release(record.cast(), size_of::<TensorRecord>()) };
    }
}

impl WeakTensor {
    /// A strong handle, if the tensor is still alive.
    pub fn upgrade(&self) -> Option<Tensor> {
        // SAFETY: the block is alive while this weak handle counts.
        unsafe { self.0.as_ref() }.counts.try_add_strong().then(|| Tensor(self.0))
    }
}

impl Drop for WeakTensor {
    fn drop(&mut self) {
        release_weak(self.0);
    }
}
