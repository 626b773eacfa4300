//! Forward mode: derivatives in a direction, computed beside the values.
//!
//! `pushforward` has the rules, `written` the tangents of what is written to, `dual` the layer of calls and what programs
//! call. Where tangents are kept is `variable::tangent`'s business, how long that of `thread::level`.

mod dual;
pub(in crate::autograd) mod pushforward;
pub(in crate::autograd) mod written;

pub use dual::*;
