//! Complex halves are computed with as complex singles, and rounded once: in every layout what the same kernel gives for
//! the same numbers in singles. The singles' own results are tested in `elementwise`.

mod tensor;

use pullback_kernels::elementwise as ew;
use pullback_kernels::simd::{SimdLevel, set_level};
use pullback_kernels::{C32, C128, DType, Element, Iter, Result, Scalar};
use tensor::{Rng, Tensor};

type Kernel<'k> = &'k dyn Fn(&mut Iter) -> Result<()>;

fn wide(dtype: DType) -> DType {
    match dtype {
        DType::C32 => DType::C64,
        DType::F16 => DType::F32,
        other => other,
    }
}

/// The same numbers in another dtype, row by row.
fn converted(t: &Tensor, dtype: DType) -> Tensor {
    let mut out = Tensor::full(dtype, &t.shape, 0.0);
    for (i, value) in t.values().into_iter().enumerate() {
        out.set_flat(i, value);
    }
    out
}

fn run(kernel: Kernel<'_>, out: &mut Tensor, inputs: &[Tensor]) {
    let views: Vec<_> = inputs.iter().map(Tensor::view).collect();
    kernel(&mut Iter::new(&[out.view_mut()], &views).unwrap()).unwrap();
}

fn check(label: &str, (from, count): (DType, usize), to: DType, kernel: Kernel<'_>) {
    let mut rng = Rng(label.len() as u64);
    let shapes: [&[i64]; 8] =
        [&[], &[0], &[1], &[7], &[2, 3, 5], &[40, 33], &[3, 700], &[300, 130]];
    for level in SimdLevel::ALL {
        set_level(level);
        for shape in shapes {
            let inputs: Vec<Tensor> = (0..count).map(|_| rng.tensor(from, shape)).collect();
            let wides: Vec<Tensor> = inputs.iter().map(|t| converted(t, wide(from))).collect();
            let (mut out, mut expected) =
                (rng.tensor(to, shape), Tensor::full(wide(to), shape, 0.0));
            run(kernel, &mut out, &inputs);
            run(kernel, &mut expected, &wides);
            let expected = converted(&expected, to).values();
            assert_eq!(format!("{:?}", out.values()), format!("{expected:?}"), "{label} {shape:?}");
        }
    }
    set_level(SimdLevel::Avx512);
}

#[test]
fn results_in_every_layout_are_those_of_singles_rounded() {
    let (half, pair) = (DType::F16, DType::C32);
    let alpha = Scalar::Complex(0.5, -2.0);
    check("add", (pair, 2), pair, &|it| ew::add(it, alpha));
    check("mul", (pair, 2), pair, &ew::mul);
    check("div", (pair, 2), pair, &ew::true_divide);
    check("addcmul", (pair, 3), pair, &|it| ew::addcmul(it, alpha));
    check("neg", (pair, 1), pair, &ew::neg);
    check("conj", (pair, 1), pair, &ew::conj);
    check("sgn", (pair, 1), pair, &ew::sgn);
    check("exp", (pair, 1), pair, &ew::exp);
    check("abs", (pair, 1), half, &ew::abs);
    check("angle", (pair, 1), half, &ew::angle);
    check("real", (pair, 1), half, &ew::real);
    check("eq", (pair, 2), DType::Bool, &ew::eq);
    check("isfinite", (pair, 1), DType::Bool, &ew::isfinite);
    check("complex", (half, 2), pair, &ew::complex);
    check("polar", (half, 2), pair, &ew::polar);
    check("cast", (half, 1), pair, &ew::cast);
}

#[test]
fn a_product_is_rounded_once() {
    let tenth = C32::from_c128(C128::new(0.1, 0.1));
    let mut x = Tensor::full(DType::C32, &[3], 0.0);
    (0..3).for_each(|i| x.set_flat(i, tenth.to_c128()));
    let inputs = [converted(&x, DType::C32), converted(&x, DType::C32)];
    run(&ew::mul, &mut x, &inputs);
    // Of the parts of the square, the real one is 0; the other, rounded after each step, would be another half.
    let exact = C128::new(0.0, 2.0 * tenth.re.to_f64().powi(2));
    assert_eq!(x.values(), [C32::from_c128(exact).to_c128(); 3]);
}
