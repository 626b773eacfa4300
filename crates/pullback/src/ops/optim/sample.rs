//! Samples of optimiser steps for the property tests, made from the lists and options of each.

use crate::dispatch::Value;
use crate::gradcheck::{InvalidSample, Sample, Sampler};
use crate::{DType, ErrorKind, Tensor};

pub(super) fn number_tensor(value: f64) -> Value {
    Value::Tensor(scalar(value, DType::F64))
}

fn scalar(value: f64, dtype: DType) -> Tensor {
    Tensor::scalar_of(value, dtype).expect("samples are small")
}

/// A call with parameters (a matrix, a 0-dimensional and an empty tensor), gradients, and this many lists of buffers
/// and of scalars.
pub(super) fn lists(s: &Sampler, [buffers, numbers]: [usize; 2]) -> Sample {
    let list = || Value::from(vec![s.positive(&[2, 3]), s.positive(&[]), s.positive(&[0])]);
    let counts =
        |by: f64| Value::Tensors([1.0, 2.0, 7.0].map(|c| scalar(c * by, DType::F32)).into());
    let tensors = (0..2 + buffers).map(|_| list());
    // The first numbers are counts, others lie below one.
    let numbers = (0..numbers).map(|k| counts(if k == 0 { 1.0 } else { 0.1 }));
    Sample::new(tensors.chain(numbers)).without_gradient()
}

/// The call with these options.
pub(super) fn named<const N: usize>(
    sample: Sample,
    names: [&'static str; N],
    values: [Value; N],
) -> Sample {
    names.into_iter().zip(values).fold(sample, |sample, (name, value)| sample.with(name, value))
}

/// The samples, and the first one also with gradients to be divided by a scale, and with an infinity found.
pub(super) fn scaled<const N: usize>(samples: [Sample; N]) -> Vec<Sample> {
    let scaled = |found: f64| {
        let scale = samples[0].clone().with("grad_scale", number_tensor(4.0));
        scale.with("found_inf", number_tensor(found))
    };
    let more = [scaled(0.0), scaled(1.0)];
    more.into_iter().chain(samples).collect()
}

/// Invalid samples: the last sample, which uses all lists, with one missing, of another shape or of another dtype.
pub(super) fn refused(s: &Sampler, samples: &[Sample], buffers: usize) -> Vec<InvalidSample> {
    let last = &samples[samples.len() - 1];
    let with = |lists: &[(usize, Vec<Tensor>)], kind: ErrorKind, phrase: &'static str| {
        let mut sample = last.clone();
        for (index, list) in lists {
            sample.args[*index] = Value::Tensors(list.clone());
        }
        InvalidSample::new(sample, kind, phrase)
    };
    let missing = (1..last.args.len())
        .map(|index| with(&[(index, Vec::new())], ErrorKind::Runtime, "parameters and 0 "));
    let shapes = [(0, vec![s.normal(&[2])]), (1, vec![s.normal(&[3])])];
    let shape = with(&shapes, ErrorKind::Runtime, "must have same dtype, device and shape");
    let whole = (0..last.args.len()).map(|index| {
        let is_number = index >= 2 + buffers;
        (index, vec![if is_number { scalar(1.0, DType::F32) } else { s.integers(&[2], 0, 3) }])
    });
    let dtype = with(
        &whole.collect::<Vec<_>>(),
        ErrorKind::NotImplemented,
        "_kernel\" not implemented for 'Long'",
    );
    missing.chain([shape, dtype]).collect()
}
