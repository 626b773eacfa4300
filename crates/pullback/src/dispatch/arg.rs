//! The uniform calling convention: arguments as a slice of `Arg`, results as `Outputs`.
//!
//! Every op is called this way, so that recording, in-place and `out=` forms, transforms and the
//! Python face exist once and not per op. `FromArg` and `IntoOutputs` turn the typed functions of an
//! op into this form; a mismatch is a bug of the binding (the macro checks types against the schema).

use crate::tensor::{Device, Layout, MemoryFormat, TensorSpec};
use crate::{DType, Error, Generator, Scalar, Tensor};
use smallvec::SmallVec;

/// One argument of an op call.
#[derive(Clone, Copy)]
pub enum Arg<'a> {
    /// `None`.
    None,
    /// `Tensor`.
    Tensor(&'a Tensor),
    /// `Tensor[]`.
    Tensors(&'a [Tensor]),
    /// `Tensor?[]`.
    OptTensors(&'a [Option<Tensor>]),
    /// `bool`.
    Bool(bool),
    /// `int`.
    Int(i64),
    /// `float`.
    Float(f64),
    /// `Scalar`.
    Scalar(Scalar),
    /// `int[]`.
    Ints(&'a [i64]),
    /// `float[]`.
    Floats(&'a [f64]),
    /// `Scalar[]`.
    Scalars(&'a [Scalar]),
    /// `str`.
    Str(&'a str),
    /// `ScalarType`.
    DType(DType),
    /// `Device`.
    Device(Device),
    /// `Layout`.
    Layout(Layout),
    /// `MemoryFormat`.
    MemoryFormat(MemoryFormat),
    /// `Generator`.
    Generator(&'a Generator),
    /// The spec of a tensor, for rules with a parameter `x_spec`.
    Spec(&'a TensorSpec),
}

/// A type that an op's function can take.
pub trait FromArg<'a>: Sized {
    /// Converts `arg`, which the binding has made of the right kind.
    fn from_arg(arg: Arg<'a>) -> Self;
}

#[cold]
#[inline(never)]
fn mismatch(expected: &str) -> ! {
    panic!(
        "an op argument is not of the kind its schema says ({expected}): this is a bug in pullback"
    )
}

macro_rules! from_arg {
    ($($t:ty => $($pattern:pat => $value:expr),+);* $(;)?) => {$(
        impl<'a> FromArg<'a> for $t {
            #[inline(always)]
            fn from_arg(arg: Arg<'a>) -> Self {
                match arg { $($pattern => $value,)+ _ => mismatch(stringify!($t)) }
            }
        }
    )*};
}
from_arg! {
    &'a Tensor => Arg::Tensor(t) => t;
    &'a [Tensor] => Arg::Tensors(t) => t;
    &'a [Option<Tensor>] => Arg::OptTensors(t) => t;
    bool => Arg::Bool(b) => b;
    i64 => Arg::Int(i) => i;
    f64 => Arg::Float(f) => f, Arg::Int(i) => i as f64;
    Scalar => Arg::Scalar(s) => s, Arg::Int(i) => Scalar::Int(i), Arg::Float(f) => Scalar::Float(f), Arg::Bool(b) => Scalar::Bool(b);
    &'a [i64] => Arg::Ints(i) => i;
    &'a [f64] => Arg::Floats(f) => f;
    &'a [Scalar] => Arg::Scalars(s) => s;
    &'a str => Arg::Str(s) => s;
    DType => Arg::DType(d) => d;
    Device => Arg::Device(d) => d;
    Layout => Arg::Layout(l) => l;
    MemoryFormat => Arg::MemoryFormat(m) => m;
    &'a Generator => Arg::Generator(g) => g;
    &'a TensorSpec => Arg::Spec(s) => s;
}

/// The argument itself, for parameters that may be a tensor or a number.
impl<'a> FromArg<'a> for Arg<'a> {
    #[inline(always)]
    fn from_arg(arg: Arg<'a>) -> Self {
        arg
    }
}

impl<'a, T: FromArg<'a>> FromArg<'a> for Option<T> {
    #[inline(always)]
    fn from_arg(arg: Arg<'a>) -> Self {
        match arg {
            Arg::None => None,
            other => Some(T::from_arg(other)),
        }
    }
}

macro_rules! into_arg {
    ($($t:ty => $kind:ident),*) => {$(
        impl<'a> From<$t> for Arg<'a> {
            #[inline(always)]
            fn from(value: $t) -> Self { Arg::$kind(value) }
        }
    )*};
}
into_arg!(&'a Tensor => Tensor, &'a [Tensor] => Tensors, &'a [Option<Tensor>] => OptTensors, bool => Bool,
          i64 => Int, f64 => Float, Scalar => Scalar, &'a [i64] => Ints, &'a [f64] => Floats, &'a [Scalar] => Scalars, &'a str => Str,
          DType => DType, Device => Device, Layout => Layout, MemoryFormat => MemoryFormat,
          &'a Generator => Generator);

impl<'a, T: Into<Arg<'a>>> From<Option<T>> for Arg<'a> {
    #[inline(always)]
    fn from(value: Option<T>) -> Self {
        value.map_or(Arg::None, Into::into)
    }
}

/// An argument that owns its data, for saved values and samples.
#[derive(Clone, Debug)]
pub enum Value {
    /// `None`.
    None,
    /// `Tensor`.
    Tensor(Tensor),
    /// `Tensor[]`.
    Tensors(Vec<Tensor>),
    /// `Tensor?[]`.
    OptTensors(Vec<Option<Tensor>>),
    /// `bool`.
    Bool(bool),
    /// `int`.
    Int(i64),
    /// `float`.
    Float(f64),
    /// `Scalar`.
    Scalar(Scalar),
    /// `int[]`.
    Ints(Box<[i64]>),
    /// `float[]`.
    Floats(Box<[f64]>),
    /// `Scalar[]`.
    Scalars(Box<[Scalar]>),
    /// `str`.
    Str(Box<str>),
    /// `ScalarType`.
    DType(DType),
    /// `Device`.
    Device(Device),
    /// `Layout`.
    Layout(Layout),
    /// `MemoryFormat`.
    MemoryFormat(MemoryFormat),
    /// `Generator`.
    Generator(Generator),
    /// The spec of a tensor.
    Spec(Box<TensorSpec>),
}

impl Value {
    /// The value as an argument.
    #[inline]
    pub fn as_arg(&self) -> Arg<'_> {
        match self {
            Value::None => Arg::None,
            Value::Tensor(t) => Arg::Tensor(t),
            Value::Tensors(t) => Arg::Tensors(t),
            Value::OptTensors(t) => Arg::OptTensors(t),
            Value::Bool(b) => Arg::Bool(*b),
            Value::Int(i) => Arg::Int(*i),
            Value::Float(f) => Arg::Float(*f),
            Value::Scalar(s) => Arg::Scalar(*s),
            Value::Ints(i) => Arg::Ints(i),
            Value::Floats(f) => Arg::Floats(f),
            Value::Scalars(s) => Arg::Scalars(s),
            Value::Str(s) => Arg::Str(s),
            Value::DType(d) => Arg::DType(*d),
            Value::Device(d) => Arg::Device(*d),
            Value::Layout(l) => Arg::Layout(*l),
            Value::MemoryFormat(m) => Arg::MemoryFormat(*m),
            Value::Generator(g) => Arg::Generator(g),
            Value::Spec(s) => Arg::Spec(s),
        }
    }
    /// An owning copy of an argument.
    pub fn from_arg(arg: Arg<'_>) -> Value {
        match arg {
            Arg::None => Value::None,
            Arg::Tensor(t) => Value::Tensor(t.clone()),
            Arg::Tensors(t) => Value::Tensors(t.to_vec()),
            Arg::OptTensors(t) => Value::OptTensors(t.to_vec()),
            Arg::Bool(b) => Value::Bool(b),
            Arg::Int(i) => Value::Int(i),
            Arg::Float(f) => Value::Float(f),
            Arg::Scalar(s) => Value::Scalar(s),
            Arg::Ints(i) => Value::Ints(i.into()),
            Arg::Floats(f) => Value::Floats(f.into()),
            Arg::Scalars(s) => Value::Scalars(s.into()),
            Arg::Str(s) => Value::Str(s.into()),
            Arg::DType(d) => Value::DType(d),
            Arg::Device(d) => Value::Device(d),
            Arg::Layout(l) => Value::Layout(l),
            Arg::MemoryFormat(m) => Value::MemoryFormat(m),
            Arg::Generator(g) => Value::Generator(g.clone()),
            Arg::Spec(s) => Value::Spec(Box::new(s.clone())),
        }
    }
}

/// A few tensors, one of them inline.
pub type TensorVec = SmallVec<[Tensor; 1]>;

/// What an op returns.
pub enum Outputs {
    /// One tensor.
    One(Tensor),
    /// A fixed number of tensors, or a list, as the schema says.
    Tensors(TensorVec),
    /// `bool`, `int`, `float` or `Scalar`.
    Number(Scalar),
}

impl Outputs {
    /// The tensors; none if the result is a number.
    #[inline(always)]
    pub fn as_slice(&self) -> &[Tensor] {
        match self {
            Outputs::One(tensor) => std::slice::from_ref(tensor),
            Outputs::Tensors(tensors) => tensors,
            Outputs::Number(_) => &[],
        }
    }
    /// The tensors.
    #[inline(always)]
    pub fn tensors(self) -> TensorVec {
        match self {
            Outputs::One(tensor) => TensorVec::from_buf([tensor]),
            Outputs::Tensors(tensors) => tensors,
            Outputs::Number(_) => mismatch("tensor results"),
        }
    }
    /// The only tensor.
    #[inline(always)]
    pub fn one(self) -> Tensor {
        match self {
            Outputs::One(tensor) => tensor,
            Outputs::Tensors(mut tensors) if tensors.len() == 1 => tensors.remove(0),
            _ => mismatch("one tensor result"),
        }
    }
    /// Exactly `N` tensors.
    #[inline(always)]
    pub fn array<const N: usize>(self) -> [Tensor; N] {
        match self.tensors().into_vec().try_into() {
            Ok(array) => array,
            Err(_) => mismatch("a fixed number of tensor results"),
        }
    }
    /// The number.
    pub fn number(self) -> Scalar {
        match self {
            Outputs::Number(n) => n,
            _ => mismatch("a number result"),
        }
    }
}

/// A type that an op's function can return.
pub trait IntoOutputs {
    /// The result in the uniform form.
    fn into_outputs(self) -> Outputs;
}

impl IntoOutputs for Tensor {
    #[inline(always)]
    fn into_outputs(self) -> Outputs {
        Outputs::One(self)
    }
}
impl IntoOutputs for Outputs {
    #[inline(always)]
    fn into_outputs(self) -> Outputs {
        self
    }
}
impl IntoOutputs for () {
    fn into_outputs(self) -> Outputs {
        Outputs::Tensors(TensorVec::new())
    }
}
impl<const N: usize> IntoOutputs for [Tensor; N] {
    fn into_outputs(self) -> Outputs {
        Outputs::Tensors(self.into_iter().collect())
    }
}
impl IntoOutputs for Vec<Tensor> {
    fn into_outputs(self) -> Outputs {
        Outputs::Tensors(self.into())
    }
}
impl IntoOutputs for TensorVec {
    fn into_outputs(self) -> Outputs {
        Outputs::Tensors(self)
    }
}
macro_rules! number_outputs {
    ($($t:ty),*) => {$(
        impl IntoOutputs for $t {
            fn into_outputs(self) -> Outputs { Outputs::Number(self.into()) }
        }
    )*};
}
number_outputs!(bool, i64, f64, Scalar);

/// The gradients of a rule: one per tensor of the arguments it is for.
pub type Grads = SmallVec<[Option<Tensor>; 2]>;

/// A type that a `vjp` or `jvp` rule can return.
pub trait IntoGrads {
    /// The gradients in the uniform form.
    fn into_grads(self) -> Grads;
}
impl IntoGrads for Tensor {
    #[inline(always)]
    fn into_grads(self) -> Grads {
        let mut grads = Grads::new();
        grads.push(Some(self));
        grads
    }
}
impl IntoGrads for Option<Tensor> {
    fn into_grads(self) -> Grads {
        let mut grads = Grads::new();
        grads.push(self);
        grads
    }
}
impl<const N: usize> IntoGrads for [Option<Tensor>; N] {
    fn into_grads(self) -> Grads {
        self.into_iter().collect()
    }
}
impl<const N: usize> IntoGrads for [Tensor; N] {
    fn into_grads(self) -> Grads {
        self.into_iter().map(Some).collect()
    }
}
impl IntoGrads for Vec<Tensor> {
    fn into_grads(self) -> Grads {
        self.into_iter().map(Some).collect()
    }
}
impl IntoGrads for Vec<Option<Tensor>> {
    fn into_grads(self) -> Grads {
        self.into()
    }
}

/// The specs that a `meta` function returns: one per output.
pub type Specs = SmallVec<[TensorSpec; 1]>;

/// A type that a `meta` function can return.
pub trait IntoSpecs {
    /// Puts the specs behind those in `specs`.
    fn push_to(self, specs: &mut Specs);
}
impl IntoSpecs for TensorSpec {
    fn push_to(self, specs: &mut Specs) {
        specs.push(self);
    }
}
impl<const N: usize> IntoSpecs for [TensorSpec; N] {
    fn push_to(self, specs: &mut Specs) {
        specs.extend(self);
    }
}
impl IntoSpecs for Vec<TensorSpec> {
    fn push_to(self, specs: &mut Specs) {
        specs.extend(self);
    }
}

/// Runs `f` on every tensor in `args`.
#[inline]
pub(crate) fn each_tensor<'a>(args: &[Arg<'a>], mut f: impl FnMut(&'a Tensor)) {
    for arg in args {
        match arg {
            Arg::Tensor(t) => f(t),
            Arg::Tensors(list) => list.iter().for_each(&mut f),
            Arg::OptTensors(list) => list.iter().flatten().for_each(&mut f),
            _ => {}
        }
    }
}

/// The error for a tensor that is on another device than the first one (0-dim tensors may be).
#[cold]
pub(crate) fn device_mismatch(a: Device, b: Device) -> Error {
    Error::runtime(format!(
        "Expected all tensors to be on the same device, but found at least two devices, {} and {}!",
        a.spelled(),
        b.spelled()
    ))
}
