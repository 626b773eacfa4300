//! Ops on sparse tensors: the kernel of an op for them, and its forms that write.
//!
//! An op says with one word which function of `ops::sparse` computes it where an argument is sparse. That gives new results;
//! the in-place and `out=` forms put them in place here. Who has no such kernel is refused; nothing is made dense unasked.

use super::{
    Arg, Call, Form, IntoOutputs, OpDef, Outputs, Traits, check_cast, each_tensor, receiver,
};
use crate::error::ensure;
use crate::tensor::{Cpu, Layout, shape::list};
use crate::{Error, Result, Tensor};

/// A kernel: gives new results; one that writes to the first argument itself, where the form asks for that, gives this
/// argument. Of an op that only exists in place it does so always.
pub type SparseKernel = fn(Cpu, &'static OpDef, Form<'_>, &[Arg<'_>]) -> Result<Outputs>;

/// How an op is computed where an argument is sparse.
#[derive(Clone, Copy)]
pub enum SparseRule {
    /// It is refused.
    None,
    /// By a kernel.
    Kernel(SparseKernel),
    /// By the same op on the values, which leaves zeros zero: by a kernel, and where it is recorded by a composite, so
    /// that its gradient rules see values only.
    Values {
        /// The kernel.
        kernel: SparseKernel,
        /// The composite.
        recorded: fn(&'static OpDef, &[Arg<'_>]) -> Result<Outputs>,
    },
}

impl SparseRule {
    /// The kernel, if there is one.
    pub fn kernel(self) -> Option<SparseKernel> {
        match self {
            SparseRule::None => None,
            SparseRule::Kernel(kernel) | SparseRule::Values { kernel, .. } => Some(kernel),
        }
    }
}

/// The result of a call that is to be recorded, of an op on the values of its first argument.
pub(crate) fn recorded(def: &'static OpDef, args: &[Arg<'_>]) -> Option<Result<Outputs>> {
    match (def.sparse, args.first()) {
        (SparseRule::Values { recorded, .. }, Some(Arg::Tensor(input))) if input.is_sparse() => {
            Some(recorded(def, args))
        }
        _ => None,
    }
}

/// The layer: computes a call with sparse arguments or targets.
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    let Call { def, form, args, .. } = *call;
    let kernel = def.sparse.kernel().ok_or_else(|| missing(def, form, args))?;
    // SAFETY: this is the innermost layer: what is batched, overrides its ops or has no memory was dealt with further out. A sparse
    // tensor's parts are strided tensors with memory.
    let cpu = unsafe { Cpu::grant() };
    if def.is(Traits::INPLACE_ONLY) {
        return kernel(cpu, def, form, args);
    }
    let outputs = kernel(cpu, def, form, args)?;
    match form {
        Form::Functional => Ok(outputs),
        Form::Inplace => {
            let (target, result) = (receiver(args), outputs.one());
            if !result.is_same(target) {
                put(cpu, &result, target)?;
            }
            Ok(target.clone().into_outputs())
        }
        Form::Out(targets) => {
            for (result, target) in outputs.as_slice().iter().zip(targets) {
                fit(result, target)?;
                put(cpu, result, target)?;
            }
            Ok(outputs)
        }
    }
}

/// Gives an `out=` target the shape of a result.
fn fit(result: &Tensor, target: &Tensor) -> Result<()> {
    if target.shape() == result.shape() {
        return Ok(());
    }
    match result.sparse() {
        Some(parts) if target.layout() == result.layout() => {
            target.reshape_sparse((*parts).clone(), result.shape())
        }
        _ => target.resize_output(result.shape()),
    }
}

/// Writes a result into a target of the same shape: as its parts, or element by element.
fn put(cpu: Cpu, result: &Tensor, target: &Tensor) -> Result<()> {
    ensure!(
        result.shape() == target.shape(),
        runtime,
        "output with shape {} doesn't match the broadcast shape {}",
        list(target.shape()),
        list(result.shape())
    );
    check_cast(result.dtype(), target.dtype())?;
    ensure!(
        result.layout() == target.layout(),
        runtime,
        "a {} result cannot be written into a {} tensor",
        result.layout().spelled(),
        target.layout().spelled()
    );
    match result.sparse() {
        Some(parts) => target.set_sparse(parts.converted(cpu, target.dtype())?),
        None => target.copy_data(cpu, result)?,
    }
    Ok(())
}

/// The error for an op without such a kernel.
fn missing(def: &OpDef, form: Form<'_>, args: &[Arg<'_>]) -> Error {
    let mut layout = Layout::SparseCoo;
    each_tensor(args, |tensor| {
        if tensor.is_sparse() {
            layout = tensor.layout();
        }
    });
    let backend = if layout.is_compressed() { "SparseCsrCPU" } else { "SparseCPU" };
    let (name, overload) = form.spelled(def);
    let overload = if overload == "default" { String::new() } else { format!(".{overload}") };
    Error::not_implemented(format!(
        "Could not run 'aten::{name}{overload}' with arguments from the '{backend}' backend: it has no kernel for tensors of layout torch.{}. Use it on the dense tensor that to_dense() gives",
        layout.name()
    ))
}
