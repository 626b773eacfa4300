//! Optimisers, schedules, and orders of examples.

use crate::{compare, recorded, seeded};
use pullback::Generator;
use pullback::prelude::*;
use pullback_nn::data::*;
use pullback_nn::optim::*;
use std::sync::Arc;

/// Five steps, as `record.py` makes them, with the state saved and read between the third and the fourth.
fn run<R: UpdateRule>(name: &str, options: &R) -> Result<()> {
    let double = || Tensor::options().dtype(DType::F64).requires_grad(true);
    let (a, b) = (double().linspace(-1, 2, 6)?, double().linspace(1, 2, 3)?);
    let mut optimizer = Optimizer::of([a.clone(), b.clone()], options.clone())?;
    for step in 0..5 {
        if step == 3 {
            let state = optimizer.state_dict();
            optimizer = Optimizer::of([a.clone(), b.clone()], options.clone())?;
            optimizer.load_state_dict(&state)?;
        }
        optimizer.zero_grad()?;
        let loss = a.cos().mul(&a).sum()?;
        let loss = if step == 0 { loss } else { loss.add(&b.pow_scalar(3.into()).sum()?)? };
        loss.backward()?;
        optimizer.step()?;
    }
    let rows = recorded("optimizer");
    compare(name, &a, &rows[format!("{name} a").as_str()], 1e-12)?;
    compare(name, &b, &rows[format!("{name} b").as_str()], 1e-12)
}

#[test]
fn optimisers_step_as_those_of_pytorch() -> Result<()> {
    run("sgd", &SGDOptions { lr: 0.1, ..Default::default() })?;
    run(
        "sgd momentum",
        &SGDOptions {
            lr: 0.1,
            momentum: 0.9,
            dampening: 0.5,
            weight_decay: 0.1,
            ..Default::default()
        },
    )?;
    run(
        "sgd nesterov",
        &SGDOptions {
            lr: 0.05,
            momentum: 0.9,
            nesterov: true,
            maximize: true,
            ..Default::default()
        },
    )?;
    let adam = AdamOptions { lr: 0.1, ..Default::default() };
    run("adam", &adam)?;
    run("adam amsgrad", &AdamOptions { weight_decay: 0.1, amsgrad: true, ..adam })?;
    let betas = (0.8, 0.9);
    run("adamw", &AdamWOptions { lr: 0.1, betas, weight_decay: 0.5, ..Default::default() })?;
    let rmsprop = RMSpropOptions::default();
    run("rmsprop", &rmsprop)?;
    run(
        "rmsprop centered",
        &RMSpropOptions { alpha: 0.9, centered: true, momentum: 0.5, weight_decay: 0.1, ..rmsprop },
    )
}

#[test]
fn a_state_dict_brings_its_options_and_a_wrong_one_changes_nothing() -> Result<()> {
    let x = Tensor::ones([2])?.with_grad()?;
    let options = SGDOptions { lr: 0.5, momentum: 0.9, nesterov: true, ..Default::default() };
    let mut optimizer = SGD::new(&x, options)?;
    x.square()?.sum()?.backward()?;
    optimizer.step()?;
    let state = optimizer.state_dict();
    let mut other = SGD::new(&x, SGDOptions::default())?;
    other.load_state_dict(&state)?;
    let read = &other.groups_mut()[0].rule;
    assert_eq!((read.lr, read.momentum, read.nesterov), (0.5, 0.9, true));
    let mut third = SGD::new(&Tensor::ones([3])?.with_grad()?, SGDOptions::default())?;
    let error = third.load_state_dict(&state).unwrap_err();
    assert!(error.message().contains("momentum_buffer of a loaded state has shape [2]"), "{error}");
    assert_eq!(third.lr(), SGDOptions::default().lr);
    Ok(())
}

#[test]
fn options_that_make_no_sense_are_refused() -> Result<()> {
    let x = Tensor::ones([1])?.with_grad()?;
    let refused = |text: &str, made: Result<()>| {
        let error = made.expect_err(text);
        assert_eq!(error.kind(), pullback::ErrorKind::Value);
        assert!(error.message().contains(text), "{error}");
    };
    let sgd = |options| SGD::new(&x, options).map(drop);
    refused("learning rate", sgd(SGDOptions { lr: -1.0, ..Default::default() }));
    refused("learning rate", sgd(SGDOptions { lr: f64::NAN, ..Default::default() }));
    refused("Nesterov", sgd(SGDOptions { nesterov: true, ..Default::default() }));
    let betas = (0.9, 1.0);
    let adam = Adam::new(&x, AdamOptions { betas, ..Default::default() }).map(drop);
    refused("beta parameter at index 1", adam);
    refused("empty parameter list", SGD::of([], SGDOptions::default()).map(drop));
    let y = x.mul(&x)?;
    refused("non-leaf", SGD::of([y], SGDOptions::default()).map(drop));
    let mut one = SGD::new(&x, SGDOptions::default())?;
    let again = one.add_group([x.clone()], SGDOptions::default());
    refused("more than one parameter group", again);
    let twice = SGD::of([x.clone(), x.clone()], SGDOptions::default()).map(drop);
    refused("duplicate parameters", twice);
    Ok(())
}

#[test]
fn gradients_are_clipped_by_their_norm_together() -> Result<()> {
    let (a, b) = (Tensor::zeros([2])?.with_grad()?, Tensor::zeros([1])?.with_grad()?);
    a.set_grad(Some(Tensor::from([3.0_f32, 0.0])?))?;
    b.set_grad(Some(Tensor::from([4.0_f32])?))?;
    let parameters = [a.clone(), b.clone()];
    assert!((clip_grad_norm_(&parameters, 1.0)? - 5.0).abs() < 1e-6);
    assert!((a.grad().unwrap().to_vec::<f64>()?[0] - 0.6).abs() < 1e-5);
    assert!((b.grad().unwrap().to_vec::<f64>()?[0] - 0.8).abs() < 1e-5);
    clip_grad_value_(&parameters, 0.7)?;
    assert!((b.grad().unwrap().to_vec::<f64>()?[0] - 0.7).abs() < 1e-6);
    Ok(())
}

fn rates(name: &str, schedule: impl Schedule) -> Result<()> {
    let x = Tensor::zeros([1])?.with_grad()?;
    let mut optimizer = SGD::new(&x, SGDOptions { lr: 0.2, ..Default::default() })?;
    let mut scheduler = Scheduler::new(&mut optimizer, schedule);
    let mut rates = Vec::new();
    for _ in 0..8 {
        rates.push(optimizer.lr());
        scheduler.step(&mut optimizer);
    }
    compare(name, &Tensor::from(rates)?, &recorded("schedule")[name], 1e-12)
}

#[test]
fn schedules_are_those_of_pytorch() -> Result<()> {
    rates("step", StepLR { step_size: 3, gamma: 0.5 })?;
    rates("multi step", MultiStepLR { milestones: vec![2, 5, 5], gamma: 0.1 })?;
    rates("exponential", ExponentialLR { gamma: 0.9 })?;
    rates("linear", LinearLR { start_factor: 0.25, end_factor: 1.0, total_iters: 4 })?;
    rates("cosine", CosineAnnealingLR { t_max: 5, eta_min: 0.01 })?;
    rates("one cycle", OneCycleLR { max_lr: 0.5, total_steps: 8, ..Default::default() })?;
    rates("lambda", LambdaLR(|step: usize| 1.0 / (1 + step) as f64))
}

#[test]
fn a_plateau_lowers_the_rate() -> Result<()> {
    let x = Tensor::zeros([1])?.with_grad()?;
    let mut optimizer = SGD::new(&x, SGDOptions { lr: 1.0, ..Default::default() })?;
    let mut plateau = ReduceLROnPlateau::new(0.1, 1)?;
    let mut seen = Vec::new();
    for loss in [1.0, 0.5, 0.5, 0.5, 0.4, 0.4, 0.4] {
        plateau.step(&mut optimizer, loss);
        seen.push(optimizer.lr());
    }
    assert_eq!(seen, [1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1 * 0.1]);
    Ok(())
}

/// Compares an order of examples.
fn compare_order(name: &str, order: &[usize]) -> Result<()> {
    let order: Vec<i64> = order.iter().map(|&index| index as i64).collect();
    compare(name, &Tensor::from(order)?, &recorded("order")[name], 0.0)
}

fn pass<D>(loader: &DataLoader<D>) -> Result<Vec<usize>>
where
    D: Dataset<Item = i64> + 'static,
{
    let mut order = Vec::new();
    for batch in loader.iter()? {
        order.extend(batch?.to_vec::<i64>()?.into_iter().map(|index| index as usize));
    }
    Ok(order)
}

#[test]
fn orders_are_those_of_pytorch() -> Result<()> {
    let _seed = seeded(3);
    let examples = || (0_i64..8).collect::<Vec<_>>();
    for workers in [0, 2] {
        pullback::manual_seed(3);
        let options =
            DataLoaderOptions { batch_size: 3, shuffle: true, workers, ..Default::default() };
        let loader = DataLoader::new(examples(), options)?;
        compare_order("shuffle, first pass", &pass(&loader)?)?;
        compare_order("shuffle, second pass", &pass(&loader)?)?;
    }
    let generator = || Generator::new(5);
    let options = DataLoaderOptions {
        batch_size: 3,
        shuffle: true,
        generator: Some(generator()),
        ..Default::default()
    };
    compare_order("own generator", &pass(&DataLoader::new(examples(), options)?)?)?;
    let weights = [0.1, 0.2, 0.3, 2.0, 0.5];
    let sampler = WeightedRandomSampler::new(&weights, 8, true, Some(&generator()))?;
    compare_order("weighted", &sampler.indices()?)?;
    let indices = vec![3, 1, 4, 15, 9];
    let sampler = SubsetRandomSampler { indices, generator: Some(generator()) };
    compare_order("subset", &sampler.indices()?)?;
    let parts = random_split(examples(), &[5, 3], Some(&generator()))?;
    compare_order("split", parts[0].indices())?;
    let mut all: Vec<usize> = parts.iter().flat_map(|part| part.indices().to_vec()).collect();
    all.sort_unstable();
    assert_eq!(all, (0..8).collect::<Vec<_>>());
    let sampler: Arc<dyn Sampler> = Arc::new(SequentialSampler { len: 3 });
    let options = DataLoaderOptions { sampler: Some(sampler), ..Default::default() };
    assert_eq!(pass(&DataLoader::new(examples(), options)?)?, [0, 1, 2]);
    Ok(())
}
