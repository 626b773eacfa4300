//! Custom functions in Rust.

use pullback::autograd::{
    self, BackwardOptions, Context, Custom, Function, apply, apply_one, forward,
};
use pullback::{ErrorKind, Result, Tensor};
use std::sync::{Arc, Mutex, PoisonError};

fn vector(data: &[f64]) -> Tensor {
    Tensor::from_slice(data, &[data.len() as i64]).unwrap()
}

type Gradients = Vec<Option<Tensor>>;

/// The process has one level of forward mode.
static LEVEL: Mutex<()> = Mutex::new(());

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
    let options = BackwardOptions { create_graph: true, ..Default::default() };
    let g = autograd::grad(&[&y], &[&a], &[None], options)?.remove(0).unwrap();
    let h = autograd::grad(&[&g], &[&b], &[None], BackwardOptions::default())?.remove(0).unwrap();
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

/// `a * b`, by everything that a context offers.
struct Product;

impl Function for Product {
    fn forward(&self, _: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![inputs[0].mul(&inputs[1])?])
    }
    fn setup_context(
        &self,
        ctx: &mut Context,
        inputs: &[Tensor],
        outputs: &[Tensor],
    ) -> Result<()> {
        assert!(!pullback::is_grad_enabled());
        ctx.save_for_backward([&inputs[0], &inputs[1]]);
        ctx.save_for_forward(inputs);
        ctx.save_for_forward(outputs);
        ctx.set_data(outputs[0].shape().to_vec());
        ctx.set_data("first");
        ctx.set_data("last");
        Ok(())
    }
    fn backward(&self, ctx: &Context, grads: &[Option<Tensor>]) -> Result<Gradients> {
        assert_eq!(ctx.data::<Vec<i64>>(), Some(&vec![2]));
        assert_eq!(ctx.data::<&str>(), Some(&"last"));
        assert_eq!(ctx.data::<f64>(), None);
        let [a, b] = &ctx.saved()?;
        let grad = grads[0].as_ref().unwrap();
        let want = |nr: usize, factor: &Tensor| {
            ctx.needs_input_grad(nr).then(|| grad.mul(factor)).transpose()
        };
        Ok(vec![want(0, b)?, want(1, a)?])
    }
    fn jvp(&self, ctx: &Context, tangents: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let [a, b, product] = &ctx.saved()?;
        assert!(product.equal(&a.mul(b)?)?);
        let [da, db] = [0, 1].map(|i: usize| tangents[i].as_ref().expect("missing ones are zeros"));
        Ok(vec![Some((da * b + db * a).get()?)])
    }
}

#[test]
fn setup_context_saves_several_tensors_at_once_and_values() -> Result<()> {
    let (a, b) = (vector(&[2.0, 3.0]).with_grad()?, vector(&[5.0, 7.0]).with_grad()?);
    apply_one(Product, &[&a, &b])?.sum()?.backward()?;
    assert_eq!(a.grad().unwrap().to_vec::<f64>()?, [5.0, 7.0]);
    assert_eq!(b.grad().unwrap().to_vec::<f64>()?, [2.0, 3.0]);
    let error = apply_one(Both { materialize: true }, &[&a, &b]).unwrap_err();
    assert!(error.message().contains("a function of one output gave 2"), "{error}");
    Ok(())
}

#[test]
fn what_is_saved_for_forward_is_what_jvp_sees() -> Result<()> {
    let _one = LEVEL.lock().unwrap_or_else(PoisonError::into_inner);
    let _level = forward::dual_level()?;
    let dual = forward::make_dual(&vector(&[2.0, 3.0]), &vector(&[1.0, 10.0]))?;
    let y = apply_one(Product, &[&dual, &vector(&[5.0, 7.0])])?;
    assert_eq!(y.tangent()?.unwrap().to_vec::<f64>()?, [5.0, 70.0]);
    Ok(())
}

/// Gives its inputs' sum, and notes which gradients are wanted.
struct Notes(Arc<Mutex<Vec<[bool; 2]>>>);

impl Function for Notes {
    fn forward(&self, _: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![inputs[0].add(&inputs[1])?])
    }
    fn backward(&self, ctx: &Context, grads: &[Option<Tensor>]) -> Result<Gradients> {
        self.0.lock().unwrap().push([ctx.needs_input_grad(0), ctx.needs_input_grad(1)]);
        Ok(vec![grads[0].clone(), grads[0].clone()])
    }
}

#[test]
fn needs_input_grad_asks_the_run_that_is_going_on() -> Result<()> {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let (a, b) = (vector(&[1.0]).with_grad()?, vector(&[2.0]).with_grad()?);
    let y = apply_one(Notes(notes.clone()), &[&a, &b])?;
    y.backward()?;
    for input in [&a, &b] {
        autograd::grad(&[&y], &[input], &[None], BackwardOptions::default())?;
    }
    assert_eq!(*notes.lock().unwrap(), [[true, true], [true, false], [false, true]]);
    Ok(())
}

#[test]
fn once_differentiable_refuses_the_second_derivative_and_not_the_first() -> Result<()> {
    let square = Custom::new(
        "Square",
        |ctx, [x]| {
            ctx.save_for_backward(x);
            x.mul(x)
        },
        |ctx, grad: Tensor| {
            assert!(!pullback::is_grad_enabled());
            let [x] = &ctx.saved()?;
            Ok([Some((grad * (x * 2.0)).get()?)])
        },
    )
    .once_differentiable();
    let x = vector(&[3.0]).with_grad()?;
    square.apply([&x])?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [6.0]);
    let options = BackwardOptions { create_graph: true, ..Default::default() };
    let y = (&square.apply([&x])? * &x).get()?;
    let g = autograd::grad(&[&y.mul(&y)?], &[&x], &[None], options)?.remove(0).unwrap();
    assert_eq!(g.to_vec::<f64>()?, [2.0 * 27.0 * 27.0]);
    let error = g.backward().unwrap_err();
    assert!(error.message().contains("differentiate twice"), "{error}");
    Ok(())
}

#[test]
fn closures_take_and_give_arrays_and_may_have_a_forward_rule() -> Result<()> {
    let swap = Custom::new(
        "Swap",
        |_, [a, b]| Ok([(b * 2.0).get()?, a.clone_tensor(None)?]),
        |_, [da, db]: [Tensor; 2]| Ok([Some(db), Some((da * 2.0).get()?)]),
    );
    let (a, b) = (vector(&[1.0]).with_grad()?, vector(&[10.0]).with_grad()?);
    let [first, second] = swap.apply([&a, &b])?;
    assert_eq!(first.to_vec::<f64>()?, [20.0]);
    assert_eq!(second.grad_fn()?.unwrap().name(), "SwapBackward");
    (first * 3.0 + second).get()?.backward()?;
    assert_eq!(a.grad().unwrap().to_vec::<f64>()?, [1.0]);
    assert_eq!(b.grad().unwrap().to_vec::<f64>()?, [6.0]);

    let _one = LEVEL.lock().unwrap_or_else(PoisonError::into_inner);
    let _level = forward::dual_level()?;
    let dual = forward::make_dual(&vector(&[1.0]), &vector(&[4.0]))?;
    let error = swap.apply([&dual, &b]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotImplemented);
    let swap = swap.with_jvp(|_, [da, db]| Ok([(db.unwrap() * 2.0).get()?, da.unwrap()]));
    let [first, second] = swap.apply([&dual, &b])?;
    assert_eq!(first.tangent()?.unwrap().to_vec::<f64>()?, [0.0]);
    assert_eq!(second.tangent()?.unwrap().to_vec::<f64>()?, [4.0]);
    Ok(())
}

#[test]
fn closures_give_lists_and_refuse_gradients_that_are_missing() -> Result<()> {
    let split = Custom::new(
        "Split",
        |ctx, [x]| {
            ctx.set_materialize_grads(false);
            Ok(vec![x.add(x)?, x.mul(x)?])
        },
        |_, grads: Vec<Tensor>| Ok([Some(grads[0].clone())]),
    );
    let x = vector(&[1.0]).with_grad()?;
    let error = split.apply([&x])?[0].backward().unwrap_err();
    assert!(error.message().contains("takes no missing gradients"), "{error}");
    let wrong = Custom::new(
        "Wrong",
        |ctx, [x]| {
            ctx.save_for_backward(Some(x));
            x.add(x)
        },
        |ctx, grad: Tensor| {
            let [_, _] = ctx.saved()?;
            Ok([Some(grad)])
        },
    );
    let error = wrong.apply([&x])?.backward().unwrap_err();
    assert!(error.message().contains("1 tensors were saved, 2 are requested"), "{error}");
    Ok(())
}
