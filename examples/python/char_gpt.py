"""Character GPT: a small transformer reads Python's manual and then writes some of its own.

    python examples/python/char_gpt.py [--steps 1000] [--seed 0] [--out demo-out]

The text is what `help()` knows of Python's syntax (`pydoc_data`, in every CPython), so that nothing
is downloaded. The model is a decoder as in GPT-2, small: two layers, causal attention, tied
embeddings. It learns to foresee the next character, and writes by drawing one after the other.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from pydoc_data import topics

from chart import INK, MUTED, PALETTE, Series, smooth
from command import parse, report
from figure import SEQUENTIAL, Figure, shade, spread
from progress import Progress

import pullback as torch
from pullback import Tensor, nn
from pullback.nn import functional as F

CONTEXT, WIDTH, LAYERS, HEADS, BATCH = 64, 96, 2, 4, 16
ALPHABET = "\n " + "".join(map(chr, range(33, 127)))


class Block(nn.Module):
    """Attention to what came before, then a small network, each beside the residual stream."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.norm_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        """The stream with what this block adds."""
        batch, length, _ = x.shape
        heads = self.attention(self.norm(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norm_mlp(x))


class GPT(nn.Module):
    """Scores of the next character at each place of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(len(ALPHABET), WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        nn.init.normal_(self.token.weight, std=0.05)

    def forward(self, text: Tensor) -> Tensor:
        """(batch, length) numbers of characters to (batch, length, characters) scores."""
        x = self.token(text) + self.position[: text.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.token.weight)

    def loss(self, text: Tensor) -> Tensor:
        """The mean cross-entropy of all characters but the first."""
        scores = self(text[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())


def plain(page: str) -> str:
    """A page without tables, rules and wide gaps, which are easy to learn and dull to read."""
    lines = [line for line in page.splitlines() if not re.match(r"\s*([+|]|[-=*^]{4})", line)]
    return re.sub(r"(?<=\S) {2,}| {5,}", " ", "\n".join(lines))


def read() -> tuple[Tensor, Tensor]:
    """Python's manual as numbers of characters: what to learn from, and what to be judged by."""
    number = {character: index for index, character in enumerate(ALPHABET)}
    pages = [plain(topics.topics[name]) for name in sorted(topics.topics)]
    train, test = (
        torch.tensor([number[c] for c in "\n".join(part) if c in number])
        for part in ([page for at, page in enumerate(pages) if at % 10], pages[::10])
    )
    return train, test


def batch(text: Tensor, size: int = BATCH) -> Tensor:
    """Random pieces of the text."""
    starts = torch.randint(len(text) - CONTEXT - 1, (size, 1))
    return text[starts + torch.arange(CONTEXT + 1)]


@torch.no_grad()
def evaluate(model: GPT, text: Tensor) -> float:
    """The mean loss of evenly spaced pieces."""
    starts = torch.linspace(0, len(text) - CONTEXT - 2, 64).long()[:, None]
    return model.loss(text[starts + torch.arange(CONTEXT + 1)]).item()


@torch.no_grad()
def write(model: GPT, count: int, temperature: float = 0.7) -> tuple[str, list[float]]:
    """Characters drawn one after the other, and how likely the model held each to be."""
    text, chances = torch.tensor([[0]]), []
    for _ in range(count):
        chance = F.softmax(model(text[:, -CONTEXT:])[0, -1] / temperature, dim=0)
        drawn = torch.multinomial(chance, 1)
        chances.append(chance[drawn].item())
        text = torch.cat((text, drawn[None]), dim=1)
    return "".join(ALPHABET[number] for number in text[0, 1:].tolist()), chances


class Course:
    """Losses along the training."""

    def __init__(self) -> None:
        self.train: list[float] = []
        self.test: list[tuple[int, float]] = []


def draw(path: Path, course: Course, text: str, chances: list[float]) -> None:
    """Writes the picture: losses, and a text whose characters are shaded by their chance."""
    figure = Figure("A character GPT reads Python's manual", 3, width=480, height=520)
    steps = list(range(1, len(course.train) + 1))
    panel = figure.axes(
        (0, 0), "loss of the next character", (0, len(steps)),
        spread([*course.train, *(loss for _, loss in course.test)]), ("step", "nats"),
    )  # fmt: skip
    test_steps, test = zip(*course.test, strict=True)
    panel.lines(
        [
            Series("", steps, course.train, PALETTE[0], 1.0, 0.25),
            Series("read", steps, smooth(course.train, 0.95), PALETTE[0]),
            Series("pages not read", test_steps, test, PALETTE[1], markers=True),
        ]
    )
    left, top = figure.width + 50, 80
    canvas = figure.canvas
    canvas.text(left, top, "what it writes; darker: it was surer of the character", INK)
    column = row = 0
    for character, chance in zip(text, chances, strict=True):
        if character == "\n" or column == 66:
            column, row = 0, row + 1
        if row == 20:
            break
        if character != "\n":
            x, y = left + 13 * column, top + 30 + 23 * row
            canvas.fill(x, y, 13, 22, shade(0.55 * chance, SEQUENTIAL))
            canvas.text(x + 6.5, y + 11, character, INK if chance > 0.2 else MUTED, 1.7, align=0.5)
            column += 1
    figure.save(path)


def main() -> None:
    """Trains the model, prints and draws what it writes."""
    options = parse(__doc__, steps=1000)
    torch.manual_seed(options.seed)
    train, test = read()
    model = GPT()
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(train)} characters to read, {weights} weights")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    warm_up = max(1, min(50, options.steps // 10))

    def rate(step: int) -> float:
        falling = 0.5 + 0.5 * math.cos(math.pi * step / options.steps)
        return 3 * min((step + 1) / warm_up, 0.03 + 0.97 * falling)

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    course = Course()
    course.test.append((0, evaluate(model, test)))
    progress = Progress("GPT", options.steps)
    for step in range(options.steps):
        loss = model.loss(batch(train))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        course.train.append(loss.item())
        if (step + 1) % max(1, options.steps // 12) == 0 or step + 1 == options.steps:
            course.test.append((step + 1, evaluate(model, test)))
        progress.update(step + 1, f"loss {loss.item():.3f}  unread {course.test[-1][1]:.3f}")
    after = course.test[-1][1]
    progress.finish(f"{after:.3f} nats per character of pages not read")
    text, chances = write(model, min(1200, 40 + 2 * options.steps))
    print(f"\n{text[:600].strip()}\n")
    path = options.picture("char_gpt.png")
    draw(path, course, text, chances)
    report("loss in nats", course.test[0][1], after, path)


if __name__ == "__main__":
    main()
