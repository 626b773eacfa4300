//! Every element-by-element kernel against a naive twin: dtypes, strides, broadcasting, in-place
//! calls, empty and single elements, instruction sets. The exactness of the functions themselves is
//! measured in `accuracy`.

mod functions;
#[path = "../ulp/mod.rs"]
mod ulp;

use pullback_kernels::elementwise as ew;
use pullback_kernels::simd::{SimdLevel, math_f64, set_level};
use pullback_kernels::{
    Bool, C64, C128, DType, Element, Error, Float8, Iter, Result, Scalar, StridedMut, StridedRef,
    bf16, f16, for_dtype,
};
use ulp::ulps32;

/// A small reproducible source of numbers.
struct Random(u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    /// Mostly small numbers, some at the edges.
    fn number(&mut self) -> f64 {
        match self.below(16) {
            0 => 0.0,
            1 => -0.0,
            2 => f64::INFINITY,
            3 => f64::NEG_INFINITY,
            4 => f64::NAN,
            5 => 1.0,
            6 => self.below(200) as f64 - 100.0,
            _ => (self.next() as f64 / u64::MAX as f64 - 0.5) * 10.0,
        }
    }
    fn element<T: Element>(&mut self) -> T {
        if T::DTYPE.is_integral(true) {
            let wide = self.next() as i64;
            T::from_i64(if self.below(2) == 0 { wide % 10 } else { wide })
        } else if T::DTYPE.is_complex() {
            T::from_c128(C128::new(self.number(), self.number()))
        } else {
            T::from_f64(self.number())
        }
    }
}

/// Elements with sizes and strides of their own.
struct View<T> {
    data: Vec<T>,
    offset: usize,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl<T: Element> View<T> {
    /// A view of `shape` whose layout is drawn: permuted, spaced, reversed, or (inputs) with zero strides.
    fn drawn(random: &mut Random, shape: &[i64], may_broadcast: bool) -> View<T> {
        let n = shape.len();
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, random.below(i as u64 + 1) as usize);
        }
        let dense = random.below(2) == 0;
        if dense {
            order = (0..n).rev().collect();
        }
        let (mut strides, mut size, mut offset) = (vec![0; n], 1, 0);
        for dim in order {
            if may_broadcast && random.below(4) == 0 {
                continue;
            }
            let space = if dense { 1 } else { 1 + random.below(2) as i64 };
            strides[dim] = size * space;
            size *= space * shape[dim].max(1);
            if !dense && random.below(4) == 0 && shape[dim] > 0 {
                offset += (shape[dim] - 1) * strides[dim];
                strides[dim] = -strides[dim];
            }
        }
        let data = (0..size.max(1)).map(|_| random.element()).collect();
        View { data, offset: offset as usize, shape: shape.to_vec(), strides }
    }
    fn as_ref(&self) -> StridedRef<'_> {
        let ptr = self.data[self.offset..].as_ptr().cast();
        // SAFETY: `drawn` makes every reachable position lie in `data`.
        unsafe { StridedRef::new(ptr, T::DTYPE, &self.shape, &self.strides) }
    }
    fn as_mut(&mut self) -> StridedMut<'_> {
        let ptr = self.data[self.offset..].as_mut_ptr().cast();
        // SAFETY: as above, and borrowed for writing.
        unsafe { StridedMut::new(ptr, T::DTYPE, &self.shape, &self.strides) }
    }
    /// The elements in row-major order.
    fn values(&self) -> Vec<T> {
        let total: i64 = self.shape.iter().product();
        (0..total)
            .map(|mut at| {
                let mut position = self.offset as i64;
                for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
                    position += at % size * stride;
                    at /= size;
                }
                self.data[position as usize]
            })
            .collect()
    }
}

fn shape(random: &mut Random) -> Vec<i64> {
    match random.below(8) {
        0 => vec![],
        1 => vec![0],
        2 => vec![3, 0, 2],
        3 => vec![1 + random.below(700) as i64],
        4 => vec![2, 1 + random.below(300) as i64],
        5 => vec![1 + random.below(200) as i64, 1 + random.below(40) as i64],
        _ => (0..=random.below(4)).map(|_| 1 + random.below(7) as i64).collect(),
    }
}

/// Equal, or both NaN (of complex numbers: part by part), or within a relative distance.
fn close(got: C128, want: C128, tolerance: f64) -> bool {
    let part = |a: f64, b: f64| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * (1.0 + b.abs())
    };
    part(got.re, want.re) && part(got.im, want.im)
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 | DType::C32 => 1e-3,
        DType::BF16 => 8e-3,
        DType::F32 | DType::C64 => 1e-6,
        _ => 1e-13,
    }
}

/// Runs a kernel on drawn views of one dtype, at every level, and compares with the twin.
fn check<T: Element, R: Element>(
    inputs: usize,
    kernel: &dyn Fn(&mut Iter) -> Result<()>,
    twin: &dyn Fn(&[T]) -> C128,
    label: &str,
) {
    let mut random = Random(
        label.bytes().fold(T::DTYPE as u64, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b))),
    );
    for round in 0..24 {
        let shape = shape(&mut random);
        let views: Vec<View<T>> =
            (0..inputs).map(|_| View::drawn(&mut random, &shape, true)).collect();
        let columns: Vec<Vec<T>> = views.iter().map(View::values).collect();
        let mut first: Option<Vec<String>> = None;
        for level in SimdLevel::ALL {
            set_level(level);
            let mut out: View<R> = View::drawn(&mut Random(round), &shape, false);
            let refs: Vec<_> = views.iter().map(View::as_ref).collect();
            let mut iter = Iter::new(&[out.as_mut()], &refs).unwrap();
            kernel(&mut iter).unwrap_or_else(|e| panic!("{label} {:?}: {e}", T::DTYPE));
            let got = out.values();
            for (i, value) in got.iter().enumerate() {
                let row: Vec<T> = columns.iter().map(|c| c[i]).collect();
                let want = R::from_c128(twin(&row)).to_c128();
                assert!(
                    close(value.to_c128(), want, tolerance(T::DTYPE)),
                    "{label} {:?} {level:?} {row:?}: got {value:?}, expected {want}",
                    T::DTYPE
                );
            }
            let text: Vec<String> = got.iter().map(|v| format!("{v:?}")).collect();
            assert_eq!(*first.get_or_insert_with(|| text.clone()), text, "{label}: levels differ");
        }
        set_level(SimdLevel::Avx512);
    }
}

fn real(twin: impl Fn(&[f64]) -> f64 + Clone) -> impl Fn(&[f64]) -> C128 {
    move |row| C128::new(twin(row), 0.0)
}

/// A twin in doubles, for every floating dtype.
fn check_floats(
    inputs: usize,
    kernel: &dyn Fn(&mut Iter) -> Result<()>,
    twin: impl Fn(&[f64]) -> f64 + Clone,
    label: &str,
) {
    macro_rules! each {
        ($($t:ty),*) => {$(
            let wide = real(twin.clone());
            check::<$t, $t>(inputs, kernel, &|row| {
                wide(&row.iter().map(|v| v.to_f64()).collect::<Vec<_>>())
            }, label);
        )*};
    }
    each!(f32, f64, f16, bf16);
}

#[test]
fn arithmetic_agrees_with_its_twin_in_integer_and_boolean_dtypes() {
    macro_rules! integers {
        ($($t:ident),*) => {$(
            check::<$t, $t>(2, &|it| ew::add(it, Scalar::Int(1)), &|r| r[0].wrapping_add(r[1]).to_c128(), "add");
            check::<$t, $t>(2, &|it| ew::add(it, Scalar::Int(3)), &|r| r[0].wrapping_add(r[1].wrapping_mul(3)).to_c128(), "add alpha");
            check::<$t, $t>(2, &|it| ew::sub(it, Scalar::Int(1)), &|r| r[0].wrapping_sub(r[1]).to_c128(), "sub");
            check::<$t, $t>(2, &|it| ew::rsub(it, Scalar::Int(2)), &|r| r[1].wrapping_sub(r[0].wrapping_mul(2)).to_c128(), "rsub");
            check::<$t, $t>(2, &ew::mul, &|r| r[0].wrapping_mul(r[1]).to_c128(), "mul");
            check::<$t, $t>(2, &ew::maximum, &|r| r[0].max(r[1]).to_c128(), "maximum");
            check::<$t, $t>(2, &ew::fmin, &|r| r[0].min(r[1]).to_c128(), "fmin");
            check::<$t, $t>(2, &ew::bitwise_and, &|r| (r[0] & r[1]).to_c128(), "and");
            check::<$t, $t>(2, &ew::bitwise_xor, &|r| (r[0] ^ r[1]).to_c128(), "xor");
            check::<$t, $t>(1, &ew::neg, &|r| r[0].wrapping_neg().to_c128(), "neg");
            check::<$t, $t>(1, &ew::bitwise_not, &|r| (!r[0]).to_c128(), "not");
            check::<$t, $t>(1, &ew::square, &|r| r[0].wrapping_mul(r[0]).to_c128(), "square");
            check::<$t, $t>(3, &|it| ew::addcmul(it, Scalar::Int(2)), &|r| {
                r[0].wrapping_add(r[1].wrapping_mul(r[2]).wrapping_mul(2)).to_c128()
            }, "addcmul");
            check::<$t, Bool>(2, &ew::lt, &|r| Bool::new(r[0] < r[1]).to_c128(), "lt");
            check::<$t, Bool>(2, &ew::eq, &|r| Bool::new(r[0] == r[1]).to_c128(), "eq");
            check::<$t, $t>(1, &|it| ew::clamp(it, Some(Scalar::Int(2)), Some(Scalar::Int(50))),
                &|r| r[0].clamp(2, 50).to_c128(), "clamp");
        )*};
    }
    // Values are compared through doubles, which i64's wrapped results need not fit exactly; they are
    // rounded alike on both sides.
    integers!(u8, i8, i16, i32, i64);
    check::<Bool, Bool>(
        2,
        &|it| ew::add(it, Scalar::Int(1)),
        &|r| Bool::new(r[0].get() | r[1].get()).to_c128(),
        "add",
    );
    check::<Bool, Bool>(2, &ew::mul, &|r| Bool::new(r[0].get() & r[1].get()).to_c128(), "mul");
}

#[test]
fn arithmetic_agrees_with_its_twin_in_floating_and_complex_dtypes() {
    check_floats(2, &|it| ew::add(it, Scalar::Float(1.0)), |r| r[0] + r[1], "add");
    check_floats(2, &|it| ew::sub(it, Scalar::Float(1.0)), |r| r[0] - r[1], "sub");
    check_floats(2, &ew::mul, |r| r[0] * r[1], "mul");
    check_floats(2, &ew::true_divide, |r| r[0] / r[1], "div");
    check_floats(1, &ew::neg, |r| -r[0], "neg");
    check_floats(1, &ew::abs, |r| r[0].abs(), "abs");
    check_floats(2, &ew::copysign, |r| r[0].copysign(r[1]), "copysign");
    let nan_first = |a: f64, b: f64, c: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { c };
    check_floats(2, &ew::maximum, move |r| nan_first(r[0], r[1], r[0].max(r[1])), "maximum");
    check_floats(2, &ew::minimum, move |r| nan_first(r[0], r[1], r[0].min(r[1])), "minimum");
    check_floats(2, &ew::fmax, |r| r[0].max(r[1]), "fmax");
    check_floats(2, &ew::fmin, |r| r[0].min(r[1]), "fmin");
    check::<C64, C64>(
        2,
        &|it| ew::add(it, Scalar::Float(1.0)),
        &|r| (r[0] + r[1]).to_c128(),
        "add",
    );
    check::<C128, C128>(
        2,
        &ew::mul,
        &|r| {
            let (a, b) = (r[0], r[1]);
            C128::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
        },
        "mul",
    );
    check::<C64, f32>(
        1,
        &ew::abs,
        &|r| C128::new(f64::from(r[0].re).hypot(f64::from(r[0].im)), 0.0),
        "abs",
    );
    check::<C128, f64>(1, &ew::imag, &|r| C128::new(r[0].im, 0.0), "imag");
    check::<C64, C64>(1, &ew::conj, &|r| r[0].conj().to_c128(), "conj");
}

#[test]
fn functions_of_real_numbers_agree_with_their_twins() {
    type Kernel = fn(&mut Iter) -> Result<()>;
    type Exact = fn(f64) -> f64;
    let all: [(&str, Kernel, Exact); 30] = [
        ("exp", ew::exp, f64::exp),
        ("exp2", ew::exp2, f64::exp2),
        ("expm1", ew::expm1, f64::exp_m1),
        ("log", ew::log, f64::ln),
        ("log2", ew::log2, f64::log2),
        ("log10", ew::log10, f64::log10),
        ("log1p", ew::log1p, f64::ln_1p),
        ("sqrt", ew::sqrt, f64::sqrt),
        ("rsqrt", ew::rsqrt, |x| 1.0 / x.sqrt()),
        ("reciprocal", ew::reciprocal, |x| 1.0 / x),
        ("sin", ew::sin, f64::sin),
        ("cos", ew::cos, f64::cos),
        ("asin", ew::asin, f64::asin),
        ("acos", ew::acos, f64::acos),
        ("atan", ew::atan, f64::atan),
        ("sinh", ew::sinh, f64::sinh),
        ("cosh", ew::cosh, f64::cosh),
        ("tanh", ew::tanh, f64::tanh),
        ("asinh", ew::asinh, |x| {
            let a = x.abs();
            (a + a * a / (1.0 + (a * a + 1.0).sqrt()))
                .ln_1p()
                .copysign(x)
                .max(if x == f64::INFINITY { x } else { f64::NEG_INFINITY })
        }),
        ("atanh", ew::atanh, |x| 0.5 * (2.0 * x / (1.0 - x)).ln_1p()),
        ("sigmoid", ew::sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        ("erf", ew::erf, math_f64::erf),
        ("erfc", ew::erfc, math_f64::erfc),
        ("floor", ew::floor, f64::floor),
        ("ceil", ew::ceil, f64::ceil),
        ("trunc", ew::trunc, f64::trunc),
        ("round", |it| ew::round(it, 0), f64::round_ties_even),
        ("frac", ew::frac, |x| x - x.trunc()),
        ("square", ew::square, |x| x * x),
        ("silu", ew::silu, |x| x / (1.0 + (-x).exp())),
    ];
    for (name, kernel, twin) in all {
        if name == "asinh" {
            // Checked by its units in the last place below; infinities here.
            continue;
        }
        check_floats(1, &kernel, move |r| twin(r[0]), name);
    }
}

#[test]
fn divisions_follow_python() {
    let zero_safe = |b: i64| if b == 0 { 7 } else { b };
    for (a, b) in [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 3), (i64::MIN, -1), (i64::MAX, 10)] {
        let b = zero_safe(b);
        let floor = (a as i128).div_euclid(b as i128)
            - i128::from(b < 0 && (a as i128).rem_euclid(b as i128) != 0);
        assert_eq!(binary(&[a], &[b], ew::floor_divide).unwrap()[0], floor as i64, "{a} // {b}");
        assert_eq!(binary(&[a], &[b], ew::trunc_divide).unwrap()[0], a.wrapping_div(b));
        assert_eq!(binary(&[a], &[b], ew::fmod).unwrap()[0], a.wrapping_rem(b));
        let rest = (a as i128 - floor * b as i128) as i64;
        assert_eq!(binary(&[a], &[b], ew::remainder).unwrap()[0], rest, "{a} % {b}");
    }
    for kernel in [ew::floor_divide, ew::trunc_divide, ew::remainder, ew::fmod] {
        assert_eq!(
            binary(&[5i32, 1], &[1, 0], kernel),
            Err(Error::runtime("ZeroDivisionError".into()))
        );
    }
    let inf = f32::INFINITY;
    let floors = binary(
        &[-7.0, 7.0, -7.0, 1.0, 5.0, -5.0f32],
        &[inf, -inf, -3.0, 0.1, 0.0, 0.0],
        ew::floor_divide,
    );
    assert_eq!(floors.unwrap(), [-1.0, -1.0, 2.0, 9.0, inf, -inf]);
    let rests = binary(&[-7.0, 7.0, -7.0f32], &[inf, -inf, -3.0], ew::remainder);
    assert_eq!(rests.unwrap(), [inf, -inf, -1.0]);
}

#[test]
fn powers_and_shifts_follow_python() {
    let inf = f32::INFINITY;
    assert_eq!(
        binary(&[2i64, 1, -1, 0, 3, 2], &[-1, -2, -3, -1, 4, 64], ew::pow).unwrap(),
        [0, 1, -1, 0, 81, 0]
    );
    assert_eq!(
        binary(&[1i64, -1, 1, -1, 3], &[63, 64, -1, 65, 70], ew::bitwise_left_shift).unwrap(),
        [i64::MIN, 0, 0, 0, 0]
    );
    assert_eq!(
        binary(&[1i64, -8, 3, -8], &[65, -1, 70, 2], ew::bitwise_right_shift).unwrap(),
        [0, -1, 0, -2]
    );
    let two = |it: &mut Iter| ew::pow_scalar(it, Scalar::Int(-1));
    assert_eq!(
        unary(&[1i64], two),
        Err(Error::runtime("Integers to negative integer powers are not allowed.".into()))
    );
    for (x, y) in [
        (-2.0, 3.0),
        (-2.0, 2.0),
        (-2.0, 0.5),
        (0.0, 0.0),
        (-0.0, -3.0),
        (inf, -1.0),
        (-inf, 3.0),
        (1.0, f32::NAN),
        (f32::NAN, 0.0),
        (-1.0, inf),
        (0.5, inf),
        (2.0, -inf),
        (-inf, 0.5),
        (1e-40, 2.0),
        (3.7, 41.5),
    ] {
        let got = binary(&[x], &[y], ew::pow).unwrap()[0];
        let want = x.powf(y);
        assert!(
            got == want || (got.is_nan() && want.is_nan()) || ulps32(got, f64::from(want)) <= 1.0,
            "{x}^{y}: {got} {want}"
        );
    }
}

fn binary<T: Element>(
    a: &[T],
    b: &[T],
    kernel: impl Fn(&mut Iter) -> Result<()>,
) -> Result<Vec<T>> {
    let mut out = vec![T::default(); a.len()];
    let shape = [a.len() as i64];
    // SAFETY: dense live memory of `T`.
    unsafe {
        let views = [a, b].map(|v| StridedRef::new(v.as_ptr().cast(), T::DTYPE, &shape, &[1]));
        let to = StridedMut::new(out.as_mut_ptr().cast(), T::DTYPE, &shape, &[1]);
        kernel(&mut Iter::new(&[to], &views).unwrap())?;
    }
    Ok(out)
}

fn unary<T: Element>(a: &[T], kernel: impl Fn(&mut Iter) -> Result<()>) -> Result<Vec<T>> {
    unary_to::<T, T>(a, kernel)
}

fn unary_to<T: Element, R: Element>(
    a: &[T],
    kernel: impl Fn(&mut Iter) -> Result<()>,
) -> Result<Vec<R>> {
    let mut out = vec![R::default(); a.len()];
    // SAFETY: dense live memory of both types.
    let mut iter = unsafe {
        Iter::contiguous(
            &[(out.as_mut_ptr().cast(), R::DTYPE), (a.as_ptr().cast_mut().cast(), T::DTYPE)],
            1,
            a.len(),
        )
    };
    kernel(&mut iter)?;
    Ok(out)
}

#[test]
fn in_place_calls_equal_calls_with_a_fresh_output() {
    let mut random = Random(3);
    for n in [0usize, 1, 5, 64, 255, 256, 257, 1000, 70_000] {
        let a: Vec<f32> = (0..n).map(|_| random.element()).collect();
        let fresh = unary(&a, ew::exp).unwrap();
        let mut own = a.clone();
        let ptr = own.as_mut_ptr().cast::<u8>();
        // SAFETY: dense live memory; the input is the very same view.
        let mut iter = unsafe { Iter::contiguous(&[(ptr, DType::F32), (ptr, DType::F32)], 1, n) };
        ew::exp(&mut iter).unwrap();
        assert_eq!(format!("{fresh:?}"), format!("{own:?}"));
        // SAFETY: as above.
        let mut iter = unsafe { Iter::contiguous(&[(ptr, DType::F32); 3], 1, n) };
        ew::mul(&mut iter).unwrap();
        let squared: Vec<f32> = fresh.iter().map(|x| x * x).collect();
        assert_eq!(format!("{squared:?}"), format!("{own:?}"));
    }
}

#[test]
fn casts_between_all_dtypes_agree_with_the_element_conversions() {
    let mut random = Random(5);
    let dtypes = || DType::ALL.into_iter().filter(|dtype| !dtype.is_narrow_float());
    for from in dtypes() {
        for to in dtypes() {
            for_dtype!(from, stored, A => for_dtype!(to, stored, R => {
                let shape = shape(&mut random);
                let input: View<A> = View::drawn(&mut random, &shape, true);
                let mut out: View<R> = View::drawn(&mut random, &shape, false);
                ew::cast(&mut Iter::new(&[out.as_mut()], &[input.as_ref()]).unwrap()).unwrap();
                for (got, x) in out.values().iter().zip(input.values()) {
                    let whole = to.is_integral(true) || (to == DType::F64 && from != DType::U64);
                    let want = if from.is_integral(true) && whole {
                        R::from_i64(x.to_i64())
                    } else {
                        R::from_c128(x.to_c128())
                    };
                    let same = format!("{got:?}") == format!("{want:?}");
                    let near = close(got.to_c128(), want.to_c128(), tolerance(to));
                    assert!(same || near, "{from:?} -> {to:?}: {x:?} gave {got:?}, expected {want:?}");
                }
            }, else unreachable!()), else unreachable!());
        }
    }
    let wrapped: Vec<u8> = unary_to(&[300.7f32, -1.5, 1e20, f32::NAN], ew::cast).unwrap();
    assert_eq!(wrapped, [44, 255, 0, 0]);
    let lost = [f64::NAN, f64::INFINITY, -1e300, 3e9];
    assert_eq!(unary_to::<f64, i32>(&lost, ew::cast).unwrap(), [i32::MIN; 4]);
    assert_eq!(unary_to::<f64, i16>(&lost, ew::cast).unwrap(), [0; 4]);
    let wide: Vec<i64> = unary_to(&lost, ew::cast).unwrap();
    assert_eq!(wide, [i64::MIN, i64::MIN, i64::MIN, 3_000_000_000]);
    // Among others that have their place.
    for n in [1, 15, 256, 300] {
        let mut x: Vec<f32> = (0..n).map(|i| 1e17 * i as f32 - 3e18).collect();
        (x[n / 2], x[n - 1], x[0]) = (f32::NAN, -1e19, 9.3e18);
        let wide: Vec<i64> = unary_to(&x, ew::cast).unwrap();
        assert!(x.iter().zip(wide).all(|(&x, y)| y == i64::from_f64(x.into())), "{n}");
    }
    let wide: Vec<u64> = unary_to(&[3e9f64, -1.5, 1e19, f64::NAN], ew::cast).unwrap();
    assert_eq!(wide, [3_000_000_000, u64::MAX, 10_000_000_000_000_000_000, 1 << 63]);
}

#[test]
fn casts_to_and_from_floats_of_a_byte_go_by_way_of_singles() {
    let mut random = Random(6);
    for float8 in Float8::ALL {
        let narrow =
            DType::ALL.into_iter().find(|&dtype| Float8::of(dtype) == Some(float8)).unwrap();
        for other in DType::ALL.into_iter().filter(|dtype| !dtype.is_narrow_float()) {
            for_dtype!(narrow, float8, F => for_dtype!(other, stored, T => {
                let shape = shape(&mut random);
                let input: View<T> = View::drawn(&mut random, &shape, true);
                let mut out: View<F> = View::drawn(&mut random, &shape, false);
                ew::cast(&mut Iter::new(&[out.as_mut()], &[input.as_ref()]).unwrap()).unwrap();
                for (got, x) in out.values().iter().zip(input.values()) {
                    assert_eq!(got.to_bits(), float8.code_of(x.to_f64() as f32), "{x:?} to {narrow:?}");
                }
                let mut back: View<T> = View::drawn(&mut random, &shape, false);
                ew::cast(&mut Iter::new(&[back.as_mut()], &[out.as_ref()]).unwrap()).unwrap();
                for (got, x) in back.values().iter().zip(out.values()) {
                    let want = T::from_f64(x.to_f64());
                    assert_eq!(format!("{got:?}"), format!("{want:?}"), "{x:?} to {other:?}");
                }
            }, else unreachable!()), else unreachable!());
        }
    }
    let pairs = [0_u8; 4];
    // SAFETY: four live bytes.
    let input = unsafe { StridedRef::new(pairs.as_ptr(), DType::F4E2M1FNX2, &[4], &[1]) };
    let mut out = View::<f32>::drawn(&mut random, &[4], false);
    let error = ew::cast(&mut Iter::new(&[out.as_mut()], &[input]).unwrap()).unwrap_err();
    assert!(error.message().contains("\"copy_kernel\" not implemented for 'Float4_e2m1fn_x2'"));
}

#[test]
fn choosing_filling_and_copying_move_bits_of_every_dtype() {
    let mut random = Random(11);
    for dtype in DType::ALL {
        for_dtype!(dtype, stored, T => {
            for _ in 0..20 {
                let shape = shape(&mut random);
                let condition: View<Bool> = View::drawn(&mut random, &shape, true);
                let a: View<T> = View::drawn(&mut random, &shape, true);
                let b: View<T> = View::drawn(&mut random, &shape, true);
                let mut out: View<T> = View::drawn(&mut random, &shape, false);
                let inputs = [condition.as_ref(), a.as_ref(), b.as_ref()];
                ew::where_(&mut Iter::new(&[out.as_mut()], &inputs).unwrap()).unwrap();
                let (c, a_values, b_values) = (condition.values(), a.values(), b.values());
                for (i, got) in out.values().iter().enumerate() {
                    let want = if c[i].get() { a_values[i] } else { b_values[i] };
                    assert_eq!(format!("{got:?}"), format!("{want:?}"));
                }
                ew::copy(&mut Iter::new(&[out.as_mut()], &[a.as_ref()]).unwrap()).unwrap();
                assert_eq!(format!("{:?}", out.values()), format!("{a_values:?}"));
                let three: T = Scalar::Int(3).to();
                ew::fill(&mut Iter::new(&[out.as_mut()], &[]).unwrap(), Scalar::Int(3)).unwrap();
                assert!(out.values().iter().all(|v| format!("{v:?}") == format!("{three:?}")));
                if !matches!(dtype, DType::U16 | DType::U32 | DType::U64) && !dtype.is_narrow_float() {
                    let inputs = [a.as_ref(), condition.as_ref()];
                    ew::masked_fill(&mut Iter::new(&[out.as_mut()], &inputs).unwrap(), Scalar::Int(3)).unwrap();
                    for (i, got) in out.values().iter().enumerate() {
                        let want = if c[i].get() { three } else { a_values[i] };
                        assert_eq!(format!("{got:?}"), format!("{want:?}"));
                    }
                }
            }
        }, else ());
    }
}

#[test]
fn large_copies_of_transposed_views_are_complete() {
    for (rows, columns) in [(1000usize, 1003usize), (5, 70_001), (70_001, 3)] {
        let data: Vec<i32> = (0..(rows * columns) as i32).collect();
        let mut out = vec![0i32; rows * columns];
        let shape = [columns as i64, rows as i64];
        let (across, along) = ([1, columns as i64], [rows as i64, 1]);
        // SAFETY: dense live memory; the input is the transposed matrix.
        unsafe {
            let from = StridedRef::new(data.as_ptr().cast(), DType::I32, &shape, &across);
            let to = StridedMut::new(out.as_mut_ptr().cast(), DType::I32, &shape, &along);
            ew::copy(&mut Iter::new(&[to], &[from]).unwrap()).unwrap();
        }
        for j in 0..columns {
            for i in 0..rows {
                assert_eq!(out[j * rows + i], data[i * columns + j]);
            }
        }
    }
}

#[test]
fn limits_and_kinds_treat_nan_as_pytorch_does() {
    let nan = f32::NAN;
    let clamp = |low, high| move |it: &mut Iter| ew::clamp(it, low, high);
    let got =
        unary(&[nan, 1.0, 5.0], clamp(Some(Scalar::Float(2.0)), Some(Scalar::Float(f64::NAN))))
            .unwrap();
    assert!(got.iter().all(|x| x.is_nan()));
    assert_eq!(
        unary(&[1.0f32, 5.0], clamp(Some(Scalar::Int(4)), Some(Scalar::Int(2)))).unwrap(),
        [2.0, 2.0]
    );
    let relu = unary(&[nan, -0.0, -1.0, 2.0f32], ew::relu).unwrap();
    assert!(
        relu[0].is_nan() && relu[1].to_bits() == (-0.0f32).to_bits() && relu[2..] == [0.0, 2.0]
    );
    assert_eq!(unary(&[nan, -0.0, f32::INFINITY], ew::sign).unwrap(), [0.0, 0.0, 1.0]);
    assert_eq!(
        binary(&[nan, 0.0, -1.0, 1.0f32], &[nan, 2.0, 3.0, 4.0], ew::heaviside).unwrap(),
        [0.0, 2.0, 0.0, 1.0]
    );
    let clean = unary(&[nan, f32::INFINITY, -f32::INFINITY, 3.0], |it| {
        ew::nan_to_num(it, None, None, None)
    })
    .unwrap();
    assert_eq!(clean, [0.0, f32::MAX, f32::MIN, 3.0]);
    let clean =
        unary(&[f16::NAN, f16::INFINITY], |it| ew::nan_to_num(it, None, None, None)).unwrap();
    assert_eq!(clean, [f16::ZERO, f16::MAX]);
    let close = |a: f32, b: f32, equal_nan| {
        let mut out = [Bool::default()];
        let operands = [
            (out.as_mut_ptr().cast(), DType::Bool),
            ((&raw const a).cast_mut().cast(), DType::F32),
            ((&raw const b).cast_mut().cast(), DType::F32),
        ];
        // SAFETY: single live elements.
        let mut iter = unsafe { Iter::contiguous(&operands, 1, 1) };
        ew::isclose(&mut iter, 1e-5, 1e-8, equal_nan).unwrap();
        out[0].get()
    };
    assert!(
        close(f32::INFINITY, f32::INFINITY, false)
            && !close(nan, nan, false)
            && close(nan, nan, true)
    );
    assert!(
        close(1.0, 1.000_005, false)
            && !close(1.0, 1.1, false)
            && !close(1.0, f32::INFINITY, false)
    );
    assert_eq!(unary(&[123.456, -1.25f64], |it| ew::round(it, 2)).unwrap(), [123.46, -1.25]);
    assert_eq!(
        unary(&[123.456f32, -1.25, 155.0], |it| ew::round(it, -1)).unwrap(),
        [120.0, -0.0, 160.0]
    );
}

/// An activation, its backward, and whether that takes the result instead of the input.
type Activation = (&'static str, fn(&mut Iter) -> Result<()>, fn(&mut Iter) -> Result<()>, bool);

fn elu(it: &mut Iter) -> Result<()> {
    ew::elu(it, Scalar::Float(1.2), Scalar::Float(0.9), Scalar::Float(1.1))
}

fn elu_backward(it: &mut Iter, from_result: bool) -> Result<()> {
    let (alpha, scale) = (Scalar::Float(1.2), Scalar::Float(0.9));
    ew::elu_backward(it, alpha, scale, Scalar::Float(1.1), from_result)
}

#[test]
fn derivatives_of_activations_agree_with_differences() {
    let pairs: [Activation; 12] = [
        ("gelu", |it| ew::gelu(it, false), |it| ew::gelu_backward(it, false), false),
        ("gelu tanh", |it| ew::gelu(it, true), |it| ew::gelu_backward(it, true), false),
        ("silu", ew::silu, ew::silu_backward, false),
        ("mish", ew::mish, ew::mish_backward, false),
        ("sigmoid", ew::sigmoid, ew::sigmoid_backward, true),
        ("tanh", ew::tanh, ew::tanh_backward, true),
        (
            "softplus",
            |it| ew::softplus(it, Scalar::Float(1.5), Scalar::Int(20)),
            |it| ew::softplus_backward(it, Scalar::Float(1.5), Scalar::Int(20)),
            false,
        ),
        ("elu", elu, |it| elu_backward(it, false), false),
        ("elu result", elu, |it| elu_backward(it, true), true),
        ("log_sigmoid", ew::log_sigmoid, ew::log_sigmoid_backward, false),
        ("hardswish", ew::hardswish, ew::hardswish_backward, false),
        (
            "leaky_relu",
            |it| ew::leaky_relu(it, Scalar::Float(0.1)),
            |it| ew::leaky_relu_backward(it, Scalar::Float(0.1)),
            false,
        ),
    ];
    let x: Vec<f64> = (-40..40).map(|i| f64::from(i) * 0.17 + 0.013).collect();
    let h = 1e-6;
    for (name, forward, backward, from_result) in pairs {
        let y = unary(&x, forward).unwrap();
        let up = unary(&x.iter().map(|v| v + h).collect::<Vec<_>>(), forward).unwrap();
        let down = unary(&x.iter().map(|v| v - h).collect::<Vec<_>>(), forward).unwrap();
        let g = vec![2.0; x.len()];
        let got = binary(&g, if from_result { &y } else { &x }, backward).unwrap();
        for i in 0..x.len() {
            let want = (up[i] - down[i]) / h;
            assert!(
                (got[i] - want).abs() < 1e-7 * (1.0 + want.abs()),
                "{name}({}): {} against {want}",
                x[i],
                got[i]
            );
        }
    }
}

#[test]
fn dtypes_that_pytorch_refuses_are_refused_in_its_words() {
    assert_eq!(
        unary(&[1u16], ew::neg).unwrap_err().message(),
        "\"neg_cpu\" not implemented for 'UInt16'"
    );
    assert_eq!(
        unary(&[C64::default()], ew::erf).unwrap_err().message(),
        "\"erf_vml_cpu\" not implemented for 'ComplexFloat'"
    );
    assert!(
        unary(&[Bool::default()], ew::neg)
            .unwrap_err()
            .message()
            .starts_with("Negation, the `-` operator")
    );
    assert_eq!(
        unary(&[1i64], ew::frac).unwrap_err().message(),
        "\"frac_cpu\" not implemented for 'Long'"
    );
    // Operands that do not belong together are refused, not misread.
    assert!(unary_to::<f64, f32>(&[1.0], ew::exp).is_err());
}

#[test]
fn losses_of_elements_agree_with_their_twins() {
    let bent = |z: f64, limit: f64| {
        if z > limit { limit * (z - 0.5 * limit) } else { 0.5 * z * z }
    };
    check_floats(2, &ew::squared_difference, |r| (r[0] - r[1]) * (r[0] - r[1]), "mse");
    check_floats(2, &|it| ew::huber(it, 1.5), move |r| bent((r[0] - r[1]).abs(), 1.5), "huber");
    let smooth = move |r: &[f64]| bent((r[0] - r[1]).abs(), 0.5) / 0.5;
    check_floats(2, &|it| ew::smooth_l1(it, 0.5), smooth, "smooth l1");
    check_floats(2, &|it| ew::smooth_l1(it, 0.0), |r| (r[0] - r[1]).abs(), "l1");
    check_floats(1, &|it| ew::scaled(it, 0.25), |r| 0.25 * r[0], "scaled");
    check_floats(2, &|it| ew::scaled_product(it, 0.5), |r| 0.5 * r[0] * r[1], "scaled product");
}

#[test]
fn cross_entropies_agree_with_their_formulas_and_have_limits() {
    let at_least = |log: f64| log.max(-100.0);
    for t in [0.0, 0.3, 1.0] {
        let xs = [0.0, 1e-300, 0.2, 0.5, 0.9, 1.0];
        let targets = [t; 6];
        let got = binary(&xs, &targets, |it| ew::binary_cross_entropy(it, false)).unwrap();
        for (x, got) in xs.into_iter().zip(got) {
            let want = -(t * at_least(f64::ln(x)) + (1.0 - t) * at_least(f64::ln_1p(-x)));
            assert!((got - want).abs() <= 1e-13 * want.abs().max(1.0), "{x} {t}: {got} for {want}");
        }
        let xs = [-800.0, -3.0, 0.0, 0.7, 20.0, 800.0];
        let kernel = |it: &mut Iter| ew::binary_cross_entropy_with_logits(it, false);
        let got = binary(&xs, &targets, kernel).unwrap();
        for (x, got) in xs.into_iter().zip(got) {
            let log_sigmoid = |x: f64| x.min(0.0) - (-x.abs()).exp().ln_1p();
            let want = -(t * log_sigmoid(x) + (1.0 - t) * log_sigmoid(-x));
            assert!((got - want).abs() <= 1e-13 * want.abs().max(1.0), "{x} {t}: {got} for {want}");
        }
    }
    let got = binary(&[0.5, -2.0], &[1.0, -1.0], ew::soft_margin).unwrap();
    for (got, z) in got.into_iter().zip([-0.5_f64, -2.0]) {
        assert!((got - z.exp().ln_1p()).abs() < 1e-15, "{got} for {z}");
    }
    let whole = binary(&[1_i64], &[1], |it| ew::binary_cross_entropy(it, false)).unwrap_err();
    assert!(whole.message().contains("\"binary_cross_entropy\" not implemented for 'Long'"));
}
