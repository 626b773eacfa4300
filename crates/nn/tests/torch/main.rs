//! Layers, initialisers, optimisers, schedules and orders beside what PyTorch gave for the same seeds.
//!
//! `recorded/record.py` wrote the numbers, and has the same cases by name. Initial values are compared to the bit: they are
//! PyTorch's streams. What is computed from them is compared up to rounding.

mod layers;
mod training;

use pullback::{Result, Tensor};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was recorded of a tensor.
pub(crate) struct Recorded {
    shape: Vec<i64>,
    sum: f64,
    /// All elements, or the first and the last four.
    ends: Vec<f64>,
}

/// The rows of a case, by entry.
pub(crate) fn recorded(case: &str) -> HashMap<&'static str, Recorded> {
    let numbers = |text: &str| -> Vec<f64> {
        text.split(',').filter(|t| !t.is_empty()).map(|t| t.parse().unwrap()).collect()
    };
    let mut rows = HashMap::new();
    for line in include_str!("../recorded/torch.tsv").lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        if columns[0] == case {
            let shape = numbers(columns[2]).into_iter().map(|size| size as i64).collect();
            let sum = columns[3].parse().unwrap();
            rows.insert(columns[1], Recorded { shape, sum, ends: numbers(columns[4]) });
        }
    }
    assert!(!rows.is_empty(), "nothing was recorded of {case}");
    rows
}

/// Compares a tensor with what was recorded; elements within `tolerance` of it, relative to the larger of it and one.
pub(crate) fn compare(what: &str, got: &Tensor, expected: &Recorded, tolerance: f64) -> Result<()> {
    assert_eq!(got.shape(), expected.shape, "shape of {what}");
    let elements = got.detach()?.to_vec::<f64>()?;
    let ends = if elements.len() <= 8 {
        elements.clone()
    } else {
        [&elements[..4], &elements[elements.len() - 4..]].concat()
    };
    let near = |a: f64, b: f64, scale: f64| (a - b).abs() <= tolerance * scale * b.abs().max(1.0);
    for (index, (&a, &b)) in ends.iter().zip(&expected.ends).enumerate() {
        assert!(near(a, b, 1.0), "element {index} of {what}: {a}, PyTorch has {b}");
    }
    let sum: f64 = elements.iter().sum();
    let scale = elements.len() as f64;
    let of_sums = if tolerance == 0.0 { 1e-12 } else { tolerance };
    let limit = of_sums * scale * expected.sum.abs().max(1.0);
    assert!((sum - expected.sum).abs() <= limit, "sum of {what}: {sum}, not {}", expected.sum);
    Ok(())
}

/// The default generator, which one test at a time may use, with this seed.
pub(crate) fn seeded(seed: u64) -> MutexGuard<'static, ()> {
    static DEFAULT: Mutex<()> = Mutex::new(());
    let guard = DEFAULT.lock().unwrap_or_else(PoisonError::into_inner);
    pullback::manual_seed(seed);
    guard
}
