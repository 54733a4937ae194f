"""Configuration of the decode heads."""

from __future__ import annotations

from typing import Any, ClassVar

from transformers import PreTrainedConfig

from sapiens2.errors import ConfigurationError
from sapiens2.models.field_types import check_field_types

__all__ = ["Sapiens2HeadConfig", "drop_defaults", "require"]


def drop_defaults(fields: dict[str, Any], additions: dict[str, Any]) -> dict[str, Any]:
    """Remove the fields that transformers does not know, where they hold their defaults."""
    return {key: value for key, value in fields.items() if key not in additions or value != additions[key]}


def require(condition: bool, message: str) -> None:
    """Raise :class:`ConfigurationError` unless the condition holds."""
    if not condition:
        raise ConfigurationError(message)


class Sapiens2HeadConfig(PreTrainedConfig):
    """Decode head: a stack of x2 upsampling stages, refinement convolutions and a 1x1 predictor.

    Attributes:
        upsample_out_channels: Output channels of each x2 stage; ``None`` leaves the head to the task's published one.
        upsample_kernel_sizes: Kernel of each stage (default ``upsample_kernel_size`` for all); odd with pixel
            shuffle, 4 to double the size exactly with transposed convolutions.
        upsample_kernel_size: Kernel where no list is given.
        use_pixel_shuffle: Convolution and pixel shuffle (with an input convolution) instead of transposed convolutions.
        conv_out_channels: Output channels of each refinement convolution; ``None`` or empty for none.
        conv_kernel_sizes: Kernel of each refinement convolution (default ``conv_kernel_size`` for all); odd with pixel
            shuffle, and 1 to keep the size without (there they are not padded).
        conv_kernel_size: Kernel where no list is given.
        scale_conv_out_channels: Channels of the stride-2 convolutions of the pointmap's scale branch; ``None``: no
            branch.
        scale_conv_kernel_sizes: Odd kernel of each (default ``scale_conv_kernel_size`` for all).
        scale_conv_kernel_size: Kernel where no list is given.
        scale_final_input_size: Length of the flattened feature given to the scale MLP; inferred from the image size.
        scale_final_hidden_sizes: Hidden widths of the scale MLP.
        norm_type: ``"instance"`` (no parameters) or ``"rms"`` (across channels at each pixel, learned weight: albedo).

    Raises:
        ConfigurationError: Lists of different lengths, widths below 1, a kernel that the head cannot use.
    """

    model_type = "sapiens2_head"
    additions: ClassVar[dict[str, Any]] = {"norm_type": "instance"}

    upsample_out_channels: list[int] | None = None
    upsample_kernel_sizes: list[int] | None = None
    upsample_kernel_size: int = 4
    use_pixel_shuffle: bool | None = None
    conv_out_channels: list[int] | None = None
    conv_kernel_sizes: list[int] | None = None
    conv_kernel_size: int = 1
    scale_conv_out_channels: list[int] | None = None
    scale_conv_kernel_sizes: list[int] | None = None
    scale_conv_kernel_size: int = 1
    scale_final_input_size: int | None = None
    scale_final_hidden_sizes: list[int] | None = None
    norm_type: str = "instance"

    def __post_init__(self, **kwargs: Any) -> None:
        check_field_types(self, Sapiens2HeadConfig)
        for stack in ("upsample", "conv", "scale_conv"):
            channels = getattr(self, f"{stack}_out_channels")
            if channels is not None and getattr(self, f"{stack}_kernel_sizes") is None:
                setattr(self, f"{stack}_kernel_sizes", [getattr(self, f"{stack}_kernel_size")] * len(channels))
        super().__post_init__(**kwargs)
        self._check()

    def _check(self) -> None:
        for stack in ("upsample", "conv", "scale_conv"):
            channels = getattr(self, f"{stack}_out_channels")
            kernels = getattr(self, f"{stack}_kernel_sizes")
            require(
                channels is not None or not kernels,
                f"{stack}_kernel_sizes={kernels} needs {stack}_out_channels, which is None",
            )
            if channels is None:
                continue
            require(
                len(channels) == len(kernels),
                f"{stack}_kernel_sizes has {len(kernels)} entries and {stack}_out_channels has {len(channels)}; "
                "they must be of the same length",
            )
            require(min(channels, default=1) >= 1, f"{stack}_out_channels={channels} must be 1 or more")
            padded = stack == "scale_conv" or bool(self.use_pixel_shuffle)
            require(
                all(kernel >= 1 and (kernel % 2 == 1 or not padded) for kernel in kernels),
                f"{stack}_kernel_sizes={kernels} must be 1 or more"
                + (", and odd, so that padding keeps the size" if padded else "")
                + (" (use_pixel_shuffle=True)" if self.use_pixel_shuffle else ""),
            )
        hidden = self.scale_final_hidden_sizes
        require(
            hidden is None or (len(hidden) > 0 and min(hidden) >= 1),
            f"scale_final_hidden_sizes={hidden} must hold at least one width, each 1 or more",
        )
        size = self.scale_final_input_size
        require(size is None or size >= 1, f"scale_final_input_size={size} must be 1 or more")
        require(self.norm_type in ("instance", "rms"), f"norm_type={self.norm_type!r} must be 'instance' or 'rms'")

    @property
    def is_set(self) -> bool:
        """Whether a head is described; otherwise a task model takes its task's published one."""
        return self.upsample_out_channels is not None or self.conv_out_channels is not None

    @property
    def changed_fields(self) -> dict[str, Any]:
        """Fields that differ from those of a head that describes nothing."""
        defaults = type(self)()
        names = sorted(type(self).__annotations__.keys() - {"additions"})
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(defaults, name)}

    @property
    def has_scale_branch(self) -> bool:
        """Whether the pointmap's scale branch is described."""
        return self.scale_conv_out_channels is not None and self.scale_final_hidden_sizes is not None

    def to_dict(self) -> dict[str, Any]:
        """All fields; those that transformers does not know only where they differ from their default."""
        return drop_defaults(super().to_dict(), self.additions)
