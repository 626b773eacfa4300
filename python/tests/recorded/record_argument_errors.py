"""Records what PyTorch raises for calls with wrong arguments, as `argument_errors.json`.

Run with a Python that has PyTorch: `python record_argument_errors.py`. Each record holds the
expression, evaluated with `torch` and a tensor `t = torch.ones(2, 3)`, the class of the error and
its message. Left out are calls with several wrong keywords, whose order in PyTorch's messages is
that of a hash table.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import torch

# One overload: too many, missing, unknown, twice given.
COUNT = """
torch.abs()
torch.abs(t, t)
torch.transpose(t, 1)
t.transpose()
t.transpose(1)
t.transpose(1, 2, 3)
t.clone(1)
t.clone(foo=1)
torch.cat((t, t), 0, 1)
torch.cat(tensors=(t, t), axis=0, dim=0)
torch.zeros_like(t, 1, 2)
torch.softmax(t)
torch.gather(t, 0)
torch.full((2,))
torch.zeros()
torch.ones(2, size=(3,))
torch.dropout(t)
torch.dropout(input=t, p=0.5)
torch.batch_norm(t)
torch.max_pool2d(t)
torch.layer_norm(t)
torch.roll(t)
torch.flip(t)
t.permute()
t.permute(dims=(1, 0), foo=1)
t.unsqueeze()
t.topk()
torch.kthvalue(t)
torch.allclose(t)
torch.cumsum(t)
torch.embedding(t)
torch.as_strided(t)
torch.argmax(t, 0, False, 1)
torch.gather(t, 0, t, foo=1)
torch._C._nn.linear()
torch._C._nn.linear(t)
torch._C._nn.avg_pool2d(t)
torch._C._nn.elu(t, 1, 2, 3, 4, 5)
torch._C._linalg.linalg_solve(t)
torch.prelu(t)
torch.index_select(t, 0, index=t, dim=0)
"""

# One overload: a value of the wrong type.
TYPE = """
torch.mul(t, 'x')
torch.mul('x', 2)
torch.div(t, [])
t.mul(None)
t.mul_('x')
torch.neg(1)
torch.exp(2.0)
torch.zeros_like(1)
torch.full((2,), 'x')
torch.full((2,), t)
torch.full(2, 2)
torch.multinomial(t, 'x')
torch.softmax(t, 'x')
torch.softmax(t, 0, dtype='x')
torch.cumsum(t, 'x')
torch.cumsum(t, dim='x')
torch.tril(t, 'x')
torch.flatten(t, 'x')
torch.diagonal(t, 'x')
torch.unbind(t, 'x')
torch.unbind(1, 'x')
torch.gather(t, 'x', t)
torch.gather(t, 0, t, sparse_grad=1)
torch.index_select(t, 0, 1)
torch.allclose(t, t, 'x')
torch.isclose(t, 1)
torch.dropout(t, 'x', True)
torch.dropout(t, 0.5, 1)
torch.argmax(t, 'x')
torch.argmax(t, 0, 1)
torch.topk(t, k=1.0)
torch.celu(t, 'x')
torch.polar(1, 2)
torch.complex(1, 2)
torch.clone(t, memory_format=1)
torch.ones_like(t, memory_format=1)
torch.randn('x')
torch.randperm('x')
torch.ones(2, dtype='x')
torch.ones(2, dtype=3)
torch.ones(2, dtype=str)
torch.ones(2, device=[])
torch.ones(2, layout=1)
torch.ones(2, pin_memory=1)
torch.ones(2, requires_grad=1)
t.unsqueeze('x')
t.unsqueeze(1.0)
t.unsqueeze(True)
t.unsqueeze(None)
t.unsqueeze(t)
t.topk('x')
t.uniform_('x')
t.requires_grad_(1)
torch._C._nn.leaky_relu(t, 'x')
torch._C._nn.gelu(t, approximate=1)
torch._C._nn.linear(1, 2)
torch._C._linalg.linalg_svd(1)
torch._C._linalg.linalg_svd(t, 1)
torch._C._linalg.linalg_svd(t, full_matrices=1)
torch._C._linalg.linalg_vector_norm(t, 'x')
torch._C._linalg.linalg_qr(t, 1)
"""

# Lists of ints and of tensors.
LIST = """
torch.zeros('x')
torch.zeros(1.5)
torch.zeros(True)
torch.zeros(None)
torch.zeros(size=3)
torch.zeros(2, 1.5)
torch.zeros([2, 1.5])
torch.zeros((2, None))
torch.zeros(2, 3, None)
torch.zeros('x', 1)
torch.zeros(('x', 1))
t.reshape('x')
t.reshape(2, 1.5)
t.permute('x', 1)
t.permute(0, 'x')
t.permute([0, 1.0])
t.permute(1.0)
t.expand(2, None)
t.repeat('x')
t.repeat(1, 'x')
torch.permute(t, ('x',))
torch.flip(t, 'x')
torch.flip(t, (0, 'x'))
torch.flip(t, ('x', 0))
torch.flip(t, [True])
torch.flip(t, dims=('x', 0))
torch.roll(t, 'x')
torch.logsumexp(t, 'x')
torch.layer_norm(t, 1)
torch.layer_norm(t, 'x')
torch.max_pool2d(t, 'x')
torch.max_pool2d(t, ['x'])
torch.max_pool2d(t, [1, 'x'])
torch.as_strided(t, (1,), 'x')
torch._C._nn.pad(t, 1)
torch.cat(1)
torch.cat(t)
torch.cat([t, 1])
torch.cat((1.5,))
torch.cat((t, t), dim='x')
torch.stack([t, None])
torch.stack((1, t))
torch.index_put(t, 'x')
torch.index_put(t, [1], t)
torch.sort(t, 0, out=(t, 1))
"""

# Several overloads.
OVERLOADS = """
torch.sum('x')
t.sum('x')
t.sum(0, foo=1)
t.sum(0, dim=1)
torch.sum(t, axis='x')
torch.sum(t, (0, 'x'))
torch.sum(t, ('x', 0))
torch.mean(t, 'x')
torch.mean(t, dtype=1)
torch.prod(t, 'x')
torch.any(t, 'x')
torch.max('x')
torch.max(t, 0, out=t)
torch.std(t, 'x')
torch.std(t, foo=1)
torch.std(t, unbiased='x')
torch.std()
torch.var(t, 'x')
t.view('x')
t.view()
t.view(size=2)
t.view(2, 'x')
torch.squeeze(t, 'x')
torch.movedim(t, 'x', 1)
torch.movedim(t, (1, 'x'), (0, 1))
torch.clamp(t, 'x')
t.clamp(min='x')
t.clamp(1, 2, 3)
torch.where()
torch.where(t, 1)
torch.where(1, 'x', 3)
t.masked_fill(t, 'x')
t.masked_fill(1, 2)
t.masked_fill((1, 2), 'x')
t.masked_fill([1], (1,))
t.masked_fill(t, value='x')
t.masked_fill(t, foo='x')
t.masked_fill(torch.nn.Parameter(t), 'x')
t.fill_('x')
t.fill_(None)
torch.pow(t)
torch.pow(1, 2)
torch.pow('x', 'y')
torch.lerp(t, t)
torch.fmod(t, 'x')
torch.remainder(1, 2)
torch.sort(t, 'q')
t.sort(1, 2, 3, 4)
torch.scatter(t, 'x')
torch.conv2d(t)
torch.conv2d(t, t, stride='x')
torch.bernoulli(t, 'x')
torch.normal(1, 2)
torch.randint('x')
torch.randint(3, 4)
torch.rand(2, generator='x')
torch.eye(2, 'x')
torch.eye(1.5)
torch.arange()
torch.arange(0, 'x')
torch.linspace(0, 1, 'x')
torch.searchsorted(1, 2)
t.random_('x')
t.to(3.5, 2.5)
t.to(dtype='x')
t.to(torch.float32, 1)
t.to(t, 'x')
t.to(foo=1)
torch._C._linalg.linalg_matrix_norm(1, 2, 3, 4, 5, 6, 7)
"""

# Overloads of which all but one are deprecated and not shown.
HIDDEN = """
torch.add()
torch.add(t)
torch.add(foo=t)
torch.add(t, 'x')
torch.add(t, alpha=1)
torch.add(t, t, foo=1)
torch.add(t, t, alpha='x')
torch.add(t, t, t, t, t)
torch.sub(t, 'x')
t.add('x')
t.add(t, alpha=t)
t.add_(1, 2, 3)
torch.addcmul(t, 1, 2)
"""

GROUPS = {"count": COUNT, "type": TYPE, "list": LIST, "overloads": OVERLOADS, "hidden": HIDDEN}


def record(group: str, expression: str) -> dict[str, str]:
    """Evaluates `expression` and describes the error it raises; it must raise one."""
    scope: dict[str, Any] = {"torch": torch, "t": torch.ones(2, 3)}
    try:
        eval(expression, scope)
    except Exception as error:
        message = str(error)
        return {
            "group": group,
            "expression": expression,
            "error": type(error).__name__,
            "message": message,
        }
    raise AssertionError(f"{expression} raises nothing")


def main() -> None:
    """Writes all records next to this file."""
    warnings.simplefilter("ignore")
    records = [
        record(group, line)
        for group, lines in GROUPS.items()
        for line in lines.strip().splitlines()
    ]
    document = {"torch": torch.__version__, "records": records}
    path = Path(__file__).with_name("argument_errors.json")
    path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
