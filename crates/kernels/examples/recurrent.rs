//! How fast recurrent layers are: one line for each kind of cell, forward and backward, in milliseconds of the shortest round.

use pullback_kernels::rnn::{self, Cell, Operands, OutputGradients, Outputs, Steps};
use pullback_kernels::{DType, StridedMut, StridedRef, parallel};
use std::time::{Duration, Instant};

/// How long a case is measured.
const TIME: Duration = Duration::from_millis(1500);
const STEPS: usize = 64;
const BATCH: usize = 32;
const INPUTS: usize = 64;
const HIDDEN: usize = 128;

/// A row of numbers between minus one and one.
struct Numbers([i64; 2], [i64; 2], Vec<f32>);

impl Numbers {
    fn new(rows: usize, columns: usize) -> Numbers {
        let values = (0..rows * columns).map(|i| (i * 7919 % 1009) as f32 / 5000.0 - 0.1).collect();
        Numbers([rows as i64, columns as i64], [columns as i64, 1], values)
    }
    fn view(&self) -> StridedRef<'_> {
        // SAFETY: the memory holds every element.
        unsafe { StridedRef::new(self.2.as_ptr().cast(), DType::F32, &self.0, &self.1) }
    }
    fn view_mut(&mut self) -> StridedMut<'_> {
        // SAFETY: as above, borrowed exclusively.
        unsafe { StridedMut::new(self.2.as_mut_ptr().cast(), DType::F32, &self.0, &self.1) }
    }
}

/// The milliseconds of the shortest round.
fn shortest(mut work: impl FnMut()) -> f64 {
    let (mut best, start) = (f64::INFINITY, Instant::now());
    while start.elapsed() < TIME {
        let round = Instant::now();
        work();
        best = best.min(round.elapsed().as_secs_f64());
    }
    best * 1e3
}

fn main() {
    let steps = Steps::uniform(STEPS, BATCH, false).expect("memory for a few steps");
    for threads in [1, 2] {
        parallel::set_num_threads(threads);
        for cell in [Cell::Lstm, Cell::Gru, Cell::Tanh] {
            let gates = cell.gates();
            let (rows, width) = (STEPS * BATCH, gates * HIDDEN);
            let (x, h, c) = (
                Numbers::new(rows, INPUTS),
                Numbers::new(BATCH, HIDDEN),
                Numbers::new(BATCH, HIDDEN),
            );
            let (w, u) = (Numbers::new(width, INPUTS), Numbers::new(width, HIDDEN));
            let is_lstm = cell == Cell::Lstm;
            let operands = Operands {
                cell,
                x: x.view(),
                h: h.view(),
                c: is_lstm.then(|| c.view()),
                weights: [w.view(), u.view()],
                biases: [None, None],
            };
            let mut output = Numbers::new(rows, HIDDEN);
            let mut kept = Numbers::new(rows, cell.saved_gates() * HIDDEN);
            let mut cells = Numbers::new(rows, HIDDEN);
            let forward = shortest(|| {
                let (mut output, mut kept, mut cells) =
                    (output.view_mut(), kept.view_mut(), cells.view_mut());
                let out = Outputs {
                    output: &mut output,
                    h: None,
                    c: None,
                    gates: (cell.saved_gates() > 0).then_some(&mut kept),
                    cells: is_lstm.then_some(&mut cells),
                };
                rnn::forward(out, &operands, &steps).expect("sizes fit");
            });
            let grad = Numbers::new(rows, HIDDEN);
            let (mut gw, mut gu) = (Numbers::new(width, INPUTS), Numbers::new(width, HIDDEN));
            let backward = shortest(|| {
                let (mut gw, mut gu) = (gw.view_mut(), gu.view_mut());
                let results = OutputGradients {
                    output: Some(output.view()),
                    gates: (cell.saved_gates() > 0).then(|| kept.view()),
                    cells: is_lstm.then(|| cells.view()),
                    by_output: Some(grad.view()),
                    by_h: None,
                    by_c: None,
                };
                let wanted = [None, None, None, Some(&mut gw), Some(&mut gu), None, None];
                rnn::backward(wanted, &operands, &results, &steps).expect("sizes fit");
            });
            println!("{cell:?}.t{threads:1} forward {forward:8.2} backward {backward:8.2}");
        }
    }
}
