//! Conjugates and negatives as views of the same memory.

use pullback::autograd::forward::{dual_level, make_dual, unpack_dual};
use pullback::autograd::{self, BackwardOptions, inference_mode};
use pullback::func::{Batched, vmap};
use pullback::tensor::Key;
use pullback::{C64, C128, DType, Result, Scalar, Tensor};

fn numbers(values: &[(f64, f64)]) -> Tensor {
    let values: Vec<C128> = values.iter().map(|&(re, im)| C128::new(re, im)).collect();
    Tensor::from_slice(&values, &[values.len() as i64]).unwrap()
}

#[track_caller]
fn shows(t: &Tensor, expected: &[(f64, f64)]) {
    let got: Vec<(f64, f64)> = t.to_vec::<C128>().unwrap().iter().map(|z| (z.re, z.im)).collect();
    assert_eq!(got, expected);
}

#[test]
fn a_conjugate_is_a_view_that_computes_nothing() -> Result<()> {
    let x = numbers(&[(1.0, 2.0), (3.0, -4.0)]);
    let y = x.conj()?;
    assert!(y.is_conj() && !y.is_neg() && !x.is_conj());
    assert!(y.is_view() && y.base().is_some_and(|base| base.is_same(&x)));
    assert_eq!(y.data_ptr(), x.data_ptr());
    shows(&y, &[(1.0, -2.0), (3.0, 4.0)]);
    shows(&y.select(0, 1)?, &[(3.0, 4.0)]);
    assert_eq!(y.select(0, 1)?.item()?, Scalar::Complex(3.0, 4.0));
    assert!(!y.conj()?.is_conj());
    assert_eq!(y.to_string(), "tensor([1.-2.j, 3.+4.j], dtype=torch.complex128)");
    Ok(())
}

#[test]
fn real_tensors_are_their_own_conjugates() -> Result<()> {
    let x = Tensor::from_slice(&[1.0, -2.0], &[2])?;
    assert!(x.conj()?.is_same(&x) && x.conj_physical()?.is_same(&x));
    assert!(x.resolve_conj()?.is_same(&x) && x.resolve_neg()?.is_same(&x));
    assert!(x.conj_view().is_err());
    Ok(())
}

#[test]
fn writes_go_through_the_bits_and_count_for_all_views() -> Result<()> {
    let x = numbers(&[(1.0, 2.0), (3.0, -4.0)]);
    let y = x.conj()?;
    y.mul_(&Tensor::wrapped(Scalar::Complex(0.0, 2.0))?)?;
    shows(&y, &[(4.0, 2.0), (-8.0, 6.0)]);
    shows(&x, &[(4.0, -2.0), (-8.0, -6.0)]);
    assert_eq!((x.version(), y.version()), (1, 1));
    y.imag_view()?.fill_(Scalar::Float(7.0))?;
    shows(&x, &[(4.0, -7.0), (-8.0, -7.0)]);
    x.copy_(&x.conj()?, false)?;
    shows(&x, &[(4.0, 7.0), (-8.0, 7.0)]);
    x.select(0, 0)?.copy_(&y.select(0, 1)?, false)?;
    shows(&x, &[(-8.0, -7.0), (-8.0, 7.0)]);
    Ok(())
}

#[test]
fn parts_of_conjugates_are_views_too() -> Result<()> {
    let x = numbers(&[(1.0, 2.0), (3.0, -4.0)]);
    let (re, im) = (x.conj()?.real_view()?, x.conj()?.imag_view()?);
    assert!(!re.is_neg() && im.is_neg() && im.base().is_some_and(|base| base.is_same(&x)));
    assert_eq!(im.to_vec::<f64>()?, [-2.0, 4.0]);
    assert_eq!(im.elements()?, [Scalar::Float(-2.0), Scalar::Float(4.0)]);
    let error = x.conj()?.view_as_real().unwrap_err();
    assert!(error.message().contains("view_as_real doesn't work on unresolved conjugated tensors"));
    let both = x.conj()?.neg_view()?;
    assert!(both.is_conj() && both.is_neg());
    shows(&both, &[(-1.0, 2.0), (-3.0, -4.0)]);
    shows(&both.resolve_conj()?, &[(-1.0, 2.0), (-3.0, -4.0)]);
    assert!(!both.resolve_conj()?.is_neg());
    Ok(())
}

#[test]
fn negatives_of_integers_wrap_as_they_do_in_memory() -> Result<()> {
    let bytes = Tensor::from_slice(&[1_u8, 0, 255], &[3])?.neg_view()?;
    assert_eq!(bytes.to_vec::<u8>()?, [255, 0, 1]);
    assert_eq!(bytes.elements()?, [Scalar::Int(255), Scalar::Int(0), Scalar::Int(1)]);
    let least = Tensor::from_slice(&[i32::MIN, 5], &[2])?.neg_view()?;
    assert_eq!(least.to_vec::<i32>()?, [i32::MIN, -5]);
    assert_eq!(least.to_vec::<i64>()?, [i64::from(i32::MIN), -5]);
    assert_eq!(least.select(0, 1)?.item()?, Scalar::Int(-5));
    assert!(Tensor::from_slice(&[1.0_f64], &[1])?.gt(&Tensor::wrapped(0)?)?.neg_view().is_err());
    Ok(())
}

#[test]
fn copies_convert_what_is_shown() -> Result<()> {
    let x = numbers(&[(1.0, 2.0), (3.0, -4.0)]);
    shows(&x.conj()?.to_dtype(DType::C64)?, &[(1.0, -2.0), (3.0, 4.0)]);
    let target = Tensor::from_slice(&[C64::new(0.0, 0.0); 2], &[2])?;
    target.conj()?.copy_(&x.neg_view()?, false)?;
    shows(&target, &[(-1.0, 2.0), (-3.0, -4.0)]);
    // A broadcast row, and a source that overlaps its target in part.
    let wide = numbers(&[(0.0, 1.0), (0.0, 2.0), (0.0, 3.0)]);
    wide.narrow(0, 1, 2)?.copy_(&wide.narrow(0, 0, 2)?.conj()?, false)?;
    shows(&wide, &[(0.0, 1.0), (0.0, -1.0), (0.0, -2.0)]);
    let rows = numbers(&[(0.0, 0.0); 4]).view(&[2, 2])?;
    rows.conj()?.copy_(&x, false)?;
    shows(&rows.view(&[4])?, &[(1.0, -2.0), (3.0, 4.0), (1.0, -2.0), (3.0, 4.0)]);
    Ok(())
}

#[test]
fn aliases_keep_the_bits_and_copies_do_not() -> Result<()> {
    let y = numbers(&[(1.0, 2.0)]).conj()?;
    assert!(y.detach()?.is_conj() && y.data()?.is_conj() && y.alias()?.is_conj());
    assert!(y.view(&[1, 1])?.is_conj() && y.as_strided(&[1], &[1], Some(0))?.is_conj());
    assert!(!y.clone_tensor(None)?.is_conj() && !y.zeros_like()?.is_conj());
    let other = numbers(&[(0.0, 0.0)]);
    other.set_data(&y)?;
    assert!(other.is_conj());
    shows(&other, &[(1.0, -2.0)]);
    // Taking over memory changes no bits.
    let third = numbers(&[(0.0, 0.0)]);
    third.set_storage(&y)?;
    assert!(!third.is_conj());
    shows(&third, &[(1.0, 2.0)]);
    Ok(())
}

#[test]
fn a_plain_tensor_has_no_keys_whatever_other_tensors_are() -> Result<()> {
    // (What reads an element past the layers does so only if no layer is to see it.)
    let one = Tensor::from_slice(&[1.0_f64], &[1])?;
    let y = numbers(&[(1.0, 2.0)]).conj()?;
    let sparse = numbers(&[(1.0, 2.0)]).to_sparse()?;
    assert!(y.keys().has(Key::Conjugate) && y.view(&[1, 1])?.keys().has(Key::Conjugate));
    assert!(sparse.keys().has(Key::Sparse));
    assert!(one.keys().is_empty());
    assert_eq!(one.item_float(), Some(1.0));
    Ok(())
}

#[test]
fn gradients_pass_conjugates() -> Result<()> {
    let x = numbers(&[(1.0, 2.0), (3.0, -4.0)]).with_grad()?;
    let y = x.conj()?;
    assert_eq!(y.grad_fn()?.unwrap().name(), "ConjBackward0");
    let weights = numbers(&[(0.0, 1.0), (2.0, 0.0)]);
    let grads = autograd::grad(&[&y], &[&x], &[Some(&weights)], BackwardOptions::default())?;
    shows(grads[0].as_ref().unwrap(), &[(0.0, -1.0), (2.0, 0.0)]);
    y.backward_with(&weights)?;
    // What a leaf keeps shows its own memory.
    let kept = x.grad().unwrap();
    assert!(!kept.is_conj());
    shows(&kept, &[(0.0, -1.0), (2.0, 0.0)]);
    Ok(())
}

#[test]
fn a_write_through_a_conjugate_is_part_of_its_base_s_history() -> Result<()> {
    let x = numbers(&[(1.0, 2.0), (3.0, -4.0)]).with_grad()?;
    let base = x.clone_tensor(None)?;
    let sibling = base.narrow(0, 0, 1)?;
    // base = [x0, conj(conj(x1) * 2i)] = [x0, -2i x1]
    base.conj()?.select(0, 1)?.mul_(&Tensor::wrapped(Scalar::Complex(0.0, 2.0))?)?;
    shows(&base, &[(1.0, 2.0), (-8.0, -6.0)]);
    let weights = numbers(&[(1.0, 0.0), (0.0, 1.0)]);
    let options = BackwardOptions { retain_graph: Some(true), ..BackwardOptions::default() };
    let grads = autograd::grad(&[&base], &[&x], &[Some(&weights)], options)?;
    // The gradient of -2i x by x is the conjugate, 2i, times i.
    shows(grads[0].as_ref().unwrap(), &[(1.0, 0.0), (-2.0, 0.0)]);
    let grads = autograd::grad(
        &[&sibling.real_view()?.sum()?],
        &[&x],
        &[None],
        BackwardOptions::default(),
    )?;
    shows(grads[0].as_ref().unwrap(), &[(1.0, 0.0), (0.0, 0.0)]);
    Ok(())
}

#[test]
fn writes_to_parts_of_conjugates_have_gradients() -> Result<()> {
    let x = numbers(&[(1.0, 2.0), (3.0, -4.0)]).with_grad()?;
    for is_conj in [false, true] {
        let base = if is_conj { x.conj()?.resolve_conj()? } else { x.clone_tensor(None)? };
        base.conj()?.imag_view()?.mul_(&Tensor::wrapped(3.0)?)?;
        let total = base.imag_view()?.sum()?;
        let grads = autograd::grad(&[&total], &[&x], &[None], BackwardOptions::default())?;
        let slope = if is_conj { -3.0 } else { 3.0 };
        shows(grads[0].as_ref().unwrap(), &[(0.0, slope), (0.0, slope)]);
    }
    Ok(())
}

#[test]
fn a_base_may_have_a_bit_of_its_own() -> Result<()> {
    let x = numbers(&[(1.0, 2.0), (3.0, -4.0)]);
    let base = x.conj()?.detach()?;
    assert!(base.is_conj() && base.base().is_none());
    let leaf = numbers(&[(5.0, 1.0), (0.0, 1.0)]).with_grad()?;
    base.copy_(&leaf, false)?;
    let part = base.imag_view()?;
    part.mul_(&Tensor::wrapped(2.0)?)?;
    shows(&base, &[(5.0, 2.0), (0.0, 2.0)]);
    shows(&x, &[(5.0, -2.0), (0.0, -2.0)]);
    let weights = numbers(&[(1.0, 1.0), (1.0, 1.0)]);
    let grads = autograd::grad(&[&base], &[&leaf], &[Some(&weights)], BackwardOptions::default())?;
    shows(grads[0].as_ref().unwrap(), &[(1.0, 2.0), (1.0, 2.0)]);
    Ok(())
}

#[test]
fn pairs_of_a_base_s_numbers_are_written_through_a_conjugate() -> Result<()> {
    // The base's first element lies between two pairs of its memory.
    let memory = Tensor::from_slice(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[6])?;
    let rest = memory.narrow(0, 1, 5)?.detach()?;
    let factor = numbers(&[(2.0, 0.0), (0.0, 1.0)]).with_grad()?;
    let pairs = rest.narrow(0, 1, 4)?.view(&[2, 2])?.view_as_complex()?;
    // conj(2 - 3i) stays 2 - 3i times 2; 4 - 5i times i is 5 + 4i, of which 5 - 4i is kept.
    pairs.conj()?.mul_(&factor)?;
    assert_eq!(rest.to_vec::<f64>()?, [1.0, 4.0, 6.0, 5.0, -4.0]);
    let weights = Tensor::from_slice(&[0.0, 1.0, 2.0, 3.0, 4.0], &[5])?;
    let total = rest.mul(&weights)?.sum()?;
    let grads = autograd::grad(&[&total], &[&factor], &[None], BackwardOptions::default())?;
    // d(re)/df and d(-im)/df of (re - i im) f: (1 re + 2 im) + i (1 im - 2 re), and so on.
    shows(grads[0].as_ref().unwrap(), &[(2.0 + 6.0, 3.0 - 4.0), (12.0 + 20.0, 15.0 - 16.0)]);
    Ok(())
}

#[test]
fn views_of_conjugates_are_made_again_of_other_tensors() -> Result<()> {
    let x = numbers(&[(1.0, 2.0), (3.0, -4.0)]);
    let view = x.conj()?.narrow(0, 1, 1)?;
    let other = numbers(&[(7.0, 1.0), (8.0, 2.0)]);
    let again = view.view_func(&other)?.unwrap();
    assert!(again.is_conj() && again.base().is_some_and(|base| base.is_same(&other)));
    shows(&again, &[(8.0, -2.0)]);
    // One that lies in another way, by its bit, is none to make it of.
    assert!(view.view_func(&other.conj()?)?.is_none());
    let whole = x.conj()?.rev_view_func(&other)?.unwrap();
    shows(&whole, &[(7.0, -1.0), (8.0, -2.0)]);
    assert_eq!(whole.data_ptr(), other.data_ptr());
    Ok(())
}

#[test]
fn a_tangent_lies_as_its_tensor_does_bits_included() -> Result<()> {
    let (x, t) = (numbers(&[(1.0, 2.0)]), numbers(&[(0.0, 1.0)]));
    let _level = dual_level()?;
    let (_, tangent) = unpack_dual(&make_dual(&x, &t)?.conj()?)?;
    shows(&tangent.unwrap(), &[(0.0, -1.0)]);
    let dual = make_dual(&x.conj()?, &t)?;
    let (_, tangent) = unpack_dual(&dual)?;
    let tangent = tangent.unwrap();
    assert!(tangent.is_conj());
    shows(&tangent, &[(0.0, 1.0)]);
    let (_, part) = unpack_dual(&dual.imag_view()?)?;
    assert_eq!(part.unwrap().to_vec::<f64>()?, [1.0]);
    // A write through a view of the dual reaches its tangent with the right sign.
    let dual = make_dual(&x.clone_tensor(None)?, &t.clone_tensor(None)?)?;
    dual.conj()?.imag_view()?.mul_(&Tensor::wrapped(3.0)?)?;
    let (value, tangent) = unpack_dual(&dual)?;
    shows(&value, &[(1.0, 6.0)]);
    shows(&tangent.unwrap(), &[(0.0, 3.0)]);
    Ok(())
}

#[test]
fn vmap_takes_and_gives_conjugates() -> Result<()> {
    let x = numbers(&[(1.0, 2.0), (3.0, -4.0)]).view(&[2, 1])?;
    let one = |rows: &[&Tensor]| -> Result<Tensor> {
        let conjugate = rows[0].conj()?;
        assert_eq!(rows[0].is_conj(), !conjugate.is_conj());
        assert_eq!(conjugate.imag_view()?.is_neg(), conjugate.is_conj());
        conjugate.mul(&conjugate.imag_view()?)
    };
    for input in [x.clone(), x.conj_physical()?.conj()?] {
        let out = vmap(one, &[Batched::first(&input)])?;
        // conj(z) times its imaginary part.
        shows(&out.view(&[2])?, &[(-2.0, 4.0), (12.0, 16.0)]);
    }
    Ok(())
}

#[test]
fn inference_tensors_have_conjugates() -> Result<()> {
    let _mode = inference_mode(true);
    let x = numbers(&[(1.0, 2.0)]);
    let y = x.conj()?;
    y.add_(&Tensor::wrapped(Scalar::Complex(0.0, 1.0))?)?;
    shows(&x, &[(1.0, 1.0)]);
    Ok(())
}
