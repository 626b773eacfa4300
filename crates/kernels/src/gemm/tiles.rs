//! The processor's tiles (AMX): eight registers of 16 rows of 64 bytes, and the instructions that multiply two of them and add
//! the product to a third.
//!
//! Every instruction that touches a tile stands here. The operating system gives a process the right to tiles once, when it asks
//! ([`are_available`]). A thread has tiles only between the making of a [`TileRegisters`] and its end: what it does not hold need not be
//! saved when threads take turns or a process forks.

use crate::elementwise::copy_tile;

/// Bytes of a tile's row.
pub(super) const ROW_BYTES: usize = 64;
/// Rows of a tile.
pub(super) const ROWS: usize = 16;
/// Words of 32 bits of a tile.
pub(super) const WORDS: usize = ROWS * ROW_BYTES / 4;
/// Rows and columns of the square of sums that four tiles make.
pub(super) const SIDE: usize = 2 * ROWS;

/// Sums of 32 bits, `SIDE` to a row.
#[repr(C, align(64))]
pub(super) struct Sums(pub(super) [u32; SIDE * SIDE]);

impl Sums {
    /// Sums of `f32`.
    pub(super) fn as_f32(&self) -> &[f32] {
        // SAFETY: all bits are numbers of either type, which are of one size.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len()) }
    }

    /// With rows for columns.
    pub(super) fn t(&self) -> Sums {
        let mut to = Sums([0; SIDE * SIDE]);
        let step = SIDE as isize * 4;
        // SAFETY: two squares of as many rows as columns.
        unsafe {
            let (to, from) = (to.0.as_mut_ptr().cast(), self.0.as_ptr().cast());
            copy_tile::<u32, false>(to, from, (step, step), (SIDE, SIDE));
        }
        to
    }
}

/// What is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TileProduct {
    /// Pairs of `bf16`, summed in `f32`. Denormal numbers count as zero.
    Bf16,
    /// Quads of `i8`, summed in `i32`.
    Signed,
    /// Quads of `u8` on the left and of `i8` on the right, summed in `i32`.
    Unsigned,
}

/// Whether this process has tiles and `PULLBACK_CPU` allows them. The first call asks the operating system for the right.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
pub(super) fn are_available() -> bool {
    use crate::simd::{self, SimdLevel};
    static FOUND: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    simd::level() == SimdLevel::Avx512
        && *FOUND.get_or_init(|| simd::allows_tiles() && amx::has_instructions() && amx::permit())
}

/// Whether this process has tiles: none of this target has.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
pub(super) fn are_available() -> bool {
    false
}

/// The tiles of this thread, ready for use until this is dropped.
pub(super) struct TileRegisters(std::marker::PhantomData<*mut ()>);

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
impl TileRegisters {
    /// Makes all eight tiles of this thread whole ones.
    pub(super) fn new() -> TileRegisters {
        assert!(are_available(), "nobody asks for tiles where there are none");
        amx::configure();
        TileRegisters(std::marker::PhantomData)
    }

    /// `sums += sum over s < steps of left[s] . right[s]` (`=` if `is_first`), where `left[s]` is `row_tiles` (1 or 2) tiles one
    /// after the other, and `right[s]` two of them. With one tile of rows, the lower half of `sums` stays as it is. The next
    /// sums that are asked for are fetched meanwhile from wherever they are.
    ///
    /// # Safety
    /// The operands have `steps` steps, and `sums` is live.
    #[allow(clippy::unused_self, reason = "it shows that this thread's tiles are ready")]
    pub(super) unsafe fn multiply(
        &self,
        product: TileProduct,
        (left, row_tiles): (*const u32, usize),
        right: *const u32,
        steps: usize,
        (sums, is_first): (*mut Sums, bool),
        next: *const Sums,
    ) {
        // SAFETY: the caller's promise; this thread's tiles are ready, as `self` shows.
        unsafe {
            if steps == 0 {
                if is_first {
                    (*sums).0.fill(0);
                }
                return;
            }
            let call = match (product, row_tiles) {
                (TileProduct::Bf16, 1) => amx::bf16_row,
                (TileProduct::Bf16, _) => amx::bf16_square,
                (TileProduct::Signed, 1) => amx::signed_row,
                (TileProduct::Signed, _) => amx::signed_square,
                (TileProduct::Unsigned, 1) => amx::unsigned_row,
                (TileProduct::Unsigned, _) => amx::unsigned_square,
            };
            call((left, right), steps, (sums.cast(), is_first), next.cast());
        }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
impl Drop for TileRegisters {
    fn drop(&mut self) {
        amx::release();
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
impl TileRegisters {
    /// Never called: [`are_available`] says no.
    pub(super) fn new() -> TileRegisters {
        unreachable!("this target has no tiles")
    }

    /// Never called.
    ///
    /// # Safety
    /// None is needed.
    #[allow(clippy::unused_self, reason = "as where there are tiles")]
    pub(super) unsafe fn multiply(
        &self,
        _: TileProduct,
        _: (*const u32, usize),
        _: *const u32,
        _: usize,
        _: (*mut Sums, bool),
        _: *const Sums,
    ) {
        unreachable!("this target has no tiles")
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod amx {
    use super::{ROW_BYTES, ROWS, SIDE};
    use std::arch::asm;
    use std::arch::x86_64::__cpuid_count;

    /// Whether the processor has tiles, and products of `bf16` and of bytes in them.
    pub(super) fn has_instructions() -> bool {
        const LEAF: u32 = 7;
        const ALL: u32 = 1 << 22 | 1 << 24 | 1 << 25;
        // (Not unsafe with newer compilers.)
        #[allow(unused_unsafe, reason = "older compilers than the one in use want the block")]
        // SAFETY: every x86-64 processor answers.
        unsafe {
            __cpuid_count(0, 0).eax >= LEAF && __cpuid_count(LEAF, 0).edx & ALL == ALL
        }
    }

    /// Asks the operating system for the right to hold data in tiles (`arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA)`).
    pub(super) fn permit() -> bool {
        const ARCH_PRCTL: u64 = 158;
        const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
        const XTILEDATA: u64 = 18;
        let answer: u64;
        // SAFETY: a system call that reads and writes no memory; an older system answers with an error.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") ARCH_PRCTL => answer,
                in("rdi") ARCH_REQ_XCOMP_PERM,
                in("rsi") XTILEDATA,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack)
            );
        }
        answer == 0
    }

    /// The shape of all tiles, as the instruction reads it.
    #[repr(C, align(64))]
    struct Configuration {
        palette: u8,
        start_row: u8,
        reserved: [u8; 14],
        row_bytes: [u16; 16],
        rows: [u8; 16],
    }

    static WHOLE: Configuration = {
        let (mut row_bytes, mut rows) = ([0; 16], [0; 16]);
        let mut tile = 0;
        while tile < 8 {
            row_bytes[tile] = ROW_BYTES as u16;
            rows[tile] = ROWS as u8;
            tile += 1;
        }
        Configuration { palette: 1, start_row: 0, reserved: [0; 14], row_bytes, rows }
    };

    /// Makes all tiles of this thread whole ones.
    pub(super) fn configure() {
        // SAFETY: `TileRegisters::new` has seen that tiles are available; the configuration is one of 64 bytes that the first palette
        // has.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const WHOLE, options(nostack, readonly)) };
    }

    /// Gives up this thread's tiles.
    pub(super) fn release() {
        // SAFETY: `TileRegisters` has configured them.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }

    /// One microkernel: how it sets its sums to zero, loads them, adds the products of a step to them and stores them. Tiles
    /// live inside one block of assembly, so that no code of the compiler's stands between their first use and their last.
    ///
    /// The left operand is read once for each block of columns, from the second-level cache, with a hint that keeps it from
    /// displacing the right one in the first. What is stored to would otherwise be waited for: the sums of the next call, four
    /// lines a step.
    macro_rules! microkernel {
        ($name:ident, $tiles:literal, zero: [$($zero:expr),*], load: [$($load:expr),*],
            step: [$($step:expr),*], store: [$($store:expr),*]) => {
            /// # Safety
            /// `steps > 0` steps of both operands, and a square of sums; this thread has tiles.
            pub(super) unsafe fn $name(
                (left, right): (*const u32, *const u32),
                steps: usize,
                (sums, is_first): (*mut u32, bool),
                next: *const u32,
            ) {
                // SAFETY: the caller's promise; only `sums` is written, and any address may be prefetched.
                unsafe {
                    asm!(
                        "test {first:e}, {first:e}",
                        "jz 2f",
                        $($zero,)*
                        "jmp 3f",
                        "2:",
                        $($load,)*
                        "3:",
                        "prefetchw [{next}]",
                        "prefetchw [{next} + 64]",
                        "prefetchw [{next} + 128]",
                        "prefetchw [{next} + 192]",
                        $($step,)*
                        "add {next}, 256",
                        "add {left}, {left_step}",
                        "add {right}, 2048",
                        "dec {steps}",
                        "jnz 3b",
                        $($store,)*
                        first = in(reg) u32::from(is_first),
                        left = inout(reg) left => _,
                        right = inout(reg) right => _,
                        steps = inout(reg) steps => _,
                        next = inout(reg) next => _,
                        sums = in(reg) sums,
                        narrow = in(reg) ROW_BYTES,
                        wide = in(reg) SIDE * 4,
                        left_step = const $tiles * ROWS * ROW_BYTES,
                        out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                        out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                        options(nostack)
                    );
                }
            }
        };
    }

    /// The two microkernels of an instruction: a square of four tiles of sums, and a row of two.
    macro_rules! microkernels {
        ($instruction:literal, $square:ident, $row:ident) => {
            microkernel!($square, 2,
                zero: ["tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3"],
                load: [
                    "tileloadd tmm0, [{sums} + {wide}]",
                    "tileloadd tmm1, [{sums} + {wide} + 64]",
                    "tileloadd tmm2, [{sums} + {wide} + 2048]",
                    "tileloadd tmm3, [{sums} + {wide} + 2112]"
                ],
                step: [
                    "tileloadd tmm6, [{right} + {narrow}]",
                    "tileloaddt1 tmm4, [{left} + {narrow}]",
                    "tileloaddt1 tmm5, [{left} + {narrow} + 1024]",
                    "tileloadd tmm7, [{right} + {narrow} + 1024]",
                    concat!($instruction, " tmm0, tmm4, tmm6"),
                    concat!($instruction, " tmm2, tmm5, tmm6"),
                    concat!($instruction, " tmm1, tmm4, tmm7"),
                    concat!($instruction, " tmm3, tmm5, tmm7")
                ],
                store: [
                    "tilestored [{sums} + {wide}], tmm0",
                    "tilestored [{sums} + {wide} + 2048], tmm2",
                    "tilestored [{sums} + {wide} + 64], tmm1",
                    "tilestored [{sums} + {wide} + 2112], tmm3"
                ]
            );
            microkernel!($row, 1,
                zero: ["tilezero tmm0", "tilezero tmm1"],
                load: [
                    "tileloadd tmm0, [{sums} + {wide}]",
                    "tileloadd tmm1, [{sums} + {wide} + 64]"
                ],
                step: [
                    "tileloaddt1 tmm4, [{left} + {narrow}]",
                    "tileloadd tmm6, [{right} + {narrow}]",
                    "tileloadd tmm7, [{right} + {narrow} + 1024]",
                    concat!($instruction, " tmm0, tmm4, tmm6"),
                    concat!($instruction, " tmm1, tmm4, tmm7")
                ],
                store: [
                    "tilestored [{sums} + {wide}], tmm0",
                    "tilestored [{sums} + {wide} + 64], tmm1"
                ]
            );
        };
    }
    microkernels!("tdpbf16ps", bf16_square, bf16_row);
    microkernels!("tdpbssd", signed_square, signed_row);
    microkernels!("tdpbusd", unsigned_square, unsigned_row);
}
