//! Numbers among the arguments: none loses its imaginary part without a word.

use super::registry::{for_all, functional, text};
use pullback::dispatch::{Traits, Value};
use pullback::{DType, Scalar};
use std::cell::Cell;

#[test]
fn a_complex_number_makes_real_results_complex_or_is_refused() {
    let tried = Cell::new(0);
    for_all("imaginary parts are kept or refused", DType::F64, |def, sample| {
        let values = sample.values(def).map_err(text)?;
        let numbers = values.iter().enumerate().filter(|(_, v)| matches!(v, Value::Scalar(_)));
        for (at, _) in numbers {
            let mut complex = values.clone();
            complex[at] = Value::Scalar(Scalar::Complex(0.75, 1.5));
            tried.set(tried.get() + 1);
            let Ok(outputs) = functional(def, &complex) else { continue };
            // Comparisons and counts look at the whole number.
            let is_real = |t: &pullback::Tensor| t.dtype().is_floating_point();
            if !def.is(Traits::NOT_DIFFERENTIABLE) && outputs.iter().any(is_real) {
                return Err(format!("argument {} lost its imaginary part", def.args[at].name));
            }
        }
        Ok(())
    });
    assert!(tried.get() > 100 || std::env::var("PULLBACK_OP").is_ok(), "{tried:?} numbers");
}
