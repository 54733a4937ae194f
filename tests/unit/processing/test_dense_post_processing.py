"""Laws that all dense post-processing obeys, and what is special to each task."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from sapiens2.errors import InputError
from sapiens2.processing.albedo import post_process_albedo_estimation
from sapiens2.processing.matting import composite_over, post_process_image_matting
from sapiens2.processing.normal import post_process_normal_estimation
from sapiens2.processing.pointmap import post_process_pointmap_estimation
from sapiens2.processing.segmentation import classify_pixels, post_process_semantic_segmentation

BATCH, HEIGHT, WIDTH = 2, 32, 24


def maps(channels: int, batch: int = BATCH, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(batch, channels, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(seed)).to(dtype)


def outputs_of(task: str, batch: int = BATCH, dtype: torch.dtype = torch.float32) -> SimpleNamespace:
    fields = {
        "seg": {"logits": maps(5, batch, dtype=dtype)},
        "normal": {"normals": maps(3, batch, dtype=dtype) - 0.5},
        "pointmap": {"pointmaps": maps(3, batch, dtype=dtype), "scales": torch.full((batch, 1), 2.0, dtype=dtype)},
        "matting": {"alphas": maps(1, batch, dtype=dtype), "foregrounds": maps(3, batch, 1, dtype=dtype)},
        "albedo": {"albedos": maps(3, batch, dtype=dtype)},
    }
    return SimpleNamespace(**fields[task])


POST_PROCESS = {
    "seg": (post_process_semantic_segmentation, lambda result: result),
    "normal": (post_process_normal_estimation, lambda result: result["normals"]),
    "pointmap": (post_process_pointmap_estimation, lambda result: result["pointmap"]),
    "matting": (post_process_image_matting, lambda result: result["alpha"]),
    "albedo": (post_process_albedo_estimation, lambda result: result["albedo"]),
}
every_task = pytest.mark.parametrize("task", POST_PROCESS)


@every_task
def test_post_process__sizes_none_keeps_the_size_of_the_output(task: str) -> None:
    function, field = POST_PROCESS[task]
    results = function(outputs_of(task), target_sizes=None, source_sizes=None)
    assert [tuple(field(result).shape[-2:]) for result in results] == [(HEIGHT, WIDTH)] * BATCH


@every_task
def test_post_process__one_size_per_image(task: str) -> None:
    function, field = POST_PROCESS[task]
    sizes = [(50, 40), (7, 90)]
    for target_sizes in (sizes, torch.tensor(sizes), [Image.new("L", (40, 50)), (7, 90)]):
        results = function(outputs_of(task), target_sizes=target_sizes)
        assert [tuple(field(result).shape[-2:]) for result in results] == sizes
    from_sources = function(outputs_of(task), source_sizes=sizes)
    assert [tuple(field(result).shape[-2:]) for result in from_sources] == sizes


@every_task
def test_post_process__empty_batch(task: str) -> None:
    function, _ = POST_PROCESS[task]
    assert function(outputs_of(task, batch=0), target_sizes=[]) == []
    assert function(outputs_of(task, batch=0)) == []


@every_task
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_post_process__float32_whatever_the_model_computed_in(task: str, dtype: torch.dtype) -> None:
    function, field = POST_PROCESS[task]
    result = field(function(outputs_of(task, dtype=dtype), target_sizes=[(50, 40)] * BATCH)[0])
    assert result.dtype == (torch.int64 if task == "seg" else torch.float32)
    if task != "seg":
        assert bool(torch.isfinite(result).all())


@every_task
def test_post_process__mapping_and_arrays_do(task: str) -> None:
    function, field = POST_PROCESS[task]
    outputs = outputs_of(task)
    from_mapping = function({name: value.numpy() for name, value in vars(outputs).items()})
    for ours, theirs in zip(function(outputs), from_mapping, strict=True):
        assert torch.equal(field(ours), field(theirs))


@every_task
def test_post_process__another_tasks_output(task: str) -> None:
    function, _ = POST_PROCESS[task]
    with pytest.raises(InputError, match=r"outputs \(SimpleNamespace\) has no"):
        function(SimpleNamespace(heatmaps=maps(3)))


@every_task
def test_post_process__wrong_number_of_sizes(task: str) -> None:
    function, _ = POST_PROCESS[task]
    for name in ("source_sizes", "target_sizes"):
        with pytest.raises(InputError, match=f"{name} has 1 sizes for a batch of 2"):
            function(outputs_of(task), **{name: [(4, 4)]})


@every_task
def test_post_process__removing_padding_needs_source_sizes(task: str) -> None:
    function, _ = POST_PROCESS[task]
    with pytest.raises(InputError, match="do_remove_padding=True needs source_sizes"):
        function(outputs_of(task), target_sizes=[(4, 4)] * BATCH, do_remove_padding=True)


@every_task
def test_post_process__transposed_target_is_warned_of(task: str) -> None:
    function, _ = POST_PROCESS[task]
    with pytest.warns(UserWarning, match="transposed"):
        function(outputs_of(task), source_sizes=[(50, 40)] * BATCH, target_sizes=[(40, 50)] * BATCH)


@every_task
@pytest.mark.parametrize("source_hw", [(50, 10), (10, 50), (1, 500), (700, 1), (64, 48), (333, 251)])
def test_post_process__padding_never_reaches_the_result(task: str, source_hw: tuple[int, int]) -> None:
    """The padded frame is painted with a poison value; an independent mask says where the picture lies."""
    function, field = POST_PROCESS[task]
    scale = min(HEIGHT / source_hw[0], WIDTH / source_hw[1])
    height, width = max(1, math.floor(source_hw[0] * scale)), max(1, math.floor(source_hw[1] * scale))
    top, left = (HEIGHT - height) // 2, (WIDTH - width) // 2
    inside = torch.zeros(HEIGHT, WIDTH, dtype=torch.bool)
    inside[top : top + height, left : left + width] = True
    clean = outputs_of(task)
    poisoned = SimpleNamespace(
        **{
            name: value.where(inside, 0.987 - value) if value.ndim == 4 else value
            for name, value in vars(clean).items()
        }
    )
    sizes = [source_hw] * BATCH
    for first, second in zip(function(clean, source_sizes=sizes), function(poisoned, source_sizes=sizes), strict=True):
        assert torch.equal(field(first), field(second))


@every_task
def test_post_process__keeping_padding_resizes_all_of_the_map(task: str) -> None:
    function, field = POST_PROCESS[task]
    size = [(10, 50)] * BATCH
    kept = function(outputs_of(task), source_sizes=size, do_remove_padding=False)
    targeted = function(outputs_of(task), target_sizes=size)
    assert all(torch.equal(field(a), field(b)) for a, b in zip(kept, targeted, strict=True))


# Segmentation


@pytest.mark.parametrize("size_hw", [(100, 77), (9, 5), (1, 1), (33, 24), (32, 100)])
@pytest.mark.parametrize("rows_per_strip", [1, 7, 10_000])
def test_classify_pixels__strips_equal_the_whole(size_hw: tuple[int, int], rows_per_strip: int) -> None:
    logits = maps(6)[0]
    whole = F.interpolate(logits[None], size=size_hw, mode="bilinear", align_corners=False)[0].argmax(dim=0)
    strips = classify_pixels(logits, size_hw, strip_bytes=rows_per_strip * 6 * 4 * size_hw[1])
    assert torch.equal(strips, whole)


def test_post_process_semantic_segmentation__scores_explain_the_classes() -> None:
    outputs = outputs_of("seg")
    plain = post_process_semantic_segmentation(outputs, [(40, 20), (8, 8)])
    scored = post_process_semantic_segmentation(outputs, [(40, 20), (8, 8)], return_segmentation_scores=True)
    for classes, result in zip(plain, scored, strict=True):
        assert result.segmentation_scores.shape == (5, *classes.shape)
        assert torch.equal(result.segmentation, classes)
        assert torch.equal(result.segmentation_scores.argmax(dim=0), classes)


def test_post_process_semantic_segmentation__ties_go_to_the_first_class() -> None:
    assert post_process_semantic_segmentation({"logits": torch.zeros(1, 4, 3, 3)})[0].unique().tolist() == [0]


# Normals


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_post_process_normal_estimation__unit_length_after_resizing(dtype: torch.dtype) -> None:
    outputs = SimpleNamespace(normals=torch.randn(1, 3, HEIGHT, WIDTH, generator=torch.manual_seed(0)).to(dtype))
    for sizes in (None, [(500, 300)], [(9, 7)]):
        normals = post_process_normal_estimation(outputs, source_sizes=sizes)[0]["normals"]
        torch.testing.assert_close(normals.norm(dim=0), torch.ones(normals.shape[1:]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_post_process_normal_estimation__zero_stays_zero(dtype: torch.dtype) -> None:
    outputs = {"normals": torch.zeros(1, 3, HEIGHT, WIDTH, dtype=dtype)}
    assert post_process_normal_estimation(outputs, target_sizes=[(50, 50)])[0]["normals"].abs().max() == 0


def test_post_process_normal_estimation__raw_length_has_no_influence() -> None:
    normals = maps(3) - 0.5
    longer = normals * (0.1 + 10 * maps(1, seed=5))
    results = [post_process_normal_estimation({"normals": n}, target_sizes=[(50, 40)] * 2) for n in (normals, longer)]
    for first, second in zip(*results, strict=True):
        torch.testing.assert_close(first["normals"], second["normals"], atol=1e-4, rtol=0)


def test_post_process_normal_estimation__horizontal_flip_equivariant() -> None:
    normals = maps(3) - 0.5
    plain = post_process_normal_estimation({"normals": normals}, target_sizes=[(50, 40)] * 2)[0]["normals"]
    flipped = post_process_normal_estimation({"normals": normals.flip(-1)}, target_sizes=[(50, 40)] * 2)[0]["normals"]
    torch.testing.assert_close(flipped.flip(-1), plain, atol=1e-4, rtol=0)


# Pointmaps


def test_post_process_pointmap_estimation__divides_by_the_scale() -> None:
    outputs = outputs_of("pointmap")
    outputs.scales = torch.tensor([[2.0], [0.5]])
    first, second = post_process_pointmap_estimation(outputs)
    torch.testing.assert_close(first["pointmap"], outputs.pointmaps[0] / 2)
    torch.testing.assert_close(second["pointmap"], outputs.pointmaps[1] * 2)
    assert first["is_metric"] is True


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, -math.inf, 1e-30])
def test_post_process_pointmap_estimation__unusable_scale(scale: float) -> None:
    outputs = outputs_of("pointmap")
    outputs.scales = torch.tensor([[scale], [2.0]])
    with pytest.warns(UserWarning, match=r"not positive.*\{0: .*is_metric=False"):
        bad, good = post_process_pointmap_estimation(outputs)
    assert (bad["is_metric"], good["is_metric"]) == (False, True)
    assert torch.equal(bad["pointmap"], outputs.pointmaps[0])
    torch.testing.assert_close(good["pointmap"], outputs.pointmaps[1] / 2)


def test_post_process_pointmap_estimation__no_scale_branch() -> None:
    for outputs in ({"pointmaps": maps(3), "scales": None}, {"pointmaps": maps(3)}):
        assert [result["is_metric"] for result in post_process_pointmap_estimation(outputs)] == [False, False]


def test_post_process_pointmap_estimation__scales_of_another_batch() -> None:
    with pytest.raises(InputError, match=r"outputs\.scales has shape \(3, 1\)"):
        post_process_pointmap_estimation({"pointmaps": maps(3), "scales": torch.ones(3, 1)})


# Albedo


def test_post_process_albedo_estimation__clamped_before_resizing() -> None:
    albedos = torch.tensor([-4.0, 0.5, 9.0]).reshape(1, 3, 1, 1).expand(1, 3, 4, 4).clone()
    result = post_process_albedo_estimation({"albedos": albedos}, target_sizes=[(9, 9)])[0]["albedo"]
    torch.testing.assert_close(result.amin((1, 2)), torch.tensor([0.0, 0.5, 1.0]))
    torch.testing.assert_close(result.amax((1, 2)), torch.tensor([0.0, 0.5, 1.0]))


# Matting


def matte(alpha: float, foreground: float) -> dict[str, torch.Tensor]:
    return {"alphas": torch.full((2, 1, 4, 6), alpha), "foregrounds": torch.full((2, 3, 4, 6), foreground)}


GREEN = (0, 177, 64)


@pytest.mark.parametrize(
    "background",
    [
        GREEN,
        list(GREEN),
        "#00b140",
        "rgb(0, 177, 64)",
        torch.tensor(GREEN, dtype=torch.uint8),
        torch.tensor(GREEN, dtype=torch.uint8).view(3, 1, 1),
        np.array(GREEN),
        np.array(GREEN, dtype=np.uint8).reshape(1, 1, 3),
        np.array(GREEN, dtype=np.float32) / 255,
        tuple(value / 255 for value in GREEN),
        Image.new("RGB", (2, 3), GREEN),
        Image.new("RGBA", (2, 3), (*GREEN, 255)),
        [Image.new("RGB", (2, 3), GREEN)],
        ["#00b140", GREEN],
        torch.tensor(GREEN, dtype=torch.float32).view(3, 1, 1),
        torch.tensor(GREEN, dtype=torch.float32).view(1, 3, 1, 1).repeat(2, 1, 5, 5) / 255,
    ],
)
def test_post_process_image_matting__every_kind_of_background(background) -> None:
    for result in post_process_image_matting(matte(0.0, 0.0), backgrounds=background):
        composite = result["composite"]
        assert composite.dtype == torch.uint8
        assert composite.shape == (3, 4, 6)
        assert composite.flatten(1).unique(dim=1)[:, 0].tolist() == list(GREEN)


def test_post_process_image_matting__premultiplied_over() -> None:
    result = post_process_image_matting(matte(0.25, 0.2), backgrounds=(255, 255, 255))[0]
    assert result["composite"].unique().tolist() == [int((0.2 + 0.75) * 255.999)]


def test_post_process_image_matting__opaque_hides_and_transparent_shows_the_background() -> None:
    assert post_process_image_matting(matte(1.0, 1.0), backgrounds="black")[0]["composite"].unique().tolist() == [255]
    assert post_process_image_matting(matte(0.0, 0.0), backgrounds="white")[0]["composite"].unique().tolist() == [255]


def test_post_process_image_matting__gray_and_transparent_backgrounds() -> None:
    gray = post_process_image_matting(matte(0.0, 0.0), backgrounds=Image.new("L", (9, 9), 77))[0]["composite"]
    assert gray.unique().tolist() == [77]
    clear = post_process_image_matting(matte(0.0, 0.0), backgrounds=Image.new("RGBA", (9, 9), (5, 5, 5, 0)))
    assert clear[0]["composite"].unique().tolist() == [255]


def test_post_process_image_matting__composite_has_the_target_size() -> None:
    result = post_process_image_matting(matte(0.5, 0.5), [(10, 20), (8, 2)], backgrounds=Image.new("RGB", (5, 5)))
    assert [entry["composite"].shape for entry in result] == [(3, 10, 20), (3, 8, 2)]


def test_post_process_image_matting__no_background_no_composite() -> None:
    assert [entry["composite"] for entry in post_process_image_matting(matte(0.5, 0.5))] == [None, None]


@pytest.mark.parametrize(
    ("background", "message"),
    [
        (["#000000"] * 3, "3 entries for a batch of 2"),
        ("#12", "is not a colour"),
        (torch.tensor([1.0, 2.0]), "A colour has 2 values"),
        (np.full((4, 4, 3), 900.0), r"expected 0\.\.1 or 0\.\.255"),
        ([None, None], "A background is a NoneType"),
        ((0, 300, 0), r"\(0, 300, 0\) has values outside 0\.\.255"),
        (5, "A background is a int"),
    ],
)
def test_post_process_image_matting__no_background_at_all(background, message: str) -> None:
    with pytest.raises(InputError, match=message):
        post_process_image_matting(matte(0.5, 0.5), backgrounds=background)


def test_post_process_image_matting__fields_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="differ in size"):
        post_process_image_matting({"alphas": torch.zeros(1, 1, 4, 4), "foregrounds": torch.zeros(1, 3, 5, 4)})
    with pytest.raises(InputError, match=r"outputs\.alphas has shape \(1, 2, 4, 4\); expected \(batch, 1"):
        post_process_image_matting({"alphas": torch.zeros(1, 2, 4, 4), "foregrounds": torch.zeros(1, 3, 4, 4)})


def test_composite_over__identity_on_opaque_foreground() -> None:
    foreground = torch.rand(3, 5, 5, generator=torch.manual_seed(0))
    composite = composite_over(torch.rand(3, 2, 2), torch.ones(1, 5, 5), foreground)
    torch.testing.assert_close(composite.float() / 255, foreground, atol=1 / 255, rtol=0)


def test_post_process__no_warning_in_plain_use() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for task, (function, _) in POST_PROCESS.items():
            function(outputs_of(task), source_sizes=[(50, 40)] * BATCH, target_sizes=[(50, 40)] * BATCH)


@every_task
def test_post_process__needs_no_inference_mode(task: str) -> None:
    function, field = POST_PROCESS[task]
    outputs = SimpleNamespace(**{name: value.requires_grad_() for name, value in vars(outputs_of(task)).items()})
    result = field(function(outputs, target_sizes=[(50, 40)] * BATCH)[0])
    assert not result.requires_grad
    result.numpy()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e15, 1e20, 1e38])
def test_post_process_normal_estimation__any_magnitude_gives_the_same_directions(scale: float) -> None:
    normals = torch.randn((1, 3, 6, 4), generator=torch.Generator().manual_seed(5))
    (expected,) = post_process_normal_estimation(SimpleNamespace(normals=normals), target_sizes=[(9, 7)])
    (found,) = post_process_normal_estimation(SimpleNamespace(normals=normals * scale), target_sizes=[(9, 7)])
    torch.testing.assert_close(found["normals"], expected["normals"])


@pytest.mark.parametrize("normals", [[[1.0], [1.0, 2.0]], np.full((1, 3, 4, 4), "x"), np.zeros((1, 3, 4, 4), complex)])
def test_post_process_normal_estimation__refuses_what_holds_no_numbers(normals: object) -> None:
    with pytest.raises(InputError, match=r"outputs\.normals"):
        post_process_normal_estimation({"normals": normals})


def test_post_process_normal_estimation__arrays_of_any_layout() -> None:
    normals = np.random.default_rng(0).normal(size=(1, 3, 6, 4)).astype(np.float32)
    (expected,) = post_process_normal_estimation({"normals": normals[..., ::-1].copy()})
    for given in (normals[..., ::-1], normals[..., ::-1].astype(">f4"), normals[..., ::-1].tolist()):
        (found,) = post_process_normal_estimation({"normals": given})
        torch.testing.assert_close(found["normals"], expected["normals"])
