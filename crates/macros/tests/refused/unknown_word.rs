use pullback_macros::op;

#[op("scale(Tensor self) -> Tensor", metha = broadcast, cpu = neg)]
impl Scale {}

fn main() {}
