import numpy as np
import pytest
import torch

from sapiens2.errors import InputError
from sapiens2.geometry import as_boxes, as_boxes_per_image, clip_boxes, expand_to_aspect, xywh_to_xyxy, xyxy_to_xywh

BOX = [1.5, 2.0, 30.0, 40.0]


@pytest.mark.parametrize(
    "boxes",
    [
        [BOX],
        (tuple(BOX),),
        np.array([BOX]),
        np.array([BOX], dtype=np.float32),
        [np.array(BOX)],
        torch.tensor([BOX]),
        torch.tensor([BOX], dtype=torch.float64),
        [torch.tensor(BOX)],
        (torch.tensor(BOX),),
        [[torch.tensor(value) for value in BOX]],
        [[np.float32(value) for value in BOX]],
        np.array([BOX], dtype=object),
    ],
)
def test_as_boxes__every_container_gives_the_same_tensor(boxes):
    result = as_boxes(boxes)
    assert result.dtype == torch.float32
    assert result.tolist() == [BOX]


@pytest.mark.parametrize(
    "boxes",
    [[], (), [[]], np.zeros((0, 4)), np.zeros(0), np.zeros((1, 0)), torch.zeros(0, 4), torch.zeros(0), [np.zeros(0)]],
)
def test_as_boxes__nobody_is_an_empty_tensor(boxes):
    result = as_boxes(boxes)
    assert result.shape == (0, 4)
    assert result.dtype == torch.float32


def test_as_boxes__integers_become_float32():
    assert as_boxes(np.array([[1, 2, 3, 4]])).dtype == torch.float32
    assert as_boxes(torch.tensor([[1, 2, 3, 4]])).tolist() == [[1, 2, 3, 4]]


def test_as_boxes__an_array_of_the_caller_is_copied():
    boxes = np.array([BOX], dtype=np.float32)
    as_boxes(boxes)[0, 0] = 99
    assert boxes[0, 0] == 1.5


@pytest.mark.parametrize("flat", [BOX, tuple(BOX), np.array(BOX), torch.tensor(BOX)])
def test_as_boxes__a_flat_box_says_to_wrap_it(flat):
    with pytest.raises(InputError, match=r"of image 3 are one flat box .* Wrap it: boxes=\[\[x, y, w, h\]\]"):
        as_boxes(flat, image_index=3)


@pytest.mark.parametrize("bad", [[BOX, [1, 2, 3]], [BOX, [1, 2, 3, 4, 0.9]], [BOX, []]])
def test_as_boxes__wrong_length_names_box_and_image(bad):
    with pytest.raises(InputError, match=rf"Box 1 of image 2 has {len(bad[1])} numbers; expected 4"):
        as_boxes(bad, image_index=2)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("position", range(4))
def test_as_boxes__not_finite_names_the_box(value, position):
    bad = list(BOX)
    bad[position] = value
    with pytest.raises(InputError, match=r"Box 2 is .*not finite"):
        as_boxes([BOX, BOX, bad])


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (-1, 5), (5, -1)])
def test_as_boxes__empty_box_names_the_box(size):
    with pytest.raises(InputError, match=r"Box 1 of image 0 is .*width or height is not above zero"):
        as_boxes([BOX, [1, 2, *size]], image_index=0)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, "Boxes are None"),
        ("1234", "Boxes are '1234'"),
        (7, "Boxes are 7"),
        ([None], "Box 0 is None"),
        (["1234"], "Box 0 is '1234'"),
        ([["1", "2", "3", "4"]], "Box 0 is .* expected 4 numbers"),
        ([BOX, 5.0], "mix single numbers with boxes"),
        (np.array([["1", "2", "3", "4"]]), "dtype <U1"),
        (np.ones((2, 5)), r"shape \(2, 5\); expected \(N, 4\)"),
        (torch.ones(1, 2, 4), r"shape \(1, 2, 4\)"),
        (torch.ones(1, 4, dtype=torch.complex64), "complex64"),
        (torch.tensor(1.0), r"shape \(\)"),
        (np.array(1.0), r"shape \(\)"),
    ],
)
def test_as_boxes__what_is_no_box_is_refused(bad, message):
    with pytest.raises(InputError, match=message):
        as_boxes(bad)


@pytest.mark.parametrize(
    "boxes",
    [
        [[BOX, BOX], [BOX, BOX]],
        np.array([[BOX, BOX], [BOX, BOX]]),
        torch.tensor([[BOX, BOX], [BOX, BOX]]),
        [np.array([BOX, BOX]), torch.tensor([BOX, BOX])],
    ],
)
def test_as_boxes_per_image__every_container_gives_the_same_tensors(boxes):
    for num_images in (2, None):
        result = as_boxes_per_image(boxes, num_images)
        assert [image.tolist() for image in result] == [[BOX, BOX], [BOX, BOX]]


def test_as_boxes_per_image__images_without_people_stay():
    assert [len(image) for image in as_boxes_per_image([[], [BOX], [[]], np.zeros((0, 4))], 4)] == [0, 1, 0, 0]


@pytest.mark.parametrize("num_images", [1, 3])
def test_as_boxes_per_image__names_both_counts(num_images):
    with pytest.raises(InputError, match=rf"Boxes for 2 images were given with {num_images} images"):
        as_boxes_per_image([[BOX], [BOX]], num_images)


def test_as_boxes_per_image__boxes_of_one_image_are_not_taken_for_a_batch():
    with pytest.raises(InputError, match="of image 0 are one flat box"):
        as_boxes_per_image([BOX, BOX], 2)


@pytest.mark.parametrize("bad", [None, "text", 5, torch.tensor(3.0), np.array(3.0), {"boxes": []}])
def test_as_boxes_per_image__what_is_no_list_is_refused(bad):
    with pytest.raises(InputError, match="expected one list of boxes per image"):
        as_boxes_per_image(bad)


def test_as_boxes_per_image__names_image_and_box():
    with pytest.raises(InputError, match="Box 1 of image 1"):
        as_boxes_per_image([[BOX], [BOX, [0, 0, 0, 1]]], 2)


def test_xywh_to_xyxy__and_back():
    boxes = torch.tensor([BOX, [-3.0, 4.0, 5.0, 6.0]])
    corners = xywh_to_xyxy(boxes)
    assert corners.tolist() == [[1.5, 2, 31.5, 42], [-3, 4, 2, 10]]
    assert xyxy_to_xywh(corners).equal(boxes)


def test_clip_boxes__moves_corners_to_the_edge_only():
    corners = torch.tensor([[-5.0, -6.0, 200.0, 300.0], [1.0, 2.0, 3.0, 4.0], [150.0, 0.0, 160.0, 10.0]])
    assert clip_boxes(corners, (80, 100)).tolist() == [[0, 0, 100, 80], [1, 2, 3, 4], [100, 0, 100, 10]]


def test_expand_to_aspect__tall_and_wide_boxes_keep_their_centre_and_long_side():
    boxes = torch.tensor([[10.0, 20.0, 30.0, 80.0], [10.0, 20.0, 90.0, 40.0]])
    centres, sizes = expand_to_aspect(boxes, 0.75, 1.25)
    assert centres.tolist() == [[25, 60], [55, 40]]
    assert sizes.tolist() == [[75, 100], [112.5, 150]]


def test_expand_to_aspect__always_contains_the_padded_box():
    torch.manual_seed(0)
    boxes = torch.rand(200, 4, dtype=torch.float64) * 100 + 1
    _, sizes = expand_to_aspect(boxes, 0.75, 1.1)
    torch.testing.assert_close(sizes[:, 0] / sizes[:, 1], torch.full((200,), 0.75, dtype=torch.float64))
    assert (sizes >= 1.1 * boxes[:, 2:] * (1 - 1e-12)).all()
    assert (sizes <= 1.1 * boxes[:, 2:] * (1 + 1e-12)).any(dim=1).all()


@pytest.mark.parametrize(("aspect", "padding"), [(0, 1), (-1, 1), (float("nan"), 1), (1, 0), (1, float("inf"))])
def test_expand_to_aspect__refuses_what_is_no_window(aspect, padding):
    with pytest.raises(InputError, match="expected a finite number above zero"):
        expand_to_aspect(torch.tensor([BOX]), aspect, padding)


@pytest.mark.parametrize("number", [1.1e7, -1.1e7, 3e38, 1e300])
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize(
    "convert", [list, lambda box: [np.array(box, dtype=float)], lambda box: np.array([box], float)]
)
def test_as_boxes__refuses_numbers_that_no_picture_reaches(number, place, convert):
    box = [*BOX[:place], number, *BOX[place + 1 :]]
    with pytest.raises(InputError, match=r"Box 0 is .*(beyond 1e\+07 pixels|not finite)"):
        as_boxes([box] if convert is list else convert(box))


def test_as_boxes__refuses_integers_that_no_float_holds():
    with pytest.raises(InputError, match="expected 4 numbers"):
        as_boxes([[0, 0, 10**400, 5]])


def test_as_boxes__takes_numbers_up_to_the_bound():
    assert as_boxes([[-1e7, 0, 1e7, 1e7]]).tolist() == [[-1e7, 0, 1e7, 1e7]]


@pytest.mark.parametrize(
    "boxes",
    [
        [[True, 0, 5, 5]],
        [[np.True_, 0, 5, 5]],
        [[torch.tensor(True), 0, 5, 5]],
        [np.array([True] * 4)],
        [torch.ones(4, dtype=torch.bool)],
        torch.ones((1, 4), dtype=torch.bool),
        np.ones((1, 4), dtype=bool),
        np.array([[True, 0, 5, 5]], dtype=object),
    ],
)
def test_as_boxes__refuses_booleans(boxes):
    with pytest.raises(InputError, match=r"expected (4|real) numbers"):
        as_boxes(boxes)


@pytest.mark.parametrize("boxes", [torch.ones((2, 4), device="meta"), torch.ones((2, 4)).to_sparse()])
def test_as_boxes__refuses_tensors_without_dense_values(boxes):
    with pytest.raises(InputError, match=r"of image 3 are a tensor .*expected a dense tensor"):
        as_boxes(boxes, image_index=3)


def test_as_boxes__leaves_the_graph_behind():
    assert not as_boxes(torch.tensor([BOX], requires_grad=True)).requires_grad
