use pullback_macros::op;

struct Tensor;

#[op("scale(Tensor self, Tensor factor) -> Tensor", batch = pointwise)]
impl Scale {
    fn composite(self_: &Tensor, facter: &Tensor) -> Result<Tensor, ()> {
        Ok(Tensor)
    }
}

fn main() {}
