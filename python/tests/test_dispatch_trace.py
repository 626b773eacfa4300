"""`PULLBACK_TRACE_DISPATCH`: the way of calls through the layers, and the plans of kernels."""

import os
import re
import subprocess
import sys

import pytest


def trace(program: str, value: str = "1") -> list[str]:
    """The lines that a program's calls print, without their prefix."""
    environment = os.environ | {"PULLBACK_TRACE_DISPATCH": value}
    done = subprocess.run(
        [sys.executable, "-c", f"import pullback as torch\n{program}"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("[dispatch] ")]
    return [line.removeprefix("[dispatch] ") for line in lines]


def test_a_call_prints_the_layers_that_it_passes_and_its_kernel():
    lines = trace("a = torch.ones(2)\nwith torch.autocast('cpu'):\n    a + a")
    assert lines == [
        "aten::ones.default: Autograd, keys DispatchKeySet(Autograd)",
        "aten::ones.default: CPU, keys DispatchKeySet()",
        "aten::add.Tensor: Autocast, keys DispatchKeySet(Autocast, Autograd)",
        "aten::add.Tensor: Autograd, keys DispatchKeySet(Autograd)",
        "aten::add.Tensor: CPU, keys DispatchKeySet()",
    ]


def test_without_the_variable_nothing_is_printed():
    assert trace("torch.ones(2) @ torch.ones(2)", "0") == []


@pytest.mark.parametrize(
    ("call", "plans"),
    [
        ("torch.ones(4, 4) @ torch.ones(4, 4)", ["matrix product by Small"]),
        ("torch.ones(300, 300) @ torch.ones(300, 300)", ["matrix product by Packed"]),
        ("torch.ones(64, 64) @ torch.ones(64)", ["matrix product by Vector"]),
        (
            "h = torch.ones(2, 2, dtype=torch.float16); h @ h",
            ["product of halves by Widened", "matrix product by Small"],
        ),
        (
            "torch.conv2d(torch.ones(1, 4, 9, 9), torch.ones(4, 1, 3, 3), groups=4)",
            ["convolution by Depthwise"],
        ),
        (
            "torch.conv2d(torch.ones(1, 2, 4, 4).long(), torch.ones(2, 2, 3, 3).long())",
            ["convolution by Integer"],
        ),
    ],
)
def test_a_kernel_that_chooses_prints_its_plan(call, plans):
    assert [line.strip() for line in trace(call) if " by " in line] == plans


def test_an_op_made_of_others_prints_its_plan_before_their_calls():
    attention = "torch.nn.functional.scaled_dot_product_attention"
    setup = "q = torch.ones(1, 2, 4, 8)\n"
    lines = trace(f"{setup}{attention}(q, q, q)")
    at = lines.index("  scaled dot product attention by Blocks")
    assert lines[at - 1].startswith("aten::scaled_dot_product_attention.default: Autograd")
    assert lines[at + 1].startswith("aten::")
    lines = trace(f"{setup}{attention}(q, q, q, dropout_p=0.5)")
    assert "  scaled dot product attention by Formula" in lines
    assert any(line.startswith("aten::softmax") or "_softmax" in line for line in lines)


def test_a_plan_of_two_calls_is_printed_for_each():
    lines = trace("a = torch.ones(2, 2)\na @ a\na @ a")
    assert lines.count("  matrix product by Small") == 2


# What may be alive beside plain tensors, each as a program that gives `other`.
OTHERS = {
    "sparse list": "other = torch.eye(2).to_sparse()",
    "recorded sparse list": "other = torch.eye(2).to_sparse().requires_grad_() * 2",
    "compressed rows": "other = torch.eye(2).to_sparse_csr()",
    "simulated device": "torch.cuda.simulate(1)\nother = torch.ones(2, device='cuda')",
    "meta tensor": "other = torch.ones(2, device='meta')",
    "conjugate view": "other = torch.ones(2, dtype=torch.complex64).conj()",
    "batched tensor": "torch.vmap(lambda x: kept.append(x) or x)(torch.ones(2, 2))\nother = kept",
    "class with __torch_dispatch__": "other = Logged(torch.ones(2))",
    "recorded tensor of that class": "other = Logged(torch.ones(2, requires_grad=True)) * 2",
}

PLAIN_CALLS = """
import gc, sys

class Logged(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = [arg.inner if isinstance(arg, Logged) else arg for arg in args]
        return Logged(func(*args))

kept = []
x, y, z = torch.ones(2), torch.ones(2), torch.empty(2)
weight = torch.ones(2, requires_grad=True)

def plain():
    print("[dispatch] plain calls", file=sys.stderr, flush=True)
    x + y
    x.mul_(1.0)
    torch.add(x, y, out=z)
    torch.autograd.grad((weight * x).sum(), weight)
    print("[dispatch] end", file=sys.stderr, flush=True)

plain()
"""


@pytest.mark.parametrize("other", OTHERS)
def test_calls_of_plain_tensors_go_the_same_way_whatever_else_is_alive(other):
    program = f"{PLAIN_CALLS}\n{OTHERS[other]}\nplain()\ndel other, kept\ngc.collect()\nplain()"
    lines = trace(program)
    starts = [at for at, line in enumerate(lines) if line == "plain calls"]
    before, beside, after = (lines[at : lines.index("end", at)] for at in starts)
    assert any(line.startswith("aten::add.Tensor: CPU") for line in before)
    assert any(line.startswith("aten::add.out: CPU") for line in before)
    layered = r": (Autograd, keys DispatchKeySet\(Autograd\)|CPU, keys DispatchKeySet\(\))$"
    assert all(re.search(layered, line) for line in before[1:])
    assert before == beside == after
