//! Recurrent layers: LSTM, GRU and plain cells over all steps of a batch of sequences.
//!
//! The input is projected for all steps in one product; then the steps follow one another, each with one
//! product by the hidden weights and one pass over the gates. Backward runs the steps in reverse order,
//! with the weights' gradients as one product over all steps at the end. The rows of the input are the steps
//! laid end to end; sequences that end early make later steps shorter ([`Steps::packed`]), so a state is a
//! buffer of whose rows each step uses the first few. One step is a cell. The arithmetic of the gates is
//! in `gate`. Projections and dropout are not computed here; callers compose them.

mod backward;
mod forward;
mod gate;

pub use backward::{InputGradients, OutputGradients, backward};
pub use forward::{Outputs, forward};

use crate::dense::{Real, expect_shape, load, with_output};
use crate::gemm::{self, GemmElement, GemmSizes, Matrix, PackedRight};
use crate::{Error, Result, StridedMut, StridedRef, memory};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::Range;

/// The kind of recurrent cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cell {
    /// `c' = f c + i g`, `h' = o tanh(c')` (Hochreiter and Schmidhuber 1997; the forget gate is Gers et al. 2000).
    Lstm,
    /// `h' = n + z (h - n)` (Cho et al. 2014).
    Gru,
    /// `h' = tanh(..)` (Elman 1990).
    Tanh,
    /// `h' = max(.., 0)`.
    Relu,
}

impl Cell {
    /// Rows of the weights per element of the state.
    pub fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Tanh | Cell::Relu => 1,
        }
    }
    /// What is kept of each step for the backward pass, per element of the state, beside states: the gates, and
    /// for GRU also the candidate's hidden part.
    pub fn saved_gates(self) -> usize {
        match self {
            Cell::Lstm | Cell::Gru => 4,
            Cell::Tanh | Cell::Relu => 0,
        }
    }
}

/// The rows of the data that belong to each time step, in the order in which the steps are computed.
#[derive(Clone, Debug)]
pub struct Steps {
    spans: SmallVec<[Range<usize>; 2]>,
    batch: usize,
}

impl Steps {
    /// `count` steps of `batch` rows.
    pub fn uniform(count: usize, batch: usize, reverse: bool) -> Result<Steps> {
        let mut spans = SmallVec::new();
        memory::extend(&mut spans, (0..count).map(|t| t * batch..(t + 1) * batch))?;
        if reverse {
            spans.reverse();
        }
        Ok(Steps { spans, batch })
    }
    /// Steps of these numbers of rows, none of which is larger than the one before.
    ///
    /// # Errors
    /// Numbers that grow or that are not positive.
    pub fn packed(rows: &[i64], reverse: bool) -> Result<Steps> {
        let total = rows.iter().try_fold(0_i64, |sum, &n| sum.checked_add(n));
        let is_good =
            rows.windows(2).all(|w| w[0] >= w[1]) && rows.iter().all(|&n| n > 0) && total.is_some();
        if !is_good {
            return Err(Error::runtime(format!(
                "batch_sizes must be positive and never grow, but got {rows:?}"
            )));
        }
        let mut start = 0;
        let span = |&n: &i64| {
            start += n as usize;
            start - n as usize..start
        };
        let mut spans = SmallVec::new();
        memory::extend(&mut spans, rows.iter().map(span))?;
        if reverse {
            spans.reverse();
        }
        Ok(Steps { spans, batch: rows.first().map_or(0, |&n| n as usize) })
    }
    /// Rows of all steps together.
    pub fn rows(&self) -> usize {
        self.spans.iter().map(Range::len).sum()
    }
    /// Rows of the largest step.
    pub fn batch(&self) -> usize {
        self.batch
    }
}

/// What a layer computes with: `x` (rows, inputs), the state before the first step, weights
/// (gates * hidden, inputs) and (gates * hidden, hidden), and biases.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    /// The kind of cell.
    pub cell: Cell,
    /// The steps' inputs.
    pub x: StridedRef<'a>,
    /// `h` before the first step: `batch * hidden` elements.
    pub h: StridedRef<'a>,
    /// For LSTM, `c` before the first step.
    pub c: Option<StridedRef<'a>>,
    /// The weights by which the input and the state are multiplied.
    pub weights: [StridedRef<'a>; 2],
    /// The biases of the input's and of the state's product.
    pub biases: [Option<StridedRef<'a>>; 2],
}

/// The operands as slices.
struct Layer<'a, T: Clone> {
    cell: Cell,
    /// Features of the input and of the state.
    inputs: usize,
    hidden: usize,
    x: Cow<'a, [T]>,
    h: Cow<'a, [T]>,
    c: Cow<'a, [T]>,
    input_weight: Cow<'a, [T]>,
    hidden_weight: Cow<'a, [T]>,
}

impl<'a, T: GateElement> Layer<'a, T> {
    fn new(operands: &Operands<'a>, steps: &Steps) -> Result<Self> {
        let [input, hidden] = operands.weights;
        let (&[rows, inputs], &[rows2, width]) = (input.shape(), hidden.shape()) else {
            return Err(Error::runtime("the weights of a recurrent layer must be 2-D".to_owned()));
        };
        let gates = operands.cell.gates() as i64;
        let state = steps.batch().saturating_mul(width as usize);
        let biases = operands.biases.iter().flatten().all(|b| b.numel() as i64 == rows);
        let fits = rows == gates.saturating_mul(width)
            && rows2 == rows
            && operands.x.numel() == steps.rows().saturating_mul(inputs as usize)
            && operands.h.numel() == state
            && operands.c.is_none_or(|c| c.numel() == state)
            && operands.c.is_some() == (operands.cell == Cell::Lstm)
            && biases;
        if !fits {
            return Err(Error::runtime("sizes of a recurrent layer do not fit".to_owned()));
        }
        Ok(Layer {
            cell: operands.cell,
            inputs: inputs as usize,
            hidden: width as usize,
            x: load(operands.x)?,
            h: load(operands.h)?,
            c: operands.c.map_or(Ok(Cow::Borrowed(&[][..])), load)?,
            input_weight: load(input)?,
            hidden_weight: load(hidden)?,
        })
    }
    /// Columns of the weights' products.
    fn width(&self) -> usize {
        self.cell.gates() * self.hidden
    }
}

/// The functions that gates need besides arithmetic.
pub(crate) trait GateElement: Real + GemmElement {
    /// `1 / (1 + e^-x)`.
    fn sigmoid(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
}

impl GateElement for f32 {
    #[inline(always)]
    fn sigmoid(self) -> f32 {
        crate::simd::math_f32::sigmoid(self)
    }
    #[inline(always)]
    fn tanh(self) -> f32 {
        crate::simd::math_f32::tanh(self)
    }
}

impl GateElement for f64 {
    #[inline(always)]
    fn sigmoid(self) -> f64 {
        crate::simd::math_f64::sigmoid(self)
    }
    #[inline(always)]
    fn tanh(self) -> f64 {
        crate::simd::math_f64::tanh(self)
    }
}

/// A row-major matrix with `columns` columns that lie `stride` apart, or the transposed one.
#[derive(Clone, Copy)]
struct MatrixSlice<'a, T> {
    data: &'a [T],
    columns: usize,
    transposed: bool,
}

impl<'a, T> MatrixSlice<'a, T> {
    fn new(data: &'a [T], columns: usize) -> Self {
        MatrixSlice { data, columns, transposed: false }
    }
    fn t(self) -> Self {
        MatrixSlice { transposed: !self.transposed, ..self }
    }
    /// Whether it has so many rows and columns.
    fn holds(self, rows: usize, columns: usize) -> bool {
        let (rows, columns) = if self.transposed { (columns, rows) } else { (rows, columns) };
        columns <= self.columns && rows * self.columns <= self.data.len()
    }
    fn matrix(self) -> Matrix<T> {
        let matrix = Matrix::rows(self.data.as_ptr(), self.columns);
        if self.transposed { matrix.t() } else { matrix }
    }
}

/// `c = a @ b`, added to `c` if `adds`; rows of `c` begin `stride` elements apart.
fn multiply<T: GateElement>(
    (c, stride): (&mut [T], usize),
    a: MatrixSlice<'_, T>,
    b: MatrixSlice<'_, T>,
    s: GemmSizes,
    adds: bool,
) -> Result<()> {
    assert!(a.holds(s.m, s.k) && b.holds(s.k, s.n), "the operands hold the product");
    assert!(s.n <= stride && s.m * stride <= c.len(), "the result holds the product");
    let beta = if adds { T::ONE } else { T::ZERO };
    let c = Matrix::rows(c.as_mut_ptr(), stride);
    // SAFETY: just checked; `c` is borrowed mutably, so it overlaps neither operand.
    unsafe { gemm::product_without_packing(s, c, a.matrix(), b.matrix(), beta) }
}

/// A weight by which the rows of each step are multiplied, packed once where steps are many.
struct StepWeight<'a, T: 'static> {
    weight: MatrixSlice<'a, T>,
    packed: Option<PackedRight<T>>,
}

impl<'a, T: GateElement> StepWeight<'a, T> {
    /// The weight, of `k` rows and `n` columns, for these steps.
    fn new(weight: MatrixSlice<'a, T>, size: (usize, usize), steps: &Steps) -> Result<Self> {
        let (k, n) = size;
        assert!(weight.holds(k, n), "the weight is whole");
        let packed = if steps.spans.len() > FEW_STEPS {
            // SAFETY: just checked.
            unsafe { PackedRight::new(weight.matrix(), size, steps.batch())? }
        } else {
            None
        };
        Ok(StepWeight { weight, packed })
    }

    /// `c = a @ weight`, added to `c` if `adds`; rows of `c` begin `stride` elements apart.
    fn multiply(
        &self,
        (c, stride): (&mut [T], usize),
        a: MatrixSlice<'_, T>,
        s: GemmSizes,
        adds: bool,
    ) -> Result<()> {
        let Some(packed) = &self.packed else {
            return multiply((c, stride), a, self.weight, s, adds);
        };
        assert!(a.holds(s.m, s.k) && packed.size() == (s.k, s.n), "the operands hold the product");
        assert!(s.n <= stride && s.m * stride <= c.len(), "the result holds the product");
        let beta = if adds { T::ONE } else { T::ZERO };
        let c = Matrix::rows(c.as_mut_ptr(), stride);
        // SAFETY: just checked; `c` is borrowed mutably, so it overlaps neither operand.
        unsafe { packed.product(s.m, c, a.matrix(), beta) }
    }
}

/// Steps above which a packed copy of a weight pays.
const FEW_STEPS: usize = 3;

/// Refuses a result with another number of elements; its shape is the caller's.
fn expect_elements(name: &str, view: &StridedMut<'_>, count: usize) -> Result<()> {
    let elements: i64 = view.shape().iter().product();
    expect_shape(name, &[elements], &[count as i64])
}

/// Writes `values` into a view of as many elements.
fn put<T: GateElement>(name: &str, view: &mut StridedMut<'_>, values: &[T]) -> Result<()> {
    expect_elements(name, view, values.len())?;
    with_output::<T, _>(view, |out| out.copy_from_slice(values))?;
    Ok(())
}

/// The state that each step starts from: the state before the first step, then what earlier steps left there.
fn previous_states<'a, T: GateElement>(
    start: &'a [T],
    after: &[T],
    steps: &Steps,
    width: usize,
) -> Result<Cow<'a, [T]>> {
    if steps.spans.len() == 1 {
        return Ok(Cow::Borrowed(start));
    }
    let mut out = memory::filled(T::ZERO, after.len())?;
    let mut last: Range<usize> = 0..0;
    for span in &steps.spans {
        let saved = span.len().min(last.len()) * width;
        let to = &mut out[span.start * width..span.end * width];
        let (old, new) = to.split_at_mut(saved);
        old.copy_from_slice(&after[last.start * width..][..saved]);
        let rows = new.len();
        new.copy_from_slice(&start[saved..saved + rows]);
        last = span.clone();
    }
    Ok(Cow::Owned(out))
}
