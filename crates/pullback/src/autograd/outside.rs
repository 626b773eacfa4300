//! The profiler's layer: a range around the op's call. (`engine::evaluate` opens those of nodes.)
//!
//! A thread includes the key `Profiler` as long as it is observed, so that an op which nobody observes pays nothing.

use crate::Result;
use crate::dispatch::{Call, Form, Outputs};
use crate::prof::{self, Name};

/// The layer: the range is around all other layers.
#[inline(never)]
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    let name = match call.form {
        Form::Inplace => Name::Inplace(call.def),
        Form::Functional | Form::Out(_) => Name::Op(call.def),
    };
    let _range = prof::of_op(name, call.args);
    call.next()
}
