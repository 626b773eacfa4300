use pullback_macros::op;

#[op("scale{N}d(Tensor self) -> Tensor", meta = broadcast, cpu = neg,
     each(Scale1d { N: 1, AXES: "x" }, Scale2d { N: 2, AXES: "x, y" }))]
impl Scale {}

fn main() {}
