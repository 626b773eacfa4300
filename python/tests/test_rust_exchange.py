"""Models go between Rust and Python: equal seeds give equal weights, and both read the files.

The Rust side is the program `exchange` of `examples/rust`, which has the model below, too.
"""

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback.utils.safetensors import load_file, save_file

ROOT = Path(__file__).parents[2]


class Net(nn.Module):
    """The model of `examples/rust/exchange.rs`."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.rnn = nn.GRU(4, 8, batch_first=True)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Three numbers for each image."""
        x = self.norm(self.conv(x)).relu().flatten(2).transpose(1, 2)
        scores: torch.Tensor = self.head(self.encoder(self.rnn(x)[0]))
        return scores.mean(1)


def images() -> torch.Tensor:
    """Two images whose elements are known to both sides."""
    return (torch.arange(50).float() * 0.37).sin().view(2, 1, 5, 5)


@pytest.fixture(scope="module")
def program() -> Path:
    """The Rust program, built."""
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("there is no cargo to build the Rust program with")
    build = [cargo, "build", "--quiet", "--package", "pullback-examples", "--bin", "exchange"]
    command = [*build, "--message-format", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    messages = map(json.loads, done.stdout.splitlines())
    return Path(next(found for message in messages if (found := message.get("executable"))))


def run(program: Path, *arguments: Any) -> list[float]:
    """The numbers that the program prints."""
    command = [str(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [float(number) for number in done.stdout.split()]


def read(path: Path) -> dict[str, torch.Tensor]:
    """The state dict of a file."""
    if path.suffix == ".pt":
        state: dict[str, torch.Tensor] = torch.load(path, weights_only=True)
        return state
    return load_file(path)


def write(state: dict[str, torch.Tensor], path: Path) -> None:
    """Writes a state dict."""
    if path.suffix == ".pt":
        torch.save(state, path)
    else:
        save_file(state, path)


def assert_near(got: list[float], expected: torch.Tensor) -> None:
    """Compares up to rounding."""
    numbers = expected.flatten().tolist()
    assert len(got) == len(numbers)
    assert all(
        math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5) for a, b in zip(got, numbers, strict=True)
    )


@pytest.mark.parametrize("ending", ["safetensors", "pt"])
def test_rust_writes_the_model_that_python_makes_of_the_same_seed(
    program: Path, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"model.{ending}"
    output = run(program, "write", path)
    torch.manual_seed(0)
    model = Net()
    initial = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert_near(output, model(images()))
    state = read(path)
    assert sorted(state) == sorted(initial)
    if ending == "pt":
        assert list(state) == list(initial)
    # (The forward pass of both moved the running statistics.)
    now = model.state_dict()
    for name, tensor in state.items():
        assert tensor.dtype == initial[name].dtype
        if "running" in name:
            torch.testing.assert_close(tensor, now[name])
        else:
            assert torch.equal(tensor, now[name]), name
    model.load_state_dict(state)


@pytest.mark.parametrize("ending", ["safetensors", "pt"])
def test_rust_reads_the_model_that_python_writes(
    program: Path, tmp_path: Path, ending: str
) -> None:
    torch.manual_seed(1)
    model = Net()
    model(images())
    path = tmp_path / f"model.{ending}"
    write(model.state_dict(), path)
    assert_near(run(program, "read", path), model.eval()(images()))


def train(model: Net, optimizer: torch.optim.Optimizer) -> None:
    """Two steps."""
    for _ in range(2):
        optimizer.zero_grad()
        model(images()).square().sum().backward()
        optimizer.step()


def test_rust_goes_on_with_an_optimizer_of_python_and_python_with_that_of_rust(
    program: Path, tmp_path: Path
) -> None:
    torch.manual_seed(2)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    train(model, optimizer)
    weights, state = tmp_path / "model.pt", tmp_path / "optimizer.pt"
    torch.save(model.state_dict(), weights)
    torch.save(optimizer.state_dict(), state)
    run(program, "train", weights, state)

    other = Net()
    other.load_state_dict(torch.load(weights, weights_only=True))
    other_optimizer = torch.optim.Adam(other.parameters(), lr=0.5)
    other_optimizer.load_state_dict(torch.load(state, weights_only=True))
    assert other_optimizer.param_groups[0]["lr"] == 0.01
    # (Outputs are compared: of gradients that are only rounding Adam makes whole steps, too.)
    train(model, optimizer)
    torch.testing.assert_close(other(images()), model(images()), rtol=1e-3, atol=1e-4)
    train(model, optimizer)
    train(other, other_optimizer)
    torch.testing.assert_close(other(images()), model(images()), rtol=1e-3, atol=1e-3)
