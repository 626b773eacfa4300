//! Words that stand for whole functions in `#[op]`: `meta = binary`, `samples = unary_positive`.
//!
//! A family that repeats itself gets a word here.

use crate::dispatch::{self, Arg, IntoOutputs, OpDef, Outputs, TensorVec};
use crate::error::bail;
use crate::tensor::Cpu;
use crate::{Result, Tensor};

/// The gradient rule of an argument without derivative: a graph through it is built, and its backward pass says that `what`
/// is not implemented, where silence would give no gradient.
pub(in crate::ops) fn no_derivative<T>(what: &str) -> Result<T> {
    bail!(not_implemented, "{what} is not implemented")
}

/// `copy_of = VIEW`: what the view shows, in memory of its own, row by row. Arguments, rules and samples are the
/// view's.
pub(crate) fn copied(cpu: Cpu, view: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    Ok(match dispatch::run_kernel(cpu, view, args)? {
        Outputs::One(shown) => copy(cpu, &shown)?.into_outputs(),
        Outputs::Tensors(all) => {
            Outputs::Tensors(all.iter().map(|t| copy(cpu, t)).collect::<Result<TensorVec>>()?)
        }
        number @ Outputs::Number(_) => number,
    })
}

/// The elements row by row, without history.
pub(crate) fn copy(cpu: Cpu, shown: &Tensor) -> Result<Tensor> {
    let out = Tensor::empty_of(shown.shape(), shown.dtype())?;
    out.copy_data(cpu, shown)?;
    Ok(out)
}

/// `meta` words: shape and dtype of the output from the arguments.
pub(crate) mod meta {
    use crate::dispatch::Arg;
    use crate::tensor::TensorSpec;
    use crate::{DType, Result, Tensor};
    use smallvec::SmallVec;

    /// The error for a call in which the shape of the result depends on elements, though in other
    /// calls of the op it does not.
    pub(crate) fn depends_on_elements(op: &str, what: &str) -> crate::Error {
        crate::Error::not_implemented(format!(
            "{op}(): the shape of the result depends on the elements of {what}"
        ))
    }

    fn tensors<'a>(args: &[Arg<'a>]) -> SmallVec<[&'a Tensor; 4]> {
        args.iter().filter_map(|a| if let Arg::Tensor(t) = a { Some(*t) } else { None }).collect()
    }
    /// The tensors broadcast; their dtypes promote.
    pub fn broadcast(args: &[Arg<'_>]) -> Result<TensorSpec> {
        TensorSpec::broadcast(&tensors(args))
    }
    /// As `broadcast`; integers and bools become the default floating dtype.
    pub fn float(args: &[Arg<'_>]) -> Result<TensorSpec> {
        Ok(broadcast(args)?.to_float())
    }
    /// As `float`, of tensors and of numbers that are inputs of the kernel.
    pub fn float_with_numbers(args: &[Arg<'_>]) -> Result<TensorSpec> {
        let numbers =
            args.iter().filter_map(|a| if let Arg::Scalar(s) = a { Some(*s) } else { None });
        let numbers = numbers.map(Tensor::wrapped).collect::<Result<SmallVec<[Tensor; 2]>>>()?;
        let mut all = tensors(args);
        all.extend(&numbers);
        Ok(TensorSpec::broadcast(&all)?.to_float())
    }
    /// As `float_with_numbers`, of an argument and an order that counts steps.
    pub(crate) fn float_of_order(args: &[Arg<'_>], order: Arg<'_>) -> Result<TensorSpec> {
        crate::ops::pointwise::polynomial::check_orders(&order)?;
        float_with_numbers(args)
    }
    /// As `broadcast`; the result is bool.
    pub fn predicate(args: &[Arg<'_>]) -> Result<TensorSpec> {
        Ok(broadcast(args)?.with_dtype(DType::Bool))
    }
    /// As `broadcast`; complex inputs give their real dtype.
    pub fn real(args: &[Arg<'_>]) -> Result<TensorSpec> {
        let spec = broadcast(args)?;
        let dtype = spec.dtype.to_real();
        Ok(spec.with_dtype(dtype))
    }
}

/// `samples` words.
pub(crate) mod samples {
    use crate::dispatch::Value;
    use crate::gradcheck::{Sample, Sampler};
    use crate::{DType, MemoryFormat, Scalar, Tensor};

    fn each_shape(s: &Sampler, make: impl Fn(&[i64]) -> Tensor) -> Vec<Sample> {
        s.shapes().iter().map(|shape| Sample::of(make(shape))).collect()
    }
    /// One tensor, values in -2..2.
    pub fn unary(s: &Sampler) -> Vec<Sample> {
        let mut out = each_shape(s, |shape| s.normal(shape));
        out.push(Sample::of(s.transposed(3, 2)));
        out
    }
    /// One tensor without zeros.
    pub fn unary_nonzero(s: &Sampler) -> Vec<Sample> {
        each_shape(s, |shape| s.away_from_zero(shape))
    }
    /// One tensor of positive numbers.
    pub fn unary_positive(s: &Sampler) -> Vec<Sample> {
        each_shape(s, |shape| s.positive(shape))
    }
    /// One tensor of numbers in -0.9..0.9.
    pub fn unary_unit(s: &Sampler) -> Vec<Sample> {
        each_shape(s, |shape| s.uniform(shape, -0.9, 0.9))
    }
    /// One tensor of numbers in 1.1..3.
    pub fn unary_above_one(s: &Sampler) -> Vec<Sample> {
        each_shape(s, |shape| s.uniform(shape, 1.1, 3.0))
    }
    /// The pairs of shapes that broadcasting is tried with.
    pub(crate) fn pairs() -> Vec<(Vec<i64>, Vec<i64>)> {
        vec![
            (vec![], vec![]),
            (vec![2, 3], vec![2, 3]),
            (vec![2, 3], vec![3]),
            (vec![2, 1], vec![1, 3]),
            (vec![], vec![2]),
            (vec![2, 0], vec![1]),
        ]
    }
    fn each_pair(
        make: impl Fn(&[i64]) -> Tensor,
        second: impl Fn(&[i64]) -> Tensor,
    ) -> Vec<Sample> {
        let pairs = pairs().into_iter();
        pairs
            .map(|(a, b)| Sample::new([Value::Tensor(make(&a)), Value::Tensor(second(&b))]))
            .collect()
    }
    /// Two tensors.
    pub fn binary(s: &Sampler) -> Vec<Sample> {
        let mut out = each_pair(|a| s.normal(a), |b| s.normal(b));
        out.push(Sample::new([
            Value::Tensor(s.transposed(3, 2)),
            Value::Tensor(s.normal(&[3, 2])),
        ]));
        out
    }
    /// Two tensors, the second without zeros.
    pub fn binary_nonzero(s: &Sampler) -> Vec<Sample> {
        each_pair(|a| s.normal(a), |b| s.away_from_zero(b))
    }
    /// Two tensors, the first without zeros.
    pub fn binary_first_nonzero(s: &Sampler) -> Vec<Sample> {
        each_pair(|a| s.away_from_zero(a), |b| s.normal(b))
    }
    /// Two tensors of positive numbers.
    pub fn binary_positive(s: &Sampler) -> Vec<Sample> {
        each_pair(|a| s.positive(a), |b| s.positive(b))
    }
    /// Two tensors of whole numbers.
    pub(crate) fn binary_whole(s: &Sampler) -> Vec<Sample> {
        each_pair(|a| s.integers(a, -30, 30), |b| s.integers(b, -30, 30))
    }
    /// A number and a tensor of positive numbers.
    pub(crate) fn number_and_positive(s: &Sampler) -> Vec<Sample> {
        let of = |number: f64, shape: &[i64]| {
            Sample::new([Scalar::Float(number).into(), s.positive(shape).into()])
        };
        vec![of(2.5, &[2, 3]), of(3.0, &[]), of(1.5, &[0])]
    }
    /// A tensor of positive numbers and a number.
    pub(crate) fn positive_and_number(s: &Sampler) -> Vec<Sample> {
        let of = |shape: &[i64], number: f64| {
            Sample::new([s.positive(shape).into(), Scalar::Float(number).into()])
        };
        vec![of(&[2, 3], 2.5), of(&[], 3.0), of(&[0], 1.5)]
    }
    /// Arguments and orders.
    pub(crate) fn polynomial(s: &Sampler) -> Vec<Sample> {
        let mut out = each_pair(|x| s.normal(x), |n| s.integers(n, -1, 9));
        out.push(Sample::new([s.integers(&[3], -2, 3).into(), s.integers(&[3], 0, 4).into()]));
        out
    }
    /// One argument and orders.
    pub(crate) fn polynomial_of(s: &Sampler) -> Vec<Sample> {
        let of =
            |x: Scalar, shape: &[i64]| Sample::new([x.into(), s.integers(shape, -1, 9).into()]);
        vec![of(Scalar::Float(0.3), &[2, 3]), of(Scalar::Int(2), &[]), of(Scalar::Float(1.5), &[0])]
    }
    /// Arguments and one order.
    pub(crate) fn polynomial_by(s: &Sampler) -> Vec<Sample> {
        let by = |shape: &[i64], n: Scalar| Sample::new([s.normal(shape).into(), n.into()]);
        vec![by(&[2, 3], Scalar::Int(3)), by(&[], Scalar::Float(8.5)), by(&[0], Scalar::Int(0))]
    }
    /// Samples whose values, but not derivatives, are tested.
    pub(crate) fn values_only(samples: Vec<Sample>) -> Vec<Sample> {
        samples.into_iter().map(Sample::without_gradient).collect()
    }
    /// Three tensors.
    pub fn ternary(s: &Sampler) -> Vec<Sample> {
        let shapes: [[&[i64]; 3]; 4] = [
            [&[], &[], &[]],
            [&[2, 3], &[2, 3], &[2, 3]],
            [&[2, 3], &[3], &[2, 1]],
            [&[0], &[1], &[]],
        ];
        let make =
            |shapes: &[&[i64]; 3]| Sample::new(shapes.map(|x| Value::Tensor(s.away_from_zero(x))));
        shapes.iter().map(make).collect()
    }
    /// A size, without and with a dtype.
    pub(crate) fn creation_size(_s: &Sampler) -> Vec<Sample> {
        let sample = |size: &[i64]| Sample::new([size.into()]).without_gradient();
        vec![
            sample(&[2, 3]),
            sample(&[]),
            sample(&[0, 2]),
            sample(&[3]).with("dtype", DType::I64),
            sample(&[2]).with("dtype", DType::C64),
        ]
    }
    /// A tensor to be like: rows, columns, no dimension, no element, another dtype and order.
    pub(crate) fn creation_like(s: &Sampler) -> Vec<Sample> {
        let mut all = values_only(unary(s));
        all.push(Sample::of(s.normal(&[2])).with("dtype", DType::I32).without_gradient());
        let images = Sample::of(s.normal(&[2, 3, 2, 2])).without_gradient();
        all.push(images.with("memory_format", MemoryFormat::ChannelsLast));
        all
    }
    /// A tensor for dtype and device, and a size.
    pub(crate) fn creation_beside(s: &Sampler) -> Vec<Sample> {
        let beside =
            |t: Tensor, size: &[i64]| Sample::new([t.into(), size.into()]).without_gradient();
        vec![
            beside(s.normal(&[2]), &[3, 2]),
            beside(s.bools(&[2, 2]), &[]),
            beside(s.integers(&[], 0, 5), &[0, 2]),
            beside(s.normal(&[0]), &[2]).with("dtype", DType::F32),
        ]
    }
}
