"""How checkpoints are written and read: what :func:`torch.save` and :func:`torch.load` do."""

__all__: list[str] = []
