use pullback_macros::op;

#[op("scale{N}d(Tensor self) -> Tensor", meta = broadcast, cpu = KERNEL,
     each(Scale1d { N: 1, KERNEL: neg }, Scale2d { N: 2 }))]
impl Scale {}

fn main() {}
