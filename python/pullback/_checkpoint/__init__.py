"""How checkpoints are written and read: the code of :func:`torch.save` and :func:`torch.load`."""

__all__: list[str] = []
