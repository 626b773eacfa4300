//! A kernel's call that is repeated with the same tensors: arguments and outputs exist already, and
//! what follows from shapes and dtypes is not computed again.
//!
//! The checks of the call were made when it was prepared. Invariant: the tensors are plain ones in
//! main memory, whose sizes stay; outputs share no memory with arguments, nor with each other.

use super::{
    Arg, Kernel, OpDef, Specs, TensorVec, Value, pointwise, receiver, specs, write_kernel,
    write_outs,
};
use crate::error::{bail, ensure};
use crate::tensor::Cpu;
use crate::{DType, Result, Tensor};
use smallvec::SmallVec;

/// A call that can be repeated.
pub(crate) struct Prepared {
    def: &'static OpDef,
    args: Box<[Value]>,
    outs: Box<[Tensor]>,
    run: Run,
}

/// How the call is repeated.
#[derive(Clone, Copy)]
enum Run {
    /// An element-by-element kernel, which computes in this dtype.
    Pointwise(DType),
    /// A kernel that writes into outputs.
    Write,
    /// A kernel that writes into its first argument, a copy of which is the output.
    Copy,
    /// A kernel that gives its outputs, which are copied.
    Function,
    /// The form that writes into the first argument.
    Inplace,
    /// The form with `out=`.
    Out,
}

impl Prepared {
    /// The functional form, whose results go to `outs`.
    ///
    /// # Errors
    /// Those of `meta`; `NotImplementedError` for kernels that compute nothing (views).
    pub(crate) fn functional(
        def: &'static OpDef,
        args: Box<[Value]>,
        outs: Box<[Tensor]>,
    ) -> Result<Prepared> {
        let run = match def.kernels.cpu {
            Kernel::Pointwise(_) => {
                let args: SmallVec<[Arg<'_>; 8]> = args.iter().map(Value::as_arg).collect();
                let specs: Specs = specs(def, &args)?;
                Run::Pointwise(specs[0].compute)
            }
            Kernel::Writing(_) => Run::Write,
            Kernel::Inplace(_) => Run::Copy,
            Kernel::Function(_) => Run::Function,
            Kernel::View(_) | Kernel::ViewInplace(_) | Kernel::Composite(_) | Kernel::None => {
                bail!(not_implemented, "{} computes nothing", def.name)
            }
        };
        Ok(Prepared { def, args, outs, run })
    }
    /// The form that writes into the first argument.
    pub(crate) fn inplace(def: &'static OpDef, args: Box<[Value]>) -> Prepared {
        Prepared { def, args, outs: Box::new([]), run: Run::Inplace }
    }
    /// The form that writes into `outs`.
    pub(crate) fn out(def: &'static OpDef, args: Box<[Value]>, outs: Box<[Tensor]>) -> Prepared {
        Prepared { def, args, outs, run: Run::Out }
    }

    /// Makes the call.
    ///
    /// # Errors
    /// Those of the kernel.
    pub(crate) fn run(&self, cpu: Cpu) -> Result<()> {
        let args: SmallVec<[Arg<'_>; 8]> = self.args.iter().map(Value::as_arg).collect();
        let outs = || self.outs.iter().collect::<SmallVec<[&Tensor; 4]>>();
        match (self.run, &self.def.kernels.cpu) {
            (Run::Pointwise(compute), Kernel::Pointwise(kernel)) => {
                pointwise::run_again(cpu, self.def, *kernel, &args, (&self.outs[0], compute))
            }
            (Run::Write, Kernel::Writing(write)) => write(cpu, &args, &outs()),
            (Run::Copy, Kernel::Inplace(write)) => {
                self.outs[0].copy_data(cpu, receiver(&args))?;
                let mut args = args;
                args[0] = Arg::Tensor(&self.outs[0]);
                write(cpu, &args)
            }
            (Run::Function, Kernel::Function(function)) => {
                self.take_over(cpu, &function(cpu, &args)?.tensors())
            }
            (Run::Inplace, Kernel::Inplace(write)) => {
                receiver(&args).materialize()?;
                write(cpu, &args)
            }
            (Run::Inplace, _) => write_kernel(cpu, self.def, &args, receiver(&args)),
            (Run::Out, _) => write_outs(cpu, self.def, &args, &outs()),
            _ => Ok(()),
        }
    }

    /// Copies what a kernel gave.
    fn take_over(&self, cpu: Cpu, given: &TensorVec) -> Result<()> {
        for (out, given) in self.outs.iter().zip(given) {
            ensure!(
                out.shape() == given.shape() && out.dtype() == given.dtype(),
                runtime,
                "{} gave another shape than when it was recorded",
                self.def.name
            );
            out.copy_data(cpu, given)?;
        }
        Ok(())
    }
}
