//! Convolutions by Winograd's filtering against sums in double precision: shapes, accuracy, exactness, values that are not
//! finite, threads.

mod tensor;

use pullback_kernels::conv::{self, ConvAlgorithm, ConvOptions, ConvPass};
use pullback_kernels::simd::{SimdLevel, level, set_level};
use pullback_kernels::{C128, DType, parallel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tensor::{Rng, Tensor};

const PASSES: [ConvPass; 3] =
    [ConvPass::Forward, ConvPass::BackwardInput, ConvPass::BackwardWeight];

/// Level and number of threads are the process's: tests that rely on them hold this.
static SETTINGS: Mutex<()> = Mutex::new(());

fn settings() -> MutexGuard<'static, ()> {
    SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A convolution with kernels of three by three and stride 1.
#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    groups: usize,
    /// Channels of a group.
    inputs: usize,
    outputs: usize,
    size: [usize; 2],
    padding: [usize; 2],
}

const fn case(
    batch: usize,
    [groups, inputs, outputs]: [usize; 3],
    size: [usize; 2],
    padding: [usize; 2],
) -> Case {
    Case { batch, groups, inputs, outputs, size, padding }
}

impl Case {
    fn output(&self) -> [usize; 2] {
        [0, 1].map(|d| self.size[d] + 2 * self.padding[d] - 2)
    }
    fn shapes(&self) -> [Vec<i64>; 3] {
        let [h, w] = self.size;
        let [oh, ow] = self.output();
        [
            vec![self.batch, self.groups * self.inputs, h, w],
            vec![self.groups * self.outputs, self.inputs, 3, 3],
            vec![self.batch, self.groups * self.outputs, oh, ow],
        ]
        .map(|shape| shape.into_iter().map(|n| n as i64).collect())
    }
    fn options(&self) -> ConvOptions {
        ConvOptions {
            padding: self.padding.as_slice().into(),
            groups: self.groups,
            ..ConvOptions::plain(2)
        }
    }
    /// The passes that are computed by Winograd's filtering.
    fn is_winograd(&self, dtype: DType) -> [bool; 3] {
        let [x, w, _] = self.shapes();
        PASSES.map(|pass| {
            let way = conv::plan(pass, dtype, (&x, &w), &self.options()).unwrap();
            way == ConvAlgorithm::Winograd
        })
    }
    /// Calls `each` with the flat indices of input, weight and output of every product.
    fn for_products(&self, mut each: impl FnMut(usize, usize, usize)) {
        let ([h, w], [oh, ow]) = (self.size, self.output());
        for n in 0..self.batch {
            for o in 0..self.groups * self.outputs {
                for c in 0..self.inputs {
                    let channel = o / self.outputs * self.inputs + c;
                    for k in 0..9 {
                        let weight = (o * self.inputs + c) * 9 + k;
                        for at in 0..oh * ow {
                            let y = (at / ow + k / 3).wrapping_sub(self.padding[0]);
                            let x = (at % ow + k % 3).wrapping_sub(self.padding[1]);
                            if y < h && x < w {
                                let input = (n * self.groups * self.inputs + channel) * h * w;
                                let output = (n * self.groups * self.outputs + o) * oh * ow;
                                each(input + y * w + x, weight, output + at);
                            }
                        }
                    }
                }
            }
        }
    }
    /// The convolution of these operands with a bias, and the gradients of input and weight, in double precision.
    fn expected(&self, x: &[f64], w: &[f64], grad: &[f64], bias: &[f64]) -> [Vec<f64>; 3] {
        let [oh, ow] = self.output();
        let mut out: Vec<f64> = (0..grad.len()).map(|i| bias[i / (oh * ow) % bias.len()]).collect();
        let (mut gx, mut gw) = (vec![0.0; x.len()], vec![0.0; w.len()]);
        self.for_products(|i, k, o| {
            out[o] += x[i] * w[k];
            gx[i] += grad[o] * w[k];
            gw[k] += grad[o] * x[i];
        });
        [out, gx, gw]
    }
}

/// Operands of a case: input, weight, gradient of the output, bias.
struct Operands {
    x: Tensor,
    w: Tensor,
    grad: Tensor,
    bias: Tensor,
}

impl Operands {
    fn random(rng: &mut Rng, dtype: DType, case: &Case) -> Operands {
        let [x, w, out] = case.shapes();
        Operands {
            x: rng.tensor(dtype, &x),
            w: rng.tensor(dtype, &w),
            grad: rng.tensor(dtype, &out),
            bias: rng.dense(dtype, &out[1..2]),
        }
    }
    fn expected(&self, case: &Case) -> [Vec<f64>; 3] {
        let [x, w, grad, bias] = [&self.x, &self.w, &self.grad, &self.bias].map(Tensor::reals);
        case.expected(&x, &w, &grad, &bias)
    }
    /// The three results.
    fn run(&self, case: &Case) -> [Tensor; 3] {
        let c = case.options();
        let (dtype, [x_shape, w_shape, shape]) = (self.x.dtype, case.shapes());
        let [mut gx, mut gw, mut out] =
            [x_shape, w_shape, shape].map(|shape| Tensor::full(dtype, &shape, f64::NAN));
        let (x, w, grad, bias) = (self.x.view(), self.w.view(), self.grad.view(), self.bias.view());
        conv::convolution(&mut out.view_mut(), x, w, Some(bias), &c).unwrap();
        conv::convolution_backward_input(&mut gx.view_mut(), grad, w, &c).unwrap();
        conv::convolution_backward_weight(&mut gw.view_mut(), grad, x, &c).unwrap();
        [out, gx, gw]
    }
}

/// Odd, even and tiny images, with channels that fill registers and that do not, paddings up to three, groups.
const CASES: [Case; 14] = [
    case(3, [1, 16, 16], [9, 12], [1, 1]),
    case(2, [1, 17, 33], [13, 7], [1, 1]),
    case(1, [1, 40, 24], [24, 31], [0, 0]),
    case(5, [1, 32, 48], [7, 7], [1, 1]),
    case(9, [1, 24, 70], [4, 4], [1, 1]),
    case(70, [1, 20, 18], [2, 2], [1, 1]),
    case(40, [1, 32, 32], [1, 1], [2, 1]),
    case(2, [3, 16, 32], [10, 11], [1, 0]),
    case(2, [1, 64, 64], [8, 26], [2, 2]),
    case(1, [1, 19, 21], [9, 8], [3, 2]),
    case(1, [1, 16, 130], [3, 90], [0, 1]),
    case(1, [2, 140, 16], [12, 6], [1, 1]),
    case(1, [1, 16, 16], [3, 400], [1, 1]),
    case(30, [1, 33, 16], [3, 3], [0, 0]),
];

#[test]
fn winograds_convolutions_and_their_gradients_equal_the_definition() {
    let _settings = settings();
    let mut rng = Rng(21);
    let mut counts = [0; 3];
    for level in [SimdLevel::Avx512, SimdLevel::Avx2, SimdLevel::Baseline] {
        set_level(level);
        for case in CASES {
            for dtype in [DType::F32, DType::F64] {
                let operands = Operands::random(&mut rng, dtype, &case);
                let expected = operands.expected(&case);
                for (pass, (got, want)) in operands.run(&case).iter().zip(&expected).enumerate() {
                    got.assert_reals(want, &format!("{:?} {dtype:?} {case:?}", PASSES[pass]));
                    counts[pass] += usize::from(case.is_winograd(dtype)[pass]);
                }
            }
        }
    }
    if set_level(SimdLevel::Avx512) > SimdLevel::Baseline {
        assert!(counts.iter().all(|&count| count >= 30), "too few were computed so: {counts:?}");
    }
}

#[test]
fn winograd_is_planned_where_it_saves_products_and_nowhere_else() {
    let _settings = settings();
    if level() == SimdLevel::Baseline {
        return;
    }
    let large = case(8, [1, 64, 64], [56, 56], [1, 1]);
    assert_eq!(large.is_winograd(DType::F32), [true; 3]);
    assert_eq!(large.is_winograd(DType::F64), [true; 3]);
    for dtype in [DType::F16, DType::BF16, DType::C64, DType::I32] {
        assert_eq!(large.is_winograd(dtype), [false; 3], "{dtype:?}");
    }
    // Too few channels; too few outputs for the transform of the weights.
    assert_eq!(case(8, [1, 3, 64], [56, 56], [1, 1]).is_winograd(DType::F32), [false; 3]);
    assert_eq!(case(1, [1, 512, 512], [2, 2], [1, 1]).is_winograd(DType::F32), [false; 3]);
    let [x, w, _] = large.shapes();
    let plan = |options: &ConvOptions| {
        conv::plan(ConvPass::Forward, DType::F32, (&x, &w), options).unwrap()
    };
    for (stride, dilation) in [(2, 1), (1, 2)] {
        let options = ConvOptions {
            stride: [stride; 2].as_slice().into(),
            dilation: [dilation; 2].as_slice().into(),
            ..large.options()
        };
        assert_ne!(plan(&options), ConvAlgorithm::Winograd);
    }
    // The gradient of a transposed convolution's input is a plain one.
    let transposed = ConvOptions { transposed: true, ..large.options() };
    assert_eq!(plan(&transposed), ConvAlgorithm::Winograd);
}

/// The largest error of results, in units of `2^-24` times the sum of the products' absolute values.
fn error(got: &Tensor, want: &[f64], sizes: &[f64]) -> f64 {
    let errors = got.reals().into_iter().zip(want).zip(sizes);
    errors.fold(0.0, |most: f64, ((got, want), size)| most.max((got - want).abs() / size))
        / f64::exp2(-24.0)
}

#[test]
fn errors_stay_within_the_documented_bound() {
    let _settings = settings();
    let mut rng = Rng(22);
    for (channels, side) in [(16, 20), (64, 14), (256, 8), (512, 7)] {
        let case = case(2, [1, channels, channels.min(64)], [side; 2], [1, 1]);
        let operands = Operands::random(&mut rng, DType::F32, &case);
        let expected = operands.expected(&case);
        let [x, w, grad, bias] = [&operands.x, &operands.w, &operands.grad, &operands.bias]
            .map(|tensor| tensor.reals().into_iter().map(f64::abs).collect::<Vec<f64>>());
        let sizes = case.expected(&x, &w, &grad, &bias);
        let run = |level: SimdLevel| {
            set_level(level);
            let got = operands.run(&case);
            [0, 1, 2].map(|pass| error(&got[pass], &expected[pass], &sizes[pass]))
        };
        let (sums, tiles) = (run(SimdLevel::Baseline), run(SimdLevel::Avx512));
        for (pass, (sums, tiles)) in sums.into_iter().zip(tiles).enumerate() {
            println!("{:?} {channels} {side}: {tiles:.2}, as sums {sums:.2}", PASSES[pass]);
            assert!(tiles < 8.0, "{:?} {case:?}: {tiles}, as sums {sums}", PASSES[pass]);
        }
    }
}

#[test]
fn sums_of_small_integers_are_exact() {
    let _settings = settings();
    let case = case(2, [1, 64, 32], [11, 10], [1, 1]);
    let [x, w, out] = case.shapes();
    let mut rng = Rng(23);
    let mut integers = |shape: &[i64], most: i64| {
        let count = shape.iter().product::<i64>();
        let values: Vec<f64> = (0..count).map(|_| rng.below(most) as f64).collect();
        Tensor::from(DType::F32, shape, &values)
    };
    let operands = Operands {
        x: integers(&x, 1 << 10),
        w: Tensor::full(DType::F32, &w, 1.0),
        grad: integers(&out, 8),
        bias: integers(&out[1..2], 100),
    };
    let expected = operands.expected(&case);
    for (pass, (got, want)) in operands.run(&case).iter().zip(&expected).enumerate() {
        assert!(got.reals() == *want, "{:?}", PASSES[pass]);
    }
}

/// Compares values that may not be finite.
fn assert_same(got: &Tensor, want: &[f64], what: &str) {
    for (i, (got, &want)) in got.reals().into_iter().zip(want).enumerate() {
        let is_same = if want.is_finite() {
            (got - want).abs() <= 2e-4 * (1.0 + want.abs())
        } else {
            got == want || (got.is_nan() && want.is_nan())
        };
        assert!(is_same, "{what}: element {i} is {got}, expected {want}");
    }
}

#[test]
fn values_that_are_not_finite_give_what_the_sums_give() {
    let _settings = settings();
    let mut rng = Rng(24);
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for case in [
        case(3, [1, 16, 20], [9, 12], [1, 1]),
        case(6, [1, 32, 18], [7, 7], [1, 1]),
        case(2, [2, 17, 16], [10, 9], [0, 0]),
        case(2, [1, 24, 32], [8, 9], [2, 2]),
    ] {
        for values in [&[inf][..], &[-inf], &[nan], &[inf, -inf], &[inf, inf, nan]] {
            for place in 0..3 {
                let mut operands = Operands::random(&mut rng, DType::F32, &case);
                for &value in values {
                    let tensor = match place {
                        0 => &mut operands.x,
                        1 => &mut operands.w,
                        _ => &mut operands.grad,
                    };
                    let at = rng.below(tensor.numel() as i64) as usize;
                    tensor.set_flat(at, C128::new(value, 0.0));
                }
                let expected = operands.expected(&case);
                for (pass, (got, want)) in operands.run(&case).iter().zip(&expected).enumerate() {
                    // The zeros of a padding are multiplied, too, which gives NaN for infinity: then the definition has
                    // fewer products.
                    let zeros = match (place, pass) {
                        (1, 0) | (2, 2) => case.padding[0],
                        (1, 1) => 2 - case.padding[0],
                        _ => 0,
                    };
                    if zeros > 0 {
                        continue;
                    }
                    let what = format!("{:?} {case:?} {values:?} in {place}", PASSES[pass]);
                    assert_same(got, want, &what);
                }
            }
        }
    }
}

#[test]
fn sums_that_overflow_only_in_a_transform_are_finite() {
    let _settings = settings();
    let case = case(2, [1, 16, 16], [8, 8], [1, 1]);
    let [x, w, out] = case.shapes();
    let large = f64::from(f32::MAX) * 0.75;
    // Neighbours of opposite sign: their difference is no number of the dtype.
    let side = case.size[1];
    let sign = |i: usize| if i / side % 4 < 2 { 1.0 } else { -1.0 };
    let values: Vec<f64> = (0..x.iter().product::<i64>() as usize)
        .map(|i| if (i / (side * side)).is_multiple_of(16) { sign(i) * large } else { 0.0 })
        .collect();
    let mut weights = vec![0.0; w.iter().product::<i64>() as usize];
    weights.iter_mut().skip(4).step_by(9).for_each(|w| *w = 0.5);
    let operands = Operands {
        x: Tensor::from(DType::F32, &x, &values),
        w: Tensor::from(DType::F32, &w, &weights),
        grad: Tensor::full(DType::F32, &out, 0.0),
        bias: Tensor::full(DType::F32, &out[1..2], 0.0),
    };
    let [want, ..] = operands.expected(&case);
    assert!(want.iter().all(|value| value.is_finite()));
    let [got, ..] = operands.run(&case);
    assert!(got.reals() == want);
}

#[test]
fn the_number_of_threads_changes_no_bit_of_winograds_convolutions() {
    let _settings = settings();
    let mut rng = Rng(25);
    for case in [
        case(3, [1, 40, 70], [15, 14], [1, 1]),
        case(2, [1, 64, 96], [7, 7], [1, 1]),
        case(4, [2, 32, 32], [20, 21], [1, 1]),
    ] {
        let mut operands = Operands::random(&mut rng, DType::F32, &case);
        for is_finite in [true, false] {
            if !is_finite {
                operands.x.set_flat(7, C128::new(f64::INFINITY, 0.0));
            }
            let run = |threads: usize| {
                parallel::set_num_threads(threads);
                operands.run(&case).map(|tensor| tensor.data)
            };
            let one = run(1);
            for threads in [2, 3, 5, 16] {
                assert!(run(threads) == one, "{case:?} on {threads} threads");
            }
        }
    }
    parallel::set_num_threads(2);
}
