"""Quick figures on held-out samples of the pool while training goes on; the report uses ``sapiens2 eval``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scripts.nano.batches import MEAN, STD, compose, make_batch
from scripts.nano.pool import SIZE_HW, Pool
from torch import Tensor, nn

from sapiens2.assets import keypoint_table
from sapiens2.codecs import decode_heatmaps
from sapiens2.types import Task

__all__ = ["measure"]

COCO17 = list(keypoint_table().coco17)


def measure(
    network: nn.Module, weights: Mapping[str, Tensor], tasks: Sequence[Task], pool: Pool, indices: NDArray[np.int64]
) -> dict[str, float]:
    """Figures of averaged weights; the network has its own again afterwards."""
    own = {key: value.clone() for key, value in network.state_dict().items()}
    network.load_state_dict(dict(weights))
    network.eval()
    sums: dict[str, list[float]] = {}
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for start in range(0, len(indices), 16):
            batch = make_batch(pool, indices[start : start + 16], rng, None)
            batch.update(compose(batch))
            image = batch["image"].mul(255).round().div(255)
            with torch.autocast("cpu", torch.bfloat16):
                outputs = network((image - MEAN) / STD)
            batch["boxes"] = torch.from_numpy(pool.arrays["boxes"][indices[start : start + 16], 0])
            batch["count"] = torch.from_numpy(pool.arrays["count"][indices[start : start + 16]])
            for task in tasks:
                for name, values in FIGURES[task](outputs[task].float(), batch).items():
                    sums.setdefault(name, []).extend(values.tolist())
    network.load_state_dict(own)
    network.train()
    return {name: round(float(np.mean(values)), 4) for name, values in sums.items()}


def _full(maps: Tensor) -> Tensor:
    return F.interpolate(maps, size=SIZE_HW, mode="bilinear", align_corners=False)


def _pose(maps: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    points, _ = decode_heatmaps(maps)
    limits = torch.tensor([SIZE_HW[1] - 1, SIZE_HW[0] - 1]) / torch.tensor([maps.shape[3] - 1, maps.shape[2] - 1])
    wanted = batch["keypoints"][:, COCO17]
    usable = (wanted[..., 2] > 0) & (batch["count"] == 1)[:, None]
    errors = (points[:, COCO17] * limits - wanted[..., :2]).norm(dim=-1).nan_to_num(1e9)
    errors = errors / batch["boxes"][:, None, 2:].amax(-1).clamp_min(1)
    return {"pck_05": (errors[usable] < 0.05).float(), "pck_1": (errors[usable] < 0.1).float()}


def _seg(maps: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    people = (batch["parts"] > 0) & (batch["parts"] < 255)
    right = _full(maps).argmax(1) == batch["parts"]
    return {"foreground_agreement": right[people].float().view(-1)[::16]}


def _normal(maps: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    cosine = (F.normalize(_full(maps), dim=1) * batch["normals"]).sum(1).clamp(-1, 1)
    return {"angle_deg": torch.rad2deg(torch.acos(cosine))[batch["known"]][::16]}


def _pointmap(maps: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    relief, flat = [], []
    for depth, wanted, known in zip(_full(maps)[:, 2], batch["points"][:, 2], batch["known"], strict=True):
        if int(known.sum()) < 100:
            continue
        found, truth = depth[known].clamp_min(1e-3), wanted[known]
        middle = truth.median()
        relief.append(((found - found.median()) / found.median() - (truth - middle) / middle).abs().mean())
        flat.append(((truth - middle) / middle).abs().mean())
    return {"relief": torch.stack(relief), "flat_relief": torch.stack(flat)} if relief else {}


def _matting(maps: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    alpha = _full(maps)[:, 3].sigmoid()
    wanted = batch["matte"][:, 3]
    some = batch["count"] > 0
    both, either = ((alpha > 0.5) & (wanted > 0.5)), ((alpha > 0.5) | (wanted > 0.5))
    iou = both.sum((1, 2)) / either.sum((1, 2)).clamp_min(1)
    return {
        "alpha_mad": (alpha - wanted).abs().mean((1, 2))[some],
        "mask_iou": iou[some],
        "alpha_without_people": alpha.mean((1, 2))[~some],
    }


def _albedo(maps: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    known = batch["known"]
    found = (_full(maps).clamp(0, 1) - batch["albedo"]).abs().mean(1)[known]
    shaded = (batch["image"] - batch["albedo"]).abs().mean(1)[known]
    return {"albedo_mae": found[::16], "shaded_mae": shaded[::16]}


FIGURES = {
    "pose": _pose,
    "seg": _seg,
    "normal": _normal,
    "pointmap": _pointmap,
    "matting": _matting,
    "albedo": _albedo,
}
