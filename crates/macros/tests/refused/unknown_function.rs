use pullback_macros::op;

#[op("scale(Tensor self) -> Tensor", meta = broadcast, cpu = neg)]
impl Scale {
    fn sample() {}
}

fn main() {}
