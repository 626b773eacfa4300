"""Programs that go backward twice through a graph whose saved values are gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blame.program import FREED, broken

import pullback as torch
from pullback import nn, optim
from pullback.autograd import grad
from pullback.nn import functional as F
from pullback.utils.checkpoint import checkpoint


def batch() -> Any:
    return torch.ones(4, 3)


@broken(FREED)
def the_same_loss_goes_backward_twice() -> None:
    x = torch.ones(3, requires_grad=True)
    loss = (x * x).sum()  # made: MulBackward0
    loss.backward()  # freed
    loss.backward()


@broken(FREED)
def a_hidden_state_is_carried_to_the_next_step() -> None:
    cell = nn.RNNCell(3, 3)
    optimizer = optim.SGD(cell.parameters(), lr=0.1)
    hidden = torch.zeros(4, 3)
    for _ in range(2):
        optimizer.zero_grad()
        hidden = cell(batch(), hidden)  # made: RnnStepBackward0
        hidden.sum().backward()  # freed
        optimizer.step()


@broken(FREED)
def the_state_of_an_lstm_is_carried_to_the_next_batch() -> None:
    lstm = nn.LSTM(3, 3, batch_first=True)
    state = None
    for _ in range(2):
        out, state = lstm(torch.ones(2, 5, 3), state)  # made: LstmLayerBackward0
        F.mse_loss(out, torch.zeros(2, 5, 3)).backward()  # freed


@broken(FREED)
def two_losses_share_an_encoder() -> None:
    encoder, one, other = (nn.Linear(3, 3) for _ in range(3))
    code = torch.tanh(encoder(batch()))  # made: TanhBackward0
    one(code).sum().backward()  # freed
    other(code).sum().backward()


@broken(FREED)
def the_fake_images_are_not_detached_for_the_discriminator() -> None:
    generator = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid())
    discriminator = nn.Linear(3, 1)
    fake = generator(batch())  # made: SigmoidBackward0
    F.softplus(discriminator(fake)).mean().backward()  # freed
    F.softplus(-discriminator(fake)).mean().backward()


@broken(FREED)
def features_are_computed_once_before_the_loop() -> None:
    w = nn.Parameter(torch.ones(3))
    features = w.exp()  # made: ExpBackward0
    for _ in range(2):
        features.sum().backward()  # freed


@broken(FREED)
def a_penalty_is_computed_once_before_the_loop() -> None:
    net = nn.Linear(3, 1)
    penalty = 0.01 * net.weight.norm()  # made: MulBackward0
    for _ in range(2):
        (net(batch()).mean() + penalty).backward()  # freed


@broken(FREED)
def losses_are_summed_up_over_the_epoch() -> None:
    w = nn.Parameter(torch.ones(3))
    total = torch.zeros(())
    for k in range(2):
        if not k:
            total = total + (w**2).sum()  # made: PowBackward0
        total = total + w.sum()
        total.backward()  # freed


@broken(FREED)
def a_running_loss_keeps_its_history() -> None:
    w = nn.Parameter(torch.ones(3))
    running = (w * w).sum()  # made: MulBackward0
    running.backward()  # freed
    running = 0.9 * running + 0.1 * (w**3).sum()
    running.backward()


@broken(FREED)
def a_momentum_is_kept_with_its_history() -> None:
    w, momentum = nn.Parameter(torch.ones(3)), torch.zeros(3)
    for _ in range(2):
        momentum = torch.sigmoid(w + momentum)  # made: SigmoidBackward0
        momentum.sum().backward()  # freed


@broken(FREED)
def grad_is_asked_for_twice() -> None:
    x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
    z = (x * y).sum()  # made: MulBackward0
    grad(z, x)  # freed
    grad(z, y)


@broken(FREED)
def grad_and_then_backward() -> None:
    x = torch.ones(3, requires_grad=True)
    loss = x.pow(3).sum()  # made: PowBackward0
    torch.autograd.grad(loss, [x])  # freed
    loss.backward()


@broken(FREED)
def a_gradient_penalty_frees_the_graph_of_the_score() -> None:
    critic = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    x = batch().requires_grad_()
    score = critic(x).sum()  # made: AddmmBackward0
    (slope,) = grad(score, x)  # freed
    (score + (slope.norm() - 1) ** 2).backward()


@broken(FREED)
def backward_for_some_inputs_and_then_for_the_others() -> None:
    a, b = (torch.ones(3, requires_grad=True) for _ in range(2))
    loss = (a / b).sum()  # made: DivBackward0
    loss.backward(inputs=[a])  # freed
    loss.backward(inputs=[b])


@broken(FREED)
def the_last_backward_that_kept_nothing_is_named() -> None:
    x = torch.ones(3, requires_grad=True)
    loss = x.cos().sum()  # made: CosBackward0
    loss.backward(retain_graph=True)
    loss.backward()  # freed
    loss.backward()


@broken(FREED)
def backward_of_many_roots_frees_them_all() -> None:
    x = torch.ones(3, requires_grad=True)
    first, second = x.log().sum(), x.sin().sum()  # made: SinBackward0
    torch.autograd.backward([first, second])  # freed
    second.backward()


@broken(FREED)
def a_saved_value_is_read_after_the_backward() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()  # made: ExpBackward0
    y.sum().backward()  # freed
    _ = y.grad_fn._saved_result


@broken(FREED)
def a_custom_function_goes_backward_twice() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad

    x = torch.ones(3, requires_grad=True)
    y = Cube.apply(x).sum()  # made: CubeBackward
    y.backward()  # freed
    y.backward()


@broken(FREED)
def a_saved_view_of_an_embedding_goes_backward_twice() -> None:
    table = nn.Embedding(5, 3)
    words = table(torch.tensor([1, 2]))  # made: EmbeddingBackward0
    words.sum().backward()  # freed
    words.sum().backward()


@broken(FREED)
def a_normalised_batch_goes_backward_twice() -> None:
    norm = nn.BatchNorm1d(3)
    out = norm(batch())  # made: NativeBatchNormBackward0
    out.sum().backward()  # freed
    out.sum().backward()


@broken(FREED)
def the_cost_of_classes_goes_backward_twice() -> None:
    logits = torch.zeros(2, 3, requires_grad=True)
    loss = nn.CrossEntropyLoss()(logits, torch.tensor([0, 2]))  # made: NllLossBackward0
    loss.backward()  # freed
    loss.backward()


@broken(FREED)
def a_generator_of_losses_shares_its_graph() -> None:
    def losses() -> Iterator[Any]:
        shared = w.exp()  # made: ExpBackward0
        yield shared.sum()
        yield shared.mean()

    w = nn.Parameter(torch.ones(3))
    for loss in losses():
        loss.backward()  # freed


@broken(FREED)
def an_agent_bootstraps_from_a_value_with_history() -> None:
    class Agent:
        def __init__(self) -> None:
            self.net = nn.Linear(3, 1)
            self.value = torch.zeros(4, 1)

        def observe(self) -> Any:
            target = self.value
            self.value = torch.sigmoid(self.net(batch()))  # made: SigmoidBackward0
            return F.mse_loss(self.value, target)

        def learn(self) -> None:
            self.observe().backward()  # freed

    agent = Agent()
    agent.learn()
    agent.learn()


@broken(FREED)
def a_hook_goes_backward_through_a_graph_of_its_own() -> None:
    def ask(grad: Any) -> None:
        with torch.enable_grad():
            side.sum().backward()  # freed

    x = torch.ones(3, requires_grad=True)
    side = x.exp()  # made: ExpBackward0
    y = x * 2
    y.register_hook(ask)
    y.sum().backward()
    side.sum().backward()


@broken(FREED)
def the_graph_inside_a_checkpoint_is_shared_with_the_outside() -> None:
    x = torch.ones(3, requires_grad=True)
    shared = x.exp()  # made: ExpBackward0
    checkpoint(torch.sin, shared, use_reentrant=False).sum().backward()  # freed
    checkpoint(torch.sin, shared, use_reentrant=False).sum().backward()
