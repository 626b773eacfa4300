"""Every program of the pages runs and prints what the page shows; every link leads somewhere.

The rules, for who writes a page:

- `python` blocks of a page share one namespace and run in order. A `text` block right after one is
  what it printed, with the class and message of the error at the end if it raised one.
- A `python` block with a title is a whole program: it is written to a file of that name and run by
  `python -m pullback`, in a folder with the page's other programs. The `text` block after it is the
  end of what it wrote.
- A `text` block with the title `times differ` is compared without its numbers and in any order of
  lines; `...` stands for anything in other blocks. One with the title `from Python 3.11 on` is
  compared only there: older versions show no notes of exceptions.
- `sh` blocks hold commands that exist; `python -m pullback ...` with a `text` block after it is
  run, with the variables before it; `rust` blocks are documentation tests of a library
  (`crates/pullback/src/lib.rs`, `pages`), or with a title quotes of that file of the repository.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pages import DOCS, DOCUMENTS, PAGES, ROOT, TABLES, Block, anchors, blocks, links, prose

import pullback as torch

if sys.version_info >= (3, 11):
    import tomllib

LANGUAGES = {"python", "rust", "sh", "text", "toml"}
TIMES = "times differ"
NOTES = "from Python 3.11 on"
HAS_NOTES = sys.version_info >= (3, 11)


def by_name(page: Path) -> str:
    return page.name


def as_printed_here(shown: Block) -> Block:
    """The output as this version of Python writes it."""
    if HAS_NOTES:
        return shown
    # Without positions of expressions there are no marks.
    return shown._replace(text=re.sub(r"^ +[\^~]+\n", "", shown.text, flags=re.MULTILINE))


def output_after(of_page: list[Block], number: int) -> Block | None:
    """The block with the output of a program."""
    after = of_page[number + 1] if number + 1 < len(of_page) else None
    if after is None or after.language != "text" or not after.follows:
        return None
    return as_printed_here(after)


def without_numbers(text: str) -> list[str]:
    """The lines of a table whose numbers are times, in an order of their own."""
    text = re.sub(r"-?\d[\d.,]*(e-?\d+)?\s?(%|[num]?s\b|[KMG]?i?B\b)?", "#", text)
    return sorted(" ".join(re.sub(r"[-─]{3,}", "---", line).split()) for line in text.splitlines())


def compare(page: Path, shown: Block, written: str) -> None:
    """Fails if a program wrote something else than its page shows."""
    place = f"{page.name}:{shown.line}"
    if shown.title == TIMES:
        assert without_numbers(written) == without_numbers(shown.text), place
    elif not doctest.OutputChecker().check_output(shown.text, written, doctest.ELLIPSIS):
        assert written == shown.text, place


def run_here(page: Path, block: Block, scope: dict[str, Any], may_fail: bool) -> str:
    """Runs a block in the page's namespace; what it printed, and the error that ended it."""
    # (Empty lines before it, so that errors name the page's own lines.)
    code = compile("\n" * (block.line - 1) + block.text, page.name, "exec")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(code, scope)
        except Exception as error:
            if not may_fail:
                raise
            print(f"{type(error).__name__}: {error}")
    return out.getvalue()


def run_apart(block: Block, folder: Path) -> str:
    """Runs a block as a program of its own; what it wrote, the error last."""
    if block.language == "sh":
        words = block.text.split()
        python = words.index("python")
        more, arguments = dict(word.split("=") for word in words[:python]), words[python + 3 :]
    else:
        (folder / block.title).write_text(block.text)
        more, arguments = {}, [block.title]
    command = [sys.executable, "-m", "pullback", *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **more}, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_programs_of_a_page_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads())
    state = torch.get_rng_state()
    of_page = blocks(page)
    scope: dict[str, Any] = {"__name__": page.stem}
    monkeypatch.chdir(tmp_path)
    for number, block in enumerate(of_page):
        shown = output_after(of_page, number)
        is_command = block.language == "sh" and shown is not None
        if block.language != "python" and not is_command:
            continue
        if block.title or is_command:
            written = run_apart(block, tmp_path)
            if shown is not None:
                # The end of it: a traceback begins with lines that nobody needs.
                count = shown.text.count("\n")
                written = "".join(written.splitlines(keepends=True)[-count:])
            else:
                assert "Traceback" not in written, f"{page.name}:{block.line}\n{written}"
        else:
            written = run_here(page, block, scope, may_fail=shown is not None)
        if shown is not None and (shown.title != NOTES or HAS_NOTES):
            compare(page, shown, written)
        elif shown is None and not block.title:
            assert not written, f"{page.name}:{block.line}: the page shows no output"
    torch.set_rng_state(state)
    after = (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads())
    assert after == before, "a page must leave the settings of the process as they were"


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_blocks_of_a_page_are_of_known_languages(page: Path) -> None:
    of_page = blocks(page)
    for number, block in enumerate(of_page):
        place = f"{page.name}:{block.line}"
        assert block.language in LANGUAGES, place
        if block.language == "text":
            before = of_page[number - 1] if number else None
            assert before is not None, f"{place}: output of no program"
            assert block.follows, f"{place}: output of no program"
            assert before.language in ("python", "sh"), f"{place}: output of no program"
        if block.language == "toml" and sys.version_info >= (3, 11):
            tomllib.loads(block.text)


def test_rust_blocks_are_documentation_tests_or_quotes() -> None:
    libraries = [(ROOT / f"crates/{name}/src/lib.rs").read_text() for name in ("pullback", "nn")]
    for page in PAGES:
        for block in blocks(page):
            if block.language != "rust":
                continue
            place = f"{page.name}:{block.line}"
            if block.title:
                source = (ROOT / block.title).read_text()
                assert block.text in source, f"{place} does not stand in {block.title}"
            inclusion = f'include_str!("../../../docs/{page.name}")'
            assert any(inclusion in text for text in libraries) != bool(block.title), (
                f"{place}: a page has either programs, which a lib.rs includes, or quotes"
            )


def commands() -> list[Any]:
    found = [
        pytest.param(line, {b.title for b in blocks(page)}, id=f"{page.name}:{block.line + number}")
        for page in PAGES
        for block in blocks(page)
        if block.language == "sh"
        for number, line in enumerate(block.text.splitlines())
        if line.strip()
    ]
    assert found
    return found


@pytest.mark.parametrize(("line", "programs"), commands())
def test_commands_of_the_pages_exist(line: str, programs: set[str]) -> None:
    line = line.partition("#")[0].strip()
    words = [word for word in line.split() if not re.fullmatch(r"[A-Z_]+=\S+", word)]
    match words:
        case ["cargo", "xtask", name, *rest]:
            usage = re.search(
                rf'name: "{name}",\s+usage: "((?:[^"\\]|\\.)*)"',
                (ROOT / "xtask/src/main.rs").read_text(),
                flags=re.DOTALL,
            )
            assert usage is not None, f"there is no command {name}"
            for word in rest:
                assert not word.startswith("--") or word in usage[1], f"{name} has no {word}"
        case ["cargo", "test", "-p", crate, *_]:
            folder = crate.removeprefix("pullback-")
            assert (ROOT / "crates" / folder / "Cargo.toml").is_file()
        case ["cargo", "build", "--release", "-p", crate]:
            manifests = (ROOT / "examples").glob("*/Cargo.toml")
            assert any(f'name = "{crate}"' in manifest.read_text() for manifest in manifests)
        case ["cargo", "add", ("pullback" | "pullback-nn") as crate, "--path", path]:
            assert path.endswith(f"crates/{crate.removeprefix('pullback-')}")
        case ["python", "-m", "pullback", "diff" | "recorder", *_] | ["python", "program.py"]:
            # (What `diff` prints is compared above; the program stands for the reader's own.)
            pass
        case ["python", "-m", "pullback", program]:
            assert program in programs
        case ["python", "-m", "venv", _] | ["pip", "install", "."] | [".", ".venv/bin/activate"]:
            pass
        case ["git", "clone", _] | ["cd", _]:
            pass
        case _:
            pytest.fail(f"the tests do not know the command {line!r}")


@pytest.mark.parametrize("page", [*PAGES, *DOCUMENTS, *(DOCS / t for t in TABLES)], ids=by_name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for address in links(page):
        if address.startswith("https://"):
            continue
        path, _, anchor = address.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), f"{page.name}: {address}"
        if page.parent == DOCS:
            # What is beside the pages in the site (`xtask/src/docs/gather.rs`).
            assert target.is_relative_to(DOCS) or target in DOCUMENTS[1:], f"{page.name}: {address}"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {address}"


@pytest.mark.parametrize("page", [*PAGES, DOCUMENTS[0]], ids=by_name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    folders = "benches|crates|docs|examples|python|xtask"
    for path in re.findall(rf"`((?:{folders})/[\w./*-]+)`", page.read_text()):
        # (Those that a build makes are named by a pattern or not at all.)
        assert list(ROOT.glob(path.rstrip("/"))), f"{page.name}: {path}"


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = re.findall(r": (\w+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    here = {path.name for path in DOCS.glob("*.md")} | {path.name for path in DOCUMENTS[1:]}
    assert set(listed) == here
    assert len(listed) == len(set(listed))


def test_pictures_are_used_and_load_nothing() -> None:
    used = {
        (page.parent / address).resolve()
        for page in [*PAGES, *DOCUMENTS]
        for address in links(page)
        if address.endswith(".svg")
    }
    pictures = set((DOCS / "pictures").glob("*.svg"))
    assert used == pictures
    for picture in pictures:
        root = ElementTree.parse(picture).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        for element in root.iter():
            assert not any(name.endswith(("href", "src")) for name in element.attrib), picture.name
        assert "@import" not in picture.read_text()
        assert "url(http" not in picture.read_text()


def test_pages_say_what_they_are_without_marks_of_unfinished_work() -> None:
    for page in PAGES:
        text = prose(page)
        assert text.startswith("# "), page.name
        assert not re.search(r"\b(TODO|FIXME|XXX|TBD)\b", text), page.name


def test_a_wrong_output_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n```python\nprint(1)\n1 / 0\n```\n\n```text\n1\nZero...\n```\n")
    program, shown = blocks(page)
    assert (program.line, shown.follows) == (4, True)
    written = run_here(page, program, {}, may_fail=True)
    assert written == "1\nZeroDivisionError: division by zero\n"
    compare(page, shown, written)
    with pytest.raises(AssertionError, match=r"page\.md:9"):
        compare(page, shown._replace(text="2\nZero...\n"), written)
    with pytest.raises(ZeroDivisionError):
        run_here(page, program, {}, may_fail=False)
    times = shown._replace(title=TIMES, text="mul  12.5us\nadd  1 ms\n")
    compare(page, times, "add  2.25 ms\nmul  3.000us\n")
    with pytest.raises(AssertionError):
        compare(page, times, "add  2 ms\nsub  3us\n")


def test_a_page_with_an_open_fence_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n```python\nprint(1)\n")
    with pytest.raises(ValueError, match=r"page\.md:3"):
        blocks(page)
