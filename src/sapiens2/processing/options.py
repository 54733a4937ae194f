"""The settings of one preprocessing call, checked and ready to use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict, cast

import numpy as np
import torch
from transformers.image_transforms import get_size_with_aspect_ratio
from transformers.image_utils import SizeDict

from sapiens2.errors import InputError
from sapiens2.types import SizeHW

__all__ = ["PreprocessOptions", "ReturnTensors", "checked_values", "scaled_size_hw"]

ReturnTensors: TypeAlias = Literal["pt", "np"] | None


@dataclass(frozen=True)
class PreprocessOptions:
    """What one call of the image processor does; immutable, so that calls share nothing.

    Attributes:
        size: Size to resize to, in one of transformers' forms; ``None`` leaves sizes alone (``do_resize=False``).
        crop_hw: ``(height, width)`` of the centre crop, or ``None``.
        model_hw: ``(height, width)`` of ``size`` if it is given that way, whether or not whole images are resized:
            the size of person crops.
        resample: PIL's code of the filter.
        pad: Whether images keep their aspect and are padded.
        pad_hw: Size to pad to where images are not resized; ``None`` is the largest of the batch.
        rescale: Factor for pixel values, or ``None``.
        mean: Mean per channel to subtract after rescaling, or ``None``.
        std: Standard deviation per channel to divide by, or ``None``.
        convert_rgb: Whether images that are not RGB are converted; otherwise they are refused.
        reduce_labels: Whether class 0 becomes 255 and the others move down by one.
        heatmap_stride: Pixels of the model's input per heatmap pixel.
        heatmap_sigma: Standard deviation of a heatmap's peak, in heatmap pixels.
        input_data_format: Layout of array images, or ``None`` to infer it.
        device: Where to compute; ``None`` is where the first image is.
        return_tensors: ``"pt"``, ``"np"``, or ``None`` for lists of tensors.
    """

    size: SizeDict | None
    crop_hw: SizeHW | None
    model_hw: SizeHW | None
    resample: int
    pad: bool
    pad_hw: SizeHW | None
    rescale: float | None
    mean: tuple[float, float, float] | None
    std: tuple[float, float, float] | None
    convert_rgb: bool
    reduce_labels: bool
    heatmap_stride: int
    heatmap_sigma: float
    input_data_format: str | None
    device: torch.device | None
    return_tensors: ReturnTensors

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> PreprocessOptions:
        """Check settings that follow the names of the image processor's arguments.

        Args:
            settings: Every argument of the image processor, sizes as transformers' ``SizeDict``.

        Returns:
            The options.

        Raises:
            InputError: A setting has no usable value, or two contradict each other.
        """
        size, crop_size, pad_size = settings["size"], settings["crop_size"], settings["pad_size"]
        if settings["do_resize"] and size is None:
            raise InputError("do_resize=True needs a size.")
        model_hw = _fixed_hw(size)
        pad_hw = _fixed_hw(pad_size)
        _check_padding(settings, model_hw, pad_hw)
        return cls(
            size=size if settings["do_resize"] else None,
            crop_hw=_required_hw(crop_size, "crop_size", "do_center_crop") if settings["do_center_crop"] else None,
            model_hw=model_hw,
            pad=bool(settings["do_pad"]),
            pad_hw=pad_hw,
            convert_rgb=settings["do_convert_rgb"] is not False,
            reduce_labels=bool(settings["do_reduce_labels"]),
            input_data_format=_text(settings["input_data_format"]),
            device=None if settings["device"] is None else _device(settings["device"]),
            return_tensors=_return_tensors(settings["return_tensors"]),
            **checked_values(settings),
        )

    def person_hw(self) -> SizeHW:
        """Size ``(height, width)`` of person crops.

        Raises:
            InputError: ``size`` is not given as height and width.
        """
        if self.model_hw is None:
            raise InputError("boxes need size={'height': ..., 'width': ...}: the size of the person crops.")
        return self.model_hw


class Values(TypedDict):
    """The options that are numbers, under the names of :class:`PreprocessOptions`."""

    resample: int
    rescale: float | None
    mean: tuple[float, float, float] | None
    std: tuple[float, float, float] | None
    heatmap_stride: int
    heatmap_sigma: float


def checked_values(settings: Mapping[str, Any]) -> Values:
    """Read the settings that are numbers and do not depend on others.

    Args:
        settings: As for :meth:`PreprocessOptions.from_settings`; those that are not read may be missing.

    Returns:
        The options of these settings.

    Raises:
        InputError: A number that is used is no number, not finite or out of range.
    """
    normalize = bool(settings["do_normalize"])
    return Values(
        resample=_filter_code(settings["resample"]),
        rescale=_positive(settings["rescale_factor"], "rescale_factor") if settings["do_rescale"] else None,
        mean=_per_channel(settings["image_mean"], "image_mean") if normalize else None,
        std=_per_channel(settings["image_std"], "image_std", positive=True) if normalize else None,
        heatmap_stride=_stride(settings["keypoint_heatmap_downscale_factor"]),
        heatmap_sigma=_positive(settings["keypoint_heatmap_sigma"], "keypoint_heatmap_sigma"),
    )


def scaled_size_hw(size: SizeDict, source_hw: SizeHW) -> SizeHW:
    """Size that an image is resized to.

    Args:
        size: ``height`` and ``width``; or ``shortest_edge``, ``longest_edge`` or both; or ``max_height`` and
            ``max_width``. All but the first keep the aspect.
        source_hw: ``(height, width)`` of the image.

    Returns:
        ``(height, width)``, each at least 1.

    Raises:
        InputError: ``size`` has another form.
    """
    fixed = _fixed_hw(size)
    if fixed is not None:
        return fixed
    if size.shortest_edge and size.longest_edge:
        height, width = get_size_with_aspect_ratio(source_hw, size.shortest_edge, size.longest_edge)
        return max(1, height), max(1, width)
    if size.max_height and size.max_width:
        scale = min(size.max_height / source_hw[0], size.max_width / source_hw[1])
    elif size.shortest_edge:
        scale = size.shortest_edge / min(source_hw)
    elif size.longest_edge:
        scale = size.longest_edge / max(source_hw)
    else:
        raise InputError(
            f"size is {dict(size)}; expected height and width, shortest_edge, longest_edge or max_height and max_width."
        )
    # rounded down, after a guard against 31.999... where the product is whole
    return max(1, int(source_hw[0] * scale + 1e-6)), max(1, int(source_hw[1] * scale + 1e-6))


def _check_padding(settings: Mapping[str, Any], model_hw: SizeHW | None, pad_hw: SizeHW | None) -> None:
    if not settings["do_pad"]:
        return
    if settings["do_resize"] and model_hw is None:
        raise InputError("do_pad=True with do_resize=True needs size={'height': ..., 'width': ...} to pad to.")
    if settings["do_resize"] and pad_hw not in {None, model_hw}:
        raise InputError(f"pad_size {pad_hw} differs from size {model_hw}: a resized image is padded to size. Omit it.")


def _fixed_hw(size: SizeDict | None) -> SizeHW | None:
    return (size.height, size.width) if size is not None and size.height and size.width else None


def _required_hw(size: SizeDict | None, name: str, reason: str) -> SizeHW:
    fixed = _fixed_hw(size)
    if fixed is None:
        raise InputError(f"{reason}=True needs {name}={{'height': ..., 'width': ...}}.")
    return fixed


def _per_channel(value: Any, name: str, positive: bool = False) -> tuple[float, float, float]:
    numbers: list[Any] = [value] if isinstance(value, int | float) else list(value if value is not None else ())
    if len(numbers) == 1:
        numbers *= 3
    if len(numbers) != 3 or not all(_is_finite(number) and (number > 0 or not positive) for number in numbers):
        raise InputError(f"{name} is {value}; expected one finite {'positive ' if positive else ''}number, or three.")
    return cast("tuple[float, float, float]", tuple(float(number) for number in numbers))


def _is_finite(value: Any) -> bool:
    is_real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return is_real and math.isfinite(value)


def _positive(value: Any, name: str) -> float:
    if not (_is_finite(value) and value > 0):
        raise InputError(f"{name} is {value}; expected a finite number above zero.")
    return float(value)


def _stride(value: Any) -> int:
    if not (_is_finite(value) and value >= 1 and int(value) == value):
        raise InputError(f"keypoint_heatmap_downscale_factor is {value}; expected a whole number of at least 1.")
    return int(value)


def _filter_code(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(
            f"resample is {value!r}; expected PIL's code of a filter: nearest (0), bilinear (2) or bicubic (3)."
        )
    return int(value)


def _device(value: Any) -> torch.device:
    try:
        device = torch.device(value)
        torch.empty(0, device=device)  # a name can be valid on a machine that lacks the device
    except (AssertionError, RuntimeError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"device {value!r} cannot be used: {reason}; expected one of this machine, as 'cpu'."
        ) from error
    if device.type == "meta":
        raise InputError("device 'meta' holds no values; expected a device of this machine, as 'cpu'.")
    return device


def _text(value: Any) -> str | None:
    return None if value is None else str(getattr(value, "value", value))


def _return_tensors(value: Any) -> ReturnTensors:
    kind = _text(value)
    if kind not in {None, "pt", "np"}:
        raise InputError(f"return_tensors is {kind!r}; expected 'pt', 'np' or None.")
    return cast("ReturnTensors", kind)
