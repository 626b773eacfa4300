//! Errors as a Rust program prints them: dtypes, devices and layouts in Rust's words, with PyTorch's words in `message()`.

use pullback::prelude::*;
use pullback::{DType, Device};

/// The error in both spellings.
#[track_caller]
fn both<T>(result: Result<T>) -> (String, String) {
    let Err(error) = result else { panic!("it was not refused") };
    (error.to_string(), error.message().to_owned())
}

/// Checks that `rust` is in what `Display` says and `pytorch` in the message, and neither in the other.
#[track_caller]
fn check<T>(result: Result<T>, rust: &str, pytorch: &str) {
    let (shown, message) = both(result);
    assert!(shown.contains(rust) && !shown.contains(pytorch), "{shown}");
    assert!(message.contains(pytorch) && !message.contains(rust), "{message}");
    for text in [shown, message] {
        assert!(!text.chars().any(|c| ('\u{FDD0}'..='\u{FDEF}').contains(&c)), "{text:?}");
    }
}

#[test]
fn dtypes_are_those_of_rust() -> Result<()> {
    let (x, y) = (Tensor::ones([2, 2])?, Tensor::options().dtype(DType::F64).ones([2, 2])?);
    check(x.mm(&y), "F32 != F64", "float != double");
    check(x.embedding(&x, -1, false, false), "but got F32 Tensor", "but got torch.FloatTensor");
    check(x.embedding(&y, -1, false, false), "types: I64, I32;", "types: Long, Int;");
    // One that kernels refuse, and one that is about a number.
    check(x.bitwise_and(&x), "not implemented for 'F32'", "not implemented for 'Float'");
    Ok(())
}

#[test]
fn devices_and_layouts_are_those_of_rust() -> Result<()> {
    let meta = Tensor::options().device(Device::Meta).ones([2])?;
    check(Tensor::ones([2])?.add(&meta), "Meta and Cpu!", "meta and cpu!");
    check(Tensor::options().device(Device::Cuda(3)).ones([2]), "'Cuda(3)'", "'cuda:3'");
    let (shown, message) = both(Tensor::ones([1])?.to_sparse()?.element());
    assert!(shown.contains("SparseCoo") && !message.contains("SparseCoo"), "{shown} {message}");
    Ok(())
}

#[test]
fn a_text_keeps_both_spellings_through_the_engine() -> Result<()> {
    let x = Tensor::ones([2])?.with_grad()?;
    let y = x.mul(&x)?;
    let start = Tensor::options().dtype(DType::C64).ones([2])?;
    check(y.backward_with(&start), "C64", "complex64");
    Ok(())
}
