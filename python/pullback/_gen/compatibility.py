"""How much of PyTorch's public names is here: the page, and the counts of ``cargo xtask coverage``.

A name is here, or it is a placeholder (`_placeholder`), or it is missing. Run as ``python -m
pullback._gen.compatibility [--module torch.nn]`` it prints counts, and what is missing.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from types import ModuleType
from typing import Any

from .._known import Known, table
from .._placeholder import MARK, is_placeholder, refusal_of
from .._placeholder.table import RESULTS
from . import ecosystem, pytorch_tests

__all__ = ["HERE", "PLACEHOLDERS", "MISSING", "find", "has", "main", "names", "state", "text"]

HERE, PLACEHOLDERS, MISSING = "here", "placeholder", "missing"
_KINDS = ("work", "answer", "later")

_HEAD = """\
# PyTorch's public names

Written by `cargo xtask gen`. The names are those of PyTorch 2.15, each where its documentation has
it (`python/pullback/_pytorch_names.tsv`, with the number of times that 23 public projects use it).

- *here*: it does what PyTorch's does, unless its documentation says otherwise.
- *placeholder*: it can be imported; predicates return what is true, and what it cannot do is one
  error that says why and what to use instead. The section [Placeholders](#placeholders) has the
  reasons.
- *missing*: an `ImportError` or an `AttributeError` that names this page.

`cargo xtask coverage --names` prints the same for the working tree; `--module torch.nn` narrows it.

"""

_LIBRARIES = """\
Programs on libraries that were written for PyTorch, unmodified from the package index, run by
`python -m pullback`. Each checks what it finds; `cargo xtask test --ecosystem` runs them all.
"""

_TESTS = """\
PyTorch's own test files of version 2.15, run against both libraries in one environment: how many
of their tests pass with each (a few pass with pullback alone). Left out are those about CUDA,
distributed training, compilers, TorchScript, quantization, ONNX and extensions in C++. The counts
are recorded in `python/tests/recorded/pytorch_tests.tsv`.
"""


def _own(space: str) -> str:
    return "pullback" + space[len("torch") :]


@functools.cache
def find(space: str) -> Any:
    """The object here for a namespace of PyTorch, a module or a class; None if there is none."""
    name = _own(space)
    try:
        if importlib.util.find_spec(name) is not None:
            return importlib.import_module(name)
    except ImportError:
        pass
    outer, _, last = space.rpartition(".")
    holder = find(outer) if outer else None
    return None if holder is None else getattr(holder, last, None)


def has(space: str, name: str) -> bool:
    """Whether a namespace has a name, a submodule among them."""
    return _thing(space, name) is not None


_NOTHING = object()


def _thing(space: str, name: str) -> Any:
    """The object of a name; None if it is missing, and a placeholder for a value that is None."""
    holder = find(space)
    if holder is None:
        return None
    found = getattr(holder, name, _NOTHING)
    if found is _NOTHING:
        return find(f"{space}.{name}")
    return _NOTHING if found is None else found


def state(known: Known) -> str:
    """Whether a name is here, is a placeholder, or is missing."""
    found = _thing(known.space, known.name)
    if found is None:
        return MISSING
    if is_placeholder(found) or (isinstance(found, ModuleType) and _holds_placeholders_only(known)):
        return PLACEHOLDERS
    return HERE


def _holds_placeholders_only(known: Known) -> bool:
    """Whether a module has no names but placeholders."""
    inside = table().get(f"{known.space}.{known.name}", {}).values()
    return bool(inside) and all(state(name) == PLACEHOLDERS for name in inside)


def names(module: str = "torch") -> Iterator[Known]:
    """The names of a namespace and of those below it."""
    for space, known in sorted(table().items()):
        if space == module or space.startswith(module + "."):
            yield from known.values()


def _counts(chosen: Iterable[Known]) -> dict[str, Counter[str]]:
    """For each kind of wish, how many names are in which state."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in _KINDS}
    for known in chosen:
        counts[known.wanted][state(known)] += 1
    return counts


def _cells(counts: Counter[str]) -> str:
    return " | ".join(str(counts[which]) for which in (HERE, PLACEHOLDERS, MISSING))


def _by_module(chosen: Iterable[Known]) -> Iterator[tuple[str, list[Known]]]:
    for space, group in groupby(chosen, key=lambda known: known.space):
        yield space, list(group)


def _uses(known: Known) -> str:
    return known.name + (f" ({known.uses})" if known.uses else "")


def _missing_lines() -> Iterator[str]:
    for space, group in _by_module(names()):
        missing = [known for known in group if state(known) == MISSING]
        if missing:
            missing.sort(key=lambda known: (-known.uses, known.name))
            yield f"- `{space}`: {', '.join(map(_uses, missing))}\n"


def _missing_text() -> str:
    lines = "".join(_missing_lines())
    return f"Most used first, with the uses.\n\n{lines}" if lines else "Nothing.\n"


def _placeholder_lines() -> Iterator[str]:
    """A line for each reason in each namespace, with the names it is for."""
    for space, group in _by_module(names()):
        reasons: dict[str, list[str]] = {}
        for known in group:
            if state(known) == PLACEHOLDERS:
                reasons.setdefault(_reason(known), []).append(known.name)
        for reason, found in reasons.items():
            yield f"- `{space}`: {', '.join(sorted(found))}. {reason}.\n"


def _reason(known: Known) -> str:
    """The sentence that explains why a name is missing."""
    full = f"{known.space}.{known.name}"
    if full in RESULTS:
        value = RESULTS[full]
        return "Does nothing" if value is None else f"Always returns `{value!r}`"
    refusal = refusal_of(full)
    if refusal is None:
        # (The object is another namespace's.)
        sentence = vars(_thing(known.space, known.name))[MARK].partition(": ")[2]
        return str(sentence[0].upper() + sentence[1:])
    sentence = f"{refusal.reason}; {refusal.instead}"
    return sentence[0].upper() + sentence[1:]


def text() -> str:
    """The page."""
    kinds = [f"| {kind} | {_cells(counts)} |\n" for kind, counts in _counts(names()).items()]
    rows = []
    for space, group in _by_module(names()):
        total = sum(_counts(group).values(), Counter[str]())
        rows.append(f"| `{space}` | {_cells(total)} |\n")
    head = " | here | placeholder | missing |\n|---|---|---|---|\n"
    return (
        f"{_HEAD}| wanted{head}{''.join(kinds)}\n"
        "(*work*: to do what PyTorch's does; *answer*: a placeholder is enough; *later*: training "
        "on several processes.)\n\n"
        f"## By module\n\n| module{head}{''.join(rows)}\n"
        f"## Libraries\n\n{_LIBRARIES}\n{ecosystem.table()}\n"
        f"## PyTorch's tests\n\n{_TESTS}\n{pytorch_tests.table()}\n"
        f"## Missing\n\n{_missing_text()}\n"
        f"## Placeholders\n\n{''.join(_placeholder_lines())}"
    )


def _print(module: str) -> None:
    chosen = list(names(module))
    print(f"{'wanted':32}{'here':>8}{'placeholder':>13}{'missing':>9}")
    for kind, counts in _counts(chosen).items():
        print(f"{kind:32}{counts[HERE]:8}{counts[PLACEHOLDERS]:9}{counts[MISSING]:9}")
    print()
    for space, group in _by_module(chosen):
        total = sum(_counts(group).values(), Counter[str]())
        print(f"{space:32}{total[HERE]:8}{total[PLACEHOLDERS]:9}{total[MISSING]:9}")
    missing = sorted(
        (known for known in chosen if state(known) == MISSING),
        key=lambda known: (-known.uses, known.space, known.name),
    )
    print(f"\n{len(missing)} missing, most used first:")
    for known in missing:
        print(f"{known.uses:6}  {known.space}.{known.name} ({known.kind}, {known.wanted})")


def main(arguments: list[str]) -> int:
    """Prints counts and what is missing; the exit status."""
    parser = argparse.ArgumentParser(prog="cargo xtask coverage --names")
    parser.add_argument("--module", default="torch", help="a namespace, as torch.nn")
    module = parser.parse_args(arguments).module
    if not any(True for _ in names(module)):
        print(f"PyTorch has no public names in {module}", file=sys.stderr)
        return 1
    _print(module)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
