"""Placeholders: each can be reached, returns what it has to or says why it does nothing."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import subprocess
import sys
from typing import Any

import pytest

import pullback as torch
from pullback import _known, _placeholder
from pullback._gen import compatibility
from pullback._placeholder import Refusal, is_placeholder, refusal_of
from pullback._placeholder.table import NAMES, PRIVATE, RESULTS, SPACES, VALUES

KNOWN = list(compatibility.names())
PLACEHOLDERS = [
    known for known in KNOWN if compatibility.state(known) == compatibility.PLACEHOLDERS
]
FULL = {f"{known.space}.{known.name}" for known in KNOWN}


def reach(known: _known.Known) -> Any:
    holder = compatibility.find(known.space)
    return getattr(holder, known.name)


def test_every_reason_is_for_a_name_that_pytorch_has() -> None:
    spaces = {*_known.table(), *FULL}
    # (Namespaces that PyTorch has beside those in the table.)
    others = {"torch.nn.quantizable", "torch.utils.data.graph_settings"}
    # (And private ones, which are there for the names that libraries take from them.)
    private = {".".join(full.split(".")[:2]) for full in PRIVATE if "._" in full}
    assert set(SPACES) - spaces - others - private == set()
    assert set(NAMES) - FULL == set()
    assert {name for name in VALUES if name in FULL} != set()


def test_reasons_are_clauses_and_say_what_to_do() -> None:
    for full, refusal in {**SPACES, **NAMES}.items():
        assert refusal.reason, full
        assert refusal.instead, full
        assert not refusal.reason.endswith("."), full
        assert not refusal.instead.endswith("."), full


def test_names_for_which_placeholders_are_enough_are_all_there() -> None:
    absent = [
        f"{known.space}.{known.name}"
        for known in KNOWN
        if known.wanted in ("answer", "later")
        and compatibility.state(known) == compatibility.MISSING
        and compatibility.find(known.space) is not None
    ]
    assert absent == []


@pytest.mark.parametrize("kind", ["class", "function", "value", "module"])
def test_every_placeholder_is_reached_and_works_or_gives_its_reason(kind: str) -> None:
    chosen = [known for known in PLACEHOLDERS if known.kind == kind]
    assert chosen
    for known in chosen:
        full = f"{known.space}.{known.name}"
        thing = reach(known)
        if kind == "module":
            assert importlib.util.find_spec(_placeholder.own(full)) is not None
            assert importlib.import_module(_placeholder.own(full)) is thing
            continue
        text = vars(thing)[_placeholder.MARK]
        if full in RESULTS:
            assert thing(1, key=2) == RESULTS[full], full
        elif kind == "class" and issubclass(thing, Exception):
            with pytest.raises(thing):
                raise thing("text")
        elif callable(thing):
            # (Methods have the parameters of PyTorch's, all others take anything.)
            is_method = known.space == "torch.Tensor"
            given = [1] * thing.__code__.co_argcount if is_method else [1]
            named = {} if is_method else {"key": 2}
            with pytest.raises((NotImplementedError, RuntimeError, AssertionError)) as caught:
                thing(*given, **named)
            assert str(caught.value) == text
            # (A name that stands in two namespaces has one object, with one of the two names.)
            assert text.split()[0].rpartition(".")[2] == known.name
            assert " is not available: " in text


def test_a_placeholder_is_made_once_and_known_as_one() -> None:
    assert torch.ao.quantization.QConfig is torch.ao.quantization.QConfig
    assert is_placeholder(torch.ao.quantization.QConfig)
    assert not is_placeholder(torch.nn.Linear)
    assert not is_placeholder(3)


def test_placeholder_classes_have_no_objects_and_can_be_derived_from() -> None:
    observer = torch.ao.quantization.ObserverBase

    class Mine(observer):  # type: ignore[misc, valid-type]
        """A class of a program."""

    assert not isinstance(torch.ones(1), observer)
    assert not is_placeholder(Mine)
    with pytest.raises(NotImplementedError, match="ObserverBase is not available: there are no"):
        Mine()
    with pytest.raises(AttributeError, match=r"'Mine' has no attribute 'with_args': .*quantized"):
        Mine.with_args  # noqa: B018 (asking is the point)
    assert observer[int] is observer
    assert (torch.SymInt | None) is not None


def test_submodules_have_the_names_of_the_module_above_where_none_are_known() -> None:
    module = importlib.import_module("pullback.ao.quantization.observer")
    assert module.MinMaxObserver is torch.ao.quantization.MinMaxObserver
    with pytest.raises(AttributeError, match=r"no attribute 'NoSuchObserver': there are no quant"):
        module.NoSuchObserver  # noqa: B018 (asking is the point)
    with pytest.raises(ImportError):
        importlib.import_module("pullback.ao.no_such_module")


def test_placeholder_values_give_their_reason_when_they_are_used() -> None:
    assert repr(torch.qint8) == "torch.qint8"
    with pytest.raises(AttributeError, match=r"qint8 has no attribute 'itemsize'.*quantized"):
        torch.qint8.itemsize  # noqa: B018 (asking is the point)
    assert repr(pickle.loads(pickle.dumps(torch.qint8))) == "torch.qint8"


def test_modules_are_imported_by_pytorchs_name_too() -> None:
    program = (
        "import pullback; pullback.as_torch()\n"
        "import torch\n"
        "import torch.distributed.fsdp.wrap\n"
        "from torch.nn.quantized.dynamic import Linear\n"
        "from torch.distributed.tensor import DTensor, parallel\n"
        "print(isinstance(torch.ones(1), DTensor), torch.xpu.is_available())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "False False\n"), done.stderr


def test_questions_about_devices_that_are_not_there() -> None:
    for module in (torch.xpu, torch.mtia):
        assert not module.is_available()
        assert module.device_count() == 0
        assert module.memory_allocated() == 0
        assert module.get_rng_state_all() == []
        with pytest.raises(AssertionError, match="Torch not compiled with"):
            module.synchronize()
    assert torch.xpu.default_generators == ()
    assert not torch.mps.is_available()
    with pytest.raises(RuntimeError, match="without MPS backend"):
        torch.mps.empty_cache()
    found = torch.xpu.get_arch_list()
    found.append("mine")
    assert torch.xpu.get_arch_list() == []


def test_questions_about_export() -> None:
    assert not torch.onnx.is_in_onnx_export()
    assert not torch.compiler.is_exporting()
    with pytest.raises(NotImplementedError, match="no graph is captured to be exported"):
        torch.onnx.export(torch.nn.Linear(1, 1), torch.ones(1, 1), "x.onnx")
    with pytest.raises(NotImplementedError, match=r"torch\.export\.export is not available"):
        torch.export.export(torch.nn.Linear(1, 1), (torch.ones(1, 1),))


def test_a_reason_is_a_message() -> None:
    refusal = Refusal("it is not here", "use that")
    assert refusal.text("torch.x") == "torch.x is not available: it is not here; use that"
    assert refusal_of("torch.nn.Linear") is None
    with pytest.raises(LookupError, match="no reason is given"):
        _placeholder.made("torch.nn.Linear", "class")


def test_the_counts_by_module(capsys: pytest.CaptureFixture[str]) -> None:
    assert compatibility.main(["--module", "torch.futures"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["work", "3", "0", "0"]
    assert "0 missing, most used first:" in lines
    assert compatibility.main(["--module", "torch.no_such"]) == 1
    assert "no public names in torch.no_such" in capsys.readouterr().err


def test_the_table_of_names() -> None:
    table = _known.table()
    assert sum(map(len, table.values())) == 4589
    assert table["torch.nn"]["Linear"].kind == "class"
    assert table["torch"]["save"].uses == 104
    wanted = {known.wanted for known in KNOWN}
    assert wanted == {"work", "answer", "later"}


def test_importing_the_package_reads_no_table() -> None:
    program = (
        "import sys, pullback\n"
        "print([n for n in ('pullback._known', 'pullback._placeholder.table') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n"
