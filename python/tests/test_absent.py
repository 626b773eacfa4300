"""Names that PyTorch has and this package has not: the error says so, whoever asks."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import pullback
from pullback import _known
from pullback._gen import compatibility as page

PAGE = "docs/compatibility.md"


def run(program: str, *options: str) -> str:
    command = [sys.executable, *options, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_list_of_names_is_not_read_before_something_is_missing() -> None:
    program = "import sys, pullback; print('pullback._known' in sys.modules)"
    assert run(program) == "False"


MISSING = [
    f"{space}.{name}"
    for space, known in sorted(_known.table().items())
    for name in sorted(known)
    if space != "torch.Tensor" and not page.has(space, name)
]


# Namespaces of which nothing is here.
ABSENT = [space for space in sorted(_known.table()) if page.find(space) is None]
# A function that is said to be PyTorch's: of those that are, the main namespace may lack none.
LACKED = "only_pytorch_has_this"
AS_IF_LACKED = f"""
from pullback import _known
_known.table()["torch"][{LACKED!r}] = _known.Known("torch", {LACKED!r}, "function", "work", 1)
"""


def test_what_is_missing_is_known_by_the_table_alone() -> None:
    assert not page.has("torch", "no_such_name")
    assert page.has("torch", "add")
    assert page.has("torch.nn", "Linear")
    assert page.find("torch.no_such_module") is None


def own(name: str) -> str:
    return "pullback" + name[len("torch") :]


def is_told(text: str, name: str) -> bool:
    return f"PyTorch has {name}" in text and PAGE in text


def test_an_import_of_what_is_missing_says_so() -> None:
    silent = []
    for name in MISSING:
        space, _, last = name.rpartition(".")
        if page.find(space) is None:
            continue
        module = sys.modules.get(own(space))
        with pytest.raises(ImportError) as caught:
            exec(f"from {own(space)} import {last}", {})
        # (Of a module that is no package, the interpreter itself says that it lacks the name.)
        if hasattr(module, "__path__") and not is_told(str(caught.value), name):
            silent.append(name)
    assert silent == []


def test_a_module_that_is_missing_says_so() -> None:
    for space in ABSENT:
        with pytest.raises(ImportError, match=r"PyTorch has torch\..*docs/compatibility\.md"):
            importlib.import_module(own(space))


ANNOUNCE = sorted(
    name
    for name, module in list(sys.modules.items())
    if name.startswith("pullback.") and "__getattr__" in getattr(module, "__dict__", {})
)


def test_an_attribute_that_is_missing_says_so() -> None:
    assert {"pullback.nn", "pullback.optim", "pullback.backends.cuda"} <= set(ANNOUNCE)
    for name in MISSING:
        space, _, last = name.rpartition(".")
        if own(space) not in ANNOUNCE:
            continue
        module = importlib.import_module(own(space))
        assert not hasattr(module, last)
        with pytest.raises(AttributeError) as caught:
            getattr(module, last)
        assert is_told(str(caught.value), name)
        assert (caught.value.name, caught.value.obj) == (last, module)


def test_names_that_nobody_has_are_ordinary_errors() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'no_such_name'$"):
        pullback.nn.no_such_name  # noqa: B018 (asking is the point)
    with pytest.raises(ImportError, match="cannot import name 'no_such_name'"):
        from pullback import no_such_name  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        importlib.import_module("pullback.no_such_name")


@pytest.mark.parametrize(
    "name", [*(own(s) for s in ABSENT if s.count(".") == 1), "pullback.nn.no_such_name"]
)
def test_who_asks_whether_there_is_a_module_gets_an_answer(name: str) -> None:
    assert importlib.util.find_spec(name) is None


def test_who_asks_under_pytorchs_name_gets_an_answer() -> None:
    program = (
        "import importlib.util, pullback; pullback.as_torch()\n"
        "names = ('torch.onnx', 'torch.ao.quantization', 'torch.nn', 'torch.x')\n"
        "print([importlib.util.find_spec(n) is None for n in names])"
    )
    assert run(program) == "[False, False, False, True]"


def test_imports_under_pytorchs_name_say_what_is_missing() -> None:
    program = (
        f"import pullback; pullback.as_torch()\n{AS_IF_LACKED}"
        "try:\n"
        f"    from torch import {LACKED}\n"
        "except ImportError as error:\n"
        f"    print({PAGE!r} in str(error))\n"
    )
    assert run(program) == "True"


def test_a_program_that_ends_with_a_missing_function_is_told(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(f"import torch\n{AS_IF_LACKED}torch.{LACKED}\n")
    command = [sys.executable, "-m", "pullback", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    told = f"module 'torch' has no attribute {LACKED!r}: PyTorch has torch.{LACKED}"
    assert told in done.stderr


def test_what_a_module_lacks_without_announcing_it_is_told_too() -> None:
    silent = []
    for name in MISSING:
        space, _, last = name.rpartition(".")
        module = sys.modules.get(own(space))
        if module is None or page.find(space) is not module or own(space) in ANNOUNCE:
            continue
        assert not hasattr(module, last)
        with pytest.raises(AttributeError) as caught:
            getattr(module, last)
        assert type(caught.value) is AttributeError
        assert (caught.value.name, caught.value.obj) == (last, module)
        if not is_told(str(caught.value), name):
            silent.append(name)
    assert silent == []


def test_what_other_modules_lack_is_told_as_ever() -> None:
    with pytest.raises(AttributeError) as caught:
        os.no_such_name  # noqa: B018 (asking is the point)
    assert str(caught.value) == "module 'os' has no attribute 'no_such_name'"
    with pytest.raises(AttributeError, match=r"^module 'pullback' has no attribute 'no_such_n'$"):
        pullback.no_such_n  # noqa: B018
    made = type(os)("torch")
    with pytest.raises(AttributeError, match=r"^module 'torch' has no attribute 'nested'$"):
        made.nested  # noqa: B018


def test_tensors_lack_no_name_of_pytorchs() -> None:
    names = _known.table()["torch.Tensor"]
    assert len(names) > 500
    assert {name for name in names if not page.has("torch.Tensor", name)} == set()
    x = pullback.zeros(2)
    with pytest.raises(AttributeError, match=r"^'Tensor' object has no attribute 'no_such_name'$"):
        x.no_such_name  # noqa: B018


def test_subclasses_and_tensors_may_have_further_attributes() -> None:
    class Own(pullback.Tensor):
        def index(self) -> int:
            return 7

        def __getattr__(self, name: str) -> str:
            return name

    x = pullback.zeros(2).as_subclass(Own)
    assert (x.index(), x.no_such_name) == (7, "no_such_name")
    assert "index" in dir(Own)
    y = pullback.zeros(2)
    y.index = 5  # type: ignore[attr-defined]
    assert y.index == 5  # type: ignore[attr-defined]


def test_the_main_namespace_keeps_the_interpreters_short_way() -> None:
    for module in (pullback, pullback.nn.functional, pullback.linalg, pullback.special):
        assert "__getattr__" not in vars(module)
        assert type(module) is type(os)


MODULES = [
    module.name
    for module in pkgutil.walk_packages(pullback.__path__, "pullback.")
    if "._gen" not in module.name
    and not module.name.endswith(("__main__", "._C"))
    # (That one needs a package of another's.)
    and (".tensorboard" not in module.name or importlib.util.find_spec("tensorboard"))
]


# Imports the modules that are named and all names of each; prints what went wrong. (That each can
# be the first to be imported, under the package's own name, is tested in `test_lazy.py`.)
DRIVER = """
import importlib, sys, warnings
import pullback
pullback.as_torch()
warnings.simplefilter("error")
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        exec(f"from {name} import *", {})
    except BaseException as error:
        print(name, repr(error), flush=True)
"""


def test_every_module_is_imported_under_pytorchs_name_without_warning() -> None:
    chosen = ["torch" + name[len("pullback") :] for name in MODULES]
    command = [sys.executable, "-c", DRIVER, *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
