use pullback_macros::op;

#[op("scale(Tensor self) -> Tensor", meta = broadcast)]
impl Scale {}

fn main() {}
