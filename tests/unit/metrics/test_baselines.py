import math

import numpy as np
import pytest
import torch

from sapiens2.errors import InputError
from sapiens2.metrics import ImageMetric, MattingMetric, NormalMetric, PckMetric
from sapiens2.metrics.baselines import (
    camera_facing_normals,
    constant_plane,
    empty_matte,
    mean_pose,
    pose_in_boxes,
    shaded_picture,
    single_class,
)


def test_camera_facing_normals__on_a_half_sphere_are_off_by_its_slope():
    angle = math.radians(40)
    slope = torch.tensor([math.sin(angle), 0.0, -math.cos(angle)])[:, None, None].repeat(1, 3, 4)
    metric = NormalMetric()
    metric.update(camera_facing_normals((3, 4)), slope)
    assert metric.compute()["mean_angular_error_deg"] == pytest.approx(40, abs=1e-4)


def test_empty_matte__error_is_the_mean_alpha():
    alpha = np.random.default_rng(0).random((5, 6))
    metric = MattingMetric()
    metric.update(empty_matte((5, 6)), alpha)
    assert metric.compute()["mad"] == pytest.approx(alpha.mean())


def test_single_class__is_that_class():
    assert single_class((2, 3), 7).tolist() == [[7] * 3] * 2


@pytest.mark.parametrize("channels_last", [True, False])
def test_shaded_picture__is_the_picture(channels_last):
    picture = np.random.default_rng(1).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    albedo = shaded_picture(picture if channels_last else picture.transpose(2, 0, 1))
    metric = ImageMetric()
    metric.update(albedo, picture.transpose(2, 0, 1) / 255)
    assert metric.compute()["mae"] < 1e-7


@pytest.mark.parametrize("image", [np.zeros((4, 5, 3)), np.zeros((4, 5), np.uint8)])
def test_shaded_picture__rejects(image):
    with pytest.raises(InputError, match="image must be uint8"):
        shaded_picture(image)


def test_constant_plane__lies_on_the_rays_at_the_mean_depth():
    target = np.array([[[1.0, 2.0, 0.0]], [[-1.0, 0.0, 0.0]], [[2.0, 4.0, 0.0]]])
    plane = constant_plane(target)
    np.testing.assert_allclose(plane[:, 0, :2], [[1.5, 1.5], [-1.5, 0.0], [3.0, 3.0]])
    assert plane[:, 0, 2].isnan().all()
    masked = constant_plane(target, np.array([[True, False, True]]))
    np.testing.assert_allclose(masked[:, 0, 0], target[:, 0, 0])


def test_mean_pose__put_back_into_boxes_is_right_for_poses_that_only_scale():
    pose = np.array([[0.25, 0.5], [1.0, 0.0], [0.5, 0.75]])
    boxes = np.array([[10.0, 20.0, 40.0, 80.0], [0.0, 0.0, 10.0, 5.0]])
    keypoints = boxes[:, None, :2] + pose * boxes[:, None, 2:]
    mask = np.array([[True, True, False], [True, False, False]])
    found = mean_pose(keypoints, boxes, mask)
    np.testing.assert_allclose(found, [[0.25, 0.5], [1.0, 0.0], [0.5, 0.5]])
    metric = PckMetric(3)
    metric.update(pose_in_boxes(found, boxes), keypoints, mask, boxes=boxes)
    assert metric.compute()["whole/normalised_error"] < 1e-6


def test_mean_pose__rejects_what_does_not_fit():
    with pytest.raises(InputError, match=r"keypoints must be \(1, K, 2\)"):
        mean_pose(np.zeros((2, 3, 2)), [[0, 0, 1, 1]])
    with pytest.raises(InputError, match="extents above 0"):
        mean_pose(np.zeros((1, 3, 2)), [[0, 0, 0, 1]])
    with pytest.raises(InputError, match=r"pose must be \(K, 2\)"):
        pose_in_boxes(np.zeros((3, 3)), [[0, 0, 1, 1]])
