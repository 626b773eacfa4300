"""The command line: ``python -m fuzz [--minutes N] [--target NAME] [--seed N] [--short]``."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time

from fuzz import corpus
from fuzz.session import Session
from fuzz.target import Target

SHORT = {"calls": 4000, "programs": 1500, "parsers": 4000, "threads": 200}
"""Cases of the short form, which is part of the tests: about a minute in all."""


def targets() -> dict[str, Target]:
    """All targets by name."""
    from fuzz.calls import Calls
    from fuzz.parsers import Parsers
    from fuzz.programs import Programs
    from fuzz.threads import Threads

    return {target.name: target for target in (Calls(), Programs(), Parsers(), Threads())}


def main(words: list[str]) -> int:
    """Runs what was asked for; the number is not 0 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="in all, shared by the targets")
    parser.add_argument("--target", choices=list(SHORT), help="this one only")
    parser.add_argument("--seed", type=int, help="of the drawn cases; none: another each time")
    parser.add_argument("--short", action="store_true", help="fixed cases, as the tests run them")
    parser.add_argument("--keep", action="store_true", help="add what is found to the corpus")
    parser.add_argument("--case", help="run this one case (JSON) and print its program")
    given = parser.parse_args(words)
    chosen = {n: t for n, t in targets().items() if given.target in (None, n)}
    if given.case:
        return _single(chosen, given.case)
    seed = 0 if given.short else secrets.randbelow(1 << 30) if given.seed is None else given.seed
    total, found = 0, 0
    for name, target in chosen.items():
        session = Session(target, seed)
        start = time.monotonic()
        if given.short:
            session.run_count(SHORT[name])
        else:
            session.run_for(60 * given.minutes / len(chosen))
        for finding in session.findings:
            if given.keep and finding.case:
                corpus.keep(target, finding.case)
        print(
            f"{name}: {session.count} cases in {time.monotonic() - start:.1f} s, "
            f"{len(session.ways)} ways through, {len(session.findings)} findings (seed {seed})",
            flush=True,
        )
        total += session.count
        found += len(session.findings)
    print(f"fuzz: {total} cases, {found} findings")
    return 1 if found else 0


def _single(chosen: dict[str, Target], text: str) -> int:
    if len(chosen) != 1:
        print("--case needs --target")
        return 2
    target = next(iter(chosen.values()))
    case = json.loads(text)
    print(target.program(case))
    session = Session(target, 0)
    session._run([case])
    return 1 if session.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
