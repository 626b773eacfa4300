//! Gradients of decompositions whose arguments or results are not free: Hermitian matrices, of which one triangle
//! is read, and complex vectors, whose phases are arbitrary. The property tests, which move every element on its
//! own and look at every result, cannot check these.

use pullback::gradcheck::{Function, Sampler, Tolerance, gradcheck, gradgradcheck};
use pullback::{DType, Result, Tensor};

const DTYPES: [DType; 2] = [DType::F64, DType::C128];

fn adjoint(a: &Tensor) -> Result<Tensor> {
    a.transpose(-2, -1)?.conj()
}

/// `a + a^H`.
fn hermitian(a: &Tensor) -> Result<Tensor> {
    a.add(&adjoint(a)?)
}

/// `a a^H + 1`.
fn positive(a: &Tensor) -> Result<Tensor> {
    let n = a.shape()[a.ndim() - 1];
    let one = pullback::ops::creation::factory::eye_with(n, Some(a.dtype()), None, None, None)?;
    a.matmul(&adjoint(a)?)?.add(&one)
}

/// `v w^H` for each pair of columns: what is left of them when their common phase is taken away.
fn without_phase(v: &Tensor, w: &Tensor) -> Result<Tensor> {
    v.unsqueeze(-2)?.mul(&w.conj()?.unsqueeze(-3)?)
}

fn check(name: &str, dtype: DType, shape: &[i64], f: Function<'_>) {
    let x = Sampler::new(dtype).normal(shape).with_grad().unwrap();
    let inputs = [x];
    let first = gradcheck(f, &inputs, Tolerance::default()).unwrap();
    assert_eq!(first, Ok(()), "gradient of {name}, {dtype:?} {shape:?}");
    let second = gradgradcheck(f, &inputs, Tolerance::default()).unwrap();
    assert_eq!(second, Ok(()), "second gradient of {name}, {dtype:?} {shape:?}");
}

#[test]
fn cholesky_has_the_gradient_of_a_hermitian_matrix() {
    for dtype in DTYPES {
        for upper in [false, true] {
            let f = |x: &[Tensor]| Ok(vec![positive(&x[0])?.linalg_cholesky_with(upper)?]);
            check("cholesky", dtype, &[3, 3], &f);
            check("cholesky", dtype, &[2, 2, 2], &f);
        }
    }
}

#[test]
fn eigh_has_the_gradient_of_a_hermitian_matrix() {
    for dtype in DTYPES {
        for side in ["L", "U"] {
            let f = |x: &[Tensor]| {
                let [w, v] = hermitian(&x[0])?.linalg_eigh(side)?;
                Ok(vec![w, without_phase(&v, &v)?])
            };
            check("eigh", dtype, &[3, 3], &f);
            let values = |x: &[Tensor]| Ok(vec![hermitian(&x[0])?.linalg_eigvalsh(side)?]);
            check("eigvalsh", dtype, &[2, 3, 3], &values);
        }
    }
}

#[test]
fn svd_has_the_gradient_of_what_does_not_depend_on_phases() {
    for dtype in DTYPES {
        for full in [false, true] {
            let f = |x: &[Tensor]| {
                let [u, s, vh] = x[0].linalg_svd(full)?;
                let k = s.shape()[s.ndim() - 1];
                let (u, v) = (u.narrow(-1, 0, k)?, adjoint(&vh.narrow(-2, 0, k)?)?);
                Ok(vec![without_phase(&u, &v)?, without_phase(&u, &u)?, s])
            };
            for shape in [[3, 3], [3, 2], [2, 3]] {
                check("svd", dtype, &shape, &f);
            }
        }
        check("svdvals", dtype, &[2, 3, 2], &|x: &[Tensor]| Ok(vec![x[0].linalg_svdvals()?]));
    }
}

#[test]
fn losses_that_have_no_gradient_are_refused() {
    let refusal = |y: Result<Tensor>| {
        let error = y.and_then(|y| y.sum()?.real()?.backward()).unwrap_err();
        error.message().to_owned()
    };
    let complex = Sampler::new(DType::C128).normal(&[3, 3]).with_grad().unwrap();
    let tall = Sampler::new(DType::F64).normal(&[3, 2]).with_grad().unwrap();
    let [u, _, vh] = complex.linalg_svd(true).unwrap();
    for part in [u, vh] {
        assert!(refusal(Ok(part)).contains("specified up to multiplication by e^{i phi}"));
    }
    let [_, v] = hermitian(&complex).unwrap().linalg_eigh("L").unwrap();
    assert!(refusal(Ok(v)).contains("specified up to multiplication by e^{i phi}"));
    let [u, ..] = tall.linalg_svd(true).unwrap();
    assert!(refusal(u.narrow(-1, 2, 1)).contains("depends on singular vectors beyond the first 2"));
    u.narrow(-1, 0, 2).and_then(|u| u.sum()?.backward()).unwrap();
}
