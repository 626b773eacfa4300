//! Sparse tensors: their parts, conversions between layouts, products, gradients, refusals.

use pullback::autograd::{BackwardOptions, grad};
use pullback::gradcheck::{Tolerance, gradcheck, gradgradcheck};
use pullback::{DType, Error, ErrorKind, Layout, Result, Tensor, threads};

const LAYOUTS: [Layout; 4] =
    [Layout::SparseCsr, Layout::SparseCsc, Layout::SparseBsr, Layout::SparseBsc];

fn matrix(values: &[f64], shape: &[i64]) -> Tensor {
    Tensor::from_slice(values, shape).unwrap()
}

fn whole(numbers: &[i64], shape: &[i64]) -> Tensor {
    Tensor::from_slice(numbers, shape).unwrap()
}

/// `[[0, 2, 0, 0], [3, 0, 4, 5]]`.
fn example() -> Tensor {
    matrix(&[0.0, 2.0, 0.0, 0.0, 3.0, 0.0, 4.0, 5.0], &[2, 4])
}

fn compressed(dense: &Tensor, layout: Layout) -> Result<Tensor> {
    let block: Option<&[i64]> = layout.is_blocked().then_some(&[1, 2]);
    dense.to_sparse_with(Some(layout), block, None)
}

fn elements(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dense(None).unwrap().to_vec::<f64>().unwrap()
}

fn refused(result: Result<Tensor>, kind: ErrorKind, phrase: &str) {
    let error: Error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error:?}");
    assert!(error.message().contains(phrase), "{error:?} lacks {phrase:?}");
}

#[test]
fn coalescing_adds_the_values_of_equal_places_in_order() -> Result<()> {
    let places = whole(&[1, 0, 1, 0, 2, 1, 2, 0], &[2, 4]);
    let values = matrix(&[1.0, 2.0, 3.0, 4.0], &[4]);
    let sparse = Tensor::sparse_coo(&places, &values, &[2, 3], false)?;
    assert!(!sparse.is_coalesced()?);
    assert_eq!(sparse.sparse_count()?, 4);
    let coalesced = sparse.coalesce()?;
    assert!(coalesced.is_coalesced()?);
    assert_eq!(coalesced.indices()?.to_vec::<i64>()?, [0, 0, 1, 0, 1, 2]);
    assert_eq!(coalesced.values()?.to_vec::<f64>()?, [4.0, 2.0, 4.0]);
    assert_eq!(elements(&sparse), elements(&coalesced));
    Ok(())
}

#[test]
fn every_layout_keeps_the_elements_and_comes_back() -> Result<()> {
    for from in LAYOUTS {
        let first = compressed(&example(), from)?;
        assert_eq!(first.layout(), from);
        assert_eq!(elements(&first), elements(&example()), "{from:?}");
        for to in LAYOUTS {
            assert_eq!(elements(&compressed(&first, to)?), elements(&example()), "{from:?} {to:?}");
        }
        assert_eq!(elements(&first.to_sparse()?), elements(&example()));
    }
    Ok(())
}

#[test]
fn compressed_rows_have_the_parts_that_define_them() -> Result<()> {
    let rows = example().to_sparse_csr(None)?;
    assert_eq!(rows.crow_indices()?.to_vec::<i64>()?, [0, 1, 4]);
    assert_eq!(rows.col_indices()?.to_vec::<i64>()?, [1, 0, 2, 3]);
    assert_eq!(rows.values()?.to_vec::<f64>()?, [2.0, 3.0, 4.0, 5.0]);
    let columns = rows.t()?;
    assert_eq!(columns.layout(), Layout::SparseCsc);
    assert_eq!(columns.ccol_indices()?.to_vec::<i64>()?, [0, 1, 4]);
    let blocks = example().to_sparse_bsr(&[1, 2], None)?;
    assert_eq!(blocks.values()?.shape(), [3, 1, 2]);
    assert_eq!(blocks.col_indices()?.to_vec::<i64>()?, [0, 0, 1]);
    Ok(())
}

#[test]
fn batches_and_dense_dimensions_go_through_every_layout() -> Result<()> {
    let values: Vec<f64> =
        (0..48).map(|n| if n % 24 % 5 == 0 { f64::from(n + 1) } else { 0.0 }).collect();
    let dense = matrix(&values, &[2, 2, 4, 3]);
    for layout in LAYOUTS {
        let block: Option<&[i64]> = layout.is_blocked().then_some(&[2, 2]);
        let sparse = dense.to_sparse_with(Some(layout), block, Some(1))?;
        assert_eq!(elements(&sparse), values, "{layout:?}");
        assert_eq!(sparse.dense_dim()?, 1);
    }
    let hybrid = dense.to_sparse_dim(2)?;
    assert_eq!((hybrid.sparse_dim()?, hybrid.dense_dim()?), (2, 2));
    assert_eq!(elements(&hybrid), values);
    Ok(())
}

#[test]
fn products_with_sparse_matrices_are_those_of_dense_ones() -> Result<()> {
    for dtype in [DType::F16, DType::F32, DType::F64, DType::C64, DType::C128, DType::I64] {
        let a = example().to_dtype(dtype)?;
        let b = matrix(&[1.0, -2.0, 3.0, 4.0, 0.0, 6.0, 7.0, 8.0, 9.0, 1.0, 2.0, 3.0], &[4, 3]);
        let b = b.to_dtype(dtype)?;
        let expected = a.mm(&b)?.to_dtype(DType::F64)?.to_vec::<f64>()?;
        for layout in [Layout::SparseCoo, Layout::SparseCsr, Layout::SparseBsc] {
            let (s, t) = if layout == Layout::SparseCoo {
                (a.to_sparse()?, b.to_sparse()?)
            } else {
                (compressed(&a, layout)?, b.to_sparse_with(Some(Layout::SparseCsr), None, None)?)
            };
            for product in [s.mm(&b)?, a.mm(&t)?, s.mm(&t)?] {
                assert_eq!(elements(&product.to_dtype(DType::F64)?), expected, "{dtype:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_gradient_of_a_product_is_given_where_the_matrix_specifies_elements() -> Result<()> {
    let values = matrix(&[2.0, 3.0, 4.0, 5.0], &[4]).with_grad()?;
    let places = whole(&[0, 1, 1, 1, 1, 0, 2, 3], &[2, 4]);
    let dense = matrix(&[1.0, -2.0, 3.0, 4.0, 0.5, 6.0, 7.0, 8.0], &[4, 2]).with_grad()?;
    let f = |x: &[Tensor]| -> Result<Vec<Tensor>> {
        let sparse = Tensor::sparse_coo(&places, &x[0], &[2, 4], true)?;
        Ok(vec![sparse.sparse_mm(&x[1])?])
    };
    gradcheck(&f, &[values.clone(), dense.clone()], Tolerance::default())?.unwrap();
    gradgradcheck(&f, &[values, dense], Tolerance::default())?.unwrap();
    let sparse = example().to_sparse()?.with_grad()?;
    let product = sparse.sparse_mm(&matrix(&[1.0; 8], &[4, 2]))?.sum()?;
    let slope =
        grad(&[&product], &[&sparse], &[None], BackwardOptions::default())?.remove(0).unwrap();
    assert_eq!(slope.layout(), Layout::SparseCoo);
    assert_eq!(elements(&slope), [0.0, 2.0, 0.0, 0.0, 2.0, 0.0, 2.0, 2.0]);
    Ok(())
}

#[test]
fn a_table_gets_the_gradient_of_the_rows_that_were_read() -> Result<()> {
    let weight = matrix(&[1.0; 8], &[4, 2]).with_grad()?;
    let read = whole(&[1, 3, 1], &[3]);
    let rows = weight.embedding(&read, 3, false, true)?;
    rows.mul(&matrix(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]))?.sum()?.backward()?;
    let slope = weight.grad().unwrap();
    assert_eq!(slope.layout(), Layout::SparseCoo);
    assert_eq!(elements(&slope), [0.0, 0.0, 6.0, 8.0, 0.0, 0.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn gradients_of_both_layouts_add_up_in_any_order() -> Result<()> {
    for sparse_first in [true, false] {
        let weight = matrix(&[1.0; 4], &[2, 2]).with_grad()?;
        let run = |sparse: bool| {
            weight.embedding(&whole(&[1], &[1]), -1, false, sparse)?.sum()?.backward()
        };
        run(sparse_first)?;
        let first = weight.grad().unwrap();
        assert_eq!(first.is_sparse(), sparse_first);
        run(!sparse_first)?;
        assert_eq!(elements(&weight.grad().unwrap()), [0.0, 0.0, 2.0, 2.0]);
        assert!(!weight.grad().unwrap().is_sparse());
        // Within one graph they meet in the engine.
        weight.set_grad(None)?;
        let both = weight.embedding(&whole(&[0], &[1]), -1, false, sparse_first)?;
        let other = weight.embedding(&whole(&[1], &[1]), -1, false, !sparse_first)?;
        both.add(&other)?.sum()?.backward()?;
        assert_eq!(elements(&weight.grad().unwrap()), [1.0, 1.0, 1.0, 1.0]);
    }
    Ok(())
}

#[test]
fn sparse_tensors_are_written_in_place_and_their_aliases_see_it() -> Result<()> {
    let x = example().to_sparse()?;
    let alias = x.detach()?;
    let version = x.version();
    x.mul_(&matrix(&[2.0], &[]))?;
    assert_eq!(elements(&alias), elements(&example().mul(&Tensor::wrapped(2)?)?));
    assert!(x.version() > version);
    x.add_(&x.clone_tensor(None)?)?;
    assert_eq!(elements(&x)[1], 8.0);
    x.zero_()?;
    assert_eq!((x.sparse_count()?, elements(&x)), (0, vec![0.0; 8]));
    Ok(())
}

#[test]
fn numbers_scale_and_divide_the_values() -> Result<()> {
    for layout in [Layout::SparseCoo, Layout::SparseCsr, Layout::SparseBsc] {
        let x = if layout == Layout::SparseCoo {
            example().to_sparse()?
        } else {
            compressed(&example(), layout)?
        };
        let two = Tensor::wrapped(2)?;
        for (sparse, dense) in [
            (x.div(&two)?, example().div(&two)?),
            (x.floor_divide(&two)?, example().floor_divide(&two)?),
            (x.mul(&two)?, example().mul(&two)?),
        ] {
            assert_eq!((sparse.layout(), elements(&sparse)), (layout, elements(&dense)));
        }
        let y = x.zeros_like()?;
        y.copy_(&x, false)?;
        assert_eq!(elements(&y), elements(&x));
        refused(x.div(&x), ErrorKind::Runtime, "got shape [2, 4] for divisor");
    }
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused() -> Result<()> {
    let values = matrix(&[1.0, 2.0], &[2]);
    let coo = |places: &[i64], size: &[i64]| {
        Tensor::sparse_coo(&whole(places, &[2, 2]), &values, size, false)
    };
    refused(
        coo(&[0, 2, 0, 0], &[2, 2]),
        ErrorKind::Runtime,
        "for dim 0, size is 2 but found index 2",
    );
    refused(coo(&[0, -1, 0, 0], &[2, 2]), ErrorKind::Runtime, "found negative index -1 for dim 0");
    refused(coo(&[0, 1, 0, 0], &[2]), ErrorKind::Runtime, "but got 1");
    let places = whole(&[1, 0, 0, 0], &[2, 2]);
    let unordered = Tensor::sparse_coo(&places, &values, &[2, 2], true);
    refused(unordered, ErrorKind::Runtime, "cannot set is_coalesced to true");
    let rows = |starts: &[i64], columns: &[i64]| {
        let (starts, columns) = (whole(starts, &[3]), whole(columns, &[2]));
        Tensor::sparse_compressed(&starts, &columns, &values, &[2, 2], Layout::SparseCsr)
    };
    refused(rows(&[0, 1, 3], &[0, 1]), ErrorKind::Runtime, "nnz is 2");
    refused(rows(&[0, 2, 2], &[1, 0]), ErrorKind::Runtime, "sorted and distinct");
    refused(rows(&[0, 2, 2], &[0, 2]), ErrorKind::Runtime, "0 <= col_indices < 2");
    refused(rows(&[0, i64::MIN, 2], &[0, 1]), ErrorKind::Runtime, "is not satisfied");
    let sparse = example().to_sparse()?;
    refused(sparse.cos(), ErrorKind::NotImplemented, "Could not run 'aten::cos'");
    refused(sparse.add(&example()), ErrorKind::Runtime, "Use add(dense, sparse) instead");
    assert_eq!(sparse.to_vec::<f64>().unwrap_err().kind(), ErrorKind::Type);
    Ok(())
}

#[test]
fn the_same_bits_come_from_any_number_of_threads() -> Result<()> {
    let count = 20_000;
    let numbers: Vec<i64> = (0..count).map(|n| n * 7919 % 499).collect();
    let columns: Vec<i64> = (0..count).map(|n| n * 104_729 % 997).collect();
    let places = whole(&[numbers, columns].concat(), &[2, count]);
    let values: Vec<f32> = (0..count).map(|n| 1.0 / (n as f32 + 1.0)).collect();
    let values = Tensor::from_slice(&values, &[count])?;
    let dense: Vec<f32> = (0..997 * 33).map(|n| (n as f32).sin()).collect();
    let dense = Tensor::from_slice(&dense, &[997, 33])?;
    let product = || -> Result<Vec<f32>> {
        Tensor::sparse_coo(&places, &values, &[499, 997], false)?.mm(&dense)?.to_vec::<f32>()
    };
    let before = threads::num_threads();
    threads::set_num_threads(1);
    let alone = product()?;
    threads::set_num_threads(3);
    let together = product()?;
    threads::set_num_threads(before);
    assert!(alone == together);
    Ok(())
}

#[test]
fn products_that_stay_sparse_are_those_of_the_dense_matrices() -> Result<()> {
    let factor = matrix(&[1.0, -2.0, 0.5, 3.0, -1.0, 4.0, 2.0, 0.25], &[4, 2]);
    let tall = matrix(&[0.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0, 4.0, 0.0], &[3, 4]);
    let sparse = tall.to_sparse()?.with_grad()?;
    let factor = factor.with_grad()?;
    let expected = tall.mm(&factor)?;
    let by_rows = sparse.hspmm(&factor)?;
    assert_eq!((by_rows.sparse_dim()?, by_rows.sparse_count()?), (1, 2));
    let listed = sparse.smm(&factor)?;
    assert_eq!((listed.sparse_dim()?, listed.sparse_count()?), (2, 4));
    let sum = listed.sspaddmm_with(&sparse, &factor, 2.0.into(), (-1.0).into())?;
    for product in [&by_rows, &listed, &sum] {
        assert_eq!(elements(product), expected.to_vec::<f64>()?);
        let total = product.to_dense(None)?.sum()?;
        let options = BackwardOptions { retain_graph: Some(true), ..BackwardOptions::default() };
        let grads = grad(&[&total], &[&sparse, &factor], &[None], options)?;
        let [by_sparse, by_factor] = [0, 1].map(|at| grads[at].clone().unwrap());
        assert_eq!(by_sparse.layout(), Layout::SparseCoo);
        assert_eq!(
            elements(&by_sparse),
            [0.0, 3.5, 0.0, 2.25, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 3.0, 0.0]
        );
        assert_eq!(by_factor.to_vec::<f64>()?, [3.0, 3.0, 2.0, 2.0, 4.0, 4.0, 1.0, 1.0]);
    }
    Ok(())
}

#[test]
fn a_target_that_is_refused_is_unchanged() -> Result<()> {
    let sparse = Tensor::eye(3)?.to_sparse()?;
    let target = Tensor::from([2.0])?;
    let error = sparse.neg_out(&[&target]).unwrap_err();
    assert!(error.message().contains("cannot be written into a Strided tensor"), "{error}");
    assert_eq!((target.shape(), target.to_vec::<f64>()?), (&[1][..], vec![2.0]));
    Ok(())
}

#[test]
fn a_number_is_written_in_the_places_of_compressed_rows_and_columns() -> Result<()> {
    let dense = matrix(&[1.0, 0.0, 0.0, 2.0, 0.0, 3.0], &[2, 3]);
    for layout in [Layout::SparseCsr, Layout::SparseCsc] {
        let sparse = compressed(&dense, layout)?;
        let ones = sparse.ones_like()?;
        assert_eq!(ones.layout(), layout);
        assert_eq!(elements(&ones), [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
        sparse.fill_(4.0.into())?;
        assert_eq!(elements(&sparse), [4.0, 0.0, 0.0, 4.0, 0.0, 4.0]);
    }
    let listed = dense.to_sparse()?;
    refused(listed.ones_like(), ErrorKind::NotImplemented, "ask for layout=torch.strided");
    Ok(())
}

#[test]
fn slices_of_a_sparse_tensor_are_those_of_the_dense_one() -> Result<()> {
    let dense = example();
    for layout in [Layout::SparseCoo, Layout::SparseCsr, Layout::SparseCsc] {
        let sparse = dense.to_sparse_with(Some(layout), None, None)?;
        for dim in [0, 1, -1] {
            let (found, expected) = (sparse.unbind(dim)?, dense.unbind(dim)?);
            assert_eq!(found.len(), expected.len());
            for (slice, expected) in found.iter().zip(&expected) {
                assert_eq!(slice.layout(), Layout::SparseCoo);
                assert_eq!(elements(slice), expected.to_vec::<f64>()?);
            }
        }
    }
    Ok(())
}

#[test]
fn a_coordinate_list_can_transpose_itself() -> Result<()> {
    let dense = example();
    let sparse = dense.to_sparse()?;
    sparse.t_()?;
    assert_eq!(sparse.shape(), [4, 2]);
    assert_eq!(elements(&sparse), dense.t()?.contiguous()?.to_vec::<f64>()?);
    sparse.transpose_(0, -1)?;
    assert_eq!(elements(&sparse), dense.to_vec::<f64>()?);
    Ok(())
}
