//! Errors of the graph name the lines of the Rust program that made them so.

use pullback::autograd::{self, BackwardOptions, Context, Function, apply};
use pullback::{Error, Result, Tensor};
use std::panic::Location;

#[track_caller]
fn line() -> u32 {
    Location::caller().line()
}

fn leaf() -> Result<Tensor> {
    Tensor::from_slice(&[1.0, 2.0, 3.0], &[3])?.with_grad()
}

/// That the error names these lines of this file, in this order, each with its text.
#[track_caller]
fn assert_names(error: &Error, lines: &[(u32, &str)]) {
    let mut rest = error.message();
    for (line, text) in lines {
        let wanted = format!("tests/blame.rs\", line {line}\n      {text}");
        let at = rest.find(&wanted);
        rest = &rest[at.unwrap_or_else(|| panic!("no {wanted:?} in\n{error}"))..];
    }
}

#[test]
fn a_stale_value_names_who_saved_it_and_who_wrote() -> Result<()> {
    let (x, made) = (leaf()?, line() + 1);
    let y = x.exp()?;
    y.add_(&Tensor::from_slice(&[1.0], &[1])?)?;
    let error = y.sum()?.backward().unwrap_err();
    assert_names(
        &error,
        &[(made, "let y = x.exp()?;"), (made + 1, "y.add_(&Tensor::from_slice(&[1.0], &[1])?)?;")],
    );
    assert!(error.message().contains("add_ changed it here"), "{error}");
    Ok(())
}

#[test]
fn a_freed_graph_names_the_op_and_the_backward_that_freed_it() -> Result<()> {
    let (x, made) = (leaf()?, line() + 1);
    let y = (&x * &x).get()?.sum()?;
    y.backward()?;
    let error = y.backward().unwrap_err();
    assert_names(
        &error,
        &[(made, "let y = (&x * &x).get()?.sum()?;"), (made + 1, "y.backward()?;")],
    );
    assert!(error.message().contains("Hint: give the first backward retain_graph=True"), "{error}");
    Ok(())
}

#[test]
fn an_input_without_gradient_names_both_ends() -> Result<()> {
    let (x, made) = (leaf()?, line() + 1);
    let other = x.mul(&x)?;
    let y = x.sum()?;
    let error = autograd::grad(&[&y], &[&other], &[None], BackwardOptions::default()).unwrap_err();
    assert_names(&error, &[(made + 1, "let y = x.sum()?;"), (made, "let other = x.mul(&x)?;")]);
    Ok(())
}

#[test]
fn a_refused_write_names_itself_and_the_view() -> Result<()> {
    let (x, made) = (leaf()?, line() + 1);
    let view = x.i(..2)?;
    let error = view.zero_().unwrap_err();
    assert_names(
        &error,
        &[(made + 1, "let error = view.zero_().unwrap_err();"), (made, "let view = x.i(..2)?;")],
    );
    Ok(())
}

#[test]
fn an_op_made_of_ops_is_one_line() -> Result<()> {
    let a = Tensor::from_slice(&[1.0, 2.0], &[1, 2])?.with_grad()?;
    let made = line() + 1;
    let y = a.matmul(&a.t()?)?;
    let node = y.grad_fn()?.unwrap();
    let line = node.call_site().source_line().unwrap();
    assert_eq!((line.line, line.text.unwrap().trim_start().starts_with("let y")), (made, true));
    Ok(())
}

/// Gives a gradient of another size.
struct Wrong;
impl Function for Wrong {
    fn forward(&self, _: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![inputs[0].exp()?])
    }
    fn backward(&self, _: &Context, _: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(Tensor::from_slice(&[1.0; 7], &[7])?)])
    }
}

#[test]
fn a_custom_function_that_gives_nonsense_is_named_by_its_call() -> Result<()> {
    let (x, made) = (leaf()?, line() + 1);
    let y = apply(Wrong, &[&x])?.remove(0);
    let error = y.sum()?.backward().unwrap_err();
    assert!(error.message().contains("returned an invalid gradient at index 0"), "{error}");
    assert_names(&error, &[(made, "let y = apply(Wrong, &[&x])?.remove(0);")]);
    Ok(())
}

#[test]
fn nodes_made_by_backward_are_blamed_on_the_forward_line() -> Result<()> {
    let (x, made) = (leaf()?, line() + 1);
    let y = x.mul(&x)?.mul(&x)?;
    let options = BackwardOptions { create_graph: true, ..BackwardOptions::default() };
    let slope = autograd::grad(&[&y.sum()?], &[&x], &[None], options)?.remove(0).unwrap();
    let mut nodes = vec![slope.grad_fn()?.unwrap()];
    let mut lines = Vec::new();
    while let Some(node) = nodes.pop() {
        lines.extend(node.call_site().source_line().map(|line| line.line));
        nodes.extend(node.next_edges().iter().filter_map(|edge| edge.node.clone()));
    }
    assert!(
        lines.len() > 4 && lines.iter().all(|&line| line == made || line == made + 2),
        "{lines:?}"
    );
    Ok(())
}
