//! The weights of old elements in new ones, along one dimension.
//!
//! Coordinates are in elements, element `i` from `i` to `i + 1`. Nearest elements are found in single precision for every dtype,
//! the others in the precision of the computation, both as PyTorch does, so that results agree at ties.

use super::{UpsampleMode, UpsampleOptions};
use crate::dense::Real;
use crate::{Result, interrupt, memory};

/// The parameter of Keys' cubic weights (IEEE Trans. ASSP 29, 1981) where four elements are interpolated.
const SHARP: f64 = -0.75;
/// The parameter of Keys' weights that is exact to the third order, for antialiasing.
const EXACT: f64 = -0.5;

/// For each new element the old ones that it is made of, and their weights.
pub(super) struct AxisWeights<T> {
    /// Where the terms of each new element begin in `terms`; one number more than there are elements.
    starts: Vec<usize>,
    terms: Vec<(usize, T)>,
    /// How many old elements there are.
    from: usize,
    /// How many terms each element has, if all have as many.
    count: Option<usize>,
}

impl<T: Real> AxisWeights<T> {
    /// A dimension of one element, which stays.
    pub(super) fn identity() -> Result<AxisWeights<T>> {
        Ok(AxisWeights {
            starts: memory::collect([0, 1])?,
            terms: memory::collect([(0, T::ONE)])?,
            from: 1,
            count: Some(1),
        })
    }

    /// `from` elements (at least one) resized to `to`, by `factor` if that is not to be taken from the sizes.
    pub(super) fn new(
        from: usize,
        to: usize,
        options: &UpsampleOptions,
        factor: Option<f64>,
    ) -> Result<AxisWeights<T>> {
        let (mode, align) = (options.mode, options.align_corners);
        let line = ResizedDim { from, to, align, factor };
        let mut all =
            AxisWeights { starts: memory::filled(0, 1)?, terms: Vec::new(), from, count: None };
        memory::reserve(&mut all.starts, to)?;
        all.count = match mode {
            UpsampleMode::Nearest | UpsampleMode::NearestExact => Some(1),
            UpsampleMode::Linear => Some(2),
            UpsampleMode::Cubic => Some(4),
            _ => None,
        };
        memory::reserve(&mut all.terms, to.saturating_mul(all.count.unwrap_or(0)))?;
        for i in 0..to {
            interrupt::check_every::<12>(i);
            match mode {
                UpsampleMode::Nearest | UpsampleMode::NearestExact => {
                    all.terms.push((line.nearest(i, mode), T::ONE));
                }
                // bounded: room was made above.
                UpsampleMode::Linear => all.terms.extend(line.linear::<T>(i)),
                // bounded: room was made above.
                UpsampleMode::Cubic => all.terms.extend(line.cubic::<T>(i)),
                _ => all.add_window(line.window(i, mode), mode)?,
            }
            all.starts.push(all.terms.len());
        }
        Ok(all)
    }

    /// Adds the weights of the elements under a window, which add up to one.
    fn add_window(&mut self, window: AxisWindow, mode: UpsampleMode) -> Result<()> {
        let AxisWindow { first, count, centre, width } = window;
        let weight = |j: usize| filter(mode, ((first + j) as f64 - centre + 0.5) / width);
        let sum: f64 = (0..count).map(weight).sum();
        let by = if sum == 0.0 { 1.0 } else { sum };
        memory::extend(&mut self.terms, (0..count).map(|j| (first + j, T::of(weight(j) / by))))
    }

    /// For each old element the new ones that it has a weight in.
    pub(super) fn transposed(&self) -> Result<AxisWeights<T>> {
        let mut starts = memory::filled(0, self.from + 1)?;
        for (from, _) in &self.terms {
            starts[from + 1] += 1;
        }
        for i in 0..self.from {
            starts[i + 1] += starts[i];
        }
        let mut next = memory::copied(&starts)?;
        let mut terms = memory::filled((0, T::ZERO), self.terms.len())?;
        for to in 0..self.len() {
            for &(from, by) in self.of(to) {
                terms[next[from]] = (to, by);
                next[from] += 1;
            }
        }
        Ok(AxisWeights { starts, terms, from: self.len(), count: None })
    }

    /// How many new elements there are.
    fn len(&self) -> usize {
        self.starts.len() - 1
    }
    /// The terms of a new element.
    #[inline(always)]
    pub(super) fn of(&self, to: usize) -> &[(usize, T)] {
        &self.terms[self.starts[to]..self.starts[to + 1]]
    }
    /// The terms of all new elements.
    #[inline(always)]
    pub(super) fn all(&self) -> &[(usize, T)] {
        &self.terms
    }
    /// How many terms each element has, if all have as many.
    #[inline(always)]
    pub(super) fn count(&self) -> Option<usize> {
        self.count
    }
    /// How many terms an element has, about.
    pub(super) fn mean_count(&self) -> usize {
        self.terms.len().div_ceil(self.len().max(1)).max(1)
    }
}

/// One dimension that is resized.
struct ResizedDim {
    from: usize,
    to: usize,
    align: bool,
    factor: Option<f64>,
}

/// The old elements under a filter: the first one, how many, where the filter has its centre and what it is stretched by.
struct AxisWindow {
    first: usize,
    count: usize,
    centre: f64,
    width: f64,
}

impl ResizedDim {
    /// How many old elements a new one is wide.
    fn scale<T: Real>(&self) -> T {
        if self.align {
            let steps = self.to.saturating_sub(1);
            return if steps == 0 {
                T::ZERO
            } else {
                T::of((self.from - 1) as f64) / T::of(steps as f64)
            };
        }
        match self.factor {
            Some(factor) if factor > 0.0 => T::of(1.0 / factor),
            _ => T::of(self.from as f64) / T::of(self.to as f64),
        }
    }

    fn nearest(&self, i: usize, mode: UpsampleMode) -> usize {
        let scale: f32 = ResizedDim { align: false, ..*self }.scale();
        if mode == UpsampleMode::NearestExact {
            return (((i as f32 + 0.5) * scale) as usize).min(self.from - 1);
        }
        if self.to == self.from {
            return i;
        }
        if Some(self.to) == self.from.checked_mul(2) {
            return i / 2;
        }
        ((i as f32 * scale) as usize).min(self.from - 1)
    }

    /// The centre of a new element among the old ones: the element before it, and how far behind that one's centre it lies.
    fn centre<T: Real>(&self, i: usize, is_within: bool) -> (i64, T) {
        let scale = self.scale::<T>();
        let half = T::of(0.5);
        let mut centre = if self.align {
            scale * T::of(i as f64)
        } else {
            scale * (T::of(i as f64) + half) - half
        };
        if is_within && centre < T::ZERO {
            centre = T::ZERO;
        }
        let last = self.from as i64 - 1;
        let before = (centre.floor().wide() as i64).min(last);
        let mut way = centre - T::of(before as f64);
        if way > T::ONE {
            way = T::ONE;
        }
        (before, way)
    }

    fn linear<T: Real>(&self, i: usize) -> [(usize, T); 2] {
        if self.to == self.from {
            return [(i, T::ONE), (i, T::ZERO)];
        }
        let (before, way) = self.centre::<T>(i, true);
        let before = before as usize;
        [(before, T::ONE - way), ((before + 1).min(self.from - 1), way)]
    }

    fn cubic<T: Real>(&self, i: usize) -> [(usize, T); 4] {
        let (before, way) = self.centre::<T>(i, false);
        let last = self.from as i64 - 1;
        let weight = |x: T| T::of(keys(x.wide(), SHARP));
        let ways = [way + T::ONE, way, T::ONE - way, T::ONE + T::ONE - way];
        [0, 1, 2, 3].map(|k| ((before - 1 + k as i64).clamp(0, last) as usize, weight(ways[k])))
    }

    fn window(&self, i: usize, mode: UpsampleMode) -> AxisWindow {
        let scale: f64 = self.scale();
        let (centre, width) = (scale * (i as f64 + 0.5), scale.max(1.0));
        let reach = width
            * match mode {
                UpsampleMode::CubicAntialias => 2.0,
                UpsampleMode::LanczosAntialias => 3.0,
                _ => 1.0,
            };
        // (A cast of what is negative gives zero, of what is too large the largest number.)
        let first = ((centre - reach + 0.5) as usize).min(self.from);
        let end = ((centre + reach + 0.5) as usize).clamp(first, self.from);
        AxisWindow { first, count: end - first, centre, width }
    }
}

/// The weight of what is `x` widths away from the centre.
fn filter(mode: UpsampleMode, x: f64) -> f64 {
    match mode {
        UpsampleMode::CubicAntialias => keys(x, EXACT),
        UpsampleMode::LanczosAntialias => lanczos(x),
        _ => (1.0 - x.abs()).max(0.0),
    }
}

/// Keys' cubic weight of an element at the distance `x`, zero from 2 on.
fn keys(x: f64, a: f64) -> f64 {
    let x = x.abs();
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * a
    } else {
        0.0
    }
}

/// `sinc(x) sinc(x / 3)`, zero from 3 on.
fn lanczos(x: f64) -> f64 {
    let sinc = |x: f64| {
        let x = std::f64::consts::PI * x;
        if x == 0.0 { 1.0 } else { x.sin() / x }
    };
    if x.abs() < 3.0 { sinc(x) * sinc(x / 3.0) } else { 0.0 }
}

/// The weights of byte images, in whole multiples of a power of two: as large as 15 bits hold, the same on all machines.
pub(super) struct WholeWeights {
    starts: Vec<usize>,
    terms: Vec<(usize, i32)>,
    /// The power of two.
    pub(super) bits: u32,
}

impl WholeWeights {
    pub(super) fn new(axis: &AxisWeights<f64>) -> Result<WholeWeights> {
        let mut starts = memory::with_capacity(axis.starts.len())?;
        let mut merged: Vec<(usize, f64)> = memory::with_capacity(axis.terms.len())?;
        starts.push(0);
        for to in 0..axis.len() {
            let first = merged.len();
            for &(from, by) in axis.of(to) {
                // What lies outside of the image is added to the border, before it is rounded.
                match merged[first..].iter_mut().find(|term| term.0 == from) {
                    Some(term) => term.1 += by,
                    None => merged.push((from, by)),
                }
            }
            starts.push(merged.len());
        }
        let most = merged.iter().fold(0.0_f64, |most, term| most.max(term.1));
        let is_full =
            |bits: &u32| (0.5 + most * f64::from(1_u32 << (bits + 1))) >= f64::from(1 << 15);
        let bits = (0..22).find(is_full).unwrap_or(22);
        let unit = f64::from(1_u32 << bits);
        let terms =
            memory::collect(merged.iter().map(|&(from, by)| (from, (by * unit).round() as i32)))?;
        Ok(WholeWeights { starts, terms, bits })
    }
    #[inline(always)]
    pub(super) fn of(&self, to: usize) -> &[(usize, i32)] {
        &self.terms[self.starts[to]..self.starts[to + 1]]
    }
}
