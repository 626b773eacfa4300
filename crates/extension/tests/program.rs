//! Programs give what the transforms of the library give in the same process, and what cannot cross is refused by name.

use pullback::custom::{Iter, KernelResult, map_real};
use pullback::func::{jvp, vjp};
use pullback::prelude::*;
use pullback::{ErrorKind, Scalar, op};
use pullback_extension::host::Extension;
use pullback_extension::{Given, Library, Program, Step};

/// `scale * tanh(x)`, element by element.
#[op("scaled_tanh(Tensor self, Scalar scale=1) -> Tensor", meta = float, batch = pointwise, samples = unary)]
impl ScaledTanh {
    fn composite(self_: &Tensor, scale: Scalar) -> Result<Tensor> {
        self_.tanh().mul(scale.to_f64())
    }
}

/// `x / (1 + |x|)`, element by element.
#[op("squash(Tensor self) -> Tensor", meta = float, batch = pointwise, jvp = elementwise, samples = unary_nonzero)]
impl Squash {
    fn cpu(iter: &mut Iter) -> KernelResult<()> {
        map_real(iter, "squash", |[x]: [f64; 1]| x / (1.0 + x.abs()))
    }
    fn vjp_self(grad: &Tensor, self_: &Tensor) -> Result<Tensor> {
        let below = self_.abs().add(1.0)?;
        (grad / (&below * &below)).get()
    }
}

static LIBRARY: Library = Library::new("mymath", &[&SQUASH, &SCALED_TANH]);

fn squash(steps: Vec<Step>) -> Program {
    Program { op: 0, arguments: vec![Given::Tensor], steps }
}

fn run(program: &Program, inputs: &[&Tensor]) -> Result<Tensor> {
    let inputs: Vec<Tensor> = inputs.iter().map(|input| (*input).clone()).collect();
    Ok(Extension::of(&LIBRARY).run(program, &inputs)?.remove(0))
}

#[track_caller]
fn assert_near(a: &Tensor, b: &Tensor) {
    assert!(a.allclose(b, 1e-12, 1e-12, false).expect("they have one shape"), "{a} {b}");
}

#[test]
fn programs_of_any_order_give_what_transforms_give() -> Result<()> {
    let x = Tensor::from([[0.5, -2.0, 3.0], [1.0, -0.25, 4.0]])?;
    let (v, w) = (x.sin()?, x.cos()?);
    assert_near(&run(&squash(vec![]), &[&x])?, &x.squash()?);
    let first = squash(vec![Step::Vjp(vec![true])]);
    assert_near(&run(&first, &[&x, &v])?, &vjp(SquashMethods::squash, &x)?.1(&v)?);
    let tangent = squash(vec![Step::Jvp(vec![true])]);
    assert_near(&run(&tangent, &[&x, &v])?, &jvp(SquashMethods::squash, &x, &v)?.1);
    // Of the gradient, by `x`: backwards and forwards.
    let slope = |x: &Tensor| vjp(SquashMethods::squash, x)?.1(&v);
    let second = vjp(slope, &x)?.1(&w)?;
    assert_near(&run(&first.then(Step::Vjp(vec![true, false])), &[&x, &v, &w])?, &second);
    assert_near(&run(&first.then(Step::Jvp(vec![true, false])), &[&x, &v, &w])?, &second);
    assert_near(&run(&tangent.then(Step::Vjp(vec![true, false])), &[&x, &v, &w])?, &second);
    assert!(second.abs().max()?.item()?.to_f64() > 0.1);
    // A batch of all of them, by columns.
    let batched = first.then(Step::Vjp(vec![true, false])).then(Step::Vmap(vec![Some(1); 3]));
    assert_near(&run(&batched, &[&x, &v, &w])?, &second.t()?);
    let shared = squash(vec![Step::Vmap(vec![None])]);
    assert!(run(&shared, &[&x]).expect_err("nothing is a batch").message().contains("batched"));
    Ok(())
}

#[test]
fn numbers_dtypes_empty_and_meta_tensors_go_over() -> Result<()> {
    let scaled = |scale| Program {
        op: 1,
        arguments: vec![Given::Tensor, scale],
        steps: vec![Step::Vjp(vec![true])],
    };
    let (x, one) = (Tensor::from([0.0, 1.0])?, Tensor::ones([2])?.to_dtype(DType::F64)?);
    let expected = Tensor::from([1.5, 1.5 * (1.0 - 1.0_f64.tanh().powi(2))])?;
    assert_near(&run(&scaled(Given::Float(1.5)), &[&x, &one])?, &expected);
    let error = run(&scaled(Given::Text("a".into())), &[&x, &one]).expect_err("no number");
    assert_eq!(error.kind(), ErrorKind::Type);
    assert!(error.message().contains("argument 'scale' must be Scalar"), "{error}");
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        assert_eq!(run(&squash(vec![]), &[&x.to_dtype(dtype)?])?.dtype(), dtype);
    }
    assert_eq!(run(&squash(vec![]), &[&Tensor::from(3.0)?])?.item()?.to_f64(), 0.75);
    assert_eq!(
        run(&squash(vec![Step::Vjp(vec![true])]), &[&Tensor::zeros([0, 2])?; 2])?.shape(),
        [0, 2]
    );
    let nowhere = Tensor::options().device(Device::Meta).zeros([3, 1])?;
    let found = run(&squash(vec![Step::Vjp(vec![true])]), &[&nowhere; 2])?;
    assert_eq!((found.shape(), found.device()), (&[3, 1][..], Device::Meta));
    Ok(())
}

#[test]
fn errors_have_their_kind_and_inputs_are_left_alone() -> Result<()> {
    let x = Tensor::from([1.0])?.with_grad()?;
    let complex = x.detach()?.to_dtype(DType::C128)?;
    let here = complex.squash().expect_err("it is real");
    let there = run(&squash(vec![]), &[&complex]).expect_err("it is real");
    assert_eq!((there.kind(), there.message()), (here.kind(), here.message()));
    let (slope, batch) = (Step::Vjp(vec![true]), Step::Vmap(vec![None]));
    for (steps, inputs, phrase) in [
        (vec![slope.clone()], &[][..], "takes 1 or more tensors, but it was given 0"),
        (vec![batch], &[&x, &x][..], "takes 1 tensors, but it was given 2"),
        (vec![], &[&x, &x, &x][..], "takes 1 tensors, but it was given 3"),
        (vec![], &[][..], "takes 1 tensors, but it was given 0"),
    ] {
        let error = run(&squash(steps), inputs).expect_err(phrase);
        assert_eq!(error.kind(), ErrorKind::Value);
        assert!(
            error.message().starts_with("squash(): ") && error.message().ends_with(phrase),
            "{error}"
        );
    }
    let error = run(&squash(vec![slope]), &[&x, &x, &x]).expect_err("a vector for each result");
    assert!(matches!(error.kind(), ErrorKind::Value | ErrorKind::Runtime), "{error}");
    let without = Program { arguments: vec![], ..squash(vec![]) };
    let error = run(&without, &[]).expect_err("an argument is missing");
    assert!(error.message().contains("takes 1 arguments, but a program gives it 0"), "{error}");
    let unknown = Program { op: 9, ..squash(vec![]) };
    assert_eq!(run(&unknown, &[&x]).expect_err("there are two").kind(), ErrorKind::Index);
    assert!(!run(&squash(vec![]), &[&x])?.requires_grad() && x.requires_grad());
    let (schema, doc) = Extension::of(&LIBRARY).describe(1)?;
    assert_eq!(schema, "mymath::scaled_tanh(Tensor self, Scalar scale=1) -> Tensor");
    assert!(doc.starts_with("`scale * tanh(x)`"));
    Ok(())
}
