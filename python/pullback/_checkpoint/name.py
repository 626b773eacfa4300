"""The modules in which PyTorch has classes that are elsewhere here, as files name them."""

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
    ("_hooks", "RemovableHandle"): ("torch.utils.hooks", "RemovableHandle"),
    ("nested._jagged", "NestedTensor"): ("torch.nested._internal.nested_tensor", "NestedTensor"),
    ("_utils", "_rebuild_njt"): ("torch.nested._internal.nested_tensor", "_rebuild_njt"),
    ("masked._tensor", "MaskedTensor"): ("torch.masked.maskedtensor.core", "MaskedTensor"),
    ("nn.attention._block_mask", "BlockMask"): ("torch.nn.attention.flex_attention", "BlockMask"),
    **{
        (module, name): (f"torch.nn.modules.{theirs}", name)
        for module, theirs, names in (
            (
                "nn.modules._fractional",
                "pooling",
                ("FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d"),
            ),
            (
                "nn.modules._lazy_conv",
                "conv",
                tuple(f"LazyConv{kind}{n}d" for kind in ("", "Transpose") for n in (1, 2, 3)),
            ),
            ("nn.modules._lazy_norm", "batchnorm", tuple(f"LazyBatchNorm{n}d" for n in (1, 2, 3))),
            (
                "nn.modules._lazy_norm",
                "instancenorm",
                tuple(f"LazyInstanceNorm{n}d" for n in (1, 2, 3)),
            ),
        )
        for name in names
    },
    **{
        (f"distributions.{module}", name): ("torch.distributions.transforms", name)
        for module, names in {
            "_joint_transform": ("CatTransform", "StackTransform"),
            "_matrix_transform": (
                "CorrCholeskyTransform",
                "LowerCholeskyTransform",
                "PositiveDefiniteTransform",
                "SoftmaxTransform",
                "StickBreakingTransform",
            ),
            "_transform": ("ComposeTransform", "IndependentTransform", "Transform"),
        }.items()
        for name in names
    },
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
