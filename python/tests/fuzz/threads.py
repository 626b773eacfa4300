"""Schedules of the engine: threads that go backward on shared graphs, with hooks and errors.

The rule: a schedule ends; every pass answers with the exact gradient (numbers are whole and small)
or with the error that was planted; leaves hold the exact sum of the passes that accumulate into
them; a graph that is not retained is used by one pass, and by others only if they began before it
was let go of.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from random import Random
from typing import Any

import pullback as torch
from fuzz.child import SIGNS
from fuzz.target import Case, Target, Wrong, without

PATIENCE = 30.0
PLANTED = "planted by the schedule"
PASSES = ("grad", "backward", "fails", "once", "create", "hook", "drop")


class Threads(Target):
    """Graphs of sums and products by whole numbers, and what each thread does with them."""

    name = "threads"
    batch = 50
    patience = 60.0

    def draw(self, choose: Random) -> Case:
        """A graph of some nodes, and passes for some threads."""
        nodes = [
            [choose.randrange(64), choose.randrange(64), choose.randrange(1, 4)]
            for _ in range(choose.choice([2, 5, 12, 40]))
        ]
        threads = [
            [[choose.choice(PASSES), choose.randrange(64)] for _ in range(choose.randrange(1, 6))]
            for _ in range(choose.choice([2, 3, 4, 8]))
        ]
        return {"nodes": nodes, "threads": threads}

    def run(self, case: Case) -> str:
        """Runs all threads at one moment and adds up."""
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            return _Schedule(case).run()
        finally:
            sys.setswitchinterval(before)

    def smaller(self, case: Case) -> Iterator[Case]:
        """Fewer threads, passes, nodes."""
        for threads in without(case["threads"]):
            yield {**case, "threads": threads}
        for place, passes in enumerate(case["threads"]):
            for fewer in without(passes):
                threads = [*case["threads"][:place], fewer, *case["threads"][place + 1 :]]
                yield {**case, "threads": threads}
        for nodes in without(case["nodes"]):
            yield {**case, "nodes": nodes}

    def program(self, case: Case) -> str:
        """The case for the harness: a schedule is more than one program."""
        return f"cargo xtask fuzz --target threads --case '{case}'".replace("'", '"')


class _Schedule:
    """A graph, its exact gradients, and what came of each pass."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.leaf = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        self.once = (self.leaf * self.leaf).sum()
        # The factor by which each node is the leaf, modulo nothing: numbers stay exact.
        self.nodes, self.factors = [self.leaf], [1]
        for first, second, factor in case["nodes"]:
            a, b = first % len(self.nodes), second % len(self.nodes)
            if self.factors[a] + self.factors[b] > 2**40:
                continue
            self.nodes.append(self.nodes[a] * factor + self.nodes[b])
            self.factors.append(self.factors[a] * factor + self.factors[b])
        self.lock = threading.Lock()
        self.wrong: list[str] = []
        self.accumulated = 0
        self.once_done = 0

    def run(self) -> str:
        passes = self.case["threads"]
        start = threading.Barrier(max(1, len(passes)))
        threads = [
            threading.Thread(target=self._work, args=(start, p), daemon=True) for p in passes
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            if thread.is_alive():
                raise Wrong("a thread stands still", str(self.case["threads"]))
        if self.wrong:
            raise Wrong("pass", "\n".join(self.wrong))
        self._check_sum()
        return f"{len(passes)} threads {sorted({w for p in passes for w, _ in p})}"

    def _check_sum(self) -> None:
        used = any(word == "once" for passes in self.case["threads"] for word, _ in passes)
        if used and self.once_done < 1:
            raise Wrong("once", "no pass used a graph that was not retained")
        expected = [float(self.accumulated + 2 * x * self.once_done) for x in (1, 2)]
        grad = self.leaf.grad
        got = [0.0, 0.0] if grad is None else grad.tolist()
        if got != expected:
            raise Wrong("sum", f"{got}, not {expected}")

    def _work(self, start: threading.Barrier, passes: list[list[Any]]) -> None:
        start.wait(PATIENCE)
        for word, number in passes:
            try:
                self._pass(word, number % len(self.nodes))
            except BaseException as error:
                with self.lock:
                    self.wrong.append(f"{word} {number}: {type(error).__name__}: {error}")

    def _pass(self, word: str, place: int) -> None:
        node, factor = self.nodes[place], self.factors[place]
        if word == "once":
            self._use_once()
        elif word == "backward":
            node.sum().backward(retain_graph=True)
            with self.lock:
                self.accumulated += factor
        elif word == "fails":
            self._fail(node)
        elif word == "drop":
            # A graph of this thread's own that goes with the pass.
            own = self.leaf.detach().requires_grad_()
            (own * 3).sum().backward()
            _expect(own.grad, 3)
        elif word == "hook":
            mine = node * 1
            handle = mine.register_hook(lambda grad: grad * 2)
            _expect(torch.autograd.grad(mine.sum(), self.leaf, retain_graph=True)[0], 2 * factor)
            handle.remove()
        else:
            total = node.sum()
            create = word == "create"
            grads = torch.autograd.grad(total, self.leaf, retain_graph=True, create_graph=create)
            _expect(grads[0], factor)

    def _use_once(self) -> None:
        try:
            self.once.backward()
        except RuntimeError as error:
            if "a second time" not in str(error):
                raise
            return
        with self.lock:
            self.once_done += 1

    def _fail(self, node: Any) -> None:
        mine = node * 1

        def fail(_: Any) -> Any:
            raise ValueError(PLANTED)

        mine.register_hook(fail)
        try:
            torch.autograd.grad(mine.sum(), self.leaf, retain_graph=True)
        except ValueError as error:
            if PLANTED not in str(error) or any(sign in str(error) for sign in SIGNS):
                raise
            return
        raise AssertionError("the hook's error went nowhere")


def _expect(grad: Any, factor: int) -> None:
    if grad is None or grad.tolist() != [float(factor)] * 2:
        raise AssertionError(f"{grad}, not {factor}")
