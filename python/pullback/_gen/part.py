"""Parts of pages that are written by hand, which the generator fills in: tables and counts.

A part stands between two comments that no reader of the page sees,
``<!-- begin NAME: written by `cargo xtask gen` -->`` and ``<!-- end NAME -->``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from . import chart
from .compatibility import HERE, MISSING, PLACEHOLDERS, names, state

__all__ = ["areas", "filled", "missing", "recorded"]

# The number of missing names that a page shows; `docs/compatibility.md` has all.
_MOST_USED = 40


def filled(page: Path, parts: dict[str, str]) -> str:
    """The page with the text of each part; `ValueError` if a part has no place in it."""
    text = page.read_text()
    for name, part in parts.items():
        begin, end = (
            f"<!-- begin {name}: written by `cargo xtask gen` -->\n",
            f"<!-- end {name} -->",
        )
        head, found, rest = text.partition(begin)
        _, closed, tail = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{page.name} has no place for the part `{name}`: {begin}... {end}")
        text = f"{head}{begin}\n{part}\n{end}{tail}"
    return text


def _area(space: str) -> str:
    """The part of PyTorch that holds a namespace, such as `torch.nn` for `torch.nn.init`."""
    return ".".join(space.split(".")[:2])


def areas() -> str:
    """The counts of PyTorch's names here by part of it, those with most missing first."""
    counts: dict[str, Counter[str]] = {}
    for known in names():
        counts.setdefault(_area(known.space), Counter())[state(known)] += 1
    rows = ["| part of PyTorch | here | answers only | missing |", "|---|---|---|---|"]
    order = sorted(
        counts, key=lambda area: (-counts[area][MISSING], -counts[area][PLACEHOLDERS], area)
    )
    whole = [area for area in order if counts[area].total() == counts[area][HERE]]
    rest: Counter[str] = sum((counts[area] for area in whole), Counter())
    rows += [_row(f"`{area}`", counts[area]) for area in order if area not in whole]
    rows.append(_row("all others", rest))
    rows.append(_row("together", sum(counts.values(), Counter())))
    listed = ", ".join(f"`{area}`" for area in whole)
    return "\n".join(rows) + f"\n\nAll names are here of {listed}.\n"


def _row(title: str, counts: Counter[str]) -> str:
    return f"| {title} | {counts[HERE]} | {counts[PLACEHOLDERS]} | {counts[MISSING]} |"


def _most_used() -> Iterator[str]:
    """The missing names that public projects use, by namespace."""
    used = [known for known in names() if known.uses and state(known) == MISSING]
    used.sort(key=lambda known: (-known.uses, known.space, known.name))
    chosen = sorted(used[:_MOST_USED], key=lambda known: (known.space, -known.uses, known.name))
    for space, group in groupby(chosen, key=lambda known: known.space):
        found = ", ".join(f"`{known.name}` ({known.uses})" for known in group)
        yield f"| `{space}` | {found} |"
    yield ""
    yield f"{len(used)} missing names are used by these projects at all."


def missing() -> str:
    """The missing names that programs would meet first."""
    head = ["| where | names, with their uses in 23 public projects |", "|---|---|"]
    return "\n".join([*head, *_most_used()]) + "\n"


def recorded(groups: list[chart.Group]) -> str:
    """A row for each group of a record: its mean, its best and its worst case."""
    rows = ["| group | cases | geometric mean | best | worst |", "|---|---|---|---|---|"]
    for group in groups:
        best = min(group.cases, key=lambda case: case.ratio)
        worst = max(group.cases, key=lambda case: case.ratio)
        rows.append(
            f"| {group.letter}: {chart.TITLES[group.letter]} | {len(group.cases)} "
            f"| {group.mean:.2f} | `{best.name}` {best.ratio:.2f} "
            f"| `{worst.name}` {worst.ratio:.2f} |"
        )
    slower = re.sub(r", (?=[^,]*$)", " and ", ", ".join(_slower(groups)))
    return "\n".join(rows) + f"\n\nAbove one, where pullback is slower: {slower or 'no case'}.\n"


def _slower(groups: list[chart.Group]) -> Iterator[str]:
    for group in groups:
        for case in sorted(group.cases, key=lambda case: -case.ratio):
            if case.ratio > 1:
                yield f"`{group.letter}.{case.name}` ({case.ratio:.2f})"
