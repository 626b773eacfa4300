"""Folders of repositories: where they are kept, and how they come from GitHub."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile

from ._download import download_url_to_file

_chosen: list[str] = []
_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")


def get_dir() -> str:
    """The folder for downloads.

    It is what :func:`set_dir` said, or ``$TORCH_HOME/hub``, or ``torch/hub`` in the user's cache.
    """
    return _chosen[0] if _chosen else os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    """The folder of all that is kept: ``$TORCH_HOME``, or ``torch`` in the user's cache."""
    cache = os.getenv("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder of downloads."""
    _chosen[:] = [os.path.expanduser(os.fspath(d))]


def _parts(github: str) -> tuple[str, str, str]:
    """Owner, name and branch."""
    repository, _, branch = github.partition(":")
    owner, slash, name = repository.partition("/")
    if not slash or not owner or not name or "/" in name:
        raise ValueError(f"expected 'owner/name' or 'owner/name:branch', but got {github!r}")
    return owner, name, branch or "HEAD"


def folder_of(github: str, force_reload: bool, trust: bool | str | None, verbose: bool) -> str:
    """The folder of a repository, downloaded if it is not there.

    Raises:
        ValueError: for what is no repository.
        RuntimeError: if it cannot be downloaded.
        Exception: if its code is not to be run.
    """
    owner, name, branch = _parts(github)
    os.makedirs(get_dir(), exist_ok=True)
    normal = "_".join([owner, name, branch.replace("/", "_")])
    folder = os.path.join(get_dir(), normal)
    _check_trust(f"{owner}_{name}", owner, trust)
    if os.path.exists(folder) and not force_reload:
        if verbose:
            print(f"Using cache found in {folder}", file=sys.stderr)
        return folder
    packed = os.path.join(get_dir(), f"{normal}.zip")
    url = f"https://github.com/{owner}/{name}/zipball/{branch}"
    if verbose:
        print(f'Downloading: "{url}" to {packed}', file=sys.stderr)
    download_url_to_file(url, packed, progress=False)
    _unpack(packed, folder)
    return folder


def _unpack(packed: str, folder: str) -> None:
    """Makes the only folder of an archive the given one."""
    with zipfile.ZipFile(packed) as archive:
        top = archive.infolist()[0].filename.split("/", maxsplit=1)[0]
        archive.extractall(get_dir())
    os.remove(packed)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.move(os.path.join(get_dir(), top), folder)


def _check_trust(name: str, owner: str, trust: bool | str | None) -> None:
    """Asks whether a repository's code may be run, and keeps the answer; False asks every time."""
    path = os.path.join(get_dir(), "trusted_list")
    known = set()
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = set(file.read().split())
    is_known = name in known or owner in _OWNERS
    if is_known and trust is not False:
        return
    if trust not in (True, None, "check", False):
        raise ValueError(f"trust_repo must be True, False, None or 'check', but got {trust!r}")
    if trust is not True:
        question = f"The code of {name} will be run. Do you trust it and want it listed? (y/N) "
        if input(question).strip().lower() not in ("y", "yes"):
            raise Exception("Untrusted repository.")
    if is_known:
        return
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{name}\n")
