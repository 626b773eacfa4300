use pullback_macros::op;

#[op("scale(Tensr self) -> Tensor", meta = broadcast, cpu = neg)]
impl Scale {}

fn main() {}
