//! No tensor reaches memory that is not its own, whatever sizes, strides and offset it is asked to have.
//!
//! Every public call that takes a geometry is given random ones, absurd ones among them. Each either refuses, saying so, or
//! makes a tensor whose every element lies inside of its storage.

use pullback::{DType, Device, ErrorKind, Result, Storage, Tensor, TensorSpec, binding};

/// splitmix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
    /// Mostly a small number, sometimes an absurd one.
    fn number(&mut self) -> i64 {
        const ABSURD: [i64; 9] =
            [-1, -3, 1 << 20, 1 << 40, 1 << 59, 1 << 62, i64::MIN, i64::MAX, i64::MAX / 16];
        if self.below(8) == 0 { ABSURD[self.below(9) as usize] } else { self.below(5) as i64 }
    }
    fn numbers(&mut self, count: u64) -> Vec<i64> {
        (0..count).map(|_| self.number()).collect()
    }
    fn dtype(&mut self) -> DType {
        DType::ALL[self.below(DType::ALL.len() as u64) as usize]
    }
}

/// Sizes, strides (now and then of another number) and an offset.
struct Wanted {
    shape: Vec<i64>,
    strides: Vec<i64>,
    offset: i64,
}

fn wanted(dice: &mut Dice) -> Wanted {
    let rank = dice.below(5);
    let other = if dice.below(6) == 0 { dice.below(5) } else { rank };
    Wanted { shape: dice.numbers(rank), strides: dice.numbers(other), offset: dice.number() }
}

/// What is wrong with where a tensor's elements lie; in 128 bits, where nothing overflows.
fn fault_of(t: &Tensor) -> Option<String> {
    let (shape, strides) = (t.shape(), t.strides());
    let fault = |text: &str| {
        let bytes = t.storage().map_or(0, |s| s.nbytes());
        Some(format!("{text}: {t:?} from {} in {bytes} bytes", t.storage_offset()))
    };
    if shape.len() != strides.len() {
        return fault("sizes and strides differ in number");
    }
    if shape.iter().chain(strides).any(|&n| n < 0) || t.storage_offset() < 0 {
        return fault("a negative number");
    }
    let numel: i128 = shape.iter().map(|&n| i128::from(n)).product();
    if numel != i128::from(t.numel()) {
        return fault("another number of elements");
    }
    let steps = shape.iter().zip(strides).map(|(&n, &s)| i128::from(n - 1) * i128::from(s));
    let last = i128::from(t.storage_offset()) + steps.sum::<i128>();
    let end = (last + 1) * t.dtype().size() as i128;
    let have = t.storage().map_or(0, |s| s.nbytes()) as i128;
    if numel > 0 && end > have { fault("elements outside of the storage") } else { None }
}

/// Every way to a tensor of given sizes, strides and offset: from a storage, from a tensor over all of it, or from nothing.
fn ways(
    storage: &Storage,
    base: &Tensor,
    w: &Wanted,
    dtype: DType,
) -> Vec<(&'static str, Result<Tensor>)> {
    let (shape, strides, offset) = (&w.shape, &w.strides, w.offset);
    let (start, fresh) = (Some(offset), || base.dense_clone());
    let small = shape.iter().chain(strides).all(|&n| n < 1 << 21) && offset < 1 << 21;
    let mut ways = vec![
        ("over_storage", binding::over_storage(storage, shape, strides, offset, dtype)),
        ("as_strided", base.as_strided(shape, strides, start)),
        ("as_strided_copy", base.as_strided_copy(shape, strides, start)),
        ("as_strided_", fresh().and_then(|t| t.as_strided_(shape, strides, start).map(|_| t))),
        ("view", base.view(shape)),
        ("reshape", base.reshape(shape)),
        ("expand", base.expand(shape, false)),
        ("view.dtype", base.view_dtype(dtype)),
        ("narrow", base.narrow(0, shape.first().copied().unwrap_or(1), offset)),
        ("slice", base.slice(0, shape.first().copied(), strides.first().copied(), offset)),
        ("unfold", base.unfold(0, shape.first().copied().unwrap_or(1), offset)),
        ("select", base.select(0, offset)),
        ("diagonal", base.unsqueeze(0).and_then(|t| t.diagonal(offset, 0, 1))),
    ];
    if small {
        let grown = || {
            let own = Storage::uninitialized(storage.nbytes())?;
            binding::grow_to_hold(&own, shape, strides, offset, dtype)?;
            binding::over_storage(&own, shape, strides, offset, dtype)
        };
        let resized = || {
            let t = base.dense_clone()?;
            t.resize(shape)?;
            Ok(t)
        };
        ways.push(("grow_to_hold", grown()));
        ways.push(("resize", resized()));
        ways.push(("zeroed", binding::zeroed(shape, Some(strides), offset, dtype)));
        ways.push(("empty_strided", Tensor::empty_strided(shape, strides, dtype, Device::Cpu)));
    }
    ways
}

/// A copy in memory of its own.
trait DenseClone {
    fn dense_clone(&self) -> Result<Tensor>;
}
impl DenseClone for Tensor {
    fn dense_clone(&self) -> Result<Tensor> {
        self.clone_tensor(None)
    }
}

#[test]
fn whatever_geometry_is_asked_for_elements_lie_inside_the_storage() {
    let mut dice = Dice(5);
    let (mut made, mut refused) = (0, 0);
    for _ in 0..6000 {
        let dtype = dice.dtype();
        let storage = Storage::uninitialized(dice.below(200) as usize).unwrap();
        let own = dice.dtype();
        let count = (storage.nbytes() / own.size()) as i64;
        let base = binding::over_storage(&storage, &[count], &[1], 0, own).unwrap();
        let w = wanted(&mut dice);
        for (name, tensor) in ways(&storage, &base, &w, dtype) {
            match tensor {
                Ok(tensor) => {
                    made += 1;
                    if let Some(fault) = fault_of(&tensor) {
                        panic!("{name} of {:?} {:?} {}: {fault}", w.shape, w.strides, w.offset);
                    }
                }
                Err(error) => {
                    refused += 1;
                    assert!(
                        !error.message().is_empty() && !error.message().contains("bug"),
                        "{error:?}"
                    );
                }
            }
        }
    }
    assert!(made > 1000 && refused > 1000, "{made} made, {refused} refused");
}

#[test]
fn sizes_and_strides_of_different_number_are_refused() {
    let storage = Storage::uninitialized(12).unwrap();
    let result = binding::over_storage(&storage, &[3], &[1, 1 << 40], 0, DType::F32);
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Runtime);
    assert!(error.message().contains("unequal size length (1) and stride length (2)"), "{error:?}");
}

/// A storage that was made smaller keeps its block for the tensors that reach beyond its end, also when it grows again by
/// less than it was.
#[test]
fn a_storage_made_smaller_and_larger_again_keeps_what_tensors_show() -> Result<()> {
    for count in [20_i64, 100_000] {
        let data: Vec<f64> = (0..count).map(|i| i as f64).collect();
        let whole = Tensor::from_slice(&data, &[count])?;
        let storage = whole.storage().unwrap();
        storage.resize(0)?;
        let part = binding::over_storage(&storage, &[0], &[1], 0, DType::F64)?;
        part.resize(&[5])?;
        assert_eq!(storage.nbytes(), 40);
        assert_eq!(whole.to_vec::<f64>()?, data, "{count} elements");
        // What is derived from it still shows its elements.
        assert_eq!(
            whole.slice(0, Some(count - 3), None, 1)?.to_vec::<f64>()?,
            data[data.len() - 3..]
        );
        part.resize(&[2 * count])?;
        assert_eq!(whole.to_vec::<f64>()?, data, "{count} elements, grown");
    }
    Ok(())
}

#[test]
fn sequences_of_views_and_changes_of_storages_stay_inside() {
    let mut dice = Dice(7);
    for _ in 0..400 {
        let mut t = TensorSpec::of(&[6, 4], dice.dtype()).zeros().unwrap();
        let block = t.storage().unwrap().nbytes();
        for _ in 0..12 {
            let w = wanted(&mut dice);
            let storage = t.storage().unwrap();
            let all = ways(&storage, &t, &w, dice.dtype());
            let nr = dice.below(all.len() as u64) as usize;
            if dice.below(4) == 0 && storage.nbytes() <= block {
                // (Smaller only: then `fault_of` counts what the block has.)
                storage.resize(dice.below(block as u64 + 1) as usize).unwrap();
                storage.resize(block.max(storage.nbytes())).unwrap();
            }
            if let (_, Ok(next)) = &all[nr]
                && next.numel() < 1 << 12
            {
                assert_eq!(fault_of(next), None);
                drop(next.clone_tensor(None).unwrap());
                t = next.clone();
            }
        }
    }
}
