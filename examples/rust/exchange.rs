//! A model goes between Rust and Python: `exchange write FILE` makes one of seed 0, `exchange read FILE` reads the weights of
//! one and prints what it computes, so that `python/tests/test_rust_exchange.py` can compare.
//!
//! `exchange train FILE STATE` goes on with a model and the state of its optimiser, and writes both.

use pullback::{Error, io};
use pullback_nn::prelude::*;

#[derive(Module)]
struct Net {
    conv: Conv2d,
    norm: BatchNorm2d,
    rnn: GRU,
    encoder: TransformerEncoderLayer,
    head: Sequential,
}

impl Net {
    fn new() -> Result<Net> {
        let encoder = TransformerLayerOptions {
            dim_feedforward: 16,
            dropout: 0.0,
            batch_first: true,
            ..Default::default()
        };
        let gru = RecurrentOptions { batch_first: true, ..Default::default() };
        Ok(Net {
            conv: Conv2d::new(1, 4, [3, 3])?,
            norm: BatchNorm2d::new(4)?,
            rnn: GRU::with(4, 8, gru)?,
            encoder: TransformerEncoderLayer::with(8, 2, &encoder)?,
            head: Sequential::new().add(LayerNorm::new(8)?).add(Linear::new(8, 3)?),
        })
    }
}

impl Forward for Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.norm.forward(&self.conv.forward(x)?)?.relu()?;
        let x = x.flatten(2, -1).transpose(1, 2)?;
        let (x, _) = self.rnn.forward(&x, None)?;
        self.head.forward(&self.encoder.forward(&x)?).mean_dim(Some(&[1]), false)
    }
}

/// Two images whose elements are known to both sides.
fn images() -> Result<Tensor> {
    let numbers = Tensor::arange(0, 2 * 5 * 5)?.to_dtype(DType::F32)?;
    numbers.mul(&Tensor::wrapped(0.37)?).sin().view(&[2, 1, 5, 5])
}

fn show(output: &Tensor) -> Result<()> {
    let numbers = output.detach()?.to_vec::<f32>()?;
    println!("{}", numbers.iter().map(f32::to_string).collect::<Vec<_>>().join(" "));
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    pullback::manual_seed(0);
    let mut model = Net::new()?;
    match arguments[..] {
        ["write", file] => {
            show(&model.forward(&images()?)?)?;
            model.save(file)
        }
        ["read", file] => {
            model.load(file)?;
            model.eval();
            show(&model.forward(&images()?)?)
        }
        ["train", file, state] => {
            model.load(file)?;
            let mut optimizer = Adam::new(&model, AdamOptions { lr: 0.01, ..Default::default() })?;
            optimizer.load_state_dict(&io::load(state)?)?;
            for _ in 0..2 {
                optimizer.zero_grad()?;
                model.forward(&images()?).square().sum()?.backward()?;
                optimizer.step()?;
            }
            model.save(file)?;
            io::save(&optimizer.state_dict(), state)
        }
        _ => Err(Error::value("usage: exchange write|read FILE, exchange train FILE STATE")),
    }
}
