//! The layer that sees every call. It prints the call's way through the layers if the environment
//! variable `PULLBACK_TRACE_DISPATCH` is set, and lets a recording ([`super::observe`]) refuse
//! layers that it cannot record.
//!
//! A thread that begins to work includes [`Key::Trace`] in every call if the variable is set
//! (`tensor::key`), so that calls which would go straight to their kernel are printed too, and
//! other threads do not pay for it. One line for each layer that a call enters and one for its
//! kernel, with the keys that were still ahead; where a kernel, or an op made of others, chooses
//! among algorithms, a line with the plan that it follows ([`pullback_kernels::plan`]) comes after
//! that.

use super::Outputs;
use super::call::{Call, Layer};
use super::observe;
use crate::Result;
use crate::tensor::{Key, is_traced, watch};
use pullback_kernels::plan::{self, Announced};

/// The layer: lets a recording look at the call, and prints it from here on.
pub(crate) fn layer(call: &Call<'_>) -> Result<Outputs> {
    if watch::is_on() {
        observe::check(call);
    }
    Call { is_traced: is_traced(), ..*call }.next()
}

/// Prints that `call` enters `layer`, or its kernel.
#[cold]
pub(super) fn print(call: &Call<'_>, layer: Option<&Layer>) {
    let (name, overload) = call.form.spelled(call.def);
    let entered = layer.and_then(|layer| call.keys.iter().find(|&key| layer.keys.has(key)));
    let entered = entered.map_or("CPU", Key::name);
    eprintln!("[dispatch] aten::{name}.{overload}: {entered}, keys {}", call.keys);
    plan::print_from_now(print_plan);
}

/// Prints the plan that the call of the last line follows.
fn print_plan(announced: &Announced) {
    eprintln!("[dispatch]   {} by {}", announced.computation, announced.plan);
}
