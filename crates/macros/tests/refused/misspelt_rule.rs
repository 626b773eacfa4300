use pullback_macros::op;

struct Tensor;

#[op("scale(Tensor self, Tensor factor) -> Tensor", meta = broadcast, cpu = mul)]
impl Scale {
    fn vjp_self(grad: &Tensor) -> Result<Tensor, ()> {
        Ok(Tensor)
    }
    fn vjp_facotr(grad: &Tensor) -> Result<Tensor, ()> {
        Ok(Tensor)
    }
}

fn main() {}
