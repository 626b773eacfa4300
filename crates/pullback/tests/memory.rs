//! What tensors and graphs hold, and when they let go. One test, because the counters are the process's.

use pullback::{DType, ErrorKind, Result, Tensor, TensorSpec, memory};

const MIB: usize = 1 << 20;

fn fresh(bytes: usize) -> Result<Tensor> {
    TensorSpec::of(&[bytes as i64 / 8], DType::F64).zeros()
}

/// Live bytes that came since `before`, in whole MiB.
fn grown(before: usize) -> usize {
    memory::live_bytes().saturating_sub(before) / MIB
}

#[test]
fn memory_is_counted_kept_by_views_and_freed_with_graphs() -> Result<()> {
    too_much_is_an_error_that_says_how_much();
    counters_follow_allocation_and_release()?;
    // (For a sanitizer nothing is kept.)
    if !cfg!(pullback_sanitize) {
        freed_blocks_are_kept_and_used_again()?;
        a_tensor_that_grows_leaves_no_trail_of_blocks()?;
        a_loop_finds_its_blocks_again()?;
    }
    a_view_keeps_the_memory_of_its_base()?;
    a_graph_keeps_what_it_saved_until_it_is_freed()?;
    a_dropped_graph_frees_everything()?;
    attention_holds_some_of_its_scores_at_a_time()?;
    resizing_needs_no_matrix_of_all_weights()
}

fn too_much_is_an_error_that_says_how_much() {
    let error = Tensor::empty_of(&[1 << 48], DType::F64).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let requested = (1_usize << 51).to_string();
    assert!(error.message().contains("can't allocate memory"), "{error}");
    assert!(error.message().contains(&requested), "{error}");
    let error = Tensor::empty_of(&[1 << 40, 1 << 40], DType::F64).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Runtime, "{error}");
}

fn counters_follow_allocation_and_release() -> Result<()> {
    memory::empty_cache();
    assert_eq!(memory::cached_bytes(), 0);
    let before = memory::live_bytes();
    memory::reset_peak();
    let x = fresh(8 * MIB)?;
    assert_eq!(grown(before), 8);
    drop(x);
    assert_eq!(grown(before), 0);
    assert!(memory::peak_bytes() >= before + 8 * MIB);
    assert_eq!(memory::cached_bytes() == 0, cfg!(pullback_sanitize));
    Ok(())
}

fn freed_blocks_are_kept_and_used_again() -> Result<()> {
    memory::empty_cache();
    drop(fresh(8 * MIB)?);
    assert!(memory::cached_bytes() >= 8 * MIB);
    // The block is used again: what is cached shrinks by it.
    let cached = memory::cached_bytes();
    let again = fresh(8 * MIB)?;
    assert!(memory::cached_bytes() <= cached - 8 * MIB);
    drop(again);
    memory::empty_cache();
    assert_eq!(memory::cached_bytes(), 0);
    memory::set_cache_limit(0);
    drop(fresh(8 * MIB)?);
    assert_eq!(memory::cached_bytes(), 0, "a cache without room keeps nothing");
    memory::set_cache_limit(4 << 30);
    Ok(())
}

fn a_tensor_that_grows_leaves_no_trail_of_blocks() -> Result<()> {
    memory::empty_cache();
    let mut x = Tensor::empty_of(&[4 << 20], DType::U8)?;
    let mut freed = 0;
    while x.numel() < 128 << 20 {
        freed += x.numel() as usize;
        x = Tensor::empty_of(&[x.numel() * 9 / 8], DType::U8)?;
    }
    assert!(freed > 900 * MIB);
    // Half as much again as the old and the new tensor, which were live together.
    let most = 3 * x.numel() as usize + 16 * MIB;
    assert!(memory::cached_bytes() <= most.max(256 * MIB), "{}", memory::cached_bytes() / MIB);
    // What is kept is what was freed last.
    let cached = memory::cached_bytes();
    drop(Tensor::empty_of(&[x.numel() * 8 / 9], DType::U8)?);
    assert_eq!(memory::cached_bytes(), cached);
    drop(x);
    memory::empty_cache();
    Ok(())
}

fn a_loop_finds_its_blocks_again() -> Result<()> {
    memory::empty_cache();
    // Held together, and then other sizes one at a time: half as much again in all.
    let pass = || -> Result<()> {
        let held: Result<Vec<_>> =
            (0..8).map(|i| Tensor::empty_of(&[(40 + 5 * i) << 20], DType::U8)).collect();
        drop(held?);
        for i in 0..2 {
            drop(Tensor::empty_of(&[(81 + 11 * i) << 20], DType::U8)?);
        }
        Ok(())
    };
    pass()?;
    let cached = memory::cached_bytes();
    assert!(cached > 600 * MIB);
    for _ in 0..3 {
        pass()?;
        assert_eq!(memory::cached_bytes(), cached);
    }
    memory::empty_cache();
    Ok(())
}

fn a_view_keeps_the_memory_of_its_base() -> Result<()> {
    let before = memory::live_bytes();
    let view = fresh(4 * MIB)?.select(0, 7)?;
    assert_eq!(view.numel(), 1);
    assert_eq!(grown(before), 4);
    let copy = view.clone_tensor(None)?;
    drop(view);
    assert_eq!(grown(before), 0);
    drop(copy);
    Ok(())
}

fn a_graph_keeps_what_it_saved_until_it_is_freed() -> Result<()> {
    let x = fresh(2 * MIB)?.with_grad()?;
    let before = memory::live_bytes();
    let y = x.exp()?.exp()?.sum()?;
    assert_eq!(grown(before), 4, "each exp saves its result");
    y.backward()?;
    assert_eq!(grown(before), 2, "only the gradient is left");
    assert_eq!(x.grad().unwrap().numel(), x.numel());
    Ok(())
}

fn a_dropped_graph_frees_everything() -> Result<()> {
    let before = memory::live_bytes();
    let x = fresh(2 * MIB)?.with_grad()?;
    // What is written to must be nothing that was saved.
    let y = x.exp()?.add(&x)?;
    let view = y.select(0, 0)?;
    view.mul_(&Tensor::wrapped(2.0)?)?;
    let z = y.exp()?.sum()?;
    let options = pullback::autograd::BackwardOptions { create_graph: true, ..Default::default() };
    let grads = pullback::autograd::grad(&[&z], &[&x], &[None], options)?;
    assert!(grown(before) >= 8);
    drop((x, y, view, z, grads));
    assert_eq!(grown(before), 0, "cycles would have kept it");
    Ok(())
}

/// Most live bytes while `work` ran, beyond those before it, in MiB.
fn peak_of(work: impl FnOnce() -> Result<()>) -> Result<usize> {
    let before = memory::live_bytes();
    memory::reset_peak();
    work()?;
    Ok((memory::peak_bytes() - before) / MIB)
}

fn attention_holds_some_of_its_scores_at_a_time() -> Result<()> {
    // All scores would take 256 MiB.
    let leaf = || TensorSpec::of(&[1, 1, 8192, 8], DType::F32).zeros()?.with_grad();
    let [query, key, value] = [leaf()?, leaf()?, leaf()?];
    let peak = peak_of(|| {
        let [output, _] = query.flash_attention(&key, &value, 0.0, true)?;
        output.sum()?.backward()
    })?;
    assert!(peak < 64, "{peak} MiB");
    Ok(())
}

fn resizing_needs_no_matrix_of_all_weights() -> Result<()> {
    // All weights would take 256 MiB.
    let image = TensorSpec::of(&[1, 1, 1, 8192], DType::F32).zeros()?.with_grad()?;
    let peak =
        peak_of(|| image.upsample_bilinear2d_aa(&[1, 4096], false, None, None)?.sum()?.backward())?;
    assert!(peak < 8, "{peak} MiB");
    Ok(())
}
