//! A call of an op on its way through the layers.
//!
//! `autograd::call` begins it and joins the keys of its tensors and of the thread; without any key it goes straight to the
//! kernel and no [`Call`] is made. Else [`Call::next`] runs the outermost layer of the op's table (`crate::layers`) whose key
//! the call has; the layer does its part and calls `next` in turn, which then sees the layers further in only. A layer that
//! replaces arguments goes on by [`Call::redispatch`], which joins their keys anew. Behind the last layer is the dense CPU
//! kernel.

use super::{
    Arg, IntoOutputs, Kernel, OpDef, Outputs, Traits, check_outs, each_tensor, observe, receiver,
    run_kernel, trace, write_kernel, write_outs,
};
use crate::tensor::{BACKENDS, Cpu, Flag, KeySet, watch};
use crate::{Result, Tensor};
use std::borrow::Cow;
use std::panic::Location;

/// The form in which an op is called.
#[derive(Clone, Copy)]
pub enum Form<'a> {
    /// Returns new results.
    Functional,
    /// Writes into the first argument.
    Inplace,
    /// Writes into these tensors.
    Out(&'a [&'a Tensor]),
}

impl Form<'_> {
    /// The names of op and overload in this form, `("add_", "Tensor")`; an overload without name is `default`.
    #[must_use]
    pub fn spelled(self, def: &OpDef) -> (Cow<'static, str>, Cow<'static, str>) {
        let name = Cow::Borrowed(def.name);
        let overload = if def.overload.is_empty() { "default" } else { def.overload };
        match self {
            Form::Inplace if !def.is(Traits::INPLACE_ONLY) => {
                (format!("{name}_").into(), overload.into())
            }
            Form::Out(_)
                if matches!(def.overload, "" | "Tensor") && !def.is(Traits::OVERLOAD_OUT) =>
            {
                (name, "out".into())
            }
            Form::Out(_) => (name, format!("{overload}_out").into()),
            Form::Functional | Form::Inplace => (name, overload.into()),
        }
    }
    /// The name with the namespace, `aten::add_.Tensor`; an overload without name is left out.
    #[must_use]
    pub fn qualified(self, def: &OpDef) -> String {
        let (name, overload) = self.spelled(def);
        match &*overload {
            "default" => format!("aten::{name}"),
            overload => format!("aten::{name}.{overload}"),
        }
    }
}

/// A layer: its keys and its entry.
pub struct Layer {
    /// The keys of calls that pass the layer.
    pub(crate) keys: KeySet,
    /// The entry: does the layer's part of a call and calls on.
    pub(crate) run: fn(&Call<'_>) -> Result<Outputs>,
}

/// A call of an op, with the layers that it still has to pass.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The op.
    pub def: &'static OpDef,
    /// The form in which the op is called.
    pub form: Form<'a>,
    /// The arguments as this layer's caller sees them.
    pub args: &'a [Arg<'a>],
    /// The keys of the layers that are still to be passed.
    pub(crate) keys: KeySet,
    /// The location of the Rust code that made the call.
    pub(crate) caller: &'static Location<'static>,
    pub(super) layers: &'static [Layer],
    /// Whether the layers that the call passes are printed.
    pub(super) is_traced: bool,
}

impl<'a> Call<'a> {
    /// A call before its first layer.
    pub(crate) fn new(
        def: &'static OpDef,
        form: Form<'a>,
        args: &'a [Arg<'a>],
        keys: KeySet,
        caller: &'static Location<'static>,
    ) -> Call<'a> {
        Call { def, form, args, keys, caller, layers: def.layers, is_traced: false }
    }

    /// Runs the next layer that this call has to pass, or the kernel if there is none left.
    pub(crate) fn next(&self) -> Result<Outputs> {
        let due = self.layers.iter().position(|layer| layer.keys.has_any(self.keys));
        let Some(at) = due else {
            if self.is_traced {
                trace::print(self, None);
            }
            return self.run_kernel();
        };
        let layer = &self.layers[at];
        let rest =
            Call { layers: &self.layers[at + 1..], keys: self.keys.without(layer.keys), ..*self };
        if self.is_traced {
            trace::print(self, Some(layer));
        }
        (layer.run)(&rest)
    }

    /// The call with other arguments that have the same keys.
    pub(crate) fn with_args<'b>(&self, args: &'b [Arg<'b>]) -> Call<'b>
    where
        'a: 'b,
    {
        Call { args, ..*self }
    }

    /// Continues the call with other arguments and targets; their keys determine which of the remaining layers are passed.
    pub(crate) fn redispatch(&self, form: Form<'_>, args: &[Arg<'_>]) -> Result<Outputs> {
        let keys = KeySet::joined(keys_of(args) | keys_of_targets(form));
        Call { form, args, keys, ..*self }.next()
    }

    /// Whether an argument or target has one of these keys.
    pub(crate) fn has_tensor_with(&self, keys: KeySet) -> bool {
        KeySet::of_word(keys_of(self.args) | keys_of_targets(self.form)).has_any(keys)
    }

    /// Calls `f` with each tensor among the arguments and targets.
    pub(crate) fn each_tensor(&self, mut f: impl FnMut(&'a Tensor)) {
        each_tensor(self.args, &mut f);
        if let Form::Out(outs) = self.form {
            outs.iter().copied().for_each(f);
        }
    }

    /// Runs the dense CPU kernel in the form of the call, which a recording of the thread sees. (It sees the ops that composites
    /// are made of.)
    fn run_kernel(&self) -> Result<Outputs> {
        if watch::is_on() && !matches!(self.def.kernels.cpu, Kernel::Composite(_)) {
            return observe::run(self);
        }
        self.run_unobserved()
    }

    /// Runs the dense CPU kernel in the form of the call.
    pub(super) fn run_unobserved(&self) -> Result<Outputs> {
        // SAFETY: the call came past all layers, so that its tensors are plain ones in main memory.
        let cpu = unsafe { Cpu::grant() };
        match self.form {
            Form::Functional => run_kernel(cpu, self.def, self.args),
            Form::Inplace => {
                let target = receiver(self.args);
                write_kernel(cpu, self.def, self.args, target)?;
                Ok(target.clone().into_outputs())
            }
            Form::Out(outs) => {
                check_outs(self.def, outs)?;
                write_outs(cpu, self.def, self.args, outs)?;
                Ok(Outputs::Tensors(outs.iter().map(|&out| out.clone()).collect()))
            }
        }
    }
}

/// The words of all tensors among the arguments, joined: their keys, and facts about them. An argument that names a device
/// counts as a tensor there.
#[inline(always)]
pub(crate) fn keys_of(args: &[Arg<'_>]) -> u32 {
    let mut word = 0;
    for arg in args {
        match arg {
            Arg::Tensor(tensor) => word |= tensor.flags(),
            Arg::Tensors(list) => list.iter().for_each(|tensor| word |= tensor.flags()),
            Arg::OptTensors(list) => {
                list.iter().flatten().for_each(|tensor| word |= tensor.flags());
            }
            Arg::Device(device) => word |= device.keys().word(),
            _ => {}
        }
    }
    word
}

/// As [`keys_of`], for the targets of a form with `out=`.
#[inline]
pub(crate) fn keys_of_targets(form: Form<'_>) -> u32 {
    match form {
        Form::Out(outs) => outs.iter().fold(0, |word, out| word | out.flags()),
        Form::Functional | Form::Inplace => 0,
    }
}

impl Tensor {
    /// Whether the tensor's ops are computed otherwise than by kernels on its memory, whatever the thread excludes: by its
    /// class or for a whole batch.
    pub fn overrides_ops(&self) -> bool {
        self.has_flag(Flag::PYTHON | Flag::BATCHED)
    }
    /// Whether an op on the tensor is computed otherwise than by the dense CPU kernel, on this thread now.
    #[inline]
    pub(crate) fn needs_layers(&self) -> bool {
        KeySet::joined(self.flags()).has_any(BACKENDS)
    }
}
