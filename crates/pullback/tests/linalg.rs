//! Gradients of decompositions whose arguments or results are not free: Hermitian matrices, of which one triangle
//! is read, and complex vectors, whose phases are arbitrary. The property tests, which move every element on its
//! own and look at every result, cannot check these.

use pullback::gradcheck::{CheckedFunction, Sampler, Tolerance, gradcheck, gradgradcheck};
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

fn check(name: &str, dtype: DType, shape: &[i64], f: CheckedFunction<'_>) {
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

/// A solution by LDL factors has a derivative by the right-hand sides; factors that require grad are refused by name.
#[test]
fn ldl_solve_has_the_gradient_of_the_right_hand_sides() {
    for dtype in DTYPES {
        for is_hermitian in [false, true] {
            let random = Sampler::new(dtype).normal(&[2, 3, 3]);
            let transpose = random.transpose(-2, -1).unwrap();
            let symmetric =
                if is_hermitian { hermitian(&random) } else { random.add(&transpose) }.unwrap();
            let [ld, pivots] = symmetric.linalg_ldl_factor_with(is_hermitian).unwrap();
            let f =
                |b: &[Tensor]| Ok(vec![ld.linalg_ldl_solve_with(&pivots, &b[0], is_hermitian)?]);
            check("ldl_solve", dtype, &[2, 3, 2], &f);
            check("ldl_solve of a broadcast right-hand side", dtype, &[3, 1], &f);
            let factors = ld.detach().unwrap().with_grad().unwrap();
            let x = factors.linalg_ldl_solve_with(&pivots, &random, is_hermitian).unwrap();
            let error = x.real().unwrap().sum().unwrap().backward().unwrap_err();
            assert!(error.to_string().contains("linalg_ldl_solve by its factors"), "{error}");
            let a = random.clone().detach().unwrap().with_grad().unwrap();
            let [ld, _] = a.linalg_ldl_factor_with(is_hermitian).unwrap();
            let error = ld.real().unwrap().sum().unwrap().backward().unwrap_err();
            assert!(
                error.to_string().contains("linalg_ldl_factor_ex is not implemented"),
                "{error}"
            );
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

#[test]
fn eig_has_the_gradient_of_what_does_not_depend_on_phases() {
    for dtype in DTYPES {
        let f = |x: &[Tensor]| {
            let [w, v] = x[0].linalg_eig()?;
            Ok(vec![without_phase(&v, &v)?, w])
        };
        check("eig", dtype, &[3, 3], &f);
        check("eig", dtype, &[2, 2, 2], &f);
        check("eigvals", dtype, &[3, 3], &|x: &[Tensor]| Ok(vec![x[0].linalg_eigvals()?]));
    }
}

#[test]
fn eig_has_the_tangent_of_what_does_not_depend_on_phases() {
    use pullback::autograd::forward::{dual_level, make_dual, unpack_dual};
    for dtype in DTYPES {
        let s = Sampler::new(dtype);
        let (x, t) = (s.normal(&[3, 3]), s.normal(&[3, 3]));
        let f = |x: &Tensor| {
            let [w, v] = x.linalg_eig()?;
            without_phase(&v, &v)?.sum_dim(Some(&[-1]), false)?.add(&w)
        };
        let moved = |step: f64| f(&x.add(&t.mul(&Tensor::wrapped(step)?)?)?);
        let expected = moved(1e-6).unwrap().sub(&moved(-1e-6).unwrap()).unwrap();
        let expected = expected.mul(&Tensor::wrapped(5e5).unwrap()).unwrap();
        let _level = dual_level().unwrap();
        let y = f(&make_dual(&x, &t).unwrap()).unwrap();
        let (_, got) = unpack_dual(&y).unwrap();
        let worst = got.unwrap().sub(&expected).and_then(|d| d.abs()?.max()?.item()).unwrap();
        assert!(worst.to_f64() < 1e-5, "{dtype:?}: {worst:?}");
    }
}

#[test]
fn roots_and_pseudo_inverses_have_the_gradients_of_hermitian_matrices() {
    for dtype in DTYPES {
        let root = |x: &[Tensor]| Ok(vec![positive(&x[0])?.linalg_matrix_sqrth()?]);
        check("matrix_sqrth", dtype, &[3, 3], &root);
        let inverse = |x: &[Tensor]| {
            Ok(vec![hermitian(&x[0])?.linalg_pinv_within_with(None, Some(1e-3), true)?])
        };
        check("pinv", dtype, &[2, 3, 3], &inverse);
        // (Of rank 2, which no change of the factors changes.)
        let low = |x: &[Tensor]| {
            Ok(vec![x[0].matmul(&x[0].transpose(-2, -1)?)?.linalg_pinv_within_with(
                None,
                Some(1e-3),
                false,
            )?])
        };
        check("pinv of low rank", dtype, &[4, 2], &low);
        // (Of one matrix with tolerances that cut off different singular values: ranks 2, 2 and 0.)
        let tolerances = Tensor::from_slice(&[0.0, 1e-3, 1e3], &[3]).unwrap();
        let many = |x: &[Tensor]| {
            Ok(vec![x[0].linalg_pinv_within_tensors_with(Some(&tolerances), None, false)?])
        };
        check("pinv within tolerances", dtype, &[4, 2], &many);
    }
}

#[test]
fn roots_are_differentiated_twice_where_eigenvalues_are_equal() {
    let one = pullback::ops::creation::factory::eye_with(3, Some(DType::F64), None, None, None);
    let one = one.unwrap().with_grad().unwrap();
    let f = |x: &[Tensor]| Ok(vec![hermitian(&x[0])?.linalg_matrix_sqrth()?]);
    assert_eq!(gradcheck(&f, std::slice::from_ref(&one), Tolerance::default()).unwrap(), Ok(()));
    assert_eq!(gradgradcheck(&f, &[one], Tolerance::default()).unwrap(), Ok(()));
}

#[test]
fn eigenvectors_of_equal_eigenvalues_have_no_gradient_and_say_so() {
    let refusal = |y: Result<Tensor>| {
        let error = y.and_then(|y| y.sum()?.real()?.backward()).unwrap_err();
        error.message().to_owned()
    };
    let complex = Sampler::new(DType::C128).normal(&[3, 3]).with_grad().unwrap();
    let [_, v] = complex.linalg_eig().unwrap();
    assert!(refusal(Ok(v)).contains("specified up to multiplication by e^{i phi}"));
    let twice = Tensor::from_slice(&[2.0, 0.0, 0.0, 2.0], &[2, 2]).unwrap().with_grad().unwrap();
    let [w, _] = twice.linalg_eig().unwrap();
    w.sum().and_then(|w| w.real()?.backward()).unwrap();
    let [_, v] = twice.linalg_eig().unwrap();
    let first = v.real().and_then(|v| v.narrow(0, 0, 1));
    assert!(refusal(first).contains("two eigenvalues are equal"));
}

#[test]
fn least_squares_have_the_gradients_of_every_driver() {
    for dtype in DTYPES {
        for driver in ["gels", "gelsy", "gelsd", "gelss"] {
            for shape in [[4, 2], [2, 4]] {
                let s = Sampler::new(dtype);
                // (The first are those of the matrix itself, so that nothing is left of them if it is tall.)
                for b in [s.normal(&[shape[0], 2]), s.normal(&[shape[0], 2])] {
                    check(driver, dtype, &shape, &|x: &[Tensor]| least_squares(&x[0], &b, driver));
                }
            }
        }
    }
}

/// What has a derivative of the solution of least squares.
fn least_squares(a: &Tensor, b: &Tensor, driver: &str) -> Result<Vec<Tensor>> {
    let [x, residuals, ..] = a.linalg_lstsq_with(b, None, Some(driver))?;
    Ok(vec![x, residuals])
}

#[test]
fn least_squares_have_the_tangents_of_every_driver() {
    use pullback::autograd::forward::{dual_level, make_dual, unpack_dual};
    for dtype in DTYPES {
        for driver in ["gels", "gelsy", "gelsd", "gelss"] {
            for shape in [[4, 2], [2, 4]] {
                let s = Sampler::new(dtype);
                let (a, t, b) = (s.normal(&shape), s.normal(&shape), s.normal(&[shape[0], 2]));
                let f = |a: &Tensor| {
                    let all = least_squares(a, &b, driver)?;
                    all[0].sum()?.add(&all[1].sum()?)
                };
                let moved = |step: f64| f(&a.add(&t.mul(&Tensor::wrapped(step)?)?)?);
                let expected = moved(1e-6).unwrap().sub(&moved(-1e-6).unwrap()).unwrap();
                let expected = expected.mul(&Tensor::wrapped(5e5).unwrap()).unwrap();
                let _level = dual_level().unwrap();
                let y = f(&make_dual(&a, &t).unwrap()).unwrap();
                let got = unpack_dual(&y).unwrap().1.unwrap();
                let (error, size) = (got.sub(&expected).unwrap(), expected.abs().unwrap());
                let ratio = error.abs().unwrap().item().unwrap().to_f64()
                    / (1.0 + size.item().unwrap().to_f64());
                assert!(
                    ratio < 1e-5,
                    "{driver}, {dtype:?} {shape:?}: {got:?} against {expected:?}"
                );
            }
        }
    }
}

#[test]
fn ranks_and_singular_values_of_least_squares_have_no_derivative() {
    use pullback::autograd::forward::{dual_level, make_dual, unpack_dual};
    for dtype in DTYPES {
        for driver in ["gelsy", "gelsd", "gelss"] {
            let s = Sampler::new(dtype);
            let (a, t, b) = (s.normal(&[4, 2]), s.normal(&[4, 2]), s.normal(&[4, 2]));
            let leaf = a.clone_tensor(None).unwrap().with_grad().unwrap();
            let [x, _, rank, values] = leaf.linalg_lstsq_with(&b, None, Some(driver)).unwrap();
            assert!(x.requires_grad() && !rank.requires_grad() && !values.requires_grad());
            let _level = dual_level().unwrap();
            let dual = make_dual(&a, &t).unwrap();
            let [x, _, rank, values] = dual.linalg_lstsq_with(&b, None, Some(driver)).unwrap();
            assert!(unpack_dual(&x).unwrap().1.is_some());
            assert!(unpack_dual(&rank).unwrap().1.is_none());
            assert!(unpack_dual(&values).unwrap().1.is_none());
        }
    }
}

#[test]
fn matrices_without_elements_have_gradients_without_elements() {
    for dtype in DTYPES {
        for shape in [[0, 3], [2, 0], [0, 0]] {
            check("svdvals", dtype, &shape, &|x: &[Tensor]| Ok(vec![x[0].linalg_svdvals()?]));
            let svd = |x: &[Tensor]| x[0].linalg_svd(false).map(Vec::from);
            check("svd", dtype, &shape, &svd);
            let two = pullback::Scalar::Int(2);
            let norm = |x: &[Tensor]| Ok(vec![x[0].linalg_matrix_norm(two, &[-2, -1], false)?]);
            check("matrix_norm", dtype, &shape, &norm);
            check("cond", dtype, &shape, &|x: &[Tensor]| Ok(vec![x[0].linalg_cond(None)?]));
        }
    }
}

#[test]
fn equal_values_give_the_gradient_of_what_does_not_depend_on_their_vectors() {
    let one = pullback::ops::creation::factory::eye_with(3, Some(DType::F64), None, None, None);
    let one = one.unwrap().with_grad().unwrap();
    let grad_of = |y: Tensor| {
        let sum = y.sum().unwrap();
        let options =
            pullback::autograd::BackwardOptions { retain_graph: Some(true), ..Default::default() };
        let grads = pullback::autograd::grad(&[&sum], &[&one], &[None], options);
        grads.unwrap()[0].clone().unwrap().to_vec::<f64>().unwrap()
    };
    // The polar factor of the identity moves by the skew part of a change only.
    let [u, s, vh] = one.linalg_svd(true).unwrap();
    let unitary = u.matmul(&vh).unwrap();
    assert!(grad_of(unitary).iter().all(|g| g.abs() < 1e-12));
    assert_eq!(grad_of(s), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    let refusal = |y: Result<Tensor>| {
        let error = y.and_then(|y| y.sum()?.backward()).unwrap_err();
        error.message().to_owned()
    };
    let weight = Sampler::new(DType::F64).normal(&[3, 3]);
    let [u, ..] = one.linalg_svd(true).unwrap();
    assert!(refusal(u.mul(&weight)).contains("two singular values are equal"));
    let [_, v] = one.linalg_eigh("L").unwrap();
    assert!(refusal(v.mul(&weight)).contains("two eigenvalues are equal"));
}
