"""Programs that change values between forward and backward by training: steps, modules, states."""

from __future__ import annotations

from typing import Any

from blame.program import BEFORE_THE_STEP, CHANGE_A_CLONE, LEAVE_THE_SWITCH, STALE, broken

import pullback as torch
from pullback import nn, optim
from pullback.utils.checkpoint import checkpoint


def batch() -> Any:
    return torch.ones(4, 3)


def network() -> Any:
    return nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))


@broken(STALE, hint=BEFORE_THE_STEP)
def the_optimizer_steps_between_forward_and_backward() -> None:
    net = network()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    loss = net(batch()).sum()  # made: AddmmBackward0
    loss.backward(retain_graph=True)
    optimizer.step()  # wrote: optimizer.step()
    loss.backward()


@broken(STALE, hint=BEFORE_THE_STEP)
def adam_steps_between_forward_and_backward() -> None:
    net = network()
    optimizer = optim.Adam(net.parameters(), lr=0.1)
    loss = net(batch()).sum()  # made: AddmmBackward0
    loss.backward(retain_graph=True)
    optimizer.step()  # wrote: optimizer.step()
    loss.backward()


@broken(STALE, hint=BEFORE_THE_STEP)
def the_discriminator_steps_before_the_generator_goes_backward() -> None:
    generator, discriminator = nn.Linear(3, 3), network()
    steps = optim.SGD(discriminator.parameters(), lr=0.1)
    fake = generator(batch())
    verdict = discriminator(fake)  # made: AddmmBackward0
    (1 - verdict).mean().backward(retain_graph=True)
    steps.step()  # wrote: optimizer.step()
    verdict.mean().backward()


@broken(STALE, hint=BEFORE_THE_STEP)
def the_critic_steps_before_the_actor_goes_backward() -> None:
    actor, critic = nn.Linear(3, 3), nn.Linear(3, 1)
    critic_steps = optim.SGD(critic.parameters(), lr=0.1)
    value = critic(torch.tanh(actor(batch())))  # made: AddmmBackward0
    value.square().mean().backward(retain_graph=True)
    critic_steps.step()  # wrote: optimizer.step()
    (-value.mean()).backward()


@broken(STALE, hint=BEFORE_THE_STEP)
def a_hidden_state_is_carried_over_the_step_with_retain_graph() -> None:
    cell = nn.RNNCell(3, 3)
    optimizer = optim.SGD(cell.parameters(), lr=0.1)
    hidden = torch.zeros(4, 3)
    for _ in range(2):
        hidden = cell(batch(), hidden)  # made: RnnStepBackward0
        hidden.sum().backward(retain_graph=True)
        optimizer.step()  # wrote: optimizer.step()


@broken(STALE)
def an_optimizer_of_the_users_steps_too_early() -> None:
    class Descent(optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 0.1})

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for p in self.param_groups[0]["params"]:
                p.sub_(p.grad, alpha=0.1)  # wrote: sub_

    net = network()
    optimizer = Descent(net.parameters())
    loss = net(batch()).sum()  # made: AddmmBackward0
    loss.backward(retain_graph=True)
    optimizer.step()
    loss.backward()


@broken(STALE)
def weights_are_changed_under_no_grad() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    loss = net(batch()).sum()  # made: AddmmBackward0
    with torch.no_grad():
        for p in net.parameters():
            p.sub_(0.1)  # wrote: sub_
    loss.backward()


@broken(STALE)
def weights_are_clipped_before_the_backward() -> None:
    critic = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    score = critic(batch()).mean()  # made: AddmmBackward0
    with torch.no_grad():
        for p in critic.parameters():
            p.clamp_(-0.01, 0.01)  # wrote: clamp_
    score.backward()


@broken(STALE)
def a_target_network_follows_between_forward_and_backward() -> None:
    target, source = nn.Linear(3, 3), nn.Linear(3, 3)
    out = target(batch().requires_grad_())  # made: AddmmBackward0
    with torch.no_grad():
        target.weight.mul_(0.99).add_(source.weight, alpha=0.01)  # wrote: add_
    out.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def weights_are_loaded_between_forward_and_backward() -> None:
    net, best = nn.Linear(3, 3), nn.Linear(3, 3).state_dict()
    out = net(batch().requires_grad_())  # made: AddmmBackward0
    net.load_state_dict(best)  # wrote: copy_
    out.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def weights_are_drawn_again_between_forward_and_backward() -> None:
    net = nn.Linear(3, 3)
    out = net(batch().requires_grad_())  # made: AddmmBackward0
    nn.init.constant_(net.weight, 0.5)  # wrote: fill_
    out.sum().backward()


@broken(STALE, hint=LEAVE_THE_SWITCH)
def a_module_in_place_after_one_that_saves_its_output() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.ReLU(inplace=True))
    out = net(batch())  # made: SigmoidBackward0; wrote: relu_
    out.sum().backward()


@broken(STALE)
def a_residual_block_adds_in_place() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            h = torch.sigmoid(self.inner(x))  # made: SigmoidBackward0
            h += x  # wrote: add_
            return h

    Block()(batch()).sum().backward()


@broken(STALE, hint=LEAVE_THE_SWITCH)
def relu_in_place_hides_in_a_block_of_the_users() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            gate = torch.sigmoid(x)
            y = x * gate  # made: MulBackward0
            return y + self.relu(gate)  # wrote: relu_

    Block()(batch().requires_grad_()).sum().backward()


@broken(STALE)
def the_output_of_a_layer_is_changed_by_a_forward_hook() -> None:
    def shift(module: Any, given: Any, out: Any) -> None:
        out.add_(1)  # wrote: add_

    net = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid())
    net[1].register_forward_hook(shift)
    net(batch()).sum().backward()  # made: SigmoidBackward0


@broken(STALE)
def the_output_of_an_lstm_is_scaled() -> None:
    lstm = nn.LSTM(3, 3)
    out, _ = lstm(torch.ones(5, 4, 3))  # made: LstmLayerBackward0
    out *= 0.5  # wrote: mul_
    out.sum().backward()


@broken(STALE)
def the_recurrent_weights_of_an_lstm_are_scaled() -> None:
    lstm = nn.LSTM(3, 3)
    out, _ = lstm(torch.ones(5, 4, 3))  # made: LstmLayerBackward0
    with torch.no_grad():
        lstm.weight_hh_l0.mul_(0.5)  # wrote: mul_
    out.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def the_state_given_to_a_gru_is_set_to_zero() -> None:
    gru, state = nn.GRUCell(3, 3), torch.ones(4, 3)
    out = gru(batch(), state)  # made: GruStepBackward0
    state.zero_()  # wrote: zero_
    out.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def the_state_of_an_lstm_is_set_to_zero() -> None:
    cell = nn.LSTMCell(3, 3)
    h, c = cell(batch())
    out, _ = cell(batch(), (h, c))  # made: LstmStepBackward0
    c.zero_()  # wrote: zero_
    out.sum().backward()


@broken(STALE)
def the_weights_of_an_embedding_are_normalised_after_their_use() -> None:
    table, queries = nn.Embedding(5, 3), torch.ones(2, 3, requires_grad=True)
    scores = queries @ table.weight.t()  # made: MmBackward0
    with torch.no_grad():
        table.weight.div_(table.weight.norm(dim=1, keepdim=True))  # wrote: div_
    scores.sum().backward()


@broken(STALE)
def an_embedding_with_max_norm_changes_its_weight() -> None:
    table = nn.Embedding(5, 3, max_norm=0.1)
    x = torch.ones(2, 3, requires_grad=True)
    scores = x @ table.weight.t()  # made: MmBackward0
    table(torch.tensor([1, 2]))  # wrote: index_copy_
    scores.sum().backward()


@broken(STALE, hint=CHANGE_A_CLONE)
def the_statistics_of_a_batch_norm_are_reset() -> None:
    norm = nn.BatchNorm1d(3).eval()
    out = norm(batch())  # made: NativeBatchNormBackward0
    norm.reset_running_stats()  # wrote: fill_
    out.sum().backward()


@broken(STALE)
def a_checkpointed_block_changes_what_it_saved() -> None:
    def block(x: Any) -> Any:
        y = x.exp()  # made: ExpBackward0
        y.mul_(2)  # wrote: mul_
        return y.sin()

    x = torch.ones(3, requires_grad=True)
    checkpoint(block, x, use_reentrant=True).sum().backward()


@broken(STALE)
def the_memory_given_to_an_attention_is_changed() -> None:
    attention, keys = nn.MultiheadAttention(3, 1), torch.ones(1, 2, 3)
    out, _ = attention(torch.ones(1, 2, 3), keys, keys)  # made: AddmmBackward0
    keys.add_(1)  # wrote: add_
    out.sum().backward()


@broken(STALE)
def the_gradient_is_clipped_before_it_is_differentiated() -> None:
    w = nn.Parameter(torch.ones(3))
    (w**3).sum().backward(create_graph=True)
    penalty = (w.grad * w).sum()  # made: MulBackward0
    nn.utils.clip_grad_norm_([w], 0.1)  # wrote: mul_
    penalty.backward()


@broken(STALE)
def a_custom_function_saved_its_input_which_is_changed() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = torch.ones(3, requires_grad=True) * 1
    y = Square.apply(x)  # made: SquareBackward
    x.add_(1)  # wrote: add_
    y.sum().backward()


@broken(STALE)
def a_custom_function_saved_its_output_which_is_changed() -> None:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    x = torch.ones(3, requires_grad=True)
    y = Exp.apply(x)  # made: ExpBackward
    y -= 1  # wrote: sub_
    y.sum().backward()


@broken(STALE)
def a_hook_changes_what_the_nodes_below_still_need() -> None:
    def change(grad: Any) -> None:
        scale.add_(1)  # wrote: add_

    x = torch.ones(3, requires_grad=True)
    scale = torch.ones(3)
    y = x * scale  # made: MulBackward0
    y.register_hook(change)
    y.sum().backward()
