//! The ranges that random numbers of a dtype can be drawn from.
//!
//! Refuses bounds that the dtype cannot hold and moves the bounds of floating dtypes to numbers that the dtype
//! has, so that no draw rounds out of `[from, to)`. Draws nothing.

use crate::error::{bail, ensure};
use crate::{DType, Result};
use pullback_kernels::spelling::Spelled;

/// The range of whole numbers that are really drawn for `[from, to)`; without `to`, up to the largest that
/// the dtype counts to without gaps (`None`: the largest of 64 bits).
pub(crate) fn whole_range(dtype: DType, from: i64, to: Option<i64>) -> Result<(i64, Option<i64>)> {
    ensure!(
        !dtype.is_complex(),
        runtime,
        "random_ handles only integral, floating-point and boolean types, but got {}",
        dtype.scalar_name()
    );
    let Some(to) = to else { return open_range(dtype, from) };
    ensure!(
        from < to,
        runtime,
        "random_ expects 'from' to be less than 'to', but got from={from} >= to={to}"
    );
    let (low, high) = match digits(dtype) {
        Some(digits) => (raised(dtype, digits, from), lowered(dtype, digits, to)),
        None => (from, to),
    };
    ensure!(
        low < high,
        runtime,
        "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from={low} >= to={high}"
    );
    check_holds(dtype, "from", low)?;
    check_holds(dtype, "to - 1", high - 1)?;
    Ok((low, Some(high)))
}

fn open_range(dtype: DType, from: i64) -> Result<(i64, Option<i64>)> {
    if from == i64::MIN || dtype == DType::I64 {
        return Ok((from, None));
    }
    if dtype == DType::U64 {
        check_holds(dtype, "from", from)?;
        return Ok((from, None));
    }
    let (low, last) = match digits(dtype) {
        Some(digits) => (raised(dtype, digits, from), 1_i64 << digits),
        None => (from, limits(dtype).1 as i64),
    };
    check_holds(dtype, "from", low)?;
    ensure!(
        low <= last,
        runtime,
        "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got from={low} > to_inc={last}"
    );
    Ok((low, Some(last + 1)))
}

/// Refuses ends of `[from, to)` that are no numbers of a floating dtype, or too far apart.
pub(crate) fn check_uniform_limits(dtype: DType, from: f64, to: f64) -> Result<()> {
    if !dtype.is_floating_point() {
        return Ok(());
    }
    let (least, most) = limits(dtype);
    for (what, value) in [("from", from), ("to", to)] {
        let name = c_name(dtype);
        ensure!(value >= least && value <= most, runtime, "{what} is out of bounds for {name}");
    }
    ensure!(
        from > to || to - from <= most,
        runtime,
        "uniform_ expects to-from <= std::numeric_limits<{}>::max(), but found to={to} and from={from} which result in to-from to exceed the limit",
        dtype.scalar_name()
    );
    Ok(())
}

/// Warns of ends of a range between which a floating dtype has gaps.
pub(crate) fn warn_of_gaps(dtype: DType, ends: &[(&str, i64)]) {
    let Some(digits) = digits(dtype) else { return };
    let name = c_name(dtype);
    for (what, _) in ends.iter().filter(|(_, value)| value.unsigned_abs() > 1 << digits) {
        crate::warn(format!(
            "{what} is out of bounds [-(2^{digits}), 2^{digits}]: {name} cannot hold every whole number beyond them, so that not all are drawn"
        ));
    }
}

/// Refuses numbers beyond the dtype.
fn check_holds(dtype: DType, what: &str, value: i64) -> Result<()> {
    let (least, most) = limits(dtype);
    if !(least..=most).contains(&(value as f64)) && dtype != DType::I64 {
        bail!(runtime, "{what} is out of bounds for {}", c_name(dtype));
    }
    Ok(())
}

/// How many binary digits a floating dtype counts with.
fn digits(dtype: DType) -> Option<u32> {
    match dtype {
        DType::F16 => Some(11),
        DType::BF16 => Some(8),
        DType::F32 => Some(24),
        DType::F64 => Some(53),
        _ => None,
    }
}

fn limits(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::Bool => (0.0, 1.0),
        DType::F16 => (-65504.0, 65504.0),
        DType::BF16 => (f64::from(half::bf16::MIN), f64::from(half::bf16::MAX)),
        DType::F32 => (f64::from(f32::MIN), f64::from(f32::MAX)),
        DType::F64 => (f64::MIN, f64::MAX),
        dtype => {
            let bits = dtype.size() as i32 * 8;
            if dtype.is_signed() {
                (-2.0_f64.powi(bits - 1), 2.0_f64.powi(bits - 1) - 1.0)
            } else {
                (0.0, 2.0_f64.powi(bits) - 1.0)
            }
        }
    }
}

fn c_name(dtype: DType) -> Spelled<&'static str, DType> {
    let pytorch = match dtype {
        DType::Bool => "bool",
        DType::U8 => "unsigned char",
        DType::I8 => "signed char",
        DType::I16 => "short int",
        DType::I32 => "int",
        DType::U16 => "short unsigned int",
        DType::U32 => "unsigned int",
        DType::U64 => "long unsigned int",
        DType::F16 => "c10::Half",
        DType::BF16 => "c10::BFloat16",
        DType::F32 => "float",
        DType::F64 => "double",
        other => other.name(),
    };
    Spelled::new(pytorch, dtype)
}

/// The number as the dtype holds it; itself if the dtype has only infinity there.
fn rounded(dtype: DType, value: i64) -> i64 {
    let held = match dtype {
        DType::F16 => f64::from(half::f16::from_f64(value as f64)),
        DType::BF16 => f64::from(half::bf16::from_f64(value as f64)),
        DType::F32 => f64::from(value as f32),
        _ => value as f64,
    };
    if held.is_finite() { held as i64 } else { value }
}

/// The distance between neighbours of the dtype at `value`.
fn gap(digits: u32, value: i64) -> i64 {
    let top = value.unsigned_abs().checked_ilog2().unwrap_or(0);
    1_i64 << (top + 1).saturating_sub(digits)
}

/// A lower bound that the dtype does not round below itself.
fn raised(dtype: DType, digits: u32, from: i64) -> i64 {
    let next = rounded(dtype, from.saturating_add(1));
    if next < from { next + gap(digits, from + 1) } else { from }
}

/// An upper bound below which the dtype does not round up to it.
fn lowered(dtype: DType, digits: u32, to: i64) -> i64 {
    let last = rounded(dtype, to - 1);
    if last >= to { last.saturating_sub(gap(digits, to - 1)) } else { to }
}
