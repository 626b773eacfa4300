//! The windows of poolings and depthwise convolutions over small planes, for loops over sixteen planes side by side.

use crate::dense::SharedMut;
use crate::lanes::ROWS;
use crate::{Result, memory};
use std::ops::Range;

/// Elements of a plane up to which planes are taken side by side: sixteen of them stay in the cache.
const SMALL: usize = 1 << 10;
/// Elements worth a thread of their own.
const GRAIN: usize = 1 << 16;

/// The inputs of one output along a dimension.
#[derive(Clone, Copy)]
struct WindowTaps {
    first: usize,
    count: usize,
    /// Which element of the kernel the first input meets.
    element: usize,
}

/// How a kernel moves over three dimensions.
pub(crate) struct WindowGeometry {
    pub(crate) input: [usize; 3],
    pub(crate) output: [usize; 3],
    pub(crate) kernel: [usize; 3],
    pub(crate) stride: [usize; 3],
    pub(crate) padding: [usize; 3],
    pub(crate) dilation: [usize; 3],
}

impl WindowGeometry {
    fn taps(&self, dim: usize, o: usize) -> WindowTaps {
        let step = self.dilation[dim];
        let start = o * self.stride[dim];
        let element = self.padding[dim].saturating_sub(start).div_ceil(step);
        let first = (start + element * step).saturating_sub(self.padding[dim]);
        let room = self.input[dim].saturating_sub(first).div_ceil(step);
        WindowTaps { first, count: self.kernel[dim].saturating_sub(element).min(room), element }
    }
}

/// Which inputs of a plane belong to which output.
pub(crate) struct Windows {
    taps: [Vec<WindowTaps>; 3],
    /// Steps between neighbouring elements of a window, in elements of the plane.
    steps: [usize; 3],
    /// Elements between neighbouring planes, rows and columns, of the input and of the kernel.
    strides: [usize; 3],
    elements: [usize; 3],
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// Loop steps per output, about.
    work: usize,
}

/// Whether planes side by side pay: they are small, and rows of outputs too short for loops of their own.
fn are_small(planes: usize, input: [usize; 3], output: [usize; 3]) -> bool {
    let inputs: usize = input.iter().product();
    (1..=SMALL).contains(&inputs) && output[2] <= 4 * planes.min(ROWS)
}

impl Windows {
    /// The windows of a kernel if its planes are better taken side by side.
    pub(crate) fn of_kernel(planes: usize, m: &WindowGeometry) -> Result<Option<Windows>> {
        let work = m.kernel.iter().fold(1_usize, |n, &k| n.saturating_mul(k));
        if !are_small(planes, m.input, m.output) {
            return Ok(None);
        }
        let taps = |dim| memory::collect((0..m.output[dim]).map(|o| m.taps(dim, o)));
        Windows::new(m.input, m.kernel, m.dilation, work, taps).map(Some)
    }

    /// The windows that divide `input` into `output` parts, if planes are better taken side by side. Windows of many
    /// elements are not: their rows have loops with more accurate sums.
    pub(crate) fn of_parts(
        planes: usize,
        input: [usize; 3],
        output: [usize; 3],
        part: impl Fn(usize, usize, usize) -> Range<usize>,
    ) -> Result<Option<Windows>> {
        let mut work = 1;
        for d in 0..3 {
            work *= if output[d] == 0 { 0 } else { part(0, output[d], input[d]).len() };
        }
        if !are_small(planes, input, output) || work > 4 * ROWS {
            return Ok(None);
        }
        let taps = |dim: usize| {
            let taps = |o| {
                let part = part(o, output[dim], input[dim]);
                WindowTaps { first: part.start, count: part.len(), element: 0 }
            };
            memory::collect((0..output[dim]).map(taps))
        };
        Windows::new(input, [1; 3], [1; 3], work, taps).map(Some)
    }

    fn new(
        input: [usize; 3],
        kernel: [usize; 3],
        dilation: [usize; 3],
        work: usize,
        taps: impl Fn(usize) -> Result<Vec<WindowTaps>>,
    ) -> Result<Windows> {
        let taps = [taps(0)?, taps(1)?, taps(2)?];
        let strides_of = |sizes: [usize; 3]| [sizes[1] * sizes[2], sizes[2], 1];
        let (strides, elements) = (strides_of(input), strides_of(kernel));
        let mut steps = strides;
        for (step, dilation) in steps.iter_mut().zip(dilation) {
            *step *= dilation;
        }
        let outputs = taps.iter().map(Vec::len).product();
        let inputs = input.iter().product();
        Ok(Windows { taps, steps, strides, elements, inputs, outputs, work })
    }

    /// How many elements each window has.
    pub(crate) fn counts(&self) -> Result<Vec<f64>> {
        let mut counts = memory::with_capacity(self.outputs)?;
        for d in &self.taps[0] {
            for h in &self.taps[1] {
                let row = self.taps[2].iter().map(|w| (d.count * h.count * w.count) as f64);
                memory::extend(&mut counts, row)?;
            }
        }
        Ok(counts)
    }

    /// For each output `o`: `start(o, its first input)`, `tap(value, input, kernel element)` for every input in
    /// order, `end(o, value)`. All inputs are below `self.inputs`.
    #[inline(always)]
    pub(crate) fn fold<A>(
        &self,
        start: impl Fn(usize, usize) -> A,
        mut tap: impl FnMut(A, usize, usize) -> A,
        mut end: impl FnMut(usize, A),
    ) {
        let mut o = 0;
        for d in &self.taps[0] {
            for h in &self.taps[1] {
                let row = d.first * self.strides[0] + h.first * self.strides[1];
                let element = d.element * self.elements[0] + h.element * self.elements[1];
                for w in &self.taps[2] {
                    let first = row + w.first;
                    let mut value = start(o, first);
                    for kd in 0..d.count {
                        for kh in 0..h.count {
                            let mut at = first + kd * self.steps[0] + kh * self.steps[1];
                            let mut k = element + kd * self.elements[0] + kh * self.elements[1];
                            k += w.element;
                            for _ in 0..w.count {
                                value = tap(value, at, k);
                                at += self.steps[2];
                                k += 1;
                            }
                        }
                    }
                    end(o, value);
                    o += 1;
                }
            }
        }
    }

    /// Calls `work` with ranges of planes that begin at multiples of sixteen, on several threads.
    pub(crate) fn for_planes(
        &self,
        planes: usize,
        work: &(dyn Fn(Range<usize>) -> Result<()> + Sync),
    ) -> Result<()> {
        let size = (self.outputs.max(1)).saturating_mul(self.work) + self.inputs;
        let grain = (GRAIN / size.max(1)).next_multiple_of(ROWS).max(ROWS);
        crate::parallel::try_for_restartable_range(planes, grain, work)
    }
}

/// Two buffers' elements of some planes.
///
/// # Safety
/// Nobody else uses these planes of the first.
#[allow(clippy::mut_from_ref, reason = "disjointness is the caller's promise")]
pub(crate) unsafe fn planes_of<'a, A, B>(
    (out, size): (SharedMut<A>, usize),
    (x, from): (&'a [B], usize),
    planes: &Range<usize>,
) -> (&'a mut [A], &'a [B]) {
    // SAFETY: the caller's promise.
    let out = unsafe { out.slice(planes.start * size..planes.end * size) };
    (out, &x[planes.start * from..planes.end * from])
}
