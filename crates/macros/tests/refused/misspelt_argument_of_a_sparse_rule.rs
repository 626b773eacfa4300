use pullback_macros::op;

#[op("pick(Tensor self, int dim) -> Tensor", sparse = pick(cpu, self, dmi))]
impl Pick {
    fn composite(self_: &Tensor, dim: i64) -> Result<Tensor> {
        self_.select(dim, 0)
    }
}

fn main() {}
