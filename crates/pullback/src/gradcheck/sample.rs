//! Samples: calls of an op with made-up inputs.

use crate::dispatch::{OpDef, Value};
use crate::{DType, Error, ErrorKind, MemoryFormat, Result, Scalar, Tensor};
use pullback_schema::{Argument, Base, Default};
use std::cell::Cell;

/// One call of an op: values for its first arguments and for some by name; the rest are defaults.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The first arguments.
    pub args: Vec<Value>,
    /// Others by name.
    pub named: Vec<(&'static str, Value)>,
    /// Whether gradients are checked with it (not at kinks, ties or poles).
    pub differentiable: bool,
}

impl Sample {
    /// A call with these first arguments.
    pub fn new(args: impl IntoIterator<Item = Value>) -> Self {
        Sample { args: args.into_iter().collect(), named: Vec::new(), differentiable: true }
    }
    /// A call with one tensor.
    pub fn of(tensor: Tensor) -> Self {
        Sample::new([Value::Tensor(tensor)])
    }
    /// The sample with argument `name` set to a value.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.named.push((name, value.into()));
        self
    }
    /// The sample as one whose values, but not derivatives, are tested.
    pub fn without_gradient(mut self) -> Self {
        self.differentiable = false;
        self
    }
    /// The value of every argument of `def`.
    ///
    /// # Errors
    /// `RuntimeError` if an argument has neither value nor default.
    pub fn values(&self, def: &OpDef) -> Result<Vec<Value>> {
        let args = def.schema().args.iter().enumerate();
        args.map(|(index, arg)| {
            let named =
                self.named.iter().find(|(name, _)| *name == arg.name).map(|(_, v)| v.clone());
            let given = named.or_else(|| self.args.get(index).cloned());
            given.or_else(|| default_value(arg)).ok_or_else(|| {
                Error::runtime(format!(
                    "a sample of {} gives no value for '{}'",
                    def.full_name(),
                    arg.name
                ))
            })
        })
        .collect()
    }
}

/// A call that an op must refuse with this class of error.
pub struct InvalidSample {
    /// The call.
    pub sample: Sample,
    /// The class.
    pub kind: ErrorKind,
    /// A part of the message.
    pub phrase: &'static str,
}

impl InvalidSample {
    /// A call that must fail with this error.
    pub fn new(sample: Sample, kind: ErrorKind, phrase: &'static str) -> Self {
        InvalidSample { sample, kind, phrase }
    }
}

macro_rules! value_from {
    ($($t:ty => $value:expr),* $(,)?) => {$(
        impl From<$t> for Value {
            fn from(value: $t) -> Self {
                let make: fn($t) -> Value = $value;
                make(value)
            }
        }
    )*};
}
value_from!(
    Tensor => Value::Tensor, bool => Value::Bool, i64 => Value::Int, f64 => Value::Float,
    Scalar => Value::Scalar, DType => Value::DType, MemoryFormat => Value::MemoryFormat,
    &[i64] => |v| Value::Ints(v.into()), &str => |v| Value::Str(v.into()),
    Vec<f64> => |v| Value::Floats(v.into()), Vec<Scalar> => |v| Value::Scalars(v.into()),
    Vec<Tensor> => Value::Tensors, Vec<Option<Tensor>> => Value::OptTensors,
);
impl<const N: usize> From<[i64; N]> for Value {
    fn from(value: [i64; N]) -> Self {
        Value::Ints(value.as_slice().into())
    }
}

/// The value that an argument has when it is not given.
pub fn default_value(arg: &Argument) -> Option<Value> {
    let is_scalar = arg.ty.base == Base::Scalar;
    Some(match arg.default.as_ref()? {
        Default::None => Value::None,
        Default::Bool(b) if is_scalar => Value::Scalar(Scalar::Bool(*b)),
        Default::Bool(b) => Value::Bool(*b),
        Default::Int(i) if is_scalar => Value::Scalar(Scalar::Int(*i)),
        Default::Int(i) if arg.ty.base == Base::Float => Value::Float(*i as f64),
        Default::Int(i) => match arg.ty.list {
            Some(list) => Value::Ints(vec![*i; list.size.unwrap_or(1)].into()),
            None => Value::Int(*i),
        },
        Default::Float(f) if is_scalar => Value::Scalar(Scalar::Float(*f)),
        Default::Float(f) => Value::Float(*f),
        Default::Str(s) => Value::Str(s.as_str().into()),
        Default::Ints(v) => Value::Ints(v.as_slice().into()),
        Default::Floats(v) => Value::Floats(v.as_slice().into()),
        Default::EmptyList if arg.ty.base == Base::Tensor => Value::Tensors(Vec::new()),
        Default::EmptyList => Value::Ints([].as_slice().into()),
        Default::MemoryFormat(name) => Value::MemoryFormat(match name.as_str() {
            "preserve_format" => MemoryFormat::Preserve,
            "channels_last" => MemoryFormat::ChannelsLast,
            "channels_last_3d" => MemoryFormat::ChannelsLast3d,
            _ => MemoryFormat::Contiguous,
        }),
        Default::Dtype(name) => Value::DType(match name.as_str() {
            "long" => DType::I64,
            "float" => DType::F32,
            "double" => DType::F64,
            _ => DType::Bool,
        }),
    })
}

/// Makes tensors for samples, in the dtype that is being tested.
pub struct Sampler {
    /// The dtype of the floating inputs.
    pub dtype: DType,
    state: Cell<u64>,
}

impl Sampler {
    /// A sampler for `dtype`.
    pub fn new(dtype: DType) -> Self {
        Sampler { dtype, state: Cell::new(0x9E37_79B9_7F4A_7C15) }
    }
    /// splitmix64: the next number in [0, 1).
    fn next(&self) -> f64 {
        let mut z = self.state.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.state.set(z);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
    /// Numbers in `low..high`; for complex dtypes both parts.
    pub fn uniform(&self, shape: &[i64], low: f64, high: f64) -> Tensor {
        let numel = shape.iter().product::<i64>() as usize;
        let draw = || low + (high - low) * self.next();
        let tensor = if self.dtype.is_complex() {
            let data: Vec<_> = (0..numel).map(|_| crate::C128::new(draw(), draw())).collect();
            Tensor::from_slice(&data, shape)
        } else {
            let data: Vec<f64> = (0..numel).map(|_| draw()).collect();
            Tensor::from_slice(&data, shape)
        };
        tensor.and_then(|t| t.copied(self.dtype)).expect("samples are small")
    }
    /// Numbers between -2 and 2, away from zero and from each other by chance only.
    pub fn normal(&self, shape: &[i64]) -> Tensor {
        self.uniform(shape, -2.0, 2.0)
    }
    /// Numbers between 0.2 and 3.
    pub fn positive(&self, shape: &[i64]) -> Tensor {
        self.uniform(shape, 0.2, 3.0)
    }
    /// Numbers whose distance from zero is at least 0.2, of both signs.
    pub fn away_from_zero(&self, shape: &[i64]) -> Tensor {
        let numel = shape.iter().product::<i64>() as usize;
        let draw = || {
            let v = 0.2 + 2.0 * self.next();
            if self.next() < 0.5 { v } else { -v }
        };
        let tensor = if self.dtype.is_complex() {
            let data: Vec<_> = (0..numel).map(|_| crate::C128::new(draw(), draw())).collect();
            Tensor::from_slice(&data, shape)
        } else {
            let data: Vec<f64> = (0..numel).map(|_| draw()).collect();
            Tensor::from_slice(&data, shape)
        };
        tensor.and_then(|t| t.copied(self.dtype)).expect("samples are small")
    }
    /// Numbers that are all different, in random order, at least 0.1 apart (for sorting and maxima).
    pub fn distinct(&self, shape: &[i64]) -> Tensor {
        let numel = shape.iter().product::<i64>() as usize;
        let mut data: Vec<f64> = (0..numel).map(|i| i as f64 * 0.13 - 1.0).collect();
        for i in (1..numel).rev() {
            data.swap(i, (self.next() * (i + 1) as f64) as usize);
        }
        Tensor::from_slice(&data, shape)
            .and_then(|t| t.copied(self.dtype))
            .expect("samples are small")
    }
    /// Integers in `low..high`.
    pub fn integers(&self, shape: &[i64], low: i64, high: i64) -> Tensor {
        let numel = shape.iter().product::<i64>() as usize;
        let data: Vec<i64> =
            (0..numel).map(|_| low + (self.next() * (high - low) as f64) as i64).collect();
        Tensor::from_slice(&data, shape).expect("samples are small")
    }
    /// Truth values.
    pub fn bools(&self, shape: &[i64]) -> Tensor {
        let numel = shape.iter().product::<i64>() as usize;
        let data: Vec<crate::Bool> =
            (0..numel).map(|_| crate::Bool::new(self.next() < 0.5)).collect();
        Tensor::from_slice(&data, shape).expect("samples are small")
    }
    /// The shapes that pointwise ops and reductions are tried with: 0-dim, vector, matrix, empty.
    pub fn shapes(&self) -> Vec<Vec<i64>> {
        vec![vec![], vec![3], vec![2, 3], vec![2, 1, 3], vec![0], vec![2, 0]]
    }
    /// A transposed view: same values in another order of memory.
    pub fn transposed(&self, rows: i64, columns: i64) -> Tensor {
        let t = self.normal(&[columns, rows]);
        t.alias_with(&[rows, columns], &[1, rows], 0).expect("samples are small")
    }
}
