//! `+ - * / %` and unary `-` between tensors and numbers.
//!
//! Operators cannot say `?` on their way, so each gives a [`Computed`]: a tensor, or the first error of the
//! expression. More operators take it as it is, the methods of [`Chain`](super::chain::Chain) make a result of it, as
//! in `(&x * &w + 1.0).relu().sum()?`, and `get()?` gives its tensor where an operator was last. (`?` itself
//! works only on the standard library's types, and those take no foreign operators.) Everything is computed
//! at once; nothing is put off. Numbers take part as PyTorch's do: they change no tensor's dtype within its
//! category.

use crate::autograd::HookResult;
use crate::call_site::Scope;
use crate::{Error, Result, Scalar, Tensor};
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::panic::Location;

/// The result of an expression of operators: a tensor, or the first error on the way.
///
/// ```
/// use pullback::Tensor;
/// # fn main() -> pullback::Result<()> {
/// let x = Tensor::from_slice(&[1.0_f32, 2.0], &[2])?;
/// let w = Tensor::from_slice(&[3.0_f32, 4.0], &[2])?;
/// let y = (&x * &w + 2.0).get()?;
/// assert_eq!(y.to_vec::<f32>()?, [5.0, 10.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "the expression may have failed; `get()?` gives its tensor"]
pub struct Computed(Result<Tensor>);

impl Computed {
    /// The tensor.
    ///
    /// # Errors
    /// The first error of the expression.
    pub fn get(self) -> Result<Tensor> {
        self.0
    }
}

impl From<Computed> for Result<Tensor> {
    fn from(value: Computed) -> Self {
        value.0
    }
}

impl From<Result<Tensor>> for Computed {
    fn from(value: Result<Tensor>) -> Self {
        Computed(value)
    }
}

impl TryFrom<Computed> for Tensor {
    type Error = Error;
    fn try_from(value: Computed) -> Result<Tensor> {
        value.0
    }
}

impl HookResult for Computed {
    fn replacement(self) -> Result<Option<Tensor>> {
        self.0.map(Some)
    }
}

/// Something an operator takes: a tensor, a number, a result.
pub trait Operand {
    /// As a tensor; numbers become wrapped numbers.
    ///
    /// # Errors
    /// The error that it already is.
    fn into_operand(self) -> Result<Tensor>;
}

impl Operand for Tensor {
    fn into_operand(self) -> Result<Tensor> {
        Ok(self)
    }
}
impl Operand for &Tensor {
    fn into_operand(self) -> Result<Tensor> {
        Ok(self.clone())
    }
}
impl Operand for Computed {
    fn into_operand(self) -> Result<Tensor> {
        self.0
    }
}
impl Operand for Result<Tensor> {
    fn into_operand(self) -> Result<Tensor> {
        self
    }
}
macro_rules! number_operands {
    ($($t:ty),*) => {$(
        impl Operand for $t {
            fn into_operand(self) -> Result<Tensor> { Tensor::wrapped(self) }
        }
    )*};
}
number_operands!(f32, f64, i32, i64, bool, Scalar);

#[track_caller]
fn compute(
    a: impl Operand,
    b: impl Operand,
    op: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Computed {
    let _site = Scope::of_caller(Location::caller());
    Computed(a.into_operand().and_then(|a| op(&a, &b.into_operand()?)))
}

#[track_caller]
fn compute_reflected(
    number: impl Into<Scalar>,
    t: impl Operand,
    op: fn(Scalar, &Tensor) -> Result<Tensor>,
) -> Computed {
    let _site = Scope::of_caller(Location::caller());
    Computed(t.into_operand().and_then(|t| op(number.into(), &t)))
}

/// The result of an operator with a number on its left: PyTorch's operators, too, compute these as
/// functions of the tensor, and divide by multiplying with the reciprocal.
mod reflected {
    use crate::{Result, Scalar, Tensor};

    pub(in crate::ops) fn add(number: Scalar, t: &Tensor) -> Result<Tensor> {
        t.plus(number)
    }
    pub(in crate::ops) fn sub(number: Scalar, t: &Tensor) -> Result<Tensor> {
        t.minus_from(number)
    }
    pub(in crate::ops) fn mul(number: Scalar, t: &Tensor) -> Result<Tensor> {
        t.mul(&Tensor::wrapped(number)?)
    }
    pub(in crate::ops) fn div(number: Scalar, t: &Tensor) -> Result<Tensor> {
        mul(number, &t.reciprocal()?)
    }
    pub(in crate::ops) fn rem(number: Scalar, t: &Tensor) -> Result<Tensor> {
        crate::ops::pointwise::remainder::remainder_of(number, t)
    }
}

/// One operator: from the left a tensor or an expression with any operand; from the right with what is no
/// type of this crate.
macro_rules! operator {
    ($trait:ident, $name:ident, $method:ident) => {
        operator!(@any $trait, $name, $method, &Tensor);
        operator!(@any $trait, $name, $method, Tensor);
        operator!(@any $trait, $name, $method, Computed);
        // One float and one integer type only, so that literals on the left need no suffix.
        operator!(@number $trait, $name, f64, i64, Scalar);
        operator!(@one $trait, $name, Result<Tensor>, &Tensor, compute, Tensor::$method);
        operator!(@one $trait, $name, Result<Tensor>, Tensor, compute, Tensor::$method);
        operator!(@one $trait, $name, Result<Tensor>, Computed, compute, Tensor::$method);
    };
    (@any $trait:ident, $name:ident, $method:ident, $left:ty) => {
        impl<R: Operand> $trait<R> for $left {
            type Output = Computed;
            #[track_caller]
            fn $name(self, right: R) -> Computed { compute(self, right, Tensor::$method) }
        }
    };
    (@number $trait:ident, $name:ident, $($left:ty),*) => {$(
        operator!(@one $trait, $name, $left, &Tensor, compute_reflected, reflected::$name);
        operator!(@one $trait, $name, $left, Tensor, compute_reflected, reflected::$name);
        operator!(@one $trait, $name, $left, Computed, compute_reflected, reflected::$name);
    )*};
    (@one $trait:ident, $name:ident, $left:ty, $right:ty, $compute:ident, $op:path) => {
        impl $trait<$right> for $left {
            type Output = Computed;
            #[track_caller]
            fn $name(self, right: $right) -> Computed { $compute(self, right, $op) }
        }
    };
}
operator!(Add, add, add);
operator!(Sub, sub, sub);
operator!(Mul, mul, mul);
operator!(Div, div, div);
// The remainder has the divisor's sign, as Python's `%` and not as Rust's.
operator!(Rem, rem, remainder);

macro_rules! negation {
    ($($t:ty),*) => {$(
        impl Neg for $t {
            type Output = Computed;
            #[track_caller]
            fn neg(self) -> Computed {
                let _site = Scope::of_caller(Location::caller());
                Computed(self.into_operand().and_then(|t| Tensor::neg(&t)))
            }
        }
    )*};
}
negation!(&Tensor, Tensor, Computed);
