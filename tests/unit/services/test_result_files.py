from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sapiens2.inference import load
from sapiens2.services.picture_files import PictureFile
from sapiens2.services.result_files import foreign_files, is_own_file
from sapiens2.types import TASKS

pytestmark = pytest.mark.filterwarnings("ignore:Predicted scales")


@pytest.fixture(scope="module")
def saved(nano_checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of all tasks, of a picture with an awkward name."""
    folder = tmp_path_factory.mktemp("saved")
    Image.new("RGB", (40, 30), "teal").save(folder / "ü 文.png")
    return load("all", model=nano_checkpoints, device="cpu")(folder / "ü 文.png").save(folder / "out")


def test_foreign_files__knows_every_file_of_every_task_as_its_own(saved: list[Path]) -> None:
    picture = PictureFile(Path("ü 文.png"), Path(), "ü 文")
    assert all(is_own_file(path) for path in saved)
    assert foreign_files([picture], TASKS, saved[0].parent) == []


def test_foreign_files__finds_each_file_that_something_else_wrote(saved: list[Path], tmp_path: Path) -> None:
    picture = PictureFile(Path("b.png"), Path("sub"), "b")
    (tmp_path / "sub").mkdir()
    places = {tmp_path / "sub" / path.name.replace("ü 文", "b") for path in saved}
    for place in places:
        place.write_bytes(b"of somebody else")
    assert set(foreign_files([picture], TASKS, tmp_path)) == places
    assert foreign_files([picture], ["seg"], tmp_path) == [
        tmp_path / "sub" / f"b_seg{end}" for end in (".png", "_classes.png")
    ]


def test_is_own_file__other_files_of_the_same_formats(tmp_path: Path) -> None:
    Image.new("RGB", (4, 3)).save(tmp_path / "a.png")
    np.savez(tmp_path / "a.npz", normals=np.zeros(3))
    np.savez(tmp_path / "b.npz", Software="another program")
    np.save(tmp_path / "single.npy", np.zeros(3))
    (tmp_path / "single.npy").rename(tmp_path / "single.npz")
    (tmp_path / "empty.npz").touch()
    (tmp_path / "a.json").write_text('{"info": "not sapiens2"}')
    (tmp_path / "folder.png").mkdir()
    assert [path.name for path in tmp_path.iterdir() if is_own_file(path)] == []
