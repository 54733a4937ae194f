"""From samples to what the models take, for transformers' ``Trainer`` or any other loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sapiens2.codecs.udp_heatmap import encode_heatmaps
from sapiens2.data.augment.affine import Affine
from sapiens2.data.augment.people import PersonWindow
from sapiens2.data.augment.warp import Warp, warp_sample
from sapiens2.data.sample import Sample
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.geometry import canonical_scale
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.types import TASKS, SizeHW, Task

__all__ = ["REQUIRED_TRUTH", "Targets", "collate_targets"]

REQUIRED_TRUTH: dict[Task, tuple[str, ...]] = {
    "pose": ("keypoints",),
    "seg": ("parts",),
    "normal": ("normals",),
    "pointmap": ("pointmap", "intrinsics"),
    "matting": ("alpha", "foreground"),
    "albedo": ("albedo",),
}
"""Fields of a sample that the labels of a task are made from."""


@dataclass(frozen=True)
class Targets:
    """Makes the input and the labels of one model from a sample.

    A sample that has not the size of the model's input is brought to it first, image and truth alike: as the processor
    would, stretched or letterboxed, and for poses by the window around its one person.

    Attributes:
        task: The task.
        processor: Gives the size, the normalisation and the heatmaps' stride and sigma.
        label_stride: Pixels of the input per pixel of the labels, for models whose head ends before the full size.
            Heatmaps have the processor's.

    Raises:
        ConfigurationError: The processor has no fixed size, or crops; or the stride does not divide the size.
    """

    task: Task
    processor: Sapiens2ImageProcessor = field(default_factory=Sapiens2ImageProcessor, repr=False)
    label_stride: int = 1

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ConfigurationError(f"There is no task {self.task!r}; expected one of {', '.join(TASKS)}.")
        size = dict(self.processor.size)
        if not (size.get("height") and size.get("width")) or self.processor.do_center_crop:
            raise ConfigurationError(
                f"The processor has size {size} and do_center_crop={self.processor.do_center_crop}; targets need "
                "size={'height': ..., 'width': ...} without a centre crop."
            )
        if self.label_stride < 1 or any(side % self.label_stride for side in self.size_hw):
            raise ConfigurationError(f"label_stride is {self.label_stride}; expected a divisor of {self.size_hw}.")

    @property
    def size_hw(self) -> SizeHW:
        """Size of the model's input."""
        size = dict(self.processor.size)
        return int(size["height"]), int(size["width"])

    def __call__(self, sample: Sample) -> dict[str, Tensor]:
        """Make the tensors of one sample, without a batch axis.

        Returns:
            ``pixel_values`` ``(3, H, W)`` float32, and as ``labels``:

            - pose: heatmaps ``(K, h, w)``, with ``label_weights`` ``(K,)``;
            - seg: class ids ``(H, W)`` int64;
            - normal: unit vectors ``(3, H, W)``, with ``label_mask`` ``(H, W)`` bool;
            - pointmap: canonical points ``(3, H, W)``, with ``label_mask``, ``label_scales`` ``(1,)``, from the focal
              length in pixels of the input, and ``label_intrinsics`` ``(3, 3)`` in pixels of the labels;
            - matting: premultiplied RGB and alpha ``(4, H, W)``, with ``label_mask``;
            - albedo: sRGB ``(3, H, W)``, with ``label_mask``.

            Maps are zero where the mask is false, and smaller than the input by ``label_stride``.

        Raises:
            InputError: The sample lacks the truth of the task; or, for poses, has not one person.
        """
        missing = [name for name in REQUIRED_TRUTH[self.task] if getattr(sample, name) is None]
        if missing:
            raise InputError(
                f"{sample.label(missing[0])} is not known, and the labels of {self.task} are made from it. "
                f"Known: {', '.join(sample.truths) or 'nothing'}."
            )
        fitted = self._fitted(sample)
        values = self.processor(fitted.image, do_resize=False, do_pad=False, return_tensors="pt")
        labels = self._heatmaps(fitted) if self.task == "pose" else self._maps(fitted)
        return {"pixel_values": values["pixel_values"][0], **labels}

    def _fitted(self, sample: Sample) -> Sample:
        if sample.size_hw == self.size_hw:
            return sample
        if self.task == "pose":
            return Warp((PersonWindow.plain(self.size_hw),), chosen="udp")(sample, np.random.default_rng(0))
        whole = Affine.identity(sample.size_hw)
        fit = whole.letterboxed(self.size_hw) if self.processor.do_pad else whole.resized(self.size_hw)
        return warp_sample(sample, fit)

    def _maps(self, fitted: Sample) -> dict[str, Tensor]:
        sample = fitted
        if self.label_stride > 1:
            height, width = (side // self.label_stride for side in self.size_hw)
            sample = warp_sample(fitted, Affine.identity(self.size_hw).resized((height, width)))
        if self.task == "seg":
            assert sample.parts is not None
            return {"labels": torch.from_numpy(sample.parts.astype(np.int64))}
        if self.task == "matting":
            assert sample.alpha is not None
            assert sample.foreground is not None
            mask = np.ones(sample.size_hw, np.bool_) if sample.mask is None else sample.mask
            return _masked(np.concatenate([sample.foreground, sample.alpha[None]]), mask)
        if self.task == "pointmap":
            assert fitted.intrinsics is not None
            return _canonical(sample, float(canonical_scale(float(fitted.intrinsics[0, 0]))))
        values = sample.normals if self.task == "normal" else sample.albedo
        assert values is not None
        return _masked(values, _where_known(values, sample))

    def _heatmaps(self, sample: Sample) -> dict[str, Tensor]:
        assert sample.keypoints is not None
        if len(sample.keypoints) != 1:
            raise InputError(
                f"{sample.label('keypoints')}: {len(sample.keypoints)} people; expected one. Use SelectPerson, or a "
                "data set that gives one person at a time."
            )
        points = torch.from_numpy(sample.keypoints)
        stride = int(self.processor.keypoint_heatmap_downscale_factor)
        heatmap_hw = (self.size_hw[0] // stride, self.size_hw[1] // stride)
        sigma = float(self.processor.keypoint_heatmap_sigma)
        maps, weights = encode_heatmaps(points[..., :2], points[..., 2], self.size_hw, heatmap_hw, sigma)
        return {"labels": maps[0], "label_weights": weights[0]}


def collate_targets(batch: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
    """Stack the tensors of several samples: the ``data_collator`` of a ``Trainer``.

    Args:
        batch: What :class:`Targets` returned, for each sample.

    Returns:
        The same names, with a batch axis in front.

    Raises:
        InputError: The batch is empty, or samples differ in their names or shapes.
    """
    if not batch:
        raise InputError("There are no samples to collate.")
    for index, entry in enumerate(batch):
        if entry.keys() != batch[0].keys():
            raise InputError(f"Sample {index} of the batch has {sorted(entry)}, and sample 0 has {sorted(batch[0])}.")
        for name, value in entry.items():
            if value.shape != batch[0][name].shape:
                raise InputError(
                    f"{name} of sample {index} of the batch has shape {tuple(value.shape)}, and that of sample 0 "
                    f"{tuple(batch[0][name].shape)}. Samples of a batch need one size and one list of keypoints."
                )
    return {name: torch.stack([entry[name] for entry in batch]) for name in batch[0]}


def _where_known(values: NDArray[np.float32], sample: Sample) -> NDArray[np.bool_]:
    known = np.asarray(np.isfinite(values).all(axis=0))
    return known if sample.mask is None else known & sample.mask


def _canonical(sample: Sample, scale: float) -> dict[str, Tensor]:
    assert sample.pointmap is not None
    assert sample.intrinsics is not None
    return {
        **_masked(sample.pointmap * np.float32(scale), _where_known(sample.pointmap, sample)),
        "label_scales": torch.tensor([scale], dtype=torch.float32),
        "label_intrinsics": torch.from_numpy(sample.intrinsics.astype(np.float32)),
    }


def _masked(values: NDArray[np.float32], mask: NDArray[np.bool_]) -> dict[str, Tensor]:
    return {
        "labels": torch.from_numpy(np.where(mask, values, np.float32(0))),
        "label_mask": torch.from_numpy(np.ascontiguousarray(mask)),
    }
