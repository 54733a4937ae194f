from __future__ import annotations

import hashlib

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from photo_outline import coverage, held_mask, outline, outline_box, outline_mask, outline_parts
from sapiens2.assets import part_table, sample_photo


def shoelace(polygon: list[list[float]]) -> float:
    x, y = np.array(polygon).T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def test_outline__is_of_the_photo_that_is_committed():
    assert hashlib.sha256(sample_photo().read_bytes()).hexdigest() == outline()["sha256"]
    with Image.open(sample_photo()) as photo:
        assert list(photo.size) == outline()["size_wh"]


def test_coverage__of_a_shape_between_pixels_is_its_share_of_each():
    share = coverage([[[10.5, 20], [12.25, 20], [12.25, 21], [10.5, 21]]])
    assert share[20, 10:13] == pytest.approx([0.5, 1, 0.25], abs=0.13)  # Pillow draws the border too
    assert share.sum() == pytest.approx(1.75, abs=0.4)


@pytest.mark.parametrize("name", ["person", "held"])
def test_outline__is_closed_within_the_photo_and_does_not_cross_itself(name):
    (polygon,) = outline()[name]
    assert np.min(polygon) >= 0
    assert np.max(polygon) <= 512
    # a line that crossed itself would count a loop with the other sign, and miss the area that is filled
    assert coverage([polygon]).sum() == pytest.approx(shoelace(polygon), rel=0.01)


def test_outline_mask__is_one_piece_without_holes():
    for held in (False, True):
        mask = outline_mask(held=held)
        assert ndimage.label(mask)[1] == 1
        assert ndimage.label(~np.pad(mask[:-1], 1))[1] == 1  # the last row is where the photo ends


def test_outline_mask__covers_what_the_photo_shows():
    person, both = outline_mask(), outline_mask(held=True)
    assert 0.40 < person.mean() < 0.50
    assert 0.50 < both.mean() < 0.62
    assert (both == (person | held_mask())).all()
    assert (person & held_mask()).sum() < 600  # one line of pixels at most along their common border
    for x, y in ((225, 40), (220, 120), (225, 220), (120, 300), (60, 400), (320, 300), (340, 330)):
        assert person[y, x]
    for x, y in ((30, 60), (60, 200), (110, 170), (270, 160), (420, 100), (430, 310), (10, 480), (500, 380)):
        assert not both[y, x]


def test_outline_mask__divides_the_orange_suit_from_the_wall():
    """Colour as a witness of its own: right of the flag only the suit is saturated orange."""
    photo = np.asarray(Image.open(sample_photo()).convert("RGB")).astype(int)
    orange = (photo[..., 0] > 190) & (photo[..., 0] - photo[..., 2] > 90) & (photo[..., 1] - photo[..., 2] > 20)
    orange[:, :100] = False
    orange[:200] = False
    orange[:, 370:] = False
    assert orange.sum() > 20_000
    assert (orange & ~outline_mask(held=True)).sum() < 0.002 * orange.sum()


@pytest.mark.parametrize("held", [False, True])
def test_outline_box__is_three_to_four_and_tight(held):
    x, y, width, height = outline_box(held=held)
    assert width / height == pytest.approx(3 / 4)
    rows, columns = np.nonzero(outline_mask(held=held))
    assert x <= columns.min()
    assert y <= rows.min()
    assert columns.max() <= x + width
    assert rows.max() <= y + height
    slack = min(width - np.ptp(columns) - 1, height - np.ptp(rows) - 1)
    assert slack < 5  # along one axis nothing more would fit


def test_outline_parts__agree_with_the_outline_and_are_where_they_must_be():
    parts, table, person = outline_parts(), part_table(), outline_mask()
    present = {table.names[index] for index in np.unique(parts) if index != table.ignore_index}
    assert present == {
        *("Background", "Upper_Clothing", "Hair", "Face_Neck", "Upper_Lip", "Lower_Lip", "Upper_Teeth"),
    }
    assert not (parts == 0)[outline_mask(held=True)].any()
    said = (parts != table.ignore_index) & (parts != 0)
    assert person[said].all()
    assert said.sum() > 0.7 * person.sum()
    heights = [np.nonzero(parts == table.names.index(name))[0].mean() for name in ("Hair", "Upper_Lip", "Upper_Teeth")]
    assert heights == sorted(heights)
    assert parts[160, 225] == table.names.index("Face_Neck")
    assert parts[215, 225] == table.names.index("Upper_Clothing")


def test_outline_parts__say_nothing_where_two_classes_meet():
    parts = outline_parts()
    for axis in (0, 1):
        first, second = (np.take(parts, range(start, 511 + start), axis) for start in (0, 1))
        assert ((first == second) | (first == 255) | (second == 255)).all()
