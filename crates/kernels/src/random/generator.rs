//! The mt19937 engine behind every random stream, bit for bit as PyTorch's CPU generator has it.
//!
//! Source: M. Matsumoto, T. Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform
//! pseudo-random number generator", 1998. Draws come from a block of 624 words that is remade when used
//! up; bulk draws temper whole stretches of the block at once. The state in bytes has PyTorch's layout.

use crate::{Error, Result};

/// Words of state.
const N: usize = 624;
/// Distance of the word that is mixed in.
const M: usize = 397;
/// The seed of a generator that was never seeded.
pub const DEFAULT_SEED: u64 = 67_280_421_310_721;
/// Bytes of a saved state.
pub const STATE_SIZE: usize = 5056;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Generator {
    words: [u32; N],
    seed: u64,
    /// Draws until the block is remade, counted as PyTorch counts them: one more than are there.
    left: usize,
    next: usize,
    normal_f64: Option<f64>,
    normal_f32: Option<f32>,
}

impl Default for Generator {
    fn default() -> Self {
        Generator::new(DEFAULT_SEED)
    }
}

crate::multiversion! {
/// Remakes the block. The slices are disjoint, so the loops vectorise.
fn twist(words: &mut [u32; 624]) {
    #[inline(always)]
    fn mix(word: u32, following: u32, far: u32) -> u32 {
        let joined = (word & 0x8000_0000) | (following & 0x7fff_ffff);
        far ^ (joined >> 1) ^ ((following & 1).wrapping_neg() & 0x9908_b0df)
    }
    let following = {
        let mut shifted = [0; N];
        shifted[..N - 1].copy_from_slice(&words[1..]);
        shifted
    };
    let (low, high) = words.split_at_mut(N - M);
    for ((word, &next), &far) in low.iter_mut().zip(&following).zip(&high[M - (N - M)..]) {
        *word = mix(*word, next, far);
    }
    let (middle, last) = high.split_at_mut(N - M);
    for ((word, &next), &far) in middle.iter_mut().zip(&following[N - M..]).zip(&*low) {
        *word = mix(*word, next, far);
    }
    let count = last.len();
    for ((word, &next), &far) in last[..count - 1].iter_mut().zip(&following[2 * (N - M)..]).zip(&*middle) {
        *word = mix(*word, next, far);
    }
    last[count - 1] = mix(last[count - 1], low[0], middle[count - 1]);
}
}

#[inline(always)]
fn temper(mut y: u32) -> u32 {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c_5680;
    y ^= (y << 15) & 0xefc6_0000;
    y ^ (y >> 18)
}

#[inline(always)]
fn unit_f32(draw: u32) -> f32 {
    (draw & 0x00ff_ffff) as i32 as f32 * (1.0 / 16_777_216.0)
}

#[inline(always)]
fn unit_f64(draw: u64) -> f64 {
    (draw & ((1 << 53) - 1)) as i64 as f64 * (1.0 / 9_007_199_254_740_992.0)
}

crate::multiversion! {
fn temper_into(words: &[u32], out: &mut [u32]) {
    for (out, &word) in out.iter_mut().zip(words) {
        *out = temper(word);
    }
}
}

crate::multiversion! {
fn temper_units(words: &[u32], out: &mut [f32]) {
    for (out, &word) in out.iter_mut().zip(words) {
        *out = unit_f32(temper(word));
    }
}
}

crate::multiversion! {
fn units_of_pairs(draws: &[u32], out: &mut [f64]) {
    let (pairs, _) = draws.as_chunks::<2>();
    for (out, pair) in out.iter_mut().zip(pairs) {
        *out = unit_f64(u64::from(pair[0]) << 32 | u64::from(pair[1]));
    }
}
}

impl Generator {
    /// A generator seeded with `seed`.
    pub fn new(seed: u64) -> Self {
        let mut generator =
            Generator { words: [0; N], seed, left: 1, next: 0, normal_f64: None, normal_f32: None };
        generator.set_seed(seed);
        generator
    }

    /// Starts the stream of `seed` (its lower 32 bits) anew and forgets the cached normal number.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
        self.words[0] = seed as u32;
        for j in 1..N {
            let before = self.words[j - 1];
            self.words[j] =
                1_812_433_253_u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(j as u32);
        }
        (self.left, self.next) = (1, 0);
        (self.normal_f64, self.normal_f32) = (None, None);
    }

    /// The seed it was given.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    #[inline]
    fn refill(&mut self) {
        twist(&mut self.words);
        (self.left, self.next) = (N, 0);
    }

    /// The next 32 bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        self.left -= 1;
        if self.left == 0 {
            self.refill();
        }
        let word = self.words[self.next];
        self.next += 1;
        temper(word)
    }

    /// The next 64 bits: the first draw above the second.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        high << 32 | u64::from(self.next_u32())
    }

    /// A number in `[0, 1)` of 24 bits.
    #[inline]
    pub fn next_f32(&mut self) -> f32 {
        unit_f32(self.next_u32())
    }

    /// A number in `[0, 1)` of 53 bits.
    #[inline]
    pub fn next_f64(&mut self) -> f64 {
        unit_f64(self.next_u64())
    }

    /// A standard normal number by Box and Muller's method; every second one comes from the cache.
    pub fn next_normal(&mut self) -> f64 {
        if let Some(cached) = self.normal_f64.take() {
            return cached;
        }
        let u1 = self.next_f64();
        let u2 = self.next_f64();
        let r = (-2.0 * (-u2).ln_1p()).sqrt();
        let theta = 2.0 * std::f64::consts::PI * u1;
        self.normal_f64 = Some(r * theta.sin());
        r * theta.cos()
    }

    /// Calls `take` with stretches of words (not yet tempered) and the offset of each in `0..count`.
    #[inline(always)]
    fn stretches(&mut self, count: usize, mut take: impl FnMut(&[u32], std::ops::Range<usize>)) {
        let mut done = 0;
        while done < count {
            if self.left == 1 {
                self.refill();
                // A refilled block counts one draw as made, as a single draw does.
                self.left += 1;
            }
            let n = (self.left - 1).min(count - done);
            take(&self.words[self.next..self.next + n], done..done + n);
            self.next += n;
            self.left -= n;
            done += n;
        }
    }

    /// Fills `out` with the next draws.
    pub fn fill_u32(&mut self, out: &mut [u32]) {
        self.stretches(out.len(), |words, range| temper_into(words, &mut out[range]));
    }

    /// Fills `out` with the next 64-bit draws.
    pub fn fill_u64(&mut self, out: &mut [u64]) {
        let mut draws = [0; 512];
        for part in out.chunks_mut(256) {
            let draws = &mut draws[..2 * part.len()];
            self.fill_u32(draws);
            let (pairs, _) = draws.as_chunks::<2>();
            for (out, pair) in part.iter_mut().zip(pairs) {
                *out = u64::from(pair[0]) << 32 | u64::from(pair[1]);
            }
        }
    }

    /// Fills `out` with numbers in `[0, 1)`, as [`Self::next_f32`] draws them.
    pub fn fill_f32(&mut self, out: &mut [f32]) {
        self.stretches(out.len(), |words, range| temper_units(words, &mut out[range]));
    }

    /// Fills `out` with numbers in `[0, 1)`, as [`Self::next_f64`] draws them.
    pub fn fill_f64(&mut self, out: &mut [f64]) {
        let mut draws = [0; 512];
        for part in out.chunks_mut(256) {
            let draws = &mut draws[..2 * part.len()];
            self.fill_u32(draws);
            units_of_pairs(draws, part);
        }
    }

    /// The state in PyTorch's layout: seed, draws left, whether seeded, next word, 624 words of 64 bits, cached normals.
    pub fn state(&self) -> Vec<u8> {
        // bounded: a constant.
        let mut bytes = Vec::with_capacity(STATE_SIZE);
        bytes.extend(self.seed.to_le_bytes());
        bytes.extend((self.left as i32).to_le_bytes());
        bytes.extend(1_i32.to_le_bytes());
        bytes.extend((self.next as u64).to_le_bytes());
        self.words.iter().for_each(|&word| bytes.extend(u64::from(word).to_le_bytes()));
        bytes.extend(0_f64.to_le_bytes());
        bytes.extend(self.normal_f64.unwrap_or(0.0).to_le_bytes());
        bytes.extend(0_f64.to_le_bytes());
        bytes.extend(u64::from(self.normal_f64.is_some()).to_le_bytes());
        bytes.extend(self.normal_f32.unwrap_or(0.0).to_le_bytes());
        bytes.extend(u32::from(self.normal_f32.is_some()).to_le_bytes());
        bytes
    }

    /// Takes over a state that [`Self::state`] (or PyTorch) gave.
    ///
    /// # Errors
    /// If the size is not [`STATE_SIZE`] or the counters are impossible.
    pub fn set_state(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != STATE_SIZE {
            return Err(Error::runtime(format!(
                "Expected either a CPUGeneratorImplStateLegacy of size 5048 or a CPUGeneratorImplState of size {STATE_SIZE} but found the input RNG state size to be {}",
                bytes.len()
            )));
        }
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let (left, next) = (half(8) as usize, word(16) as usize);
        if half(12) == 0 || left == 0 || left > N || next > N || (left > 1 && left - 1 > N - next) {
            return Err(Error::runtime("Invalid mt19937 state".into()));
        }
        self.seed = word(0);
        (self.left, self.next) = (left, next);
        for (i, slot) in self.words.iter_mut().enumerate() {
            *slot = word(24 + 8 * i) as u32;
        }
        let tail = 24 + 8 * N;
        self.normal_f64 = (half(tail + 24) != 0).then(|| f64::from_bits(word(tail + 8)));
        self.normal_f32 = (bytes[tail + 36] != 0).then(|| f32::from_bits(half(tail + 32)));
        Ok(())
    }
}
