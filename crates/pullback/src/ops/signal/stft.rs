//! The short-time Fourier transform (`stft`), and its inverse (`istft`).

use crate::dispatch::{OpDef, Value};
use crate::error::{bail, ensure};
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::ops::creation::factory::ones_with;
use crate::ops::reduce::any_all::is_any_true;
use crate::tensor::shape::{list, wrap_dim};
use crate::{DType, Dims, ErrorKind, Result, Scalar, Tensor};
use pullback_macros::op;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[&STFT_CENTER, &ISTFT_OP];

/// Whether the warning about a call without a window was given.
static WITHOUT_WINDOW: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
/// Whether the warning about results as pairs of real numbers was given.
static PAIRS: AtomicBool = AtomicBool::new(false);

/// The value of an optional flag in errors, as PyTorch prints it.
fn flag(value: Option<bool>) -> String {
    value.map_or_else(|| "None".into(), |flag| i64::from(flag).to_string())
}

/// The type of a tensor in errors: `torch.FloatTensor`.
fn kind(t: &Tensor) -> String {
    format!("torch.{}Tensor", t.dtype().scalar_name())
}

fn window_text(window: Option<&Tensor>) -> String {
    window.map_or_else(|| "None".into(), |w| format!("{}{{{}}}", kind(w), list(w.shape())))
}

/// The window, or ones, padded with zeros at both ends to `n_fft` elements.
fn centred(
    window: Option<&Tensor>,
    like: &Tensor,
    win_length: i64,
    n_fft: i64,
) -> Result<Option<Tensor>> {
    let window = match window {
        Some(window) => window.clone(),
        None if win_length == n_fft => return Ok(None),
        None => {
            let (dtype, device) = (like.dtype().to_real(), like.device());
            ones_with(&[win_length], Some(dtype), None, Some(device), None)?
        }
    };
    if win_length == n_fft {
        return Ok(Some(window));
    }
    let left = (n_fft - win_length) / 2;
    window.constant_pad_nd(&[left, n_fft - win_length - left], Scalar::Int(0)).map(Some)
}

/// The signal padded by `n_fft / 2` elements at both ends by the mode `pad`.
fn padded(signal: &Tensor, n_fft: i64, mode: &str) -> Result<Tensor> {
    let rank = signal.ndim();
    let mut shape = Dims::from_elem(1, 3_usize.saturating_sub(rank));
    shape.extend_from_slice(signal.shape());
    let wide = signal.view(&shape)?.pad(&[n_fft / 2, n_fft / 2], mode, None)?;
    let skip = wide.ndim() - rank;
    wide.view(&wide.shape()[skip..])
}

/// The arguments of a call, for errors.
struct Stft<'a> {
    input: &'a Tensor,
    n_fft: i64,
    hop: i64,
    win: i64,
    window: Option<&'a Tensor>,
    normalized: bool,
    onesided: Option<bool>,
    return_complex: bool,
    align_to_window: Option<bool>,
}

impl Stft<'_> {
    fn text(&self) -> String {
        let (hop, win) = (self.hop, self.win);
        format!(
            "stft({}{}, n_fft={}, hop_length={hop}, win_length={win}, window={}, normalized={}, onesided={}, return_complex={}, align_to_window={}) : ",
            kind(self.input),
            list(self.input.shape()),
            self.n_fft,
            window_text(self.window),
            i64::from(self.normalized),
            flag(self.onesided),
            i64::from(self.return_complex),
            flag(self.align_to_window)
        )
    }

    fn check(&self) -> Result<()> {
        let (input, n_fft, hop, win) = (self.input, self.n_fft, self.hop, self.win);
        ensure!(
            input.dtype().is_differentiable(),
            not_implemented,
            "{}expected a tensor of floating point or complex values",
            self.text()
        );
        ensure!(
            matches!(input.ndim(), 1 | 2),
            runtime,
            "{}expected a 1D or 2D tensor",
            self.text()
        );
        let length = input.shape()[input.ndim() - 1];
        ensure!(
            n_fft > 0 && n_fft <= length,
            runtime,
            "{}expected 0 < n_fft < {length}, but got n_fft={n_fft}",
            self.text()
        );
        ensure!(
            hop > 0,
            runtime,
            "{}expected hop_length > 0, but got hop_length={hop}",
            self.text()
        );
        ensure!(
            win > 0 && win <= n_fft,
            runtime,
            "{}expected 0 < win_length <= n_fft, but got win_length={win}",
            self.text()
        );
        if let Some(window) = self.window {
            ensure!(
                window.shape() == [win],
                runtime,
                "{}expected a 1D window tensor of size equal to win_length={win}, but got window with size {}",
                self.text(),
                list(window.shape())
            );
        }
        Ok(())
    }

    /// The frames (batch, frames, `n_fft`), multiplied by the window.
    fn pieces(&self) -> Result<Tensor> {
        let (n_fft, win) = (self.n_fft, self.win);
        let mut signal =
            if self.input.ndim() == 1 { self.input.unsqueeze(0)? } else { self.input.clone() };
        if self.align_to_window == Some(true) {
            // The first window, rather than the first frame, begins where the signal begins.
            let left = (n_fft - win) / 2;
            signal = signal.constant_pad_nd(&[left, n_fft - win - left], Scalar::Int(0))?;
        }
        let pieces = signal.unfold(-1, n_fft, self.hop)?;
        match centred(self.window, self.input, win, n_fft)? {
            Some(window) => pieces.mul(&window),
            None => Ok(pieces),
        }
    }

    fn run(&self) -> Result<Tensor> {
        self.check()?;
        let pieces = self.pieces()?;
        let is_complex = pieces.dtype().is_complex();
        let onesided = self.onesided.unwrap_or(!is_complex);
        ensure!(
            !(is_complex && onesided),
            runtime,
            "Cannot have onesided output if window or input is complex"
        );
        let normalization = i64::from(self.normalized);
        let spectra = if is_complex {
            pieces.fft_c2c(&[2], normalization, true)?
        } else {
            pieces.fft_r2c(&[2], normalization, onesided)?
        };
        let transposed = spectra.transpose(1, 2)?;
        let transposed =
            if self.input.ndim() == 1 { transposed.squeeze_dim(0)? } else { transposed };
        if self.return_complex { Ok(transposed) } else { transposed.view_as_real() }
    }
}

/// The short-time Fourier transform: the spectra of overlapping frames of a signal (length) or (batch, length), of
/// shape (batch, frequencies, frames).
///
/// Frames have `n_fft` elements, `hop_length` (a quarter of `n_fft` by default) from one to the next, multiplied by
/// `window`, which is padded with zeros from `win_length` to `n_fft` elements. With `center` the first frame is centred
/// at the beginning of the signal, which is padded at both ends by `pad_mode`. `normalized` divides by the square root
/// of `n_fft`; `onesided`, the default for real signals, leaves out the half of the spectrum that is the mirror image
/// of the other.
#[op("stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
     autocast = fp32, method = stft)]
impl StftCenter {
    fn composite(
        self_: &Tensor,
        n_fft: i64,
        hop_length: Option<i64>,
        win_length: Option<i64>,
        window: Option<&Tensor>,
        center: bool,
        pad_mode: &str,
        normalized: bool,
        onesided: Option<bool>,
        return_complex: Option<bool>,
        align_to_window: Option<bool>,
    ) -> Result<Tensor> {
        ensure!(
            !center || align_to_window.is_none(),
            runtime,
            "stft align_to_window should only be set when center = false"
        );
        let input = if center { padded(self_, n_fft, pad_mode)? } else { self_.clone() };
        warn_without(window, 0);
        let is_complex =
            self_.dtype().is_complex() || window.is_some_and(|w| w.dtype().is_complex());
        let Some(return_complex) = return_complex.or(is_complex.then_some(true)) else {
            bail!(
                runtime,
                "stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a future PyTorch release."
            );
        };
        if !return_complex {
            crate::warning::warn_once(
                &PAIRS,
                "stft with return_complex=False is deprecated: use return_complex=True, and torch.view_as_real for pairs of real numbers.",
            );
        }
        let hop = hop_length.unwrap_or(n_fft / 4);
        let win = win_length.unwrap_or(n_fft);
        let input = &input;
        Stft {
            input,
            n_fft,
            hop,
            win,
            window,
            normalized,
            onesided,
            return_complex,
            align_to_window,
        }
        .run()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let call = |x: Tensor, n_fft: i64| {
            Sample::new([x.into(), n_fft.into()]).with("return_complex", true)
        };
        let window = |n: i64| Value::Tensor(s.uniform(&[n], 0.3, 1.0));
        let two_sided = || call(s.normal(&[9]), 4).with("onesided", false);
        vec![
            call(s.normal(&[10]), 4).with("window", window(4)).with("onesided", false),
            two_sided().with("hop_length", 3_i64).with("win_length", 3_i64),
            two_sided().with("center", false).with("normalized", true),
            call(s.normal(&[2, 8]), 5).with("pad_mode", "constant").with("onesided", false),
            call(crate::ops::fft::primitive::real(s).normal(&[9]), 4).with("hop_length", 2_i64),
            two_sided()
                .with("win_length", 2_i64)
                .with("window", window(2))
                .with("center", false)
                .with("align_to_window", true),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        refused_pieces(s)
    }
}

fn warn_without(window: Option<&Tensor>, which: usize) {
    if window.is_none() {
        crate::warning::warn_once(
            &WITHOUT_WINDOW[which],
            "A window was not provided. A rectangular window will be applied, which leaks between frequencies. Give window=torch.ones(n_fft) to say that it is wanted, or another one such as torch.hann_window.",
        );
    }
}

fn refused_pieces(s: &Sampler) -> Vec<InvalidSample> {
    let call = |x: Tensor, n_fft: i64| {
        let call = Sample::new([x.into(), n_fft.into()]);
        call.with("return_complex", true).with("center", false)
    };
    let x = || s.normal(&[10]);
    let real = Sampler::new(DType::F64).normal(&[10]);
    let complex = Sampler::new(DType::C128).normal(&[10]);
    let runtime = ErrorKind::Runtime;
    let bad = |call: Sample, phrase| InvalidSample::new(call, runtime, phrase);
    vec![
        bad(
            Sample::new([real.into(), 4_i64.into()]),
            "stft requires the return_complex parameter be given for real inputs",
        ),
        InvalidSample::new(
            call(s.integers(&[10], 0, 5), 4),
            ErrorKind::NotImplemented,
            "expected a tensor of floating point or complex values",
        ),
        bad(call(s.normal(&[1, 2, 8]), 4), "expected a 1D or 2D tensor"),
        bad(call(x(), 0), "expected 0 < n_fft < 10, but got n_fft=0"),
        bad(call(x(), 11), "expected 0 < n_fft < 10, but got n_fft=11"),
        bad(call(x(), 4).with("hop_length", 0_i64), "expected hop_length > 0"),
        bad(call(x(), 4).with("win_length", 5_i64), "expected 0 < win_length <= n_fft"),
        bad(call(x(), 4).with("window", s.normal(&[3])), "expected a 1D window tensor of size"),
        bad(call(complex, 4).with("onesided", true), "Cannot have onesided output"),
        bad(
            Sample::new([x().into(), 4_i64.into()])
                .with("return_complex", true)
                .with("align_to_window", true),
            "align_to_window should only be set when center = false",
        ),
    ]
}

/// The arguments of a call, for errors.
struct Istft<'a> {
    input: &'a Tensor,
    n_fft: i64,
    hop: i64,
    win: i64,
    window: Option<&'a Tensor>,
    center: bool,
    normalized: bool,
    onesided: Option<bool>,
    length: Option<i64>,
    return_complex: bool,
}

impl Istft<'_> {
    fn text(&self) -> String {
        let (hop, win) = (self.hop, self.win);
        let length = self.length.map_or_else(|| "None".into(), |n| n.to_string());
        let mut text = format!(
            "istft(CPU{}Type{}, n_fft={}, hop_length={hop}, win_length={win}, window={}, center={}",
            self.input.dtype().scalar_name(),
            list(self.input.shape()),
            self.n_fft,
            window_text(self.window),
            i64::from(self.center)
        );
        let (normalized, complex) = (i64::from(self.normalized), i64::from(self.return_complex));
        let onesided = flag(self.onesided);
        // (Writing to a string cannot fail.)
        let _ = write!(
            text,
            ", normalized={normalized}, onesided={onesided}, length={length}, return_complex={complex}) "
        );
        text
    }

    /// Refuses arguments that do not fit; returns whether the input is half of a spectrum.
    fn check(&self) -> Result<bool> {
        let (shape, n_fft, hop, win) = (self.input.shape(), self.n_fft, self.hop, self.win);
        ensure!(self.input.numel() > 0, runtime, "{}: input tensor cannot be empty.", self.text());
        ensure!(
            matches!(shape.len(), 2 | 3),
            runtime,
            "{}: expected a tensor with 3 or 4 dimensions, but got {}",
            self.text(),
            shape.len() + 1
        );
        let frequencies = shape[shape.len() - 2];
        let onesided = self.onesided.unwrap_or(frequencies != n_fft);
        let (wanted, words) = if onesided {
            (n_fft / 2 + 1, "n_fft / 2 + 1 when onesided=True")
        } else {
            (n_fft, "n_fft when onesided=False")
        };
        ensure!(
            frequencies == wanted,
            runtime,
            "{}: expected the frequency dimension (3rd to the last) of the input tensor to match {words}, but got {frequencies}",
            self.text()
        );
        ensure!(
            0 < hop && hop <= win,
            runtime,
            "{}: expected 0 < hop_length <= win_length",
            self.text()
        );
        ensure!(
            0 < win && win <= n_fft,
            runtime,
            "{}: expected 0 < win_length <= n_fft",
            self.text()
        );
        ensure!(
            self.window.is_none_or(|window| window.shape() == [win]),
            runtime,
            "{}: Invalid window shape. window has to be 1D and length of `win_length`",
            self.text()
        );
        Ok(onesided)
    }

    /// The frames (batch, frames, `n_fft`) before the transform.
    fn pieces(&self, onesided: bool) -> Result<Tensor> {
        let spectra =
            if self.input.ndim() == 2 { self.input.unsqueeze(0)? } else { self.input.clone() };
        let spectra = spectra.transpose(1, 2)?;
        let normalization = if self.normalized { 1 } else { 2 };
        if self.return_complex {
            ensure!(
                !onesided,
                runtime,
                "Cannot have onesided output if window or input is complex"
            );
            return spectra.fft_c2c(&[2], normalization, false);
        }
        ensure!(
            self.window.is_none_or(|window| !window.dtype().is_complex()),
            runtime,
            "Complex windows are incompatible with return_complex=False"
        );
        let half = if onesided { spectra } else { spectra.narrow(2, 0, self.n_fft / 2 + 1)? };
        half.fft_c2r(&[2], normalization, self.n_fft)
    }

    fn run(&self) -> Result<Tensor> {
        let onesided = self.check()?;
        let (n_fft, hop) = (self.n_fft, self.hop);
        let window = if let Some(window) = centred(self.window, self.input, self.win, n_fft)? {
            window
        } else {
            let (dtype, device) = (self.input.dtype().to_real(), self.input.device());
            ones_with(&[n_fft], Some(dtype), None, Some(device), None)?
        };
        let pieces = self.pieces(onesided)?.mul(&window)?;
        let (batch, count) = (pieces.shape()[0], pieces.shape()[1]);
        let total = (count - 1).saturating_mul(hop).saturating_add(n_fft);
        // Each element is the sum of the frames there, divided by the sum of the squared windows.
        let sum = pieces.unfold_backward(&[batch, total], 1, n_fft, hop)?;
        let squares = window.mul(&window)?.expand(&[1, count, n_fft], false)?;
        let weight = squares.unfold_backward(&[1, total], 1, n_fft, hop)?;
        let start = if self.center { n_fft / 2 } else { 0 };
        let end = match self.length {
            Some(length) => start.saturating_add(length),
            None if self.center => total - n_fft / 2,
            None => total,
        };
        let cut = |t: &Tensor| t.slice(1, Some(start), Some(end), 1);
        let signal = self.divided(&cut(&sum)?, &cut(&weight)?)?;
        let signal = if self.input.ndim() == 2 { signal.squeeze_dim(0)? } else { signal };
        if end <= total {
            return Ok(signal);
        }
        crate::warning::warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail: check center and hop_length.".into());
        signal.constant_pad_nd(&[0, end - total.max(start)], Scalar::Int(0))
    }

    fn divided(&self, sum: &Tensor, weight: &Tensor) -> Result<Tensor> {
        ensure!(
            weight.numel() > 0,
            runtime,
            "{}: the result has no numbers, so that there is no min() of the windows' sum",
            self.text()
        );
        let is_small = weight.abs()?.lt(&Tensor::wrapped(SMALLEST)?)?;
        ensure!(
            !is_any_true(&is_small)?,
            runtime,
            "{}window overlap add min: 1: somewhere the windows that overlap add up to less than {SMALLEST}",
            self.text()
        );
        sum.div(weight)
    }
}

/// The smallest sum of squared windows from which a signal can be reconstructed.
const SMALLEST: f64 = 1e-11;

/// The inverse of `torch.stft`: frames are transformed back, multiplied by the window, added where they overlap, and
/// divided by the sum of the squared windows, which must not vanish. `length` cuts the signal off or pads it with
/// zeros.
#[op("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
     autocast = fp32, method = istft)]
impl IstftOp {
    fn composite(
        self_: &Tensor,
        n_fft: i64,
        hop_length: Option<i64>,
        win_length: Option<i64>,
        window: Option<&Tensor>,
        center: bool,
        normalized: bool,
        onesided: Option<bool>,
        length: Option<i64>,
        return_complex: bool,
    ) -> Result<Tensor> {
        warn_without(window, 1);
        ensure!(
            self_.dtype().is_complex(),
            type_error,
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        );
        // (The number of frames is in the second to last dimension of the pairs.)
        wrap_dim(-3, self_.ndim() + 1)?;
        Istft {
            input: self_,
            n_fft,
            hop: hop_length.unwrap_or(n_fft / 4),
            win: win_length.unwrap_or(n_fft),
            window,
            center,
            normalized,
            onesided,
            length,
            return_complex,
        }
        .run()
    }
    fn samples(s: &Sampler) -> Vec<Sample> {
        let complex = crate::ops::fft::primitive::complex(s);
        let real = crate::ops::fft::primitive::real(s);
        let call =
            |shape: &[i64], n_fft: i64| Sample::new([complex.normal(shape).into(), n_fft.into()]);
        let window = |n: i64| Value::Tensor(real.uniform(&[n], 0.5, 1.0));
        vec![
            call(&[3, 5], 4).with("window", window(4)),
            call(&[2, 3, 4], 4).with("hop_length", 2_i64).with("normalized", true),
            call(&[5, 4], 5).with("window", window(5)).with("return_complex", true),
            call(&[4, 4], 4).with("length", 2_i64).with("onesided", false),
            call(&[3, 5], 5).with("center", false).with("win_length", 5_i64),
        ]
    }
    fn invalid_samples(s: &Sampler) -> Vec<InvalidSample> {
        let complex = crate::ops::fft::primitive::complex(s);
        let call =
            |shape: &[i64], n_fft: i64| Sample::new([complex.normal(shape).into(), n_fft.into()]);
        let bad = |call: Sample, phrase| InvalidSample::new(call, ErrorKind::Runtime, phrase);
        let real = Sample::new([Sampler::new(DType::F64).normal(&[3, 5]).into(), 4_i64.into()]);
        let windows = |window: Tensor| call(&[3, 5], 4).with("window", window);
        vec![
            InvalidSample::new(real, ErrorKind::Type, "istft requires a complex-valued input"),
            InvalidSample::new(call(&[3], 4), ErrorKind::Index, "Dimension out of range"),
            bad(call(&[3, 0], 4), "input tensor cannot be empty."),
            bad(call(&[1, 1, 3, 5], 4), "expected a tensor with 3 or 4 dimensions, but got 5"),
            bad(call(&[3, 5], 6), "to match n_fft / 2 + 1 when onesided=True, but got 3"),
            bad(call(&[3, 5], 4).with("onesided", false), "to match n_fft when onesided=False"),
            bad(
                call(&[3, 5], 4).with("hop_length", 5_i64),
                "expected 0 < hop_length <= win_length",
            ),
            bad(call(&[3, 5], 4).with("win_length", 5_i64), "expected 0 < win_length <= n_fft"),
            bad(windows(complex.normal(&[3])), "Invalid window shape."),
            bad(windows(complex.normal(&[4])), "Complex windows are incompatible"),
            bad(
                call(&[3, 5], 4).with("return_complex", true),
                "Cannot have onesided output if window or input is complex",
            ),
            bad(
                windows(Sampler::new(DType::F64).uniform(&[4], 0.0, 0.0)),
                "window overlap add min: 1",
            ),
        ]
    }
}
