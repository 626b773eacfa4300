//! From an op's definition and arguments to its kernel.
//!
//! `arg` is the uniform calling convention, `def` what the library knows of an op, `kernels` its
//! table of kernels, `flops` how many operations on numbers it makes, `source` the description of
//! an op for people, `call` a call's way through the layers ([`crate::tensor::Key`] lists them), of
//! which `sparse`, `resolve` (conjugate and negative views) and `simulated` (devices) are here.
//! `pointwise` prepares element-by-element kernels, `narrow_floats` keeps dtypes of a byte from
//! kernels that do not know them. `run_kernel`, `write_kernel` and `write_outs` are the kernel's
//! functional, in-place and `out=` forms; recording is `autograd`'s business, which calls these.
//! Nothing here names an op.

mod arg;
pub mod batch;
mod call;
mod def;
pub(crate) mod flops;
mod kernels;
pub(crate) mod meta;
pub(crate) mod narrow_floats;
pub(crate) mod observe;
mod out;
mod pointwise;
mod prepared;
pub(crate) mod resolve;
pub(crate) mod simulated;
mod source;
pub(crate) mod sparse;
mod stand_in;
pub(crate) mod trace;

pub use arg::{
    Arg, FromArg, Grads, IntoGrads, IntoOutputs, IntoSpecs, Outputs, Specs, TensorVec, Value,
};
pub(crate) use arg::{device_mismatch, each_tensor};
pub use call::{Call, Form, Layer};
pub(crate) use call::{keys_of, keys_of_targets};
pub use def::{
    ArgDef, ArgKind, Batch, CastPolicy, Facts, Jvp, Meta, OpDef, RuleCtx, Save, SaveKind, Sharing,
    Traits, VjpRule,
};
pub(crate) use kernels::missing;
pub use kernels::{Backend, Kernel, Kernels, OnValues, SparseKernel};
pub(crate) use out::{check_outs, write_outs};
pub use pointwise::ResultKind;
pub(crate) use pointwise::{
    run_fast as run_pointwise_fast, run_fast_into as run_pointwise_fast_into,
};
pub(crate) use prepared::Prepared;
pub use source::{OpSource, Part, Registration, named_keys};

use crate::error::{bail, ensure};
use crate::tensor::{
    Cpu, TensorSpec, may_overlap_itself, overlaps_partly, promote, shape, shares_elements,
    shares_storage,
};
use crate::{Result, Tensor};
use pullback_kernels::spelling::Spelled;
use smallvec::SmallVec;

/// Runs the dense CPU kernel in the functional form.
#[inline]
pub(crate) fn run_kernel(cpu: Cpu, def: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    match def.kernels.cpu {
        Kernel::Pointwise(kernel) => {
            pointwise::run(cpu, def, kernel, args).map(IntoOutputs::into_outputs)
        }
        Kernel::Writing(write) => run_writing(cpu, def, write, args),
        Kernel::Function(_) if narrow_floats::has_any(def, args) => {
            narrow_floats::widened(cpu, def, args)
        }
        Kernel::Function(function) => function(cpu, args),
        Kernel::View(view) => view(args),
        Kernel::ViewInplace(change) => {
            change(args)?;
            Ok(receiver(args).clone().into_outputs())
        }
        Kernel::Inplace(write) => {
            narrow_floats::check(def, args)?;
            let copy = copy_to_write(cpu, def, args)?;
            let mut args: SmallVec<[Arg<'_>; 8]> = SmallVec::from_slice(args);
            args[0] = Arg::Tensor(&copy);
            write(cpu, &args)?;
            drop(args);
            Ok(copy.into_outputs())
        }
        Kernel::Composite(compose) => compose(args),
        Kernel::None => Err(missing(def, Form::Functional, Backend::Cpu)),
    }
}

/// Runs a kernel that writes into outputs made as `meta` says.
#[inline]
fn run_writing(
    cpu: Cpu,
    def: &'static OpDef,
    write: fn(Cpu, &[Arg<'_>], &[&Tensor]) -> Result<()>,
    args: &[Arg<'_>],
) -> Result<Outputs> {
    if let (Some(Meta::One(describe)), false) = (&def.meta, def.is(Traits::LIST_OUTPUT)) {
        // (The spec is read where it is: see `Meta::One`.)
        let output = match describe(args) {
            Ok(ref spec) if !narrow_floats::has_any(def, args) => spec.empty()?,
            Ok(_) => return narrow_floats::widened(cpu, def, args),
            Err(error) => return Err(error),
        };
        write(cpu, args, &[&output])?;
        return Ok(output.into_outputs());
    }
    let specs = specs(def, args)?;
    if narrow_floats::has_any(def, args) {
        return narrow_floats::widened(cpu, def, args);
    }
    let outputs = made(&specs)?;
    write(cpu, args, &outputs.iter().collect::<SmallVec<[&Tensor; 4]>>())?;
    Ok(Outputs::Tensors(outputs))
}

/// The specs of the outputs of an op with `meta`.
pub(crate) fn specs(def: &OpDef, args: &[Arg<'_>]) -> Result<Specs> {
    let mut specs = Specs::new();
    match described_by(def) {
        Meta::One(describe) => specs.push(describe(args)?),
        Meta::Several(describe) => describe(args, &mut specs)?,
    }
    Ok(specs)
}

/// The spec of the only output of an op with `meta`.
pub(crate) fn spec(def: &OpDef, args: &[Arg<'_>]) -> Result<TensorSpec> {
    match described_by(def) {
        Meta::One(describe) => describe(args),
        Meta::Several(_) => Ok(specs(def, args)?.pop().expect("one spec per output")),
    }
}

/// The `meta` of an op that has one.
#[inline(always)]
fn described_by(def: &OpDef) -> &Meta {
    def.meta.as_ref().expect("the macro asks for a meta function where one is called")
}

impl OpDef {
    /// The specs of the results of a call of an op with `meta`.
    ///
    /// # Errors
    /// Those of the call that no element of its tensors is needed for.
    pub fn result_specs(&self, args: &[Arg<'_>]) -> Result<Specs> {
        let specs = specs(self, args)?;
        if let (Kernel::Pointwise(kernel), [spec]) = (&self.kernels.cpu, &specs[..]) {
            pointwise::check_taken(self, *kernel, args, spec)?;
        }
        Ok(specs)
    }
}

/// A copy of the first argument, for a kernel that writes into it, which lies in memory as `meta` says of the result.
fn copy_to_write(cpu: Cpu, def: &OpDef, args: &[Arg<'_>]) -> Result<Tensor> {
    let source = receiver(args);
    if def.meta.is_none() {
        return source.dense_copy(cpu);
    }
    let copy = spec(def, args)?.empty()?;
    copy.copy_data(cpu, source)?;
    Ok(copy)
}

/// Tensors of these specs, elements not set.
fn made(specs: &[TensorSpec]) -> Result<TensorVec> {
    specs.iter().map(TensorSpec::empty).collect()
}

/// The tensor that an in-place form writes to.
#[inline(always)]
pub(crate) fn receiver<'a>(args: &[Arg<'a>]) -> &'a Tensor {
    match args.first() {
        Some(Arg::Tensor(tensor)) => tensor,
        _ => panic!("an in-place op's first argument is a tensor: this is a bug in pullback"),
    }
}

/// Runs the dense CPU kernel in the form that writes into the first argument, `target`.
#[inline]
pub(crate) fn write_kernel(
    cpu: Cpu,
    def: &'static OpDef,
    args: &[Arg<'_>],
    target: &Tensor,
) -> Result<()> {
    if !def.kernels.cpu.is_view() {
        target.materialize()?;
    }
    match def.kernels.cpu {
        Kernel::Pointwise(kernel) => pointwise::run_into(cpu, def, kernel, args, target, true),
        Kernel::Inplace(write) => {
            // Where the functional form gives this kernel a copy to write to, the kernel may rely
            // on that the copy shares no memory; a kernel without other forms checks for shared
            // memory itself.
            if !def.is(Traits::INPLACE_ONLY) && !def.is(Traits::CHECKS_SHARING) {
                each_of_rest(args, &mut |input| check_separate(target, input))?;
            }
            if def.meta.is_some() {
                specs(def, args)?;
            }
            narrow_floats::check(def, args)?;
            write(cpu, args)
        }
        Kernel::ViewInplace(change) => change(args),
        Kernel::Writing(_) | Kernel::Function(_) | Kernel::View(_) => {
            let result = run_kernel(cpu, def, args)?.one();
            check_apart_inputs(def, args, target)?;
            let fits = result.shape() == target.shape();
            // (A view that grew would write to memory beyond its own.)
            if !fits && def.is(Traits::RESIZES_SELF) && target.base_if_any().is_none() {
                check_cast(result.dtype(), target.dtype())?;
                target.resize_to(result.shape())?;
            } else {
                // (This is PyTorch's text for its own kernels, and for those that compute element
                // by element.)
                ensure!(
                    fits || matches!(def.batch, Batch::Pointwise),
                    runtime,
                    "Bad in-place call: input tensor size {} and output tensor size {} should match",
                    shape::list(target.shape()),
                    shape::list(result.shape())
                );
                check_result(target, result.shape(), result.dtype())?;
            }
            target.copy_data(cpu, &result)
        }
        Kernel::Composite(compose) => {
            let result = compose(args)?.one();
            check_result(target, result.shape(), result.dtype())?;
            target.copy_data(cpu, &result)
        }
        Kernel::None => Err(missing(def, Form::Inplace, Backend::Cpu)),
    }
}

/// Whether a write of `args` into the first of them can be refused for nothing but what [`write_kernel`] finds on its way: all
/// tensors are single or double precision ones of one shape, apart in memory, and numbers are whole or real.
#[inline]
pub(crate) fn is_plain_write(args: &[Arg<'_>], target: &Tensor) -> bool {
    let (dtype, shape) = (target.dtype(), target.shape());
    let is_plain = |arg: &Arg<'_>| match arg {
        Arg::Tensor(tensor) => {
            tensor.dtype() == dtype
                && tensor.shape() == shape
                && (tensor.is_same(target) || !shares_storage(tensor, target))
        }
        Arg::Scalar(number) => {
            matches!(number, crate::Scalar::Int(_) | crate::Scalar::Float(_))
        }
        _ => true,
    };
    matches!(dtype, crate::DType::F32 | crate::DType::F64) && args.iter().all(is_plain)
}

/// Refuses what [`write_kernel`] would refuse, as far as that shows without elements, and writes nothing. (Only what runs element
/// by element or writes into its target itself says all of it beforehand.)
pub(crate) fn check_write(def: &'static OpDef, args: &[Arg<'_>], target: &Tensor) -> Result<()> {
    match def.kernels.cpu {
        Kernel::Pointwise(kernel) => pointwise::check_into(def, kernel, args, target),
        Kernel::Inplace(_) => {
            if !def.is(Traits::INPLACE_ONLY) && !def.is(Traits::CHECKS_SHARING) {
                each_of_rest(args, &mut |input| check_separate(target, input))?;
            }
            if def.meta.is_some() {
                specs(def, args)?;
            }
            narrow_floats::check(def, args)
        }
        _ => Ok(()),
    }
}

/// Calls `f` with each tensor behind the first argument.
fn each_of_rest(args: &[Arg<'_>], f: &mut dyn FnMut(&Tensor) -> Result<()>) -> Result<()> {
    args.iter().skip(1).try_for_each(|arg| each_input(arg, f))
}

/// Refuses a result that the target of an in-place op cannot take.
pub(crate) fn check_result(target: &Tensor, result: &[i64], dtype: crate::DType) -> Result<()> {
    ensure!(
        result == target.shape(),
        runtime,
        "output with shape {} doesn't match the broadcast shape {}",
        shape::list(target.shape()),
        shape::list(result)
    );
    check_cast(dtype, target.dtype())
}

/// Refuses to store a result of a higher category than the output has.
pub(crate) fn check_cast(from: crate::DType, to: crate::DType) -> Result<()> {
    ensure!(
        promote::can_cast(from, to),
        runtime,
        "result type {} can't be cast to the desired output type {}",
        from.scalar_name(),
        to.scalar_name()
    );
    Ok(())
}

/// The advice in the error for memory that is both read and written.
const SHARED: &str = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.";

/// Refuses an input that shares elements with the target, unless both are the same ones in the same order.
pub(crate) fn check_apart(target: &Tensor, input: &Tensor) -> Result<()> {
    ensure!(!overlaps_partly(target, input), runtime, "{SHARED}");
    Ok(())
}

/// Refuses an input that shares any element with the target.
pub(crate) fn check_separate(target: &Tensor, input: &Tensor) -> Result<()> {
    ensure!(!shares_elements(target, input), runtime, "{SHARED}");
    Ok(())
}

/// Refuses a target that overlaps in part with further arguments of an in-place form which must be apart.
pub(crate) fn check_apart_inputs(def: &OpDef, args: &[Arg<'_>], target: &Tensor) -> Result<()> {
    for (arg, info) in args.iter().zip(def.args).skip(1) {
        if info.sharing == Sharing::Apart {
            each_input(arg, &mut |input| check_apart(target, input))?;
        }
    }
    Ok(())
}

/// Calls `check` with each tensor of the arguments that have this `sharing`.
fn each_of(
    def: &OpDef,
    args: &[Arg<'_>],
    sharing: Sharing,
    mut check: impl FnMut(&Tensor) -> Result<()>,
) -> Result<()> {
    for (arg, info) in args.iter().zip(def.args) {
        if info.sharing == sharing {
            each_input(arg, &mut check)?;
        }
    }
    Ok(())
}

/// Calls `f` with each tensor of an argument.
fn each_input(arg: &Arg<'_>, f: &mut dyn FnMut(&Tensor) -> Result<()>) -> Result<()> {
    match arg {
        Arg::Tensor(t) => f(t),
        Arg::Tensors(list) => list.iter().try_for_each(f),
        Arg::OptTensors(list) => list.iter().flatten().try_for_each(f),
        _ => Ok(()),
    }
}

/// The name of a dtype in errors of `out=`: the type of its elements, as PyTorch spells it.
pub(crate) fn element_name(dtype: crate::DType) -> Spelled<&'static str, crate::DType> {
    use crate::DType;
    let pytorch = match dtype {
        DType::U8 => "unsigned char",
        DType::I8 => "signed char",
        DType::I16 => "short int",
        DType::I32 => "int",
        DType::I64 => "long int",
        DType::F16 => "c10::Half",
        DType::BF16 => "c10::BFloat16",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C32 => "c10::complex<c10::Half>",
        DType::BC32 => "c10::complex<c10::BFloat16>",
        DType::C64 => "c10::complex<float>",
        DType::C128 => "c10::complex<double>",
        _ => dtype.name(),
    };
    Spelled::new(pytorch, dtype)
}

/// Refuses an `out=` tensor that cannot take result number `at`, of dtype `from`.
pub(crate) fn check_out_dtype(
    def: &OpDef,
    at: usize,
    from: crate::DType,
    to: crate::DType,
) -> Result<()> {
    let is_refused = from != to && def.is(Traits::EXACT_OUT);
    let keeps_kind = if from.is_complex() { to.is_complex() } else { to.is_floating_point() };
    // (Transforms never store a real number as a complex one.)
    ensure!(
        keeps_kind || def.module != "fft",
        runtime,
        "{} expects a {} output tensor, but got {}",
        def.name.trim_start_matches("fft_"),
        if from.is_complex() { "complex" } else { "floating point" }, // tidy: not an op
        to.scalar_name()
    );
    ensure!(
        !is_refused,
        runtime,
        "{}(): Expected out tensor to have dtype {}, but got {} instead",
        def.name,
        element_name(from),
        element_name(to)
    );
    if def.is(Traits::ANY_OUT) {
        return Ok(());
    }
    if def.module != "linalg" || promote::can_cast(from, to) {
        return check_cast(from, to);
    }
    let result = def.outputs.get(at).copied().unwrap_or("result");
    bail!(
        runtime,
        "{}: Expected {result} to be safely castable from {} dtype, but got {result} with dtype {}",
        def.name,
        from.scalar_name(),
        to.scalar_name()
    )
}

/// Refuses targets whose elements share memory with each other.
pub(crate) fn check_writable(target: &Tensor) -> Result<()> {
    ensure!(
        target.is_contiguous()
            || target.is_sparse()
            || !may_overlap_itself(target.shape(), target.strides()),
        runtime,
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
    );
    Ok(())
}
