//! Results are the same bits however many threads the kernels use: every op of the registry, forward and backward, on
//! samples made so large that kernels share their work, and whole training runs.
//!
//! `PULLBACK_OP=name` restricts a run to one op.

mod large;

use large::{GROWTHS, Growth, bytes, is_unset, large, run, with_threads};
use pullback::dispatch::{OpDef, Value};
use pullback::gradcheck::{Sample, Sampler};
use pullback::{DType, Result, Tensor, TensorSpec, manual_seed, ops};
use pullback_kernels::parallel::last_job;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The number of threads belongs to the process: one test at a time.
static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Compares one call with 1, 2, 3 and 8 threads; whether threads shared its work, or nothing if the call is none.
fn compare(def: &'static OpDef, values: &[Value]) -> Option<std::result::Result<bool, String>> {
    // What does not fit after growing is an error of the op, and never a panic.
    let one = with_threads(1, || run(def, values)).ok()?;
    let before = last_job();
    for count in [2, 3, 8] {
        let many = match with_threads(count, || run(def, values)) {
            Ok(many) => many,
            Err(error) => return Some(Err(format!("{count} threads: {error:?}"))),
        };
        if let Some(index) = (0..one.len()).find(|&i| one[i] != many[i]) {
            let at = (0..one[index].len()).find(|&i| one[index][i] != many[index][i]);
            return Some(Err(format!("{count} threads: result {index} at byte {at:?}")));
        }
        if count == 2 && last_job() == before {
            return Some(Ok(false));
        }
    }
    Some(Ok(true))
}

/// How many samples of an op are compared that were made larger in this way.
fn samples_of(growth: Growth) -> usize {
    if growth == Growth::All { 2 } else { 1 }
}

fn compare_op(
    def: &'static OpDef,
    growths: &[Growth],
    samples: Vec<Sample>,
    failures: &mut Vec<String>,
) -> bool {
    let mut shared = false;
    for &growth in growths {
        let mut done = 0;
        for sample in &samples {
            let Ok(values) = sample.values(def) else { continue };
            let Ok(Some(values)) = large(def, growth, &values) else { continue };
            match compare(def, &values) {
                None | Some(Ok(false)) => continue,
                Some(Ok(true)) => shared = true,
                Some(Err(text)) => {
                    failures.push(format!("- {} {growth:?} {sample:?}: {text}", def.full_name()));
                }
            }
            done += 1;
            if done == samples_of(growth) {
                break;
            }
        }
    }
    shared
}

fn every_op(dtype: DType, growths: &[Growth]) -> BTreeSet<String> {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let only = std::env::var("PULLBACK_OP").ok();
    let (mut failures, mut shared) = (Vec::new(), BTreeSet::new());
    for def in ops::registry().filter(|d| only.as_deref().is_none_or(|o| o == d.name)) {
        let Some(samples) = def.samples.filter(|_| !is_unset(def)) else { continue };
        let check = || compare_op(def, growths, samples(&Sampler::new(dtype)), &mut failures);
        match catch_unwind(AssertUnwindSafe(check)) {
            Ok(true) => drop(shared.insert(def.full_name())),
            Ok(false) => {}
            Err(_) => failures.push(format!("- {}: a panic", def.full_name())),
        }
    }
    assert!(failures.is_empty(), "bits depend on the number of threads:\n{}", failures.join("\n"));
    shared
}

/// The test shows something only where threads do share work.
fn threads_share(shared: &BTreeSet<String>, at_least: usize) {
    if std::env::var("PULLBACK_OP").is_ok() {
        return;
    }
    println!("{} ops shared work: {shared:?}", shared.len());
    assert!(shared.len() >= at_least, "only {} ops shared their work", shared.len());
}

#[test]
fn every_op_in_single_precision_gives_the_same_bits_for_any_number_of_threads() {
    threads_share(&every_op(DType::F32, &GROWTHS), 400);
}

#[test]
fn every_op_in_double_precision_gives_the_same_bits_for_any_number_of_threads() {
    threads_share(&every_op(DType::F64, &[Growth::All]), 200);
}

/// A convolution, its classifier, and what trains them.
struct Network {
    parameters: Vec<Tensor>,
    is_image: bool,
}

impl Network {
    fn new(shapes: &[&[i64]], is_image: bool) -> Result<Network> {
        manual_seed(3);
        let parameter = |shape: &&[i64]| {
            let t = TensorSpec::of(shape, DType::F32).empty()?;
            t.uniform_(-0.1, 0.1)?;
            t.with_grad()
        };
        Ok(Network { parameters: shapes.iter().map(parameter).collect::<Result<_>>()?, is_image })
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [a, b, c, d] = &self.parameters[..] else { unreachable!("four parameters") };
        let hidden = if self.is_image {
            let x = x.conv2d(a, Some(b), &[1, 1], &[1, 1], &[1, 1], 1)?.relu()?;
            let pooled = x.max_pool2d(&[2, 2], &[], &[0, 0], &[1, 1], false)?;
            pooled.flatten(1, -1)?
        } else {
            x.linear(a, Some(b))?.relu()?
        };
        hidden.linear(c, Some(d))
    }
    /// Bytes of the losses and of the trained parameters.
    fn train(&self, shape: &[i64]) -> Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        for step in 0..4 {
            manual_seed(10 + step);
            let images = TensorSpec::of(shape, DType::F32).empty()?;
            images.uniform_(0.0, 1.0)?;
            let labels: Vec<i64> = (0..shape[0]).map(|row| (row * 7 + step as i64) % 10).collect();
            let labels = Tensor::from_slice(&labels, &shape[..1])?;
            let loss = self.forward(&images)?.cross_entropy_loss(&labels, None, 1, -100, 0.0)?;
            loss.backward()?;
            all.push(bytes(&loss.detach()?)?);
            let _off = pullback::no_grad();
            for parameter in &self.parameters {
                parameter.add__with(&parameter.grad().expect("it was used"), (-0.1).into())?;
                parameter.set_grad(None)?;
            }
        }
        for parameter in &self.parameters {
            all.push(bytes(&parameter.detach()?)?);
        }
        Ok(all)
    }
}

fn trains_alike(shapes: &[&[i64]], is_image: bool, images: &[i64]) -> Result<()> {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let train = || Network::new(shapes, is_image)?.train(images);
    let one = with_threads(1, train)?;
    for count in [2, 3, 8] {
        let before = last_job();
        assert!(with_threads(count, train)? == one, "{count} threads");
        assert_ne!(last_job(), before, "threads had work to share");
    }
    Ok(())
}

#[test]
fn a_perceptron_is_trained_to_the_same_bits_by_any_number_of_threads() -> Result<()> {
    trains_alike(&[&[256, 784], &[256], &[10, 256], &[10]], false, &[512, 784])
}

#[test]
fn a_convolutional_network_is_trained_to_the_same_bits_by_any_number_of_threads() -> Result<()> {
    trains_alike(&[&[16, 3, 3, 3], &[16], &[10, 16 * 144], &[10]], true, &[64, 3, 24, 24])
}
