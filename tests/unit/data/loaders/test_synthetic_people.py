from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from sapiens2.data.loaders import GeneratedFolder, SyntheticPeople
from sapiens2.errors import InputError
from sapiens2.services.synthesise import SynthesisRequest, synthesise

SIZE = (48, 40)


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("anny", "warp")),
    reason="needs the extra synth: pip install 'sapiens2[synth]'",
)
def test_synthetic_people__same_samples_as_the_folder_of_the_seed(tmp_path: Path) -> None:
    people = SyntheticPeople(2, SIZE, (1, 3), seed=4)
    written = GeneratedFolder(synthesise(tmp_path / "made", SynthesisRequest(2, SIZE, (1, 3), 4)).folder)
    assert len(people) == len(written) == 2
    for index in range(2):
        made, read = people[index - 2], written[index]
        assert made.truths == read.truths
        assert np.array_equal(made.image, read.image)
        assert np.array_equal(made.parts, read.parts)
        seen = made.keypoints[..., 2] > 0
        assert np.array_equal(made.keypoints[..., 2], read.keypoints[..., 2])
        assert np.allclose(made.keypoints[seen], read.keypoints[seen], atol=2e-3)
        assert np.allclose(made.boxes_xywh, read.boxes_xywh, atol=2e-3)
        assert np.allclose(made.intrinsics, read.intrinsics)
        assert np.allclose(made.pointmap, read.pointmap, atol=1e-4, equal_nan=True)
        assert np.allclose(made.normals, read.normals, atol=1e-3, equal_nan=True)
        for field in ("alpha", "foreground", "albedo"):
            assert np.allclose(getattr(made, field), getattr(read, field), atol=0.5 / 255 + 1e-6, equal_nan=True), field


def test_synthetic_people__index_or_argument_out_of_range__is_refused() -> None:
    with pytest.raises(IndexError, match="index 3 of 3"):
        SyntheticPeople(3, SIZE)[3]
    with pytest.raises(InputError, match="unknown framing 'moon'; expected one of full"):
        SyntheticPeople(3, SIZE, framing="moon")
    with pytest.raises(InputError, match="count must be a whole number from 1 to"):
        SyntheticPeople(0, SIZE)
