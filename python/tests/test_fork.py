"""A forked child computes forward and backward, whatever ran in the parent before and beside it."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

START = """
import os, sys, threading, time
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
import pullback as torch

torch.set_num_threads(4)
shared = torch.ones(400, 400, requires_grad=True)

def work():
    own = torch.randn(400, 400, requires_grad=True)
    own.register_hook(lambda grad: grad * 2)
    (own @ shared).relu().sum().backward()
    torch.randn(200_000).add_(1).exp().sum()
    assert own.grad.shape == (400, 400) and shared.grad is not None

def in_child(run):
    '''Runs it in a child, which ends in time or counts as hanging.'''
    child = os.fork()
    if child == 0:
        try:
            run()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            assert status == 0, status
            return
        time.sleep(0.002)
    os.kill(child, 9)
    os.waitpid(child, 0)
    sys.exit("the child hangs")
"""

BESIDE_THREADS = """
is_over = False
def train():
    while not is_over:
        work()
threads = [threading.Thread(target=train) for _ in range(2)]
for thread in threads:
    thread.start()
try:
    for _ in range(12):
        in_child(lambda: (work(), in_child(work), work()))
finally:
    is_over = True
    for thread in threads:
        thread.join()
work()
"""

AFTER_WORK = """
work()
in_child(work)
in_child(lambda: in_child(lambda: in_child(work)))
work()
"""

IN_A_HOOK = """
x = torch.ones(3, requires_grad=True)
y = x * 2
children = []
def hook(grad):
    in_child(torch.enable_grad()(work))
    children.append(grad)
y.register_hook(hook)
y.sum().backward()
assert len(children) == 1 and x.grad.tolist() == [2, 2, 2]
in_child(lambda: (x * 3).sum().backward())
assert x.grad.tolist() == [2, 2, 2]
"""

FROM_A_THREAD = """
work()
def fork():
    in_child(work)
threads = [threading.Thread(target=fork) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

GRAPH_OF_THE_PARENT = """
x = torch.randn(300, 300, requires_grad=True)
loss = (x @ x).sigmoid().sum()
def run():
    loss.backward()
    assert x.grad.abs().sum() > 0
in_child(run)
assert x.grad is None
run()
"""

RANDOM_NUMBERS = """
torch.manual_seed(7)
expected = torch.randn(5)
torch.manual_seed(7)
def same():
    assert torch.equal(torch.randn(5), expected)
in_child(same)
same()
"""


def programs() -> Iterator[tuple[str, str]]:
    yield "beside_threads_that_train", BESIDE_THREADS
    yield "after_work", AFTER_WORK
    yield "in_a_hook", IN_A_HOOK
    yield "from_several_threads", FROM_A_THREAD
    yield "with_a_graph_of_the_parent", GRAPH_OF_THE_PARENT
    yield "with_its_own_copy_of_the_generator", RANDOM_NUMBERS


@pytest.mark.parametrize("program", [pytest.param(p, id=name) for name, p in programs()])
def test_a_forked_child_computes(program: str) -> None:
    text = textwrap.dedent(START) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_fork_waits_only_so_long_for_a_thread_inside_of_the_library() -> None:
    program = """
    import pullback._C as C
    x = torch.ones(2, requires_grad=True)
    is_in, may_go = threading.Event(), threading.Event()
    def hook(grad):
        is_in.set()
        may_go.wait()
    x.register_hook(hook)
    thread = threading.Thread(target=lambda: (x * 2).sum().backward())
    thread.start()
    is_in.wait()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        in_child(lambda: None)
    assert any("inside of the library for ten seconds" in str(w.message) for w in caught)
    may_go.set()
    thread.join()
    in_child(work)
    """
    text = textwrap.dedent(START) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
