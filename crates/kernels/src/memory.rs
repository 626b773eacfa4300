//! Work areas whose size depends on shapes or data: memory that may be refused.
//!
//! The standard library's vectors abort the process when there is no memory for them. What is made here gives an
//! [`Error::out_of_memory`] with the size instead, which leaves the library as usable as before. Whatever a shape, a count or
//! a value decides the length of comes from here; `cargo xtask tidy` names the places where it does not. Memory that the
//! rank, the number of arguments or a constant bounds may come from the standard library.
//!
//! A kernel that writes into a tensor of its caller asks for everything it needs before the first write, so that one that
//! fails leaves the tensor as it was.

use crate::{Error, Result};
use smallvec::SmallVec;
use std::cell::Cell;

/// What happens on this thread when an allocation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnAllocFailure {
    /// The process aborts: the standard library or a dependency allocates.
    Abort,
    /// The process aborts, but a call of [`probe`] has checked before that as much memory is available ([`after_probe`]).
    AbortAfterProbe,
    /// The failure is returned as an error.
    Error,
}

thread_local! {
    static ON_ALLOC_FAILURE: Cell<OnAllocFailure> = const { Cell::new(OnAllocFailure::Abort) };
}

/// What happens if an allocation of this thread fails now. Test allocators that fail on purpose call this.
pub fn on_alloc_failure() -> OnAllocFailure {
    ON_ALLOC_FAILURE.try_with(Cell::get).unwrap_or(OnAllocFailure::Abort)
}

#[inline(always)]
fn during<R>(on_alloc_failure: OnAllocFailure, work: impl FnOnce() -> R) -> R {
    /// Marks the end of the time in which allocations may fail, also if a panic ends it.
    struct End(OnAllocFailure);
    impl Drop for End {
        #[inline(always)]
        fn drop(&mut self) {
            let _ = ON_ALLOC_FAILURE.try_with(|now| now.set(self.0));
        }
    }
    let before = ON_ALLOC_FAILURE.try_with(|now| now.replace(on_alloc_failure));
    let _end = End(before.unwrap_or(OnAllocFailure::Abort));
    work()
}

/// Runs `allocate`, which returns an error if an allocation fails.
#[inline(always)]
pub fn fallibly<R>(allocate: impl FnOnce() -> R) -> R {
    during(OnAllocFailure::Error, allocate)
}

/// Runs code of a dependency that aborts when an allocation fails; it may allocate no more than [`probe`] has checked.
#[inline(always)]
pub fn after_probe<R>(work: impl FnOnce() -> R) -> R {
    during(OnAllocFailure::AbortAfterProbe, work)
}

/// Checks that `bytes` bytes can be allocated now, by allocating and freeing them, for code that would abort otherwise.
///
/// # Errors
/// `OutOfMemoryError` if they cannot.
pub fn probe(bytes: usize) -> Result<()> {
    with_capacity::<u8>(bytes).map(drop)
}

/// A growable list whose allocations can fail.
pub trait Buffer: Extend<Self::Item> {
    /// The type of the list's items.
    type Item;
    /// The number of items.
    fn count(&self) -> usize;
    /// The number of items that fit without another allocation.
    fn capacity(&self) -> usize;
    /// Makes room for so many items more, exactly or with some to spare; false if there is no memory.
    fn try_reserve(&mut self, more: usize, is_exact: bool) -> bool;
}

/// Implements [`Buffer`] for a type with the methods of `Vec`.
macro_rules! buffer {
    ([$($parameter:tt)*] $list:ty, $item:ty) => {
        impl<$($parameter)*> Buffer for $list {
            type Item = $item;
            #[inline(always)]
            fn count(&self) -> usize {
                self.len()
            }
            #[inline(always)]
            fn capacity(&self) -> usize {
                self.capacity()
            }
            fn try_reserve(&mut self, more: usize, is_exact: bool) -> bool {
                let outcome = fallibly(|| {
                    if is_exact {
                        self.try_reserve_exact(more)
                    } else {
                        <$list>::try_reserve(self, more)
                    }
                });
                outcome.is_ok()
            }
        }
    };
}
buffer!([T] Vec<T>, T);
buffer!([A: smallvec::Array] SmallVec<A>, A::Item);

#[cold]
#[inline(never)]
fn refused<B: Buffer>(buffer: &B, more: usize) -> Error {
    Error::out_of_memory(buffer.count().saturating_add(more).saturating_mul(size_of::<B::Item>()))
}

/// Makes room for exactly `more` items.
#[inline]
pub fn reserve<B: Buffer>(buffer: &mut B, more: usize) -> Result<()> {
    if more > buffer.capacity() - buffer.count() && !buffer.try_reserve(more, true) {
        return Err(refused(buffer, more));
    }
    Ok(())
}

/// Makes room for `more` items, and some to spare where there are items already: for lists that grow again and again.
#[inline]
pub fn grow<B: Buffer>(buffer: &mut B, more: usize) -> Result<()> {
    let is_first = buffer.count() == 0;
    if more > buffer.capacity() - buffer.count() && !buffer.try_reserve(more, is_first) {
        return Err(refused(buffer, more));
    }
    Ok(())
}

/// An empty list with room for `n` items.
#[inline]
pub fn with_capacity<T>(n: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    reserve(&mut list, n)?;
    Ok(list)
}

/// `n` times `value`.
#[inline]
pub fn filled<T: Clone>(value: T, n: usize) -> Result<Vec<T>> {
    let mut list = with_capacity(n)?;
    list.resize(n, value);
    Ok(list)
}

/// A list of what `slice` holds.
#[inline]
pub fn copied<T: Clone>(slice: &[T]) -> Result<Vec<T>> {
    let mut list = with_capacity(slice.len())?;
    list.extend_from_slice(slice);
    Ok(list)
}

/// Makes `list` `n` items long; new ones are `value`.
#[inline]
pub fn resize<T: Clone>(list: &mut Vec<T>, n: usize, value: T) -> Result<()> {
    reserve(list, n.saturating_sub(list.len()))?;
    list.resize(n, value);
    Ok(())
}

/// Appends one item.
#[inline]
pub fn push<B: Buffer>(buffer: &mut B, item: B::Item) -> Result<()> {
    if buffer.count() == buffer.capacity() && !buffer.try_reserve(1, false) {
        return Err(refused(buffer, 1));
    }
    buffer.extend(std::iter::once(item));
    Ok(())
}

/// Appends what `items` gives, which should say how many they are.
#[inline]
pub fn extend<B: Buffer>(buffer: &mut B, items: impl IntoIterator<Item = B::Item>) -> Result<()> {
    let mut items = items.into_iter();
    grow(buffer, items.size_hint().0)?;
    // What is announced fits; the rest, if there is more, comes item by item.
    let announced = buffer.capacity() - buffer.count();
    buffer.extend(items.by_ref().take(announced));
    items.try_for_each(|item| push(buffer, item))
}

/// A list of what `items` gives, which should say how many they are.
#[inline]
pub fn collect<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let mut list = Vec::new();
    extend(&mut list, items)?;
    Ok(list)
}

/// Appends text.
#[inline]
pub fn push_str(text: &mut String, more: &str) -> Result<()> {
    let reserved = fallibly(|| text.try_reserve(more.len()));
    reserved.map_err(|_| Error::out_of_memory(text.len().saturating_add(more.len())))?;
    text.push_str(more);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn lists_hold_what_the_standard_librarys_would() {
        assert_eq!(filled(7_u8, 5).unwrap(), [7; 5]);
        assert_eq!(copied(&[1, 2, 3]).unwrap(), [1, 2, 3]);
        assert_eq!(collect(0..100).unwrap(), (0..100).collect::<Vec<_>>());
        assert_eq!(collect((0..100).filter(|i| i % 7 == 0)).unwrap().len(), 15);
        let mut list = with_capacity(3).unwrap();
        extend(&mut list, [1, 2]).unwrap();
        (3..50).for_each(|i| push(&mut list, i).unwrap());
        assert_eq!(list, (1..50).collect::<Vec<_>>());
        resize(&mut list, 2, 0).unwrap();
        resize(&mut list, 4, 9).unwrap();
        assert_eq!(list, [1, 2, 9, 9]);
        let mut small = SmallVec::<[i32; 2]>::new();
        extend(&mut small, 0..9).unwrap();
        push(&mut small, 9).unwrap();
        assert_eq!(small[..], (0..10).collect::<Vec<_>>()[..]);
    }

    #[test]
    fn what_is_not_there_is_an_error_with_its_size() {
        for n in [1 << 59, usize::MAX] {
            let error = filled(0_i64, n).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
            assert!(error.message().contains("allocate memory"), "{error}");
            assert!(error.message().contains(&n.saturating_mul(8).to_string()), "{error}");
            let mut list = vec![1_i64];
            assert!(resize(&mut list, n, 0).is_err());
            assert_eq!(list, [1]);
        }
        assert_eq!(on_alloc_failure(), OnAllocFailure::Abort);
        fallibly(|| {
            after_probe(|| assert_eq!(on_alloc_failure(), OnAllocFailure::AbortAfterProbe));
            assert_eq!(on_alloc_failure(), OnAllocFailure::Error);
        });
        assert_eq!(on_alloc_failure(), OnAllocFailure::Abort);
    }
}
