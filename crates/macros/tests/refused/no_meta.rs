use pullback_macros::op;

struct Cpu;
struct Tensor;

#[op("scale(Tensor self) -> Tensor", not_differentiable)]
impl Scale {
    fn cpu(cpu: Cpu, result: &Tensor, self_: &Tensor) -> Result<(), ()> {
        Ok(())
    }
}

fn main() {}
