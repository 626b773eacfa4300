//! The definition of an op, which `#[op]` makes of one item: a static `OpDef`, pure data and function pointers.

use super::Kernels;
use super::arg::{Arg, Grads, Specs};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{DType, Result, Tensor, TensorSpec};
use pullback_schema::Schema;
use std::sync::OnceLock;

/// The function that computes shapes and dtypes of the outputs from the arguments.
pub enum Meta {
    /// For one output. Its spec is constructed where it is read, which makes calls on small tensors
    /// measurably faster: a spec that is moved waits for the numbers that were just written into
    /// it.
    One(fn(&[Arg<'_>]) -> Result<TensorSpec>),
    /// For several outputs, or a list of them: appends a spec for each to the list.
    Several(fn(&[Arg<'_>], &mut Specs) -> Result<()>),
}

/// Counts the operations on numbers that a call makes.
pub(crate) type Flops = fn(&[Arg<'_>]) -> Result<u64>;

/// The definition of an op.
pub struct OpDef {
    /// The signature.
    pub schema_text: &'static str,
    /// Name without overload: `mul`.
    pub name: &'static str,
    /// Overload: `Tensor`, or empty.
    pub overload: &'static str,
    /// Name of the Rust method or function.
    pub method: &'static str,
    /// Stem of the node's name: `Mul` gives `MulBackward0`.
    pub node_name: &'static str,
    /// The doc comment.
    pub doc: &'static str,
    /// The namespace in Python: empty, `nn`, `linalg`, `special`.
    pub module: &'static str,
    /// Other names of the op.
    pub aliases: &'static [&'static str],
    /// The names of parameters in Python that differ from the schema's: see [`OpDef::spelling`].
    pub call_as: &'static [&'static str],
    /// Facts about the op.
    pub traits: Traits,
    /// The arguments.
    pub args: &'static [ArgDef],
    /// The names of the outputs; `result` if unnamed.
    pub outputs: &'static [&'static str],
    /// Shapes and dtypes of the outputs.
    pub meta: Option<Meta>,
    /// What is known of the output's dtype without a call of `meta`.
    pub result: super::ResultKind,
    /// Whether a call without further arguments returns this very tensor, which then costs no call.
    pub unchanged: Option<fn(&Tensor) -> bool>,
    /// How many operations on numbers a call makes: see [`OpDef::count_flops`].
    pub flops: Option<Flops>,
    /// The kernels, by backend.
    pub kernels: Kernels,
    /// The values that the rules read, once each.
    pub saves: &'static [Save],
    /// The `bool` arguments that the rules read: a node's [`Facts`] keep them.
    pub flags: &'static [usize],
    /// The gradient rules.
    pub vjp: &'static [VjpRule],
    /// The forward-mode rule.
    pub jvp: Jvp,
    /// The batching rule.
    pub batch: Batch,
    /// What autocast does with the arguments.
    pub autocast: CastPolicy,
    /// The layers that calls of the op may pass.
    pub layers: &'static [super::Layer],
    /// Arguments for the property tests.
    pub samples: Option<fn(&Sampler) -> Vec<Sample>>,
    /// Arguments that the op must refuse.
    pub invalid_samples: Option<fn(&Sampler) -> Vec<InvalidSample>>,
    /// The position of the item, its kernels and its rules in the source code.
    pub source: super::OpSource,
    /// The parsed schema, on first use.
    pub parsed: OnceLock<Schema>,
}

impl OpDef {
    /// The parsed signature.
    pub fn schema(&self) -> &Schema {
        self.parsed.get_or_init(|| {
            Schema::parse(self.schema_text).expect("the macro parsed this signature before")
        })
    }
    /// Python's name for `parameter` of the function, or the method, `name`, if it differs from the schema's.
    pub fn spelling(&self, name: &str, is_method: bool, parameter: &str) -> Option<&'static str> {
        self.call_as.iter().find_map(|text| {
            let (called, parameters) = text.strip_suffix(')')?.split_once('(')?;
            let is_meant = match called.strip_prefix("torch.") {
                Some(function) => function == name && !is_method,
                None => called == name,
            };
            let mut pairs = parameters.split(", ").filter_map(|pair| pair.split_once(" = "));
            pairs.find(|(own, _)| is_meant && *own == parameter).map(|(_, spelling)| spelling)
        })
    }
    /// The outputs that may have a gradient.
    #[inline(always)]
    pub(crate) fn with_gradient<'a>(&self, outputs: &'a [Tensor]) -> &'a [Tensor] {
        if self.is(Traits::ONE_GRADIENT) { &outputs[..1] } else { outputs }
    }
    /// Whether the op has this fact.
    #[inline(always)]
    pub const fn is(&self, flag: Traits) -> bool {
        self.traits.0 & flag.0 != 0
    }
    /// `mul.Tensor`, or just the name.
    pub fn full_name(&self) -> String {
        if self.overload.is_empty() {
            self.name.to_string()
        } else {
            format!("{}.{}", self.name, self.overload)
        }
    }
}

/// A set of facts about an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits(pub u64);
impl Traits {
    /// Has the form that writes into its first argument (`mul_`).
    pub const INPLACE: Traits = Traits(1);
    /// Has the form with `out=`.
    pub const OUT: Traits = Traits(2);
    /// Its outputs share memory with its first argument.
    pub const VIEW: Traits = Traits(4);
    /// Computes element by element.
    pub const POINTWISE: Traits = Traits(8);
    /// Is no function of the namespace (only a method).
    pub const METHOD_ONLY: Traits = Traits(16);
    /// Is no method (only a function).
    pub const FUNCTION_ONLY: Traits = Traits(32);
    /// Draws random numbers.
    pub const RANDOM: Traits = Traits(64);
    /// Never has a gradient, whatever its inputs (comparisons, `argmax`).
    pub const NOT_DIFFERENTIABLE: Traits = Traits(128);
    /// Only exists as the in-place form (`fill_`, `uniform_`): the schema's name ends with `_`.
    pub const INPLACE_ONLY: Traits = Traits(256);
    /// Python numbers are accepted where the schema says `Tensor`, but for the first argument.
    pub const NUMBERS_AS_TENSORS: Traits = Traits(512);
    /// Together with the previous flag: the function takes a Python number as its first argument
    /// too.
    pub const LEADING_NUMBER: Traits = Traits(1_073_741_824);
    /// Returns a list of views.
    pub const MULTI_VIEW: Traits = Traits(1024);
    /// Returns a list of tensors (`Tensor[]`).
    pub const LIST_OUTPUT: Traits = Traits(2048);
    /// Not shown to Python users.
    pub const INTERNAL: Traits = Traits(4096);
    /// The form with `out=` takes no target of another dtype than the result's.
    pub const EXACT_OUT: Traits = Traits(8192);
    /// An attribute of tensors where others are methods (`x.mT`).
    pub const ATTRIBUTE: Traits = Traits(16384);
    /// An attribute whose assignment writes into the memory that it shows.
    pub const WRITABLE: Traits = Traits(32768);
    /// The form that writes into its first argument is a method only.
    pub const INPLACE_METHOD: Traits = Traits(65536);
    /// The kernel of the in-place form itself checks which inputs may share elements with the target.
    pub const CHECKS_SHARING: Traits = Traits(131_072);
    /// Writes the same value everywhere: the target's elements may share memory.
    pub const WRITES_ONE_VALUE: Traits = Traits(262_144);
    /// The in-place form gives its target the result's shape.
    pub const RESIZES_SELF: Traits = Traits(524_288);
    /// A target of `out=` with as many elements as the result keeps its shape.
    pub const FILLS_OUT: Traits = Traits(8_388_608);
    /// Numbers beside half-precision tensors are not rounded to halves first.
    pub const WIDE_NUMBERS: Traits = Traits(1_048_576);
    /// A view that shows each element of its input once: its gradient rule is its inverse.
    pub const BIJECTIVE: Traits = Traits(4_194_304);
    /// Takes tensors with a conj or neg bit as they are. (Views do so without this word: their results have the bits of their
    /// sources.)
    pub const UNRESOLVED: Traits = Traits(16_777_216);
    /// The in-place form, which has no derivative, writes into leaves that require grad too: their gradient is that of the
    /// values after the write.
    pub const WRITES_LEAVES: Traits = Traits(67_108_864);
    /// Copies between devices: its tensors may be on several.
    pub const ACROSS_DEVICES: Traits = Traits(33_554_432);
    /// The shapes of its outputs depend on elements of its arguments.
    pub const DYNAMIC_OUTPUT_SHAPE: Traits = Traits(134_217_728);
    /// Its output is a number, or has a dtype, that depends on elements of its arguments.
    pub const DATA_DEPENDENT_OUTPUT: Traits = Traits(268_435_456);
    /// The form with `out=` is named after the overload, where others are just `out`.
    pub const OVERLOAD_OUT: Traits = Traits(536_870_912);
    /// The profiler shows the count that `flops` gives.
    pub const PROFILER_FLOPS: Traits = Traits(2_097_152);
    /// Takes tensors of the floating dtypes of one byte and of `bcomplex32`; the kernels of other ops never see these.
    pub const NARROW_FLOATS: Traits = Traits(2_147_483_648);
    /// The form with `out=` takes targets of every dtype.
    pub const ANY_OUT: Traits = Traits(4_294_967_296);
    /// Is an item of another crate, whose functions may do what others see.
    pub const ELSEWHERE: Traits = Traits(8_589_934_592);
    /// Only the first of its outputs has a gradient.
    pub const ONE_GRADIENT: Traits = Traits(17_179_869_184);
    /// The form with `out=` computes in the dtype of its target, where no `dtype` is given.
    pub const OUT_DTYPE: Traits = Traits(34_359_738_368);
    /// The form with `out=` computes floating and complex numbers in the dtype of its target, where no `dtype` is given.
    pub const OUT_PRECISION: Traits = Traits(68_719_476_736);
    /// No flags.
    pub const NONE: Traits = Traits(0);
    /// The union of both sets.
    #[must_use]
    pub const fn with(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }
}

/// What autocast does with the floating-point arguments of an op on the CPU, `float64` aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CastPolicy {
    /// No conversion. The parts of a composite have policies of their own.
    None,
    /// Converts to the dtype that autocast was given.
    Lower,
    /// Converts to `float32`.
    Fp32,
    /// Converts to the widest of their dtypes.
    Promote,
}

/// One argument.
pub struct ArgDef {
    /// Its name in the schema.
    pub name: &'static str,
    /// How the argument holds tensors.
    pub kind: ArgKind,
    /// Whether there is a gradient rule for the argument.
    pub has_vjp: bool,
    /// Whether the item has `not_differentiable(name)` for the argument.
    pub not_differentiable: bool,
    /// What the argument may share with the targets of `out=`.
    pub sharing: Sharing,
}

/// What an argument may share with a tensor that the op writes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// It may share anything: the result is computed before it is written, or the kernel checks it.
    Any,
    /// It may share all elements, in the same order, or none.
    Apart,
    /// It may share no element.
    Separate,
}

/// How an argument holds tensors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgKind {
    /// `Tensor`.
    Tensor,
    /// `Tensor?`.
    OptTensor,
    /// `Tensor[]`.
    Tensors,
    /// `Tensor?[]`.
    OptTensors,
    /// A `Scalar` that is an input of an element-by-element kernel.
    Number,
    /// Something else.
    Plain,
}

/// A value that a node saves for its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Save {
    /// The aspect of the argument that is saved.
    pub what: SaveKind,
    /// The index of the argument (or output, for [`SaveKind::Output`]).
    pub index: usize,
    /// The rules that read the value, one bit per rule.
    pub users: u32,
}

/// The aspect of an argument that is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveKind {
    /// The argument itself.
    Input,
    /// An output tensor.
    Output,
    /// The sizes of a tensor argument.
    Shape,
    /// The strides of a tensor argument.
    Strides,
    /// An input's offset into its storage, in elements.
    Offset,
    /// Shape, dtype and device of a tensor argument.
    Spec,
    /// The length and shapes of a list argument are kept by keeping its specs.
    Shapes,
}

/// One gradient rule.
pub struct VjpRule {
    /// The arguments whose gradients the rule computes, one bit each.
    pub args: u64,
    /// Runs when any of these outputs' gradients is defined (one bit each).
    pub grads: u64,
    /// The rule.
    pub call: fn(&RuleCtx<'_>) -> Result<Grads>,
}

/// The facts about its op's arguments that every node keeps: dtypes of the first twelve, five bits each, and one bit of the first
/// sixteen: for a tensor whether it is a column-major matrix, for a `bool` its value.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    dtypes: u64,
    /// The length of the list of tensors among the differentiable arguments.
    list_len: u32,
    bits: u16,
    _mark: Mark,
}

const _: () = assert!(DType::COUNT <= 32, "five bits tell the dtypes apart");

/// The only value of a byte: the remaining values distinguish the kinds of nodes, which makes a
/// node eight bytes smaller.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Mark {
    Facts = 1,
}

impl Facts {
    /// The facts about these arguments.
    #[inline]
    pub fn of(args: &[Arg<'_>]) -> Self {
        let mut facts = Facts { dtypes: 0, list_len: 0, bits: 0, _mark: Mark::Facts };
        for (index, arg) in args.iter().enumerate().take(16) {
            match arg {
                Arg::Tensor(tensor) => {
                    if index < 12 {
                        facts.dtypes |= (tensor.dtype() as u64) << (5 * index);
                    }
                    facts.bits |= u16::from(is_column_major(tensor)) << index;
                }
                Arg::Bool(flag) => facts.bits |= u16::from(*flag) << index,
                _ => {}
            }
        }
        facts
    }
    /// The facts with the length of the list of tensors among the differentiable arguments.
    #[inline]
    pub(crate) fn with_list_len(self, list_len: u32) -> Self {
        Facts { list_len, ..self }
    }
    /// The length of the list of tensors among the differentiable arguments; 0 if there is none.
    #[inline]
    pub fn list_len(self) -> usize {
        self.list_len as usize
    }
    /// The dtype of argument `index < 12`, which was a tensor.
    #[inline]
    pub fn dtype(self, index: usize) -> DType {
        DType::ALL[(self.dtypes >> (5 * index) & 31) as usize]
    }
    /// Whether argument `index` was a matrix whose columns, of more than one element, lie one behind the other.
    #[inline]
    pub fn is_column_major(self, index: usize) -> bool {
        self.bits >> index & 1 != 0
    }
    /// The value of argument `index`, a `bool`.
    #[inline]
    pub fn flag(self, index: usize) -> bool {
        self.bits >> index & 1 != 0
    }
}

#[inline]
fn is_column_major(tensor: &Tensor) -> bool {
    match (tensor.shape(), tensor.strides()) {
        (&[rows, columns], &[1, step]) => step == rows && rows != 1 && columns != 1,
        _ => false,
    }
}

/// The data that a rule reads.
pub struct RuleCtx<'a> {
    /// Gradients of the outputs.
    pub grads: &'a [Option<Tensor>],
    /// The saved values, in the order of [`OpDef::saves`].
    pub saved: &'a [Arg<'a>],
    /// The facts about the arguments.
    pub facts: Facts,
    /// The arguments whose gradients are needed, one bit each.
    pub needs: u64,
    /// Tangents of the inputs, for forward-mode rules.
    pub tangents: &'a [Option<Tensor>],
}

impl<'a> RuleCtx<'a> {
    /// Gradient of output `index`.
    #[inline(always)]
    pub fn grad(&self, index: usize) -> Arg<'a> {
        self.grads[index].as_ref().map_or(Arg::None, Arg::Tensor)
    }
    /// Saved value `index`.
    #[inline(always)]
    pub fn value(&self, index: usize) -> Arg<'a> {
        self.saved[index]
    }
    /// Dtype of tensor argument `index`.
    #[inline(always)]
    pub fn dtype(&self, index: usize) -> DType {
        self.facts.dtype(index)
    }
    /// Whether argument `index` was a matrix that lay column by column.
    #[inline(always)]
    pub fn is_column_major(&self, index: usize) -> bool {
        self.facts.is_column_major(index)
    }
    /// The value of argument `index`, a `bool`.
    #[inline(always)]
    pub fn flag(&self, index: usize) -> bool {
        self.facts.flag(index)
    }
    /// Tangent of argument `index`.
    pub fn tangent(&self, index: usize) -> Arg<'a> {
        self.tangents[index].as_ref().map_or(Arg::None, Arg::Tensor)
    }
    /// Whether the gradients of the arguments `indices` are needed.
    pub fn needs<const N: usize>(&self, indices: [usize; N]) -> [bool; N] {
        indices.map(|i| self.needs & (1 << i) != 0)
    }
}

/// A forward-mode rule.
#[derive(Clone, Copy)]
pub enum Jvp {
    /// There is none.
    None,
    /// The op itself, applied to the tangents.
    Linear,
    /// The gradient rule, with the conjugated tangent as gradient; the result is conjugated.
    Elementwise,
    /// A function of primals and tangents: the values to save, the arguments whose tangents may be missing (others are zeros
    /// then), a bit each, and the function.
    Rule(&'static [Save], u64, fn(&RuleCtx<'_>) -> Result<Grads>),
}

/// A batching rule for `vmap`.
#[derive(Clone, Copy)]
pub enum Batch {
    /// There is no rule: one example is computed after the other.
    None,
    /// Element by element: batch dimensions in front, broadcast.
    Pointwise,
    /// The parts of the op have rules of their own.
    Composite,
    /// A function of `ops::batch`, or the op's own.
    Rule(super::batch::BatchRule),
}
