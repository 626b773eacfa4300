use pullback_macros::op;

#[op("half(Tensor(a) self) -> Tensor(a)", view)]
impl Half {
    fn cpu(cpu: Cpu, self_: &Tensor) -> Result<Tensor> {
        self_.narrow(0, 0, self_.view_ref(cpu).numel() / 2)
    }
}

fn main() {}
