use pullback_macros::op;

struct Tensor;

#[op("_scale_backward(Tensor grad, Tensor factor) -> Tensor", meta = broadcast, cpu = mul)]
impl ScaleBackward {
    fn vjp_grad(grad: &Tensor, factor: &Tensor) -> Result<Tensor, ()> {
        Ok(Tensor)
    }
    fn vjp_factor(grad_result: &Tensor, grad_p: &Tensor) -> Result<Tensor, ()> {
        Ok(Tensor)
    }
}

fn main() {}
