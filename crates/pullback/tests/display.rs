//! How tensors print. The full record of PyTorch's texts is checked by the Python tests.

use pullback::tensor::display::{Heading, PrintOptions, text};
use pullback::{C64, Result, Tensor};

fn shown(t: &Tensor, options: PrintOptions) -> String {
    text(
        t,
        Heading {
            name: "tensor",
            grad_fn: None,
            requires_grad: false,
            tangent: None,
            contents: None,
        },
        &options,
    )
    .unwrap()
}

#[test]
fn one_width_and_style_for_all_elements() -> Result<()> {
    let show = |data: &[f32]| Tensor::from_slice(data, &[data.len() as i64]).unwrap().to_string();
    assert_eq!(show(&[1.0, -2.0]), "tensor([ 1., -2.])");
    assert_eq!(show(&[1.5, 100.25]), "tensor([  1.5000, 100.2500])");
    assert_eq!(show(&[1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])");
    assert_eq!(show(&[1.5, f32::INFINITY, f32::NAN]), "tensor([1.5000,    inf,    nan])");
    assert_eq!(show(&[0.0, -0.0]), "tensor([0., -0.])");
    Ok(())
}

#[test]
fn notes_say_what_the_elements_do_not() -> Result<()> {
    let x = Tensor::from_slice(&[1.0_f64, 2.0], &[2])?.with_grad()?;
    assert_eq!(x.to_string(), "tensor([1., 2.], dtype=torch.float64, requires_grad=True)");
    let y = x.mul(&x)?;
    assert_eq!(y.to_string(), "tensor([1., 4.], dtype=torch.float64, grad_fn=<MulBackward0>)");
    let empty = Tensor::from_slice::<f32>(&[], &[2, 0])?;
    assert_eq!(empty.to_string(), "tensor([], size=(2, 0))");
    let complex = Tensor::from_slice(&[C64::new(1.5, 2.0), C64::new(3.0, -4.25)], &[2])?;
    assert_eq!(complex.to_string(), "tensor([1.5000+2.0000j, 3.0000-4.2500j])");
    Ok(())
}

#[test]
fn large_tensors_show_their_edges_and_strides_do_not_matter() -> Result<()> {
    let data: Vec<i64> = (0..27).collect();
    let x = Tensor::from_slice(&data, &[3, 9])?.transpose(0, 1)?;
    let options = PrintOptions { threshold: 10, edgeitems: 1, ..PrintOptions::DEFAULT };
    let expected = "tensor([[ 0,  ..., 18],\n        ...,\n        [ 8,  ..., 26]])";
    assert_eq!(shown(&x, options), expected);
    let none = PrintOptions { edgeitems: 0, ..options };
    assert_eq!(shown(&x, none), "tensor([...], size=(9, 3))");
    let narrow = PrintOptions { linewidth: 20, ..PrintOptions::DEFAULT };
    let row = Tensor::from_slice(&[1.0_f64, 2.0, 3.0], &[3])?;
    assert_eq!(shown(&row, narrow), "tensor([1., 2., 3.],\n       dtype=torch.float64)");
    Ok(())
}

#[test]
fn what_is_cut_is_not_visited() {
    let many = Tensor::from_slice(&[1.0_f32], &[1]).unwrap().expand(&[1 << 50], false).unwrap();
    assert_eq!(many.to_string(), "tensor([1., 1., 1.,  ..., 1., 1., 1.])");
}
