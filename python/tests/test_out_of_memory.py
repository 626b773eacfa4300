"""Memory that is not there is an error, and not the end of the process.

Calls run in a child process whose address space is limited: some whose sizes no machine has memory
for, and some that need a little more than is left, at several limits on the way to working.
"""

import os
import subprocess
import sys
from textwrap import dedent

import pytest

# Runs calls, given as text, under a limit of so many MiB more than the process has, and prints what
# came of each.
CHILD = """
import resource, sys
import pullback as torch

torch.set_num_threads(1)
calls, steps = {calls!r}, {steps!r}

def taken():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

def outcome(call):
    try:
        eval(call)
    except torch.OutOfMemoryError as error:
        assert "allocate memory" in str(error) or "too many" in str(error), error
        return "refused"
    except MemoryError:
        return "refused"
    except Exception as error:
        return f"{{type(error).__name__}}: {{error}}"
    return "done"

# What is made once, at the first call, is made now.
for call in {warm!r}:
    outcome(call)
for call in calls:
    seen = []
    for step in steps:
        resource.setrlimit(resource.RLIMIT_AS, (taken() + (step << 20), -1))
        seen.append(outcome(call))
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    print(call, "|", ",".join(seen), flush=True)
assert torch.ones(3).cumsum(0).tolist() == [1, 2, 3]
print("usable", flush=True)
"""


def outcomes(calls: list[str], steps: list[int], warm: list[str]) -> dict[str, list[str]]:
    """What came of each call, by its text; fails if the child did not come to its end."""
    program = dedent(CHILD).format(calls=calls, steps=steps, warm=warm)
    # (Else the allocator takes a GiB of address space in advance.)
    env = {**os.environ, "MIMALLOC_ARENA_RESERVE": "0", "MIMALLOC_PURGE_DELAY": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, env=env
    )
    lines = done.stdout.splitlines()
    assert [done.returncode, *lines[-1:]] == [0, "usable"], (
        f"ended with {done.returncode} after {lines[-1:]}: {done.stderr[-2000:]}"
    )
    return {call: seen.split(",") for call, seen in (line.rsplit(" | ", 1) for line in lines[:-1])}


# No machine has memory for these.
ENDLESS = [
    "torch.repeat_interleave(torch.tensor([2**43]))",
    "torch.repeat_interleave(torch.tensor([7]), torch.tensor([2**43]))",
    "torch.ones(1).expand(2**43).tolist()",
    "torch.ones(1).expand(2**43).kthvalue(2)",
    "torch.ones(1).expand(2**43).mode()",
    "torch.ones(1).expand(2**43).median()",
    "torch.ones(1).expand(2**43).unique()",
    "torch.ones(1).expand(2**43).argsort()",
    "torch.ones(1).expand(2**43).sort()",
    "torch.ones(1).expand(2**43).topk(2**42)",
    "torch.ones(1).expand(2**43).quantile(0.5)",
    "torch.ones(1).expand(2**43).to_sparse()",
    "torch.ones(1).expand(2**43).cumsum(0)",
    "torch.ones(1).expand(2**43).unsqueeze(0).softmax(0)",
    "torch.normal(0.0, torch.ones(1).expand(2**43))",
    "torch.randperm(2**43)",
    "torch.combinations(torch.arange(2**16), 4)",
    "torch.tril_indices(2**42, 2)",
]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="overcommitted memory is Linux's")
def test_what_no_machine_has_memory_for_is_refused_at_once():
    seen = outcomes(ENDLESS, [1 << 16], [])
    assert {call: result for call, result in seen.items() if result != ["refused"]} == {}


# These need some MiB: some in the result, some in what it is made with.
LARGE = [
    "x.kthvalue(2)",
    "x.mode()",
    "x.unique(return_inverse=True, return_counts=True)",
    "x.argsort()",
    "x.sort(descending=True)",
    "x.quantile(torch.tensor([0.25, 0.5], dtype=torch.float64))",
    "x.tolist()",
    "torch.tensor(numbers)",
    "torch.repeat_interleave(counts)",
    "x.view(2, -1).T.flip(0).cumsum(1)",
    "x.view(-1, 1024).T.matmul(x.view(-1, 1024))",
    "sparse.coalesce()",
    "sparse + sparse",
    "sparse.to_dense()",
    "sparse * sparse",
    "torch.sparse.sum(sparse, 0)",
    "wide.cumprod(0).sum().backward()",
    "torch.normal(0.0, wide.abs()).sum()",
    "torch.isin(x, x)",
    "torch.bincount(counts)",
    "torch.histc(x, 1 << 18)",
    "torch.linalg.svd(x[: 512 * 300].view(512, 300))",
    "torch.nn.functional.conv2d(image, kernel, padding=1)",
    "repr_of(x)",
    "x.untyped_storage().tolist()",
]
WARM = [
    "globals().update(x=torch.randn(1 << 20, dtype=torch.float64))",
    "globals().update(numbers=[0.5] * (1 << 20))",
    "globals().update(counts=torch.full((1 << 18,), 8))",
    "globals().update(wide=torch.randn(1 << 20, dtype=torch.float64, requires_grad=True))",
    "globals().update(image=torch.randn(4, 16, 128, 128), kernel=torch.randn(16, 16, 3, 3))",
    "globals().update(places=torch.randint(0, 1 << 10, (2, 1 << 18)))",
    "globals().update(sparse=torch.sparse_coo_tensor(places, x[: 1 << 18], (1 << 10, 1 << 10)))",
    "globals().update(repr_of=lambda x: (torch.set_printoptions(threshold=1 << 30), repr(x)))",
]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address spaces are limited")
def test_at_every_limit_a_call_works_or_is_refused():
    steps = [1, 2, 4, 8, 16, 32, 48, 4096]
    seen = outcomes(LARGE, steps, WARM)
    wrong = {c: r for c, r in seen.items() if not {"done", "refused"}.issuperset(r)}
    assert wrong == {}
    assert {call: results for call, results in seen.items() if results[-1] != "done"} == {}
    # The limits do something.
    refused = [call for call, results in seen.items() if "refused" in results]
    assert len(refused) > len(LARGE) // 3
