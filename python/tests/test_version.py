"""Versions: PyTorch's, which programs ask for, and the package's own."""

from __future__ import annotations

import itertools
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pullback as torch
from pullback.torch_version import TorchVersion

MANIFEST = Path(__file__).parents[2] / "Cargo.toml"


def test_the_version_is_the_one_of_the_manifest() -> None:
    (own,) = re.findall(r'^version = "(.*)"$', MANIFEST.read_text(), flags=re.MULTILINE)
    assert torch.version.pullback == own
    assert torch.__version__ == f"2.15.0+pullback.{own}"
    assert torch.version.__version__ == torch.__version__
    assert type(torch.__version__) is TorchVersion


def test_what_was_built_in() -> None:
    version = torch.version
    assert (version.cuda, version.hip, version.rocm, version.xpu) == (None, None, None, None)
    assert isinstance(version.git_version, str)
    assert isinstance(version.debug, bool)


def test_programs_that_ask_for_a_version_take_the_new_path() -> None:
    assert torch.__version__ >= "2.0"
    assert torch.__version__ >= (2, 9)
    assert torch.__version__ > "2.9"
    assert torch.__version__ < "3"
    assert torch.__version__.split("+")[0] == "2.15.0"
    assert tuple(int(part) for part in torch.__version__.split(".")[:2]) == (2, 15)


# In order; those of a line are equal (PEP 440).
ORDER = [
    ["1.9.1"],
    ["2.9"],
    ["2.15.0.dev20250101"],
    ["2.15.0a0", "2.15a"],
    ["2.15.0a0+git1"],
    ["2.15.0a1.dev3"],
    ["2.15.0a1"],
    ["2.15.0b1", "2.15-beta.1"],
    ["2.15.0rc1", "2.15.0c1", "2.15.0-preview_1"],
    ["2.15.0", "2.15", "v2.15", " 2.15 "],
    ["2.15.0+abc", "2.15.0+ABC"],
    ["2.15.0+abc.1", "2.15.0+abc-1", "2.15.0+abc_1"],
    ["2.15.0+cu132"],
    ["2.15.0+pullback.0.1.0"],
    ["2.15.0+1"],
    ["2.15.0.post1.dev2"],
    ["2.15.0.post1", "2.15.0-1", "2.15.rev1"],
    ["2.15.1"],
    ["10.0"],
    ["1!0.1"],
]


def test_versions_are_compared_by_their_numbers() -> None:
    places = [(place, text) for place, texts in enumerate(ORDER) for text in texts]
    for (i, a), (j, b) in itertools.product(places, places):
        for other in (b, TorchVersion(b)):
            version = TorchVersion(a)
            asked = (version < other, version <= other, version == other, version != other)
            assert asked == (i < j, i <= j, i == j, i != j), (a, b)
            assert (version > other, version >= other) == (i > j, i >= j), (a, b)


def test_versions_are_compared_with_tuples() -> None:
    version = TorchVersion("2.15.0")
    assert version == (2, 15)
    assert version < (2, 15, 1)
    assert version >= ["2", "9"]
    assert version > (2, 15, "a0")


def test_what_is_no_version_is_compared_as_text() -> None:
    assert TorchVersion("nonsense") > "2.15"
    assert TorchVersion("nonsense") == "nonsense"
    assert TorchVersion("2.15") != "nonsense"
    assert TorchVersion("2.15") != 2
    assert TorchVersion("2.15") != None  # noqa: E711 (comparing is the point)
    with pytest.raises(TypeError):
        TorchVersion("2.15") < 2  # noqa: B015 (comparing is the point)
    with pytest.raises(TypeError):
        TorchVersion("nonsense") < (1, 2)  # noqa: B015 (comparing is the point)


def test_a_version_is_text() -> None:
    version = TorchVersion("2.15.0")
    assert hash(version) == hash("2.15.0")
    assert f"{version}" == "2.15.0"
    assert pickle.loads(pickle.dumps(version)) == version
    assert {version: 1}["2.15.0"] == 1


def test_nothing_but_the_standard_library_is_needed() -> None:
    program = (
        "import sys, pullback; pullback.__version__ > '1'; "
        "print('packaging' in sys.modules, 'numpy' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
