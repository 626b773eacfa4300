"""The programs of `examples/python` run in a short form, learn something and draw a picture."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "python"
# How many steps show within seconds that a program learns.
STEPS = {
    "char_gpt": 20,
    "custom_function": 60,
    "data_workers": 40,
    "graph_network": 40,
    "hessian_spectrum": 30,
    "influence": 40,
    "maml": 60,
    "mixed_precision": 30,
    "neural_ode": 25,
    "pendulum": 6,
    "pinn": 120,
    "vae_digits": 60,
}
# Modules that programs share; the digits have a command of their own, `cargo xtask demo`.
SHARED = {
    *("canvas", "chart", "command", "digits", "digits_data", "digits_model", "figure", "font"),
    "progress",
}
REPORT = re.compile(r"^(.+): (\S+) before, (\S+) after$", flags=re.MULTILINE)


def picture_size(path: Path) -> tuple[int, int, int]:
    """Width, height and the number of different colours of a PNG file, read from its parts."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND" + struct.pack(">I", zlib.crc32(b"IEND")))
    width, height = struct.unpack(">II", data[16:24])
    (length,) = struct.unpack(">I", data[33:37])
    rows = zlib.decompress(data[41 : 41 + length])
    assert len(rows) == height * (3 * width + 1)
    colors = {
        rows[at + x : at + x + 3]
        for at in range(1, len(rows), 3 * width + 1)
        for x in range(0, 3 * width, 3)
    }
    return width, height, len(colors)


def test_every_program_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {*STEPS, *SHARED}


def test_the_page_lists_every_program_with_its_time_and_a_picture() -> None:
    page = (FOLDER / "README.md").read_text()
    for name in STEPS:
        (row,) = re.findall(rf"^\| \[`{name}.py`\]\({name}.py\) \|(.*)$", page, re.MULTILINE)
        seconds = row.split("|")[2]
        assert 0 < int(seconds) < 120, name
        assert f"](pictures/{name}.png)" in page
        assert (FOLDER / "pictures" / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert {path.stem for path in (FOLDER / "pictures").iterdir()} == set(STEPS)


@pytest.mark.parametrize("name", sorted(STEPS))
def test_a_program_learns_and_draws(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--out", str(tmp_path)]
    command += ["--steps", str(STEPS[name])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    (what, before, after), *more = REPORT.findall(done.stdout)
    assert not more
    if re.search(r"loss|error|misfit", what):
        assert float(after) < float(before), done.stdout
    else:
        assert float(after) > float(before), done.stdout
    width, height, colors = picture_size(tmp_path / f"{name}.png")
    assert width > 600
    assert height > 300
    # (A picture without anything drawn has few colours.)
    assert colors > 100
