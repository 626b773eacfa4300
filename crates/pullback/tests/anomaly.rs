//! Anomaly mode without Python. One program of its own, as the mode is one for all threads.

use pullback::autograd::anomaly::{detect_anomaly, is_anomaly_enabled, set_detect_anomaly};
use pullback::autograd::{Context, Function, apply};
use pullback::{Error, Result, Tensor, take_warnings};
use std::sync::{Mutex, PoisonError};

/// The tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn leaf() -> Result<Tensor> {
    Tensor::from_slice(&[1.0_f64, 2.0], &[2])?.with_grad()
}

struct Fails;

impl Function for Fails {
    fn forward(&self, _: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![inputs[0].exp()?])
    }
    fn backward(&self, _: &Context, _: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        Err(Error::runtime("as it is meant to"))
    }
}

fn the_line_that_failed(x: &Tensor) -> Result<Tensor> {
    Ok(apply(Fails, &[x])?.remove(0))
}

#[test]
fn an_error_shows_where_its_node_was_made() -> Result<()> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let error = detect_anomaly(true, || the_line_that_failed(&leaf()?)?.sum()?.backward());
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("as it is meant to\n\n  FailsBackward was made here:\n"), "{error}");
    assert!(error.ends_with("Ok(apply(Fails, &[x])?.remove(0))"), "{error}");
    let warnings = take_warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("Error detected in FailsBackward. Traceback of forward call"));
    assert!(warnings[0].contains("the_line_that_failed"), "{}", warnings[0]);
    assert!(!is_anomaly_enabled());
    Ok(())
}

#[test]
fn what_was_made_before_has_no_place() -> Result<()> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let y = the_line_that_failed(&leaf()?)?.sum()?;
    assert!(detect_anomaly(true, || y.backward()).is_err());
    let warnings = take_warnings();
    assert!(warnings[0].contains("No forward pass information available"), "{warnings:?}");
    assert!(the_line_that_failed(&leaf()?)?.sum()?.backward().is_err());
    assert_eq!(take_warnings(), Vec::<String>::new());
    Ok(())
}

#[test]
fn nan_is_an_error_only_if_it_is_looked_for() -> Result<()> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for looks in [true, false] {
        let zero = Tensor::from_slice(&[0.0_f64, 0.0], &[2])?;
        let y = detect_anomaly(looks, || leaf()?.mul(&zero)?.sqrt()?.sum());
        let result = detect_anomaly(looks, || y?.backward());
        assert_eq!(result.is_err(), looks);
        let found = result.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(!looks || found.contains("returned nan values in its"), "{found}");
        assert_eq!(take_warnings().len(), usize::from(looks));
    }
    set_detect_anomaly(false, true);
    Ok(())
}
