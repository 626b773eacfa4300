//! Circular and hyperbolic functions and their inverses, in radians.
//!
//! All are computed by a kernel of their own; complex numbers follow the usual branch cuts. Integers
//! give the default floating dtype.

use crate::dispatch::OpDef;
use crate::error::ensure;
use crate::{Result, Tensor, TensorSpec};
use pullback_kernels::{Iter, elementwise};
use pullback_macros::op;

/// The ops of this family.
pub(crate) static OPS: &[&OpDef] = &[
    &SIN,
    &COS,
    &TAN,
    &ASIN,
    &ACOS,
    &ATAN,
    &SINH,
    &COSH,
    &TANH,
    &TANH_BACKWARD,
    &ASINH,
    &ACOSH,
    &ATANH,
    &DEG2RAD,
    &RAD2DEG,
];

/// The sine.
#[op("sin(Tensor self) -> Tensor", inplace, out, meta = float, cpu = sin, batch = pointwise, jvp = elementwise,
     samples = unary, sparse = values)]
impl Sin {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.cos()?.conj()?)
    }
}

/// The cosine.
#[op("cos(Tensor self) -> Tensor", inplace, out, meta = float, cpu = cos, batch = pointwise, jvp = elementwise,
     samples = unary)]
impl Cos {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.sin()?.conj()?)?.neg()
    }
}

/// The tangent.
#[op("tan(Tensor self) -> Tensor", inplace, out, meta = float, cpu = tan, batch = pointwise, jvp = elementwise,
     samples = unary_unit, sparse = values)]
impl Tan {
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.mul(&square_and(result, 1.0)?.conj()?)
    }
}

/// The inverse sine, in `[-π/2, π/2]`; NaN for real numbers outside `[-1, 1]`.
#[op("asin(Tensor self) -> Tensor", inplace, out, alias("arcsin"), meta = float, cpu = asin, batch = pointwise,
     jvp = elementwise, samples = unary_unit, sparse = values)]
impl Asin {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.mul(self_)?.minus_from(1.0)?.rsqrt()?.conj()?)
    }
}

/// The inverse cosine, in `[0, π]`; NaN for real numbers outside `[-1, 1]`.
#[op("acos(Tensor self) -> Tensor", inplace, out, alias("arccos"), meta = float, cpu = acos, batch = pointwise,
     jvp = elementwise, samples = unary_unit)]
impl Acos {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.mul(self_)?.minus_from(1.0)?.rsqrt()?.conj()?)?.neg()
    }
}

/// The inverse tangent, in `[-π/2, π/2]`.
#[op("atan(Tensor self) -> Tensor", inplace, out, alias("arctan"), meta = float, cpu = atan, batch = pointwise,
     jvp = elementwise, samples = unary, sparse = values)]
impl Atan {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.div(&square_and(self_, 1.0)?.conj()?)
    }
}

/// The hyperbolic sine: `(e^self - e^-self) / 2`.
#[op("sinh(Tensor self) -> Tensor", inplace, out, meta = float, cpu = sinh, batch = pointwise, jvp = elementwise,
     samples = unary, sparse = values)]
impl Sinh {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.cosh()?.conj()?)
    }
}

/// The hyperbolic cosine: `(e^self + e^-self) / 2`.
#[op("cosh(Tensor self) -> Tensor", inplace, out, meta = float, cpu = cosh, batch = pointwise, jvp = elementwise,
     samples = unary)]
impl Cosh {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&self_.sinh()?.conj()?)
    }
}

/// The hyperbolic tangent: `sinh(self) / cosh(self)`.
#[op("tanh(Tensor self) -> Tensor", inplace, out, meta = float, cpu = tanh, batch = pointwise, jvp = elementwise,
     samples = unary, sparse = values)]
impl Tanh {
    fn vjp_self(grad: &Tensor, result: &Tensor) -> Result<Tensor> {
        grad.tanh_backward(result)
    }
}

/// The derivative of `tanh` from its result `y`: `grad_output * conj(1 - y^2)`.
#[op("tanh_backward(Tensor grad_output, Tensor output) -> Tensor", out, internal, meta = broadcast,
     cpu = tanh_backward, batch = pointwise, samples = binary)]
impl TanhBackward {
    fn vjp_grad_output(grad: &Tensor, output: &Tensor) -> Result<Tensor> {
        grad.tanh_backward(&output.conj()?)
    }
    fn vjp_output(grad: &Tensor, grad_output: &Tensor, output: &Tensor) -> Result<Tensor> {
        grad.conj()?.mul(&output.conj()?.mul(grad_output)?.times(-2)?)
    }
    fn jvp(
        grad_output_p: &Tensor,
        grad_output_t: &Tensor,
        output_p: &Tensor,
        output_t: &Tensor,
    ) -> Result<Tensor> {
        let by_output = output_t.mul(output_p)?.conj()?.mul(grad_output_p)?.times(-2)?;
        grad_output_t.tanh_backward(output_p)?.add(&by_output)
    }
}

/// The inverse hyperbolic sine.
#[op("asinh(Tensor self) -> Tensor", inplace, out, alias("arcsinh"), meta = float, cpu = asinh, batch = pointwise,
     jvp = elementwise, samples = unary, sparse = values)]
impl Asinh {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.mul(&square_and(self_, 1.0)?.rsqrt()?.conj()?)
    }
}

/// The inverse hyperbolic cosine; NaN for real numbers below 1.
#[op("acosh(Tensor self) -> Tensor", inplace, out, alias("arccosh"), meta = float, cpu = acosh, batch = pointwise,
     jvp = elementwise, samples = unary_above_one)]
impl Acosh {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        // Two roots rather than that of self^2 - 1: the branch is then right for complex numbers too.
        let slope = self_.plus(-1.0)?.rsqrt()?.mul(&self_.plus(1.0)?.rsqrt()?)?;
        grad.mul(&slope.conj()?)
    }
}

/// The inverse hyperbolic tangent; NaN for real numbers outside `[-1, 1]`.
#[op("atanh(Tensor self) -> Tensor", inplace, out, alias("arctanh"), meta = float, cpu = atanh, batch = pointwise,
     jvp = elementwise, samples = unary_unit, sparse = values)]
impl Atanh {
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        grad.div(&self_.mul(self_)?.minus_from(1.0)?.conj()?)
    }
}

/// Degrees to radians: `self * π / 180`.
#[op("deg2rad(Tensor self) -> Tensor", inplace, out, node = "Deg2Rad", result = float, batch = pointwise, jvp = linear, samples = unary, sparse = values)]
impl Deg2rad {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        refuse_complex("deg2rad", self_)?;
        Ok(TensorSpec::broadcast(&[self_])?.to_float())
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::scaled(iter, std::f64::consts::PI / 180.0)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.deg2rad()
    }
}

/// Radians to degrees: `self * 180 / π`.
#[op("rad2deg(Tensor self) -> Tensor", inplace, out, node = "Rad2Deg", result = float, batch = pointwise, jvp = linear, samples = unary, sparse = values)]
impl Rad2deg {
    fn meta(self_: &Tensor) -> Result<TensorSpec> {
        refuse_complex("rad2deg", self_)?;
        Ok(TensorSpec::broadcast(&[self_])?.to_float())
    }
    fn cpu(iter: &mut Iter) -> pullback_kernels::Result<()> {
        elementwise::scaled(iter, 180.0 / std::f64::consts::PI)
    }
    fn vjp_self(grad: &Tensor) -> Result<Tensor> {
        grad.rad2deg()
    }
}

fn refuse_complex(name: &str, x: &Tensor) -> Result<()> {
    ensure!(
        !x.dtype().is_complex(),
        not_implemented,
        "{name} is not supported for complex tensors."
    );
    Ok(())
}

/// `x^2 + value`.
fn square_and(x: &Tensor, value: f64) -> Result<Tensor> {
    x.mul(x)?.plus(value)
}
