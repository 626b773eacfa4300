"""Records of runs: what is written, and where two of them part."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback import _C, nn
from pullback._record import compare, recorder

WORD = (1 << 64) - 1


def mixed(word: int, place: int) -> int:
    x = ((word ^ (place * 0x9E3779B97F4A7C15)) * 0xBF58476D1CE4E5B9) & WORD
    x ^= x >> 32
    x = (x * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 29)


def plainly(data: bytes) -> int:
    """The digest by its definition."""
    words = [data[at : at + 8].ljust(8, b"\0") for at in range(0, len(data), 8)]
    total = sum(mixed(int.from_bytes(w, "little"), at) for at, w in enumerate(words))
    return mixed((total ^ (len(data) * 0x9E3779B97F4A7C15)) & WORD, 0)


def bytes_of(x: Any) -> bytes:
    return bytes(x.contiguous().reshape(-1).view(torch.uint8).tolist())


VALUES = [
    torch.arange(7, dtype=torch.float32),
    torch.randn(3, 5, dtype=torch.float64),
    torch.randn(4, 6).T,
    torch.tensor([True, False, True]),
    torch.arange(11, dtype=torch.uint8),
    torch.randn(9).to(torch.bfloat16),
    torch.randn(2, 2, dtype=torch.complex64).conj(),
    torch.zeros(0),
    torch.tensor(2.5),
    torch.tensor([1.0, math.nan, -3.0, math.inf]),
    torch.randn(5000),
]


@pytest.mark.parametrize("x", VALUES, ids=lambda x: f"{x.dtype}{list(x.shape)}")
def test_digests_are_those_of_the_definition_by_kernel_and_by_ops_of_tensors(x: Any) -> None:
    resolved = x.resolve_conj()
    wanted = plainly(bytes_of(resolved)) if x.numel() else plainly(b"")
    assert recorder.digest(torch, x) == wanted
    assert _C._summary(x)[0] == wanted


@pytest.mark.parametrize("x", VALUES, ids=lambda x: f"{x.dtype}{list(x.shape)}")
def test_ranges_are_the_same_by_kernel_and_by_ops_of_tensors(x: Any) -> None:
    ours, theirs = _C._summary(x), recorder.summary(torch, x)
    assert ours[1] == theirs[1]
    assert ours[2:] == pytest.approx(theirs[2:], rel=1e-12, nan_ok=True)


def test_the_digest_of_a_tensor_is_that_of_its_elements_not_of_its_memory() -> None:
    x = torch.randn(300, 400)
    assert _C._summary(x)[0] == _C._summary(x.T.contiguous().T)[0]
    assert _C._summary(x)[0] != _C._summary(x.T)[0]
    with pytest.raises(TypeError, match="a tensor is needed"):
        _C._summary(3)  # type: ignore[arg-type]


def train(path: Path, scale: float = 1.0, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(5, 4)
    with torch.record(path):
        for _ in range(2):
            optimizer.zero_grad()
            hidden = model(x).square()
            loss = (hidden * scale).mean()  # scaled
            loss.backward()
            optimizer.step()
    return loss


def line_of(text: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(n for n, line in enumerate(file, 1) if line.rstrip().endswith(f"# {text}"))


def test_a_record_has_every_op_forward_and_backward_with_its_line(tmp_path: Path) -> None:
    train(tmp_path / "a.pbt")
    record = compare.read(tmp_path / "a.pbt")
    assert record.library == f"pullback {torch.version.pullback}"
    forward = [op for op in record.ops if op.node is None]
    mean = next(op for op in forward if op.kind == "mean")
    assert mean.line is not None
    assert (mean.line.file, mean.line.number) == (__file__, line_of("scaled"))
    assert mean.line.function == "train"
    (result,) = mean.results
    assert result.shape == ()
    assert result.min == result.max == result.mean > 0
    backward = [op for op in record.ops if op.node == "MeanBackward0"]
    assert backward
    assert all(op.line == mean.line for op in backward)
    assert any(op.node == "AddmmBackward0" and op.kind == "mm" for op in record.ops)
    assert any("sgd" in op.kind for op in forward)


def test_two_runs_of_one_program_have_the_same_record_whatever_the_threads(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    train(tmp_path / "a.pbt")
    try:
        torch.set_num_threads(1)
        train(tmp_path / "b.pbt")
    finally:
        torch.set_num_threads(before)
    a, b = compare.read(tmp_path / "a.pbt"), compare.read(tmp_path / "b.pbt")
    assert [op.results for op in a.ops] == [op.results for op in b.ops] or all(
        [r.digest for r in x.results] == [r.digest for r in y.results]
        for x, y in zip(a.ops, b.ops, strict=True)
    )
    found = compare.compare(a, b)
    assert (found.bits, found.numbers, found.unpaired, found.only) == (None, None, None, (0, 0))
    assert compare.report(a, b, found).endswith(
        f"The runs are the same to the bit: {len(a.ops)} ops."
    )


def test_the_first_op_and_line_that_differ_are_named(tmp_path: Path) -> None:
    train(tmp_path / "a.pbt")
    train(tmp_path / "b.pbt", scale=1.0001)
    a, b = compare.read(tmp_path / "a.pbt"), compare.read(tmp_path / "b.pbt")
    found = compare.compare(a, b, 1e-2)
    assert found.bits is not None
    assert found.bits.first is not None
    op = a.ops[found.bits.first]
    assert (op.name, op.node) == ("aten.mul.Tensor", None)
    assert op.line is not None
    assert op.line.number == line_of("scaled")
    text = compare.report(a, b, found)
    assert f'File "{__file__}", line {line_of("scaled")}, in train' in text
    assert "digest" in text
    strict = compare.compare(a, b, 1e-6)
    assert strict.numbers == strict.bits


def test_a_difference_that_arises_in_backward_is_named_there(tmp_path: Path) -> None:
    class Scaled(torch.autograd.Function):
        factor = 1.0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2 * Scaled.factor

    def run(path: Path) -> None:
        x = torch.arange(3.0, requires_grad=True)
        with torch.record(path):
            Scaled.apply(x.sin()).sum().backward()  # applied

    run(tmp_path / "a.pbt")
    Scaled.factor = 1.5
    run(tmp_path / "b.pbt")
    a, b = compare.read(tmp_path / "a.pbt"), compare.read(tmp_path / "b.pbt")
    found = compare.compare(a, b)
    assert found.bits is not None
    assert found.bits.first is not None
    op = a.ops[found.bits.first]
    assert op.node == "ScaledBackward"
    assert op.line is not None
    assert op.line.number == line_of("applied")
    assert "backward, in ScaledBackward" in compare.report(a, b, found)


def test_an_op_that_only_one_run_has_does_not_end_the_comparison(tmp_path: Path) -> None:
    def run(path: Path, more: bool) -> None:
        x = torch.arange(3.0)
        with torch.record(path):
            y = x.sin()
            if more:
                y.cos()  # more
            y.exp()

    run(tmp_path / "a.pbt", False)
    run(tmp_path / "b.pbt", True)
    a, b = compare.read(tmp_path / "a.pbt"), compare.read(tmp_path / "b.pbt")
    found = compare.compare(a, b)
    assert found.bits is None
    assert found.pairs == 2
    assert found.only == (0, 1)
    assert found.unpaired == compare.Difference(None, 1, None)
    text = compare.report(a, b, found)
    assert "has aten.cos.default" in text
    assert f"line {line_of('more')}" in text


def test_of_views_and_of_memory_that_nobody_has_written_only_shapes_count(tmp_path: Path) -> None:
    x = torch.randn(2, 3)
    with torch.record(tmp_path / "a.pbt"):
        torch.empty(5)
        x.t()
        x.neg()
    results = [op.results[0] for op in compare.read(tmp_path / "a.pbt").ops]
    assert [r.shape for r in results] == [(5,), (3, 2), (2, 3)]
    assert [r.digest is None for r in results] == [True, True, False]


def test_the_file_is_whole_after_an_error(tmp_path: Path) -> None:
    def run() -> None:
        x = torch.ones(3)
        with torch.record(tmp_path / "a.pbt"):
            x.sin()
            x + torch.ones(4)

    with pytest.raises(RuntimeError, match="must match"):
        run()
    kinds = [op.kind for op in compare.read(tmp_path / "a.pbt").ops]
    assert kinds[0] == "sin"
    assert "add" not in kinds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no record"),
        ("nothing\n", "is no record"),
        ('{"format":"other"}\n', "is no record"),
        ('{"format":"pullback record","version":99}\n', "later than"),
        (
            '{"format":"pullback record","version":1,"library":"x","threads":1}\n'
            '{"op":"a","out":[],"site":3}\n',
            "is damaged",
        ),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.pbt"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        compare.read(path)


def test_the_command_says_what_it_found_and_ends_with_a_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "a.pbt", tmp_path / "b.pbt"
    train(first)
    train(second, seed=1)
    assert compare.main([str(first), str(first)]) == 0
    assert "the same to the bit" in capsys.readouterr().out
    assert compare.main([str(first), str(second)]) == 1
    assert "Bits part first at op" in capsys.readouterr().out
    assert compare.main([str(first), str(tmp_path / "none.pbt")]) == 2
    assert "none.pbt" in capsys.readouterr().err


def test_the_recorder_is_written_out_and_runs_with_nothing_but_a_torch(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pullback", "recorder"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (tmp_path / "recorder.py").write_text(done.stdout)
    program = (
        "import recorder, torch\n"
        "x = torch.arange(3.0, requires_grad=True)\n"
        "with recorder.record('run.pbt'):\n"
        "    x.sin().sum().backward()\n"
    )
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "-m", "pullback", "program.py"]
    subprocess.run(command, cwd=tmp_path, check=True)
    ops = compare.read(tmp_path / "run.pbt").ops
    assert [op.kind for op in ops if op.node is None][:2] == ["sin", "sum"]
    done = subprocess.run(
        [sys.executable, "-m", "pullback", "diff", "run.pbt", "run.pbt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "the same to the bit" in done.stdout


def test_a_record_of_pytorch_itself_is_compared_by_its_numbers(tmp_path: Path) -> None:
    """The rows are those that PyTorch 2.15 wrote for this program, with the recorder."""
    recorded = Path(__file__).with_name("recorded") / "run_of_pytorch.pbt"
    theirs = compare.read(recorded)
    x = torch.linspace(-2, 2, 12).reshape(3, 4).requires_grad_()
    w = torch.linspace(-1, 1, 8).reshape(4, 2).requires_grad_()
    with torch.record(tmp_path / "a.pbt"):
        (x.tanh() @ w).square().mean().backward()
    ours = compare.read(tmp_path / "a.pbt")
    found = compare.compare(ours, theirs, 1e-5)
    assert theirs.library.startswith("torch ")
    assert found.numbers is None
    assert found.pairs >= 8
    rows = [json.loads(line) for line in recorded.read_text().splitlines()]
    changed = [r for r in rows if r.get("node") == "TanhBackward0" and "mean" in r["out"][0]]
    changed[-1]["out"][0] |= {"mean": 9.0, "max": 9.0, "digest": "0"}
    (tmp_path / "b.pbt").write_text("".join(json.dumps(r) + "\n" for r in rows))
    theirs = compare.read(tmp_path / "b.pbt")
    found = compare.compare(ours, theirs, 1e-5)
    assert found.numbers is not None
    assert found.numbers.second is not None
    assert theirs.ops[found.numbers.second].node == "TanhBackward0"
