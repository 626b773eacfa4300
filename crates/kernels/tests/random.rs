//! The random streams against numbers recorded from PyTorch 2.15: same bytes, and the same place in
//! the stream afterwards.

mod array;

use array::Array;
use pullback_kernels::random::{self, DEFAULT_SEED, Generator, STATE_SIZE};
use pullback_kernels::{C128, DType};

const RECORDED: &str = include_str!("recorded/random.txt");

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

fn dtype_of(name: &str) -> DType {
    *DType::ALL.iter().find(|d| format!("{d:?}") == name).unwrap()
}

/// The probabilities that the recording used: 1/8 to 7/8, over and over.
fn probabilities(dtype: DType, n: i64) -> Array {
    let mut p = Array::zeros(dtype, &[n]);
    (0..n as usize).for_each(|i| p.put(i, C128::new(((i % 7) + 1) as f64 / 8.0, 0.0)));
    p
}

fn run(name: &str, dtype: DType, n: i64, g: &mut Generator) -> Array {
    let mut out = Array::zeros(dtype, &[n]);
    let mut sampled = |draws: i64, replacement: bool| {
        let mut out = Array::zeros(DType::I64, &[draws]);
        random::multinomial(&mut out.view_mut(), probabilities(dtype, n).view(), replacement, g)
            .unwrap();
        out
    };
    match name {
        "multinomial(1)" => return sampled(1, false),
        "multinomial(20,true)" => return sampled(20, true),
        "multinomial(n)" => return sampled(n, false),
        "randn_transposed" | "rand_transposed" => {
            let mut out = Array::with_strides(dtype, &[10, 6], &[1, 10]);
            if name.starts_with("randn") {
                random::randn(&mut out.view_mut(), g).unwrap();
            } else {
                random::rand(&mut out.view_mut(), g).unwrap();
            }
            return out;
        }
        _ => {}
    }
    let o = &mut out.view_mut();
    match name {
        "rand" => random::rand(o, g),
        "randn" => random::randn(o, g),
        "uniform(-2,3)" => random::uniform(o, -2.0, 3.0, g),
        "normal(2,3)" => random::normal(o, 2.0, 3.0, g),
        "normal(0.3,1.7)" => random::normal(o, 0.3, 1.7, g),
        "random" => random::random(o, g),
        "randint(-5,77)" => random::randint(o, -5, Some(77), g),
        "randint(5,77)" => random::randint(o, 5, Some(77), g),
        "randint(0,1<<28)" => random::randint(o, 0, Some(1 << 28), g),
        "randint(min,none)" => random::randint(o, i64::MIN, None, g),
        "randint(-7,1<<40)" => random::randint(o, -7, Some(1 << 40), g),
        "bernoulli(0.3)" => random::bernoulli(o, 0.3, g),
        "bernoulli_tensor" => random::bernoulli_tensor(o, probabilities(dtype, n).view(), g),
        "exponential(1)" => random::exponential(o, 1.0, g),
        "exponential(2.5)" => random::exponential(o, 2.5, g),
        "cauchy(1,2)" => random::cauchy(o, 1.0, 2.0, g),
        "log_normal(0.5,0.7)" => random::log_normal(o, 0.5, 0.7, g),
        "log_normal(1,2)" => random::log_normal(o, 1.0, 2.0, g),
        "geometric(0.3)" => random::geometric(o, 0.3, g),
        "randperm" => random::randperm(o, g),
        other => panic!("unknown recording {other}"),
    }
    .unwrap();
    out
}

#[test]
fn streams_equal_the_recorded_ones() {
    let mut failures = Vec::new();
    for line in RECORDED.lines().filter(|l| !l.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let [name, dtype, n, seed, hash, next] = fields[..] else { panic!("{line}") };
        let mut g = Generator::new(seed.parse().unwrap());
        let out = run(name, dtype_of(dtype), n.parse().unwrap(), &mut g);
        let hash = u64::from_str_radix(&hash[2..], 16).unwrap();
        let ends = next.parse::<u32>().unwrap() == g.next_u32() & 0x7fff_ffff;
        if fnv1a(&out.bytes()) != hash || !ends {
            let values: Vec<f64> = out.values().into_iter().take(4).collect();
            failures.push(format!("{line} (stream position ok: {ends}) {values:?}"));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn state_has_the_recorded_layout() {
    let mut g = Generator::new(77);
    let mut out = Array::zeros(DType::F32, &[3]);
    random::randn(&mut out.view_mut(), &mut g).unwrap();
    assert_eq!(g.state().len(), STATE_SIZE);
    assert_eq!(fnv1a(&g.state()), 10_913_254_242_942_272_068);
    let mut g = Generator::new(77);
    for (n, hash) in [
        (624, 629_147_692_225_249_068),
        (1, 10_101_327_796_204_079_019),
        (2000, 11_777_196_273_283_606_283),
    ] {
        let mut out = Array::zeros(DType::F32, &[n]);
        random::rand(&mut out.view_mut(), &mut g).unwrap();
        assert_eq!(fnv1a(&g.state()), hash, "after {n}");
    }
}

#[test]
fn state_round_trips_with_a_cached_normal() {
    let mut g = Generator::new(3);
    g.next_normal();
    g.next_u32();
    let mut h = Generator::default();
    assert_eq!(h.seed(), DEFAULT_SEED);
    h.set_state(&g.state()).unwrap();
    for _ in 0..2000 {
        assert_eq!(g.next_normal().to_bits(), h.next_normal().to_bits());
        assert_eq!(g.next_u64(), h.next_u64());
    }
    assert!(h.set_state(&[0; 10]).unwrap_err().message().contains("RNG state size"));
    assert!(h.set_state(&[0; STATE_SIZE]).is_err());
}

#[test]
fn bulk_draws_equal_single_ones() {
    for n in [1_usize, 7, 623, 624, 625, 3000] {
        let (mut g, mut h) = (Generator::new(1), Generator::new(1));
        g.next_u32();
        h.next_u32();
        let mut bulk = vec![0; n];
        g.fill_u32(&mut bulk);
        assert!(bulk.iter().all(|&x| x == h.next_u32()));
        let mut bulk = vec![0; n];
        g.fill_u64(&mut bulk);
        assert!(bulk.iter().all(|&x| x == h.next_u64()));
        assert_eq!(g.state(), h.state());
    }
}

#[test]
fn bad_parameters_are_refused() {
    let mut g = Generator::new(0);
    let mut f = Array::zeros(DType::F32, &[2]);
    let o = &mut f.view_mut();
    let message = |r: pullback_kernels::Result<()>| r.unwrap_err().message().to_string();
    assert_eq!(
        message(random::uniform(o, 2.0, 1.0, &mut g)),
        "uniform_ expects to return a [from, to) range, but found from=2 > to=1"
    );
    assert_eq!(
        message(random::normal(o, 0.0, -1.0, &mut g)),
        "normal expects std >= 0.0, but found std -1"
    );
    assert_eq!(
        message(random::randint(o, 3, Some(3), &mut g)),
        "random_ expects 'from' to be less than 'to', but got from=3 >= to=3"
    );
    assert_eq!(
        message(random::bernoulli(o, 2.0, &mut g)),
        "bernoulli_ expects p to be in [0, 1], but got p=2"
    );
    assert_eq!(
        message(random::exponential(o, -1.0, &mut g)),
        "exponential_ expects lambda > 0.0, but found lambda=-1"
    );
    let mut bytes = Array::zeros(DType::U8, &[2]);
    assert_eq!(
        message(random::randint(&mut bytes.view_mut(), 0, Some(300), &mut g)),
        "to - 1 is out of bounds for unsigned char"
    );
    let mut shorts = Array::zeros(DType::U16, &[2]);
    assert_eq!(
        message(random::randint(&mut shorts.view_mut(), -1, Some(3), &mut g)),
        "from is out of bounds for short unsigned int"
    );
    let mut out = Array::zeros(DType::I64, &[1]);
    let p = Array::vector(&[0.0_f32, 0.0]);
    assert_eq!(
        message(random::multinomial(&mut out.view_mut(), p.view(), true, &mut g)),
        "invalid multinomial distribution (sum of probabilities <= 0)"
    );
    let p = Array::vector(&[-1.0_f32, 2.0]);
    assert_eq!(
        message(random::multinomial(&mut out.view_mut(), p.view(), true, &mut g)),
        "probability tensor contains either `inf`, `nan` or element < 0"
    );
    let mut bytes = Array::zeros(DType::U8, &[300]);
    assert!(message(random::randperm(&mut bytes.view_mut(), &mut g)).contains("without overflow"));
}

#[test]
fn unsigned_integers_are_drawn_from_the_stream_of_signed_ones() {
    for dtype in [DType::U16, DType::U32, DType::U64] {
        let drawn = |dtype: DType| {
            let (mut g, mut out) = (Generator::new(7), Array::zeros(dtype, &[50]));
            random::randint(&mut out.view_mut(), 3, Some(60_000), &mut g).unwrap();
            random::randint(&mut out.view_mut(), 0, Some(1 << 16), &mut g).unwrap();
            out.values()
        };
        assert_eq!(drawn(dtype), drawn(DType::I64), "{dtype:?}");
    }
    let mut out = Array::zeros(DType::U64, &[50]);
    random::randint(&mut out.view_mut(), 0, None, &mut Generator::new(7)).unwrap();
    assert!(out.values().iter().any(|&x| x >= 2.0_f64.powi(63)));
}
