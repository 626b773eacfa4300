//! The layout of a program's intermediates in one block of memory.
//!
//! Each lives from the instruction that makes it to the last one that uses it. The largest are placed first, each at the lowest
//! address that no other one has at the same time (first fit by decreasing size; J. K. Lee and Y. Pisarchyk, "Efficient Memory
//! Management for Deep Neural Net Inference", 2020). Invariant: of two that are alive at one instruction, no byte is shared.

use pullback_kernels::memory;

/// The alignment of intermediates, which is that of the allocator.
const ALIGNED: usize = 64;

/// The first and last use of an intermediate, and its size.
#[derive(Clone, Copy)]
pub(super) struct Life {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) bytes: usize,
}

/// The offsets of all intermediates, in their order, and the size of the block.
///
/// # Errors
/// Out of memory.
pub(super) fn place(lives: &[Life]) -> crate::Result<(Vec<usize>, usize)> {
    let mut places: Vec<usize> = memory::filled(0, lives.len())?;
    let mut order: Vec<usize> = memory::collect(0..lives.len())?;
    order.sort_by_key(|&at| (std::cmp::Reverse(lives[at].bytes), lives[at].first));
    // The intermediates laid out so far, by their addresses.
    let mut placed: Vec<usize> = memory::with_capacity(lives.len())?;
    let mut total = 0;
    for at in order {
        let life = lives[at];
        let mut start = 0;
        for &other in &placed {
            let there = lives[other];
            let meets = there.first <= life.last && life.first <= there.last;
            if meets && places[other] < start + life.bytes {
                start = start.max((places[other] + there.bytes).next_multiple_of(ALIGNED));
            }
        }
        places[at] = start;
        total = total.max(start + life.bytes);
        let slot = placed.partition_point(|&other| places[other] <= start);
        placed.insert(slot, at);
    }
    Ok((places, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(first: usize, last: usize, bytes: usize) -> Life {
        Life { first, last, bytes }
    }

    #[test]
    fn a_chain_needs_two_places() {
        let lives: Vec<Life> = (0..10).map(|at| life(at, at + 1, 64)).collect();
        assert_eq!(place(&lives).unwrap().1, 128);
    }

    #[test]
    fn no_byte_is_shared_by_two_that_are_alive_together() {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let lives: Vec<Life> = (0..200)
            .map(|_| {
                let first = next(100) as usize;
                life(first, first + next(20) as usize, next(1000) as usize)
            })
            .collect();
        let (places, total) = place(&lives).unwrap();
        for (a, x) in lives.iter().enumerate() {
            assert!(places[a] % ALIGNED == 0 && places[a] + x.bytes <= total);
            for (b, y) in lives.iter().enumerate().skip(a + 1) {
                let meets = x.first <= y.last && y.first <= x.last;
                let apart = places[a] + x.bytes <= places[b] || places[b] + y.bytes <= places[a];
                assert!(!meets || apart || x.bytes == 0 || y.bytes == 0);
            }
        }
    }
}
