"""Meshes of devices: of one device here, along as many dimensions as are asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _C, _answer
from . import _group

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Processes in rows and columns: one process.

    Args:
        device_type: the devices' type.
        mesh: the processes' numbers, a tensor or lists of lists.
        mesh_dim_names: names for the dimensions.

    Raises:
        RuntimeError: for more than one process, and for another number of names.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        _groups: list[Any] | None = None,
    ) -> None:
        from .. import as_tensor

        self.device_type = device_type
        self.mesh: Tensor = as_tensor(mesh, dtype=_C.int64)
        if self.mesh.numel() != 1 or int(self.mesh) != 0:
            raise RuntimeError(
                f"a mesh of the processes {self.mesh.tolist()} is not available: "
                f"{_answer.why('pullback.distributed')}"
            )
        if mesh_dim_names is not None and len(mesh_dim_names) != self.mesh.ndim:
            raise RuntimeError(
                f"mesh_dim_names must have a name for each dimension: {mesh_dim_names} for "
                f"{self.mesh.ndim}"
            )
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        made = [_group.new_group([0]) for _ in range(self.mesh.ndim if _groups is None else 0)]
        self._groups = made if _groups is None else _groups

    @property
    def shape(self) -> tuple[int, ...]:
        """How many processes there are along each dimension: 1."""
        return tuple(self.mesh.shape)

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return int(self.mesh.ndim)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many processes there are, along a dimension or in all: 1."""
        return 1 if mesh_dim is None else int(self.mesh.shape[mesh_dim])

    def _dimension(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions, so that a dimension must "
                    "be given"
                )
            return 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"Mesh dimension '{mesh_dim}' does not exist")
            return (self.mesh_dim_names or ()).index(mesh_dim)
        return range(self.ndim)[mesh_dim]

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group along a dimension.

        Raises:
            RuntimeError: without a dimension, where there are several.
            KeyError: for a name that is none.
        """
        return self._groups[self._dimension(mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """The groups along all dimensions."""
        return list(self._groups)

    def get_rank(self) -> int:
        """The number of this process: 0."""
        return 0

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The number of this process along a dimension: 0.

        Raises:
            RuntimeError: without a dimension, where there are several.
        """
        self._dimension(mesh_dim)
        return 0

    def get_coordinate(self) -> tuple[int, ...]:
        """The numbers of this process along all dimensions."""
        return (0,) * self.ndim

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The mesh of some dimensions only."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        mesh = self.mesh.reshape([1] * len(names))
        groups = [self.get_group(name) for name in names]
        return DeviceMesh(self.device_type, mesh, mesh_dim_names=names, _groups=groups)

    def __enter__(self) -> DeviceMesh:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.device_type, self.shape, self.mesh_dim_names

    def __repr__(self) -> str:
        names = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh({self.shape}, '{self.device_type}'{names})"


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
) -> DeviceMesh:
    """A mesh of all processes; makes the group of all of them if there is none.

    Args:
        device_type: the devices' type, without a number.
        mesh_shape: how many processes there are along each dimension: 1.
        mesh_dim_names: names for the dimensions.

    Raises:
        RuntimeError: for more than one process, names that stand twice, and devices with numbers.
    """
    from .. import zeros

    if not device_type.isalpha():
        raise RuntimeError(f"Device type with index is not supported but got {device_type}.")
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
        raise RuntimeError("Each mesh_dim_name must be unique.")
    if math.prod(mesh_shape) != 1:
        raise RuntimeError(
            f"a mesh of {math.prod(mesh_shape)} processes is not available: "
            f"{_answer.why('pullback.distributed')}"
        )
    if not _group.is_initialized():
        _group.start(None, None, None, -1, -1, None)
    mesh = zeros(mesh_shape, dtype=_C.int64)
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)
