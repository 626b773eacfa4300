"""Writes `torch.tsv`: what PyTorch gives for the cases of the tests beside this folder.

Run it with an interpreter that has PyTorch, and commit the file:

    PYTHON_WITH_TORCH crates/nn/tests/recorded/record.py

A row is a case, an entry of it, the shape, and the elements (of long tensors the first and the last
four) with their sum. The Rust tests have the same cases by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import data

ROWS: list[str] = []


def row(case: str, entry: str, tensor: torch.Tensor) -> None:
    """One row; numbers are written so that they are read as what they are."""
    flat = tensor.detach().to(torch.float64).flatten()
    ends = flat if flat.numel() <= 8 else torch.cat([flat[:4], flat[-4:]])
    shape = ",".join(map(str, tensor.shape))
    numbers = ",".join(map(repr, ends.tolist()))
    ROWS.append(f"{case}\t{entry}\t{shape}\t{flat.sum().item()!r}\t{numbers}")


def layer(
    case: str,
    make: Callable[[], nn.Module],
    call: Callable[[Any], Any],
) -> None:
    """A layer of seed 0: state, output, and gradients of the output's sum of squares."""
    torch.manual_seed(0)
    module = make()
    for name, tensor in module.state_dict().items():
        row(case, name, tensor)
    outputs = call(module)
    flat = outputs if isinstance(outputs, tuple) else (outputs,)
    for index, output in enumerate(flat):
        row(case, f"output {index}", output)
    parameters = dict(module.named_parameters())
    if parameters:
        sum(output.square().sum() for output in flat).backward()
        for name, parameter in parameters.items():
            row(case, f"grad {name}", parameter.grad)
    for name, buffer in module.named_buffers():
        row(case, f"after {name}", buffer)
    module.eval()
    first = call(module)
    row(case, "evaluated", first[0] if isinstance(first, tuple) else first)


def pair(output: Any) -> Any:
    """The tensors of what a recurrent layer returns, in a row."""
    y, state = output
    return (y, *state) if isinstance(state, tuple) else (y, state)


def packed(module: Any, lengths: list[int], x: torch.Tensor, state: Any = None) -> Any:
    """What a recurrent layer gives for a padded batch ``(T, N, F)`` of such lengths."""
    counts = torch.tensor(lengths)
    sequence = nn.utils.rnn.pack_padded_sequence(x, counts, enforce_sorted=False)
    y, last = module(sequence, state)
    y, _ = nn.utils.rnn.pad_packed_sequence(y)
    return pair((y, last))


def layers() -> None:
    """All layers."""
    randn = torch.randn
    layer("linear", lambda: nn.Linear(5, 3), lambda m: m(randn(2, 5)))
    layer("linear without bias", lambda: nn.Linear(5, 3, bias=False), lambda m: m(randn(2, 5)))
    layer("bilinear", lambda: nn.Bilinear(3, 4, 2), lambda m: m(randn(5, 3), randn(5, 4)))
    layer(
        "conv1d",
        lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2),
        lambda m: m(randn(2, 4, 9)),
    )
    layer("conv2d", lambda: nn.Conv2d(3, 4, (3, 2), dilation=2), lambda m: m(randn(2, 3, 8, 7)))
    layer(
        "conv2d same",
        lambda: nn.Conv2d(2, 2, 4, padding="same", bias=False),
        lambda m: m(randn(1, 2, 5, 6)),
    )
    layer(
        "conv1d circular",
        lambda: nn.Conv1d(2, 3, 4, padding="same", padding_mode="circular"),
        lambda m: m(randn(2, 2, 7)),
    )
    layer(
        "conv2d reflect",
        lambda: nn.Conv2d(2, 3, 3, stride=(1, 2), padding=(1, 2), padding_mode="reflect"),
        lambda m: m(randn(1, 2, 5, 6)),
    )
    layer(
        "conv3d replicate",
        lambda: nn.Conv3d(1, 2, 2, padding=1, padding_mode="replicate"),
        lambda m: m(randn(1, 1, 3, 4, 2)),
    )
    layer("conv3d", lambda: nn.Conv3d(2, 3, 2), lambda m: m(randn(1, 2, 4, 3, 3)))
    layer(
        "conv transpose 2d",
        lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1),
        lambda m: m(randn(2, 3, 4, 3)),
    )
    layer(
        "embedding",
        lambda: nn.Embedding(7, 3, padding_idx=2),
        lambda m: m(torch.tensor([[0, 2], [6, 0]])),
    )
    layer("layer norm", lambda: nn.LayerNorm([2, 3]), lambda m: m(randn(4, 2, 3)))
    layer("rms norm", lambda: nn.RMSNorm(6), lambda m: m(randn(4, 6)))
    layer("group norm", lambda: nn.GroupNorm(2, 4), lambda m: m(randn(3, 4, 5)))
    layer("batch norm 1d", lambda: nn.BatchNorm1d(3), lambda m: m(randn(6, 3)))
    layer("batch norm 2d", lambda: nn.BatchNorm2d(3, momentum=None), lambda m: m(randn(2, 3, 4, 4)))
    layer(
        "rnn",
        lambda: nn.RNN(3, 4, num_layers=2, nonlinearity="relu", bidirectional=True),
        lambda m: pair(m(randn(5, 2, 3))),
    )
    layer("lstm", lambda: nn.LSTM(3, 4, 2, batch_first=True), lambda m: pair(m(randn(2, 5, 3))))
    layer(
        "gru",
        lambda: nn.GRU(3, 4, bias=False),
        lambda m: pair(m(randn(5, 2, 3), randn(1, 2, 4))),
    )
    layer(
        "lstm projected",
        lambda: nn.LSTM(3, 5, 2, bidirectional=True, proj_size=2),
        lambda m: pair(m(randn(4, 2, 3))),
    )
    layer(
        "lstm packed",
        lambda: nn.LSTM(3, 4, 2, bidirectional=True),
        lambda m: packed(m, [2, 4, 1], randn(4, 3, 3), (randn(4, 3, 4), randn(4, 3, 4))),
    )
    layer("gru packed", lambda: nn.GRU(4, 3), lambda m: packed(m, [4, 2, 2], randn(4, 3, 4)))
    layer(
        "attention",
        lambda: nn.MultiheadAttention(8, 2, batch_first=True),
        lambda m: m(randn(3, 4, 8), randn(3, 5, 8), randn(3, 5, 8), need_weights=False)[0],
    )
    encoder = nn.TransformerEncoderLayer
    layer("encoder layer", lambda: encoder(8, 2, 16, dropout=0.0), lambda m: m(randn(4, 3, 8)))
    layer(
        "encoder layer, norm first",
        lambda: encoder(
            8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        ),
        lambda m: m(randn(3, 4, 8)),
    )
    decoder = nn.TransformerDecoderLayer
    layer(
        "decoder layer",
        lambda: decoder(8, 2, 16, dropout=0.0),
        lambda m: m(randn(4, 3, 8), randn(5, 3, 8)),
    )
    layer(
        "decoder layer, norm first, causal",
        lambda: decoder(
            8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        ),
        lambda m: m(
            randn(3, 4, 8),
            randn(3, 5, 8),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(4),
            tgt_is_causal=True,
        ),
    )
    for name, make in {
        "relu": nn.ReLU,
        "relu6": nn.ReLU6,
        "sigmoid": nn.Sigmoid,
        "tanh": nn.Tanh,
        "silu": nn.SiLU,
        "mish": nn.Mish,
        "selu": nn.SELU,
        "log sigmoid": nn.LogSigmoid,
        "hardsigmoid": nn.Hardsigmoid,
        "hardswish": nn.Hardswish,
        "leaky relu": lambda: nn.LeakyReLU(0.2),
        "elu": lambda: nn.ELU(0.7),
        "celu": lambda: nn.CELU(0.7),
        "hardshrink": nn.Hardshrink,
        "softshrink": nn.Softshrink,
        "softsign": nn.Softsign,
        "tanhshrink": nn.Tanhshrink,
        "softplus": lambda: nn.Softplus(2.0),
        "gelu": nn.GELU,
        "gelu tanh": lambda: nn.GELU("tanh"),
        "hardtanh": nn.Hardtanh,
        "softmax": lambda: nn.Softmax(-1),
        "log softmax": lambda: nn.LogSoftmax(-1),
        "glu": nn.GLU,
        "prelu": lambda: nn.PReLU(4),
    }.items():
        layer(name, make, lambda m: m(randn(2, 4)))
    layer("dropout", lambda: nn.Dropout(0.3), lambda m: m(randn(4, 5)))
    layer("feature dropout", lambda: nn.Dropout1d(0.5), lambda m: m(randn(2, 6, 3)))


def initialisers() -> None:
    """Initial values of a matrix and of a kernel."""
    functions = {
        "xavier_uniform": lambda t: nn.init.xavier_uniform_(t, 1.5),
        "xavier_normal": nn.init.xavier_normal_,
        "kaiming_uniform": lambda t: nn.init.kaiming_uniform_(t, nonlinearity="relu"),
        "kaiming_normal": lambda t: nn.init.kaiming_normal_(
            t, 0.2, mode="fan_out", nonlinearity="leaky_relu"
        ),
        "orthogonal": lambda t: nn.init.orthogonal_(t, 2.0),
    }
    for name, function in functions.items():
        for shape in [(4, 6), (5, 2, 3)]:
            torch.manual_seed(0)
            row("init", f"{name} {len(shape)}", function(torch.empty(shape)))


def optimisers() -> None:
    """Five steps from the same point, the second parameter without a gradient in the first step."""
    o = torch.optim
    cases: dict[str, Callable[[Any], Any]] = {
        "sgd": lambda p: o.SGD(p, lr=0.1),
        "sgd momentum": lambda p: o.SGD(p, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.1),
        "sgd nesterov": lambda p: o.SGD(p, lr=0.05, momentum=0.9, nesterov=True, maximize=True),
        "adam": lambda p: o.Adam(p, lr=0.1),
        "adam amsgrad": lambda p: o.Adam(p, lr=0.1, weight_decay=0.1, amsgrad=True),
        "adamw": lambda p: o.AdamW(p, lr=0.1, betas=(0.8, 0.9), weight_decay=0.5),
        "rmsprop": lambda p: o.RMSprop(p, lr=0.01),
        "rmsprop centered": lambda p: o.RMSprop(
            p, lr=0.01, alpha=0.9, centered=True, momentum=0.5, weight_decay=0.1
        ),
    }
    for name, make in cases.items():
        a = torch.linspace(-1, 2, 6, dtype=torch.float64).requires_grad_()
        b = torch.linspace(1, 2, 3, dtype=torch.float64).requires_grad_()
        optimizer = make([a, b])
        for step in range(5):
            optimizer.zero_grad()
            loss = (a.cos() * a).sum() if step == 0 else (a.cos() * a).sum() + b.pow(3).sum()
            loss.backward()
            optimizer.step()
        row("optimizer", f"{name} a", a)
        row("optimizer", f"{name} b", b)


def schedules() -> None:
    """Learning rates of eight steps."""
    s = torch.optim.lr_scheduler
    cases: dict[str, Callable[[Any], Any]] = {
        "step": lambda opt: s.StepLR(opt, 3, gamma=0.5),
        "multi step": lambda opt: s.MultiStepLR(opt, [2, 5, 5], gamma=0.1),
        "exponential": lambda opt: s.ExponentialLR(opt, 0.9),
        "linear": lambda opt: s.LinearLR(opt, 0.25, 1.0, 4),
        "cosine": lambda opt: s.CosineAnnealingLR(opt, 5, eta_min=0.01),
        "one cycle": lambda opt: s.OneCycleLR(opt, 0.5, total_steps=8),
        "lambda": lambda opt: s.LambdaLR(opt, lambda step: 1 / (1 + step)),
    }
    for name, make in cases.items():
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.2)
        scheduler = make(optimizer)
        rates = []
        for _ in range(8):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if len(rates) < 8:
                scheduler.step()
        row("schedule", name, torch.tensor(rates, dtype=torch.float64))


def orders() -> None:
    """Orders of examples."""

    def rows(name: str, order: Iterator[Any]) -> None:
        row("order", name, torch.tensor([int(index) for index in order]))

    torch.manual_seed(3)
    loader = data.DataLoader(range(8), batch_size=3, shuffle=True)
    rows("shuffle, first pass", (i for batch in loader for i in batch))
    rows("shuffle, second pass", (i for batch in loader for i in batch))
    generator = torch.Generator().manual_seed(5)
    loader = data.DataLoader(range(8), batch_size=3, shuffle=True, generator=generator)
    rows("own generator", (i for batch in loader for i in batch))
    generator = torch.Generator().manual_seed(5)
    weights = [0.1, 0.2, 0.3, 2.0, 0.5]
    rows("weighted", iter(data.WeightedRandomSampler(weights, 8, generator=generator)))
    generator = torch.Generator().manual_seed(5)
    sampler = data.SubsetRandomSampler([3, 1, 4, 15, 9], generator=generator)
    rows("subset", iter(sampler))
    generator = torch.Generator().manual_seed(5)
    first, _ = data.random_split(range(8), [5, 3], generator=generator)
    rows("split", iter(first.indices))


def main() -> None:
    """Runs all cases."""
    torch.set_num_threads(1)
    for part in (layers, initialisers, optimisers, schedules, orders):
        part()
    Path(__file__).with_name("torch.tsv").write_text("\n".join(ROWS) + "\n")


if __name__ == "__main__":
    main()
