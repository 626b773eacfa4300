"""A training loop, as type checkers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import assert_type

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from pullback.nn import Parameter
from pullback.utils.data import DataLoader, TensorDataset, random_split


class Net(nn.Module):
    """Two layers."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.drop = nn.Dropout(0.5)
        self.second = nn.Linear(width, 2, bias=True)
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The logits."""
        hidden = F.relu(self.first(x))
        assert_type(hidden, torch.Tensor)
        logits: torch.Tensor = self.second(self.drop(hidden))
        return logits


net = Net()
assert_type(net.first, nn.Linear)
assert_type(net.first.weight, Parameter)
assert_type(net.second.bias, Parameter)
assert_type(net.first.in_features, int)
assert_type(net.state_dict(), dict[str, Any])
assert_type(net.train(), Net)
assert_type(net.to("cpu"), Net)
assert_type(net.float(), Net)
assert_type(net.eval(), Net)
assert_type(net.requires_grad_(True), Net)
assert_type(net.training, bool)
for name, parameter in net.named_parameters():
    assert_type(name, str)
    assert_type(parameter, Parameter)
for module in net.modules():
    assert_type(module, nn.Module)

data = TensorDataset(torch.randn(8, 4), torch.zeros(8, dtype=torch.long))
train, rest = random_split(data, [6, 2])
loader = DataLoader(data, batch_size=4, shuffle=True)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
criterion = nn.CrossEntropyLoss()
total = 0.0
for inputs, labels in loader:
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(net(inputs), labels, label_smoothing=0.1)
    assert_type(loss, torch.Tensor)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    assert_type(norm, torch.Tensor)
    optimizer.step()
    total += loss.item()
schedule.step()
rates: list[float] = schedule.get_last_lr()
assert_type(optimizer.state_dict(), dict[str, Any])


@torch.no_grad()
def evaluate(model: nn.Module, x: torch.Tensor) -> float:
    """How often the first class is chosen."""
    chosen = model(x).argmax(dim=-1)
    return float((chosen == 0).float().mean())


@torch.no_grad
def evaluate_too(model: nn.Module, x: torch.Tensor) -> float:
    """The same, without brackets."""
    return evaluate(model, x)


@torch.inference_mode()
def infer(x: torch.Tensor, *, count: int = 1) -> list[int]:
    """Some numbers."""
    return [int(v) for v in x[:count].long()]


@torch.enable_grad()
def again(x: torch.Tensor) -> torch.Tensor:
    """The tensor."""
    return x


@torch.set_grad_enabled(False)
def off(x: torch.Tensor) -> torch.Tensor:
    """The tensor."""
    return x


assert_type(evaluate(net, torch.ones(2, 4)), float)
assert_type(evaluate_too(net, torch.ones(2, 4)), float)
assert_type(infer(torch.ones(2), count=2), list[int])
assert_type(again(torch.ones(2)), torch.Tensor)
assert_type(off(torch.ones(2)), torch.Tensor)

with torch.no_grad():
    frozen = net(torch.ones(1, 4))

if TYPE_CHECKING:
    # What is wrong is said.
    evaluate(net, "text")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    evaluate_too(net)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    infer(torch.ones(2), size=2)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
