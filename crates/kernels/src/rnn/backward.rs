//! The backward pass of recurrent layers: the gradients of all operands from those of the results.

use super::{
    Cell, GateElement, Layer, MatrixSlice, Operands, StepWeight, Steps, expect_elements, gate,
    multiply, previous_states, put,
};
use crate::dense::{Real, expect_shape, for_compute, load, load_owned, with_output};
use crate::gemm::GemmSizes;
use crate::interrupt::WorkCounter;
use crate::{Result, StridedMut, StridedRef, memory, row};
use std::borrow::Cow;

/// The results of the layer, and their gradients; a gradient that is `None` is zero.
#[derive(Clone, Copy)]
pub struct OutputGradients<'a> {
    /// `h` of every step; not needed for one step of LSTM or GRU.
    pub output: Option<StridedRef<'a>>,
    /// What forward kept of the gates (LSTM and GRU).
    pub gates: Option<StridedRef<'a>>,
    /// `c` of every step (LSTM); not needed for one step.
    pub cells: Option<StridedRef<'a>>,
    /// The gradient of the output.
    pub by_output: Option<StridedRef<'a>>,
    /// The gradients of the states after the last step.
    pub by_h: Option<StridedRef<'a>>,
    /// The gradient of the cell states after the last step (LSTM).
    pub by_c: Option<StridedRef<'a>>,
}

/// Where the gradients go: of `x`, `h`, `c`, the two weights and the two biases. `None` is not wanted.
pub type InputGradients<'o, 'v> = [Option<&'o mut StridedMut<'v>>; 7];

/// The gradients of all operands, by the gradients of all results.
///
/// # Errors
/// Sizes that do not fit, or a dtype that is not floating.
pub fn backward<'a>(
    wanted: InputGradients<'_, '_>,
    operands: &Operands<'a>,
    results: &OutputGradients<'a>,
    steps: &Steps,
) -> Result<()> {
    for_compute!(operands.x.dtype(), "rnn_backward", T => {
        let layer = Layer::<T>::new(operands, steps)?;
        let given = |view: Option<StridedRef<'a>>| view.map_or(Ok(Cow::Borrowed(&[][..])), load::<T>);
        let (output, gates) = (given(results.output)?, given(results.gates)?);
        let cells = match results.cells {
            None if layer.cell == Cell::Lstm => Cow::Owned(gate::cells(&gates, &layer.c, layer.hidden)?),
            cells => given(cells)?,
        };
        check_known(&layer, steps, [&output, &gates, &cells])?;
        let saved = SavedState {
            output: &output,
            gates: &gates,
            cells: &cells,
            previous: previous_states(&layer.h, &output, steps, layer.hidden)?,
            previous_c: if layer.cell == Cell::Lstm { previous_states(&layer.c, &cells, steps, layer.hidden)? } else { Cow::Borrowed(&[]) },
            by_output: results.by_output.map(load::<T>).transpose()?,
        };
        let state = steps.batch() * layer.hidden;
        let start = |view: Option<StridedRef<'_>>, count: usize| {
            view.map_or_else(|| memory::filled(T::ZERO, count), load_owned::<T>)
        };
        let h = start(results.by_h, state)?;
        let c = start(results.by_c, if layer.cell == Cell::Lstm { state } else { 0 })?;
        let done = walk(&layer, &saved, steps, h, c, wanted[1].is_some())?;
        finish(wanted, &layer, &saved, &done, steps.rows())
    })
}

/// Refuses results that are not those of the layer.
fn check_known<T: GateElement>(
    layer: &Layer<'_, T>,
    steps: &Steps,
    saved: [&[T]; 3],
) -> Result<()> {
    let (state, is_step) = (steps.rows() * layer.hidden, steps.spans.len() == 1);
    let is_plain = layer.cell.saved_gates() == 0;
    let expected = [
        if is_step && !is_plain { saved[0].len() } else { state },
        if is_plain { saved[1].len() } else { state * layer.cell.saved_gates() },
        if layer.cell == Cell::Lstm { state } else { saved[2].len() },
    ];
    for (name, (saved, expected)) in
        ["output", "gates", "cells"].into_iter().zip(saved.iter().zip(expected))
    {
        expect_shape(name, &[saved.len() as i64], &[expected as i64])?;
    }
    Ok(())
}

/// What forward left, as slices.
struct SavedState<'a, T: Clone> {
    output: &'a [T],
    gates: &'a [T],
    cells: &'a [T],
    /// The `h` (and `c`) that each step started from.
    previous: Cow<'a, [T]>,
    previous_c: Cow<'a, [T]>,
    by_output: Option<Cow<'a, [T]>>,
}

/// The gradients that the steps themselves give.
struct StepGradients<T> {
    /// The gradients of the input's products.
    by_x: Vec<T>,
    /// The gradients of the state's products, where they differ from those of the input's (GRU).
    by_h: Vec<T>,
    h: Vec<T>,
    c: Vec<T>,
}

/// All steps from the last to the first. The first one's `h` is left out unless `wants_h`.
fn walk<T: GateElement>(
    layer: &Layer<'_, T>,
    saved: &SavedState<'_, T>,
    steps: &Steps,
    mut h: Vec<T>,
    mut c: Vec<T>,
    wants_h: bool,
) -> Result<StepGradients<T>> {
    let (width, hidden, kept) =
        (layer.width(), layer.hidden, layer.cell.saved_gates() * layer.hidden);
    let rows = steps.rows();
    let mut by_x = memory::filled(T::ZERO, rows * width)?;
    let mut by_h = memory::filled(T::ZERO, if layer.cell == Cell::Gru { rows * width } else { 0 })?;
    let weight = MatrixSlice::new(&layer.hidden_weight, hidden);
    let weight = StepWeight::new(weight, (width, hidden), steps)?;
    let mut pace = WorkCounter::new();
    for (number, span) in steps.spans.iter().enumerate().rev() {
        pace.spend(span.len() * hidden * width / 16);
        let (used, from, to) = (span.len() * hidden, span.start * hidden, span.end * hidden);
        let (first, last) = (span.start * width, span.end * width);
        if let Some(grad) = &saved.by_output {
            row::add_into(&mut h[..used], &grad[from..to]);
        }
        let gates = &saved.gates[..saved.gates.len().min(span.end * kept)];
        let by = &mut by_x[first..last];
        match layer.cell {
            Cell::Lstm => {
                let (old, new) = (&saved.previous_c[from..to], &saved.cells[from..to]);
                let gates = &gates[span.start * kept..];
                gate::lstm_backward(by, gates, old, new, &h[..used], &mut c[..used], hidden);
            }
            Cell::Gru => {
                let (gates, previous) = (&gates[span.start * kept..], &saved.previous[from..to]);
                let by_h = &mut by_h[first..last];
                gate::gru_backward(by, by_h, gates, previous, &mut h[..used], hidden);
            }
            Cell::Tanh | Cell::Relu => {
                let is_relu = layer.cell == Cell::Relu;
                gate::plain_backward(by, &saved.output[from..to], &h[..used], is_relu);
            }
        }
        if number > 0 || wants_h {
            let by = if layer.cell == Cell::Gru { &by_h } else { &by_x };
            let s = GemmSizes { m: span.len(), n: hidden, k: width };
            let by = MatrixSlice::new(&by[first..last], width);
            weight.multiply((&mut h[..used], hidden), by, s, layer.cell == Cell::Gru)?;
        }
    }
    Ok(StepGradients { by_x, by_h, h, c })
}

/// The products over all steps, and everything into its place.
fn finish<T: GateElement>(
    [x, h, c, input, hidden, bias_x, bias_h]: InputGradients<'_, '_>,
    layer: &Layer<'_, T>,
    saved: &SavedState<'_, T>,
    done: &StepGradients<T>,
    rows: usize,
) -> Result<()> {
    let width = layer.width();
    let by_x = MatrixSlice::new(&done.by_x, width);
    let by_h = if layer.cell == Cell::Gru { MatrixSlice::new(&done.by_h, width) } else { by_x };
    if let Some(view) = x {
        let weight = MatrixSlice::new(&layer.input_weight, layer.inputs);
        put_product(view, by_x, weight, GemmSizes { m: rows, n: layer.inputs, k: width })?;
    }
    if let Some(view) = input {
        let x = MatrixSlice::new(&layer.x, layer.inputs);
        put_product(view, by_x.t(), x, GemmSizes { m: width, n: layer.inputs, k: rows })?;
    }
    if let Some(view) = hidden {
        let previous = MatrixSlice::new(&saved.previous, layer.hidden);
        put_product(view, by_h.t(), previous, GemmSizes { m: width, n: layer.hidden, k: rows })?;
    }
    let mut sums = None;
    for (view, by) in [(bias_x, by_x), (bias_h, by_h)] {
        if let Some(view) = view {
            // Both biases have one gradient where both products have.
            let kept = if layer.cell == Cell::Gru { None } else { sums.take() };
            let kept = kept.map_or_else(|| column_sums(by.data, width), Ok)?;
            put("bias", view, sums.insert(kept))?;
        }
    }
    for (view, values) in [(h, &done.h), (c, &done.c)] {
        if let Some(view) = view {
            put("state", view, values)?;
        }
    }
    Ok(())
}

/// A product into a view, straight if it lies as a matrix.
fn put_product<T: GateElement>(
    view: &mut StridedMut<'_>,
    a: MatrixSlice<'_, T>,
    b: MatrixSlice<'_, T>,
    s: GemmSizes,
) -> Result<()> {
    expect_elements("gradient", view, s.m * s.n)?;
    with_output::<T, _>(view, |out| multiply((out, s.n), a, b, s, false))?;
    Ok(())
}

/// Rows that are summed before their sum is added to the whole.
const BLOCK: usize = 64;

/// The sum of each column of a matrix of `width` columns, in blocks of rows.
fn column_sums<T: GateElement>(rows: &[T], width: usize) -> Result<Vec<T>> {
    let mut total = memory::filled(T::ZERO, width)?;
    let mut part = memory::filled(T::ZERO, width)?;
    for block in rows.chunks((BLOCK * width).max(1)) {
        part.fill(T::ZERO);
        for row in block.chunks_exact(width.max(1)) {
            row::add_into(&mut part, row);
        }
        row::add_into(&mut total, &part);
    }
    Ok(total)
}
