"""Keypoint heatmaps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.utils.generic import can_return_tuple

from sapiens2 import losses
from sapiens2.errors import InputError
from sapiens2.models.outputs import Sapiens2PoseEstimatorOutput
from sapiens2.models.task_model import Fields, Sapiens2TaskModel

__all__ = ["Sapiens2ForPoseEstimation", "flip_back"]


class Sapiens2ForPoseEstimation(Sapiens2TaskModel):
    """Keypoint heatmaps."""

    task = "pose"
    output_class = Sapiens2PoseEstimatorOutput

    def _fields(self, features: Tensor) -> Fields:
        return {"heatmaps": self.decode_head(features)}

    @can_return_tuple
    def forward(
        self,
        pixel_values: Tensor,
        flip_pairs: Tensor | list[list[int]] | None = None,
        labels: Tensor | None = None,
        label_weights: Tensor | None = None,
        **kwargs: Any,
    ) -> Sapiens2PoseEstimatorOutput:
        """Predict heatmaps.

        Args:
            pixel_values: ``(persons, channels, height, width)``, normalised crops.
            flip_pairs: ``(pairs, 2)`` keypoints that mirror each other. When given, ``pixel_values`` are taken to be
                mirrored and the heatmaps are turned back (left-right and in their order) before they are returned.
            labels: Target heatmaps ``(persons, num_keypoints, h, w)``, of any height and width.
            label_weights: ``(persons, num_keypoints)``, ``(persons, num_keypoints, 1, 1)`` or full size; 0 is
                invisible.
            **kwargs: ``output_hidden_states``, ``output_attentions``, ``return_dict``, and arguments of the attention.

        Returns:
            ``heatmaps`` ``(persons, num_keypoints, h, w)`` and, with labels, the weighted mean squared error.

        Raises:
            InputError: Shapes that do not fit; a keypoint of ``flip_pairs`` that does not exist.
        """

        def loss(fields: Fields) -> Tensor:
            assert fields["heatmaps"] is not None
            assert labels is not None
            return losses.heatmap_mse_loss(fields["heatmaps"], labels, label_weights)

        output = self._predict(pixel_values, None if labels is None else loss, **kwargs)
        if flip_pairs is not None:
            output["heatmaps"] = flip_back(output["heatmaps"], flip_pairs)
        return output


def flip_back(heatmaps: Tensor, flip_pairs: Tensor | list[list[int]]) -> Tensor:
    """Heatmaps of a mirrored image as those of the image itself.

    Args:
        heatmaps: ``(persons, num_keypoints, h, w)``.
        flip_pairs: ``(pairs, 2)``; keypoints in no pair mirror to themselves.

    Raises:
        InputError: Not pairs, or a keypoint that does not exist.
    """
    num_keypoints = heatmaps.shape[1]
    pairs = torch.as_tensor(flip_pairs, dtype=torch.long, device=heatmaps.device)
    if pairs.numel() == 0:
        return heatmaps.flip(-1)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"flip_pairs must be (pairs, 2), got {tuple(pairs.shape)}")
    if not torch.compiler.is_compiling() and not (int(pairs.min()) >= 0 and int(pairs.max()) < num_keypoints):
        named = f"{int(pairs.min())} to {int(pairs.max())}"
        raise InputError(f"flip_pairs name keypoints {named}, and the model has 0 to {num_keypoints - 1}")
    order = torch.arange(num_keypoints, device=heatmaps.device)
    order = order.scatter(0, torch.cat((pairs[:, 0], pairs[:, 1])), torch.cat((pairs[:, 1], pairs[:, 0])))
    return heatmaps.index_select(1, order).flip(-1)
