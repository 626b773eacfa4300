use pullback_macros::op;

#[op("scale(Tensor self, int dim) -> Tensor", meta = broadcast, cpu = neg, batch = along(dmi))]
impl Scale {}

fn main() {}
