from __future__ import annotations

import math

import pytest

from sapiens2.services.evaluation.figures import Figure, figures_beside, finite


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("mean_angular_error_deg", "lower"),
        ("sad_per_1000", "lower"),
        ("scale_only/relief_abs_rel", "lower"),
        ("abs_rel_depth", "lower"),
        ("l2_rms_m", "lower"),
        ("whole/normalised_error", "lower"),
        ("full_figures/body/pck_0.1_percent", "higher"),
        ("relief_gain_percent", "higher"),
        ("psnr_db", "higher"),
        ("iou/error_or_mad", "higher"),
        ("body/keypoints", None),
        ("empty_images", None),
    ],
)
def test_figures_beside__direction__follows_from_the_name(name: str, better: str | None) -> None:
    (figure,) = figures_beside({name: 1.0}, {name: 2.0})
    assert figure.better == better
    assert figure.baseline == (None if better is None else 2.0)


def test_beats_baseline__unknown_sides__is_not_known() -> None:
    assert Figure("mae", 0.1, 0.2, "lower").beats_baseline is True
    assert Figure("mae", 0.2, 0.2, "lower").beats_baseline is False
    assert Figure("ssim", 0.2, 0.1, "higher").beats_baseline is True
    assert Figure("ssim", math.nan, 0.1, "higher").beats_baseline is None
    assert Figure("ssim", 0.1, math.nan, "higher").beats_baseline is None
    assert Figure("ssim", 0.1).beats_baseline is None


def test_finite__nan_and_infinity__are_none() -> None:
    assert [finite(value) for value in (1.5, math.nan, math.inf, None)] == [1.5, None, None, None]
