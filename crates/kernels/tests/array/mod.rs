//! Arrays for the kernel tests: owned memory with any shape, strides and dtype, and small random
//! numbers that need no generator under test.

#![allow(dead_code, reason = "each test file uses a part")]

use pullback_kernels::{C128, DType, Element, StridedMut, StridedRef, for_dtype};

/// A tensor of a test.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    memory: Vec<u128>,
    offset: usize,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<i64>,
    pub(crate) strides: Vec<i64>,
}

/// Strides of a row-major array.
pub(crate) fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d].max(1);
    }
    strides
}

impl Array {
    /// Zeros without gaps.
    pub(crate) fn zeros(dtype: DType, shape: &[i64]) -> Self {
        Self::with_strides(dtype, shape, &row_major(shape))
    }
    /// Zeros with the given strides, which may be negative.
    pub(crate) fn with_strides(dtype: DType, shape: &[i64], strides: &[i64]) -> Self {
        let reach = |sign: i64| -> i64 {
            shape
                .iter()
                .zip(strides)
                .map(|(&s, &t)| (s - 1).max(0) * t)
                .filter(|t| t * sign > 0)
                .sum()
        };
        let before = -reach(-1);
        let bytes = (before + reach(1) + 1) as usize * dtype.size();
        Array {
            memory: vec![0; bytes.div_ceil(16)],
            offset: before as usize * dtype.size(),
            dtype,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
        }
    }
    /// Row-major values.
    pub(crate) fn of<T: Element>(shape: &[i64], values: &[T]) -> Self {
        let mut array = Self::zeros(T::DTYPE, shape);
        array.view_mut().as_slice_mut::<T>().unwrap().copy_from_slice(values);
        array
    }
    /// A vector.
    pub(crate) fn vector<T: Element>(values: &[T]) -> Self {
        Self::of(&[values.len() as i64], values)
    }
    pub(crate) fn numel(&self) -> usize {
        self.shape.iter().map(|&s| s as usize).product()
    }
    pub(crate) fn view(&self) -> StridedRef<'_> {
        let ptr = self.memory.as_ptr().cast::<u8>().wrapping_add(self.offset);
        // SAFETY: the memory was sized to hold what shape and strides reach.
        unsafe { StridedRef::new(ptr, self.dtype, &self.shape, &self.strides) }
    }
    pub(crate) fn view_mut(&mut self) -> StridedMut<'_> {
        let ptr = self.memory.as_mut_ptr().cast::<u8>().wrapping_add(self.offset);
        // SAFETY: as above, borrowed exclusively.
        unsafe { StridedMut::new(ptr, self.dtype, &self.shape, &self.strides) }
    }
    /// The element offset of a row-major position.
    fn offset(&self, mut at: usize) -> isize {
        let mut offset = 0;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            offset += (at % size as usize) as i64 * stride;
            at /= size as usize;
        }
        offset as isize * self.dtype.size() as isize
    }
    fn address(&self, at: usize) -> *mut u8 {
        self.view().ptr().cast_mut().wrapping_offset(self.offset(at))
    }
    /// The element at a row-major position.
    pub(crate) fn get<T: Element>(&self, at: usize) -> T {
        assert_eq!(T::DTYPE, self.dtype);
        // SAFETY: the position lies in the memory.
        unsafe { self.address(at).cast::<T>().read() }
    }
    /// The element at a row-major position as a double.
    pub(crate) fn at(&self, at: usize) -> f64 {
        for_dtype!(self.dtype, all, T => self.get::<T>(at).to_f64())
    }
    /// The element at a row-major position as a complex number.
    pub(crate) fn complex_at(&self, at: usize) -> C128 {
        for_dtype!(self.dtype, all, T => self.get::<T>(at).to_c128())
    }
    /// Writes the element at a row-major position.
    pub(crate) fn put(&mut self, at: usize, value: C128) {
        let address = self.address(at);
        // SAFETY: the position lies in the memory, borrowed exclusively.
        for_dtype!(self.dtype, all, T => unsafe { address.cast::<T>().write(T::from_c128(value)) });
    }
    /// All elements as doubles, row by row.
    pub(crate) fn values(&self) -> Vec<f64> {
        (0..self.numel()).map(|i| self.at(i)).collect()
    }
    /// All bytes, row by row.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let size = self.dtype.size();
        // SAFETY: every position lies in the memory.
        let element = |i| unsafe { std::slice::from_raw_parts(self.address(i), size) };
        (0..self.numel()).flat_map(|i| element(i).to_vec()).collect()
    }
}

/// A small generator for tests (splitmix64).
pub(crate) struct TestRng(pub(crate) u64);

impl TestRng {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.roll() % n.max(1) as u64) as usize
    }
    pub(crate) fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }
    /// A shape with up to four dimensions, now and then empty.
    pub(crate) fn shape(&mut self) -> Vec<i64> {
        let ndim = self.below(5);
        let count = if self.below(8) == 0 { 9 } else { 8 };
        (0..ndim).map(|_| [1, 2, 3, 4, 5, 7, 17, 40, 0][self.below(count)]).collect()
    }
    /// Zeros whose dimensions lie in any order in memory, with gaps, some reversed.
    pub(crate) fn layout(&mut self, dtype: DType, shape: &[i64]) -> Array {
        if self.below(2) == 0 {
            return Array::zeros(dtype, shape);
        }
        let mut order: Vec<usize> = (0..shape.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.below(i + 1));
        }
        let mut strides = vec![0; shape.len()];
        let mut next = 1 + self.below(2) as i64;
        for d in order {
            strides[d] = if self.below(4) == 0 { -next } else { next };
            next *= shape[d].max(1) + self.below(2) as i64;
        }
        Array::with_strides(dtype, shape, &strides)
    }
    /// An array of values with ties: small whole numbers, halves for floats, NaN and infinities on request.
    pub(crate) fn array(&mut self, dtype: DType, shape: &[i64], specials: bool) -> Array {
        let mut array = self.layout(dtype, shape);
        for i in 0..array.numel() {
            let value = |d: &mut Self| {
                let low = if dtype.is_signed() { -6.0 } else { 0.0 };
                let number = low + d.below(13) as f64;
                let half = if dtype.is_integral(true) { 0.0 } else { d.below(2) as f64 * 0.5 };
                match d.below(40) {
                    0 if specials && dtype.is_floating_point() => f64::NAN,
                    1 if specials && dtype.is_floating_point() => f64::INFINITY,
                    2 if specials && dtype.is_floating_point() => -0.0,
                    _ => number + half,
                }
            };
            let value = C128::new(value(self), value(self));
            array.put(i, value);
        }
        array
    }
}

/// All positions with `dim` removed, as (base position in row-major order of the whole, step along `dim`, size).
pub(crate) fn lines(shape: &[i64], dim: usize) -> Vec<(usize, usize, usize)> {
    if shape.is_empty() {
        return vec![(0, 1, 1)];
    }
    let step: usize = shape[dim + 1..].iter().map(|&s| s as usize).product();
    let outer: usize = shape[..dim].iter().map(|&s| s as usize).product();
    let n = shape[dim] as usize;
    (0..outer).flat_map(|o| (0..step).map(move |i| (o * n * step + i, step, n))).collect()
}

/// The real dtypes.
pub(crate) const REAL: [DType; 12] = [
    DType::U8,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
];

/// Equal, or both NaN, or within `tolerance` relative to the larger.
pub(crate) fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b
        || (a.is_nan() && b.is_nan())
        || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}
