//! Arguments drawn at random, by the types that an op's schema gives them: whatever a caller could pass.

use super::Strange;
use pullback::dispatch::{OpDef, Value};
use pullback::gradcheck::{Sample, default_value};
use pullback::{DType, Device, Layout, MemoryFormat, Scalar, Tensor};
use pullback_schema::{Argument, Base};

/// splitmix64.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
    fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// The arguments of one call. Some are those of a sample, if there is one.
pub(crate) fn draw(
    def: &OpDef,
    samples: &[Sample],
    strange: &[Strange],
    dice: &mut Dice,
) -> Vec<Value> {
    let sample = if samples.is_empty() { None } else { Some(dice.pick(samples)) };
    let own = sample.and_then(|sample| sample.values(def).ok());
    let keep = *dice.pick(&[0, 40, 80]);
    // Often all tensors are alike: what compares their sizes goes further.
    let common = dice.is(40).then(|| dice.pick(strange).1.clone());
    let mut values = Vec::new();
    for (index, arg) in def.schema().args.iter().enumerate() {
        let kept = own.as_ref().map(|own| own[index].clone()).filter(|_| dice.is(keep));
        let default = default_value(arg).filter(|_| dice.is(50));
        values
            .push(kept.or(default).unwrap_or_else(|| of_type(arg, strange, common.as_ref(), dice)));
    }
    values
}

fn of_type(arg: &Argument, strange: &[Strange], common: Option<&Tensor>, dice: &mut Dice) -> Value {
    let ty = arg.ty;
    if ty.optional && dice.is(30) {
        return Value::None;
    }
    let tensor = |dice: &mut Dice| common.cloned().unwrap_or_else(|| dice.pick(strange).1.clone());
    let count = dice.below(4);
    match (ty.base, ty.list) {
        (Base::Tensor, None) => Value::Tensor(tensor(dice)),
        (Base::Tensor, Some(list)) if list.element_optional => {
            let one = |_| dice.is(70).then(|| tensor(dice));
            Value::OptTensors((0..count).map(one).collect())
        }
        (Base::Tensor, Some(_)) => Value::Tensors((0..count).map(|_| tensor(dice)).collect()),
        (Base::Int | Base::SymInt, None) => Value::Int(whole(dice)),
        (Base::Int | Base::SymInt, Some(list)) => {
            let size = list.size.filter(|_| dice.is(70)).unwrap_or(count);
            match common {
                Some(like) if dice.is(60) => {
                    Value::Ints(like.shape()[dice.below(like.ndim() + 1)..].into())
                }
                _ => Value::Ints((0..size).map(|_| whole(dice)).collect()),
            }
        }
        (Base::Float, None) => Value::Float(real(dice)),
        (Base::Float, Some(_)) => Value::Floats((0..count).map(|_| real(dice)).collect()),
        (Base::Scalar, None) => Value::Scalar(number(dice)),
        (Base::Scalar, Some(_)) => Value::Scalars((0..count).map(|_| number(dice)).collect()),
        (Base::Bool, _) => Value::Bool(dice.is(50)),
        (Base::Str, _) => word(dice),
        (Base::ScalarType, _) => Value::DType(*dice.pick(&DType::ALL)),
        (Base::Device, _) => Value::Device(Device::Cpu),
        (Base::Layout, _) => {
            Value::Layout(*dice.pick(&[Layout::Strided, Layout::SparseCoo, Layout::SparseCsr]))
        }
        (Base::MemoryFormat, _) => Value::MemoryFormat(*dice.pick(&[
            MemoryFormat::Contiguous,
            MemoryFormat::Preserve,
            MemoryFormat::ChannelsLast,
            MemoryFormat::ChannelsLast3d,
        ])),
        (Base::Generator | Base::Any, _) => Value::None,
    }
}

fn whole(dice: &mut Dice) -> i64 {
    *dice.pick(&[0, 1, 2, 3, -1, -2, 5, 17, 1 << 40, 1 << 62, i64::MIN, i64::MAX])
}

fn real(dice: &mut Dice) -> f64 {
    *dice.pick(&[0.0, 0.5, 1.0, -1.0, 2.0, 1e300, f64::INFINITY, f64::NAN])
}

fn number(dice: &mut Dice) -> Scalar {
    match dice.below(4) {
        0 => Scalar::Bool(dice.is(50)),
        1 => Scalar::Int(whole(dice)),
        2 => Scalar::Float(real(dice)),
        _ => Scalar::Complex(real(dice), real(dice)),
    }
}

/// A word that some op knows.
fn word(dice: &mut Dice) -> Value {
    let words = [
        "sum", "mean", "max", "prod", "amin", "linear", "same", "valid", "none", "tanh", "floor",
        "trunc", "ij", "L", "nonsense", "",
    ];
    Value::Str((*dice.pick(&words)).into())
}
