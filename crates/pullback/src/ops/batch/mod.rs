//! Batching rules: how the ops compute a whole batch at once (`autograd::batch`).
//!
//! A rule sees the call as its caller does, without the batch, and gives results whose first dimension counts examples.
//! Most ops are of a class, which one word names: `pointwise`, [`reduce::reduction`], [`dims::along`] (dimensions are
//! counted one further), [`lead`] (leading dimensions are free). A class knows arguments by their names, and the tensor that
//! the op is of ([`BatchedCall::subject`]). Rules for one op are given its arguments by the item: `batch = mm(self, mat2)`. Where no
//! rule is possible, [`one_by_one`] goes through the examples; ops whose result's size depends on elements refuse
//! ([`data_dependent`]). The files are families of rules.

mod dims;
mod image;
mod index;
mod loss;
mod matrix;
mod norm;
mod random;
mod recurrent;
mod reduce;
mod scatter;
mod values;
mod view;

pub use dims::along;
pub(crate) use dims::{
    gather, glu, joined, picked, picked_backward, repeat, roll, scatter, stacked, topk, windows,
};
pub(crate) use image::{
    attention, batches1, batches2, batches3, convolution, convolution_backward_input,
    convolution_backward_weight, folded, fractional2, fractional3, image1, image2, image3,
};
pub(crate) use index::{
    among, bags, bucketize, embedding, embedding_backward, fill, fill_diagonal, fill_number, index,
    index_put, index_select, is_number_among, masked_fill, one_hot, slices, slices_from_either_end,
    sparse_result, take, values_at,
};
pub(crate) use loss::{
    ctc_loss, ctc_loss_backward, elementwise_loss, multi_margin_loss, nll_loss, nll_loss_backward,
};
pub(crate) use matrix::{
    addbmm, addmm, addmv, baddbmm, block_diag, bmm, diag_embed, dot, factored, factored_matrix,
    int_mm, linear_solve, matrices_or_nothing, mm, mv, vdot, with_tolerances,
};
pub(crate) use norm::{batch_norm, group_norm, layer_norm, rms_norm};
pub(crate) use random::{
    binomial, dirichlet, drawn_like, dropout, multinomial, permutation, random,
};
pub(crate) use recurrent::recurrent;
pub use reduce::reduction;
pub(crate) use reduce::{reduction_by, reduction_of_listed};
pub(crate) use scatter::{masked_scatter, put};
pub(crate) use view::{
    as_strided, as_strided_scatter, copied, expand, in_place, permute, pick_view, sizes, squeeze,
    squeeze_dim, squeeze_dims, strided_sizes, swapped, transposed, unfold, unsqueeze, view,
    view_scatter,
};

use crate::dispatch::Form;
use crate::dispatch::batch::{BatchedCall, DefaultRules, Outcome};
use crate::dispatch::{Arg, ArgDef, IntoOutputs, Outputs, TensorVec, Value};
use crate::error::{bail, ensure};
use crate::tensor::promote;
use crate::{Dims, Error, MemoryFormat, Result, Tensor};
use smallvec::SmallVec;
use values::Values;

/// The rules of ops that name none.
pub(crate) static DEFAULT_RULES: DefaultRules = DefaultRules { random, pointwise, one_by_one };

/// A list of sizes with that of the batch in front.
fn behind(size: i64, sizes: &[i64]) -> Dims {
    let mut all = Dims::with_capacity(sizes.len() + 1);
    all.push(size);
    all.extend_from_slice(sizes);
    all
}

fn ints(sizes: &[i64]) -> Value {
    Value::Ints(sizes.into())
}

impl BatchedCall<'_> {
    /// Whether the form writes into the first argument.
    fn writes(&self) -> bool {
        matches!(self.form, Form::Inplace)
    }
    /// The tensor that the op is applied to: its first argument.
    fn subject(&self) -> Result<&Tensor> {
        match self.args.first() {
            Some(Arg::Tensor(tensor)) => Ok(tensor),
            _ => Err(unsupported(self, "has no tensor that its batching rule is for")),
        }
    }
    /// The argument of that name, as the caller gave it.
    fn named(&self, name: &str) -> Option<Arg<'_>> {
        self.def.args.iter().position(|arg| arg.name == name).map(|index| self.args[index])
    }
    /// The tensor of that name.
    fn tensor_named(&self, name: &str) -> Option<&Tensor> {
        if let Some(Arg::Tensor(tensor)) = self.named(name) { Some(tensor) } else { None }
    }
    /// Whether an argument that may be missing is batched.
    fn is_batched<'t>(&self, tensor: impl Into<Option<&'t Tensor>>) -> bool {
        tensor.into().is_some_and(|tensor| self.physical(tensor).is_some())
    }
    /// The physical tensor if it is batched, else the tensor itself, which all examples share.
    fn either(&self, tensor: &Tensor) -> Tensor {
        self.physical(tensor).unwrap_or_else(|| tensor.clone())
    }
    /// The tensor with the batch dimension in front: expanded, without a copy, if it is not batched.
    fn front(&self, tensor: &Tensor) -> Result<Tensor> {
        match self.physical(tensor) {
            Some(physical) => Ok(physical),
            None => tensor.unsqueeze(0)?.expand(&behind(self.size, tensor.shape()), false),
        }
    }
    /// The physical tensor with a dimension for each of `rank` logical ones; missing dimensions are inserted behind the batch.
    fn aligned(&self, tensor: &Tensor, rank: usize) -> Result<Tensor> {
        let Some(physical) = self.physical(tensor) else { return Ok(tensor.clone()) };
        widened(&physical, rank)
    }
    /// The tensor that the form writes to.
    fn target(&self) -> Result<Tensor> {
        let target = self.subject()?;
        let Some(physical) = self.physical(target) else {
            bail!(
                runtime,
                "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more elements than `self`: self is not batched, but another argument is, and {}_() would write a result for each example into one place. Use the form that gives a new tensor",
                self.def.name
            );
        };
        Ok(physical)
    }
    /// The arguments with `f` applied to each tensor.
    fn values(
        &self,
        f: &mut dyn FnMut(&'static ArgDef, &Tensor) -> Result<Tensor>,
    ) -> Result<Values> {
        let rank = self.subject().map_or(0, Tensor::ndim);
        let map = |(info, arg): (&'static ArgDef, &Arg<'_>)| {
            Ok(match arg {
                Arg::Tensor(tensor) => Value::Tensor(f(info, tensor)?),
                Arg::Tensors(list) => {
                    Value::Tensors(list.iter().map(|t| f(info, t)).collect::<Result<_>>()?)
                }
                Arg::OptTensors(list) => {
                    let map = |t: &Option<Tensor>| t.as_ref().map(|t| f(info, t)).transpose();
                    Value::OptTensors(list.iter().map(map).collect::<Result<_>>()?)
                }
                // (With the batch a tensor has one dimension more than channels-last images.)
                Arg::MemoryFormat(MemoryFormat::ChannelsLast) if rank == 4 => Value::None,
                Arg::MemoryFormat(MemoryFormat::ChannelsLast3d) if rank == 5 => Value::None,
                Arg::MemoryFormat(
                    format @ (MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d),
                ) => bail!(
                    runtime,
                    "required rank {} tensor to use {} format, but an example has {rank} dimensions",
                    if *format == MemoryFormat::ChannelsLast { 4 } else { 5 },
                    if *format == MemoryFormat::ChannelsLast {
                        "channels_last"
                    } else {
                        "channels_last_3d"
                    }
                ),
                other => Value::from_arg(*other),
            })
        };
        let all = self.def.args.iter().zip(self.args).map(map).collect::<Result<_>>()?;
        Ok(Values::new(self.def, all))
    }
    /// Calls the op in its form.
    fn run(&self, values: &Values) -> Result<Outputs> {
        if self.writes() {
            self.target()?;
            let args = values.args();
            return crate::autograd::call_inplace(self.def, &args).map(IntoOutputs::into_outputs);
        }
        values.call()
    }
    /// Whether the form writes into this argument.
    fn is_target(&self, info: &ArgDef) -> bool {
        self.writes() && self.def.args.first().is_some_and(|first| std::ptr::eq(first, info))
    }
    /// Writes the result into the target, if the form does.
    fn finish(&self, result: &Tensor) -> Result<Outcome> {
        if self.writes() {
            let target = self.target()?;
            target.copy_(result, false)?;
            return Ok(target.into());
        }
        Ok(result.clone().into())
    }
}

/// A physical tensor with dimensions of size 1 inserted after the batch, so that it has `rank` further dimensions.
fn widened(physical: &Tensor, rank: usize) -> Result<Tensor> {
    let own = physical.ndim() - 1;
    if own >= rank {
        return Ok(physical.clone());
    }
    let mut wide = physical.clone();
    for _ in own..rank {
        wide = wide.unsqueeze(1)?;
    }
    Ok(wide)
}

/// The rule of elementwise ops: batch dimensions in front, broadcast.
pub(crate) fn pointwise(call: &BatchedCall<'_>) -> Result<Outcome> {
    let mut rank = 0;
    crate::dispatch::each_tensor(call.args, |tensor| rank = rank.max(tensor.ndim()));
    let common = common_dtype(call)?;
    let values = call.values(&mut |info, tensor| {
        let physical = call.aligned(tensor, rank)?;
        let is_number = tensor.ndim() == 0 && !call.is_target(info);
        match common {
            // (A batch of 0-dimensional tensors takes part in type promotion like a tensor with dimensions, so it is
            // converted before. A tensor that is written to stays as it is.)
            Some(dtype) if is_number && dtype != tensor.dtype() => physical.to_dtype(dtype),
            _ => Ok(physical),
        }
    })?;
    call.run(&values).map(Outcome::Batched)
}

/// The dtype that the arguments of an example promote to, where the batch dimension would change it.
fn common_dtype(call: &BatchedCall<'_>) -> Result<Option<crate::DType>> {
    let mut tensors: SmallVec<[&Tensor; 4]> = SmallVec::new();
    crate::dispatch::each_tensor(call.args, |tensor| tensors.push(tensor));
    let promotes = !matches!(call.def.result, crate::dispatch::ResultKind::Custom);
    let is_mixed = tensors.iter().any(|t| t.dtype() != tensors[0].dtype());
    if !promotes || !is_mixed || tensors.iter().all(|t| t.ndim() != 0) {
        return Ok(None);
    }
    promote::result_type(&tensors).map(Some)
}

/// The rule of ops on matrices: dimensions before the last two are arbitrary, and the batch is one more.
pub fn matrices(call: &BatchedCall<'_>) -> Result<Outcome> {
    if call.subject()?.ndim() < 2 { one_by_one(call) } else { lead(call) }
}

/// The rule of ops on channels of images: dimensions before the last three are arbitrary, and the batch is one more.
pub(crate) fn pixels(call: &BatchedCall<'_>) -> Result<Outcome> {
    if call.subject()?.ndim() < 3 { one_by_one(call) } else { lead(call) }
}

/// The rule of ops with arbitrary leading dimensions: the batch is one more.
fn lead(call: &BatchedCall<'_>) -> Result<Outcome> {
    let values = call.values(&mut |_, tensor| call.front(tensor))?;
    call.run(&values).map(Outcome::Batched)
}

/// The rule [`lead`] for ops whose list of sizes, two for each dimension, must not reach the batch.
pub(crate) fn padded(call: &BatchedCall<'_>, self_: &Tensor, pad: &[i64]) -> Result<Outcome> {
    let (pads, rank) = (pad.len(), self_.ndim());
    ensure!(
        pads / 2 <= rank,
        runtime,
        "Length of pad should be no more than twice the number of dimensions of the input. Pad length is {pads} while the input has {rank} dimensions."
    );
    lead(call)
}

/// The rule [`lead`] without a batch dimension for tensors that are not batched.
pub(crate) fn pass(call: &BatchedCall<'_>) -> Result<Outcome> {
    let values = call.values(&mut |_, tensor| Ok(call.either(tensor)))?;
    call.run(&values).map(Outcome::Batched)
}

/// Refuses the call, because the size of the result, or what a program does next, depends on the elements.
pub(crate) fn data_dependent(call: &BatchedCall<'_>) -> Result<Outcome> {
    ensure!(
        !call.def.is(crate::dispatch::Traits::DYNAMIC_OUTPUT_SHAPE),
        runtime,
        "vmap: We do not support batching operators that can output dynamic shape. {}() gives results whose size depends on the elements, and would differ between the examples",
        call.def.name
    );
    bail!(
        runtime,
        "vmap: {}() is not possible on a batched tensor: what it gives depends on the elements (a data-dependent operation), and would differ between the examples",
        call.def.name
    )
}

/// Refuses `item`, because there is a number for each example.
pub(crate) fn item(call: &BatchedCall<'_>) -> Result<Outcome> {
    bail!(
        runtime,
        "vmap: It looks like you're calling .item() on a Tensor, or attempting to use a Tensor in some data-dependent control flow (if, while, float()). There is one number for each of the {} examples: use ops such as torch.where instead, or return the tensor",
        call.size
    )
}

/// The rule without vectorisation: one example after the other.
pub(crate) fn one_by_one(call: &BatchedCall<'_>) -> Result<Outcome> {
    ensure!(
        !call.def.is(crate::dispatch::Traits::VIEW),
        not_implemented,
        "vmap: {}() gives views, and has no batching rule",
        call.def.name
    );
    crate::dispatch::batch::check_fallback(call.def)?;
    ensure!(
        call.size > 0,
        runtime,
        "vmap: {}() has no batching rule, and there is no example to say what it gives",
        call.def.name
    );
    let mut all: Vec<TensorVec> = Vec::new();
    for example in 0..call.size {
        let values = call.values(&mut |_, tensor| match call.physical(tensor) {
            Some(physical) => physical.select(0, example),
            None => Ok(tensor.clone()),
        })?;
        match call.run(&values)? {
            Outputs::Number(_) => return data_dependent(call),
            outputs => all.push(outputs.tensors()),
        }
        if example == 0 {
            // (This is noted after the first example, because rules leave invalid arguments to be refused by an
            // example.)
            crate::dispatch::batch::note_one_by_one(call.def);
        }
    }
    if call.writes() {
        return Ok(call.target()?.into());
    }
    let count = all[0].len();
    let stack = |nr: usize| -> Result<Tensor> {
        let each: Vec<Tensor> = all.iter().map(|outputs| outputs[nr].clone()).collect();
        crate::ops::shape::join::stack(&each, 0)
    };
    let stacked: TensorVec = (0..count).map(stack).collect::<Result<_>>()?;
    Ok(Outcome::Batched(Outputs::Tensors(stacked)))
}

#[cold]
fn unsupported(call: &BatchedCall<'_>, what: &str) -> Error {
    Error::runtime(format!("vmap: {}() {what}", call.def.name))
}
