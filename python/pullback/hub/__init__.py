"""Models from repositories: a folder with a file ``hubconf.py``, whose functions make models.

A folder may be on this machine (``source="local"``) or on GitHub, from where it is downloaded once
into :func:`get_dir`. Downloads show their progress and check their sums; without network they are
one error that names the address.
"""

from __future__ import annotations

import builtins
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from urllib.parse import urlparse as urlparse

from .. import _absent
from ._download import _SUM as HASH_REGEX  # noqa: F401 (programs take it from here)
from ._download import download_url_to_file, load_state_dict_from_url
from ._progress import tqdm as tqdm
from ._repository import _get_torch_home as _get_torch_home
from ._repository import folder_of, get_dir, set_dir

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

_FILE = "hubconf.py"
_DEPENDENCIES = "dependencies"


@contextmanager
def _importing_from(folder: str) -> Iterator[None]:
    """A context in which the folder's modules can be imported."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _module_of(folder: str) -> ModuleType:
    """The module ``hubconf.py`` of a folder, whose dependencies are there."""
    path = os.path.join(folder, _FILE)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {_FILE} in {folder}")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _importing_from(folder):
        spec.loader.exec_module(module)
    missing = [
        name
        for name in getattr(module, _DEPENDENCIES, ())
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, name: str) -> Any:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, name, None)
    if function is None or not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def _check_source(source: str) -> None:
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = None,
    verbose: bool = True,
) -> builtins.list[str]:
    """The names of the functions that a repository on GitHub has.

    Args:
        github: ``"owner/name"``, or ``"owner/name:branch"``.
        force_reload: whether to download it again.
        skip_validation: taken as True: whose branch it is is not asked.
        trust_repo: whether its code may be run; None asks the first time, ``"check"`` too.
        verbose: whether to say what is read from where.

    Raises:
        RuntimeError: if it cannot be downloaded.
    """
    folder = folder_of(github, force_reload, trust_repo, verbose)
    module = _module_of(folder)
    return [n for n, f in vars(module).items() if callable(f) and not n.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = None,
) -> str | None:
    """The documentation of a function of a repository on GitHub.

    Args:
        github: ``"owner/name"``, or ``"owner/name:branch"``.
        model: the function's name.
        force_reload: whether to download it again.
        skip_validation: taken as True: whose branch it is is not asked.
        trust_repo: whether its code may be run; None asks the first time, ``"check"`` too.

    Raises:
        RuntimeError: if it cannot be downloaded, or has no such function.
    """
    folder = folder_of(github, force_reload, trust_repo, True)
    doc: str | None = inspect.getdoc(_entry(_module_of(folder), model))
    return doc


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str | None = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What a function of a repository makes: ``model(*args, **kwargs)``.

    Args:
        repo_or_dir: ``"owner/name"`` or ``"owner/name:branch"``, or a folder for ``"local"``.
        model: the function's name.
        args: its arguments.
        source: ``"github"`` or ``"local"``.
        trust_repo: whether code from GitHub may be run; None asks the first time.
        force_reload: whether to download it again.
        verbose: whether to say what is read from where.
        skip_validation: taken as True: whose branch it is is not asked.
        kwargs: its arguments by name.

    Raises:
        ValueError: for another source.
        FileNotFoundError: for a folder without the file ``hubconf.py``.
        RuntimeError: if it cannot be downloaded, has no such function, or needs what is missing.
    """
    _check_source(source)
    if source == "github":
        folder = folder_of(repo_or_dir, force_reload, trust_repo, verbose)
    else:
        folder = os.fspath(repo_or_dir)
    # (Functions often import the folder's modules only when they are called.)
    with _importing_from(folder):
        return _entry(_module_of(folder), model)(*args, **kwargs)


_absent.announce(globals())
