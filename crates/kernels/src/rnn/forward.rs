//! The forward pass of recurrent layers: one product for the inputs of all steps, then the steps one after the other.

use super::{
    Cell, FEW_STEPS, GateElement, Layer, MatrixSlice, Operands, StepWeight, Steps, expect_elements,
    gate, multiply, put,
};
use crate::dense::{for_compute, load, with_output};
use crate::elementwise::copy_tile;
use crate::gemm::GemmSizes;
use crate::interrupt::WorkCounter;
use crate::{Result, StridedMut, StridedRef, memory};
use std::borrow::Cow;

/// Where the results go. What is `None` is not wanted, or is not part of the kind of cell.
pub struct Outputs<'o, 'v> {
    /// `h` of every step: rows * hidden elements.
    pub output: &'o mut StridedMut<'v>,
    /// The states after the last step: batch * hidden elements.
    pub h: Option<&'o mut StridedMut<'v>>,
    /// The cell states after the last step (LSTM): batch * hidden elements.
    pub c: Option<&'o mut StridedMut<'v>>,
    /// What backward needs of the gates: rows * [`Cell::saved_gates`] * hidden elements, in the type computed in.
    pub gates: Option<&'o mut StridedMut<'v>>,
    /// `c` of every step (LSTM), in the type computed in.
    pub cells: Option<&'o mut StridedMut<'v>>,
}

/// Computes a recurrent layer over all steps: the output of each step, the last states, and what the backward pass needs.
///
/// # Errors
/// Sizes that do not fit, or a dtype that is not floating.
pub fn forward(out: Outputs<'_, '_>, operands: &Operands<'_>, steps: &Steps) -> Result<()> {
    for_compute!(operands.x.dtype(), "rnn", T => {
        let layer = Layer::<T>::new(operands, steps)?;
        let [x, h] = operands.biases;
        let biases = [bias::<T>(x, layer.width())?, bias::<T>(h, layer.width())?];
        expect_elements("output", out.output, steps.rows() * layer.hidden)?;
        let kept = steps.rows() * layer.hidden * layer.cell.saved_gates();
        let cells = if layer.cell == Cell::Lstm { steps.rows() * layer.hidden } else { 0 };
        let wants_state = out.h.is_some() || out.c.is_some();
        let mut state = (Cow::Borrowed(&*layer.h), Cow::Borrowed(&*layer.c));
        if wants_state || steps.spans.len() > 1 {
            state = (Cow::Owned(memory::copied(&layer.h)?), Cow::Owned(memory::copied(&layer.c)?));
        }
        with_output::<T, _>(out.output, |output| {
            with_optional(out.gates, kept, |gates| {
                with_optional(out.cells, cells, |cells| {
                    walk(&layer, [&biases[0], &biases[1]], steps, (output, gates, cells), &mut state, wants_state)
                })
            })
        })?;
        for (view, state) in [(out.h, &state.0), (out.c, &state.1)] {
            if let Some(view) = view {
                put("state", view, state)?;
            }
        }
        Ok(())
    })
}

/// A bias, zeros if there is none.
fn bias<T: GateElement>(view: Option<StridedRef<'_>>, n: usize) -> Result<Cow<'_, [T]>> {
    view.map_or_else(|| memory::filled(T::ZERO, n).map(Cow::Owned), load)
}

/// Runs `fill` on an output, or on memory of its own if that is not wanted.
fn with_optional<T: GateElement>(
    view: Option<&mut StridedMut<'_>>,
    count: usize,
    fill: impl FnOnce(&mut [T]) -> Result<()>,
) -> Result<()> {
    match view {
        Some(view) if view.numel() == count => with_output(view, fill),
        _ => fill(&mut memory::filled(T::ZERO, count)?),
    }
}

fn walk<T: GateElement>(
    layer: &Layer<'_, T>,
    [bias_x, bias_h]: [&[T]; 2],
    steps: &Steps,
    (output, gates, cells): (&mut [T], &mut [T], &mut [T]),
    state: &mut (Cow<'_, [T]>, Cow<'_, [T]>),
    wants_state: bool,
) -> Result<()> {
    let (width, hidden, kept) =
        (layer.width(), layer.hidden, layer.cell.saved_gates() * layer.hidden);
    let all = GemmSizes { m: steps.rows(), n: width, k: layer.inputs };
    let (x, weight) = (
        MatrixSlice::new(&layer.x, layer.inputs),
        MatrixSlice::new(&layer.input_weight, layer.inputs).t(),
    );
    // The products become the gates where they lie; those of a plain cell become its output.
    if kept == 0 {
        multiply((output, hidden), x, weight, all, false)?;
    } else {
        multiply((gates, kept), x, weight, all, false)?;
    }
    let sum = memory::collect(bias_x.iter().zip(bias_h).map(|(&a, &b)| a + b))?;
    let weight = MatrixSlice::new(&layer.hidden_weight, hidden).t();
    let mut weight = StepWeight::new(weight, (hidden, width), steps)?;
    let copy;
    if steps.spans.len() > FEW_STEPS && weight.packed.is_none() {
        copy = transposed(&layer.hidden_weight, width, hidden)?;
        weight.weight = MatrixSlice::new(&copy, width);
    }
    let mut products =
        memory::filled(T::ZERO, if layer.cell == Cell::Gru { steps.batch() * width } else { 0 })?;
    let mut pace = WorkCounter::new();
    for (number, span) in steps.spans.iter().enumerate() {
        pace.spend(span.len() * hidden * width / 16);
        let (rows, used) = (span.len(), span.len() * hidden);
        let (from, to) = (span.start * hidden, span.end * hidden);
        let s = GemmSizes { m: rows, n: width, k: hidden };
        let h = MatrixSlice::new(&state.0[..used], hidden);
        let out = &mut output[from..to];
        match layer.cell {
            Cell::Lstm => {
                let gates = &mut gates[span.start * kept..span.end * kept];
                weight.multiply((gates, kept), h, s, true)?;
                gate::lstm(gates, &sum, &state.1[..used], &mut cells[from..to], out, hidden);
            }
            Cell::Gru => {
                let gates = &mut gates[span.start * kept..span.end * kept];
                let products = &mut products[..rows * width];
                weight.multiply((products, width), h, s, false)?;
                gate::gru(gates, products, (bias_x, bias_h), &state.0[..used], out, hidden);
            }
            Cell::Tanh | Cell::Relu => {
                weight.multiply((out, hidden), h, s, true)?;
                gate::plain(out, &sum, layer.cell == Cell::Relu);
            }
        }
        if wants_state || number + 1 < steps.spans.len() {
            state.0.to_mut()[..used].copy_from_slice(&output[from..to]);
            if layer.cell == Cell::Lstm {
                state.1.to_mut()[..used].copy_from_slice(&cells[from..to]);
            }
        }
    }
    Ok(())
}

/// A copy of a (rows, columns) matrix as (columns, rows).
fn transposed<T: GateElement>(from: &[T], rows: usize, columns: usize) -> Result<Vec<T>> {
    assert_eq!(from.len(), rows * columns, "the matrix is whole");
    let mut to = memory::filled(T::ZERO, from.len())?;
    let size = size_of::<T>() as isize;
    let strides = (rows as isize * size, columns as isize * size);
    let (target, source) = (to.as_mut_ptr().cast(), from.as_ptr().cast());
    // SAFETY: just checked: both matrices lie without gaps inside their slices.
    unsafe { copy_tile::<T, false>(target, source, strides, (rows, columns)) };
    Ok(to)
}
