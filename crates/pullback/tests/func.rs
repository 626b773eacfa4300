//! Transforms of functions over closures, alone and in each other.

use pullback::autograd::batch::Randomness;
use pullback::autograd::{Context, Function, apply_one};
use pullback::func::{
    Batched, Remove, Vmap, functionalize, grad, grad_and_value, grads, hessian, jacfwd, jacrev,
    jacrev_by_chunks, jvp, jvps, linearize, vjp, vmap, vmap_with,
};
use pullback::{ErrorKind, Result, Tensor, TensorSpec, no_grad};

fn vector(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, &[values.len() as i64]).unwrap()
}

fn close(got: &Tensor, expected: &[f64]) {
    let got = got.to_vec::<f64>().unwrap();
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
    assert!(
        got.len() == expected.len() && got.iter().zip(expected).all(near),
        "{got:?} against {expected:?}"
    );
}

/// `sum x^3`.
fn cubes(x: &Tensor) -> Result<Tensor> {
    x.mul(x)?.mul(x)?.sum()
}

/// `(x0 x1, x0 + x1)`.
fn mixed(x: &Tensor) -> Result<Tensor> {
    let (a, b) = (x.select(0, 0)?, x.select(0, 1)?);
    pullback::ops::shape::join::stack(&[a.mul(&b)?, a.add(&b)?], 0)
}

#[test]
fn gradients_have_no_history_unless_somebody_around_may_want_one() -> Result<()> {
    let x = vector(&[1.0, 2.0]);
    let (slope, value) = grad_and_value(cubes, &x)?;
    close(&slope, &[3.0, 12.0]);
    close(&value, &[9.0]);
    assert!(!slope.requires_grad() && !value.requires_grad());
    let leaf = vector(&[1.0, 2.0]).with_grad()?;
    let slope = grad(cubes, &leaf)?;
    slope.sum()?.backward()?;
    close(&leaf.grad().unwrap(), &[6.0, 12.0]);
    let _off = no_grad();
    let slope = grad(cubes, &leaf)?;
    assert!(!slope.requires_grad());
    close(&slope, &[3.0, 12.0]);
    Ok(())
}

#[test]
fn what_does_not_matter_has_a_gradient_of_zeros() -> Result<()> {
    let x = vector(&[1.0, 2.0]);
    close(&grad(|_| vector(&[5.0]).sum(), &x)?, &[0.0, 0.0]);
    close(&jvp(|_| Ok(vector(&[5.0])), &x, &x)?.1, &[0.0]);
    Ok(())
}

#[test]
fn products_with_the_jacobian_from_both_sides() -> Result<()> {
    let (x, v) = (vector(&[2.0, 3.0]), vector(&[1.0, 10.0]));
    let (value, pull) = vjp(mixed, &x)?;
    close(&value, &[6.0, 5.0]);
    close(&pull(&v)?, &[13.0, 12.0]);
    close(&pull(&x)?, &[9.0, 7.0]);
    let (value, push) = linearize(mixed, &x)?;
    close(&value, &[6.0, 5.0]);
    close(&push(&v)?, &[23.0, 11.0]);
    close(&push(&x)?, &[12.0, 5.0]);
    let (value, product) = jvp(mixed, &x, &v)?;
    close(&value, &[6.0, 5.0]);
    close(&product, &[23.0, 11.0]);
    Ok(())
}

#[test]
fn a_function_is_linearized_once_for_any_number_of_products() -> Result<()> {
    let (x, t) = (vector(&[2.0, 3.0]), vector(&[1.0, 10.0]));
    let runs = std::cell::Cell::new(0);
    let (value, push) = linearize(
        |x| {
            runs.set(runs.get() + 1);
            mixed(x)
        },
        &x,
    )?;
    assert!(!value.requires_grad());
    for _ in 0..3 {
        let product = push(&t)?;
        close(&product, &[23.0, 11.0]);
        assert!(!product.requires_grad());
    }
    assert_eq!(runs.get(), 1);
    // A constant function, a tangent that is differentiated by, one that does not fit.
    close(&linearize(|_| Ok(vector(&[5.0])), &x)?.1(&t)?, &[0.0]);
    close(&grad(|t| push(t)?.sum(), &t)?, &[4.0, 3.0]);
    close(&jvp(&push, &t, &x)?.1, &[12.0, 5.0]);
    let error = push(&vector(&[1.0])).unwrap_err();
    assert!(error.message().contains("doesn't match the shape"), "{error}");
    Ok(())
}

#[test]
fn gradients_by_several_tensors() -> Result<()> {
    let (x, w) = (vector(&[1.0, 2.0]), vector(&[3.0, 4.0]).with_grad()?);
    let slopes = grads(|at| at[0].mul(at[1])?.mul(at[1])?.sum(), &[&x, &w])?;
    close(&slopes[0], &[9.0, 16.0]);
    close(&slopes[1], &[6.0, 16.0]);
    slopes[1].sum()?.backward()?;
    close(&w.grad().unwrap(), &[2.0, 4.0]);
    assert!(grads(|_| vector(&[1.0]).sum(), &[])?.is_empty());
    Ok(())
}

#[test]
fn a_gradient_without_recording_keeps_tangents() -> Result<()> {
    let (x, t) = (vector(&[1.0, 2.0]), vector(&[1.0, 0.0]));
    let along = jvp(
        |x| {
            let _off = no_grad();
            grad(cubes, x)
        },
        &x,
        &t,
    )?;
    close(&along.0, &[3.0, 12.0]);
    close(&along.1, &[6.0, 0.0]);
    Ok(())
}

#[test]
fn rows_and_examples_by_chunks() -> Result<()> {
    let x = vector(&[2.0, 3.0]);
    for chunk in 1..4 {
        close(&jacrev_by_chunks(mixed, &x, chunk)?, &[3.0, 2.0, 1.0, 1.0]);
    }
    let error = jacrev_by_chunks(mixed, &x, 0).unwrap_err();
    assert!(error.kind() == ErrorKind::Value && error.message().contains("greater than 0"));
    let batch = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    let second = [Batched { tensor: &batch, dim: Some(1) }];
    for chunk_size in [None, Some(1), Some(2), Some(5)] {
        let options = Vmap { chunk_size, out_dim: -1, ..Vmap::default() };
        let doubled = vmap_with(options, |at| at[0].add(at[0]), &second)?;
        assert_eq!(doubled.shape(), [2, 3]);
        close(&doubled, &[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    }
    Ok(())
}

#[test]
fn jacobians_of_both_modes_agree() -> Result<()> {
    let x = vector(&[2.0, 3.0]);
    for jacobian in [jacrev(mixed, &x)?, jacfwd(mixed, &x)?] {
        assert_eq!(jacobian.shape(), [2, 2]);
        close(&jacobian, &[3.0, 2.0, 1.0, 1.0]);
        assert!(!jacobian.requires_grad());
    }
    Ok(())
}

#[test]
fn transforms_nest_in_any_order() -> Result<()> {
    let x = vector(&[2.0, 3.0]);
    let expected = [12.0, 0.0, 0.0, 18.0];
    close(&hessian(cubes, &x)?, &expected);
    close(&jacrev(|x| jacrev(cubes, x), &x)?, &expected);
    close(&jacrev(|x| jacfwd(cubes, x), &x)?, &expected);
    close(&jacfwd(|x| jacfwd(cubes, x), &x)?, &expected);
    // The third derivative of a cube is 6.
    let third = |x: &Tensor| grad(|x| grad(|x| grad(cubes, x)?.sum(), x)?.sum(), x);
    close(&third(&x)?, &[6.0, 6.0]);
    let one = vector(&[1.0, 1.0]);
    let along = |x: &Tensor| jvp(|x| Ok(jvp(|x| Ok(jvp(cubes, x, &one)?.1), x, &one)?.1), x, &one);
    close(&along(&x)?.1, &[12.0]);
    Ok(())
}

#[test]
fn examples_have_their_own_derivatives() -> Result<()> {
    let batch = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
    let w = vector(&[1.0, -1.0]);
    let second = Batched { tensor: &batch, dim: Some(1) };
    // (x . w)^2 by w: 2 (x . w) x
    let loss = |x: &Tensor, w: &Tensor| x.mul(w)?.sum()?.square();
    let each = vmap(|at| grad(|w| loss(at[0], w), at[1]), &[second, Batched::shared(&w)])?;
    assert_eq!(each.shape(), [3, 2]);
    close(&each, &[-6.0, -24.0, -12.0, -30.0, -18.0, -36.0]);
    // Around the batch, what all examples have gets the sum.
    let total = grad(|w| vmap(|at| loss(at[0], at[1]), &[second, Batched::shared(w)])?.sum(), &w)?;
    close(&total, &[-36.0, -90.0]);
    let hessians = vmap(|at| hessian(cubes, at[0]), &[second])?;
    assert_eq!(hessians.shape(), [3, 2, 2]);
    Ok(())
}

#[test]
fn levels_of_batches_nest() -> Result<()> {
    let (a, b) = (vector(&[1.0, 2.0, 3.0]), vector(&[10.0, 20.0]));
    let products =
        vmap(|x| vmap(|y| x[0].mul(y[0]), &[Batched::first(&b)]), &[Batched::first(&a)])?;
    assert_eq!(products.shape(), [3, 2]);
    close(&products, &[10.0, 20.0, 20.0, 40.0, 30.0, 60.0]);
    Ok(())
}

fn random(randomness: Randomness) -> Vmap {
    Vmap { randomness, ..Vmap::default() }
}

#[test]
fn random_numbers_within_a_batch() -> Result<()> {
    let x = TensorSpec::of(&[2, 3], pullback::DType::F64).zeros()?;
    let noise = |at: &[&Tensor]| {
        let noise = TensorSpec::of(&[3], pullback::DType::F64).zeros()?;
        noise.normal_(0.0, 1.0)?;
        at[0].add(&noise)
    };
    let refused = vmap(noise, &[Batched::first(&x)]).unwrap_err();
    assert!(refused.message().contains("randomness error mode"), "{refused}");
    let same = vmap_with(random(Randomness::Same), noise, &[Batched::first(&x)])?;
    let rows = same.to_vec::<f64>()?;
    assert_eq!(rows[..3], rows[3..]);
    let by_one = Vmap { chunk_size: Some(1), ..random(Randomness::Same) };
    let rows = vmap_with(by_one, noise, &[Batched::first(&x)])?.to_vec::<f64>()?;
    assert_eq!(rows[..3], rows[3..]);
    let different = |at: &[&Tensor]| at[0].bernoulli();
    let half = x.add(&Tensor::wrapped(0.5)?)?;
    vmap_with(random(Randomness::Different), different, &[Batched::first(&half)])?;
    Ok(())
}

#[test]
fn inputs_that_do_not_fit_are_named() -> Result<()> {
    let (a, b) = (vector(&[1.0, 2.0]), vector(&[1.0, 2.0, 3.0]));
    let sum = |at: &[&Tensor]| at[0].add(at[1]);
    let cases: [(&[Batched<'_>], ErrorKind, &str); 3] = [
        (&[Batched::first(&a), Batched::first(&b)], ErrorKind::Value, "same size"),
        (&[Batched::shared(&a), Batched::shared(&a)], ErrorKind::Value, "at least one"),
        (
            &[Batched { tensor: &a, dim: Some(1) }, Batched::first(&a)],
            ErrorKind::Index,
            "Dimension out of range",
        ),
    ];
    for (inputs, kind, phrase) in cases {
        let error = vmap(sum, inputs).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.message().contains(phrase), "{error}");
    }
    let error = grad(|x| x.mul(x), &a).unwrap_err();
    assert!(error.message().contains("to return a scalar tensor"), "{error}");
    let whole = Tensor::from_slice(&[1_i64], &[1])?;
    assert!(grad(Tensor::sum, &whole).unwrap_err().message().contains("floating point"));
    Ok(())
}

#[test]
fn elements_of_a_batch_are_not_read() -> Result<()> {
    let x = vector(&[1.0, 2.0]);
    let read = |at: &[&Tensor]| {
        at[0].item()?;
        Ok(at[0].clone())
    };
    assert!(vmap(read, &[Batched::first(&x)]).unwrap_err().message().contains("vmap"));
    let list = |at: &[&Tensor]| {
        at[0].to_vec::<f64>()?;
        Ok(at[0].clone())
    };
    assert!(vmap(list, &[Batched::first(&x)]).unwrap_err().message().contains("vmap"));
    Ok(())
}

/// `sum (x + 1)^2`, in place.
fn in_place(x: &Tensor) -> Result<Tensor> {
    let shifted = x.clone_tensor(None)?;
    shifted.add_(&Tensor::wrapped(1.0)?)?.mul(&shifted)?.sum()
}

#[test]
fn functions_with_in_place_ops_are_transformed_as_they_are() -> Result<()> {
    let x = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
    let f = |x: &Tensor| functionalize(in_place, x, Remove::Mutations);
    close(&grad(f, &x.select(0, 0)?)?, &[4.0, 6.0]);
    let each = vmap(|x| grad(f, x[0]), &[Batched::first(&x)])?;
    close(&each, &[4.0, 6.0, 8.0, 10.0]);
    // An input that the function changes is changed.
    let double = |x: &Tensor| x.mul_(&Tensor::wrapped(2.0)?);
    let changed = functionalize(double, &x, Remove::MutationsAndViews)?;
    assert!(changed.is_same(&x));
    close(&x, &[2.0, 4.0, 6.0, 8.0]);
    Ok(())
}

#[test]
fn views_are_copied_where_they_are_to_be_removed() -> Result<()> {
    let x = vector(&[1.0, 2.0]);
    for (remove, is_view) in [(Remove::Mutations, true), (Remove::MutationsAndViews, false)] {
        let first = functionalize(|x| x.select(0, 0), &x, remove)?;
        let memory = |tensor: &Tensor| tensor.storage().unwrap().id();
        assert_eq!(memory(&first) == memory(&x), is_view);
        close(&first, &[1.0]);
    }
    Ok(())
}

/// `x^3`, without a rule for forward mode.
struct Cube;

impl Function for Cube {
    fn forward(&self, ctx: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        ctx.save_for_backward(&inputs[0]);
        Ok(vec![inputs[0].mul(&inputs[0])?.mul(&inputs[0])?])
    }
    fn backward(&self, ctx: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let [x] = &ctx.saved()?;
        let grad = grads[0].as_ref().expect("missing gradients are made zeros");
        Ok(vec![Some((grad * (x * x * 3.0)).get()?)])
    }
}

#[test]
fn a_hessian_needs_no_rule_of_forward_mode() -> Result<()> {
    let x = vector(&[1.0, 2.0]);
    let f = |x: &Tensor| apply_one(Cube, &[x])?.sum();
    assert_eq!(jvp(f, &x, &x).unwrap_err().kind(), ErrorKind::NotImplemented);
    close(&hessian(f, &x)?, &[6.0, 0.0, 0.0, 12.0]);
    // Nor does the Hessian of each example, and that of a function that mixes both kinds.
    let batch = Tensor::from([[1.0, 2.0], [3.0, 4.0]])?;
    let each = vmap(|at| hessian(f, at[0]), &[Batched::first(&batch)])?;
    close(&each, &[6.0, 0.0, 0.0, 12.0, 18.0, 0.0, 0.0, 24.0]);
    let mixed = |x: &Tensor| apply_one(Cube, &[x])?.sum()?.mul(&x.prod()?);
    // (x^3 + y^3) x y: second derivatives 12 x^2 y, 4 x^3 + 4 y^3, 12 x y^2.
    close(&hessian(mixed, &x)?, &[24.0, 36.0, 36.0, 48.0]);
    Ok(())
}

#[test]
fn a_function_may_write_to_what_it_made_and_not_to_what_it_captured() {
    let captured = vector(&[1.0, 2.0]);
    let x = vector(&[3.0, 4.0]);
    let writes = |at: &Tensor| captured.mul_(at)?.sum();
    let errors = [
        grad(writes, &x).unwrap_err(),
        vjp(writes, &x).map(|(value, _)| value).unwrap_err(),
        jvp(writes, &x, &x).unwrap_err(),
        jacrev(writes, &x).unwrap_err(),
        jacfwd(writes, &x).unwrap_err(),
        hessian(writes, &x).unwrap_err(),
        grad(|at| captured.detach()?.narrow(0, 0, 1)?.mul_(at)?.sum(), &x).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Runtime);
        let wanted = "in-place operation (aten::mul_.Tensor) that would mutate a captured Tensor";
        assert!(error.message().contains(wanted), "{error}");
    }
    close(&captured, &[1.0, 2.0]);
    let own = |at: &Tensor| captured.mul(at)?.mul_(&captured)?.sum();
    close(&grad(own, &x).unwrap(), &[1.0, 4.0]);
    captured.mul_(&x).unwrap();
    close(&captured, &[3.0, 8.0]);
}

#[test]
fn a_write_to_a_primal_leaves_tangents_in_its_memory_alone() {
    let x = vector(&[1.0, 2.0]);
    let (value, tangent) = jvp(|at| at.square_()?.sum(), &x, &x).unwrap();
    close(&value, &[5.0]);
    close(&tangent, &[10.0]);
    close(&x, &[1.0, 4.0]);
    let (x, y) = (vector(&[2.0]), vector(&[3.0]));
    let f = |at: &[&Tensor]| Ok(vec![at[0].square_()?.sum()?, at[1].sum()?]);
    let (_, tangents) = jvps(f, &[&x, &y], &[Some(&y), Some(&x)]).unwrap();
    close(&tangents[0], &[12.0]);
    close(&tangents[1], &[2.0]);
}
