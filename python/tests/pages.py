"""Reading the pages of `docs/` for their tests: blocks of code, headings, links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Written by `cargo xtask gen`; they hold no programs.
TABLES = ("compatibility.md", "ops.md")
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name not in TABLES)
# Documents of the repository's root, whose links are checked too.
DOCUMENTS = [
    ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")
]

_FENCE = re.compile(r'^```(\w*)(?: title="([^"]*)")?$')
_HEADING = re.compile(r"^#{1,6} +(.*?) *$")
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")


class Block(NamedTuple):
    """A fenced block: the line of its first line of code, its language, its title, its text."""

    line: int
    language: str
    title: str
    text: str
    # Whether nothing but empty lines is between it and the block before.
    follows: bool


def blocks(page: Path) -> list[Block]:
    """The blocks of a page; `ValueError` for a fence that is not closed or not understood."""
    found: list[Block] = []
    lines = page.read_text().splitlines()
    at, between = 0, True
    while at < len(lines):
        if not lines[at].startswith("```"):
            between = between or bool(lines[at].strip())
            at += 1
            continue
        fence = _FENCE.match(lines[at])
        if fence is None or "```" not in lines[at + 1 :]:
            raise ValueError(f"{page.name}:{at + 1}: a fence that the tests do not understand")
        end = lines.index("```", at + 1)
        text = "".join(line + "\n" for line in lines[at + 1 : end])
        found.append(Block(at + 2, fence[1], fence[2] or "", text, not between))
        at, between = end + 1, False
    return found


def prose(page: Path) -> str:
    """The page without its blocks of code and what is marked as code in a line."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", lambda code: "x" * len(code[0]), text)


def links(page: Path) -> list[str]:
    """The addresses of the links and pictures of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    # (Names in a link may be marked as code; brackets in code are no links.)
    text = re.sub(r"`[^`\n]*`", "code", text)
    found = _LINK.findall(text) + re.findall(r'<img [^>]*src="([^"]*)"', text)
    return [str(address) for address in found]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them; else `ValueError`."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    made: set[str] = set()
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            words = re.sub(r"[`*]", "", heading[1]).lower()
            kept = re.sub(r"[^\w\s-]", "", words).strip()
            made.add(re.sub(r"[-\s]+", "-", kept))
            # GitHub keeps a run of spaces as one sign each.
            made.add(kept.replace(" ", "-"))
    return made
