//! Recorded steps give the bits of the steps, and refuse what they cannot repeat.

use pullback::capture::{self, Program, Refusal};
use pullback::{DType, Result, Tensor, manual_seed, no_grad};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The default generator, and the one recording that a process has at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(value: f64) -> Tensor {
    Tensor::wrapped(value).unwrap()
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

fn recorded(inputs: &[&Tensor], step: impl FnOnce() -> Result<Vec<Tensor>>) -> Program {
    match capture::record(inputs, step).unwrap().1 {
        Ok(program) => program,
        Err(refusal) => panic!("{}", refusal.reason),
    }
}

fn refused(inputs: &[&Tensor], step: impl FnOnce() -> Result<Vec<Tensor>>) -> Refusal {
    match capture::record(inputs, step).unwrap().1 {
        Ok(_) => panic!("there is a program"),
        Err(refusal) => refusal,
    }
}

/// One layer with its bias, and what it is trained by.
struct Model {
    weight: Tensor,
    bias: Tensor,
    momentum: Tensor,
}

impl Model {
    fn new() -> Result<Model> {
        manual_seed(3);
        Ok(Model {
            weight: Tensor::randn([8, 5])?.with_grad()?,
            bias: Tensor::randn([5])?.with_grad()?,
            momentum: Tensor::randn([8, 5])?,
        })
    }
    fn loss(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        let hidden = x.matmul(&self.weight)?.add(&self.bias)?.tanh()?;
        let difference = hidden.sub(y)?;
        difference.mul(&difference)?.mean()
    }
    fn step(&self, x: &Tensor, y: &Tensor, drops: bool) -> Result<Vec<Tensor>> {
        if drops {
            self.weight.set_grad(None)?;
            self.bias.set_grad(None)?;
        }
        let loss = self.loss(x, y)?;
        loss.backward()?;
        let _off = no_grad();
        let (weight, bias) = (self.weight.grad().unwrap(), self.bias.grad().unwrap());
        self.momentum.mul_(&number(0.9))?;
        self.momentum.add_(&weight)?;
        self.weight.sub_(&self.momentum.mul(&number(0.05))?)?;
        self.bias.sub_(&bias.mul(&number(0.05))?)?;
        Ok(vec![loss])
    }
    fn state(&self) -> Vec<u32> {
        let grads = [&self.weight, &self.bias].map(Tensor::grad);
        let mut all: Vec<u32> =
            [&self.weight, &self.bias, &self.momentum].into_iter().flat_map(bits).collect();
        all.extend(grads.iter().flatten().flat_map(bits));
        all
    }
}

fn batch(at: u64) -> Result<(Tensor, Tensor)> {
    manual_seed(100 + at);
    Ok((Tensor::randn([6, 8])?, Tensor::randn([6, 5])?))
}

#[test]
fn a_program_computes_what_its_step_computes() -> Result<()> {
    let _alone = alone();
    let w = Tensor::from([1.0_f32, -2.0, 3.0])?;
    let step = |x: &Tensor| -> Result<Vec<Tensor>> {
        let y = x.mul(&w)?.exp()?.reshape(&[3, 2])?.transpose(0, 1)?;
        Ok(vec![y.sum_dim(Some(&[1]), false)?, y.add(&number(1.0))?.contiguous()?])
    };
    let x = Tensor::randn([2, 3])?;
    let program = recorded(&[&x], || step(&x));
    for _ in 0..5 {
        let x = Tensor::randn([2, 3])?;
        let replayed = program.replay(&[&x])?.unwrap();
        for (ours, theirs) in replayed.iter().zip(step(&x)?) {
            assert_eq!((ours.shape(), bits(ours)), (theirs.shape(), bits(&theirs)));
        }
    }
    // (Each begins at a multiple of 64 bytes.)
    let summary = program.summary();
    assert!(summary.planned <= summary.intermediate + 64 * summary.instructions);
    Ok(())
}

#[test]
fn a_training_step_is_replayed_bit_by_bit() -> Result<()> {
    let _alone = alone();
    for drops in [true, false] {
        let (eager, replayed) = (Model::new()?, Model::new()?);
        let (x, y) = batch(0)?;
        // (The first call makes the gradients.)
        eager.step(&x, &y, drops)?;
        replayed.step(&x, &y, drops)?;
        let (x, y) = batch(1)?;
        eager.step(&x, &y, drops)?;
        let program = recorded(&[&x, &y], || replayed.step(&x, &y, drops));
        let mut losses = Vec::new();
        for at in 2..50 {
            let (x, y) = batch(at)?;
            let expected = eager.step(&x, &y, drops)?.remove(0);
            let loss = program.replay(&[&x, &y])?.unwrap_or_else(|| {
                panic!("{:?}", program.obstacle(&[&x, &y]));
            });
            assert_eq!(loss[0].requires_grad(), expected.requires_grad());
            losses.push((loss[0].detach()?, expected.detach()?));
            assert_eq!(eager.state(), replayed.state(), "step {at}, {drops}");
            assert_eq!(eager.weight.version(), replayed.weight.version());
        }
        // No replay has overwritten what an earlier one gave.
        assert!(losses.iter().all(|(ours, theirs)| bits(ours) == bits(theirs)));
    }
    Ok(())
}

#[test]
fn gradients_that_were_cleared_outside_are_another_program() -> Result<()> {
    let _alone = alone();
    let model = Model::new()?;
    let (x, y) = batch(0)?;
    let program = recorded(&[&x, &y], || model.step(&x, &y, false));
    assert!(program.replay(&[&x, &y])?.is_none(), "there are gradients now");
    model.weight.set_grad(None)?;
    model.bias.set_grad(None)?;
    assert!(program.replay(&[&x, &y])?.is_some());
    Ok(())
}

#[test]
fn random_numbers_come_from_the_same_place() -> Result<()> {
    let _alone = alone();
    let step = |x: &Tensor| -> Result<Vec<Tensor>> { Ok(vec![x.dropout(0.5, true)?]) };
    let x = Tensor::randn([100])?;
    let program = recorded(&[&x], || step(&x));
    manual_seed(9);
    let expected = [step(&x)?, step(&x)?];
    manual_seed(9);
    for one in expected {
        assert_eq!(bits(&one[0]), bits(&program.replay(&[&x])?.unwrap()[0]));
    }
    Ok(())
}

#[test]
fn writes_to_arguments_arrive_and_are_counted() -> Result<()> {
    let _alone = alone();
    let x = Tensor::from([1.0_f32, 2.0, 3.0])?;
    let program = recorded(&[&x], || {
        x.mul_(&number(2.0))?;
        Ok(vec![x.clone()])
    });
    let other = Tensor::from([5.0_f32, 6.0, 7.0])?;
    let clone = other.lazy_clone()?;
    let result = program.replay(&[&other])?.unwrap();
    assert!(result[0].is_same(&other));
    assert_eq!(other.to_vec::<f32>()?, [10.0, 12.0, 14.0]);
    assert_eq!(clone.to_vec::<f32>()?, [5.0, 6.0, 7.0]);
    assert_eq!(other.version(), 1);
    Ok(())
}

#[test]
fn a_part_of_a_tensor_is_an_argument() -> Result<()> {
    let _alone = alone();
    let all = Tensor::randn([10, 4])?;
    let part = |at: i64| all.slice(0, Some(at), Some(at + 2), 1);
    let first = part(0)?;
    let program = recorded(&[&first], || Ok(vec![first.add(&number(1.0))?.sum()?]));
    for at in 0..8 {
        let x = part(at)?;
        let replayed = program.replay(&[&x])?.unwrap();
        assert_eq!(bits(&replayed[0]), bits(&x.add(&number(1.0))?.sum()?));
    }
    Ok(())
}

#[test]
fn what_changes_outside_is_noticed() -> Result<()> {
    let _alone = alone();
    let model = Model::new()?;
    let (x, y) = batch(0)?;
    let step = || Ok(vec![model.loss(&x, &y)?.detach()?]);
    let program = {
        let _off = no_grad();
        recorded(&[&x, &y], step)
    };
    assert!(program.replay(&[&x, &y])?.is_none(), "gradients are recorded now");
    let _off = no_grad();
    assert!(program.replay(&[&x, &y])?.is_some());
    let longer = Tensor::randn([7, 8])?;
    assert!(program.replay(&[&longer, &y])?.is_none());
    assert!(program.replay(&[&x, &x])?.is_none());
    assert!(program.replay(&[&x.to_dtype(DType::F64)?, &y])?.is_none());
    assert!(program.obstacle(&[&longer, &y]).unwrap().contains("[7, 8]"));
    model.bias.set_data(&Tensor::randn([5])?)?;
    assert!(program.replay(&[&x, &y])?.is_none(), "the bias shows other memory");
    assert!(program.obstacle(&[&x, &y]).unwrap().contains("replaced"));
    Ok(())
}

#[test]
fn what_cannot_be_repeated_is_refused() -> Result<()> {
    let _alone = alone();
    let x = Tensor::from([1.0_f32, 0.0, 2.0])?;
    let reason = refused(&[&x], || Ok(vec![x.mul(&Tensor::wrapped(x.sum()?.item()?)?)?]));
    assert!(reason.is_final && reason.reason.contains("item"), "{}", reason.reason);
    let reason = refused(&[&x], || Ok(vec![x.nonzero()?]));
    assert!(reason.reason.contains("depends on elements"), "{}", reason.reason);
    let reason = refused(&[&x], || {
        x.to_vec::<f32>()?;
        Ok(Vec::new())
    });
    assert!(reason.reason.contains("on the host"), "{}", reason.reason);
    let mut kept = Vec::new();
    let reason = refused(&[&x], || {
        kept.push(x.add(&number(1.0))?);
        Ok(vec![x.mul(&number(2.0))?])
    });
    assert!(!reason.is_final && reason.reason.contains("kept"), "{}", reason.reason);
    let w = x.clone_tensor(None)?.with_grad()?;
    let reason = refused(&[&x], || Ok(vec![w.mul(&w)?.sum()?]));
    assert!(reason.reason.contains("graph"), "{}", reason.reason);
    let reason = refused(&[&w], || Ok(Vec::new()));
    assert!(reason.reason.contains("requires grad"), "{}", reason.reason);
    let _guard = w.on_grad(|grad| grad.mul(&number(2.0)))?;
    let reason = refused(&[&x], || {
        w.mul(&x)?.sum()?.backward()?;
        Ok(Vec::new())
    });
    assert!(reason.reason.contains("hook"), "{}", reason.reason);
    let reason = refused(&[&x], || {
        manual_seed(1);
        Ok(Vec::new())
    });
    assert!(reason.reason.contains("generator"), "{}", reason.reason);
    Ok(())
}

#[test]
fn a_step_that_fails_leaves_nothing_on() -> Result<()> {
    let _alone = alone();
    let x = Tensor::randn([3])?;
    assert!(capture::record(&[&x], || Ok(vec![x.add(&Tensor::randn([4])?)?])).is_err());
    recorded(&[&x], || Ok(vec![x.add(&number(1.0))?]));
    Ok(())
}

#[test]
fn an_error_of_a_kernel_is_given_and_the_next_replay_works() -> Result<()> {
    let _alone = alone();
    let x = Tensor::randn([3, 4])?;
    let at = Tensor::from([0_i64, 2])?;
    let program = recorded(&[&x, &at], || Ok(vec![x.index_select(0, &at)?]));
    let outside = Tensor::from([0_i64, 9])?;
    assert!(program.replay(&[&x, &outside]).is_err());
    assert!(program.replay(&[&x, &at])?.is_some());
    Ok(())
}

#[test]
fn threads_replay_one_after_the_other_or_not_at_all() -> Result<()> {
    let _alone = alone();
    let x = Tensor::randn([1000])?;
    let program = recorded(&[&x], || Ok(vec![x.exp()?.sum()?]));
    let expected = bits(&x.exp()?.sum()?);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    if let Some(results) = program.replay(&[&x]).unwrap() {
                        assert_eq!(bits(&results[0]), expected);
                    }
                }
            });
        }
    });
    Ok(())
}
