//! Recurrent layers against a naive twin in doubles; gradients against central differences of it.

mod tensor;

use pullback_kernels::rnn::{self, Cell, Operands, OutputGradients, Outputs, Steps};
use pullback_kernels::{DType, StridedMut};
use tensor::{Rng, Tensor};

const CELLS: [Cell; 4] = [Cell::Lstm, Cell::Gru, Cell::Tanh, Cell::Relu];

/// Rows of each step.
type Rows = &'static [i64];

/// Steps, features and elements of the state: small ones, and such as take other loops of the product.
const SHAPES: [(Rows, i64, i64); 6] = [
    (&[2, 2, 2], 3, 5),
    (&[3, 2, 2, 1], 2, 4),
    (&[4], 3, 20),
    (&[1, 1, 1, 1, 1], 2, 17),
    (&[20, 20], 3, 16),
    (&[9, 8, 8, 2, 1], 2, 19),
];

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `m[row] . x + b[row]`.
fn product(m: &[f64], x: &[f64], b: &[f64], row: usize) -> f64 {
    m[row * x.len()..(row + 1) * x.len()].iter().zip(x).map(|(m, x)| m * x).sum::<f64>() + b[row]
}

/// Inputs in the order `x, h, c, w_ih, w_hh, b_ih, b_hh`; results are `h` of every step and the last `h`, `c`.
fn naive(cell: Cell, rows: Rows, features: usize, reverse: bool, v: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let [x, h, c, w, u, a, b] = v else { unreachable!() };
    let hidden = h.len() / rows[0] as usize;
    let (mut h, mut c, mut output) = (h.clone(), c.clone(), vec![0.0; x.len() / features * hidden]);
    let starts: Vec<i64> = rows
        .iter()
        .scan(0, |s, &n| {
            *s += n;
            Some(*s - n)
        })
        .collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    if reverse {
        order.reverse();
    }
    for t in order {
        for n in 0..rows[t] as usize {
            let row = starts[t] as usize + n;
            let x = &x[row * features..(row + 1) * features];
            let old = h[n * hidden..(n + 1) * hidden].to_vec();
            for k in 0..hidden {
                let at = |gate: usize| {
                    (product(w, x, a, gate * hidden + k), product(u, &old, b, gate * hidden + k))
                };
                let sum = |gate: usize| at(gate).0 + at(gate).1;
                let new = match cell {
                    Cell::Lstm => {
                        let c = &mut c[n * hidden + k];
                        *c = sigmoid(sum(1)) * *c + sigmoid(sum(0)) * sum(2).tanh();
                        sigmoid(sum(3)) * c.tanh()
                    }
                    Cell::Gru => {
                        let (z, (x, p)) = (sigmoid(sum(1)), at(2));
                        (1.0 - z) * (x + sigmoid(sum(0)) * p).tanh() + z * old[k]
                    }
                    Cell::Tanh => sum(0).tanh(),
                    Cell::Relu => sum(0).max(0.0),
                };
                h[n * hidden + k] = new;
                output[row * hidden + k] = new;
            }
        }
    }
    vec![output, h, c]
}

/// A layer's operands, some with gaps or permuted.
struct Case {
    cell: Cell,
    rows: Rows,
    features: i64,
    hidden: i64,
    reverse: bool,
    inputs: Vec<Tensor>,
}

impl Case {
    fn new(
        rng: &mut Rng,
        dtype: DType,
        cell: Cell,
        shape: (Rows, i64, i64),
        reverse: bool,
    ) -> Case {
        let (rows, features, hidden) = shape;
        let (total, batch, width) = (rows.iter().sum(), rows[0], cell.gates() as i64 * hidden);
        let c = if cell == Cell::Lstm { batch } else { 0 };
        let shapes: [&[i64]; 7] = [
            &[total, features],
            &[batch, hidden],
            &[c, hidden],
            &[width, features],
            &[width, hidden],
            &[width],
            &[width],
        ];
        let inputs = shapes.iter().map(|shape| rng.tensor(dtype, shape)).collect();
        Case { cell, rows, features, hidden, reverse, inputs }
    }
    fn steps(&self) -> Steps {
        if self.rows.iter().all(|&n| n == self.rows[0]) {
            return Steps::uniform(self.rows.len(), self.rows[0] as usize, self.reverse).unwrap();
        }
        Steps::packed(self.rows, self.reverse).unwrap()
    }
    fn operands(&self) -> Operands<'_> {
        let [x, h, c, w, u, a, b] = &self.inputs[..] else { unreachable!() };
        Operands {
            cell: self.cell,
            x: x.view(),
            h: h.view(),
            c: (self.cell == Cell::Lstm).then(|| c.view()),
            weights: [w.view(), u.view()],
            biases: [Some(a.view()), Some(b.view())],
        }
    }
    fn naive(&self, values: &[Vec<f64>]) -> Vec<Vec<f64>> {
        naive(self.cell, self.rows, self.features as usize, self.reverse, values)
    }
    /// `output, h, c, gates, cells`.
    fn forward(&self, dtype: DType) -> Vec<Tensor> {
        let is_lstm = self.cell == Cell::Lstm;
        let (total, kept) = (self.rows.iter().sum(), self.cell.saved_gates() as i64 * self.hidden);
        let wide = if dtype == DType::F64 { dtype } else { DType::F32 };
        let c = if is_lstm { self.rows[0] } else { 0 };
        let mut out = vec![
            Tensor::full(dtype, &[total, self.hidden], 0.0),
            Tensor::full(dtype, &[self.rows[0], self.hidden], 0.0),
            Tensor::full(dtype, &[c, self.hidden], 0.0),
            Tensor::full(wide, &[total, kept], 0.0),
            Tensor::full(wide, &[if is_lstm { total } else { 0 }, self.hidden], 0.0),
        ];
        let mut views: Vec<StridedMut<'_>> = out.iter_mut().map(Tensor::view_mut).collect();
        let [output, h, c, gates, cells] = &mut views[..] else { unreachable!() };
        let outputs = Outputs {
            output,
            h: Some(h),
            c: is_lstm.then_some(c),
            gates: Some(gates),
            cells: is_lstm.then_some(cells),
        };
        rnn::forward(outputs, &self.operands(), &self.steps()).unwrap();
        drop(views);
        out
    }
}

fn for_all(dtypes: &[DType], check: impl Fn(&mut Rng, DType, Case)) {
    let mut rng = Rng(7);
    for &dtype in dtypes {
        for cell in CELLS {
            for shape in SHAPES {
                for reverse in [false, true] {
                    let case = Case::new(&mut rng, dtype, cell, shape, reverse);
                    check(&mut rng, dtype, case);
                }
            }
        }
    }
}

#[test]
fn layers_equal_the_naive_twin() {
    for_all(&[DType::F32, DType::F64, DType::F16, DType::BF16], |_, dtype, case| {
        let values: Vec<Vec<f64>> = case.inputs.iter().map(Tensor::reals).collect();
        for (got, expected) in case.forward(dtype).iter().zip(case.naive(&values)) {
            let what = format!("{:?} {:?} {dtype:?}", case.cell, case.rows);
            got.assert_reals(&expected, &what);
        }
    });
}

#[test]
fn gradients_equal_differences_of_the_naive_twin() {
    for_all(&[DType::F64], |rng, dtype, case| {
        let results = case.forward(dtype);
        let grads: Vec<Tensor> = results[..3].iter().map(|t| rng.tensor(dtype, &t.shape)).collect();
        let mut made: Vec<Tensor> =
            case.inputs.iter().map(|t| Tensor::full(dtype, &t.shape, 0.0)).collect();
        let is_lstm = case.cell == Cell::Lstm;
        // One step of a cell with gates needs nothing but those.
        let is_alone = case.rows.len() == 1 && case.cell.saved_gates() > 0;
        let known = OutputGradients {
            output: (!is_alone).then(|| results[0].view()),
            gates: Some(results[3].view()),
            cells: (is_lstm && !is_alone).then(|| results[4].view()),
            by_output: Some(grads[0].view()),
            by_h: Some(grads[1].view()),
            by_c: is_lstm.then(|| grads[2].view()),
        };
        let mut views: Vec<StridedMut<'_>> = made.iter_mut().map(Tensor::view_mut).collect();
        let [x, h, c, w, u, a, b] = &mut views[..] else { unreachable!() };
        let wanted = [Some(x), Some(h), is_lstm.then_some(c), Some(w), Some(u), Some(a), Some(b)];
        rnn::backward(wanted, &case.operands(), &known, &case.steps()).unwrap();
        drop(views);
        let values: Vec<Vec<f64>> = case.inputs.iter().map(Tensor::reals).collect();
        let grads: Vec<Vec<f64>> = grads.iter().map(Tensor::reals).collect();
        let value = |values: &[Vec<f64>]| {
            let results = case.naive(values);
            let pairs = results.iter().flatten().zip(grads.iter().flatten());
            pairs.map(|(y, g)| y * g).sum::<f64>()
        };
        for (i, made) in made.iter().enumerate() {
            // Every seventh element: the rest are like them.
            for at in (0..values[i].len()).step_by(7) {
                let moved = |by: f64| {
                    let mut values = values.clone();
                    values[i][at] += by;
                    value(&values)
                };
                let (got, expected) = (made.reals()[at], (moved(1e-5) - moved(-1e-5)) / 2e-5);
                let close = (got - expected).abs() <= 1e-6 * (1.0 + expected.abs());
                assert!(close, "{:?} operand {i}, element {at}: {got} {expected}", case.cell);
            }
        }
    });
}

#[test]
fn steps_that_grow_and_sizes_that_do_not_fit_are_refused() {
    assert!(Steps::packed(&[1, 2], false).is_err());
    assert!(Steps::packed(&[1, 0], false).is_err());
    let mut rng = Rng(1);
    let mut case = Case::new(&mut rng, DType::F32, Cell::Gru, SHAPES[0], false);
    case.inputs[4] = rng.tensor(DType::F32, &[14, 5]);
    let mut out = Tensor::full(DType::F32, &[6, 5], 0.0);
    let mut view = out.view_mut();
    let outputs = Outputs { output: &mut view, h: None, c: None, gates: None, cells: None };
    assert!(rnn::forward(outputs, &case.operands(), &case.steps()).is_err());
}
