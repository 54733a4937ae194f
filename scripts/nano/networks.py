"""What is trained: one trunk with a small head for every task, or a task's own model; and their losses."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from scripts.nano.batches import HEATMAP_SIGMA
from scripts.nano.pool import SIZE_HW
from torch import Tensor, nn

from sapiens2 import losses
from sapiens2.assets import keypoint_table, part_table
from sapiens2.codecs import encode_heatmaps
from sapiens2.models import Sapiens2Config, Sapiens2Model
from sapiens2.models.heads import Sapiens2Head, Sapiens2PointmapScaleHead
from sapiens2.models.tasks import TASK_MODELS
from sapiens2.types import TASKS, Task

__all__ = ["SharedNetwork", "TaskNetwork", "task_loss", "task_network_from_shared"]

SHARED_STAGES = 2
"""Doublings of the shared heads: maps of a quarter of the input's size."""

FINE = 2
"""Pixels of the picture per pixel of the map in the heads of segmentation and matting: half the size."""

LAYER_SCALE = 0.5
"""Start of the layer scales: the published 1e-4 is for deep trunks, and eight layers would learn nothing for long."""

Outputs = dict[str, Tensor]


def nano_config(task: Task | None = None) -> Sapiens2Config:
    """The published nano configuration; attention is written out, which compiles best on a CPU."""
    config = Sapiens2Config.from_size("nano", task)
    config._attn_implementation = "eager"
    return config


def _shared_head_config(task: Task) -> Sapiens2Config:
    config = nano_config(task)
    head = config.head_config
    head.upsample_out_channels = head.upsample_out_channels[:SHARED_STAGES]
    head.upsample_kernel_sizes = head.upsample_kernel_sizes[:SHARED_STAGES]
    return config


class SharedNetwork(nn.Module):
    """One trunk, one pass, a head at a quarter of the size for every task."""

    def __init__(self) -> None:
        super().__init__()
        config = nano_config()
        self.model = Sapiens2Model(config)
        self.heads = nn.ModuleDict({task: Sapiens2Head(_shared_head_config(task)) for task in TASKS})
        self.scale_head = Sapiens2PointmapScaleHead(nano_config("pointmap"))
        for module in [*self.heads.modules(), *self.scale_head.modules()]:
            self.model._init_weights(module)
        for task in TASKS:
            prepare_predictor(self.heads[task].predictor, task)
        prepare_scale(self.scale_head)
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if "layer_scale" in name:
                    parameter.fill_(LAYER_SCALE)

    def forward(self, pixel_values: Tensor) -> dict[str, Tensor]:
        """Raw maps by task, and ``scales``."""
        features = feature_map(self.model, pixel_values)
        return {task: self.heads[task](features) for task in TASKS} | {"scales": self.scale_head(features)}


class TaskNetwork(nn.Module):
    """A task's own model, as it is saved in the end, giving raw maps as :class:`SharedNetwork` does."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task: Task = task
        self.network = TASK_MODELS[task](nano_config(task))
        prepare_predictor(self.network.decode_head.predictor, task)
        if task == "pointmap":
            prepare_scale(self.network.scale_head)

    def forward(self, pixel_values: Tensor) -> dict[str, Tensor]:
        """Raw maps of the task, and ``scales`` for the pointmap."""
        features = feature_map(self.network.model, pixel_values)
        maps = {self.task: self.network.decode_head(features)}
        return maps | ({"scales": self.network.scale_head(features)} if self.task == "pointmap" else {})


def feature_map(trunk: Sapiens2Model, pixel_values: Tensor) -> Tensor:
    """What heads take, ``(B, hidden_size, h, w)``."""
    patches = trunk(pixel_values).last_hidden_state[:, trunk.num_prefix_tokens :]
    return patches.transpose(1, 2).unflatten(2, trunk.grid_hw(pixel_values))


def prepare_predictor(predictor: nn.Conv2d, task: Task) -> None:
    """Start small, at a bias that is right on average: fan-out makes few channels huge."""
    with torch.no_grad():
        predictor.weight.normal_(0, 0.01)
        predictor.bias.zero_()
        if task == "pointmap":
            predictor.bias[2] = 4.0
        elif task == "normal":
            predictor.bias[2] = -0.7
        elif task == "matting":
            predictor.bias.fill_(-1.5)
        elif task == "albedo":
            predictor.bias.fill_(0.45)
        elif task == "seg":
            predictor.bias[0] = 2.0


def prepare_scale(head: Sapiens2PointmapScaleHead) -> None:
    """Start at a common focal length."""
    with torch.no_grad():
        head.predictor.proj.weight.mul_(0.1)
        head.predictor.proj.bias.fill_(2.2)


def task_network_from_shared(task: Task, shared: Mapping[str, Tensor]) -> TaskNetwork:
    """A task's model with the shared trunk and those layers of the shared head that it has too."""
    network = TaskNetwork(task)
    own = network.network.state_dict()
    taken = {}
    for name, value in shared.items():
        renamed = name.replace(f"heads.{task}.", "decode_head.")
        if renamed in own and own[renamed].shape == value.shape:
            taken[renamed] = value
    own.update(taken)
    network.network.load_state_dict(own)
    return network


# losses ---------------------------------------------------------------------------------------------------------


def _pooled(values: Tensor, mask: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """Mean over the known pixels of each block, and which blocks are half known."""
    if factor == 1:
        return values, mask
    weight = mask[:, None].float()
    share = F.avg_pool2d(weight, factor)
    return F.avg_pool2d(values * weight, factor) / share.clamp_min(1e-3), share[:, 0] >= 0.5


def _part_weights() -> Tensor:
    """Milder than the published weights: the rare parts count more, and large ones are not given up for them."""
    published = torch.tensor(part_table().class_weights)
    weights = published.clamp(0.5, 6.0) ** 0.35
    weights[0] = 0.8
    return weights


PART_WEIGHTS = _part_weights()
KEYPOINT_WEIGHTS = torch.tensor(
    [{"body": 6.0, "foot": 3.0, "extra": 1.0, "face": 0.6}.get(group, 0.8) for group in keypoint_table().groups]
)


def _pose(outputs: Outputs, batch: Outputs) -> Tensor:
    points, seen = batch["keypoints"][..., :2], batch["keypoints"][..., 2]
    heatmap_hw = (outputs["pose"].shape[2], outputs["pose"].shape[3])
    heatmaps, weights = encode_heatmaps(points, seen, SIZE_HW, heatmap_hw, HEATMAP_SIGMA)
    weights = weights * torch.where(seen > 1.5, 1.0, 0.6) * KEYPOINT_WEIGHTS
    errors = (outputs["pose"] - heatmaps).square().sum((2, 3)) / 12.6  # 1 for a map that is all 0
    return (errors * weights).sum() / weights.sum().clamp_min(1.0)


def _seg(outputs: Outputs, batch: Outputs) -> Tensor:
    logits = outputs["seg"]
    factor = batch["parts"].shape[1] // logits.shape[2]
    labels = batch["parts"][:, factor // 2 :: factor, factor // 2 :: factor].long()
    if factor == FINE:
        logits, labels = _one_in_four(logits), _one_in_four(labels)
    cross_entropy = losses.cross_entropy_loss(logits, labels, class_weights=PART_WEIGHTS)
    return cross_entropy + 0.5 * losses.dice_loss(logits, labels)


def _one_in_four(maps: Tensor) -> Tensor:
    """One pixel of each two by two, at another place in every sample of four: neighbours say the same, and cost."""
    return torch.cat([maps[place::4, ..., place // 2 :: 2, place % 2 :: 2] for place in range(4)])


def _normal(outputs: Outputs, batch: Outputs) -> Tensor:
    factor = batch["known"].shape[1] // outputs["normal"].shape[2]
    normals, mask = _pooled(batch["normals"], batch["known"], factor)
    normals = F.normalize(normals, dim=1)
    cosine = losses.cosine_normal_loss(outputs["normal"], normals, mask)
    return 4 * cosine + losses.l1_normal_loss(outputs["normal"], normals, mask)


def _pointmap(outputs: Outputs, batch: Outputs) -> Tensor:
    factor = batch["known"].shape[1] // outputs["pointmap"].shape[2]
    points, mask = _pooled(batch["points"], batch["known"], factor)
    predicted = outputs["pointmap"]
    shape = losses.shift_invariant_pointmap_l1_loss(predicted, points, mask)
    place = losses.pointmap_l1_loss(predicted, points, mask)
    bend = losses.pointmap_normal_loss(predicted, points, mask)
    scale = (outputs["scales"].clamp_min(0.05).log() - batch["scales"].log()).abs().mean()
    relief = _relief_loss(predicted[:, 2], points[:, 2], mask)
    return (
        20 * shape
        + 40 * relief
        + place
        + 0.5 * bend
        + 0.5 * scale
        + 0.1 * (0.05 - outputs["scales"]).clamp_min(0).mean()
    )


def _relief_loss(depths: Tensor, wanted: Tensor, mask: Tensor) -> Tensor:
    """Depth about its mean over its mean: across and down are large, and would hide it."""
    weights = mask.float()
    count = weights.sum((1, 2), keepdim=True).clamp_min(1)

    def relief(values: Tensor) -> Tensor:
        middle = ((values * weights).sum((1, 2), keepdim=True) / count).clamp_min(0.1)
        return values / middle - 1

    errors = (relief(depths) - relief(wanted)).abs() * weights
    return (errors.sum((1, 2), keepdim=True) / count).mean()


def _matting(outputs: Outputs, batch: Outputs) -> Tensor:
    maps = outputs["matting"].sigmoid()
    factor = batch["matte"].shape[2] // maps.shape[2]
    matte, mask = _pooled(batch["matte"], batch["inside"], factor)
    terms = losses.matting_recipe_loss(
        maps[:, 3:], maps[:, :3], matte.clamp(0, 1), mask=mask, composition_weight=0, laplacian_pyramid_weight=0.5
    )
    logits, wanted = outputs["matting"][:, 3], matte[:, 3]  # entropy pulls where the sigmoid is flat
    entropy = F.binary_cross_entropy_with_logits(logits, wanted.clamp(0, 1), reduction="none")
    return terms.total + 0.5 * (entropy * mask).sum() / mask.sum().clamp_min(1)


def _albedo(outputs: Outputs, batch: Outputs) -> Tensor:
    factor = batch["known"].shape[1] // outputs["albedo"].shape[2]
    albedo, mask = _pooled(batch["albedo"], batch["known"], factor)
    return losses.albedo_recipe_loss(outputs["albedo"], albedo.clamp(0, 1), mask).total


LOSSES = {
    "pose": _pose,
    "seg": _seg,
    "normal": _normal,
    "pointmap": _pointmap,
    "matting": _matting,
    "albedo": _albedo,
}
TASK_WEIGHTS: dict[Task, float] = {
    "pose": 2.0,
    "seg": 0.8,
    "normal": 1.0,
    "pointmap": 0.6,
    "matting": 1.5,
    "albedo": 1.5,
}


def task_loss(task: Task, outputs: Outputs, batch: Outputs) -> Tensor:
    """Loss of a task on raw maps of any size that divides the input's."""
    return LOSSES[task]({name: value.float() for name, value in outputs.items()}, batch)
