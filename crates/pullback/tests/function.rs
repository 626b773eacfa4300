//! Custom functions in Rust.

use pullback::autograd::{self, Context, Function, Options, apply};
use pullback::{Result, Tensor};

fn vector(data: &[f64]) -> Tensor {
    Tensor::from_slice(data, &[data.len() as i64]).unwrap()
}

type Gradients = Vec<Option<Tensor>>;

/// `a * b` and `a + b`.
struct Both {
    materialize: bool,
}

impl Function for Both {
    fn forward(&self, ctx: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        assert!(!pullback::is_grad_enabled(), "forward is not recorded");
        ctx.save_for_backward(&inputs[0]);
        ctx.save_for_backward(&inputs[1]);
        ctx.set_materialize_grads(self.materialize);
        Ok(vec![inputs[0].mul(&inputs[1])?, inputs[0].add(&inputs[1])?])
    }
    fn backward(&self, ctx: &Context, grads: &[Option<Tensor>]) -> Result<Gradients> {
        assert_eq!(grads[1].is_some(), self.materialize);
        let saved = ctx.saved_tensors()?;
        let product = grads[0].as_ref().unwrap();
        let first = product.mul(&saved[1])?;
        let second = ctx.needs_input_grad(1).then(|| product.mul(&saved[0])).transpose()?;
        Ok(vec![Some(first), second])
    }
}

#[test]
fn saved_tensors_needs_and_missing_gradients_reach_backward() -> Result<()> {
    for materialize in [true, false] {
        let (a, b) = (vector(&[2.0, 3.0]).with_grad()?, vector(&[5.0, 7.0]));
        let outputs = apply(Both { materialize }, &[&a, &b])?;
        assert_eq!(outputs[0].grad_fn()?.unwrap().name(), "BothBackward");
        assert_eq!(outputs[1].output_nr(), 1);
        outputs[0].sum()?.backward()?;
        assert_eq!(a.grad().unwrap().to_vec::<f64>()?, [5.0, 7.0]);
        assert!(b.grad().is_none());
        let again = outputs[0].sum()?.backward().unwrap_err();
        assert!(again.message().contains("a second time"), "{again}");
    }
    Ok(())
}

#[test]
fn a_backward_made_of_ops_has_higher_derivatives() -> Result<()> {
    let (a, b) = (vector(&[2.0]).with_grad()?, vector(&[5.0]).with_grad()?);
    let y = apply(Both { materialize: true }, &[&a, &b])?.remove(0);
    let options = Options { create_graph: true, ..Default::default() };
    let g = autograd::grad(&[&y], &[&a], &[None], options)?.remove(0).unwrap();
    let h = autograd::grad(&[&g], &[&b], &[None], Options::default())?.remove(0).unwrap();
    assert_eq!(h.to_vec::<f64>()?, [1.0]);
    Ok(())
}

#[test]
fn writing_to_what_was_saved_is_detected() -> Result<()> {
    let (a, b) = (vector(&[2.0]).with_grad()?, vector(&[5.0]));
    let y = apply(Both { materialize: true }, &[&a, &b])?.remove(0);
    b.zero_()?;
    let error = y.backward().unwrap_err();
    assert!(error.message().contains("modified by an inplace operation"), "{error}");
    Ok(())
}

/// Doubles in place; its second output has no gradient.
struct DoubleInPlace;

impl Function for DoubleInPlace {
    fn forward(&self, ctx: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let sign = inputs[0].sign()?;
        inputs[0].add_(&inputs[0].clone_tensor(None)?)?;
        ctx.mark_dirty(&inputs[0]);
        ctx.mark_non_differentiable(&sign);
        Ok(vec![inputs[0].clone(), sign])
    }
    fn backward(&self, _: &Context, grads: &[Option<Tensor>]) -> Result<Gradients> {
        Ok(vec![Some((grads[0].as_ref().unwrap() * 2.0).get()?)])
    }
}

#[test]
fn dirty_inputs_get_the_new_history_and_marked_outputs_none() -> Result<()> {
    let leaf = vector(&[1.0, -2.0]).with_grad()?;
    let x = (&leaf * 1.0).get()?;
    let outputs = apply(DoubleInPlace, &[&x])?;
    assert!(outputs[0].is_same(&x));
    assert_eq!(x.grad_fn()?.unwrap().name(), "DoubleInPlaceBackward");
    assert!(!outputs[1].requires_grad());
    x.sum()?.backward()?;
    assert_eq!(leaf.grad().unwrap().to_vec::<f64>()?, [2.0, 2.0]);
    assert!(apply(DoubleInPlace, &[&leaf]).is_err(), "a leaf cannot be written to");
    Ok(())
}

/// Gives its input back and the wrong number of gradients.
struct Wrong;

impl Function for Wrong {
    fn forward(&self, _: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(inputs.to_vec())
    }
    fn backward(&self, _: &Context, _: &[Option<Tensor>]) -> Result<Gradients> {
        Ok(vec![None, None])
    }
    fn name(&self) -> String {
        "Oddly".into()
    }
}

#[test]
fn an_input_given_back_is_a_view_and_the_number_of_gradients_is_checked() -> Result<()> {
    let x = vector(&[1.0]).with_grad()?;
    let y = apply(Wrong, &[&x])?.remove(0);
    assert!(!y.is_same(&x));
    let error = y.backward().unwrap_err();
    let phrase = "function Oddly returned an incorrect number of gradients (expected 1, got 2)";
    assert!(error.message().contains(phrase), "{error}");
    let _off = pullback::no_grad();
    assert!(!apply(Wrong, &[&x])?[0].requires_grad());
    Ok(())
}
