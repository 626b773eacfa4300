"""Downloads with a bar of progress and a check of the sum."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from typing import Any

__all__ = ["download_url_to_file", "load_state_dict_from_url"]

_CHUNK = 128 * 1024
# A file's name may end with the beginning of its sum: `resnet18-bfd8deac.pth`.
_SUM = re.compile(r"-([a-f0-9]*)\.")


class _Bar:
    """Says on standard error how much has come, where that is a terminal or a file.

    Args:
        total: how many bytes there are; None if that is not known.
        is_shown: whether anything is said.
    """

    def __init__(self, total: int | None, is_shown: bool) -> None:
        self.total, self.is_shown, self.done, self._percent = total, is_shown, 0, -1

    def add(self, count: int) -> None:
        """Counts bytes."""
        self.done += count
        percent = -1 if not self.total else 100 * self.done // self.total
        if self.is_shown and percent != self._percent:
            self._percent = percent
            print(f"\r{percent:3d}% of {self.total} bytes", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Ends the line."""
        if self.is_shown:
            print(f"\r{self.done} bytes" + " " * 24, file=sys.stderr)


class DownloadError(urllib.error.URLError, RuntimeError):
    """Something could not be downloaded."""

    def __str__(self) -> str:
        return str(self.reason)


def open_url(url: str) -> Any:
    """The response of a server.

    Raises:
        DownloadError: if there is none, with the address.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "torch.hub"})
    try:
        return urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        raise DownloadError(
            f"cannot download {url}: HTTP error {error.code} {error.reason}"
        ) from error
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise DownloadError(f"cannot download {url}: no network? ({reason})") from error


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Writes what an address gives into a file, which is there whole or not at all.

    Args:
        url: the address; ``file://`` too.
        dst: the file.
        hash_prefix: how its SHA-256 must begin.
        progress: whether a bar is shown.

    Raises:
        RuntimeError: if it cannot be downloaded, or has another sum.
    """
    target = os.path.expanduser(dst)
    with open_url(url) as response:
        length = response.headers.get("Content-Length")
        bar = _Bar(None if length is None else int(length), progress)
        folder = os.path.dirname(target) or "."
        handle, partial = tempfile.mkstemp(suffix=".partial", dir=folder)
        try:
            sum256 = hashlib.sha256()
            with os.fdopen(handle, "wb") as file:
                while chunk := response.read(_CHUNK):
                    file.write(chunk)
                    sum256.update(chunk)
                    bar.add(len(chunk))
            bar.close()
            digest = sum256.hexdigest()
            if hash_prefix is not None and not digest.startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
            shutil.move(partial, target)
        finally:
            if os.path.exists(partial):
                os.remove(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """What ``torch.load`` reads from an address, which is downloaded once.

    Args:
        url: the address.
        model_dir: the folder for it; ``checkpoints`` in that of the hub unless given.
        map_location: see ``torch.load``.
        progress: whether a bar is shown.
        check_hash: whether the file's name ends with the beginning of its SHA-256.
        file_name: the file's name; the address's end unless given.
        weights_only: see ``torch.load``.

    Raises:
        RuntimeError: if it cannot be downloaded, or has another sum.
    """
    from ._repository import get_dir

    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urllib.parse.urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        print(f'Downloading: "{url}" to {path}', file=sys.stderr)
        found = _SUM.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    load = getattr(sys.modules[__name__.partition(".")[0]], "load")  # noqa: B009
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            # (Not what `torch.save` writes, but a single file that was packed.)
            if len(members) == 1:
                path = archive.extract(members[0], folder)
    result: dict[str, Any] = load(path, map_location=map_location, weights_only=weights_only)
    return result
