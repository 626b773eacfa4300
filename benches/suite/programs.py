"""Group D, whole programs: steps of training as users write them, each with the loss it returns.

A program is a function that makes a model and its data and returns the step. Parameters and data
are the same in every library (`inputs.py`), so that the losses of the first ten steps can be
compared. Start at PROGRAMS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from small_case import Library, Tensor

from suite.case import Action, Case, Cost, Manner
from suite.inputs import Inputs

DIGITS = Path(__file__).parents[2] / "examples" / "data" / "digits.bin"
DIGIT_COUNT, DIGIT_PIXELS = 1797, 64
BATCH = 64

# GPT: the size of its vocabulary, layers, features, heads, length of a text, texts of a step.
VOCABULARY, LAYERS, FEATURES, HEADS, LENGTH, TEXTS = 65, 4, 128, 4, 128, 8


def cases() -> Iterator[Case]:
    """Every case of the group."""
    for name, (program, operations) in PROGRAMS.items():
        cost = Cost(operations=operations)
        yield Case(f"D.{name}", program, "step", cost=cost, manner=Manner.PROGRAM)


def training(optimizer: Any, loss_of: Callable[[], Tensor]) -> Action:
    """One step of training: forward, backward, optimizer."""

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return step


def load_digits(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """Real images, their pixels from 0 to 1, and their labels (`examples/data/README.md`)."""
    data = np.frombuffer(DIGITS.read_bytes(), np.uint8)
    pixels = data[: DIGIT_COUNT * DIGIT_PIXELS].reshape(DIGIT_COUNT, DIGIT_PIXELS)
    labels = data[DIGIT_COUNT * DIGIT_PIXELS :]
    return inputs.tensor(pixels.astype(np.float32) / 16), inputs.tensor(labels.astype(np.int64))


def mlp_digits(inputs: Inputs) -> Action:
    """A network of two layers on real digits, batch after batch."""
    library, nn = inputs.library, inputs.library.nn
    images, labels = load_digits(inputs)
    model = inputs.initialized(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)))
    optimizer = library.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batch = 0

    def step() -> Tensor:
        nonlocal batch
        start = batch % (DIGIT_COUNT // BATCH) * BATCH
        batch += 1
        x, y = images[start : start + BATCH], labels[start : start + BATCH]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def lenet5(inputs: Inputs) -> Action:
    """The first convolutional network that read digits, on images of 28 x 28."""
    library, nn, F = inputs.library, inputs.library.nn, inputs.functional
    Module: Any = nn.Module

    class LeNet(Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
            self.conv2 = nn.Conv2d(6, 16, 5)
            self.linear1 = nn.Linear(400, 120)
            self.linear2 = nn.Linear(120, 84)
            self.linear3 = nn.Linear(84, 10)

        def forward(self, x: Tensor) -> Tensor:
            x = F.max_pool2d(F.relu(self.conv1(x)), 2)
            x = F.max_pool2d(F.relu(self.conv2(x)), 2)
            x = x.flatten(1)
            return self.linear3(F.relu(self.linear2(F.relu(self.linear1(x)))))

    model = inputs.initialized(LeNet())
    optimizer = library.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = inputs.normal(BATCH, 1, 28, 28), inputs.integers(10, BATCH)
    return training(optimizer, lambda: F.cross_entropy(model(x), y))


def make_gpt(library: Library) -> Any:
    """A small transformer that predicts the next letter."""
    nn, F = library.nn, library.nn.functional
    Module: Any = nn.Module

    class Block(Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(FEATURES), nn.LayerNorm(FEATURES)
            self.query_key_value = nn.Linear(FEATURES, 3 * FEATURES)
            self.project = nn.Linear(FEATURES, FEATURES)
            self.widen = nn.Linear(FEATURES, 4 * FEATURES)
            self.narrow = nn.Linear(4 * FEATURES, FEATURES)

        def forward(self, x: Tensor) -> Tensor:
            texts, length, features = x.shape
            of_heads = (texts, length, HEADS, features // HEADS)
            parts = self.query_key_value(self.norm1(x)).split(FEATURES, dim=2)
            query, key, value = (part.view(*of_heads).transpose(1, 2) for part in parts)
            attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.project(attended.transpose(1, 2).reshape(texts, length, features))
            return x + self.narrow(F.gelu(self.widen(self.norm2(x))))

    class Transformer(Module):
        def __init__(self) -> None:
            super().__init__()
            self.letter = nn.Embedding(VOCABULARY, FEATURES)
            self.place = nn.Embedding(LENGTH, FEATURES)
            self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm = nn.LayerNorm(FEATURES)
            self.head = nn.Linear(FEATURES, VOCABULARY)

        def forward(self, letters: Tensor) -> Tensor:
            x = self.letter(letters) + self.place(library.arange(letters.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return Transformer()


def gpt_small(inputs: Inputs) -> Action:
    """Training of the transformer."""
    model = inputs.initialized(make_gpt(inputs.library))
    optimizer = inputs.library.optim.AdamW(model.parameters(), lr=3e-4)
    letters = inputs.integers(VOCABULARY, TEXTS, LENGTH + 1)
    x, y = letters[:, :-1].contiguous(), letters[:, 1:].contiguous()
    cross_entropy = inputs.functional.cross_entropy

    def loss_of() -> Tensor:
        return cross_entropy(model(x).view(-1, VOCABULARY), y.view(-1))

    return training(optimizer, loss_of)


def gpt_small_half(inputs: Inputs) -> Action:
    """The transformer forward in numbers of two bytes."""
    library = inputs.library
    model = inputs.initialized(make_gpt(library)).to(library.bfloat16)
    x = inputs.integers(VOCABULARY, TEXTS, LENGTH)

    def step() -> Tensor:
        with library.no_grad():
            return model(x).float().logsumexp(-1).mean()

    return step


def make_resnet(library: Library) -> Any:
    """The residual network of eighteen layers, for images of 32 x 32."""
    nn, F = library.nn, library.nn.functional
    Module: Any = nn.Module

    def convolution(inputs: int, outputs: int, window: int, stride: int) -> Any:
        return nn.Conv2d(inputs, outputs, window, stride, window // 2, bias=False)

    class Block(Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = convolution(inputs, outputs, 3, stride)
            self.norm1 = nn.BatchNorm2d(outputs)
            self.conv2 = convolution(outputs, outputs, 3, 1)
            self.norm2 = nn.BatchNorm2d(outputs)
            self.shortcut = None
            if stride != 1 or inputs != outputs:
                self.shortcut = convolution(inputs, outputs, 1, stride)
                self.shortcut_norm = nn.BatchNorm2d(outputs)

        def forward(self, x: Tensor) -> Tensor:
            y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
            return F.relu(
                y + (x if self.shortcut is None else self.shortcut_norm(self.shortcut(x)))
            )

    class Network(Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = convolution(3, 64, 3, 1), nn.BatchNorm2d(64)
            blocks, inputs = [], 64
            for outputs in (64, 128, 256, 512):
                for stride in (1 if outputs == 64 else 2, 1):
                    blocks.append(Block(inputs, outputs, stride))
                    inputs = outputs
            self.blocks = nn.Sequential(*blocks)
            self.linear = nn.Linear(512, 10)

        def forward(self, x: Tensor) -> Tensor:
            x = self.blocks(F.relu(self.norm(self.conv(x))))
            return self.linear(F.adaptive_avg_pool2d(x, 1).flatten(1))

    return Network()


def resnet18_cifar(inputs: Inputs) -> Action:
    """Training of the residual network on sixteen images."""
    model = inputs.initialized(make_resnet(inputs.library)).train()
    optimizer = inputs.library.optim.SGD(
        model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4
    )
    x, y = inputs.normal(16, 3, 32, 32), inputs.integers(10, 16)
    cross_entropy = inputs.functional.cross_entropy
    return training(optimizer, lambda: cross_entropy(model(x), y))


def lstm(inputs: Inputs) -> Action:
    """A class for each of 32 sequences of 64 steps."""
    library, nn = inputs.library, inputs.library.nn
    Module: Any = nn.Module

    class Network(Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.linear = nn.LSTM(64, 128), nn.Linear(128, 10)

        def forward(self, x: Tensor) -> Tensor:
            output, _ = self.lstm(x)
            return self.linear(output[-1])

    model = inputs.initialized(Network())
    optimizer = library.optim.Adam(model.parameters(), lr=1e-3)
    x, y = inputs.normal(64, 32, 64), inputs.integers(10, 32)
    cross_entropy = inputs.functional.cross_entropy
    return training(optimizer, lambda: cross_entropy(model(x), y))


def neural_ode(inputs: Inputs) -> Action:
    """A hundred Runge-Kutta steps through a small network: very many small ops."""
    library, nn = inputs.library, inputs.library.nn
    slope = inputs.initialized(nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2)))
    optimizer = library.optim.Adam(slope.parameters(), lr=1e-3)
    start, goal = inputs.normal(16, 2), inputs.normal(16, 2, seed=1)
    h = 0.01

    def loss_of() -> Tensor:
        x = start
        for _ in range(100):
            k1 = slope(x)
            k2 = slope(x + (h / 2) * k1)
            k3 = slope(x + (h / 2) * k2)
            k4 = slope(x + h * k3)
            x = x + (h / 6) * (k1 + 2 * k2 + 2 * k3 + k4)
        return ((x - goal) ** 2).mean()

    return training(optimizer, loss_of)


def vae(inputs: Inputs) -> Action:
    """A variational autoencoder of images of 784 pixels."""
    library, nn, F = inputs.library, inputs.library.nn, inputs.functional
    Module: Any = nn.Module

    class Autoencoder(Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode = nn.Linear(784, 400)
            self.mean, self.log_variance = nn.Linear(400, 20), nn.Linear(400, 20)
            self.decode1, self.decode2 = nn.Linear(20, 400), nn.Linear(400, 784)

        def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            hidden = F.relu(self.encode(x))
            mean, log_variance = self.mean(hidden), self.log_variance(hidden)
            code = mean + noise * library.exp(0.5 * log_variance)
            pixels = library.sigmoid(self.decode2(F.relu(self.decode1(code))))
            return pixels, mean, log_variance

    model = inputs.initialized(Autoencoder())
    optimizer = library.optim.Adam(model.parameters(), lr=1e-3)
    x, noise = inputs.normal(128, 784).sigmoid(), inputs.normal(128, 20, seed=1)

    def loss_of() -> Tensor:
        pixels, mean, log_variance = model(x, noise)
        terms = library.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        loss = F.binary_cross_entropy(pixels, x, reduction="sum") - 0.5 * terms
        return loss / 128

    return training(optimizer, loss_of)


def hessian50(inputs: Inputs) -> Action:
    """A Hessian of 50 x 50, row by row."""
    library, grad = inputs.library, inputs.library.autograd.grad
    start, x, y = (
        inputs.normal(50, scale=0.3),
        inputs.normal(32, 50, seed=1),
        inputs.normal(32, seed=2),
    )

    def step() -> Tensor:
        w = start.clone().requires_grad_(True)
        loss = ((library.tanh(x @ w) - y) ** 2).mean() + (w**4).sum() * 0.01
        (gradient,) = grad(loss, w, create_graph=True)
        rows = [grad(gradient[i], w, retain_graph=True)[0] for i in range(50)]
        hessian = library.stack(rows)
        return (hessian * hessian).sum()

    return step


# Forward and backward of a layer are three products: six operations a weight and an example.
GPT_WEIGHTS = LAYERS * 12 * FEATURES**2 + FEATURES * VOCABULARY
GPT_ATTENTION = 6 * LAYERS * TEXTS * 2 * LENGTH * LENGTH * FEATURES
# By name: the program and its operations in a step, where they are worth counting.
PROGRAMS: dict[str, tuple[Callable[[Inputs], Action], float | None]] = {
    "mlp_digits": (mlp_digits, 6 * BATCH * (64 * 128 + 128 * 10)),
    "lenet5": (
        lenet5,
        6 * BATCH * (6 * 28 * 28 * 25 + 16 * 100 * 150 + 400 * 120 + 120 * 84 + 840),
    ),
    "gpt_small": (gpt_small, 6 * TEXTS * LENGTH * GPT_WEIGHTS + GPT_ATTENTION),
    "gpt_small_bf16_fwd": (gpt_small_half, None),
    "resnet18_cifar": (resnet18_cifar, 3 * 16 * 2 * 555_000_000),
    "lstm": (lstm, 6 * 64 * 32 * 4 * 128 * (64 + 128)),
    "neural_ode": (neural_ode, None),
    "vae": (vae, 6 * 128 * (784 * 400 * 2 + 400 * 60)),
    "hessian50": (hessian50, None),
}
