//! A plain tensor for tests: bytes, shape and strides, with element access as complex doubles.

#![allow(dead_code, reason = "each test file uses a part")]

use pullback_kernels::{C128, DType, Element, StridedMut, StridedRef, for_dtype};

/// Elements of any dtype in memory that may have gaps, reversed or permuted dimensions.
pub(crate) struct Tensor {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) data: Vec<u128>,
    pub(crate) offset: usize,
}

fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for d in (0..shape.len().saturating_sub(1)).rev() {
        strides[d] = strides[d + 1] * shape[d + 1].max(1);
    }
    strides
}

impl Tensor {
    pub(crate) fn full(dtype: DType, shape: &[i64], value: f64) -> Self {
        let n = shape.iter().product::<i64>() as usize;
        let mut t = Tensor {
            dtype,
            shape: shape.to_vec(),
            strides: row_major(shape),
            data: vec![0; (n * dtype.size()).div_ceil(16) + 1],
            offset: 0,
        };
        for i in 0..n {
            t.set_flat(i, C128::new(value, 0.0));
        }
        t
    }
    pub(crate) fn from(dtype: DType, shape: &[i64], values: &[f64]) -> Self {
        let mut t = Self::full(dtype, shape, 0.0);
        for (i, &v) in values.iter().enumerate() {
            t.set_flat(i, C128::new(v, 0.0));
        }
        t
    }
    fn offset_of(&self, index: &[i64]) -> isize {
        index.iter().zip(&self.strides).map(|(i, s)| (i * s) as isize).sum()
    }
    fn unflat(&self, mut flat: usize) -> Vec<i64> {
        let mut index = vec![0; self.shape.len()];
        for d in (0..self.shape.len()).rev() {
            index[d] = flat as i64 % self.shape[d];
            flat /= self.shape[d] as usize;
        }
        index
    }
    pub(crate) fn numel(&self) -> usize {
        self.shape.iter().product::<i64>() as usize
    }
    fn base(&self) -> *const u8 {
        self.data.as_ptr().cast::<u8>().wrapping_add(self.offset * self.dtype.size())
    }
    pub(crate) fn at(&self, index: &[i64]) -> C128 {
        let offset = self.offset_of(index);
        for_dtype!(self.dtype, all, T => {
            // SAFETY: tests index inside the shape.
            unsafe { *self.base().cast::<T>().offset(offset) }.to_c128()
        })
    }
    pub(crate) fn set_flat(&mut self, flat: usize, value: C128) {
        let offset = self.offset_of(&self.unflat(flat));
        let base = self.base().cast_mut();
        for_dtype!(self.dtype, all, T => {
            // SAFETY: as in `at`.
            unsafe { *base.cast::<T>().offset(offset) = T::from_c128(value) };
        });
    }
    pub(crate) fn values(&self) -> Vec<C128> {
        (0..self.numel()).map(|i| self.at(&self.unflat(i))).collect()
    }
    pub(crate) fn reals(&self) -> Vec<f64> {
        self.values().iter().map(|v| v.re).collect()
    }
    pub(crate) fn view(&self) -> StridedRef<'_> {
        // SAFETY: the memory holds every element.
        unsafe { StridedRef::new(self.base(), self.dtype, &self.shape, &self.strides) }
    }
    pub(crate) fn view_mut(&mut self) -> StridedMut<'_> {
        // SAFETY: as above, borrowed exclusively.
        unsafe { StridedMut::new(self.base().cast_mut(), self.dtype, &self.shape, &self.strides) }
    }
    pub(crate) fn tolerance(&self) -> f64 {
        match self.dtype {
            DType::F16 | DType::C32 => 4e-3,
            DType::BF16 => 3e-2,
            DType::F32 | DType::C64 => 2e-4,
            _ => 1e-9,
        }
    }
    /// Compares with expected values: integers modulo their width, floats relative to 1.
    pub(crate) fn assert_close(&self, expected: &[C128], what: &str) {
        assert_eq!(self.numel(), expected.len(), "{what}");
        for (i, (got, want)) in self.values().into_iter().zip(expected).enumerate() {
            let want = if self.dtype.is_integral(true) {
                for_dtype!(self.dtype, all, T => T::from_i64(want.re as i64).to_c128())
            } else {
                *want
            };
            let same = got == want
                || (got.re.is_nan() && want.re.is_nan())
                || (got - want).norm() <= self.tolerance() * (1.0 + want.norm());
            assert!(same, "{what}: element {i} is {got}, expected {want}");
        }
    }
    pub(crate) fn assert_reals(&self, expected: &[f64], what: &str) {
        let expected: Vec<C128> = expected.iter().map(|&v| C128::new(v, 0.0)).collect();
        self.assert_close(&expected, what);
    }
}

/// A small generator (splitmix64).
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&mut self, n: i64) -> i64 {
        (self.next() % n as u64) as i64
    }
    pub(crate) fn real(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    /// A contiguous tensor of random values: floats in [-1, 1), integers small.
    pub(crate) fn dense(&mut self, dtype: DType, shape: &[i64]) -> Tensor {
        let mut t = Tensor::full(dtype, shape, 0.0);
        self.fill(&mut t);
        t
    }
    pub(crate) fn fill(&mut self, t: &mut Tensor) {
        for i in 0..t.numel() {
            let value = if t.dtype.is_integral(true) {
                C128::new((self.below(20) - if t.dtype.is_signed() { 10 } else { 0 }) as f64, 0.0)
            } else {
                C128::new(self.real(), if t.dtype.is_complex() { self.real() } else { 0.0 })
            };
            t.set_flat(i, value);
        }
    }
    /// A tensor of random values with random layout: permuted dimensions, gaps, reversed order.
    pub(crate) fn tensor(&mut self, dtype: DType, shape: &[i64]) -> Tensor {
        let ndim = shape.len();
        let mut order: Vec<usize> = (0..ndim).collect();
        if self.below(2) == 0 {
            for i in (1..ndim).rev() {
                order.swap(i, self.below(i as i64 + 1) as usize);
            }
        }
        let gaps = self.below(3) == 0;
        let (mut strides, mut step) = (vec![0; ndim], 1);
        for &d in order.iter().rev() {
            strides[d] = step * if gaps && self.below(2) == 0 { 2 } else { 1 };
            step = strides[d] * shape[d].max(1);
        }
        let mut offset = 0;
        for d in 0..ndim {
            if self.below(8) == 0 && shape[d] > 1 {
                offset += (strides[d] * (shape[d] - 1)) as usize;
                strides[d] = -strides[d];
            }
        }
        let bytes = step as usize * dtype.size();
        let mut t = Tensor {
            dtype,
            shape: shape.to_vec(),
            strides,
            data: vec![0; bytes.div_ceil(16) + 1],
            offset,
        };
        self.fill(&mut t);
        t
    }
}
