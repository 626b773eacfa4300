//! Ops on sparse tensors: the kernels of an op for them, and the forms that write.
//!
//! The table of an op's kernels ([`super::Kernels`]) says which function computes it where an
//! argument is sparse. The function returns new results; the in-place and `out=` forms write these
//! into their targets here. An op without such a kernel is refused; no tensor is made dense unless
//! the program requests it.

use super::{
    Arg, Backend, Call, Form, IntoOutputs, Kernel, Outputs, Traits, check_cast, missing, receiver,
};
use crate::error::ensure;
use crate::tensor::{Cpu, shape::list};
use crate::{Result, Tensor};

/// The result of an op that is recorded as ops on the values of its first argument; `None` for other ops.
pub(crate) fn recorded(call: &Call<'_>) -> Option<Result<Outputs>> {
    match (call.def.kernels.on_values, call.args.first()) {
        (Some(on_values), Some(Arg::Tensor(input))) if input.is_sparse() => Some(on_values(call)),
        _ => None,
    }
}

/// The backend of the sparse tensors among the arguments and targets: that of compressed ones if there are any.
fn backend_of(call: &Call<'_>) -> Backend {
    let mut backend = Backend::SparseCpu;
    call.each_tensor(|tensor| {
        if tensor.layout().is_compressed() {
            backend = Backend::SparseCsrCpu;
        }
    });
    backend
}

/// The layer: computes a call with sparse arguments or targets.
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    let Call { def, form, args, .. } = *call;
    let backend = backend_of(call);
    // SAFETY: this is the innermost layer: what is batched, overrides its ops or has no memory was dealt with further out. A sparse
    // tensor's parts are strided tensors with memory.
    let cpu = unsafe { Cpu::grant() };
    let kernel = match (def.kernels.sparse(backend), &def.kernels.cpu, form) {
        (Some(kernel), ..) => kernel,
        (None, Kernel::Composite(compose), Form::Out(targets)) => {
            return compose_into(cpu, &compose(args)?, targets);
        }
        _ => return Err(missing(def, form, backend)),
    };
    if def.is(Traits::INPLACE_ONLY) {
        return kernel(cpu, call);
    }
    let outputs = kernel(cpu, call)?;
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
            put_all(cpu, outputs.as_slice(), targets)?;
            Ok(outputs)
        }
    }
}

/// Copies the results of an op made of others into its targets. (A result may be an argument, or
/// share memory with one.)
fn compose_into(cpu: Cpu, outputs: &Outputs, targets: &[&Tensor]) -> Result<Outputs> {
    let own = |result: &Tensor| match result.sparse() {
        Some(parts) => {
            let parts = parts.copied(cpu, result.dtype())?;
            Tensor::from_sparse(parts, result.layout(), result.shape())
        }
        None => Ok(result.clone()),
    };
    // bounded: by the number of outputs.
    let own: Vec<Tensor> = outputs.as_slice().iter().map(own).collect::<Result<_>>()?;
    put_all(cpu, &own, targets)?;
    Ok(own.into_outputs())
}

/// Writes results into `out=` targets, none of them if one cannot take its result.
fn put_all(cpu: Cpu, results: &[Tensor], targets: &[&Tensor]) -> Result<()> {
    let pairs = || results.iter().zip(targets);
    pairs().try_for_each(|(result, target)| check_taken(result, target))?;
    for (result, target) in pairs() {
        fit(result, target)?;
        put(cpu, result, target)?;
    }
    Ok(())
}

/// Refuses a target whose dtype or layout cannot take a result.
fn check_taken(result: &Tensor, target: &Tensor) -> Result<()> {
    check_cast(result.dtype(), target.dtype())?;
    ensure!(
        result.layout() == target.layout(),
        runtime,
        "a {} result cannot be written into a {} tensor",
        result.layout().spelled(),
        target.layout().spelled()
    );
    Ok(())
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
    check_taken(result, target)?;
    match result.sparse() {
        Some(parts) => target.set_sparse(parts.converted(cpu, target.dtype())?),
        None => target.copy_data(cpu, result)?,
    }
    Ok(())
}
