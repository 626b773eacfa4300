//! Tensors set together: side by side (`column_stack`), along a diagonal (`block_diag`), each with each
//! (`cartesian_prod`, `combinations`).

use super::join::cat;
use crate::dispatch::{OpDef, Value};
use crate::error::ensure;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::tensor::Cpu;
use crate::tensor::promote::{default_dtype, result_type};
use crate::tensor::shape::list;
use crate::{ErrorKind, Result, Tensor, TensorSpec, interrupt};
use pullback_kernels::memory;
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&BLOCK_DIAG, &CARTESIAN_PROD, &COMBINATIONS, &COLUMN_STACK];

fn of_list(s: &Sampler, shapes: &[&[i64]]) -> Sample {
    Sample::new([Value::Tensors(shapes.iter().map(|shape| s.normal(shape)).collect())])
}

/// Joins along dimension 1, vectors and numbers as columns.
#[op("column_stack(Tensor[] tensors) -> Tensor", out, separate)]
impl ColumnStack {
    fn composite(tensors: &[Tensor]) -> Result<Tensor> {
        ensure!(!tensors.is_empty(), runtime, "column_stack expects a non-empty TensorList");
        let column = |t: &Tensor| {
            if t.ndim() < 2 { t.reshape(&[t.numel(), 1]) } else { Ok(t.clone()) }
        };
        cat(&tensors.iter().map(column).collect::<Result<Vec<_>>>()?, 1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            of_list(s, &[&[2], &[2, 3], &[2]]),
            of_list(s, &[&[], &[]]),
            of_list(s, &[&[2, 1, 2], &[2, 2, 2]]),
            of_list(s, &[&[0], &[0, 2]]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shapes: &[&[i64]], phrase| {
            InvalidSample::new(of_list(s, shapes), ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[], "column_stack expects a non-empty TensorList"),
            bad(&[&[2], &[3]], "Expected size 2 but got size 3 for tensor number 1"),
        ]
    }
}

/// Rows and columns of a block: numbers and vectors are rows.
fn block(shape: &[i64]) -> [i64; 2] {
    match *shape {
        [rows, columns] => [rows, columns],
        [columns] => [1, columns],
        _ => [1, 1],
    }
}

/// The position of a block, in rows and columns, and its sizes.
type BlockSlice = ([i64; 2], [i64; 2]);

/// The position of each block, one after the other along the diagonal; and the sizes of the result.
fn corners(blocks: impl Iterator<Item = [i64; 2]>) -> (Vec<BlockSlice>, [i64; 2]) {
    let mut end = [0_i64; 2];
    let mut all = Vec::new();
    for sizes in blocks {
        all.push((end, sizes));
        end = [end[0].saturating_add(sizes[0]), end[1].saturating_add(sizes[1])];
    }
    (all, end)
}

/// The part of a matrix that belongs to a block.
fn part(matrix: &Tensor, (start, sizes): BlockSlice) -> Result<Tensor> {
    matrix.narrow(-2, start[0], sizes[0])?.narrow(-1, start[1], sizes[1])
}

/// The matrices along a diagonal, zeros elsewhere; numbers and vectors are rows, dtypes promote. Nothing gives shape
/// (1, 0).
#[op("block_diag(Tensor[] tensors) -> Tensor", narrow_floats, jvp = linear, batch = block_diag(tensors))]
impl BlockDiag {
    fn meta(tensors: &[Tensor]) -> Result<TensorSpec> {
        for (position, tensor) in tensors.iter().enumerate() {
            ensure!(
                tensor.ndim() <= 2,
                runtime,
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {position} has {} dimensions",
                tensor.ndim()
            );
        }
        let Some(first) = tensors.first() else {
            return Ok(TensorSpec::of(&[1, 0], default_dtype()));
        };
        let dtype = result_type(&tensors.iter().collect::<Vec<_>>())?;
        let (_, sizes) = corners(tensors.iter().map(|t| block(t.shape())));
        Ok(TensorSpec::beside(first, &sizes).computed_in(dtype))
    }
    fn cpu(cpu: Cpu, result: &Tensor, tensors: &[Tensor]) -> Result<()> {
        result.zero_bytes();
        let (positions, _) = corners(tensors.iter().map(|t| block(t.shape())));
        for (tensor, position) in tensors.iter().zip(positions) {
            part(result, position)?.copy_data(cpu, tensor)?;
        }
        Ok(())
    }
    fn vjp_tensors(grad: &Tensor, tensors_shapes: &[i64]) -> Result<Vec<Tensor>> {
        let mut shapes = Vec::new();
        let mut rest = tensors_shapes;
        while let Some((&rank, after)) = rest.split_first() {
            let (shape, after) = after.split_at(rank as usize);
            shapes.push(shape);
            rest = after;
        }
        let (positions, _) = corners(shapes.iter().map(|shape| block(shape)));
        let own = |(position, shape): (_, &&[i64])| part(grad, position)?.reshape(shape);
        positions.into_iter().zip(&shapes).map(own).collect()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![
            of_list(s, &[&[2, 2], &[3], &[], &[1, 0]]),
            of_list(s, &[&[2, 3]]),
            of_list(s, &[]).without_gradient(),
            Sample::new([Value::Tensors(vec![s.transposed(2, 3), s.normal(&[0, 2])])]),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let phrase = "Input tensors must have 2 or fewer dimensions. Input 1 has 3 dimensions";
        let sample = of_list(s, &[&[2], &[2, 2, 2]]);
        vec![InvalidSample::new(sample, ErrorKind::Runtime, phrase)]
    }
}

/// Refuses what is no vector.
fn check_vector(t: &Tensor) -> Result<()> {
    ensure!(t.ndim() == 1, runtime, "Expect a 1D vector, but got shape {}", list(t.shape()));
    Ok(())
}

/// All tuples of one element of each vector, a row each, the last element varying fastest; a single vector as it is.
#[op("cartesian_prod(Tensor[] tensors) -> Tensor")]
impl CartesianProd {
    fn composite(tensors: &[Tensor]) -> Result<Tensor> {
        tensors.iter().try_for_each(check_vector)?;
        if let [only] = tensors {
            return Ok(only.clone());
        }
        let grids = super::mesh::meshgrid_indexing(tensors, "ij")?;
        let columns = grids.iter().map(|t| t.flatten(0, -1)).collect::<Result<Vec<_>>>()?;
        super::join::stack(&columns, 1)
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        vec![of_list(s, &[&[2], &[3], &[2]]), of_list(s, &[&[3]]), of_list(s, &[&[2], &[0]])]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shapes: &[&[i64]], phrase| {
            InvalidSample::new(of_list(s, shapes), ErrorKind::Runtime, phrase)
        };
        vec![
            bad(&[], "meshgrid expects a non-empty TensorList"),
            bad(&[&[2], &[]], "Expect a 1D vector, but got shape []"),
            bad(&[&[2, 2], &[2]], "Expect a 1D vector, but got shape [2, 2]"),
        ]
    }
}

/// How many ways there are to take `r` of `n` things in order of their positions; `None` if that is no int64.
fn count_choices(n: i64, r: i64, with_replacement: bool) -> Option<i64> {
    let things = if with_replacement { n.checked_add(r - 1)? } else { n };
    if things < r {
        return Some(0);
    }
    let few = i128::from(r.min(things - r));
    let mut count = 1_i128;
    for i in 0..few {
        count = count.checked_mul(i128::from(things) - i)? / (i + 1);
        i64::try_from(count).ok()?;
    }
    i64::try_from(count).ok()
}

/// The positions of all choices, one choice behind the other, in lexical order.
fn choices(n: i64, r: i64, with_replacement: bool, count: i64) -> Result<Vec<i64>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let r = r as usize;
    let apart = i64::from(!with_replacement);
    let mut choice = memory::collect((0..r as i64).map(|i| i * apart))?;
    let mut all = memory::with_capacity(count as usize * r)?;
    for number in 0..count {
        interrupt::check_every::<12>(number as usize);
        memory::extend(&mut all, choice.iter().copied())?;
        // The last position that can move on does; the positions after it follow as closely as
        // possible.
        let limit = |i: usize| n - 1 - apart * (r - 1 - i) as i64;
        if let Some(moved) = (0..r).rev().find(|&i| choice[i] < limit(i)) {
            choice[moved] += 1;
            for i in moved + 1..r {
                choice[i] = choice[i - 1] + apart;
            }
        }
    }
    Ok(all)
}

/// All ways to take `r` elements of a vector in the order of their positions, a row each: shape (count, r); none if `r` is 0.
#[op("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", function_only)]
impl Combinations {
    fn composite(self_: &Tensor, r: i64, with_replacement: bool) -> Result<Tensor> {
        check_vector(self_)?;
        ensure!(r >= 0, runtime, "Expect a non-negative number, but got {r}");
        if r == 0 {
            return self_.new_zeros(&[0]);
        }
        let n = self_.numel();
        let bytes = count_choices(n, r, with_replacement)
            .and_then(|count| Some((count, count.checked_mul(r)?.checked_mul(8)?)));
        let Some((count, _)) = bytes else {
            return Err(crate::Error::out_of_memory(format!(
                "combinations(): there are too many ways to take {r} of {n} elements"
            )));
        };
        let positions = choices(n, r, with_replacement, count)?;
        let positions =
            Tensor::from_slice(&positions, &[positions.len() as i64])?.brought_to(self_)?;
        self_.index_select(0, &positions)?.reshape(&[count, r])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let sample = |n: i64, r: i64, with_replacement: bool| {
            Sample::new([s.normal(&[n]).into(), r.into(), with_replacement.into()])
        };
        vec![
            sample(4, 2, false),
            sample(4, 3, true),
            sample(3, 1, false),
            sample(3, 3, false),
            sample(2, 3, false),
            sample(3, 0, false),
            sample(0, 2, true),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let bad = |shape: &[i64], r: i64, kind, phrase| {
            InvalidSample::new(Sample::new([s.normal(shape).into(), r.into()]), kind, phrase)
        };
        let runtime = ErrorKind::Runtime;
        vec![
            bad(&[2, 2], 2, runtime, "Expect a 1D vector, but got shape [2, 2]"),
            bad(&[3], -1, runtime, "Expect a non-negative number, but got -1"),
            bad(&[500], 250, ErrorKind::OutOfMemory, "too many ways to take 250 of 500"),
        ]
    }
}
