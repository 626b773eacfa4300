//! The windows of the main namespace, by which frames of signals are multiplied.
//!
//! A periodic window of `n` numbers is a symmetric one of `n + 1` without the last. They are made of ops in the window's own
//! dtype, so that single and half precision round where PyTorch's do.

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::creation::factory::{arange_with, empty_with, ones_with};
use crate::ops::shape::join::cat;
use crate::tensor::promote::default_dtype;
use crate::{DType, Device, ErrorKind, Layout, Result, Scalar, Tensor};
use pullback_macros::op;
use std::f64::consts::{PI, TAU};

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &BARTLETT_WINDOW,
    &BARTLETT_WINDOW_PERIODIC,
    &BLACKMAN_WINDOW,
    &BLACKMAN_WINDOW_PERIODIC,
    &HANN_WINDOW,
    &HANN_WINDOW_PERIODIC,
    &HAMMING_WINDOW,
    &HAMMING_WINDOW_PERIODIC,
    &HAMMING_WINDOW_ALPHA,
    &HAMMING_WINDOW_ALPHA_BETA,
    &KAISER_WINDOW,
    &KAISER_WINDOW_PERIODIC,
    &KAISER_WINDOW_BETA,
];

/// The options of a new tensor: dtype, layout, device and pinning.
type WindowOptions = (Option<DType>, Option<Layout>, Option<Device>, Option<bool>);

/// A window of `length` elements: `shape` makes the symmetric one from the indices 0, 1, .. and the last index.
fn window(
    name: &str,
    (length, periodic): (i64, bool),
    (dtype, layout, device, pin_memory): WindowOptions,
    shape: impl FnOnce(&Tensor, f64) -> Result<Tensor>,
) -> Result<Tensor> {
    let dtype = dtype.unwrap_or_else(default_dtype);
    if let Some(layout) = layout.filter(|l| *l == Layout::SparseCoo) {
        bail!(
            runtime,
            "{name} is not implemented for sparse types, got: layout {}",
            layout.spelled_name()
        );
    }
    ensure!(
        dtype.is_differentiable(),
        runtime,
        "{name} expects floating point dtypes, got: {}",
        dtype.scalar_name()
    );
    ensure!(
        length >= 0,
        runtime,
        "{name} requires non-negative window_length, got window_length={length}"
    );
    if length == 0 {
        return empty_with(&[0], Some(dtype), layout, device, pin_memory, None);
    }
    if length == 1 {
        return ones_with(&[1], Some(dtype), layout, device, pin_memory);
    }
    let Some(total) = length.checked_add(i64::from(periodic)) else {
        bail!(runtime, "{name}: a window of {length} numbers overflows");
    };
    let numbers = arange_with(Scalar::Int(total), Some(dtype), layout, device, pin_memory)?;
    let whole = shape(&numbers, (total - 1) as f64)?;
    if periodic { whole.narrow(0, 0, length) } else { Ok(whole) }
}

fn scaled(x: &Tensor, factor: f64) -> Result<Tensor> {
    x.mul(&Tensor::wrapped(factor)?)
}

/// The Bartlett window `1 - |2 i / last - 1|`.
fn triangle(numbers: &Tensor, last: f64) -> Result<Tensor> {
    let rising = scaled(numbers, 2.0 / last)?;
    let half = last as i64 / 2 + 1;
    let falling = rising.slice(0, Some(half), None, 1)?.minus_from(2.0)?;
    cat(&[rising.narrow(0, 0, half)?, falling], 0)
}

/// The Hann and Hamming windows `alpha - beta cos(2 pi i / last)`.
fn raised_cosine(numbers: &Tensor, last: f64, alpha: f64, beta: f64) -> Result<Tensor> {
    scaled(&scaled(numbers, TAU / last)?.cos()?, -beta)?.plus(alpha)
}

/// The Blackman window `0.42 - 0.5 cos(2 pi i / last) + 0.08 cos(4 pi i / last)`.
fn blackman(numbers: &Tensor, last: f64) -> Result<Tensor> {
    let angle = scaled(numbers, PI / last)?;
    let fourth = scaled(&scaled(&angle, 4.0)?.cos()?, 0.08)?;
    let second = scaled(&scaled(&angle, 2.0)?.cos()?, 0.5)?;
    fourth.sub(&second)?.plus(0.42)
}

/// The Kaiser window `I0(beta sqrt(1 - (2 i / last - 1)^2)) / I0(beta)`.
fn kaiser(numbers: &Tensor, last: f64, beta: f64) -> Result<Tensor> {
    // (The ratio in double precision: halves do not hold what I0 grows to.)
    let place = scaled(&numbers.to_dtype(DType::F64)?, 2.0 / last)?.plus(-1.0)?;
    let inside = place.mul(&place)?.minus_from(1.0)?.clamp_min(Scalar::Int(0))?;
    let beta = Tensor::wrapped(beta)?;
    let ratio = inside.sqrt()?.mul(&beta)?.i0()?.div(&beta.to_dtype(DType::F64)?.i0()?)?;
    ratio.to_dtype(numbers.dtype())
}

/// Declares the overloads of a window: their arguments after `window_length`, whether they are periodic, and the
/// function that computes them.
macro_rules! windows {
    ($($(#[doc = $doc:tt])* $op:ident($schema:tt, $method:ident, $name:tt $(, $extra:ident: $type:ty)*)
        ($periodic:expr) => $shape:expr;)+) => {$(
        $(#[doc = $doc])*
        #[op($schema, not_differentiable, method = $method)]
        impl $op {
            fn composite(
                window_length: i64,
                $($extra: $type,)*
                dtype: Option<DType>,
                layout: Option<Layout>,
                device: Option<Device>,
                pin_memory: Option<bool>,
            ) -> Result<Tensor> {
                let options = (dtype, layout, device, pin_memory);
                window($name, (window_length, $periodic), options, $shape)
            }
            fn samples(_s: &Sampler) -> Vec<Sample> {
                samples_of(&[$(stringify!($extra)),*])
            }
            fn invalid_samples(_s: &Sampler) -> Vec<InvalidSample> {
                refused(&[$(stringify!($extra)),*])
            }
        }
    )+};
}

windows! {
    /// The periodic Bartlett (triangular) window of `n = window_length` elements: `1 - |2 i / n - 1|`.
    BartlettWindow("bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        bartlett_window, "bartlett_window")(true) => triangle;
    /// The Bartlett (triangular) window `1 - |2 i / n - 1|`, with `n = window_length` if `periodic`, else
    /// `n = window_length - 1`, which makes it symmetric.
    BartlettWindowPeriodic("bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        bartlett_window_periodic, "bartlett_window", periodic: bool)(periodic) => triangle;
    /// The periodic Blackman window of `n = window_length` elements:
    /// `0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n)`.
    BlackmanWindow("blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        blackman_window, "blackman_window")(true) => blackman;
    /// The Blackman window `0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n)`, with `n = window_length` if `periodic`,
    /// else `n = window_length - 1`, which makes it symmetric.
    BlackmanWindowPeriodic("blackman_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        blackman_window_periodic, "blackman_window", periodic: bool)(periodic) => blackman;
    /// The periodic Hann window of `n = window_length` elements: `0.5 - 0.5 cos(2 pi i / n)`.
    HannWindow("hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        hann_window, "hann_window")(true) => |i, last| raised_cosine(i, last, 0.5, 0.5);
    /// The Hann window `0.5 - 0.5 cos(2 pi i / n)`, with `n = window_length` if `periodic`, else
    /// `n = window_length - 1`, which makes it symmetric.
    HannWindowPeriodic("hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        hann_window_periodic, "hann_window", periodic: bool)(periodic) => |i, last| raised_cosine(i, last, 0.5, 0.5);
    /// The periodic Hamming window of `n = window_length` elements: `0.54 - 0.46 cos(2 pi i / n)`.
    HammingWindow("hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        hamming_window, "hamming_window")(true) => |i, last| raised_cosine(i, last, 0.54, 0.46);
    /// The Hamming window `0.54 - 0.46 cos(2 pi i / n)`, with `n = window_length` if `periodic`, else
    /// `n = window_length - 1`, which makes it symmetric.
    HammingWindowPeriodic("hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        hamming_window_periodic, "hamming_window", periodic: bool)(periodic) => |i, last| raised_cosine(i, last, 0.54, 0.46);
    /// The generalised Hamming window `alpha - 0.46 cos(2 pi i / n)`, with `n = window_length` if `periodic`, else
    /// `n = window_length - 1`.
    HammingWindowAlpha("hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        hamming_window_periodic_alpha, "hamming_window", periodic: bool, alpha: f64)(periodic) => |i, last| raised_cosine(i, last, alpha, 0.46);
    /// The generalised Hamming window `alpha - beta cos(2 pi i / n)`, with `n = window_length` if `periodic`, else
    /// `n = window_length - 1`.
    HammingWindowAlphaBeta("hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        hamming_window_periodic_alpha_beta, "hamming_window", periodic: bool, alpha: f64, beta: f64)(periodic) => |i, last| raised_cosine(i, last, alpha, beta);
    /// The periodic Kaiser window with `beta` 12 of `n = window_length` elements:
    /// `I0(beta sqrt(1 - (2 i / n - 1)^2)) / I0(beta)`.
    KaiserWindow("kaiser_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        kaiser_window, "kaiser_window")(true) => |i, last| kaiser(i, last, 12.0);
    /// The Kaiser window with `beta` 12, `I0(beta sqrt(1 - (2 i / n - 1)^2)) / I0(beta)`, with `n = window_length` if
    /// `periodic`, else `n = window_length - 1`, which makes it symmetric.
    KaiserWindowPeriodic("kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        kaiser_window_periodic, "kaiser_window", periodic: bool)(periodic) => |i, last| kaiser(i, last, 12.0);
    /// The Kaiser window `I0(beta sqrt(1 - (2 i / n - 1)^2)) / I0(beta)`, narrower for larger `beta`, with
    /// `n = window_length` if `periodic`, else `n = window_length - 1`, which makes it symmetric.
    KaiserWindowBeta("kaiser_window.beta(int window_length, bool periodic, float beta, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        kaiser_window_beta, "kaiser_window", periodic: bool, beta: f64)(periodic) => |i, last| kaiser(i, last, beta);
}

/// A call with values for the arguments after the length.
fn call(length: i64, extra: &[&'static str], periodic: bool) -> Sample {
    let start = Sample::new([Value::Int(length)]).without_gradient();
    let value = |name: &str| match name {
        "periodic" => Value::Bool(periodic),
        "alpha" => Value::Float(0.6),
        _ => Value::Float(2.5),
    };
    extra.iter().fold(start, |call, name| call.with(name, value(name)))
}

fn samples_of(extra: &[&'static str]) -> Vec<Sample> {
    vec![
        call(5, extra, true),
        call(6, extra, false).with("dtype", DType::F64),
        call(0, extra, true),
        call(1, extra, true),
        call(2, extra, false),
        call(4, extra, true).with("dtype", DType::BF16),
    ]
}

fn refused(extra: &[&'static str]) -> Vec<InvalidSample> {
    let whole = call(4, extra, true).with("dtype", DType::I32);
    let complex = call(4, extra, true).with("dtype", DType::C64);
    let (runtime, missing) = (ErrorKind::Runtime, ErrorKind::NotImplemented);
    vec![
        InvalidSample::new(call(-1, extra, true), runtime, "got window_length=-1"),
        InvalidSample::new(whole, runtime, "expects floating point dtypes"),
        InvalidSample::new(complex, missing, "\"arange_cpu\" not implemented for 'ComplexFloat'"),
    ]
}
