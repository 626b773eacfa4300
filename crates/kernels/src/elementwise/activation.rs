//! Activation functions of neural networks and their derivatives (`*_backward`, whose first input is
//! the gradient). They are computed in one pass, in `f32` for half precision.

use super::dense::{Map2, run1, run2, run3};
use super::math::{Math, RealMath};
use super::number::Ordered;
use crate::{DType, Error, Iter, Result, Scalar};

/// `max(x, 0)`; NaN stays.
pub fn relu(iter: &mut Iter) -> Result<()> {
    match iter.input_dtype(0) {
        DType::Bool => Err(Error::unsupported("Boolean inputs not supported for relu".into())),
        d => {
            refuse_complex(d)?;
            compute!(d, "clamp_min_scalar_cpu", [int unsigned float], T => run1::<Relu<T>>(iter, ()))
        }
    }
}
map!(Relu<T: Ordered>(x: T) -> T { if x.is_less(T::zero()) { T::zero() } else { x } });

fn refuse_complex(dtype: DType) -> Result<()> {
    if dtype.is_complex() {
        return Err(Error::unsupported("clamp is not supported for complex types".into()));
    }
    Ok(())
}

/// Declares activations without parameters, of real numbers.
macro_rules! plain {
    ($($(#[$meta:meta])* $name:ident, $error:literal, $Map:ident<$T:ident>($x:ident) $body:expr;)*) => {$(
        map!(math $Map<$T: RealMath>($x: $T) -> $T { $body });
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            compute!(iter.input_dtype(0), $error, [float], E => run1::<$Map<E>>(iter, ()))
        }
    )*};
}
/// Declares derivatives without parameters: gradient and one more input.
macro_rules! plain_backward {
    ($($(#[$meta:meta])* $name:ident, $error:literal, $Map:ident<$T:ident>($g:ident, $x:ident) $body:expr;)*) => {$(
        map!(math $Map<$T: RealMath>($g: $T, $x: $T) -> $T { $body });
        $(#[$meta])*
        pub fn $name(iter: &mut Iter) -> Result<()> {
            compute!(iter.input_dtype(0), $error, [float], E => run2::<$Map<E>>(iter, ()))
        }
    )*};
}

#[inline(always)]
fn smaller<T: RealMath>(a: T, b: T) -> T {
    if a.is_not_a_number() || a < b { a } else { b }
}
#[inline(always)]
fn larger<T: RealMath>(a: T, b: T) -> T {
    if a.is_not_a_number() || b < a { a } else { b }
}
/// `x` limited to `0..=6`.
#[inline(always)]
fn limit6<T: RealMath>(x: T) -> T {
    smaller(larger(x, T::zero()), T::of(6.0))
}

plain! {
    /// `x tanh(ln(1 + e^x))`.
    mish, "mish_cpu", Mish<T>(x) x.times(RealMath::tanh_softplus(x));
    /// `x min(max(x + 3, 0), 6) / 6`.
    hardswish, "hardswish_cpu", Hardswish<T>(x) {
        x.times(limit6(x.plus(T::of(3.0)))).divided_by(T::of(6.0))
    };
    /// `min(max(x + 3, 0), 6) / 6`.
    hardsigmoid, "hardsigmoid_cpu", Hardsigmoid<T>(x) limit6(x.plus(T::of(3.0))).divided_by(T::of(6.0));
    /// `ln(1 / (1 + e^-x))`.
    log_sigmoid, "log_sigmoid_cpu", LogSigmoid<T>(x) {
        smaller(x, T::zero()).minus(RealMath::log1p_exp(x))
    };
}

plain_backward! {
    /// The derivative of `mish`; inputs: gradient, `x`.
    mish_backward, "mish_backward_cpu", MishBackward<T>(g, x) {
        let tanh = RealMath::tanh_softplus(x);
        let slope = x.times(Math::sigmoid(x)).times(T::one().minus(tanh.times(tanh)));
        g.times(tanh.plus(slope))
    };
    /// The derivative of `hardswish`; inputs: gradient, `x`.
    hardswish_backward, "hardswish_backward_cpu", HardswishBackward<T>(g, x) {
        let three = T::of(3.0);
        let middle = g.times(x.divided_by(three).plus(T::of(0.5)));
        if x <= three.negative() { T::zero() } else if x < three { middle } else { g }
    };
    /// The derivative of `hardsigmoid`; inputs: gradient, `x`.
    hardsigmoid_backward, "hardsigmoid_backward", HardsigmoidBackward<T>(g, x) {
        let inside = (x > T::of(-3.0)) & (x < T::of(3.0));
        if inside { g.divided_by(T::of(6.0)) } else { T::zero() }
    };
    /// The derivative of `log_sigmoid`, `g sigmoid(-x)`; inputs: gradient, `x`.
    log_sigmoid_backward, "log_sigmoid_backward_cpu", LogSigmoidBackward<T>(g, x) {
        g.times(Math::sigmoid(x.negative()))
    };
    /// The derivative of `prelu` by its weight, `x < 0 ? g x : 0`; inputs: gradient, `x`.
    prelu_backward_weight, "prelu_backward_cpu", PreluBackwardWeight<T>(g, x) {
        if x > T::zero() { T::zero() } else { g.times(x) }
    };
}

map!(math Silu<T: Math>(x: T) -> T { x.divided_by(T::one().plus(Math::exp(x.negative()))) });
/// `x sigmoid(x)`.
pub fn silu(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "silu_cpu", [float complex], T => run1::<Silu<T>>(iter, ()))
}
map!(math SiluBackward<T: Math>(g: T, x: T) -> T {
    let s = Math::sigmoid(x);
    let slope = s.times(T::one().plus(x.times(T::one().minus(s))));
    g.times(Math::conjugate(slope))
});
/// The derivative of `silu`; inputs: gradient, `x`.
pub fn silu_backward(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "silu_backward_cpu", [float complex], T => run2::<SiluBackward<T>>(iter, ()))
}
map!(math SigmoidBackward<T: Math>(g: T, y: T) -> T {
    g.times(Math::conjugate(T::one().minus(y).times(y)))
});
/// The derivative of `sigmoid`, `g (1 - y) y`; inputs: gradient, the output `y`.
pub fn sigmoid_backward(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "sigmoid_backward_cpu", [float complex], T => run2::<SigmoidBackward<T>>(iter, ()))
}
map!(math TanhBackward<T: Math>(g: T, y: T) -> T {
    g.times(Math::conjugate(T::one().minus(y.times(y))))
});
/// The derivative of `tanh`, `g (1 - y²)`; inputs: gradient, the output `y`.
pub fn tanh_backward(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "tanh_backward_cpu", [float complex], T => run2::<TanhBackward<T>>(iter, ()))
}

struct Glu<T>(std::marker::PhantomData<T>);
impl<T: RealMath> Map2 for Glu<T> {
    type P = ();
    type A = T;
    type B = T;
    type Out = T;
    type Levels = T::MathLevels;
    // Its inputs are halves of rows: rows with gaps.
    const BY_ROWS: bool = true;
    #[inline(always)]
    fn map((): (), a: T, b: T) -> T {
        a.times(Math::sigmoid(b))
    }
}
/// `a sigmoid(b)`; inputs: the two halves.
pub fn glu(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "glu_cpu", [float], T => run2::<Glu<T>>(iter, ()))
}

map!(math GeluErf<T: RealMath>(x: T) -> T { RealMath::gelu(x) });
/// The type that half precision is computed in.
trait Single: RealMath {
    fn gelu_half(self) -> Self;
}
impl Single for f32 {
    #[inline(always)]
    fn gelu_half(self) -> Self {
        crate::simd::math_f32::gelu_half(self)
    }
}
map!(math GeluErfHalf<T: Single>(x: T) -> T { x.gelu_half() });
map!(math GeluTanh<T: RealMath>(x: T) -> T { x.times(gelu_gate(x)) });
/// `(1 + tanh(sqrt(2/π) (x + 0.044715 x³))) / 2`, as a sigmoid of twice the argument.
#[inline(always)]
fn gelu_gate<T: RealMath>(x: T) -> T {
    let beta = T::of(std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::SQRT_2);
    let inner = beta.times(x.times(T::of(0.044_715).times(x).fused(x, T::one())));
    Math::sigmoid(inner)
}
/// `x Φ(x)` (Hendrycks and Gimpel 2016), or with `tanh` its approximation by a hyperbolic tangent.
pub fn gelu(iter: &mut Iter, tanh: bool) -> Result<()> {
    let dtype = iter.input_dtype(0);
    if tanh {
        compute!(dtype, "GeluKernelImpl", [float], T => run1::<GeluTanh<T>>(iter, ()))
    } else if matches!(dtype, DType::F16 | DType::BF16) {
        run1::<GeluErfHalf<f32>>(iter, ())
    } else {
        compute!(dtype, "GeluKernelImpl", [float], T => run1::<GeluErf<T>>(iter, ()))
    }
}
map!(math GeluErfBackward<T: RealMath>(g: T, x: T) -> T {
    let half = T::of(0.5);
    let cdf = RealMath::normal_cdf(x);
    // 1 / sqrt(2π)
    let norm = T::of(std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2 * 0.5);
    let pdf = norm.times(Math::exp(half.negative().times(x.times(x))));
    g.times(x.fused(pdf, cdf))
});
map!(math GeluTanhBackward<T: RealMath>(g: T, x: T) -> T {
    let gate = gelu_gate(x);
    let beta = T::of(std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::SQRT_2);
    let inner_slope = beta.times(T::of(3.0 * 0.044_715).times(x).fused(x, T::one()));
    let slope = gate.times(T::one().minus(gate)).times(inner_slope);
    g.times(x.fused(slope, gate))
});
/// The derivative of `gelu`; inputs: gradient, `x`.
pub fn gelu_backward(iter: &mut Iter, tanh: bool) -> Result<()> {
    let dtype = iter.input_dtype(0);
    if tanh {
        compute!(dtype, "GeluBackwardKernelImpl", [float], T => run2::<GeluTanhBackward<T>>(iter, ()))
    } else {
        compute!(dtype, "GeluBackwardKernelImpl", [float], T => run2::<GeluErfBackward<T>>(iter, ()))
    }
}

/// `beta` and `threshold` of `softplus`.
#[derive(Clone, Copy)]
struct Softplus<T> {
    beta: T,
    threshold: T,
}
map!(math SoftplusMap<T: RealMath>[p => Softplus<T>](x: T) -> T {
    let scaled = x.times(p.beta);
    let above = if scaled > T::zero() { scaled } else { T::zero() };
    let soft = above.plus(RealMath::log1p_exp(scaled)).divided_by(p.beta);
    if scaled > p.threshold { x } else { soft }
});
map!(math SoftplusBackward<T: RealMath>[p => Softplus<T>](g: T, x: T) -> T {
    let scaled = x.times(p.beta);
    let soft = g.times(Math::sigmoid(scaled));
    if scaled > p.threshold { g } else { soft }
});
/// `ln(1 + e^(beta x)) / beta`; `x` itself where `beta x > threshold`.
pub fn softplus(iter: &mut Iter, beta: Scalar, threshold: Scalar) -> Result<()> {
    compute!(iter.input_dtype(0), "softplus_cpu", [float], T => {
        run1::<SoftplusMap<T>>(iter, Softplus { beta: beta.to(), threshold: threshold.to() })
    })
}
/// The derivative of `softplus`; inputs: gradient, `x`.
pub fn softplus_backward(iter: &mut Iter, beta: Scalar, threshold: Scalar) -> Result<()> {
    compute!(iter.input_dtype(0), "softplus_backward_cpu", [float], T => {
        run2::<SoftplusBackward<T>>(iter, Softplus { beta: beta.to(), threshold: threshold.to() })
    })
}

/// The three factors of `elu`, and whether the backward pass is given its result.
#[derive(Clone, Copy)]
struct Elu<T> {
    negative: T,
    positive: T,
    inner: T,
}
impl<T: RealMath> Elu<T> {
    fn new(alpha: Scalar, scale: Scalar, input_scale: Scalar) -> Elu<T> {
        let scale_value: T = scale.to();
        let alpha: T = alpha.to();
        Elu { negative: alpha.times(scale_value), positive: scale_value, inner: input_scale.to() }
    }
}
map!(math EluMap<T: RealMath>[p => Elu<T>](x: T) -> T {
    let below = Math::expm1(x.times(p.inner)).times(p.negative);
    if x < T::zero() { below } else { x.times(p.positive) }
});
map!(math EluBackward<T: RealMath>[p => Elu<T>](g: T, x: T) -> T {
    let below = g.times(p.inner).times(p.negative).times(Math::exp(x.times(p.inner)));
    if x <= T::zero() { below } else { g.times(p.positive) }
});
map!(EluBackwardResult<T: RealMath>[p => Elu<T>](g: T, y: T) -> T {
    let below = g.times(p.inner).times(y.plus(p.negative));
    if y <= T::zero() { below } else { g.times(p.positive) }
});
/// `scale x` above 0, `scale alpha (e^(input_scale x) - 1)` below.
pub fn elu(iter: &mut Iter, alpha: Scalar, scale: Scalar, input_scale: Scalar) -> Result<()> {
    compute!(iter.input_dtype(0), "elu_cpu", [float], T => {
        run1::<EluMap<T>>(iter, Elu::new(alpha, scale, input_scale))
    })
}
/// The derivative of `elu`; inputs: gradient, then `x`, or with `is_result` the output.
pub fn elu_backward(
    iter: &mut Iter,
    alpha: Scalar,
    scale: Scalar,
    input_scale: Scalar,
    is_result: bool,
) -> Result<()> {
    let dtype = iter.input_dtype(0);
    if is_result && alpha.to_f64() < 0.0 {
        return Err(Error::runtime(
            "In-place elu backward calculation is triggered with a negative slope which is not supported. \
             This is caused by calling in-place forward function with a negative slope, please call \
             out-of-place version instead."
                .into(),
        ));
    }
    if is_result {
        compute!(dtype, "elu_backward_cpu", [float], T => {
            run2::<EluBackwardResult<T>>(iter, Elu::new(alpha, scale, input_scale))
        })
    } else {
        compute!(dtype, "elu_backward_cpu", [float], T => {
            run2::<EluBackward<T>>(iter, Elu::new(alpha, scale, input_scale))
        })
    }
}
/// `max(0, x) + min(0, alpha (e^(x / alpha) - 1))`.
pub fn celu(iter: &mut Iter, alpha: Scalar) -> Result<()> {
    if alpha.to_f64() == 0.0 {
        return Err(Error::runtime("ZeroDivisionError: alpha cannot be 0 for CELU".into()));
    }
    elu(iter, alpha, Scalar::Float(1.0), Scalar::Float(1.0 / alpha.to_f64()))
}
/// Constants of `selu` (Klambauer et al. 2017).
pub const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
/// The factor of `selu`.
pub const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
/// `elu` with the constants that keep mean and variance.
pub fn selu(iter: &mut Iter) -> Result<()> {
    elu(iter, Scalar::Float(SELU_ALPHA), Scalar::Float(SELU_SCALE), Scalar::Float(1.0))
}

map!(LeakyRelu<T: RealMath>[slope => T](x: T) -> T { if x > T::zero() { x } else { x.times(slope) } });
map!(LeakyReluBackward<T: RealMath>[slope => T](g: T, x: T) -> T {
    if x > T::zero() { g } else { g.times(slope) }
});
/// `x` above 0, `slope x` below.
pub fn leaky_relu(iter: &mut Iter, slope: Scalar) -> Result<()> {
    compute!(iter.input_dtype(0), "leaky_relu_cpu", [float], T => run1::<LeakyRelu<T>>(iter, slope.to()))
}
/// The derivative of `leaky_relu`; inputs: gradient, `x` (or, for a positive slope, the output).
pub fn leaky_relu_backward(iter: &mut Iter, slope: Scalar) -> Result<()> {
    compute!(iter.input_dtype(0), "leaky_relu_backward_cpu", [float], T => {
        run2::<LeakyReluBackward<T>>(iter, slope.to())
    })
}

map!(Prelu<T: RealMath>(x: T, weight: T) -> T { if x > T::zero() { x } else { weight.times(x) } });
map!(PreluBackward<T: RealMath>(g: T, x: T, weight: T) -> T {
    if x > T::zero() { g } else { weight.times(g) }
});
/// `leaky_relu` with a slope per element; inputs: `x`, weight.
pub fn prelu(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "prelu_cpu", [float], T => run2::<Prelu<T>>(iter, ()))
}
/// The derivative of `prelu` by `x`; inputs: gradient, `x`, weight.
pub fn prelu_backward(iter: &mut Iter) -> Result<()> {
    compute!(iter.input_dtype(0), "prelu_backward_cpu", [float], T => run3::<PreluBackward<T>>(iter, ()))
}

/// `threshold` and `value`, or the two ends of `hardtanh`.
#[derive(Clone, Copy)]
struct NumberPair<T>(T, T);
map!(Threshold<T: Ordered>[p => NumberPair<T>](x: T) -> T { if x.is_less_equal(p.0) { p.1 } else { x } });
map!(ThresholdBackward<T: Ordered>[threshold => T](g: T, x: T) -> T {
    if x.is_less_equal(threshold) { T::zero() } else { g }
});
map!(HardtanhBackward<T: RealMath>[p => NumberPair<T>](g: T, x: T) -> T {
    if (x <= p.0) | (x >= p.1) { T::zero() } else { g }
});
map!(HardshrinkMap<T: RealMath>[limit => T](x: T) -> T {
    let is_small = (x >= limit.negative()) & (x <= limit);
    if is_small { T::zero() } else { x }
});
map!(SoftshrinkMap<T: RealMath>[limit => T](x: T) -> T {
    let is_small = (x >= limit.negative()) & (x <= limit);
    let above = if x > limit { x.minus(limit) } else { x };
    let shrunk = if x < limit.negative() { x.plus(limit) } else { above };
    if is_small { T::zero() } else { shrunk }
});
/// A number as elements of `dtype` hold it.
fn rounded(dtype: DType, value: Scalar) -> f64 {
    crate::for_dtype!(dtype, stored, T => crate::Element::to_f64(<T as crate::Element>::from_f64(value.to_f64())), else value.to_f64())
}
/// `x` where `|x| > limit`, else 0; NaN stays.
pub fn hardshrink(iter: &mut Iter, limit: Scalar) -> Result<()> {
    let limit = rounded(iter.input_dtype(0), limit);
    compute!(iter.input_dtype(0), "hardshrink_cpu", [float], T => run1::<HardshrinkMap<T>>(iter, T::of(limit)))
}
/// `x - limit` above `limit`, `x + limit` below `-limit`, else 0; NaN stays.
pub fn softshrink(iter: &mut Iter, limit: Scalar) -> Result<()> {
    let limit = rounded(iter.input_dtype(0), limit);
    compute!(iter.input_dtype(0), "softshrink_check", [float], T => run1::<SoftshrinkMap<T>>(iter, T::of(limit)))
}
/// `value` where `x <= threshold`, else `x`.
pub fn threshold(iter: &mut Iter, threshold: Scalar, value: Scalar) -> Result<()> {
    compute!(iter.input_dtype(0), "threshold_cpu", [int float], T => {
        run1::<Threshold<T>>(iter, NumberPair(threshold.to(), value.to()))
    })
}
/// The gradient where `x > threshold`, else 0 (`relu`: threshold 0, its output as `x`); inputs: gradient, `x`.
pub fn threshold_backward(iter: &mut Iter, threshold: Scalar) -> Result<()> {
    compute!(iter.input_dtype(0), "threshold_cpu", [int float], T => {
        run2::<ThresholdBackward<T>>(iter, threshold.to())
    })
}
/// `min(max(x, min), max)`.
pub fn hardtanh(iter: &mut Iter, min: Scalar, max: Scalar) -> Result<()> {
    if iter.input_dtype(0) == DType::Bool {
        return Err(Error::unsupported("Bool inputs not supported for hardtanh".into()));
    }
    super::clamp(iter, Some(min), Some(max))
}
/// The gradient where `min < x < max`, else 0; inputs: gradient, `x`.
pub fn hardtanh_backward(iter: &mut Iter, min: Scalar, max: Scalar) -> Result<()> {
    compute!(iter.input_dtype(0), "hardtanh_backward_cpu", [float], T => {
        run2::<HardtanhBackward<T>>(iter, NumberPair(min.to(), max.to()))
    })
}
/// `min(max(x, 0), 6)`.
pub fn relu6(iter: &mut Iter) -> Result<()> {
    hardtanh(iter, Scalar::Int(0), Scalar::Int(6))
}
