//! Errors in units in the last place: by how many neighbouring numbers a result misses the exact value.
//!
//! NaN for NaN and the right infinity count as exact; any other number for one of them is infinitely wrong.

/// Distance in units in the last place of the exact value.
pub(crate) fn ulps32(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if got == rounded || (got.is_nan() && rounded.is_nan()) {
        return 0.0;
    }
    if !got.is_finite() || !rounded.is_finite() {
        return f64::INFINITY;
    }
    let unit = f64::from(f32::from_bits(rounded.abs().to_bits().min(0x7f7f_fffe) + 1))
        - f64::from(f32::from_bits(rounded.abs().to_bits().min(0x7f7f_fffe)));
    (f64::from(got) - want).abs() / unit
}
