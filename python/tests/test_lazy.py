"""Subpackages are loaded at first use, whatever the first use is."""

import builtins
import importlib
import importlib.util
import os
import pkgutil
import subprocess
import sys
import threading

import pytest

import pullback as torch
from pullback import _lazy


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


IS_LOADED = "'pullback.nn.modules' in sys.modules"


def test_nothing_is_loaded_by_importing_the_package():
    program = f"import sys, pullback; print({IS_LOADED}, 'pullback.optim.sgd' in sys.modules)"
    assert run(program) == "False False"


def test_tools_that_ask_every_module_load_nothing():
    program = (
        "import sys, inspect, pullback\n"
        "for module in list(sys.modules.values()):\n"
        "    getattr(module, '__file__', None), getattr(module, '__warningregistry__', None)\n"
        f"print({IS_LOADED})"
    )
    assert run(program) == "False"


@pytest.mark.parametrize(
    "use",
    [
        "pullback.nn.Linear",
        "from pullback.nn import Linear",
        "from pullback import nn; nn.Linear",
        "import pullback.nn.functional as F; F.relu",
        "from pullback.nn.modules.linear import Linear",
        "dir(pullback.nn)",
        "vars(pullback.nn)['Linear']",
        "pullback.nn.mine = 1; pullback.nn.Linear",
        "pullback.as_torch(); import torch.nn; torch.nn.Linear",
        "pullback.as_torch(); import torch.nn.functional as F; F.relu",
        "pullback.as_torch(); from torch import nn; nn.Linear",
    ],
)
def test_any_use_loads(use):
    assert run(f"import sys, pullback; {use}; print({IS_LOADED})") == "True"


def test_threads_that_come_while_it_loads_wait():
    program = (
        "import threading, pullback\n"
        "found = []\n"
        "def use(): found.append(pullback.nn.Linear)\n"
        "threads = [threading.Thread(target=use) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(len(set(found)), len(found))"
    )
    assert run(program) == "1 8"


def test_names_of_the_package_are_reached_the_short_way():
    assert "__getattr__" not in vars(torch)
    assert torch.nn.Linear
    assert type(torch.nn) is type(sys)
    with pytest.raises(AttributeError, match="module 'pullback' has no attribute 'nonsense'"):
        torch.nonsense  # noqa: B018


def test_a_failed_load_is_tried_again(tmp_path, monkeypatch):
    package = tmp_path / "lazy_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text(
        "import threading\nif not flags: raise ValueError('not yet')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    flags: list[int] = []
    monkeypatch.setattr(builtins, "flags", flags, raising=False)
    module = importlib.import_module("lazy_package")
    _lazy.submodules(vars(module), "part")
    with pytest.raises(ValueError, match="not yet"):
        module.part.threading  # noqa: B018
    flags.append(1)
    assert module.part.threading is threading
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'lazy_package\.absent'"):
        _lazy.submodules(vars(module), "absent")
    for name in ("lazy_package", "lazy_package.part"):
        sys.modules.pop(name)


def test_a_function_named_as_its_module_stays_a_function():
    program = (
        "import pullback; pullback.as_torch(); import torch\n"
        "from torch.autograd.gradcheck import GradcheckError\n"
        "print(torch.autograd.gradcheck.__class__.__name__)"
    )
    assert run(program) == "function"


@pytest.mark.parametrize(
    ("first", "same"),
    [
        ("from pullback.optim.sgd import SGD as found", "pullback.optim.SGD"),
        ("from pullback.nn.modules.linear import Linear as found", "pullback.nn.Linear"),
        ("from pullback.nn.parameter import Parameter as found", "pullback.nn.Parameter"),
        ("from pullback.utils.data.dataset import Dataset as found", "pullback.utils.data.Dataset"),
        ("import pullback.nn.functional as found", "pullback.nn.functional"),
        (
            "import pullback; pullback.as_torch(); from torch.optim.sgd import SGD as found",
            "pullback.optim.SGD",
        ),
    ],
)
def test_a_module_is_made_once_whatever_is_imported_first(first: str, same: str) -> None:
    assert run(f"{first}; import pullback; print(found is {same})") == "True"


# Imports each module in a process of its own, with nothing of the package loaded before but what
# importing it loads. Prints those that warn, whose names cannot all be imported, or of which there
# are two: then the package of a public module shows other classes than the module.
FIRST = """
import importlib, os, sys, warnings
import pullback
warnings.simplefilter("error")

def wrong(name):
    made = importlib.import_module(name)
    exec(f"from {name} import *", {})
    if made.__spec__.name != name:
        yield made.__spec__.name
    if "._" in name or name.count(".") == 1:
        return
    shown = [c for c in vars(made).values() if isinstance(c, type) and c.__module__ == name]
    package = sys.modules[name.rpartition(".")[0]]
    yield from [c for c in shown if getattr(package, c.__name__, c) is not c]

for name in sys.argv[1:]:
    if os.fork() == 0:
        try:
            found = list(wrong(name))
            if found:
                print(name, found, flush=True)
        except BaseException as error:
            print(name, repr(error), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each module is imported in a forked process")
def test_every_module_can_be_the_first_to_be_imported() -> None:
    names = [
        module.name
        for module in pkgutil.walk_packages(torch.__path__, "pullback.")
        if "._gen" not in module.name
        and not module.name.endswith(("__main__", "._C"))
        # (That one needs a package of another's.)
        and (".tensorboard" not in module.name or importlib.util.find_spec("tensorboard"))
    ]
    command = [sys.executable, "-c", FIRST, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
