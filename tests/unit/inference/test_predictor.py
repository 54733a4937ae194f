from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from sapiens2.errors import ConfigurationError, InputError
from sapiens2.inference import Predictor, load
from sapiens2.inference.task_model import TaskModel
from sapiens2.models import Sapiens2AlbedoEstimatorOutput, Sapiens2Config, Sapiens2ForPoseEstimation
from sapiens2.processing import Sapiens2ImageProcessor
from sapiens2.results import NormalResult, PoseResult, Prediction
from sapiens2.types import TASKS

ARRAYS = {
    "pose": ("keypoints", "scores", "boxes_xyxy"),
    "seg": ("segmentation",),
    "normal": ("normals",),
    "pointmap": ("pointmap",),
    "matting": ("alpha", "foreground"),
    "albedo": ("albedo",),
}
unscaled = pytest.mark.filterwarnings("ignore:Predicted scales:UserWarning")


@pytest.fixture(scope="module")
def everything(nano_checkpoints: Path) -> Predictor:
    return load("all", model=nano_checkpoints, device="cpu")


@pytest.fixture(scope="module")
def pose(nano_checkpoints: Path) -> Predictor:
    return load("pose", model=nano_checkpoints, device="cpu")


def picture(height: int, width: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """A smooth colourful picture."""
    coarse = np.random.default_rng(seed).integers(0, 256, (5, 4, 3), np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def assert_same(left: Prediction, right: Prediction, tolerance: float = 0.0) -> None:
    assert left.tasks == right.tasks
    for task in left.tasks:
        for name in ARRAYS[task]:
            one, other = getattr(left[task], name), getattr(right[task], name)
            scale = max(1.0, float(np.nanmax(np.abs(one), initial=0)))
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale)


@unscaled
def test_call__results_have_the_size_of_the_picture(everything: Predictor) -> None:
    prediction = everything(picture(37, 53))
    assert prediction.tasks == TASKS
    assert prediction.size_hw == (37, 53)
    assert prediction.pose.keypoints.shape == (1, 308, 2)
    assert prediction.pose.boxes_xyxy.tolist() == [[0, 0, 53, 37]]
    assert prediction.seg.segmentation.shape == (37, 53)
    assert prediction.normal.normals.shape == (3, 37, 53)
    assert prediction.pointmap.pointmap.shape == (3, 37, 53)
    assert prediction.matting.alpha.shape == (37, 53)
    assert prediction.matting.foreground.shape == (3, 37, 53)
    assert prediction.albedo.albedo.shape == (3, 37, 53)


@unscaled
def test_call__a_list_gives_what_its_pictures_give_alone(everything: Predictor) -> None:
    pictures = [picture(60, 40, 1), picture(40, 90, 2), picture(33, 33, 3)]
    boxes = [[[0, 0, 40, 60], [5, 5, 20, 30]], [], [[1, 2, 30, 30]]]
    alone = [everything(one, own) for one, own in zip(pictures, boxes, strict=True)]
    for together, single in zip(everything(pictures, boxes), alone, strict=True):
        assert_same(together, single)


@unscaled
def test_call__batches_change_no_more_than_the_last_digits(everything: Predictor) -> None:
    pictures = [picture(60, 40, 1), picture(40, 90, 2), picture(33, 33, 3)]
    boxes = [[[0, 0, 40, 60], [5, 5, 20, 30]], [], [[1, 2, 30, 30]]]
    batches = everything(pictures, boxes, batch_size=2)
    for one, other in zip(batches, everything(pictures, boxes), strict=True):
        smooth = ("normal", "pointmap", "matting", "albedo")  # of the others one digit may decide
        assert_same(*(Prediction(**{task: own[task] for task in smooth}) for own in (one, other)), tolerance=1e-4)
        np.testing.assert_allclose(one.pose.scores, other.pose.scores, atol=1e-4)
        assert (one.seg.segmentation == other.seg.segmentation).mean() > 0.999


@unscaled
@pytest.mark.parametrize("task", TASKS)
def test_call__a_task_gives_the_same_alone_as_with_the_others(
    everything: Predictor, nano_checkpoints: Path, task: Any
) -> None:
    single = load([task], model=nano_checkpoints, device="cpu")
    image = picture(50, 70)
    assert_same(single(image), Prediction(**{task: everything(image)[task]}))


def test_call__decodes_a_picture_once_for_all_tasks(
    nano_checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict = load(["seg", "normal", "matting"], model=nano_checkpoints, device="cpu")
    Image.fromarray(picture(20, 20)).save(tmp_path / "a.png")
    opened = []
    original = Image.open
    monkeypatch.setattr(Image, "open", lambda *args, **kwargs: opened.append(args) or original(*args, **kwargs))
    prediction = predict(tmp_path / "a.png")
    assert len(opened) == 1
    assert prediction.normal.image is prediction.seg.image


def test_call__one_task_gives_its_result_and_a_list_of_one_a_prediction(
    pose: Predictor, nano_checkpoints: Path
) -> None:
    image = picture(30, 20)
    assert isinstance(pose(image), PoseResult)
    assert [type(one) for one in pose([image, image])] == [PoseResult, PoseResult]
    assert isinstance(load(["pose"], model=nano_checkpoints)(image), Prediction)
    assert pose([]) == []


def test_call__no_box_is_an_empty_result_and_never_runs_the_model(
    pose: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TaskModel, "forward", lambda *_args, **_kwargs: pytest.fail("the model ran"))
    for empty in ([], [[]], np.zeros((0, 4)), torch.zeros((0, 4))):
        result = pose(picture(20, 20), empty)
        assert (result.keypoints.shape, result.scores.shape, result.boxes_xyxy.shape) == ((0, 308, 2), (0, 308), (0, 4))


def test_call__people_come_in_the_order_of_their_boxes(pose: Predictor) -> None:
    image = picture(80, 60)
    boxes = [[0, 0, 30, 40], [10, 20, 50, 60], [5, 5, 10, 70]]
    together = pose(image, boxes)
    assert together.boxes_xyxy.tolist() == [[0, 0, 30, 40], [10, 20, 60, 80], [5, 5, 15, 75]]
    for index, box in enumerate(boxes):
        np.testing.assert_array_equal(pose(image, [box]).keypoints[0], together.keypoints[index])


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        ([[0, 0, 0, 5]], r"Box 0 is \[0.0, 0.0, 0.0, 5.0\], whose width or height is not above zero"),
        ([[0, 0, 5, 5], [0, 0, float("nan"), 5]], "Box 1 .* not finite"),
        ([0, 0, 5, 5], "one flat box"),
    ],
)
def test_call__impossible_boxes_are_named(pose: Predictor, boxes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        pose(picture(20, 20), boxes)


def test_call__boxes_of_a_list_name_their_picture(pose: Predictor) -> None:
    images = [picture(20, 20)] * 2
    with pytest.raises(InputError, match="Box 0 of image 1"):
        pose(images, [[], [[0, 0, -1, 5]]])
    with pytest.raises(InputError, match="Boxes for 1 images were given with 2 images"):
        pose(images, [[]])


def test_call__boxes_without_pose_are_refused(nano_checkpoints: Path) -> None:
    predict = load("seg", model=nano_checkpoints)
    with pytest.raises(InputError, match="boxes concern the pose, and the tasks are seg"):
        predict(picture(20, 20), [[0, 0, 5, 5]])
    with pytest.raises(InputError, match="flip_test concern"):
        predict(picture(20, 20), flip_test=True)


@pytest.mark.parametrize("batch_size", [0, -1, 1.5, True])
def test_call__batch_size_must_be_a_positive_whole_number(pose: Predictor, batch_size: Any) -> None:
    with pytest.raises(InputError, match="batch_size"):
        pose(picture(20, 20), batch_size=batch_size)


@pytest.mark.parametrize("given", ["path", "str", "pil", "tensor", "float", "channels_first"])
def test_call__every_kind_of_picture_gives_the_same(nano_checkpoints: Path, tmp_path: Path, given: str) -> None:
    predict = load("normal", model=nano_checkpoints, device="cpu")
    array = picture(24, 31)
    Image.fromarray(array).save(tmp_path / "a.png")
    kinds = {
        "path": tmp_path / "a.png",
        "str": str(tmp_path / "a.png"),
        "pil": Image.fromarray(array),
        "tensor": torch.from_numpy(array.copy()).permute(2, 0, 1),
        "float": array.astype(np.float64) / 255,
        "channels_first": np.ascontiguousarray(array.transpose(2, 0, 1)),
    }
    result = predict(kinds[given])
    difference = np.abs(result.normals - predict(array).normals)
    assert difference.mean() < 0.05 if given == "float" else difference.max() == 0  # floats are resized unrounded
    np.testing.assert_array_equal(result.image, array)
    assert result.source == (str(tmp_path / "a.png") if given in ("path", "str") else None)


def test_call__a_batch_array_is_a_list(nano_checkpoints: Path) -> None:
    predict = load("matting", model=nano_checkpoints, device="cpu")
    results = predict(np.stack([picture(20, 30, 1), picture(20, 30, 2)]))
    np.testing.assert_array_equal(results[1].alpha, predict(picture(20, 30, 2)).alpha)


@unscaled
@pytest.mark.parametrize(
    ("mode", "size"), [("L", (9, 5)), ("RGBA", (6, 7)), ("I;16", (5, 4)), ("P", (3, 8)), ("RGB", (1, 1)), ("1", (2, 1))]
)
def test_call__every_mode_and_the_smallest_pictures_work(
    everything: Predictor, tmp_path: Path, mode: str, size: tuple[int, int]
) -> None:
    image = Image.new(mode, size, 1)
    image.save(tmp_path / "a.png")
    assert everything(tmp_path / "a.png").size_hw == size[::-1]


@unscaled
def test_call__exif_orientation_counts_for_every_task(everything: Predictor, tmp_path: Path) -> None:
    upright = picture(24, 60)
    stored = Image.fromarray(upright).transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    stored.save(tmp_path / "turned.png", exif=exif)
    prediction = everything(tmp_path / "turned.png", [[10, 5, 30, 15]])
    np.testing.assert_array_equal(prediction.image, upright)
    assert_same(prediction, everything(upright, [[10, 5, 30, 15]]))


@pytest.mark.parametrize("size_hw", [(40, 90), (90, 40), (256, 192), (500, 3)])
@pytest.mark.parametrize("do_pad", [True, False])
def test_call__maps_lie_on_the_picture_with_and_without_padding(
    nano_checkpoints: Path, monkeypatch: pytest.MonkeyPatch, size_hw: tuple[int, int], do_pad: bool
) -> None:
    """A model that returns its input must give the picture back."""

    def identity(part: TaskModel, pixel_values: torch.Tensor) -> Sapiens2AlbedoEstimatorOutput:
        mean, std = (
            torch.tensor(values).view(3, 1, 1) for values in (part.processor.image_mean, part.processor.image_std)
        )
        return Sapiens2AlbedoEstimatorOutput(albedos=pixel_values * std + mean)

    monkeypatch.setattr(TaskModel, "forward", identity)
    loaded = load("albedo", model=nano_checkpoints, device="cpu")
    loaded.processor.do_pad = do_pad
    ramp = np.zeros((*size_hw, 3), np.uint8)
    ramp[..., 0] = np.linspace(0, 255, size_hw[0])[:, None]
    ramp[..., 1] = np.linspace(0, 255, size_hw[1])
    albedo = loaded(ramp).albedo.transpose(1, 2, 0) * 255
    step = 128 if min(size_hw) < 20 else 8  # three columns shrink to one
    assert np.abs(albedo - ramp).max() <= step


def test_call__keypoints_lie_where_the_heatmaps_say(pose: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peak in the middle of every crop is the middle of every box."""

    def peak(part: TaskModel, pixel_values: torch.Tensor, **kwargs: Any) -> dict[str, torch.Tensor]:
        rows, columns = torch.arange(65.0)[:, None], torch.arange(49.0)
        heatmap = torch.exp(-((rows - 32) ** 2 + (columns - 24) ** 2) / 72)
        return {"heatmaps": heatmap.expand(len(pixel_values), 308, -1, -1)}

    monkeypatch.setattr(TaskModel, "forward", peak)
    result = pose([picture(50, 80), picture(90, 70)], [[[10, 20, 30, 20]], [[0, 0, 70, 90], [30, 40, 10, 20]]])
    middles = [[[25, 30]], [[35, 45], [35, 50]]]
    for own, expected in zip(result, middles, strict=True):
        np.testing.assert_allclose(own.keypoints.mean(axis=1), expected, atol=0.05)


def test_call__flip_test_gives_the_mirror_image_the_mirrored_pose(pose: Predictor) -> None:
    """With the mirrored crops averaged in, a mirrored picture has the mirrored keypoints, whatever the weights."""
    image, width = picture(96, 72, 4), 72
    box, mirrored_box = [[8, 10, 48, 64]], [[width - 1 - 8 - 48, 10, 48, 64]]
    result = pose(image, box, flip_test=True)
    mirrored = pose(np.ascontiguousarray(image[:, ::-1]), mirrored_box, flip_test=True)
    order = list(range(308))
    for left, right in pose.model.config.flip_pairs:
        order[left], order[right] = right, left
    np.testing.assert_allclose(mirrored.scores[0, order], result.scores[0], atol=1e-3)
    assert not np.allclose(pose(image, box).scores, result.scores, atol=1e-3)


def test_call__flip_test_needs_flip_pairs() -> None:
    config = Sapiens2Config.from_size("nano", "pose", num_labels=5, flip_pairs=None)
    processor = Sapiens2ImageProcessor(size={"height": 256, "width": 192})
    predict = Predictor({"pose": Sapiens2ForPoseEstimation(config)}, {"pose": processor})
    assert predict(picture(20, 20)).keypoints.shape == (1, 5, 2)
    with pytest.raises(ConfigurationError, match="which of the 5 keypoints mirror each other"):
        predict(picture(20, 20), flip_test=True)


def test_call__labels_of_the_configuration_reach_the_result() -> None:
    names = {0: "nose", 1: "tail"}
    config = Sapiens2Config.from_size("nano", "pose", id2label=names, flip_pairs=[])
    processor = Sapiens2ImageProcessor(size={"height": 256, "width": 192})
    result = Predictor({"pose": Sapiens2ForPoseEstimation(config)}, {"pose": processor})(picture(20, 20))
    assert result.names == ("nose", "tail")


def test_call__results_say_that_weights_are_random(pose: Predictor) -> None:
    result = pose(picture(20, 20))
    assert result.model == "nano-pose (random weights, not trained)"
    assert "random weights" in result.provenance["Comment"]
    del pose.model.config.sapiens2_weights
    assert pose(picture(20, 20)).model == "nano-pose"
    pose.model.config.sapiens2_weights = "random"


def test_call__names_the_picture_that_cannot_be_read(pose: Predictor, tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(InputError, match=r"empty\.jpg"):
        pose(tmp_path / "empty.jpg")
    with pytest.raises(InputError, match=r"image 1: .*shape"):
        pose([picture(20, 20), np.zeros((5, 5, 7))])


def test_forward__is_the_model_itself(nano_checkpoints: Path) -> None:
    predict = load("normal", model=nano_checkpoints, device="cpu")
    assert isinstance(predict(picture(20, 20)), NormalResult)
    inputs = predict.processor(picture(20, 20), return_tensors="pt")
    output = predict.forward(inputs.pixel_values, output_hidden_states=True)
    assert output.normals.shape == (1, 3, 64, 48)
    assert len(output.hidden_states) == predict.model.config.num_hidden_layers + 1
    assert not output.normals.requires_grad
    assert not predict.model.training


def test_forward__with_several_tasks_needs_the_task(everything: Predictor) -> None:
    pixel_values = torch.zeros((1, 3, 256, 192))
    assert everything.forward(pixel_values, task="seg").logits.shape[1] == 29
    for ask in (lambda: everything.forward(pixel_values), lambda: everything.model, lambda: everything.processor):
        with pytest.raises(ConfigurationError, match="6 tasks"):
            ask()
    assert list(everything.models) == list(everything.processors) == list(TASKS)


def test_forward__of_a_task_that_is_not_loaded(pose: Predictor) -> None:
    with pytest.raises(ConfigurationError, match="'seg' is not loaded; the tasks are pose"):
        pose.forward(torch.zeros((1, 3, 256, 192)), task="seg")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_call__half_precision_gives_float32_results(nano_checkpoints: Path, dtype: str) -> None:
    predict = load("matting", model=nano_checkpoints, device="cpu", dtype=dtype)
    result = predict(picture(30, 20))
    assert result.alpha.dtype == np.float32
    full = load("matting", model=nano_checkpoints, device="cpu")(picture(30, 20))
    assert np.abs(result.alpha - full.alpha).mean() < 0.05


def test_init__refuses_parts_that_do_not_fit(pose: Predictor) -> None:
    model, processor = pose.model, pose.processor
    with pytest.raises(ConfigurationError, match=r"models for \['pose'\] and processors for \[\]"):
        Predictor({"pose": model}, {})
    with pytest.raises(ConfigurationError, match="the model for seg is a Sapiens2ForPoseEstimation"):
        Predictor({"seg": model}, {"seg": processor})
    with pytest.raises(ConfigurationError, match="'hands' is not known"):
        Predictor({"hands": model}, {"hands": processor})  # type: ignore[dict-item]
    with pytest.raises(ConfigurationError, match="do_center_crop=True"):
        Predictor({"pose": model}, {"pose": Sapiens2ImageProcessor(do_center_crop=True)})
