//! A network of two layers learns handwritten digits: `cargo run --release --bin mlp [EPOCHS]`.

use pullback_nn::prelude::*;

#[derive(Module)]
struct Mlp {
    hidden: Linear,
    output: Linear,
}

impl Forward for Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.output.forward(&self.hidden.forward(x).relu()?)
    }
}

/// Images of shape `(n, 64)` with values from 0 to 1, and their labels.
fn digits() -> Result<[Tensor; 2]> {
    let bytes = include_bytes!("../data/digits.bin");
    let (pixels, labels) = bytes.split_at(bytes.len() / 65 * 64);
    let images = Tensor::from(pixels)?.to_dtype(DType::F32)?.view(&[-1, 64]).div(16.0)?;
    Ok([images, Tensor::from(labels)?.to_dtype(DType::I64)?])
}

fn main() -> Result<()> {
    let epochs = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(15);
    pullback::manual_seed(0);
    let [images, labels] = digits()?;
    let train = TensorDataset::new([images.i(..1400)?, labels.i(..1400)?])?;
    let options =
        DataLoaderOptions { batch_size: 64, shuffle: true, workers: 1, ..Default::default() };
    let loader = DataLoader::new(train, options)?;
    let model = Mlp { hidden: Linear::new(64, 64)?, output: Linear::new(64, 10)? };
    let mut optimizer = Adam::new(&model, AdamOptions { lr: 3e-3, ..Default::default() })?;
    let mut progress = Progress::new("digits", epochs * loader.len());
    for _ in 0..epochs {
        for batch in loader.iter()? {
            let [x, y] = batch?;
            optimizer.zero_grad()?;
            let loss = CrossEntropyLoss::default().forward(&model.forward(&x)?, &y)?;
            loss.backward()?;
            optimizer.step()?;
            progress.advance(&[("loss", loss.item()?.to_f64())]);
        }
    }
    progress.finish();
    let guess = model.forward(&images.i(1400..)?)?.argmax(Some(1), false)?;
    let right = guess.eq(&labels.i(1400..)?)?.to_dtype(DType::F64)?.mean()?.item()?.to_f64();
    println!("{:.1} % of the digits that it did not see are right", 100.0 * right);
    Ok(())
}
