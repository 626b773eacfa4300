//! Lazy clones: two tensors show the same bytes until one of them is written, and no write is ever seen by the other.

use pullback::{DType, Device, ErrorKind, Result, Scalar, Tensor, TensorSpec, binding};
use std::sync::Barrier;

fn numbers(count: i64) -> Tensor {
    let values: Vec<f64> = (0..count).map(|n| n as f64).collect();
    Tensor::from_slice(&values, &[count]).unwrap()
}

fn number(value: f64) -> Tensor {
    Tensor::scalar_of(value, DType::F64).unwrap()
}

/// Few elements lie behind their storage's header, many in a block of their own.
const SIZES: [i64; 2] = [6, 1000];

fn storage_of(t: &Tensor) -> usize {
    t.storage().unwrap().id()
}

/// Whether two tensors show the same bytes through storages of their own, neither of which was written.
#[track_caller]
fn assert_shared(a: &Tensor, b: &Tensor) {
    assert!(a.is_lazy() && b.is_lazy());
    assert_eq!(a.data_ptr(), b.data_ptr());
    assert_ne!(storage_of(a), storage_of(b));
}

#[test]
fn a_lazy_clone_shows_the_bytes_of_its_source() -> Result<()> {
    for count in SIZES {
        let x = numbers(count);
        let (storage, address) = (storage_of(&x), x.data_ptr());
        assert!(!x.is_lazy());
        let y = x.lazy_clone()?;
        assert_shared(&x, &y);
        assert_eq!((storage_of(&x), x.data_ptr()), (storage, address));
        assert!(!y.is_view() && y.version() == 0);
        let z = y.lazy_clone()?;
        assert_shared(&y, &z);
        assert_eq!(z.to_vec::<f64>()?, x.to_vec::<f64>()?);
    }
    Ok(())
}

#[test]
fn sizes_strides_and_offset_stay() -> Result<()> {
    let x = numbers(24).reshape(&[4, 6])?;
    let part = x.narrow(1, 2, 3)?.t()?;
    let y = part.lazy_clone()?;
    assert_eq!((y.shape(), y.strides(), y.storage_offset()), (&[3, 4][..], &[1, 6][..], 2));
    assert_eq!(y.to_vec::<f64>()?, part.to_vec::<f64>()?);
    let wide = numbers(3).unsqueeze(1)?.expand(&[3, 4], false)?;
    assert_eq!(wide.lazy_clone()?.strides(), [1, 0]);
    let none = TensorSpec::of(&[0, 3], DType::F32).zeros()?;
    let clone = none.lazy_clone()?;
    clone.add_(&number(1.0))?;
    assert_eq!(clone.shape(), [0, 3]);
    Ok(())
}

#[test]
fn readers_leave_it_lazy() -> Result<()> {
    for count in SIZES {
        let x = numbers(count);
        let y = x.lazy_clone()?;
        x.add(&y)?.sum()?.item()?;
        y.view(&[-1])?.select(0, 1)?.item()?;
        assert_eq!(y.dot(&x)?.dtype(), DType::F64);
        assert!(y.equal(&x)?);
        let copies = [y.clone_tensor(None)?, y.to_dtype(DType::F32)?];
        assert!(y.contiguous()?.is_same(&y));
        assert!(copies[0].data_ptr() != y.data_ptr() && !copies[0].is_lazy());
        let _ = (format!("{y}"), y.to_vec::<f64>()?, x.cumsum(0)?, x.sort(0, false)?);
        let target = numbers(count);
        target.copy_(&y, false)?;
        target.add_(&y)?;
        y.resize(&[count - 1])?;
        assert_shared(&x, &y);
    }
    Ok(())
}

/// What writes to a tensor.
type Write = (&'static str, fn(&Tensor) -> Result<()>);

/// Ways to write to a row of numbers.
const WRITES: &[Write] = &[
    ("in place", |t| t.add_(&number(5.0)).map(drop)),
    ("in place, with itself", |t| t.add_(t).map(drop)),
    ("by an op that gives its target a result", |t| t.cumsum_(0).map(drop)),
    ("by a copy", |t| t.copy_(&Tensor::scalar_of(7, DType::F32)?, false).map(drop)),
    ("by zeros", |t| t.zero_().map(drop)),
    ("random numbers", |t| t.uniform_(2.0, 3.0).map(drop)),
    ("out=", |t| t.neg_out(&[t]).map(drop)),
    ("out= of another op", |t| {
        let ones = t.ones_like()?;
        let eye = TensorSpec::of(&[t.numel(), t.numel()], DType::F64).zeros()?;
        eye.mv_out(&ones, &[t]).map(drop)
    }),
    ("a view", |t| t.select(0, 1)?.fill_(Scalar::Float(9.0)).map(drop)),
    ("a strided view", |t| t.slice(0, Some(0), None, 2)?.mul_(&number(3.0)).map(drop)),
    ("elements by indices", |t| {
        let index = Tensor::from_slice(&[1_i64], &[1])?;
        t.index_fill_(0, &index, &number(4.0)).map(drop)
    }),
    ("growing", |t| {
        t.resize(&[t.numel() * 40])?;
        t.zero_().map(drop)
    }),
    ("through its address", |t| {
        // SAFETY: the first element of a tensor of `f64`.
        unsafe { t.data_ptr_mut()?.cast::<f64>().write(11.0) };
        Ok(())
    }),
    ("through its storage's address", |t| {
        // SAFETY: as above.
        unsafe { t.storage().unwrap().data_ptr_mut()?.cast::<f64>().write(11.0) };
        Ok(())
    }),
    ("an array over it", |t| {
        t.export_as_array()?;
        // SAFETY: as above.
        unsafe { t.data_ptr().cast_mut().cast::<f64>().write(11.0) };
        Ok(())
    }),
    ("running statistics", |t| {
        let n = t.numel();
        let (input, var) = (Tensor::randn([4, n])?.to_dtype(DType::F64)?, t.ones_like()?);
        let some = |tensor: &Tensor| Some(tensor.clone());
        let (mean, var) = (some(t), some(&var));
        input.batch_norm(None, None, mean.as_ref(), var.as_ref(), true, 0.5, 1e-5, false).map(drop)
    }),
];

#[test]
fn a_write_to_one_is_not_seen_by_the_other() -> Result<()> {
    for count in SIZES {
        for (what, write) in WRITES {
            for is_source in [false, true] {
                let x = numbers(count);
                let y = x.lazy_clone()?;
                let (written, other) = if is_source { (&x, &y) } else { (&y, &x) };
                let view = written.view(&[-1])?;
                let (before, storage) = (written.to_vec::<f64>()?, storage_of(written));
                write(written)?;
                assert!(!written.is_lazy() && other.is_lazy(), "{what}");
                assert_eq!(other.to_vec::<f64>()?, before, "{what}");
                assert_ne!(written.to_vec::<f64>()?, before, "{what}");
                assert_eq!(storage_of(written), storage, "{what}");
                assert_eq!(view.data_ptr(), written.data_ptr(), "{what}: a view shows other bytes");
                // The last one that shows the bytes takes them as they are.
                let address = other.data_ptr();
                other.add_(&number(1.0))?;
                assert!(!other.is_lazy() && other.data_ptr() == address, "{what}");
                let more: Vec<f64> = before.iter().map(|v| v + 1.0).collect();
                assert_eq!(other.to_vec::<f64>()?, more, "{what}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_written_one_can_be_cloned_again() -> Result<()> {
    for count in SIZES {
        let first = numbers(count);
        let mut all = vec![first.clone()];
        for round in 0..40 {
            let from = &all[round % all.len()];
            let clone = from.lazy_clone()?;
            assert_shared(from, &clone);
            clone.add_(&number(1.0))?;
            let last = from.lazy_clone()?;
            from.add_(&number(0.5))?;
            assert_eq!(last.add(&number(0.5))?.to_vec::<f64>()?, from.to_vec::<f64>()?);
            all.extend([clone, last]);
            if round % 3 == 0 {
                all.swap_remove(round % all.len());
            }
        }
        // Whoever goes first, the bytes stay as long as somebody shows them.
        let texts: Vec<Vec<f64>> = all.iter().map(Tensor::to_vec).collect::<Result<_>>()?;
        while let Some(gone) = all.pop() {
            drop(gone);
            for (t, expected) in all.iter().zip(&texts) {
                assert_eq!(&t.to_vec::<f64>()?, expected);
            }
        }
    }
    Ok(())
}

#[test]
fn snapshots_of_a_tensor_that_goes_on_leave_no_trail_of_blocks() -> Result<()> {
    let x = numbers(1 << 17);
    let mut snapshot = x.lazy_clone()?;
    let mut addresses = std::collections::BTreeSet::new();
    for _ in 0..50 {
        x.add_(&number(1.0))?;
        addresses.insert(x.data_ptr());
        snapshot = x.lazy_clone()?;
    }
    assert!(addresses.len() < 5, "{} blocks", addresses.len());
    x.zero_()?;
    assert_eq!(snapshot.select(0, 1)?.item()?, Scalar::Float(51.0));
    Ok(())
}

#[test]
fn the_source_may_go_first() -> Result<()> {
    for count in SIZES {
        let x = numbers(count);
        let expected = x.to_vec::<f64>()?;
        let y = x.lazy_clone()?;
        drop(x);
        let others: Vec<Tensor> = (0..50).map(|_| numbers(count)).collect();
        assert_eq!(y.to_vec::<f64>()?, expected);
        let address = y.data_ptr();
        y.add_(&number(1.0))?;
        assert_eq!(y.data_ptr(), address);
        drop(others);
    }
    Ok(())
}

#[test]
fn memory_that_others_may_write_to_is_copied_at_once() -> Result<()> {
    let x = numbers(6);
    x.export_as_array()?;
    let y = x.lazy_clone()?;
    assert!(!x.is_lazy() && !y.is_lazy() && x.data_ptr() != y.data_ptr());
    assert_eq!(y.to_vec::<f64>()?, x.to_vec::<f64>()?);
    let mut outside = [1.0_f64, 2.0];
    let data = outside.as_mut_ptr().cast();
    let keeper = pullback::tensor::Keeper::new(());
    // SAFETY: two elements, which live longer than the tensor.
    let t = unsafe { binding::foreign(data, &[2], &[1], DType::F64, keeper) }?;
    let clone = t.lazy_clone()?;
    // SAFETY: as above.
    unsafe { data.cast::<f64>().write(5.0) };
    assert_eq!((t.to_vec::<f64>()?, clone.to_vec::<f64>()?), (vec![5.0, 2.0], vec![1.0, 2.0]));
    Ok(())
}

#[test]
fn gradients_and_other_devices() -> Result<()> {
    let x = numbers(4).with_grad()?;
    let y = x.lazy_clone()?;
    assert_eq!(y.grad_fn()?.unwrap().name(), "LazyCloneBackward0");
    y.mul(&y)?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [0.0, 2.0, 4.0, 6.0]);
    // What was saved for the backward pass is the clone: writing to the source changes nothing.
    let z = y.detach()?.lazy_clone()?.with_grad()?;
    let product = z.mul(&z)?;
    y.detach()?.zero_()?;
    product.sum()?.backward()?;
    assert_eq!(z.grad().unwrap().to_vec::<f64>()?, [0.0, 2.0, 4.0, 6.0]);
    let meta = TensorSpec::of(&[2, 3], DType::F32).on(Device::Meta).zeros()?;
    assert_eq!(meta.lazy_clone()?.device(), Device::Meta);
    let sparse = numbers(4).to_sparse_with(None, None, None)?;
    assert_eq!(sparse.lazy_clone().unwrap_err().kind(), ErrorKind::NotImplemented);
    let bits = Tensor::from_slice(&[pullback::C128::new(1.0, 2.0)], &[1])?.conj()?;
    let clone = bits.lazy_clone()?;
    assert!(clone.is_conj());
    assert_eq!(clone.to_vec::<pullback::C128>()?, bits.to_vec::<pullback::C128>()?);
    Ok(())
}

#[test]
fn threads_that_write_their_own_clones_see_nothing_of_each_other() -> Result<()> {
    const THREADS: usize = 4;
    for round in 0..200 {
        let count = SIZES[round % 2];
        let x = numbers(count);
        let expected = x.to_vec::<f64>()?;
        let clones = (0..THREADS).map(|_| x.lazy_clone()).collect::<Result<Vec<_>>>()?;
        let start = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for (place, clone) in clones.iter().enumerate() {
                let (start, x, expected) = (&start, &x, &expected);
                scope.spawn(move || {
                    start.wait();
                    clone.add_(&number(place as f64 + 1.0)).unwrap();
                    let more = |v: &f64| v + place as f64 + 1.0;
                    let wanted: Vec<f64> = expected.iter().map(more).collect();
                    assert_eq!(clone.to_vec::<f64>().unwrap(), wanted);
                    assert_eq!(&x.to_vec::<f64>().unwrap(), expected);
                    assert_eq!(&x.lazy_clone().unwrap().to_vec::<f64>().unwrap(), expected);
                });
            }
        });
        assert!(clones.iter().all(|clone| !clone.is_lazy()));
        let address = x.data_ptr();
        x.zero_()?;
        assert_eq!(x.data_ptr(), address, "nobody else shows the bytes any more");
    }
    Ok(())
}

#[test]
fn two_threads_may_write_to_parts_of_one_clone_at_once() -> Result<()> {
    for round in 0..200 {
        let count = SIZES[round % 2];
        let x = numbers(count);
        let y = x.lazy_clone()?;
        let parts = [y.narrow(0, 0, count / 2)?, y.narrow(0, count / 2, count / 2)?];
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            for part in &parts {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    part.add_(&number(1.0)).unwrap();
                });
            }
        });
        assert_eq!(y.to_vec::<f64>()?, x.add(&number(1.0))?.to_vec::<f64>()?);
    }
    Ok(())
}
