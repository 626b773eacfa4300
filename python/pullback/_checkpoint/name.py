"""Where PyTorch has classes that are in another module here: files name them as PyTorch does."""

from __future__ import annotations

__all__ = ["OURS", "THEIRS"]

# Module and name here, and there.
THEIRS: dict[tuple[str, str], tuple[str, str]] = {
    ("_tensor", "Tensor"): ("torch", "Tensor"),
    ("nn.modules.attention", "MultiheadAttention"): (
        "torch.nn.modules.activation",
        "MultiheadAttention",
    ),
    ("nn.modules.hook", "BoundHook"): ("torch.nn.modules.module", "_WrappedHook"),
    **{
        ("nn.modules.batchnorm", name): ("torch.nn.modules.instancenorm", name)
        for name in ("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")
    },
    **{
        (f"optim.lr_scheduler.{module}", name): ("torch.optim.lr_scheduler", name)
        for module, names in {
            "chain": ("ChainedScheduler", "SequentialLR"),
            "cycle": ("CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"),
            "decay": (
                "ConstantLR",
                "CosineAnnealingLR",
                "ExponentialLR",
                "LambdaLR",
                "LinearLR",
                "MultiStepLR",
                "MultiplicativeLR",
                "PolynomialLR",
                "StepLR",
            ),
            "plateau": ("ReduceLROnPlateau",),
            "schedule": ("LRScheduler",),
        }.items()
        for name in names
    },
}
OURS = {theirs: ours for ours, theirs in THEIRS.items()}
