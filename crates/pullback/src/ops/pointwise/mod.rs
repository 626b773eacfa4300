//! Functions of one element of each input.

pub(in crate::ops) mod arithmetic;
pub(in crate::ops) mod bessel;
pub(in crate::ops) mod binary;
pub mod chain;
pub(in crate::ops) mod clamp;
pub(in crate::ops) mod compare;
pub(in crate::ops) mod conjugate;
pub(in crate::ops) mod divisor;
pub mod operator;
pub(in crate::ops) mod polynomial;
pub(in crate::ops) mod power;
pub(in crate::ops) mod remainder;
pub(in crate::ops) mod special;
pub(in crate::ops) mod special_alias;
pub(in crate::ops) mod ternary;
pub(in crate::ops) mod trigonometry;
pub(in crate::ops) mod unary;

use super::OpList;

/// The families of this folder.
pub(super) static FAMILIES: &[OpList] = &[
    arithmetic::OPS,
    remainder::OPS,
    binary::OPS,
    power::OPS,
    divisor::OPS,
    special::OPS,
    bessel::OPS,
    polynomial::OPS,
    special_alias::OPS,
    clamp::OPS,
    compare::OPS,
    conjugate::OPS,
    ternary::OPS,
    trigonometry::OPS,
    unary::OPS,
];
