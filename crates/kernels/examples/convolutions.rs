//! How fast convolutions and poolings are: `convolutions [WORD]`, one line for each case whose name contains `WORD`.
//!
//! The shortest of many rounds counts, as nothing makes a kernel too fast. Times are in milliseconds, of the processor where one
//! thread runs, so that other programs do not count; the rate is that of the
//! products of the definition, a multiply-add being two operations, in 10^9 per second.

use pullback_kernels::conv::{self, ConvOptions, ConvPass};
use pullback_kernels::pool::{self, PoolWindow};
use pullback_kernels::{DType, StridedMut, StridedRef, parallel};
use std::time::{Duration, Instant};

/// How long a case is measured.
const TIME: Duration = Duration::from_millis(500);

/// Images, channels, side, features, window, stride, padding.
struct Case(&'static str, [usize; 7], bool);

const CASES: [Case; 15] = [
    Case("stem7x7s2", [8, 3, 224, 64, 7, 2, 3], false),
    Case("64x56", [8, 64, 56, 64, 3, 1, 1], false),
    Case("128x28", [8, 128, 28, 128, 3, 1, 1], false),
    Case("256x14", [8, 256, 14, 256, 3, 1, 1], false),
    Case("512x7", [8, 512, 7, 512, 3, 1, 1], false),
    Case("1x1.256x28", [8, 256, 28, 64, 1, 1, 0], false),
    Case("transposed", [8, 64, 28, 32, 4, 2, 1], true),
    Case("lenet.1x28", [64, 1, 28, 6, 5, 1, 2], false),
    Case("lenet.6x14", [64, 6, 14, 16, 5, 1, 0], false),
    Case("cifar.3x32", [16, 3, 32, 64, 3, 1, 1], false),
    Case("cifar.64x32", [16, 64, 32, 64, 3, 1, 1], false),
    Case("cifar.64x32s2", [16, 64, 32, 128, 3, 2, 1], false),
    Case("cifar.128x16", [16, 128, 16, 128, 3, 1, 1], false),
    Case("cifar.256x8", [16, 256, 8, 256, 3, 1, 1], false),
    Case("cifar.512x4", [16, 512, 4, 512, 3, 1, 1], false),
];

/// A row-major tensor of numbers between one half and two.
struct Numbers(Vec<i64>, Vec<i64>, Vec<f32>);

impl Numbers {
    fn new(shape: &[usize]) -> Numbers {
        let count = shape.iter().product::<usize>();
        let mut strides = vec![1_i64; shape.len()];
        for d in (1..shape.len()).rev() {
            strides[d - 1] = strides[d] * shape[d] as i64;
        }
        let values = (0..count).map(|i| 0.5 + (i * 7919 % 1009) as f32 / 700.0).collect();
        Numbers(shape.iter().map(|&n| n as i64).collect(), strides, values)
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

/// The seconds that the process has had of processors; none where the system does not say.
fn processor_time() -> Option<f64> {
    #[cfg(target_os = "linux")]
    {
        unsafe extern "C" {
            fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
        }
        const PROCESS: i32 = 2;
        let mut time = [0; 2];
        // SAFETY: seconds and nanoseconds, of 64 bits each on the systems that Rust programs of 64 bits run on.
        let is_known =
            size_of::<usize>() == 8 && unsafe { clock_gettime(PROCESS, &raw mut time) } == 0;
        is_known.then_some(time[0] as f64 + time[1] as f64 * 1e-9)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// The seconds of the shortest round.
fn shortest(mut work: impl FnMut()) -> f64 {
    let (mut best, start) = (f64::INFINITY, Instant::now());
    let alone = parallel::num_threads() == 1;
    while start.elapsed() < TIME {
        let (round, before) = (Instant::now(), processor_time());
        work();
        let seconds = match (before, processor_time()) {
            (Some(before), Some(after)) if alone => after - before,
            _ => round.elapsed().as_secs_f64(),
        };
        best = best.min(seconds);
    }
    best
}

fn convolve(case: &Case, threads: usize, word: &str) {
    let Case(name, [n, c, side, o, window, stride, padding], transposed) = *case;
    let options = ConvOptions {
        stride: [stride; 2].as_slice().into(),
        padding: [padding; 2].as_slice().into(),
        transposed,
        ..ConvOptions::plain(2)
    };
    let x = Numbers::new(&[n, c, side, side]);
    let w = if transposed { [c, o, window, window] } else { [o, c, window, window] };
    let w = Numbers::new(&w);
    let shape = conv::output_shape(&x.0, &w.0, &options).expect("shapes fit");
    let shape: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
    let positions = if transposed { side * side } else { shape[2] * shape[3] };
    let operations = (2 * n * positions * o * c * window * window) as f64;
    let grad = Numbers::new(&shape);
    let (mut out, mut gx, mut gw) = (
        Numbers::new(&shape),
        Numbers::new(&[n, c, side, side]),
        Numbers(w.0.clone(), w.1.clone(), w.2.clone()),
    );
    for pass in [ConvPass::Forward, ConvPass::BackwardInput, ConvPass::BackwardWeight] {
        let name = format!("{name}.{pass:?}.t{threads}");
        if !name.contains(word) {
            continue;
        }
        let seconds = shortest(|| {
            match pass {
                ConvPass::Forward => {
                    conv::convolution(&mut out.view_mut(), x.view(), w.view(), None, &options)
                }
                ConvPass::BackwardInput => conv::convolution_backward_input(
                    &mut gx.view_mut(),
                    grad.view(),
                    w.view(),
                    &options,
                ),
                ConvPass::BackwardWeight => conv::convolution_backward_weight(
                    &mut gw.view_mut(),
                    grad.view(),
                    x.view(),
                    &options,
                ),
            }
            .expect("shapes fit");
        });
        let way = conv::plan(pass, DType::F32, (&x.0, &w.0), &options).expect("shapes fit");
        let (time, rate) = (seconds * 1e3, operations / seconds * 1e-9);
        println!("{name:32} {time:8.3} ms {rate:8.1} {way:?}");
    }
}

fn max_pool(name: &str, [kernel, stride, padding]: [usize; 3], word: &str) {
    if !name.contains(word) {
        return;
    }
    let window = PoolWindow {
        kernel: [kernel; 2].as_slice().into(),
        stride: [stride; 2].as_slice().into(),
        padding: [padding; 2].as_slice().into(),
        dilation: [1; 2].as_slice().into(),
        ceil_mode: false,
    };
    let x = Numbers::new(&[8, 64, 112, 112]);
    let shape = pool::output_shape(&x.0, &window).expect("shapes fit");
    let shape: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
    let mut out = Numbers::new(&shape);
    let mut indices = vec![0_i64; out.2.len()];
    let seconds = shortest(|| {
        // SAFETY: as many indices as results.
        let mut indices =
            unsafe { StridedMut::new(indices.as_mut_ptr().cast(), DType::I64, &out.0, &out.1) };
        // SAFETY: the memory holds every element, borrowed exclusively.
        let mut to =
            unsafe { StridedMut::new(out.2.as_mut_ptr().cast(), DType::F32, &out.0, &out.1) };
        pool::max_pool(&mut to, Some(&mut indices), x.view(), &window).expect("shapes fit");
    });
    println!("{name:32} {:8.3} ms", seconds * 1e3);
}

fn main() {
    let word = std::env::args().nth(1).unwrap_or_default();
    for threads in [1, 2] {
        parallel::set_num_threads(threads);
        for case in &CASES {
            convolve(case, threads, &word);
        }
        max_pool(&format!("max_pool2d.2x2.t{threads}"), [2, 2, 0], &word);
        max_pool(&format!("max_pool2d.3x3s2.t{threads}"), [3, 2, 1], &word);
    }
}
