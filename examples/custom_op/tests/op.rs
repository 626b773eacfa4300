//! The op is checked as the library checks its own.

use pullback::autograd::call;
use pullback::dispatch::{Arg, Value};
use pullback::func::{Batched, jvp, linearize, vmap};
use pullback::gradcheck::{Sample, Sampler, Tolerance, gradcheck, gradgradcheck};
use pullback::prelude::*;
use pullback_custom_op::{KEPLER, KeplerMethods};

/// The two tensors of a sample.
fn arguments(sample: &Sample) -> Result<[Tensor; 2]> {
    let values = sample.values(&KEPLER)?;
    match <[Value; 2]>::try_from(values) {
        Ok([Value::Tensor(mean), Value::Tensor(eccentricity)]) => Ok([mean, eccentricity]),
        _ => panic!("the op has two tensors"),
    }
}

fn each_sample(check: impl Fn([Tensor; 2]) -> Result<()>) -> Result<()> {
    let samples = KEPLER.samples.expect("the item has samples")(&Sampler::new(DType::F64));
    assert!(samples.len() > 3);
    samples.iter().try_for_each(|sample| check(arguments(sample)?))
}

#[test]
fn the_solution_solves_the_equation() -> Result<()> {
    each_sample(|[mean, eccentricity]| {
        let anomaly = mean.kepler(&eccentricity)?;
        let residual = (&anomaly - &eccentricity * anomaly.sin() - &mean).abs()?;
        assert!(residual.lt(&Tensor::from(1e-13)?)?.all()?.is_nonzero()?, "{residual}");
        Ok(())
    })?;
    let mean = Tensor::linspace(-50, 50, 1001)?.to_dtype(DType::F64)?;
    for eccentricity in [0.0, 0.5, 0.99, 0.999_999] {
        let anomaly = mean.kepler(&Tensor::from(eccentricity)?)?;
        let residual = (&anomaly - anomaly.sin().mul(eccentricity) - &mean).abs().max()?;
        assert!(residual.item()?.to_f64() < 1e-12, "{eccentricity}: {residual}");
    }
    for outside in [-0.1, 1.0, f64::NAN] {
        assert!(Tensor::from(1.0)?.kepler(&Tensor::from(outside)?)?.item()?.to_f64().is_nan());
    }
    Ok(())
}

#[test]
fn gradients_of_first_and_second_order_agree_with_differences() -> Result<()> {
    each_sample(|[mean, eccentricity]| {
        let inputs = [mean.copy()?.with_grad()?, eccentricity.copy()?.with_grad()?];
        let f = |x: &[Tensor]| Ok(vec![x[0].kepler(&x[1])?]);
        gradcheck(&f, &inputs, Tolerance::default())??;
        gradgradcheck(&f, &inputs, Tolerance::default())??;
        Ok(())
    })
}

#[test]
fn forward_mode_agrees_with_reverse_mode() -> Result<()> {
    each_sample(|[mean, eccentricity]| {
        let (s, near) = (Sampler::new(DType::F64), |a: &Tensor, b: &Tensor| {
            assert!(a.allclose(b, 1e-12, 1e-12, false)?, "{a} {b}");
            Ok(())
        });
        let t = s.normal(mean.shape());
        let f = |x: &Tensor| x.kepler(&eccentricity);
        near(&jvp(f, &mean, &t)?.1, &linearize(f, &mean)?.1(&t)?)?;
        let t = s.normal(eccentricity.shape());
        let f = |x: &Tensor| mean.kepler(x);
        near(&jvp(f, &eccentricity, &t)?.1, &linearize(f, &eccentricity)?.1(&t)?)
    })
}

#[test]
fn a_batch_is_its_examples() -> Result<()> {
    let s = Sampler::new(DType::F64);
    let (mean, eccentricity) = (s.uniform(&[4, 3], -3.0, 3.0), s.uniform(&[4, 1], 0.1, 0.8));
    let batch = [Batched::first(&mean), Batched::first(&eccentricity)];
    let all = vmap(|x| x[0].kepler(x[1]), &batch)?;
    for example in 0..4 {
        let one = mean.i(example)?.kepler(&eccentricity.i(example)?)?;
        assert!(all.i(example)?.equal(&one)?);
    }
    Ok(())
}

#[test]
fn it_has_what_the_librarys_ops_have() -> Result<()> {
    let (mean, eccentricity) = (Tensor::from([1.0, 2.0])?.with_grad()?, Tensor::from([0.5, 0.25])?);
    let anomaly = mean.kepler(&eccentricity)?;
    assert_eq!(anomaly.grad_fn()?.expect("it is recorded").name(), "KeplerBackward0");

    // A form with a target, a call by the definition, other dtypes, tensors without memory.
    let target = Tensor::options().dtype(DType::F64).empty([2])?;
    mean.detach()?.kepler_out(&eccentricity, &[&target])?;
    assert!(target.equal(&anomaly)?);
    let by_definition = call(&KEPLER, &[Arg::Tensor(&mean), Arg::Tensor(&eccentricity)])?.one();
    assert!(by_definition.equal(&anomaly)?);
    for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F16, 2e-3), (DType::BF16, 1e-2)] {
        let other = mean.detach()?.to_dtype(dtype)?.kepler(&eccentricity.to_dtype(dtype)?)?;
        assert_eq!(other.dtype(), dtype);
        assert!(other.to_dtype(DType::F64)?.allclose(&anomaly, tolerance, 0.0, false)?, "{other}");
    }
    let nowhere = Tensor::options().device(Device::Meta);
    let shape = nowhere.zeros([3, 1])?.kepler(&nowhere.zeros([2])?)?;
    assert_eq!((shape.shape(), shape.dtype()), (&[3, 2][..], DType::F32));
    Ok(())
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let samples = KEPLER.invalid_samples.expect("the item has some")(&Sampler::new(DType::F64));
    for invalid in samples {
        let [mean, eccentricity] = arguments(&invalid.sample).expect("it has two tensors");
        let error = mean.kepler(&eccentricity).expect_err(invalid.phrase);
        assert_eq!(error.kind(), invalid.kind, "{error}");
        assert!(error.message().contains(invalid.phrase), "{error}");
    }
}
