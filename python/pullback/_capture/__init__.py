"""Steps that are recorded once and replayed without Python: ``pullback.capture``.

The first call with arguments of a kind runs the step as it is, while the core notes each kernel
that runs (`crates/pullback/src/capture`). Later calls run the kernels again. Here is what a program
of Python adds to that: the trees of arguments and results (`tree`), and guards for what the step
looks at besides its arguments (`guards`). Invariant: a call gives what the step gives, bit by bit,
by a replay or by the step itself; only what the step does besides computing (prints, counts, lists)
is missing from replays.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from typing import Any

from .. import _C
from .guards import Guards
from .tree import Refused, flatten, flatten_results, rebuild

__all__ = ["Captured"]

# Steps that make state in their first calls, as optimisers do, are recorded again this often.
_ATTEMPTS = 4
# Recordings in a row of which none was replayed, after which the step runs as it is.
_IN_VAIN = 8
# References to a result while it is looked at: the list of results, what the step returned (or the
# tuple around it), a variable, and the argument of the call that counts.
_OWN_REFERENCES = 4


class Entry:
    """A program with what it was recorded for."""

    __slots__ = ("guards", "program", "replays", "results")

    def __init__(self, program: Any, guards: Guards, results: Any) -> None:
        self.program = program
        self.guards = guards
        self.results = results
        self.replays = 0


class Captured:
    """A step whose calls are recorded and replayed; see :func:`pullback.capture`."""

    def __init__(self, fn: Callable[..., Any], max_signatures: int) -> None:
        self._fn = fn
        self._most = max_signatures
        if not hasattr(fn, "_parameters"):
            functools.update_wrapper(self, fn, updated=())
        self.reset()

    def reset(self) -> None:
        """Forgets all recordings and refusals: the next call records."""
        self._entries: dict[Any, list[Entry]] = {}
        self._refusals: dict[Any, str] = {}
        self._attempts: dict[Any, int] = {}
        self._in_vain = 0
        self._given_up = ""
        self._last_miss = ""
        self._outside = ""
        self._eager = 0
        self._recorded = 0

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        # (A decorated method: the instance is an argument, which guards look into.)
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the step, by a replay where its guards hold."""
        tensors: list[Any] = []
        objects: list[Any] = []
        try:
            tree = flatten((args, kwargs) if kwargs else args, tensors, objects)
        except Refused as refusal:
            self._refusals.setdefault(None, str(refusal))
            return self._run(args, kwargs)
        except RecursionError:
            self._refusals.setdefault(None, "an argument holds itself, or others a thousand deep")
            return self._run(args, kwargs)
        key = (_C.is_grad_enabled(), tree)
        entries = self._entries.get(key)
        if entries is not None:
            for entry in entries:
                if entry.guards.hold():
                    results = entry.program.replay(tensors)
                    if results is not None:
                        entry.replays += 1
                        self._in_vain = 0
                        if entries[0] is not entry:
                            # (A new list: another thread may be going through this one.)
                            others = [other for other in entries if other is not entry]
                            self._entries[key] = [entry, *others]
                        return rebuild(entry.results, results)
        if self._given_up or key in self._refusals:
            return self._run(args, kwargs)
        return self._record(key, tensors, objects, args, kwargs)

    def _run(self, args: Any, kwargs: Any) -> Any:
        self._eager += 1
        return self._fn(*args, **kwargs)

    def _note_miss(self, entries: list[Entry], tensors: list[Any]) -> None:
        """Notes why a program that was recorded before is not replayed."""
        for entry in entries:
            self._last_miss = entry.guards.why or entry.program.obstacle(tensors) or ""

    def _record(
        self, key: Any, tensors: list[Any], objects: list[Any], args: Any, kwargs: Any
    ) -> Any:
        """Runs the step and records it."""
        entries = self._entries.get(key, [])
        self._note_miss(entries, tensors)
        guards = Guards(self._fn, objects)
        if not guards.hold():
            self._outside = guards.why
            return self._run(args, kwargs)
        recording = _C._begin_capture(tensors)
        if isinstance(recording, tuple):
            reason, is_final = recording
            if is_final:
                self._refusals[key] = reason
            else:
                self._outside = reason
            return self._run(args, kwargs)
        self._eager += 1
        try:
            # (In a tuple, so that a tensor and one of several have as many references.)
            result = (self._fn(*args, **kwargs),)
            refusal, is_final, entry = self._finish(recording, guards, result, tensors)
        finally:
            recording.abort()
        if entry is None:
            attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
            if is_final or attempts >= _ATTEMPTS:
                self._refusals[key] = refusal
            return result[0]
        self._recorded += 1
        self._in_vain += 1
        if self._in_vain > _IN_VAIN:
            self._given_up = (
                f"the last {_IN_VAIN} recordings could not be replayed once; the last time because "
                f"{self._last_miss or 'the arguments were of another kind each time'} (a learning "
                "rate that changes with each step belongs into a tensor)"
            )
            self._entries.clear()
            return result[0]
        self._keep(key, entry)
        return result[0]

    def _finish(
        self, recording: Any, guards: Guards, result: tuple[Any], tensors: list[Any]
    ) -> tuple[str, bool, Entry | None]:
        """The entry of a step that has run, or why there is none, and whether that is final."""
        outputs: list[Any] = []
        try:
            results = flatten_results(result[0], outputs)
        except Refused as refusal:
            return str(refusal), True, None
        if not guards.hold():
            return f"{guards.why}, by the step itself", guards.is_number, None
        given = {id(tensor) for tensor in (*tensors, *guards.tensors)}
        for output in outputs:
            if id(output) not in given and sys.getrefcount(output) > _OWN_REFERENCES:
                copies = sum(other is output for other in outputs)
                if sys.getrefcount(output) > _OWN_REFERENCES + 2 * (copies - 1):
                    reason = (
                        "a result is kept elsewhere, too (in a list or an attribute): a replay "
                        "would not put a new one there"
                    )
                    return reason, True, None
        if recording.has_kept(outputs):
            # (Garbage that waits for the collector holds nothing for a reason.)
            gc.collect()
        program = recording.finish(outputs, guards.tensors)
        if isinstance(program, tuple):
            return program[0], program[1], None
        return "", False, Entry(program, guards, results)

    def _keep(self, key: Any, entry: Entry) -> None:
        """Adds an entry; the one that was replayed least goes where there are too many."""
        self._entries[key] = [entry, *self._entries.get(key, [])]
        count = sum(map(len, self._entries.values()))
        if count <= self._most:
            return
        others = [
            (other.replays, at, other)
            for at, entries in self._entries.items()
            for other in entries
            if other is not entry
        ]
        _, at, other = min(others, key=lambda row: row[0])
        self._entries[at] = [kept for kept in self._entries[at] if kept is not other]

    def explain(self) -> str:
        """Describes what is recorded, what a replay runs and needs, and what is refused and why."""
        entries = [entry for each in self._entries.values() for entry in each]
        replays = sum(entry.replays for entry in entries)
        name = getattr(self._fn, "__qualname__", type(self._fn).__name__)
        lines = [
            f"{name}: {len(entries)} programs, {replays} replays, {self._eager} calls as it is "
            f"({self._recorded} of them recorded)"
        ]
        for entry in entries:
            instructions, outside, planned, sum_, fresh = entry.program.summary()
            lines.append(
                f"  {instructions} kernels, {outside} tensors from outside, "
                f"{entry.replays} replays; "
                f"intermediates in {planned} bytes ({sum_} without reuse), "
                f"{fresh} bytes new each time"
            )
        if self._last_miss:
            lines.append(f"  recorded again, because {self._last_miss}")
        lines += [f"  refused: {reason}" for reason in self._refusals.values()]
        if self._outside:
            lines.append(f"  not recorded at times: {self._outside}")
        if self._given_up:
            lines.append(f"  given up: {self._given_up}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<captured {self._fn!r}>"
