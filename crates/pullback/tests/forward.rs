//! Forward mode: levels, duals, views, writes, and how it composes with reverse mode.

use pullback::autograd::forward::{
    self, dual_level, enter_dual_level, exit_dual_level, make_dual, unpack_dual,
};
use pullback::autograd::{self, BackwardOptions, Context, Function, apply};
use pullback::dispatch::Arg;
use pullback::{ErrorKind, Result, Tensor, memory, no_grad, ops};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Levels belong to the process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tensor(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, &[values.len() as i64]).unwrap()
}
fn matrix(values: &[f64], rows: i64) -> Tensor {
    Tensor::from_slice(values, &[rows, values.len() as i64 / rows]).unwrap()
}
fn values(t: &Tensor) -> Vec<f64> {
    t.to_vec::<f64>().unwrap()
}
fn tangent(t: &Tensor) -> Vec<f64> {
    values(&t.tangent().unwrap().expect("it has a tangent"))
}
fn close(got: &[f64], expected: &[f64]) {
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
    let all = got.len() == expected.len() && got.iter().zip(expected).all(is_close);
    assert!(all, "{got:?} against {expected:?}");
}

#[test]
fn levels_do_not_nest_and_end_in_order() {
    let _one = alone();
    let outer = dual_level().unwrap();
    let error = enter_dual_level().unwrap_err();
    assert!(error.message().contains("Nested forward mode AD is not supported at the moment"));
    let error = exit_dual_level(1).unwrap_err();
    assert!(error.message().contains("Exiting a forward AD level that is not the last"));
    drop(outer);
    assert!(exit_dual_level(0).is_err());
    assert_eq!(enter_dual_level().unwrap(), 0);
    exit_dual_level(0).unwrap();
}

#[test]
fn tangents_go_through_ops_and_end_with_the_level() -> Result<()> {
    let _one = alone();
    let (x, t) = (tensor(&[1.0, 2.0]), tensor(&[3.0, 5.0]));
    let level = dual_level()?;
    let dual = make_dual(&x, &t)?;
    assert!(
        dual.tangent()?.unwrap().is_same(&t),
        "a tangent that lies as its primal is kept as it is"
    );
    assert!(x.tangent()?.is_none(), "the primal itself gets none");
    let y = dual.mul(&dual)?.exp()?;
    let e = [1.0_f64.exp(), 4.0_f64.exp()];
    close(&tangent(&y), &[2.0 * 3.0 * e[0], 4.0 * 5.0 * e[1]]);
    let (primal, _) = unpack_dual(&y)?;
    assert!(primal.tangent()?.is_none());
    close(&values(&primal), &e);
    drop(level);
    assert!(y.tangent()?.is_none() && dual.tangent()?.is_none());
    Ok(())
}

#[test]
fn make_dual_refuses_what_cannot_be() {
    let _one = alone();
    let (x, t) = (tensor(&[1.0, 2.0]), tensor(&[3.0, 5.0]));
    let refused = |a: &Tensor, b: &Tensor| make_dual(a, b).unwrap_err();
    assert!(refused(&x, &t).message().contains("no level exists"));
    let _level = dual_level().unwrap();
    let integers = Tensor::from_slice(&[1_i64, 2], &[2]).unwrap();
    assert_eq!(refused(&integers, &t).kind(), ErrorKind::Value);
    assert!(refused(&x, &integers).message().contains("Expected tangent to be floating point"));
    assert!(refused(&x, &tensor(&[1.0])).message().contains("a different size"));
    let dual = make_dual(&x, &t).unwrap();
    assert!(
        refused(&dual, &t).message().contains("already has a forward gradient at the same level")
    );
    let message = refused(&x, &dual);
    assert!(
        message.message().contains("Setting a forward grad that itself has a forward gradient")
    );
    assert!(forward::make_dual_at(&x, &t, 1).unwrap_err().message().contains("Invalid level"));
}

#[test]
fn a_tangent_lives_no_longer_than_its_tensor() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let weak = {
        let t = tensor(&[1.0]);
        let dual = make_dual(&tensor(&[2.0]), &t)?;
        let weak = t.downgrade();
        drop(t);
        assert!(weak.upgrade().is_some());
        drop(dual);
        weak
    };
    assert!(weak.upgrade().is_none());
    Ok(())
}

#[test]
fn the_end_of_a_level_frees_tangents_that_keep_their_own_tensor() -> Result<()> {
    let _one = alone();
    let level = dual_level()?;
    let weak = {
        let t = tensor(&[1.0]).with_grad()?;
        // The tangent's history keeps the result, whose tangent it is.
        let y = make_dual(&tensor(&[2.0]), &t)?.exp()?;
        y.tangent()?.unwrap().downgrade()
    };
    drop(level);
    assert!(weak.upgrade().is_none());
    Ok(())
}

#[test]
fn other_threads_see_tangents_and_may_drop_them_while_the_level_ends() -> Result<()> {
    let _one = alone();
    for _ in 0..50 {
        let level = dual_level()?;
        let dual = make_dual(&tensor(&[2.0]), &tensor(&[1.0]))?;
        let worker = std::thread::spawn(move || {
            let mut seen = 0;
            for _ in 0..20 {
                let y = dual.mul(&dual).unwrap();
                seen += usize::from(y.tangent().unwrap().is_some());
            }
            seen
        });
        std::thread::yield_now();
        drop(level);
        assert!(worker.join().unwrap() <= 20);
    }
    let _level = dual_level()?;
    let dual = make_dual(&tensor(&[2.0]), &tensor(&[1.0]))?;
    let doubled = std::thread::spawn(move || tangent(&dual.mul(&dual).unwrap())).join().unwrap();
    assert_eq!(doubled, [4.0]);
    Ok(())
}

#[test]
fn forward_mode_can_be_turned_off_on_a_thread() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let dual = make_dual(&tensor(&[2.0]), &tensor(&[1.0]))?;
    {
        let _off = forward::set_forward(false);
        assert!(!forward::is_forward_enabled());
        assert!(dual.tangent()?.is_none());
        assert!(dual.exp()?.tangent()?.is_none());
    }
    {
        let _mode = pullback::inference_mode(true);
        assert!(dual.exp()?.tangent()?.is_none());
    }
    let _mode = no_grad();
    assert!(dual.exp()?.tangent()?.is_some(), "no_grad does not turn it off");
    Ok(())
}

#[test]
fn detached_tensors_have_no_tangent() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let dual = make_dual(&tensor(&[2.0]), &tensor(&[1.0]))?;
    assert!(dual.detach()?.tangent()?.is_none());
    let copy = dual.clone_tensor(None)?;
    assert!(copy.tangent()?.is_some());
    copy.detach_()?;
    assert!(copy.tangent()?.is_none());
    Ok(())
}

#[test]
fn forward_over_reverse_gives_hessian_times_vector() -> Result<()> {
    let _one = alone();
    // f = sum(x³): the gradient is 3x², the Hessian diag(6x).
    let (x, t) = (tensor(&[1.0, 2.0, -3.0]).with_grad()?, tensor(&[1.0, 10.0, 100.0]));
    let _level = dual_level()?;
    let dual = make_dual(&x, &t)?;
    let y = dual.mul(&dual)?.mul(&dual)?.sum()?;
    let grad =
        autograd::grad(&[&y], &[&dual], &[None], BackwardOptions::default())?.remove(0).unwrap();
    close(&values(&grad), &[3.0, 12.0, 27.0]);
    close(&tangent(&grad), &[6.0, 120.0, -1800.0]);
    Ok(())
}

#[test]
fn saved_results_keep_their_tangents_for_forward_over_reverse() -> Result<()> {
    let _one = alone();
    let x = tensor(&[0.5, 2.0]).with_grad()?;
    let _level = dual_level()?;
    let dual = make_dual(&x, &tensor(&[1.0, 10.0]))?;
    let grad = |y: &Tensor| -> Result<Tensor> {
        Ok(autograd::grad(&[y], &[&dual], &[None], BackwardOptions::default())?.remove(0).unwrap())
    };
    let e = |v: f64| v.exp();
    close(&tangent(&grad(&dual.exp()?.sum()?)?), &[e(0.5), 10.0 * e(2.0)]);
    // In place the result is kept as well.
    let y = dual.clone_tensor(None)?;
    y.exp_()?;
    close(&tangent(&grad(&y.sum()?)?), &[e(0.5), 10.0 * e(2.0)]);
    // In place the old value is kept: sin' = cos, cos' = -sin.
    let y = dual.clone_tensor(None)?;
    y.sin_()?;
    close(&tangent(&grad(&y.sum()?)?), &[-0.5_f64.sin(), -10.0 * 2.0_f64.sin()]);
    Ok(())
}

#[test]
fn tangents_of_what_is_written_to_hold_no_cycle() -> Result<()> {
    let _one = alone();
    let round = || -> Result<()> {
        let x = tensor(&vec![0.5; 10_000]).with_grad()?;
        let _level = dual_level()?;
        let dual = make_dual(&x, &tensor(&vec![1.0; 10_000]))?;
        for write in [Tensor::exp_, Tensor::sin_, Tensor::sqrt_] {
            write(&dual.clone_tensor(None)?)?;
        }
        Ok(())
    };
    round()?;
    let before = memory::live_bytes();
    for _ in 0..10 {
        round()?;
    }
    // (Other tests run beside this one, on little tensors.)
    assert!(memory::live_bytes() < before + 200_000, "each round holds memory for ever");
    Ok(())
}

#[test]
fn reverse_over_forward_differentiates_tangents() -> Result<()> {
    let _one = alone();
    let (x, t) = (tensor(&[0.5, 2.0]).with_grad()?, tensor(&[1.0, 10.0]).with_grad()?);
    let _level = dual_level()?;
    let y = make_dual(&x, &t)?.exp()?;
    let moved = y.tangent()?.unwrap();
    let options = BackwardOptions { retain_graph: Some(true), ..BackwardOptions::default() };
    let grads = autograd::grad(&[&moved.sum()?], &[&x, &t], &[None], options)?;
    let e = [0.5_f64.exp(), 2.0_f64.exp()];
    close(&values(grads[0].as_ref().unwrap()), &[e[0], 10.0 * e[1]]);
    close(&values(grads[1].as_ref().unwrap()), &e);
    let _mode = no_grad();
    assert!(!make_dual(&x, &t)?.exp()?.tangent()?.unwrap().requires_grad());
    Ok(())
}

/// Case 1: views of duals.
#[test]
fn a_view_of_a_dual_shows_the_tangent() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let t = matrix(&[1.0, 2.0, 3.0, 4.0], 2);
    let dual = make_dual(&matrix(&[0.0; 4], 2), &t)?;
    let view = dual.transpose(0, 1)?.select(0, 1)?;
    assert_eq!(tangent(&view), [2.0, 4.0]);
    view.mul_(&Tensor::wrapped(10.0)?)?;
    assert_eq!(tangent(&dual), [1.0, 20.0, 3.0, 40.0]);
    assert_eq!(values(&t), [1.0, 20.0, 3.0, 40.0], "the tangent is written in place");
    Ok(())
}

/// Case 2: a dual is written to.
#[test]
fn writes_to_a_dual_write_its_tangent() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let (x, t) = (tensor(&[2.0, 3.0]), tensor(&[1.0, 1.0]));
    let dual = make_dual(&x, &t)?;
    let view = dual.select(0, 0)?;
    dual.mul_(&dual)?;
    assert_eq!(tangent(&dual), [4.0, 6.0], "(x²)' = 2x, by the value from before the write");
    assert_eq!(tangent(&view), [4.0]);
    dual.copy_(&tensor(&[7.0, 7.0]), false)?;
    assert_eq!(tangent(&dual), [0.0, 0.0]);
    dual.fill_(1.0.into())?;
    assert_eq!(tangent(&view), [0.0]);
    assert!(dual.tangent()?.unwrap().is_same(&t));
    Ok(())
}

/// Case 3: a tensor without tangent is written to.
#[test]
fn a_write_of_a_dual_gives_its_target_a_tangent() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let dual = make_dual(&tensor(&[2.0, 3.0]), &tensor(&[1.0, 1.0]))?;
    let target = tensor(&[5.0, 5.0]);
    target.mul_(&dual)?;
    assert_eq!(tangent(&target), [5.0, 5.0]);
    let target = tensor(&[5.0, 5.0]);
    target.copy_(&dual, false)?;
    assert_eq!(tangent(&target), [1.0, 1.0]);
    assert!(!target.tangent()?.unwrap().is_same(&dual.tangent()?.unwrap()));
    let wide = matrix(&[0.0; 4], 2);
    wide.copy_(&dual, false)?;
    assert_eq!(tangent(&wide), [1.0; 4], "broadcast as the values are");
    Ok(())
}

/// Case 4: a view is written to.
#[test]
fn a_write_through_a_view_gives_the_base_a_tangent() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let dual = make_dual(&tensor(&[2.0, 3.0]), &tensor(&[1.0, 4.0]))?;
    let base = matrix(&[0.0; 4], 2);
    let (row, column) = (base.select(0, 1)?, base.transpose(0, 1)?.select(0, 1)?);
    row.copy_(&dual, false)?;
    assert_eq!(tangent(&base), [0.0, 0.0, 1.0, 4.0]);
    assert_eq!(tangent(&row), [1.0, 4.0]);
    // Case 5: another view, made before, finds it through the base.
    assert_eq!(tangent(&column), [0.0, 4.0]);
    column.mul_(&Tensor::wrapped(2.0)?)?;
    assert_eq!(tangent(&base), [0.0, 0.0, 1.0, 8.0]);
    assert_eq!(tangent(&row), [1.0, 8.0]);
    Ok(())
}

#[test]
fn parts_of_complex_numbers_have_parts_of_the_tangent() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let base =
        tensor(&[1.0, 2.0, 3.0, 4.0]).view(&[2, 2])?.view_as_complex()?.clone_tensor(None)?;
    let imaginary = base.view_as_real()?.select(1, 1)?;
    imaginary.copy_(&make_dual(&tensor(&[0.0, 0.0]), &tensor(&[5.0, 6.0]))?, false)?;
    let parts = base.tangent()?.unwrap().view_as_real()?;
    assert_eq!(values(&parts), [0.0, 5.0, 0.0, 6.0]);
    Ok(())
}

#[test]
fn writes_stop_at_the_primal_of_a_dual() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let (x, t) = (tensor(&[2.0, 3.0]), tensor(&[1.0, 1.0]));
    let dual = make_dual(&x, &t)?;
    dual.mul_(&Tensor::wrapped(2.0)?)?;
    assert!(x.tangent()?.is_none());
    assert_eq!(values(&x), [4.0, 6.0]);
    let (primal, tangent_of_dual) = unpack_dual(&dual)?;
    primal.mul_(&Tensor::wrapped(10.0)?)?;
    assert_eq!(values(&dual), [40.0, 60.0]);
    assert_eq!(values(&tangent_of_dual.unwrap()), [2.0, 2.0]);
    Ok(())
}

#[test]
fn views_made_while_forward_mode_was_off_find_the_tangent_of_their_dual() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let dual = make_dual(&tensor(&[2.0, 3.0]), &tensor(&[1.0, 4.0]))?;
    let view = {
        let _off = forward::set_forward(false);
        dual.narrow(0, 0, 2)?.select(0, 1)?
    };
    assert_eq!(tangent(&view), [4.0]);
    Ok(())
}

#[test]
fn changes_of_sizes_in_place_change_the_tangent_too() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let t = matrix(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2);
    let dual = make_dual(&matrix(&[0.0; 6], 2), &t)?;
    dual.t_()?;
    assert_eq!(dual.shape(), [3, 2]);
    let moved = dual.tangent()?.unwrap();
    assert_eq!((moved.shape(), values(&moved)), ([3, 2].as_slice(), vec![1., 4., 2., 5., 3., 6.]));
    assert_eq!(t.shape(), [2, 3], "the caller's tensor keeps its shape");
    let error = dual.resize(&[2]).unwrap_err();
    assert!(error.message().contains("cannot resize variables that has a forward grad"));
    Ok(())
}

#[test]
fn out_forms_are_refused() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let dual = make_dual(&tensor(&[2.0]), &tensor(&[1.0]))?;
    let plain = tensor(&[1.0]);
    for (input, out) in [(&dual, &plain), (&plain, &dual)] {
        let error = input.exp_out(&[out]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotImplemented);
        assert!(error.message().contains("because it is an out= function"));
    }
    assert_eq!(values(&plain), [1.0]);
    Ok(())
}

#[test]
fn a_tangent_that_lies_otherwise_is_copied() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let storage = tensor(&[0.0, 1.0, 2.0, 3.0, 4.0]);
    let part = storage.narrow(0, 1, 3)?.detach()?;
    let t = tensor(&[1.0, 2.0, 3.0]);
    let dual = make_dual(&part, &t)?;
    assert!(!dual.tangent()?.unwrap().is_same(&t));
    assert_eq!(tangent(&dual), [1.0, 2.0, 3.0]);
    // A view that reaches beyond the primal finds zeros there.
    let beyond = dual.as_strided(&[5], &[1], Some(0))?;
    assert_eq!(tangent(&beyond), [0.0, 1.0, 2.0, 3.0, 0.0]);
    Ok(())
}

#[test]
fn a_tensor_without_tangent_in_a_list_counts_as_zero() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let dual = make_dual(&tensor(&[3.0, 1.0, 2.0]), &tensor(&[1.0, 10.0, 100.0]))?;
    let cat = ops::registry().find(|op| op.name == "cat").unwrap();
    let list = [dual.clone(), tensor(&[0.0])];
    let joined = autograd::call(cat, &[Arg::Tensors(&list), Arg::Int(0)])?.one();
    assert_eq!(tangent(&joined), [1.0, 10.0, 100.0, 0.0]);
    Ok(())
}

#[test]
fn ops_without_forward_rule_are_pushed_forward_by_their_gradient_rules() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let (x, t) = (tensor(&[3.0, 1.0, 2.0]).with_grad()?, tensor(&[1.0, 10.0, 100.0]).with_grad()?);
    let dual = make_dual(&x, &t)?;
    let (sorted, order) = dual.sort(0, false)?.into();
    assert_eq!(tangent(&sorted), [10.0, 100.0, 1.0]);
    assert!(order.tangent()?.is_none());
    let grad = autograd::grad(
        &[&sorted.tangent()?.unwrap().select(0, 2)?],
        &[&t],
        &[None],
        BackwardOptions::default(),
    )?;
    assert_eq!(values(grad[0].as_ref().unwrap()), [1.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn a_constant_beside_a_dual_makes_no_nan() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let dual = |v: f64| make_dual(&tensor(&[v]), &tensor(&[1.0]));
    // The derivative by the constant is infinite or no number; nobody asked for it.
    assert_eq!(tangent(&dual(-2.0)?.pow(&tensor(&[3.0]))?), [12.0]);
    assert_eq!(tangent(&dual(1.0)?.div(&tensor(&[0.0]))?), [f64::INFINITY]);
    assert_eq!(tangent(&dual(0.0)?.mul(&tensor(&[f64::INFINITY]))?), [f64::INFINITY]);
    Ok(())
}

/// `x²`, with both rules.
struct Square;
impl Function for Square {
    fn forward(&self, ctx: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        assert!(!forward::is_forward_enabled());
        ctx.save_for_backward(&inputs[0]);
        Ok(vec![inputs[0].mul(&inputs[0])?])
    }
    fn backward(&self, ctx: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let x = &ctx.saved_tensors()?[0];
        Ok(vec![Some((grads[0].as_ref().unwrap() * (x * 2.0)).get()?)])
    }
    fn jvp(&self, ctx: &Context, tangents: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let x = &ctx.saved_tensors()?[0];
        Ok(vec![Some((tangents[0].as_ref().unwrap() * (x * 2.0)).get()?)])
    }
}

/// `x * x` as a custom function that has no `jvp`.
struct Mute;
impl Function for Mute {
    fn forward(&self, _: &mut Context, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![inputs[0].mul(&inputs[0])?])
    }
    fn backward(&self, _: &Context, grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        Ok(grads.to_vec())
    }
}

#[test]
fn custom_functions_compute_tangents_by_their_jvp() -> Result<()> {
    let _one = alone();
    let x = tensor(&[3.0, 4.0]).with_grad()?;
    let _level = dual_level()?;
    let dual = make_dual(&x, &tensor(&[1.0, 10.0]))?;
    let y = apply(Square, &[&dual])?.remove(0);
    assert_eq!(tangent(&y), [6.0, 80.0]);
    let grad =
        autograd::grad(&[&y.sum()?], &[&dual], &[None], BackwardOptions::default())?.remove(0);
    assert_eq!(tangent(&grad.unwrap()), [2.0, 20.0]);
    assert!(apply(Square, &[&x])?[0].tangent()?.is_none());
    let error = apply(Mute, &[&dual]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotImplemented);
    assert!(error.message().contains("You must implement the jvp function"));
    Ok(())
}

#[test]
fn inference_tensors_take_part_in_ops_on_duals() -> Result<()> {
    let _one = alone();
    let made = {
        let _mode = pullback::inference_mode(true);
        tensor(&[3.0, 1.0, 2.0]).clone_tensor(None)?
    };
    assert!(made.is_inference());
    let _level = dual_level()?;
    let dual = make_dual(&made, &tensor(&[1.0, 10.0, 100.0]))?;
    assert_eq!(tangent(&dual.mul(&made)?), [3.0, 10.0, 200.0]);
    let sort = ops::registry().find(|op| op.full_name() == "sort").unwrap();
    let args = [Arg::Tensor(&dual), Arg::Int(0), Arg::Bool(false)];
    let [sorted, _] = autograd::call(sort, &args)?.array();
    assert_eq!(tangent(&sorted), [10.0, 100.0, 1.0]);
    Ok(())
}

#[test]
fn a_write_that_the_tangent_cannot_follow_changes_nothing() -> Result<()> {
    let _one = alone();
    let _level = dual_level()?;
    let x = tensor(&[2.0]);
    let dual = make_dual(&x, &tensor(&[1.0]).with_grad()?)?;
    let error = dual.mul_(&Tensor::wrapped(3.0)?).unwrap_err();
    assert!(error.message().contains("a leaf Variable that requires grad"));
    assert_eq!((values(&x), x.version()), (vec![2.0], 0));
    // Views made without recording can be written to where nothing is to be recorded.
    let plain = make_dual(&x, &tensor(&[1.0]))?;
    let view = {
        let _mode = no_grad();
        plain.select(0, 0)?
    };
    view.mul_(&Tensor::wrapped(3.0)?)?;
    assert_eq!((values(&x), tangent(&plain)), (vec![6.0], vec![3.0]));
    Ok(())
}

#[test]
fn a_views_tangent_first_seen_without_recording_can_be_written_to_afterwards() -> Result<()> {
    let _one = alone();
    let weight = tensor(&[1.0, 2.0, 3.0]).with_grad()?;
    let _level = dual_level()?;
    let base = make_dual(&tensor(&[1.0, 2.0, 3.0]), &weight.mul(&weight)?)?.clone_tensor(None)?;
    let view = base.slice(0, Some(1), None, 1)?;
    {
        let _off = no_grad();
        assert_eq!(view.tangent()?.unwrap().to_vec::<f64>()?, [4.0, 9.0]);
    }
    view.mul_(&Tensor::wrapped(10.0)?)?;
    let tangent = base.tangent()?.unwrap();
    assert_eq!(tangent.to_vec::<f64>()?, [1.0, 40.0, 90.0]);
    tangent.sum()?.backward()?;
    assert_eq!(weight.grad().unwrap().to_vec::<f64>()?, [2.0, 40.0, 60.0]);
    Ok(())
}
