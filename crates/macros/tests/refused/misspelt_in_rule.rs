use pullback_macros::op;

struct Tensor;

#[op("scale(Tensor self) -> Tensor", meta = broadcast, cpu = neg)]
impl Scale {
    fn vjp_self(grad: &Tensor, slef_shape: &[i64], reslt: &Tensor) -> Result<Tensor, ()> {
        Ok(Tensor)
    }
}

fn main() {}
