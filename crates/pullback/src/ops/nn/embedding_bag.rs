//! Embedding bags: sums, means or maxima of rows of a table, and the gradients of the table and of the weights of the
//! rows.
//!
//! The entries of all bags are concatenated, `offsets` says where each bag begins. Sums and means are linear in the
//! table, and sums in the weights of the rows; the gradient of maxima goes to the rows that the forward pass returned.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::pointwise::arithmetic::by_both;
use crate::ops::sparse;
use crate::tensor::shape::list;
use crate::tensor::{Cpu, TensorSpec};
use crate::{DType, ErrorKind, Result, Scalar, Tensor};
use pullback_kernels::check_shape;
use pullback_kernels::index::{self as kernel, BagMode, BagOptions};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &EMBEDDING_BAG_KERNEL,
    &EMBEDDING_BAG_FORWARD_ONLY,
    &EMBEDDING_BAG,
    &EMBEDDING_BAG_PADDING_IDX,
    &EMBEDDING_BAG_DENSE_BACKWARD,
];

fn mode_of(mode: i64) -> Result<BagMode> {
    Ok(match mode {
        0 => BagMode::Sum,
        1 => BagMode::Mean,
        2 => BagMode::Max,
        _ => bail!(runtime, "`mode` must be sum, mean, or max."),
    })
}

/// The index that counts as padding: none, if it is negative.
fn padding(padding_idx: i64) -> Option<i64> {
    (padding_idx >= 0).then_some(padding_idx)
}

/// Dtypes in errors.
fn names(dtypes: &[DType]) -> String {
    let names: Vec<_> = dtypes.iter().map(|dtype| dtype.scalar_name().to_string()).collect();
    names.join(", ")
}

fn check_dtype(name: &str, x: &Tensor, taken: &[DType]) -> Result<()> {
    ensure!(
        taken.contains(&x.dtype()),
        runtime,
        "Expected tensor for argument #1 '{name}' to have one of the following scalar types: {}; but got torch.{}Tensor instead (while checking arguments for embedding_bag)",
        names(taken),
        x.dtype().scalar_name()
    );
    Ok(())
}

fn check_indices(all: [(&str, &Tensor); 2]) -> Result<()> {
    all.into_iter().try_for_each(|(name, x)| check_dtype(name, x, &[DType::I64, DType::I32]))
}

/// Refuses `per_sample_weights` that do not fit the entries.
fn check_factors(weight: &Tensor, indices: &Tensor, factors: &Tensor, mode: BagMode) -> Result<()> {
    ensure!(
        mode == BagMode::Sum,
        runtime,
        "embedding_bag: per_sample_weights only supported with mode='sum'"
    );
    ensure!(
        factors.dtype() == weight.dtype(),
        runtime,
        "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but type torch.{}Tensor does not equal torch.{}Tensor (while checking arguments for embedding_bag)",
        weight.dtype().scalar_name(),
        factors.dtype().scalar_name()
    );
    ensure!(
        factors.shape() == indices.shape(),
        runtime,
        "Expected per_sample_weights of the shape {} of indices, but got {}",
        list(indices.shape()),
        list(factors.shape())
    );
    Ok(())
}

/// The specs of the four results.
fn specs(
    weight: &Tensor,
    [indices, offsets]: [&Tensor; 2],
    mode: i64,
    factors: Option<&Tensor>,
    include_last_offset: bool,
) -> Result<[TensorSpec; 4]> {
    ensure!(
        indices.ndim() == 1,
        runtime,
        "input has to be a 1D Tensor beside offsets, but got Tensor of dimension {}",
        indices.ndim()
    );
    ensure!(
        offsets.ndim() == 1,
        runtime,
        "offsets has to be a 1D Tensor, but got Tensor of dimension {}",
        offsets.ndim()
    );
    ensure!(
        weight.ndim() == 2,
        runtime,
        "weight has to be a 2D Tensor, but got Tensor of dimension {}",
        weight.ndim()
    );
    let mode = mode_of(mode)?;
    check_indices([("indices", indices), ("offsets", offsets)])?;
    check_dtype("weight", weight, &[DType::F16, DType::BF16, DType::F32, DType::F64])?;
    if let Some(factors) = factors {
        check_factors(weight, indices, factors, mode)?;
    }
    let bags = offsets.numel() - i64::from(include_last_offset);
    ensure!(bags >= 0, runtime, "include_last_offset: number of offset should be at least 1");
    let is_narrow = [indices, offsets].iter().all(|x| x.dtype() == DType::I32);
    let index_spec = |shape: &[i64]| {
        let dtype = if is_narrow { DType::I32 } else { DType::I64 };
        TensorSpec::beside(indices, shape).computed_in(dtype)
    };
    let output = [bags, weight.shape()[1]];
    let max_indices = if mode == BagMode::Max { &output[..] } else { &[bags] };
    Ok([
        TensorSpec::beside(weight, &output),
        index_spec(&[indices.numel()]),
        index_spec(&[bags]),
        index_spec(max_indices),
    ])
}

/// Computes the four results.
fn compute(
    cpu: Cpu,
    results: [&Tensor; 4],
    weight: &Tensor,
    [indices, offsets]: [&Tensor; 2],
    factors: Option<&Tensor>,
    options: BagOptions,
) -> Result<()> {
    let mut views = results.map(|result| result.view_mut(cpu));
    let [output, offset2bag, bag_size, max_indices] = &mut views;
    let from = kernel::BagInput {
        weight: weight.view_ref(cpu),
        indices: indices.view_ref(cpu),
        offsets: offsets.view_ref(cpu),
        factors: factors.map(|factors| factors.view_ref(cpu)),
    };
    let to = kernel::BagOutput { output, offset2bag, bag_size, max_indices };
    Ok(kernel::embedding_bag(to, &from, options)?)
}

/// Sums (`mode` 0), means (1) or maxima (2) of the rows of `weight` (n, d) that `indices` names, bag by bag.
///
/// Bag `b` has the entries from `offsets[b]` to the next offset or, for the last one, to the end; with
/// `include_last_offset` the last offset is the end of the last bag and starts no bag. Entries equal to `padding_idx`
/// (negative: none) are in no bag; in sums, rows are multiplied by `per_sample_weights`. An empty bag gives zeros, and
/// of equal maxima the first counts.
///
/// Returns the bags (bags, d), the bag of each entry, the sizes of the bags (zeros for sums), and the row of each
/// maximum (for other modes the sizes).
#[op("_embedding_bag{FORM}(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
     function_only, internal, not_differentiable(indices, offsets), batch = bags(weight),
     each(EmbeddingBagKernel { FORM: "" }, EmbeddingBagForwardOnly { FORM: "_forward_only" }))]
impl Bags {
    fn meta(
        weight: &Tensor,
        indices: &Tensor,
        offsets: &Tensor,
        mode: i64,
        per_sample_weights: Option<&Tensor>,
        include_last_offset: bool,
    ) -> Result<[TensorSpec; 4]> {
        specs(weight, [indices, offsets], mode, per_sample_weights, include_last_offset)
    }
    fn cpu(
        cpu: Cpu,
        result0: &Tensor,
        result1: &Tensor,
        result2: &Tensor,
        result3: &Tensor,
        weight: &Tensor,
        indices: &Tensor,
        offsets: &Tensor,
        mode: i64,
        per_sample_weights: Option<&Tensor>,
        include_last_offset: bool,
        padding_idx: i64,
    ) -> Result<()> {
        let options = BagOptions {
            mode: mode_of(mode)?,
            padding_idx: padding(padding_idx),
            include_last_offset,
        };
        let results = [result0, result1, result2, result3];
        compute(cpu, results, weight, [indices, offsets], per_sample_weights, options)
    }
    fn vjp_weight(
        grad: &Tensor,
        weight_shape: &[i64],
        indices: &Tensor,
        per_sample_weights: Option<&Tensor>,
        result1: &Tensor,
        result2: &Tensor,
        result3: &Tensor,
        args: &BagsArgs<'_>,
    ) -> Result<Tensor> {
        let (rows, mode, padding_idx) = (weight_shape[0], args.mode, args.padding_idx);
        if mode_of(mode)? == BagMode::Max {
            ensure!(!args.sparse, runtime, "max mode does not support sparse weights");
            let zeros = TensorSpec::beside(grad, weight_shape).zeros()?;
            if rows == 0 {
                return Ok(zeros);
            }
            return zeros.scatter_add(0, &wide(result3)?, &filled_bags(grad, result2)?);
        }
        if args.sparse {
            ensure!(
                !args.scale_grad_by_freq,
                runtime,
                "embedding_bag: scale_grad_by_freq not supported with sparse gradients"
            );
            let entries = BagEntries { indices, offset2bag: result1, mode, padding_idx };
            let values = entries.spread(grad, per_sample_weights)?;
            return sparse::embedding_backward(
                &values,
                indices,
                weight_shape,
                (padding_idx, false),
            );
        }
        grad.embedding_bag_dense_backward(
            indices,
            result1,
            rows,
            args.scale_grad_by_freq,
            mode,
            per_sample_weights,
            padding_idx,
        )
    }
    fn vjp_per_sample_weights(
        grad: &Tensor,
        weight: &Tensor,
        indices: &Tensor,
        result1: &Tensor,
        mode: i64,
        padding_idx: i64,
    ) -> Result<Tensor> {
        let entries = BagEntries { indices, offset2bag: result1, mode, padding_idx };
        entries.products(grad, weight)
    }
    fn jvp(
        weight_p: &Tensor,
        weight_t: Option<&Tensor>,
        indices: &Tensor,
        offsets: &Tensor,
        per_sample_weights: Option<&Tensor>,
        per_sample_weights_t: Option<&Tensor>,
        result2: &Tensor,
        result3: &Tensor,
        args: &BagsArgs<'_>,
    ) -> Result<[Option<Tensor>; 4]> {
        let of = |weight: &Tensor, factors: Option<&Tensor>| -> Result<Tensor> {
            if mode_of(args.mode)? == BagMode::Max && weight.shape()[0] > 0 {
                return filled_bags(&weight.gather(0, &wide(result3)?)?, result2);
            }
            let [output, ..] = weight.embedding_bag_kernel(
                indices,
                offsets,
                false,
                args.mode,
                false,
                factors,
                args.include_last_offset,
                args.padding_idx,
            )?;
            Ok(output)
        };
        let by_weight = weight_t.map(|t| of(t, per_sample_weights));
        let output = by_both(by_weight, per_sample_weights_t.map(|t| of(weight_p, Some(t))))?;
        Ok([output, None, None, None])
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        bag_samples(s)
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused(s)
    }
}

/// The indices as int64, which ops that scatter need.
fn wide(indices: &Tensor) -> Result<Tensor> {
    if indices.dtype() == DType::I64 { Ok(indices.clone()) } else { indices.to_dtype(DType::I64) }
}

/// The rows with zeros for bags without entries.
fn filled_bags(rows: &Tensor, sizes: &Tensor) -> Result<Tensor> {
    let is_empty = sizes.eq(&Tensor::wrapped(0_i64)?)?.unsqueeze(1)?;
    rows.masked_fill(&is_empty, Scalar::Int(0))
}

/// The entries of bags whose rows are added or averaged.
struct BagEntries<'a> {
    indices: &'a Tensor,
    /// The bag of each entry, negative where it is in none.
    offset2bag: &'a Tensor,
    mode: i64,
    padding_idx: i64,
}

impl BagEntries<'_> {
    /// The bag of each entry, where entries in none get an arbitrary bag, and a mask of the entries that are in one.
    fn bags(&self) -> Result<(Tensor, Tensor)> {
        let mut is_in = self.offset2bag.ge(&Tensor::wrapped(0_i64)?)?;
        if self.padding_idx >= 0 {
            let is_row = self.indices.ne(&Tensor::wrapped(self.padding_idx)?)?;
            is_in = is_in.logical_and(&is_row)?;
        }
        Ok((wide(&self.offset2bag.clamp_min(Scalar::Int(0))?)?, is_in))
    }
    /// The weights of the entries (n, 1), zeros for those in no bag.
    fn factors(&self, grad: &Tensor, factors: Option<&Tensor>) -> Result<Tensor> {
        let (bags, is_in) = self.bags()?;
        let ones = is_in.to_dtype(grad.dtype())?;
        let mut all = match factors {
            Some(factors) => factors.masked_fill(&is_in.logical_not()?, Scalar::Int(0))?,
            None => ones.clone(),
        };
        if mode_of(self.mode)? == BagMode::Mean {
            let zeros = TensorSpec::beside(grad, &grad.shape()[..1]).zeros()?;
            let sizes = zeros.index_add(0, &bags, &ones)?.clamp_min(Scalar::Int(1))?;
            all = all.div(&sizes.index_select(0, &bags)?)?;
        }
        all.unsqueeze(1)
    }
    /// The gradient of each entry's row, from that of its bag: (n, d).
    fn spread(&self, grad: &Tensor, factors: Option<&Tensor>) -> Result<Tensor> {
        if grad.shape()[0] == 0 {
            return TensorSpec::beside(grad, &[self.indices.numel(), grad.shape()[1]]).zeros();
        }
        let (bags, _) = self.bags()?;
        grad.index_select(0, &bags)?.mul(&self.factors(grad, factors)?)
    }
    /// The dot products of each entry's row with the gradient of its bag: (n).
    fn products(&self, grad: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let rows = weight.index_select(0, &wide(self.indices)?)?;
        self.spread(grad, None)?.mul(&rows)?.sum_dim(Some(&[1]), false)
    }
    /// The sums or means of rows of `weight` for bags of the shape of `grad`.
    fn gathered(
        &self,
        grad_shape: &[i64],
        weight: &Tensor,
        factors: Option<&Tensor>,
    ) -> Result<Tensor> {
        let zeros = TensorSpec::beside(weight, grad_shape).zeros()?;
        if grad_shape[0] == 0 {
            return Ok(zeros);
        }
        let rows = weight.index_select(0, &wide(self.indices)?)?;
        let (bags, _) = self.bags()?;
        zeros.index_add(0, &bags, &rows.mul(&self.factors(&zeros, factors)?)?)
    }
}

/// The gradient of a sum or mean of `_embedding_bag` with respect to its table of `num_weights` rows: each row gets the
/// gradients of the bags that it is in, multiplied by its weight in the bag, divided by the size of the bag for means,
/// and with `scale_grad_by_freq` by how often the row occurs.
#[op("_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
     internal, not_differentiable(indices, offset2bag), batch = bags(grad))]
impl EmbeddingBagDenseBackward {
    fn meta(
        grad: &Tensor,
        indices: &Tensor,
        offset2bag: &Tensor,
        num_weights: i64,
        mode: i64,
        per_sample_weights: Option<&Tensor>,
    ) -> Result<TensorSpec> {
        check_indices([("indices", indices), ("offset2bag", offset2bag)])?;
        let entries = [indices.numel()];
        check_shape("offset2bag", &[offset2bag.numel()], &entries)?;
        if let Some(factors) = per_sample_weights {
            check_shape("per_sample_weights", &[factors.numel()], &entries)?;
        }
        ensure!(
            grad.ndim() == 2,
            runtime,
            "Expected a gradient of 2 dimensions, but got {}",
            grad.ndim()
        );
        ensure!(mode_of(mode)? != BagMode::Max, runtime, "the gradient of maxima is a scatter");
        Ok(TensorSpec::beside(grad, &[num_weights, grad.shape()[1]]))
    }
    fn cpu(
        cpu: Cpu,
        result: &Tensor,
        grad: &Tensor,
        indices: &Tensor,
        offset2bag: &Tensor,
        scale_grad_by_freq: bool,
        mode: i64,
        per_sample_weights: Option<&Tensor>,
        padding_idx: i64,
    ) -> Result<()> {
        let from = kernel::BagGradient {
            grad: grad.view_ref(cpu),
            indices: indices.view_ref(cpu),
            offset2bag: offset2bag.view_ref(cpu),
            factors: per_sample_weights.map(|factors| factors.view_ref(cpu)),
        };
        let (mode, padding_idx) = (mode_of(mode)?, padding(padding_idx));
        let out = &mut result.view_mut(cpu);
        Ok(kernel::embedding_bag_backward(out, &from, mode, padding_idx, scale_grad_by_freq)?)
    }
    fn vjp_grad(
        grad_result: &Tensor,
        grad_shape: &[i64],
        indices: &Tensor,
        offset2bag: &Tensor,
        scale_grad_by_freq: bool,
        mode: i64,
        per_sample_weights: Option<&Tensor>,
        padding_idx: i64,
    ) -> Result<Tensor> {
        check_frequency(scale_grad_by_freq)?;
        let entries = BagEntries { indices, offset2bag, mode, padding_idx };
        entries.gathered(grad_shape, grad_result, per_sample_weights)
    }
    fn vjp_per_sample_weights(
        grad_result: &Tensor,
        grad_p: &Tensor,
        indices: &Tensor,
        offset2bag: &Tensor,
        scale_grad_by_freq: bool,
        mode: i64,
        padding_idx: i64,
    ) -> Result<Tensor> {
        check_frequency(scale_grad_by_freq)?;
        let entries = BagEntries { indices, offset2bag, mode, padding_idx };
        entries.products(grad_p, grad_result)
    }
    fn jvp(
        grad_p: &Tensor,
        grad_t: Option<&Tensor>,
        indices: &Tensor,
        offset2bag: &Tensor,
        per_sample_weights: Option<&Tensor>,
        per_sample_weights_t: Option<&Tensor>,
        args: &EmbeddingBagDenseBackwardArgs<'_>,
    ) -> Result<Option<Tensor>> {
        let of = |grad: &Tensor, factors: Option<&Tensor>| {
            grad.embedding_bag_dense_backward(
                indices,
                offset2bag,
                args.num_weights,
                args.scale_grad_by_freq,
                args.mode,
                factors,
                args.padding_idx,
            )
        };
        let by_grad = grad_t.map(|t| of(t, per_sample_weights));
        by_both(by_grad, per_sample_weights_t.map(|t| of(grad_p, Some(t))))
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        let call = |mode: i64, factors: bool| {
            let numbers =
                Tensor::from_slice(&[0_i64, 0, 2, 2, -1], &[5]).expect("samples are small");
            let start = [s.normal(&[3, 2]).into(), s.integers(&[5], 0, 4).into(), numbers.into()];
            let call = Sample::new(start).with("num_weights", 4).with("scale_grad_by_freq", false);
            let call = call.with("mode", mode);
            let factors = if factors { s.normal(&[5]).into() } else { Value::None };
            call.with("per_sample_weights", factors)
        };
        vec![call(0, false), call(0, true), call(1, false).with("padding_idx", 1)]
    }
}

fn check_frequency(scale_grad_by_freq: bool) -> Result<()> {
    ensure!(
        !scale_grad_by_freq,
        runtime,
        "embedding_bag: the second derivative with scale_grad_by_freq is not supported"
    );
    Ok(())
}

/// Sums (`mode` 0), means (1) or maxima (2) of the rows of `weight` (n, d) that `indices` names, bag by bag, without
/// the entries equal to `padding_idx`, which counts from the end of the table if it is negative; `None` leaves out
/// none.
///
/// Returns the bags (bags, d), the bag of each entry, the sizes of the bags (zeros for sums), and the row of each
/// maximum (for other modes the sizes).
///
/// # Errors
/// `RuntimeError` for a `padding_idx` that is no row of the table.
#[op(
    "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
    function_only,
    not_differentiable(indices, offsets)
)]
impl EmbeddingBagPaddingIdx {
    fn composite(
        weight: &Tensor,
        indices: &Tensor,
        offsets: &Tensor,
        per_sample_weights: Option<&Tensor>,
        args: &EmbeddingBagPaddingIdxArgs<'_>,
    ) -> Result<[Tensor; 4]> {
        let a = args;
        let padding_idx = match a.padding_idx {
            None => -1,
            Some(given) => {
                let rows = weight.shape().first().copied().unwrap_or(0);
                ensure!(
                    (-rows..rows).contains(&given),
                    runtime,
                    "padding_idx must be within the number of embeddings, {} through {}, but got {given}",
                    -rows,
                    rows - 1
                );
                given.rem_euclid(rows)
            }
        };
        weight.embedding_bag_kernel(
            indices,
            offsets,
            a.scale_grad_by_freq,
            a.mode,
            a.sparse,
            per_sample_weights,
            a.include_last_offset,
            padding_idx,
        )
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        if s.dtype.is_complex() {
            return Vec::new();
        }
        (0..3).map(|mode| padded(s, mode, -2)).collect()
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let phrase = "padding_idx must be within the number of embeddings, -4 through 3, but got 4";
        vec![InvalidSample::new(padded(s, 0, 4), ErrorKind::Runtime, phrase)]
    }
}

/// Sums (`mode` 0), means (1) or maxima (2) of the rows of `weight` (n, d) that `indices` names, bag by bag.
///
/// Bag `b` has the entries from `offsets[b]` to the next offset or, for the last one, to the end; with
/// `include_last_offset` the last offset is the end of the last bag and starts no bag. In sums, rows are multiplied by
/// `per_sample_weights`. An empty bag gives zeros, and of equal maxima the first counts.
///
/// Returns the bags (bags, d), the bag of each entry, the sizes of the bags (zeros for sums), and the row of each
/// maximum (for other modes the sizes).
#[op(
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
    function_only,
    not_differentiable(indices, offsets)
)]
impl EmbeddingBag {
    fn composite(
        weight: &Tensor,
        indices: &Tensor,
        offsets: &Tensor,
        per_sample_weights: Option<&Tensor>,
        args: &EmbeddingBagArgs<'_>,
    ) -> Result<[Tensor; 4]> {
        weight.embedding_bag_kernel(
            indices,
            offsets,
            args.scale_grad_by_freq,
            args.mode,
            args.sparse,
            per_sample_weights,
            args.include_last_offset,
            -1,
        )
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        bag_samples(s).into_iter().take(2).collect()
    }
}

/// A call with five entries of a table of four rows in three bags, one of them empty.
fn call(s: &Sampler, mode: i64) -> Sample {
    let offsets = Tensor::from_slice(&[0_i64, 2, 2], &[3]).expect("samples are small");
    let start = [s.distinct(&[4, 3]).into(), s.integers(&[5], 0, 4).into(), offsets.into()];
    Sample::new(start).with("mode", mode)
}

/// The call that [`call`] makes, with every other argument at its default but `padding_idx`.
fn padded(s: &Sampler, mode: i64, padding_idx: i64) -> Sample {
    let call = call(s, mode).with("scale_grad_by_freq", false).with("sparse", false);
    let call = call.with("per_sample_weights", Value::None).with("include_last_offset", false);
    call.with("padding_idx", padding_idx)
}

fn bag_samples(s: &Sampler) -> Vec<Sample> {
    if s.dtype.is_complex() {
        return Vec::new();
    }
    let none = Tensor::from_slice::<i64>(&[], &[0]).expect("samples are small");
    vec![
        call(s, 0),
        call(s, 1),
        call(s, 2),
        call(s, 0).with("per_sample_weights", s.normal(&[5])),
        call(s, 1).with("padding_idx", 1),
        call(s, 2).with("padding_idx", 1).with("include_last_offset", true),
        call(s, 0).with("indices", none.clone()).with("offsets", none),
    ]
}

fn refused(s: &Sampler) -> Vec<InvalidSample> {
    let bad = |sample, phrase| InvalidSample::new(sample, ErrorKind::Runtime, phrase);
    let ints = |values: &[i64]| {
        Tensor::from_slice(values, &[values.len() as i64]).expect("samples are small")
    };
    let sum = || call(s, 0);
    vec![
        bad(call(s, 3), "`mode` must be sum, mean, or max."),
        bad(sum().with("weight", s.normal(&[4])), "weight has to be a 2D Tensor"),
        bad(sum().with("weight", s.integers(&[4, 3], 0, 4)), "Half, BFloat16, Float, Double"),
        bad(sum().with("offsets", ints(&[1])), "offsets[0] has to be 0"),
        bad(sum().with("offsets", ints(&[0, 9])), "can not be greater than input's length 5"),
        bad(sum().with("offsets", ints(&[0, 3, 2])), "offsets have to be in ascending order"),
        bad(sum().with("offsets", s.integers(&[1, 1], 0, 1)), "offsets has to be a 1D Tensor"),
        bad(
            sum().with("indices", ints(&[0, 4])).with("offsets", ints(&[0])),
            "Index 1 of input takes value 4",
        ),
        bad(
            call(s, 2).with("indices", ints(&[-1])).with("offsets", ints(&[0])),
            "but found idx to be -1",
        ),
        bad(
            call(s, 1).with("per_sample_weights", s.normal(&[5])),
            "only supported with mode='sum'",
        ),
        bad(
            sum().with("per_sample_weights", s.normal(&[4])),
            "Expected per_sample_weights of the shape",
        ),
        bad(
            sum().with("offsets", ints(&[])).with("include_last_offset", true),
            "number of offset should be at least 1",
        ),
    ]
}
