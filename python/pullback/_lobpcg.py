"""Some eigenvalues of large symmetric matrices: LOBPCG.

A. V. Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned
conjugate gradient method" (SIAM J. Sci. Comput. 23, 2001), with the basis made orthonormal in each
step, and directions dropped that depend on others (J. A. Duersch et al., "A robust and efficient
implementation of LOBPCG", SIAM J. Sci. Comput. 40, 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _C
from ._info import finfo
from ._overridable import make_overridable as _make_overridable
from ._tensor import Tensor
from .autograd.grad_mode import no_grad

__all__ = ["lobpcg"]

# What a direction must keep of its length, of the roots of squares, to count as one of its own.
_INDEPENDENT = 1e-10


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[Any], None] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) eigenvalues of ``A x = w B x``, and their vectors.

    Derivatives are those of the dense problem, solved by ``torch.linalg.eigh``.

    Args:
        A: symmetric (Hermitian) matrices (..., m, m), or a sparse matrix.
        k: how many pairs; 1, or as many as ``X`` has columns.
        B: positive definite matrices like ``A``; the identity if ``None``.
        X: (..., m, n) where to start; random numbers if ``None``.
        n: how many vectors are worked on, at least k; k if ``None``.
        iK: a preconditioner, about the inverse of ``A``.
        niter: the most steps; 1000 if ``None``, without bound if negative.
        tol: the residual, relative to the norms of the matrices, that ends the iteration; the
            root of the dtype's precision if ``None``.
        largest: whether the largest are sought, not the smallest; True if ``None``.
        method: "ortho" (default) or "basic", both with orthonormal directions here.
        tracker: called in each step with an object whose ``A``, ``B``, ``E``, ``X``, ``R``,
            ``ivars`` and ``tvars`` show how things stand, and ``iparams``, ``fparams`` and
            ``bparams`` the settings.
        ortho_iparams: no effect: nothing is to be set here.
        ortho_fparams: no effect.
        ortho_bparams: no effect.

    Returns:
        ``(E, X)``: values (..., k) in descending order (ascending for the smallest), and vectors
        (..., m, k).

    Raises:
        ValueError: for matrices that are too small for so many vectors, or another method.
    """
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"method must be 'ortho' or 'basic', got {method!r}")
    m = A.shape[-1]
    if A.dim() < 2 or A.shape[-2] != m:
        raise ValueError(f"lobpcg: A must be square matrices, got shape {tuple(A.shape)}")
    if k is None:
        k = 1 if X is None else X.shape[-1]
    if n is None:
        n = k if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={m})"
            f" is smaller than 3 x the number of requested eigenpairs (={n})"
        )
    solver = _Solver(
        k=k,
        niter=1000 if niter is None else niter,
        tol=finfo(A.dtype).eps ** 0.5 if tol is None else tol,
        largest=largest is not False,
        tracker=tracker,
    )
    if X is None:
        start = (*A.shape[:-2], m, n)
        X = _C._VariableFunctions.randn(start, dtype=A.dtype, device=A.device)
    with no_grad():
        E, vectors = solver.batch(A.detach(), None if B is None else B.detach(), X.detach(), iK)
    needs = A.requires_grad or (B is not None and B.requires_grad)
    if not (needs and _C.is_grad_enabled()):
        return E, vectors
    return _differentiable(A, B, vectors, solver)


class _Solver:
    """The settings of a call, and the state that a tracker sees.

    As in PyTorch the settings are in ``iparams`` (``m``, ``n``, ``k``, ``niter``), ``fparams``
    (``tol``) and ``bparams`` (``largest``), the numbers of a step in ``ivars``, and in ``tvars``
    the relative residual of each pair, ``rerr``.
    """

    A: Tensor
    B: Tensor | None
    E: Tensor
    X: Tensor
    R: Tensor

    def __init__(self, k: int, niter: int, tol: float, largest: bool, tracker: Any) -> None:
        self.k, self.niter, self.tol = k, niter, tol
        self.largest, self.tracker = largest, tracker
        self.iparams = {"k": k, "niter": niter}
        self.fparams = {"tol": tol}
        self.bparams = {"largest": largest}
        self.ivars = {"istep": 0, "converged_count": 0}
        self.tvars: dict[str, Tensor] = {}

    def batch(
        self, A: Tensor, B: Tensor | None, X: Tensor, iK: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Each matrix of a batch in turn: they need different numbers of steps."""
        if A.dim() == 2:
            return self.solve(A, B, X, iK)
        m, shape = A.shape[-1], A.shape[:-2]

        def flat(t: Tensor) -> Tensor:
            return t.expand(*shape, *t.shape[-2:]).reshape(-1, *t.shape[-2:])

        parts = [None if t is None else flat(t) for t in (A, B, X, iK)]
        found = [
            self.solve(*(None if part is None else part[i] for part in parts))  # type: ignore[arg-type]
            for i in range(len(parts[0]))  # type: ignore[arg-type]
        ]
        stack = _C._VariableFunctions.stack
        values = stack([E for E, _ in found]).reshape(*shape, self.k)
        return values, stack([V for _, V in found]).reshape(*shape, m, self.k)

    def solve(
        self, A: Tensor, B: Tensor | None, X: Tensor, iK: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Solves for one matrix."""
        n = X.shape[-1]
        self.A, self.B = A, B
        self.iparams.update(m=A.shape[-1], n=n)
        norm_a, norm_b = _norm(A), 1.0 if B is None else _norm(B)
        X = _orthonormal(X, B)
        E, Z = self.best(X.mH @ (A @ X), n)
        X = X @ Z
        P: Tensor | None = None
        step = 0
        while True:
            R = A @ X - _times(B, X) * E
            scale = norm_a + E.abs() * norm_b
            error = _C._linalg.linalg_vector_norm(R, 2, -2) / (
                _C._linalg.linalg_vector_norm(X, 2, -2) * scale.clamp(min=1e-300)
            )
            converged = int((error[: self.k] < self.tol).sum())
            self.E, self.X, self.R = E, X, R
            self.ivars = {"istep": step, "converged_count": converged}
            self.tvars = {"rerr": error}
            if self.tracker is not None:
                self.tracker(self)
            if converged >= self.k or step == self.niter:
                return E[: self.k], X[:, : self.k]
            step += 1
            W = R if iK is None else iK @ R
            more = W if P is None else _C._VariableFunctions.cat([W, P], -1)
            # Twice, because one pass leaves rounding errors of the large values.
            for _ in range(2):
                more = more - X @ (_times(B, X).mH @ more)
            Q = _orthonormal(more, B)
            basis = _C._VariableFunctions.cat([X, Q], -1)
            E, Z = self.best(basis.mH @ (A @ basis), n)
            P = Q @ Z[n:]
            X = X @ Z[:n] + P

    def best(self, projected: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """The n pairs of a small Hermitian matrix that are looked for, best first."""
        w, v = _C._linalg.linalg_eigh((projected + projected.mH) / 2)
        if self.largest:
            w, v = w.flip(-1), v.flip(-1)
        return w[:n], v[:, :n]


def _times(B: Tensor | None, x: Tensor) -> Tensor:
    return x if B is None else B @ x


def _norm(A: Tensor) -> float:
    values = A.coalesce().values() if A.is_sparse else A
    return float(_C._linalg.linalg_vector_norm(values))


def _orthonormal(x: Tensor, B: Tensor | None) -> Tensor:
    """Orthonormal columns (with respect to B) that span what those of x do."""
    length = _C._linalg.linalg_vector_norm(x, 2, -2, True)
    tiny = finfo(x.dtype).tiny
    x = (x / length.clamp(min=tiny))[:, (length > tiny)[0]]
    for _ in range(2):
        gram = x.mH @ _times(B, x)
        w, v = _C._linalg.linalg_eigh((gram + gram.mH) / 2)
        bound = max(_INDEPENDENT, 10 * finfo(x.dtype).eps)
        keep = w > bound * w.max() if len(w) else w > 0
        x = x @ (v[:, keep] / w[keep].sqrt())
    return x


def _differentiable(
    A: Tensor, B: Tensor | None, vectors: Tensor, solver: _Solver
) -> tuple[Tensor, Tensor]:
    """The same eigenpairs by the dense problem, whose derivatives are known."""
    if A.is_sparse or (B is not None and B.is_sparse):
        raise ValueError(
            "lobpcg.backward does not support sparse input yet."
            "Note that lobpcg.forward does though."
        )
    linalg = _C._linalg
    if B is None:
        w, v = linalg.linalg_eigh(A)
    else:
        factor = linalg.linalg_cholesky(B)
        solve = linalg.linalg_solve_triangular
        inner = solve(factor, solve(factor, A, upper=False).mH, upper=False).mH
        w, v = linalg.linalg_eigh((inner + inner.mH) / 2)
        v = solve(factor.mH, v, upper=True)
    if solver.largest:
        w, v = w.flip(-1), v.flip(-1)
    w, v = w[..., : solver.k], v[..., : solver.k]
    # (The phases of the computed vectors.)
    with no_grad():
        phase = (v.conj() * _times(B, vectors)).sum(-2, keepdim=True).sgn()
    return w, v * phase


_make_overridable(globals(), __all__)
