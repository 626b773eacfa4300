//! Initialisation of parameters, in place and without recording.
//!
//! Each function draws what PyTorch's of the same name draws, in the same order, and computes its bounds in the same steps.

use pullback::{Error, Generator, Result, Scalar, Tensor, no_grad};

/// The function after a layer, which determines how large the layer's weights should be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Nonlinearity {
    /// Nothing, or a sigmoid: gain 1.
    #[default]
    Linear,
    /// The hyperbolic tangent: 5/3.
    Tanh,
    /// A rectifier: `sqrt(2)`.
    ReLU,
    /// A leaky rectifier of this slope: `sqrt(2 / (1 + slope^2))`.
    LeakyReLU(f64),
    /// The self-normalising unit: 3/4.
    SELU,
}

impl Nonlinearity {
    /// The gain.
    pub fn gain(self) -> f64 {
        match self {
            Nonlinearity::Linear => 1.0,
            Nonlinearity::Tanh => 5.0 / 3.0,
            Nonlinearity::ReLU => 2.0_f64.sqrt(),
            Nonlinearity::LeakyReLU(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
            Nonlinearity::SELU => 3.0 / 4.0,
        }
    }
}

/// The pass whose variance is preserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fan {
    /// The forward pass.
    #[default]
    In,
    /// The backward pass.
    Out,
}

/// How many inputs an output of the weight has, and how many outputs an input has.
///
/// # Errors
/// `ValueError` for fewer than two dimensions.
pub fn fans(tensor: &Tensor) -> Result<(i64, i64)> {
    let [fan_out, fan_in, kernel @ ..] = tensor.shape() else {
        return Err(Error::value(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions",
        ));
    };
    let field: i64 = kernel.iter().product();
    Ok((fan_in * field, fan_out * field))
}

/// Draws from the uniform distribution on `[low, high)`.
///
/// # Errors
/// `RuntimeError` for whole numbers and an empty range.
pub fn uniform_(t: &Tensor, low: f64, high: f64, generator: Option<&Generator>) -> Result<()> {
    let _off = no_grad();
    t.uniform__with(low, high, generator).map(drop)
}

/// Draws from the normal distribution.
///
/// # Errors
/// `RuntimeError` for whole numbers and a negative deviation.
pub fn normal_(t: &Tensor, mean: f64, std: f64, generator: Option<&Generator>) -> Result<()> {
    let _off = no_grad();
    t.normal__with(mean, std, generator).map(drop)
}

/// Writes one value everywhere.
///
/// # Errors
/// `RuntimeError` for values that the dtype cannot hold.
pub fn constant_(t: &Tensor, value: impl Into<Scalar>) -> Result<()> {
    let _off = no_grad();
    t.fill_(value.into()).map(drop)
}

/// `U(-a, a)`, `a = gain sqrt(6 / (fan_in + fan_out))` (Glorot and Bengio 2010).
///
/// # Errors
/// `ValueError` for fewer than two dimensions.
pub fn xavier_uniform_(t: &Tensor, gain: f64, generator: Option<&Generator>) -> Result<()> {
    let bound = 3.0_f64.sqrt() * xavier_std(t, gain)?;
    uniform_(t, -bound, bound, generator)
}

/// `N(0, std^2)`, `std = gain sqrt(2 / (fan_in + fan_out))`.
///
/// # Errors
/// `ValueError` for fewer than two dimensions.
pub fn xavier_normal_(t: &Tensor, gain: f64, generator: Option<&Generator>) -> Result<()> {
    normal_(t, 0.0, xavier_std(t, gain)?, generator)
}

fn xavier_std(t: &Tensor, gain: f64) -> Result<f64> {
    let (fan_in, fan_out) = fans(t)?;
    Ok(gain * (2.0 / (fan_in + fan_out) as f64).sqrt())
}

/// `U(-b, b)`, `b = gain sqrt(3 / fan)` (He and others 2015).
///
/// # Errors
/// `ValueError` for fewer than two dimensions.
pub fn kaiming_uniform_(
    t: &Tensor,
    fan: Fan,
    after: Nonlinearity,
    generator: Option<&Generator>,
) -> Result<()> {
    let Some(std) = kaiming_std(t, fan, after)? else { return Ok(()) };
    let bound = 3.0_f64.sqrt() * std;
    uniform_(t, -bound, bound, generator)
}

/// `N(0, std^2)`, `std = gain / sqrt(fan)`.
///
/// # Errors
/// `ValueError` for fewer than two dimensions.
pub fn kaiming_normal_(
    t: &Tensor,
    fan: Fan,
    after: Nonlinearity,
    generator: Option<&Generator>,
) -> Result<()> {
    let Some(std) = kaiming_std(t, fan, after)? else { return Ok(()) };
    normal_(t, 0.0, std, generator)
}

/// None for a tensor without elements.
fn kaiming_std(t: &Tensor, fan: Fan, after: Nonlinearity) -> Result<Option<f64>> {
    if t.numel() == 0 {
        return Ok(None);
    }
    let (fan_in, fan_out) = fans(t)?;
    let fan = if fan == Fan::In { fan_in } else { fan_out };
    Ok(Some(after.gain() / (fan as f64).sqrt()))
}

/// `gain` times a matrix of orthonormal rows or columns; dimensions after the first count as columns (Saxe and others 2013).
///
/// # Errors
/// `ValueError` for fewer than two dimensions.
pub fn orthogonal_(t: &Tensor, gain: f64, generator: Option<&Generator>) -> Result<()> {
    if t.ndim() < 2 {
        return Err(Error::value("Only tensors with 2 or more dimensions are supported"));
    }
    if t.numel() == 0 {
        return Ok(());
    }
    let _off = no_grad();
    let rows = t.shape()[0];
    let columns = t.numel() / rows;
    let flat = t.new_empty(&[rows, columns])?;
    flat.normal__with(0.0, 1.0, generator)?;
    let is_wide = rows < columns;
    let [q, r] = if is_wide { flat.t()? } else { flat }.linalg_qr("reduced")?;
    // The signs of R's diagonal make the distribution uniform (Mezzadri 2006).
    let q = q.mul(&r.diagonal(0, 0, 1)?.sign()?)?;
    let q = if is_wide { q.t()? } else { q };
    t.copy_(&q.reshape(t.shape())?, false)?;
    t.mul_(&Tensor::wrapped(gain)?).map(drop)
}

/// What `Linear`, convolutions and their kin begin with: `U(-b, b)` with `b = 1 / sqrt(fan_in)` for weight and bias.
pub(crate) fn reset(
    weight: &Tensor,
    bias: Option<&Tensor>,
    generator: Option<&Generator>,
) -> Result<()> {
    // (The gain of slope sqrt(5) cancels the 3 of the uniform distribution; these are PyTorch's steps.)
    let slope = Nonlinearity::LeakyReLU(5.0_f64.sqrt());
    kaiming_uniform_(weight, Fan::In, slope, generator)?;
    let Some(bias) = bias else { return Ok(()) };
    let (fan_in, _) = fans(weight)?;
    let bound = if fan_in > 0 { 1.0 / (fan_in as f64).sqrt() } else { 0.0 };
    uniform_(bias, -bound, bound, generator)
}
