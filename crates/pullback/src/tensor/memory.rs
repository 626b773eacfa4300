//! The caching allocator of tensors' memory.
//!
//! Blocks are 64-byte aligned and come in size classes. Classes up to 4 KiB live in thread-local
//! pools (taking one is a few instructions); larger ones in one shared cache, because returning
//! memory to the system means page faults at the next use, which cost more than most kernels. The
//! size of the cache is bounded by what was live recently, so that a loop whose sizes change does
//! not leave blocks behind that are never used again; the least recently freed blocks are released
//! first. With `--cfg pullback_sanitize` there is no cache (`IS_EXACT`): AddressSanitizer sees only
//! what goes to the system. Invariant: a block's class is a function of its requested size alone,
//! so freeing needs no look-up.

use crate::local::local;
use crate::{Error, Result};
use pullback_kernels::memory::fallibly;
use std::alloc::{GlobalAlloc, Layout, System, alloc, dealloc};
use std::collections::{BTreeMap, VecDeque};
use std::ptr::{NonNull, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

const ALIGN: usize = 64;
/// Whether each block has the requested size and goes back to the system at once, so that a
/// sanitizer sees an access beyond its end or after its time. (What is cached or rounded up is
/// memory like any other to it.)
const IS_EXACT: bool = cfg!(pullback_sanitize);
const SMALL: usize = 4096;
/// Small classes are multiples of 64 bytes.
const SMALL_CLASSES: usize = SMALL / ALIGN;
/// The size from which blocks come from the C library, whatever the process's allocator is. An
/// allocator that maps memory without asking the kernel to account for it, as mimalloc does, grants
/// terabytes that are not there; the process is then killed at the first write, where it should
/// have had an error.
pub const FROM_KERNEL: usize = 1 << 30;
/// Bytes of small blocks that a thread takes or returns before it tells the global counter.
const MOST_UNREPORTED: isize = 1 << 16;
/// How many free blocks of one small class a thread keeps.
const SMALL_KEPT: usize = 256;

/// Bytes in blocks that tensors hold (large blocks exactly; small ones are added on reading).
static LARGE_LIVE: AtomicUsize = AtomicUsize::new(0);
static SMALL_LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CACHED: AtomicUsize = AtomicUsize::new(0);
/// Most bytes the shared cache keeps, whatever was live; beyond it blocks go back to the system.
static CACHE_LIMIT: AtomicUsize = AtomicUsize::new(4 << 30);
/// Bytes that the cache keeps, however little was live.
const ALWAYS_KEPT: usize = 256 << 20;
/// Large blocks taken in one window of [`BlockCache::peaks`]: more than the passes of a training loop take.
const WINDOW: u32 = 1 << 16;
static LARGE: Mutex<BlockCache> =
    Mutex::new(BlockCache { free: BTreeMap::new(), clock: 0, taken: 0, peaks: [0; 2] });

/// The free large blocks.
struct BlockCache {
    /// By size, each with the time it was freed; those freed last are at the end, and are taken first.
    free: BTreeMap<usize, VecDeque<(u64, FreeBlock)>>,
    /// Counts the blocks that were freed.
    clock: u64,
    /// Blocks taken in the present window.
    taken: u32,
    /// The most bytes that were live in the present window, and in the one before.
    peaks: [usize; 2],
}

impl BlockCache {
    /// A free block of this size, if there is one.
    fn take(&mut self, size: usize) -> Option<FreeBlock> {
        self.taken += 1;
        if self.taken == WINDOW {
            (self.taken, self.peaks) = (0, [0, self.peaks[0]]);
        }
        self.free.get_mut(&size)?.pop_back().map(|(_, block)| block)
    }
    /// The most bytes to keep. A loop has its blocks in more sizes than are live at once: half as much again
    /// lets it find all of them next time.
    fn bound(&self) -> usize {
        let peak = self.peaks[0].max(self.peaks[1]);
        CACHE_LIMIT.load(Relaxed).min(ALWAYS_KEPT.max(peak + peak / 2))
    }
    /// Keeps a block, or gives it back if nothing of its size may be kept.
    fn put(&mut self, block: FreeBlock, size: usize) -> Option<FreeBlock> {
        if IS_EXACT || size > self.bound() {
            return Some(block);
        }
        self.clock += 1;
        CACHED.fetch_add(size, Relaxed);
        self.free.entry(size).or_default().push_back((self.clock, block));
        None
    }
    /// Takes out the least recently freed block, if the cache holds more than it may.
    fn pop_excess(&mut self) -> Option<(usize, FreeBlock)> {
        if CACHED.load(Relaxed) <= self.bound() {
            return None;
        }
        let oldest =
            |(&size, list): (&usize, &VecDeque<(u64, FreeBlock)>)| Some((list.front()?.0, size));
        let (_, size) = self.free.iter().filter_map(oldest).min()?;
        let list = self.free.get_mut(&size)?;
        let (_, block) = list.pop_front()?;
        if list.is_empty() {
            self.free.remove(&size);
        }
        CACHED.fetch_sub(size, Relaxed);
        Some((size, block))
    }
}

fn cache() -> std::sync::MutexGuard<'static, BlockCache> {
    LARGE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

struct FreeBlock(NonNull<u8>);
// SAFETY: a free block is owned by whoever holds this value.
unsafe impl Send for FreeBlock {}

/// A thread's free blocks.
pub(crate) struct Pool {
    free: [Vec<FreeBlock>; SMALL_CLASSES + 1],
    /// Bytes taken less bytes returned on this thread since it last told the global counter.
    unreported: isize,
    /// The bound of that number; negative while the thread is observed, so that each block is
    /// reported.
    most_unreported: isize,
    /// The observer of the thread's memory.
    observer: Option<MemoryObserver>,
}

impl Pool {
    /// Counts a block of `size` bytes as returned and keeps it. Returns the block instead if there
    /// are many already, or if it is time to [`report`].
    #[inline(always)]
    fn put(&mut self, block: FreeBlock, size: usize) -> Option<(FreeBlock, bool)> {
        if self.count(-(size as isize)) {
            return Some((block, true));
        }
        self.keep(block, size).map(|block| (block, false))
    }
    /// Keeps a block, or returns it if there are many already.
    #[inline(always)]
    fn keep(&mut self, block: FreeBlock, size: usize) -> Option<FreeBlock> {
        let list = &mut self.free[size / ALIGN];
        if list.len() < SMALL_KEPT {
            list.push(block);
            return None;
        }
        Some(block)
    }
    /// Counts bytes as taken (or returned); whether it is time to [`report`].
    #[inline(always)]
    fn count(&mut self, bytes: isize) -> bool {
        self.unreported += bytes;
        self.unreported.abs() > self.most_unreported
    }
}

/// Adds what the thread's pool took and returned to the global counter, which [`live_bytes`] of other threads sees.
#[cold]
#[inline(never)]
pub(crate) fn report() {
    let bytes = with_pool(|pool| std::mem::take(&mut pool.unreported));
    SMALL_LIVE.fetch_add(bytes.unwrap_or(0), Relaxed);
    note_peak();
}

impl Drop for Pool {
    fn drop(&mut self) {
        SMALL_LIVE.fetch_add(self.unreported, Relaxed);
        self.clear();
    }
}

impl Pool {
    fn clear(&mut self) {
        for (class, list) in self.free.iter_mut().enumerate() {
            for block in list.drain(..) {
                to_system(block, class * ALIGN);
            }
        }
    }
}

/// Ends the thread's pool with the thread.
struct PoolOwner;

impl Drop for PoolOwner {
    fn drop(&mut self) {
        let pool = local().pool.replace(null_mut());
        if !pool.is_null() {
            // SAFETY: made by `start_pool`, and reached by nobody any more.
            drop(unsafe { Box::from_raw(pool) });
        }
    }
}

/// Runs `f` on the thread's pool, if it has one (any more). `f` must not come back here.
#[inline(always)]
fn with_pool<R>(f: impl FnOnce(&mut Pool) -> R) -> Option<R> {
    let mut pool = local().pool.get();
    if pool.is_null() {
        pool = start_pool()?;
    }
    // SAFETY: alive until the thread ends; only reached here, by one call at a time.
    Some(f(unsafe { &mut *pool }))
}

/// The thread's pool, made now; none if the thread is ending.
#[cold]
#[inline(never)]
fn start_pool() -> Option<*mut Pool> {
    thread_local! {
        static OWNER: PoolOwner = const { PoolOwner };
    }
    OWNER.try_with(|_| ()).ok()?;
    let free = [const { Vec::new() }; SMALL_CLASSES + 1];
    let pool = Pool { free, unreported: 0, most_unreported: MOST_UNREPORTED, observer: None };
    let pool = Box::into_raw(Box::new(pool));
    local().pool.set(pool);
    super::key::begin_tracing();
    Some(pool)
}

/// The size a request of `bytes` is rounded up to.
fn class_size(bytes: usize) -> Option<usize> {
    if IS_EXACT {
        return Some(bytes.max(1)).filter(|&b| b <= isize::MAX as usize / 2);
    }
    if bytes <= SMALL {
        return Some(bytes.max(1).next_multiple_of(ALIGN));
    }
    // Eight classes per power of two: at most 12.5 % of a block is unused.
    let step = (bytes.checked_next_power_of_two()? / 16).max(ALIGN);
    bytes.checked_next_multiple_of(step).filter(|&b| b <= isize::MAX as usize / 2)
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, ALIGN).expect("class sizes are valid layouts")
}

fn from_system(size: usize) -> Option<NonNull<u8>> {
    // SAFETY: the layout has a non-zero size.
    NonNull::new(fallibly(|| unsafe {
        if size >= FROM_KERNEL { System.alloc(layout(size)) } else { alloc(layout(size)) }
    }))
}

fn to_system(block: FreeBlock, size: usize) {
    // SAFETY: blocks of class `size` were allocated with exactly this layout, by the same allocator.
    unsafe {
        if size >= FROM_KERNEL {
            System.dealloc(block.0.as_ptr(), layout(size));
        } else {
            dealloc(block.0.as_ptr(), layout(size));
        }
    }
}

fn note_peak() {
    PEAK.fetch_max(live_bytes(), Relaxed);
}

/// A function that is called for each allocation of elements' memory: with the address and the
/// number of bytes, negative for a release.
pub(crate) type MemoryObserver = fn(usize, isize);

/// Sets the observer of what this thread allocates and releases from now on; `None` removes it.
pub(crate) fn set_observer(observer: Option<MemoryObserver>) {
    with_pool(|pool| {
        pool.observer = observer;
        pool.most_unreported = if observer.is_some() { -1 } else { MOST_UNREPORTED };
    });
}

/// Calls the thread's observer, if it has one and there are elements in the block.
#[cold]
#[inline(never)]
fn tell(block: NonNull<u8>, elements: isize) {
    let observer = with_pool(|pool| pool.observer).flatten();
    if elements != 0
        && let Some(tell) = observer
    {
        tell(block.as_ptr().addr(), elements);
    }
}

/// Takes a block of at least `bytes` bytes (64-byte aligned, not initialised).
#[inline(always)]
pub(crate) fn allocate(bytes: usize) -> Result<NonNull<u8>> {
    allocate_with(bytes, 0)
}

/// Allocates a block of which a tensor's elements take so many bytes, the number that observers
/// get.
#[inline]
pub(crate) fn allocate_with(bytes: usize, elements: usize) -> Result<NonNull<u8>> {
    if bytes <= SMALL && !IS_EXACT {
        let size = bytes.max(1).next_multiple_of(ALIGN);
        let is_due = |pool: &mut Pool| pool.count(size as isize);
        return match with_pool(|pool| (!is_due(pool)).then(|| pool.free[size / ALIGN].pop())) {
            Some(Some(Some(block))) => Ok(block.0),
            Some(None) => allocate_reported(size, elements),
            Some(Some(None)) | None => from_system(size).ok_or_else(|| out_of_memory(bytes)),
        };
    }
    allocate_large(bytes, elements)
}

/// Takes a block of `size` bytes when it is time to report.
#[cold]
#[inline(never)]
fn allocate_reported(size: usize, elements: usize) -> Result<NonNull<u8>> {
    report();
    let pooled = with_pool(|pool| pool.free[size / ALIGN].pop()).flatten();
    let block = pooled.map(|block| block.0).or_else(|| from_system(size));
    let block = block.ok_or_else(|| out_of_memory(size))?;
    tell(block, elements as isize);
    Ok(block)
}

#[inline(never)]
fn allocate_large(bytes: usize, elements: usize) -> Result<NonNull<u8>> {
    let size = class_size(bytes).ok_or_else(|| out_of_memory(bytes))?;
    let cached = cache().take(size);
    let block = if let Some(block) = cached {
        CACHED.fetch_sub(size, Relaxed);
        block.0
    } else if let Some(block) = from_system(size) {
        block
    } else {
        empty_cache();
        from_system(size).ok_or_else(|| out_of_memory(bytes))?
    };
    LARGE_LIVE.fetch_add(size, Relaxed);
    note_peak();
    tell(block, elements as isize);
    Ok(block)
}

/// Gives back a block that [`allocate`] returned for `bytes`.
///
/// # Safety
/// `block` came from `allocate(bytes)` and nobody uses it any more.
#[inline(always)]
pub(crate) unsafe fn release(block: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { release_with(block, bytes, 0) }
}

/// Releases a block that [`allocate_with`] returned.
///
/// # Safety
/// As [`release`].
#[inline]
pub(crate) unsafe fn release_with(block: NonNull<u8>, bytes: usize, elements: usize) {
    if bytes <= SMALL && !IS_EXACT {
        let size = bytes.max(1).next_multiple_of(ALIGN);
        return match with_pool(|pool| pool.put(FreeBlock(block), size)) {
            Some(None) => {}
            Some(Some((block, true))) => release_reported(block, size, elements),
            Some(Some((block, false))) => to_system(block, size),
            None => to_system(FreeBlock(block), size),
        };
    }
    tell(block, -(elements as isize));
    release_large(FreeBlock(block), bytes);
}

/// Gives a small block back when it is time to report.
#[cold]
#[inline(never)]
fn release_reported(block: FreeBlock, size: usize, elements: usize) {
    report();
    tell(block.0, -(elements as isize));
    if let Some(Some(block)) = with_pool(|pool| pool.keep(block, size)) {
        to_system(block, size);
    }
}

#[inline(never)]
fn release_large(block: FreeBlock, bytes: usize) {
    let size = class_size(bytes).expect("the size was valid when the block was allocated");
    // (Live bytes are greatest just before something is freed.)
    let live = live_bytes();
    LARGE_LIVE.fetch_sub(size, Relaxed);
    let mut shared = cache();
    shared.peaks[0] = shared.peaks[0].max(live);
    let mut excess = shared.put(block, size).map(|block| (size, block));
    if excess.is_none() {
        excess = shared.pop_excess();
    }
    drop(shared);
    while let Some((size, block)) = excess {
        to_system(block, size);
        excess = cache().pop_excess();
    }
}

#[cold]
fn out_of_memory(bytes: usize) -> Error {
    pullback_kernels::Error::out_of_memory(bytes).into()
}

/// Bytes in blocks that tensors hold now (rounded up to block sizes).
pub fn live_bytes() -> usize {
    let own = with_pool(|pool| pool.unreported).unwrap_or(0);
    LARGE_LIVE.load(Relaxed).saturating_add_signed(SMALL_LIVE.load(Relaxed) + own)
}

/// Bytes of freed large blocks kept for the next allocation.
pub fn cached_bytes() -> usize {
    CACHED.load(Relaxed)
}

/// The most [`live_bytes`] has been since the start or the last [`reset_peak`]: exact for blocks over
/// 4 KiB, smaller ones are counted in steps of 64 KiB.
pub fn peak_bytes() -> usize {
    note_peak();
    PEAK.load(Relaxed)
}

/// Lets [`peak_bytes`] start again from the present.
pub fn reset_peak() {
    PEAK.store(live_bytes(), Relaxed);
}

/// Returns every cached block of the shared cache, and of this thread's pools, to the system.
pub fn empty_cache() {
    let all = std::mem::take(&mut cache().free);
    for (size, blocks) in all {
        for (_, block) in blocks {
            CACHED.fetch_sub(size, Relaxed);
            to_system(block, size);
        }
    }
    with_pool(Pool::clear);
}

/// Sets how many bytes of freed blocks the shared cache may keep at most. Below that it keeps half as much again as
/// was live lately, and at least 256 MiB.
pub fn set_cache_limit(bytes: usize) {
    CACHE_LIMIT.store(bytes, Relaxed);
}
