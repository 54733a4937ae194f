"""Training losses of the six tasks: functions of tensors, one per formula.

All of them

* compute in float32, or float64 for float64 predictions, whatever autocast and half-precision inputs say;
* pool over the pixels (or keypoints) that count: what does not count changes neither value nor gradient, even where it
  is NaN, and does not dilute the mean;
* return 0 with a gradient of 0 when nothing counts;
* have finite gradients at perfect agreement, zero vectors and depths at or below zero;
* raise :class:`sapiens2.errors.InputError` for shapes that do not fit.

NaN in a prediction that counts is not hidden: it makes the loss NaN.

Checks of values (labels that are no class, colours up to 255) read the tensor back from its device, and are left out
under ``torch.compile``.

The ``*_recipe_loss`` functions combine them as the published models were trained, and return a :class:`LossTerms`.
"""

from sapiens2.losses.albedo import (
    albedo_recipe_loss,
    chromaticity_loss,
    l1_albedo_loss,
    squared_gradient_albedo_loss,
)
from sapiens2.losses.matting import (
    alpha_l1_loss,
    composition_loss,
    foreground_l1_loss,
    laplacian_pyramid_loss,
    matting_recipe_loss,
)
from sapiens2.losses.normal import (
    cosine_normal_loss,
    l1_normal_loss,
    normal_recipe_loss,
    squared_gradient_normal_loss,
    valid_normals,
)
from sapiens2.losses.pointmap import (
    intrinsics_consistency_loss,
    multiscale_pointmap_l1_loss,
    pointmap_l1_loss,
    pointmap_normal_loss,
    scale_l1_loss,
    shift_invariant_pointmap_l1_loss,
    silog_loss,
    valid_points,
)
from sapiens2.losses.pointmap_recipe import pointmap_recipe_loss
from sapiens2.losses.pose import heatmap_mse_loss, heatmap_ohkm_loss, pose_recipe_loss
from sapiens2.losses.segmentation import cross_entropy_loss, dice_loss, segmentation_recipe_loss
from sapiens2.losses.terms import LossTerms

__all__ = [
    "LossTerms",
    "albedo_recipe_loss",
    "alpha_l1_loss",
    "chromaticity_loss",
    "composition_loss",
    "cosine_normal_loss",
    "cross_entropy_loss",
    "dice_loss",
    "foreground_l1_loss",
    "heatmap_mse_loss",
    "heatmap_ohkm_loss",
    "intrinsics_consistency_loss",
    "l1_albedo_loss",
    "l1_normal_loss",
    "laplacian_pyramid_loss",
    "matting_recipe_loss",
    "multiscale_pointmap_l1_loss",
    "normal_recipe_loss",
    "pointmap_l1_loss",
    "pointmap_normal_loss",
    "pointmap_recipe_loss",
    "pose_recipe_loss",
    "scale_l1_loss",
    "segmentation_recipe_loss",
    "shift_invariant_pointmap_l1_loss",
    "silog_loss",
    "squared_gradient_albedo_loss",
    "squared_gradient_normal_loss",
    "valid_normals",
    "valid_points",
]
