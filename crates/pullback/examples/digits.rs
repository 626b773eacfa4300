//! Trains the MLP of the handwritten-digits example in Rust alone: 64 pixels, 64 hidden units, 10 classes.
//!
//! `cargo run --release --example digits [-- EPOCHS [SEED]]`
//!
//! Model, split, optimiser and schedule are those of `examples/python/digits.py`; the images are in
//! `examples/data/digits.bin`, whose README says where they come from.

use pullback::ops::random::factory::randperm;
use pullback::{Result, Tensor, TensorSpec, memory};
use std::f64::consts::PI;
use std::io::Write;
use std::time::{Duration, Instant};

const IMAGES: usize = 1797;
const PIXELS: usize = 64;
const BATCH: i64 = 64;
const MAX_LR: f64 = 0.2;
const MOMENTUM: f64 = 0.9;

/// Images of shape `(n, 64)` with values from 0 to 1, and their labels.
struct Split {
    images: Tensor,
    labels: Tensor,
}

/// The training and the test images: every fifth is for the test.
fn load() -> Result<(Split, Split)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/digits.bin");
    let bytes =
        std::fs::read(path).map_err(|e| pullback::Error::runtime(format!("{path}: {e}")))?;
    if bytes.len() != IMAGES * (PIXELS + 1) {
        let text = format!("{path} has {} bytes, not {}", bytes.len(), IMAGES * (PIXELS + 1));
        return Err(pullback::Error::runtime(text));
    }
    let (pixels, labels) = bytes.split_at(IMAGES * PIXELS);
    let split = |wanted: fn(usize) -> bool| -> Result<Split> {
        let rows: Vec<usize> = (0..IMAGES).filter(|&row| wanted(row)).collect();
        let values = rows.iter().flat_map(|row| &pixels[row * PIXELS..][..PIXELS]);
        let values: Vec<f32> = values.map(|&v| f32::from(v) / 16.0).collect();
        let classes: Vec<i64> = rows.iter().map(|&row| i64::from(labels[row])).collect();
        let images = Tensor::from_slice(&values, &[rows.len() as i64, PIXELS as i64])?;
        Ok(Split { images, labels: Tensor::from_slice(&classes, &[rows.len() as i64])? })
    };
    Ok((split(|row| row % 5 != 0)?, split(|row| row % 5 == 0)?))
}

/// A fully connected layer: `x weightᵀ + bias`.
struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    /// Uniform in ±1/√inputs, PyTorch's initialisation.
    fn new(inputs: i64, outputs: i64) -> Result<Linear> {
        let bound = 1.0 / (inputs as f64).sqrt();
        let uniform = |shape: &[i64]| {
            let t = TensorSpec::of(shape, pullback::DType::F32).empty()?;
            t.uniform_(-bound, bound)?;
            t.with_grad()
        };
        Ok(Linear { weight: uniform(&[outputs, inputs])?, bias: uniform(&[outputs])? })
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.linear(&self.weight, Some(&self.bias))
    }
}

struct Mlp(Linear, Linear);

impl Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.1.forward(&self.0.forward(x)?.relu()?)
    }
    fn parameters(&self) -> [&Tensor; 4] {
        [&self.0.weight, &self.0.bias, &self.1.weight, &self.1.bias]
    }
    fn accuracy(&self, split: &Split) -> Result<f64> {
        let _off = pullback::no_grad();
        Ok(count_right(&self.forward(&split.images)?, &split.labels)? / split.labels.numel() as f64)
    }
}

/// How many rows have their largest value at their label.
fn count_right(output: &Tensor, labels: &Tensor) -> Result<f64> {
    Ok(output.argmax(Some(1), false)?.eq(labels)?.sum()?.item()?.to_f64())
}

/// Stochastic gradient descent with momentum: `v ← 0.9 v + g`, `p ← p - lr v`.
struct Sgd<'a> {
    parameters: Vec<&'a Tensor>,
    velocities: Vec<Option<Tensor>>,
}

impl Sgd<'_> {
    fn step(&mut self, lr: f64) -> Result<()> {
        let _off = pullback::no_grad();
        for (parameter, velocity) in self.parameters.iter().zip(&mut self.velocities) {
            let Some(grad) = parameter.grad() else { continue };
            let velocity = match velocity {
                Some(velocity) => {
                    velocity.mul_(&Tensor::wrapped(MOMENTUM)?)?;
                    velocity.add_(&grad)?;
                    velocity
                }
                None => velocity.insert(grad.clone_tensor(None)?),
            };
            parameter.add__with(velocity, (-lr).into())?;
        }
        Ok(())
    }
    fn zero_grad(&self) -> Result<()> {
        self.parameters.iter().try_for_each(|p| p.set_grad(None))
    }
}

/// The one-cycle schedule (L. N. Smith, "Super-Convergence", 2018): along cosines from `max / 25` up to `max` in
/// the first 30 % of the steps, then down to `max / 250,000`.
fn one_cycle(step: usize, total: usize) -> f64 {
    let (initial, top) = (0.3 * total as f64 - 1.0, total as f64 - 1.0);
    let (low, last) = (MAX_LR / 25.0, MAX_LR / 25.0 / 1e4);
    let at = step as f64;
    let anneal = |from: f64, to: f64, part: f64| to + (from - to) / 2.0 * (1.0 + (PI * part).cos());
    if at <= initial {
        anneal(low, MAX_LR, at / initial)
    } else {
        anneal(MAX_LR, last, (at - initial) / (top - initial))
    }
}

fn train(model: &Mlp, data: &Split, test: &Split, epochs: usize) -> Result<()> {
    let count = data.labels.numel();
    let batches = (count + BATCH - 1) / BATCH;
    let total = epochs * batches as usize;
    let parameters = model.parameters().to_vec();
    let mut optimizer = Sgd { velocities: vec![None; parameters.len()], parameters };
    let (mut done, mut busy) = (0, Duration::ZERO);
    for epoch in 1..=epochs {
        let order = randperm(count)?;
        let (mut right, mut last) = (0.0, 0.0);
        for batch in 0..batches {
            let rows = order.i(batch * BATCH..((batch + 1) * BATCH).min(count))?;
            let (images, labels) = (data.images.i(&rows)?, data.labels.i(&rows)?);
            let started = Instant::now();
            optimizer.zero_grad()?;
            let output = model.forward(&images)?;
            let loss = output.cross_entropy_loss(&labels, None, 1, -100, 0.0)?;
            loss.backward()?;
            optimizer.step(one_cycle(done, total))?;
            busy += started.elapsed();
            done += 1;
            last = loss.item()?.to_f64();
            right += count_right(&output.detach()?, &labels)?;
        }
        let (seen, score) = (right / count as f64, model.accuracy(test)?);
        println!(
            "epoch {epoch:2}/{epochs}  loss {last:.4}  accuracy {:.1} %  test {:.2} %",
            100.0 * seen,
            100.0 * score
        );
        std::io::stdout().flush().ok();
    }
    let per_step = 1000.0 * busy.as_secs_f64() / done.max(1) as f64;
    let score = 100.0 * model.accuracy(test)?;
    println!("\ntest accuracy {score:.2} % after {done} steps, {per_step:.3} ms per step");
    Ok(())
}

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|text| {
        text.parse::<u64>().unwrap_or_else(|_| {
            eprintln!("usage: digits [EPOCHS [SEED]], whole numbers; got '{text}'");
            std::process::exit(2)
        })
    });
    let (epochs, seed) = (numbers.next().unwrap_or(15), numbers.next().unwrap_or(0));
    let started = Instant::now();
    pullback::manual_seed(seed);
    let (data, test) = load()?;
    println!("{} digits to learn from, {} to test on\n", data.labels.numel(), test.labels.numel());
    let model = Mlp(Linear::new(PIXELS as i64, 64)?, Linear::new(64, 10)?);
    train(&model, &data, &test, epochs as usize)?;
    let peak = memory::peak_bytes() as f64 / f64::from(1 << 20);
    println!(
        "peak memory of tensors {peak:.1} MB, {:.1} s in all",
        started.elapsed().as_secs_f64()
    );
    Ok(())
}
