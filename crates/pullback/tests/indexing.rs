//! Indexing as Python writes it, from Rust.

use pullback::index::{self, Ellipsis, Index, NewAxis};
use pullback::{Bool, DType, ErrorKind, Result, Tensor};

fn counting(shape: &[i64]) -> Tensor {
    let data: Vec<f64> = (0..shape.iter().product()).map(|v| v as f64).collect();
    Tensor::from_slice(&data, shape).unwrap()
}

fn places(data: &[i64]) -> Tensor {
    Tensor::from_slice(data, &[data.len() as i64]).unwrap()
}

fn mask(data: &[bool], shape: &[i64]) -> Tensor {
    let data: Vec<Bool> = data.iter().map(|&b| Bool::new(b)).collect();
    Tensor::from_slice(&data, shape).unwrap()
}

fn values(t: &Tensor) -> Vec<f64> {
    t.to_vec::<f64>().unwrap()
}

fn refused(result: Result<impl Sized>, kind: ErrorKind, phrase: &str) {
    let Err(error) = result else { panic!("should have been refused: {phrase}") };
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(phrase), "{error}");
}

#[test]
fn ints_and_slices_are_views_with_one_node_each() -> Result<()> {
    let x = counting(&[2, 3, 4]).with_grad()?;
    let y = x.i((1, 1..))?;
    assert_eq!(y.shape(), [2, 4]);
    assert_eq!(values(&y)[0], 16.0);
    assert_eq!(y.grad_fn()?.unwrap().name(), "SliceBackward0");
    assert_eq!(x.i(-1)?.grad_fn()?.unwrap().name(), "SelectBackward0");
    assert_eq!(x.i(..)?.grad_fn()?.unwrap().name(), "SliceBackward0");
    assert_eq!(x.i(Ellipsis)?.grad_fn()?.unwrap().name(), "AliasBackward0");
    assert_eq!(x.i((1, Ellipsis))?.grad_fn()?.unwrap().name(), "SelectBackward0");
    let whole = index::get(&x, &[])?;
    assert!(!whole.is_same(&x) && whole.is_view());
    Ok(())
}

#[test]
#[expect(
    clippy::reversed_empty_ranges,
    reason = "ends count from the end, and reversed ones are a case"
)]
fn slices_clip_and_count_from_the_end() -> Result<()> {
    let x = counting(&[5]);
    assert_eq!(values(&x.i(-2..)?), [3.0, 4.0]);
    assert_eq!(values(&x.i(-100..100)?).len(), 5);
    assert_eq!(x.i(4..1)?.shape(), [0]);
    assert_eq!(values(&x.i(1..=2)?), [1.0, 2.0]);
    assert_eq!(values(&x.i(3..=-1)?), [3.0, 4.0]);
    assert_eq!(values(&x.i(Index::slice(None, None, 2))?), [0.0, 2.0, 4.0]);
    Ok(())
}

#[test]
fn new_dimensions_and_truth_values() -> Result<()> {
    let x = counting(&[2, 3]);
    assert_eq!(x.i((.., NewAxis, 0))?.shape(), [2, 1]);
    assert_eq!(x.i((Ellipsis, NewAxis))?.shape(), [2, 3, 1]);
    assert_eq!(x.i(true)?.shape(), [1, 2, 3]);
    assert_eq!(x.i(false)?.shape(), [0, 2, 3]);
    assert_eq!(x.i((true, true))?.shape(), [1, 2, 3]);
    assert_eq!(x.i((0, true, 1))?.shape(), [1]);
    assert_eq!(x.i(mask(&[true], &[]))?.shape(), [1, 2, 3]);
    Ok(())
}

#[test]
fn tensors_take_positions_and_masks_their_true_elements() -> Result<()> {
    let x = counting(&[2, 3, 4]);
    assert_eq!(values(&x.i(Tensor::scalar_of(1, DType::I8)?)?)[0], 12.0);
    assert_eq!(x.i((places(&[0, 1]), .., places(&[0, 1])))?.shape(), [2, 3]);
    assert_eq!(x.i((0, .., places(&[0, 1])))?.shape(), [3, 2]);
    assert_eq!(x.i((places(&[0, 1]), NewAxis, places(&[0, 1])))?.shape(), [2, 1, 4]);
    let m = mask(&[true, false, true, false, false, true], &[2, 3]);
    assert_eq!(values(&x.i((&m, 0))?), [0.0, 8.0, 20.0]);
    assert_eq!(x.i((&m, ..2))?.shape(), [3, 2]);
    assert_eq!(x.i((&m, places(&[1])))?.shape(), [3]);
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused_with_pytorchs_words() -> Result<()> {
    let x = counting(&[2, 3]);
    let one = Tensor::scalar_of(1.0, DType::F64)?;
    refused(x.i(5), ErrorKind::Index, "index 5 is out of bounds for dimension 0 with size 2");
    refused(
        x.i((.., -4)),
        ErrorKind::Index,
        "index -4 is out of bounds for dimension 1 with size 3",
    );
    refused(x.i((0, 0, 0)), ErrorKind::Index, "too many indices for tensor of dimension 2");
    refused(x.i(Index::slice(None, None, 0)), ErrorKind::Value, "step must be greater than zero");
    refused(x.i(Index::slice(None, None, -1)), ErrorKind::Value, "step must be greater than zero");
    refused(one.i(0), ErrorKind::Index, "invalid index of a 0-dim tensor");
    refused(one.i((0, 0)), ErrorKind::Index, "too many indices for tensor of dimension 0");
    refused(
        x.i(counting(&[1])),
        ErrorKind::Index,
        "tensors used as indices must be long, int, byte or bool",
    );
    let short = mask(&[true], &[1]);
    let phrase = "The shape of the mask [1] at index 0 does not match the shape of the indexed tensor [2, 3] at index 0";
    refused(x.i(short), ErrorKind::Index, phrase);
    refused(x.set_i(0, &counting(&[2, 3])), ErrorKind::Runtime, "must be greater or equal");
    refused(
        x.set_i(places(&[9]), &one),
        ErrorKind::Index,
        "index 9 is out of bounds for dimension 0 with size 2",
    );
    let leaf = counting(&[2]).with_grad()?;
    refused(
        leaf.set_i(0, &one),
        ErrorKind::Runtime,
        "a view of a leaf Variable that requires grad",
    );
    Ok(())
}

#[test]
fn writing_drops_leading_ones_of_the_value_and_broadcasts() -> Result<()> {
    let x = counting(&[2, 3]);
    x.set_i(0, &counting(&[1, 1, 3]))?;
    x.set_i((1, 1..), &Tensor::scalar_of(9, DType::I64)?)?;
    assert_eq!(values(&x), [0.0, 1.0, 2.0, 3.0, 9.0, 9.0]);
    x.set_i(false, &counting(&[7]))?;
    x.set_i(places(&[1]), &counting(&[1, 1, 1, 3]))?;
    assert_eq!(values(&x), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    x.set_i(&x.gt(&Tensor::wrapped(1.5)?)?, &Tensor::scalar_of(-1.0, DType::F64)?)?;
    assert_eq!(values(&x), [0.0, 1.0, -1.0, 0.0, 1.0, -1.0]);
    Ok(())
}

#[test]
fn gradients_pass_through_reads_and_writes() -> Result<()> {
    let x = counting(&[4]).with_grad()?;
    let v = counting(&[2]).with_grad()?;
    let y = (&x * 1.0).get()?;
    y.set_i(1..3, &v)?;
    y.set_i(places(&[0]), &v.i(..1)?)?;
    (y.i(places(&[0, 1, 1, 3]))? * 2.0).get()?.sum()?.backward()?;
    assert_eq!(values(&x.grad().unwrap()), [0.0, 0.0, 0.0, 2.0]);
    assert_eq!(values(&v.grad().unwrap()), [6.0, 0.0]);
    Ok(())
}

#[test]
fn operators_need_one_question_mark() -> Result<()> {
    let (x, w) = (counting(&[3]), counting(&[3]));
    let y = (2.0 * (&x + &w) / 4.0 - 1 + -&x).get()?;
    assert_eq!(values(&y), [-1.0, -1.0, -1.0]);
    let r: Tensor = (1.5 - x.i(1..)? % 2).try_into()?;
    assert_eq!(values(&r), [0.5, 1.5]);
    assert_eq!((Tensor::from_slice(&[1_i32], &[1])? * 2).get()?.dtype(), DType::I32);
    refused(
        (&x + counting(&[2]) * 3.0).get(),
        ErrorKind::Runtime,
        "must match the size of tensor b",
    );
    Ok(())
}
