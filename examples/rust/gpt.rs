//! A small transformer reads the pages of this project, character by character, and writes some of its own:
//!
//! ```sh
//! cargo run --release --bin gpt [STEPS [SEED]]
//! ```
//!
//! The model is a decoder as in GPT-2: causal attention, norms first, tied embeddings. It learns to foresee the next character,
//! and writes by drawing one after the other. Its weights go to `gpt.safetensors` in the folder for temporary files.

use pullback_nn::prelude::*;
use std::f64::consts::PI;
use std::path::PathBuf;

const CONTEXT: i64 = 64;
const WIDTH: i64 = 96;
const LAYERS: usize = 2;
const HEADS: i64 = 4;
const BATCH: i64 = 16;

/// Attention to what came before, then a small network, each beside the stream of the residuals.
#[derive(Module)]
struct Block {
    norm: LayerNorm,
    attention: Linear,
    out: Linear,
    norm_mlp: LayerNorm,
    mlp: Sequential,
}

impl Block {
    fn new() -> Result<Block> {
        let mlp = Sequential::new()
            .add(Linear::new(WIDTH, 4 * WIDTH)?)
            .add(GELU::default())
            .add(Linear::new(4 * WIDTH, WIDTH)?);
        Ok(Block {
            norm: LayerNorm::new(WIDTH)?,
            attention: Linear::new(WIDTH, 3 * WIDTH)?,
            out: Linear::new(WIDTH, WIDTH)?,
            norm_mlp: LayerNorm::new(WIDTH)?,
            mlp,
        })
    }
}

impl Forward for Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, length) = (x.shape()[0], x.shape()[1]);
        let heads = self.attention.forward(&self.norm.forward(x)?)?;
        let heads =
            heads.view(&[batch, length, 3, HEADS, WIDTH / HEADS]).permute(&[2, 0, 3, 1, 4])?;
        let (q, k, v) = (heads.i(0)?, heads.i(1)?, heads.i(2)?);
        let seen = scaled_dot_product_attention([&q, &k, &v], None, 0.0, true)?;
        let seen = seen.transpose(1, 2).reshape(&[batch, length, WIDTH])?;
        let x = (x + self.out.forward(&seen)).get()?;
        (&x + self.mlp.forward(&self.norm_mlp.forward(&x)?)).get()
    }
}

/// Scores of the next character at each place of a text.
#[derive(Module)]
struct Gpt {
    token: Embedding,
    position: Tensor,
    blocks: Vec<Block>,
    norm: LayerNorm,
}

impl Gpt {
    fn new(characters: i64) -> Result<Gpt> {
        let token = Embedding::new(characters, WIDTH)?;
        init::normal_(&token.weight, 0.0, 0.05, None)?;
        Ok(Gpt {
            token,
            position: Tensor::randn([CONTEXT, WIDTH]).mul(0.02)?.with_grad()?,
            blocks: (0..LAYERS).map(|_| Block::new()).collect::<Result<_>>()?,
            norm: LayerNorm::new(WIDTH)?,
        })
    }

    /// The mean cross entropy of all characters but the first.
    fn loss(&self, text: &Tensor) -> Result<Tensor> {
        let scores = self.forward(&text.i((.., ..-1))?)?.flatten(0, 1)?;
        CrossEntropyLoss::default().forward(&scores, &text.i((.., 1..))?.flatten(0, -1)?)
    }

    /// Characters drawn one after the other.
    fn write(&self, text: &Text, count: usize, temperature: f64) -> Result<String> {
        let _off = no_grad();
        let mut numbers = Tensor::zeros([1, 1])?.to_dtype(DType::I64)?;
        for _ in 0..count {
            let start = (numbers.shape()[1] - CONTEXT).max(0);
            let scores = self.forward(&numbers.i((.., start..))?)?.i((0, -1))?;
            let chances = (scores / temperature).softmax(-1, None)?;
            let next = chances.multinomial(1, false)?.view(&[1, 1])?;
            numbers = Tensor::cat(&[numbers, next], 1)?;
        }
        let numbers = numbers.flatten(0, -1)?.to_vec::<i64>()?;
        Ok(numbers.iter().skip(1).map(|&number| text.alphabet[number as usize]).collect())
    }
}

impl Forward for Gpt {
    fn forward(&self, text: &Tensor) -> Result<Tensor> {
        let length = text.shape()[1];
        let mut x = (self.token.forward(text)? + self.position.i(..length)?).get()?;
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        self.norm.forward(&x).linear(&self.token.weight, None)
    }
}

/// The pages as numbers of characters: nine tenths to learn from, the rest to be judged by.
struct Text {
    alphabet: Vec<char>,
    train: Tensor,
    test: Tensor,
}

impl Text {
    fn read() -> Result<Text> {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
        let mut text = String::new();
        for page in ["internals.md", "autograd.md", "errors.md", "differences.md", "memory.md"] {
            // (What is not there is left out; something is.)
            text += &std::fs::read_to_string(folder.join(page)).unwrap_or_default();
        }
        text.retain(|character| character == '\n' || (' '..='~').contains(&character));
        let mut alphabet: Vec<char> = text.chars().collect();
        alphabet.sort_unstable();
        alphabet.dedup();
        let number = |c: char| alphabet.binary_search(&c).map_or(0, |at| at as i64);
        let numbers = Tensor::from(text.chars().map(number).collect::<Vec<_>>())?;
        let cut = numbers.numel() / 10 * 9;
        if cut < 20 * CONTEXT {
            return Err(pullback::Error::runtime(format!(
                "no pages to read in {}",
                folder.display()
            )));
        }
        Ok(Text { train: numbers.i(..cut)?, test: numbers.i(cut..)?, alphabet })
    }
}

/// Pieces of the text that begin at these places, one more than the context long.
fn pieces(text: &Tensor, starts: &Tensor) -> Result<Tensor> {
    let places = (starts.unsqueeze(1)? + Tensor::arange(0, CONTEXT + 1)?).get()?;
    text.i(&places)
}

/// The mean loss of evenly spaced pieces.
fn evaluate(model: &Gpt, text: &Tensor) -> Result<f64> {
    let _off = no_grad();
    let last = text.numel() - CONTEXT - 2;
    let starts = Tensor::linspace(0, last, 32)?.to_dtype(DType::I64)?;
    Ok(model.loss(&pieces(text, &starts)?)?.item()?.to_f64())
}

fn train(model: &Gpt, text: &Text, steps: usize) -> Result<()> {
    let options =
        AdamWOptions { lr: 3e-3, betas: (0.9, 0.99), weight_decay: 0.1, ..Default::default() };
    let mut optimizer = AdamW::new(model, options)?;
    let warm_up = (steps / 10).clamp(1, 50) as f64;
    let mut scheduler = Scheduler::new(
        &mut optimizer,
        LambdaLR(move |step: usize| {
            let falling = 0.5 + 0.5 * (PI * step as f64 / steps as f64).cos();
            ((step + 1) as f64 / warm_up).min(0.03 + 0.97 * falling)
        }),
    );
    let (parameters, mut progress) = (model.parameters(), Progress::new("GPT", steps));
    for _ in 0..steps {
        let starts = Tensor::randint(0, text.train.numel() - CONTEXT, [BATCH])?;
        let loss = model.loss(&pieces(&text.train, &starts)?)?;
        optimizer.zero_grad()?;
        loss.backward()?;
        clip_grad_norm_(&parameters, 1.0)?;
        optimizer.step()?;
        scheduler.step(&mut optimizer);
        progress.advance(&[("loss", loss.item()?.to_f64())]);
    }
    progress.finish();
    Ok(())
}

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let (steps, seed) = (numbers.next().unwrap_or(1000), numbers.next().unwrap_or(0));
    pullback::manual_seed(seed);
    let text = Text::read()?;
    let model = Gpt::new(text.alphabet.len() as i64)?;
    let before = evaluate(&model, &text.test)?;
    println!("{} characters to read, {} weights", text.train.numel(), model.num_parameters());
    train(&model, &text, steps as usize)?;
    let after = evaluate(&model, &text.test)?;
    println!("loss of what it did not read: {before:.3} before, {after:.3} after {steps} steps");
    let path = std::env::temp_dir().join("gpt.safetensors");
    model.save(&path)?;
    // A model that reads the weights writes the same.
    let again = Gpt::new(text.alphabet.len() as i64)?;
    again.load(&path)?;
    println!("\n{}", again.write(&text, 40 + steps.min(560) as usize, 0.7)?);
    Ok(())
}
