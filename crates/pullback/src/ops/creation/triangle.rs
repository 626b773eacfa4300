//! The coordinates of the elements of triangular matrices.

use super::factory::{FactoryOptions, refused};
use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, Device, ErrorKind, Layout, Result, Tensor};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&TRIL_INDICES, &TRIU_INDICES];

/// The elements of a `row` x `col` matrix that lie on one side of diagonal `offset`.
#[derive(Clone, Copy)]
struct TriangleShape {
    row: i64,
    col: i64,
    offset: i64,
    is_lower: bool,
}

impl TriangleShape {
    /// The rows that have elements there, so that no more rows are walked through than there are elements.
    fn rows(self) -> std::ops::Range<i64> {
        let TriangleShape { row, col, offset, is_lower } = self;
        match (col, is_lower) {
            (0, _) => 0..0,
            (_, true) => offset.saturating_neg().max(0)..row,
            (_, false) => 0..col.saturating_sub(offset).min(row),
        }
    }
    /// The columns of row `i` in which there are elements.
    fn columns(self, i: i64) -> std::ops::Range<i64> {
        let diagonal = i.saturating_add(self.offset);
        if self.is_lower {
            0..diagonal.saturating_add(1).min(self.col)
        } else {
            diagonal.max(0)..self.col
        }
    }
    /// How many elements there are: those of rows that grow or shrink by one, and of rows that are whole. Beyond 64 bits it is
    /// the largest number, which no memory holds.
    fn count(self) -> i64 {
        let rows = self.rows();
        let lengths = |i: i64| self.columns(i).end - self.columns(i).start;
        if rows.is_empty() {
            return 0;
        }
        let (first, last) = (lengths(rows.start), lengths(rows.end - 1));
        let (count, least) = (i128::from(rows.end - rows.start), i128::from(first.min(last)));
        let most = i128::from(first.max(last));
        // From the shortest row on, lengths grow by one from row to row until they are the longest.
        let growing = most - least;
        let sum = (least + most) * (growing + 1) / 2 + (count - growing - 1) * most;
        i64::try_from(sum).unwrap_or(i64::MAX)
    }
    fn spec(self, options: FactoryOptions) -> Result<TensorSpec> {
        let TriangleShape { row, col, .. } = self;
        ensure!(row >= 0, runtime, "row must be non-negative, got{row}");
        ensure!(col >= 0, runtime, "col must be non-negative, got{col}");
        let spec = options.checked_spec(&[2, self.count()], DType::I64)?;
        ensure!(
            matches!(spec.dtype, DType::I32 | DType::I64),
            not_implemented,
            "\"{}_indices\" not implemented for '{}'",
            if self.is_lower { "tril" } else { "triu" }, // tidy: not an op
            spec.dtype.scalar_name()
        );
        Ok(spec)
    }
    /// Writes row and column numbers of the elements, (2, count).
    fn write(self, cpu: Cpu, result: &Tensor) -> Result<()> {
        let is_wide = result.dtype() == DType::I64;
        let own =
            if is_wide { result.clone() } else { Tensor::empty_of(result.shape(), DType::I64)? };
        if let Some(numbers) = own.view_mut(cpu).as_slice_mut::<i64>() {
            let (to_rows, to_columns) = numbers.split_at_mut(numbers.len() / 2);
            let mut at = 0;
            for i in self.rows() {
                let columns = self.columns(i);
                let end = at + (columns.end - columns.start) as usize;
                to_rows[at..end].fill(i);
                to_columns[at..end].iter_mut().zip(columns).for_each(|(to, j)| *to = j);
                at = end;
            }
        }
        if is_wide { Ok(()) } else { result.copy_data(cpu, &own) }
    }
}

/// The coordinates (2, count) of the {SIDE} triangle of a `row` x `col` matrix {BOUND} diagonal `offset`.
#[op(
    "{NAME}_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    not_differentiable,
    each(TrilIndices { NAME: tril, SIDE: "lower", BOUND: "up to", IS_LOWER: true },
         TriuIndices { NAME: triu, SIDE: "upper", BOUND: "from", IS_LOWER: false })
)]
impl TriangleIndices {
    fn meta(
        row: i64,
        col: i64,
        offset: i64,
        dtype: Option<DType>,
        layout: Option<Layout>,
        device: Option<Device>,
        pin_memory: Option<bool>,
    ) -> Result<TensorSpec> {
        let triangle = TriangleShape { row, col, offset, is_lower: IS_LOWER };
        triangle.spec(FactoryOptions(dtype, layout, device, pin_memory))
    }
    fn cpu(cpu: Cpu, result: &Tensor, row: i64, col: i64, offset: i64) -> Result<()> {
        let triangle = TriangleShape { row, col, offset, is_lower: IS_LOWER };
        triangle.write(cpu, result)
    }
    fn samples(_s: &Sampler) -> Vec<Sample> {
        triangle_samples()
    }
    fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
        vec![
            refused([(-1_i64).into(), 2_i64.into()], "row must be non-negative, got-1"),
            refused([2_i64.into(), (-2_i64).into()], "col must be non-negative, got-2"),
            InvalidSample::new(
                Sample::new([2_i64.into(), 2_i64.into()]).with("dtype", DType::F32),
                ErrorKind::NotImplemented,
                "\"{NAME}_indices\" not implemented for 'Float'",
            ),
        ]
    }
}

fn triangle_samples() -> Vec<Sample> {
    let sample = |row: i64, col: i64, offset: i64| {
        Sample::new([row.into(), col.into(), offset.into()]).without_gradient()
    };
    vec![
        sample(3, 2, 0),
        sample(2, 4, 1),
        sample(4, 3, -2),
        sample(0, 3, 0),
        sample(3, 3, 0).with("dtype", DType::I32),
    ]
}
