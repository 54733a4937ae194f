from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

import data_folders as made
from sapiens2.data.loaders import (
    AlbedoFolder,
    ClassMapFolder,
    DepthFolder,
    GeneratedFolder,
    MatteFolder,
    NormalFolder,
    list_files,
    read_class_list,
)
from sapiens2.data.loaders.depth import as_camera_matrix
from sapiens2.data.loaders.fields import as_alpha, as_mask, as_trimap
from sapiens2.errors import ConfigurationError, InputError
from sapiens2.geometry import project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made.write_everything(tmp_path / "data")


def class_maps(root: Path) -> ClassMapFolder:
    return ClassMapFolder(root / "images", root / "parts")


def normals(root: Path) -> NormalFolder:
    return NormalFolder(root / "images", root / "normals")


def depths(root: Path) -> DepthFolder:
    return DepthFolder(root / "images", root / "depth", root / "intrinsics")


def mattes(root: Path) -> MatteFolder:
    return MatteFolder(root / "images", root / "alpha", root / "foreground")


def albedos(root: Path) -> AlbedoFolder:
    return AlbedoFolder(root / "images", root / "albedo")


LOADERS: dict[str, Callable[[Path], object]] = {
    "parts": class_maps,
    "normals": normals,
    "depth": depths,
    "alpha": mattes,
    "albedo": albedos,
    "images": class_maps,
    "foreground": mattes,
    "intrinsics": depths,
}
SUFFIXES = {"depth": "npz", "intrinsics": "json"}


def file_of(root: Path, kind: str) -> Path:
    return root / kind / f"b.left.{SUFFIXES.get(kind, 'png')}"


def test_class_maps__ids_and_pictures(root: Path) -> None:
    samples = class_maps(root)
    assert samples.stems == made.STEMS
    sample = samples[1]
    np.testing.assert_array_equal(sample.image, made.image(1))
    np.testing.assert_array_equal(sample.parts, made.parts())
    assert sample.name == str(root / "images" / "b.left.png")
    assert len(samples.class_names) == 29


def test_class_maps__palette_counts_as_ids(root: Path) -> None:
    picture = Image.fromarray(made.parts())
    picture = picture.convert("P")
    picture.putdata(made.parts().ravel().tolist())
    picture.putpalette([255 - value for value in range(256) for _ in range(3)])
    picture.save(root / "parts" / "a.png")
    np.testing.assert_array_equal(class_maps(root)[0].parts, made.parts())


def test_normals__16_bit_8_bit_and_arrays(root: Path) -> None:
    truth = made.normals()
    folder = root / "normals"
    (folder / "b.left.png").unlink()
    np.save(folder / "b.left.npy", truth.transpose(1, 2, 0) * 1.02)  # not quite of unit length
    made.save_picture(folder / "c.png", np.rint((truth + 1) / 2 * 255).astype(np.uint8).transpose(1, 2, 0))
    samples = normals(root)
    for index, tolerance in enumerate((3e-5, 1e-6, 0.012)):
        got = samples[index].normals
        assert np.isnan(got[:, 0, 0]).all()
        np.testing.assert_allclose(got[:, 1:], truth[:, 1:], atol=tolerance)
        np.testing.assert_allclose(np.linalg.norm(got[:, 1:], axis=0), 1, atol=1e-6)


def test_normals__black_is_none_and_axes_can_be_turned(root: Path) -> None:
    stored = np.full((made.HEIGHT, made.WIDTH, 3), (128, 255, 128), np.uint8)
    stored[2, 3] = 0
    for stem in made.STEMS:
        made.save_picture(root / "normals" / f"{stem}.png", stored)
    got = NormalFolder(root / "images", root / "normals", signs=(1, -1, -1))[0].normals
    assert np.isnan(got[:, 2, 3]).all()
    np.testing.assert_allclose(got[:, 0, 0], [0, -1, 0], atol=0.006)


def test_normals__masks_and_excluded_parts(root: Path) -> None:
    for stem in made.STEMS:
        made.save_picture(root / "masks" / f"{stem}.PNG", np.eye(made.HEIGHT, made.WIDTH, dtype=np.uint8) * 255)
    samples = NormalFolder(
        root / "images", root / "normals", root / "masks", parts=root / "parts", excluded_parts=("Hair", "Tongue")
    )
    expected = np.eye(made.HEIGHT, made.WIDTH, dtype=bool) & ~np.isin(made.parts(), [4, 28])
    expected[0, 0] = False  # no normal is there
    np.testing.assert_array_equal(np.isfinite(samples[0].normals).all(axis=0), expected)
    assert samples[0].mask is None  # of alpha, all pixels would count
    with pytest.raises(ConfigurationError, match=r"no classes \['Teeth'\]"):
        NormalFolder(root / "images", root / "normals", parts=root / "parts", excluded_parts=("Teeth",))
    with pytest.raises(ConfigurationError, match="belong together"):
        NormalFolder(root / "images", root / "normals", parts=root / "parts")


def test_normals__exr(root: Path) -> None:
    exr = pytest.importorskip("OpenEXR", reason="OpenEXR, of the extra test, is not installed")
    truth = made.normals()
    for stem in made.STEMS:
        (root / "normals" / f"{stem}.png").unlink()
        header = {"compression": exr.ZIP_COMPRESSION, "type": exr.scanlineimage}
        pixels = np.ascontiguousarray(truth.transpose(1, 2, 0))
        exr.File(header, {"RGB": pixels}).write(str(root / "normals" / f"{stem}.exr"))
    np.testing.assert_allclose(normals(root)[0].normals[:, 1:], truth[:, 1:], atol=1e-6)
    (root / "normals" / "c.exr").write_bytes(b"\x76\x2f\x31\x01 torn")
    with pytest.raises(InputError, match=r"c\.exr is not a readable EXR file"):
        normals(root)[2]


def test_depth__becomes_points_on_the_rays_of_their_pixels(root: Path) -> None:
    sample = depths(root)[0]
    np.testing.assert_allclose(sample.pointmap[2], made.depth())
    assert np.isnan(sample.pointmap[:, 0, 0]).all()
    pixels = project(torch.from_numpy(sample.pointmap)[None], torch.from_numpy(sample.intrinsics))[0].numpy()
    v, u = np.mgrid[: made.HEIGHT, : made.WIDTH]
    np.testing.assert_allclose(pixels[:, 1:], np.stack([u, v])[:, 1:], atol=1e-4)


def test_depth__units_and_forms_of_cameras(root: Path) -> None:
    for stem in made.STEMS:
        (root / "depth" / f"{stem}.npz").unlink()
        made.save_picture(root / "depth" / f"{stem}.png", np.full((made.HEIGHT, made.WIDTH), 2500, np.uint16))
    with pytest.raises(InputError, match=r"a\.png has whole numbers \(uint16\).*unit_m=0.001"):
        depths(root)[0]
    (root / "camera.txt").write_text("10 0 3.5\n0 11 2.5\n0 0 1\n")
    made.write_json(root / "cameras.json", {f"{s}.png": {"fx": 10, "fy": 11, "cx": 3.5, "cy": 2.5} for s in made.STEMS})
    np.save(root / "camera.npy", made.intrinsics())
    for camera in ("camera.txt", "cameras.json", "camera.npy", "intrinsics"):
        sample = DepthFolder(root / "images", root / "depth", root / camera, unit_m=0.001)[1]
        np.testing.assert_allclose(sample.pointmap[2], 2.5)
        np.testing.assert_array_equal(sample.intrinsics, made.intrinsics())


def test_depth__nothing_there_is_no_fault(root: Path) -> None:
    np.savez(root / "depth" / "a.npz", depth=np.zeros((6, 8), np.float16))
    assert np.isnan(depths(root)[0].pointmap).all()


def test_depth__exr(root: Path) -> None:
    exr = pytest.importorskip("OpenEXR", reason="OpenEXR, of the extra test, is not installed")
    for stem in made.STEMS:
        (root / "depth" / f"{stem}.npz").unlink()
        header = {"compression": exr.ZIP_COMPRESSION, "type": exr.scanlineimage}
        channels = {"Z": made.depth(), "RGB": np.zeros((6, 8, 3), np.float16)}
        exr.File(header, channels).write(str(root / "depth" / f"{stem}.exr"))
    np.testing.assert_allclose(depths(root)[0].pointmap[2], made.depth())


def test_mattes__16_bits(root: Path) -> None:
    for stem in made.STEMS:
        made.save_picture(root / "alpha" / f"{stem}.png", made.alpha().astype(np.uint16) * 257)
    np.testing.assert_allclose(mattes(root)[0].alpha, made.alpha() / 255, atol=1e-6)


def test_mattes__foreground_is_premultiplied(root: Path) -> None:
    sample = mattes(root)[0]
    np.testing.assert_allclose(sample.alpha, made.alpha() / 255, atol=1e-6)
    np.testing.assert_allclose(sample.foreground, made.foreground().transpose(2, 0, 1) / 255, atol=1e-6)
    straight = made.image(7)
    for stem in made.STEMS:
        made.save_picture(root / "straight" / f"{stem}.png", straight)
    again = MatteFolder(root / "images", root / "alpha", root / "straight", premultiplied=False)[0]
    np.testing.assert_allclose(again.foreground, sample.foreground, atol=1.01 / 255)
    with pytest.raises(InputError, match=r"images.a\.png: foreground: .* it has to be premultiplied"):
        MatteFolder(root / "images", root / "alpha", root / "straight")[0]


def test_mattes__trimaps(root: Path) -> None:
    levels = np.array([0, 128, 255, 255, 0, 128], np.uint8)[:, None].repeat(made.WIDTH, 1)
    for stem in made.STEMS:
        made.save_picture(root / "trimap" / f"{stem}.png", levels)
    sample = MatteFolder(root / "images", trimap=root / "trimap")[0]
    np.testing.assert_array_equal(sample.mask, levels != 128)
    np.testing.assert_array_equal(sample.alpha[sample.mask], levels[sample.mask] / 255)
    made.save_picture(root / "trimap" / "a.png", made.alpha())
    with pytest.raises(InputError, match=r"a\.png has the values .* 0, 128 \(unknown\) and 255 only"):
        MatteFolder(root / "images", trimap=root / "trimap")[0]
    with pytest.raises(ConfigurationError, match="or else trimap"):
        MatteFolder(root / "images", root / "alpha", trimap=root / "trimap")


def test_albedo__transparent_pixels_have_none(root: Path) -> None:
    np.testing.assert_allclose(albedos(root)[0].albedo, made.image(20).transpose(2, 0, 1) / 255, atol=1e-6)
    layers = np.concatenate([made.image(20), np.full((made.HEIGHT, made.WIDTH, 1), 255, np.uint8)], axis=-1)
    layers[0, 0, 3] = 0
    made.save_picture(root / "albedo" / "a.png", layers)
    got = albedos(root)[0].albedo
    assert np.isnan(got[:, 0, 0]).all()
    assert np.isfinite(got[:, 1:]).all()


def test_generated__everything_at_once(root: Path) -> None:
    samples = GeneratedFolder(root)
    sample = samples[0]
    assert set(sample.truths) == {
        *("keypoints", "boxes_xywh", "parts", "normals", "pointmap", "intrinsics"),
        *("alpha", "foreground", "albedo"),
    }
    assert sample.keypoints.shape == (2, 308, 3)
    assert samples[2].keypoints.shape == (0, 308, 3)  # nobody is there, and that is no fault
    assert GeneratedFolder(root, ["parts"])[0].truths == ("parts",)
    with pytest.raises(InputError, match="There are no masks"):
        GeneratedFolder(root, ["masks"])
    (root / "classes.txt").write_text("nothing\nsomebody\n")
    with pytest.raises(InputError, match="the list has 2 classes"):
        GeneratedFolder(root)[0]


def test_loaders__are_lazy_and_picklable(root: Path) -> None:
    samples = GeneratedFolder(root)
    again = pickle.loads(pickle.dumps(samples))
    np.testing.assert_array_equal(again[0].image, samples[0].image)
    loader = DataLoader(samples, batch_size=None, num_workers=1)
    assert [sample.name for sample in loader] == [samples[index].name for index in range(3)]


def test_list_files__stems_keep_dots_and_suffixes_have_any_case(tmp_path: Path) -> None:
    for name in ("shot.01.PNG", "shot.02.jpeg", ".hidden"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "folder.png").mkdir()
    listing = list_files(tmp_path, {".png", ".jpeg"})
    assert {stem: path.name for stem, path in listing.files.items()} == {
        "shot.01": "shot.01.PNG",
        "shot.02": "shot.02.jpeg",
    }
    assert listing.problems == ()
    (tmp_path / "shot.01.jpeg").write_bytes(b"x")
    (tmp_path / "notes.txt").write_text("x")
    problems = list_files(tmp_path, {".png", ".jpeg"}).problems
    assert len(problems) == 2
    assert any("notes.txt: not a file that is read here" in problem for problem in problems)
    assert any("has the same stem as" in problem for problem in problems)
    with pytest.raises(InputError, match="There is no folder"):
        list_files(tmp_path / "gone", {".png"})


@pytest.mark.parametrize("kind", [kind for kind in LOADERS if kind != "images"])
def test_broken__missing_partner(kind: str, root: Path) -> None:
    file_of(root, kind).unlink()
    with pytest.raises(InputError, match=rf"b\.left\.png: has no partner in .*{kind}"):
        LOADERS[kind](root)


def test_broken__missing_picture(root: Path) -> None:
    (root / "images" / "b.left.png").unlink()
    with pytest.raises(InputError, match=r"parts.b\.left\.png: there is no picture b\.left in"):
        class_maps(root)
    lenient = ClassMapFolder(root / "images", root / "parts", strict=False)
    assert lenient.stems == ("a", "c")
    assert len(lenient.problems) == 1


@pytest.mark.parametrize("kind", LOADERS)
def test_broken__zero_bytes(kind: str, root: Path) -> None:
    file_of(root, kind).write_bytes(b"")
    with pytest.raises(InputError, match=r"b\.left\.\w+ is empty: it has 0 bytes"):
        LOADERS[kind](root)[1]


@pytest.mark.parametrize("kind", LOADERS)
def test_broken__truncated(kind: str, root: Path) -> None:
    path = file_of(root, kind)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with pytest.raises(InputError, match=r"b\.left\.\w+"):
        LOADERS[kind](root)[1]


@pytest.mark.parametrize("kind", [kind for kind in LOADERS if kind != "intrinsics"])
def test_broken__another_size(kind: str, root: Path) -> None:
    path = file_of(root, kind)
    if kind == "depth":
        np.savez(path, depth=np.ones((3, 4), np.float32))
    elif kind == "normals":
        made.write_normals_png(path, np.full((3, 3, 4), 0.57735, np.float32))
    else:
        made.save_picture(path, np.array(Image.open(path))[:3, :4])
    with pytest.raises(InputError, match=r"b\.left\.\w+: \w+ is \d x \d \(height x width\), and its picture"):
        LOADERS[kind](root)[1]


def test_broken__a_transposed_map_hints_at_exif(root: Path) -> None:
    made.save_picture(root / "parts" / "a.png", made.parts().T)
    with pytest.raises(InputError, match="EXIF orientation that the map lacks"):
        class_maps(root)[0]


def test_broken__class_out_of_range(root: Path) -> None:
    ids = made.parts().copy()
    ids[2, 5], ids[3, 3], ids[1, 1] = 29, 200, 255
    made.save_picture(root / "parts" / "a.png", ids)
    expected = r"parts.a\.png: class id 29 at row 2, column 5, and 2 such pixels in all; the list has 29 classes"
    with pytest.raises(InputError, match=expected):
        class_maps(root)[0]
    made.save_picture(root / "parts" / "a.png", made.image())
    with pytest.raises(InputError, match=r"a\.png has shape .* not colours"):
        class_maps(root)[0]


@pytest.mark.parametrize(
    ("kind", "array", "message"),
    [
        ("depth", np.full((6, 8), -2.0), "has 48 depths below zero; expected Z ahead"),
        ("depth", np.ones((6, 8, 2)), r"has shape \(6, 8, 2\)"),
        ("normals", np.full((6, 8, 3), 3.0), "48 normals are not of unit length"),
        ("normals", np.full((6, 8, 3), np.inf), "48 normals are not of unit length"),
        ("normals", np.ones((6, 8)), r"has shape \(6, 8\); expected \(height, width, 3\)"),
        ("alpha", np.full((6, 8), np.nan), "48 values that are NaN or infinite"),
        ("alpha", np.full((6, 8), 255.0), "values from 255 to 255; expected 0 to 1"),
        ("foreground", np.full((6, 8, 3), np.nan), "NaN or infinite"),
        ("albedo", np.full((6, 8, 3), 2.0), "values from 2 to 2; expected 0 to 1"),
        ("parts", np.full((6, 8), 0.5), "fractions"),
        ("parts", np.full((6, 8), -1), "class id -1 at row 0, column 0"),
        ("intrinsics", np.zeros((3, 3)), "expected .*f_x, 0, c_x"),
        ("intrinsics", np.full((3, 3), np.nan), "numbers that are not finite"),
        ("intrinsics", np.eye(4), r"has shape \(4, 4\); expected a camera matrix of 3 x 3"),
    ],
)
def test_broken__values(kind: str, array: np.ndarray, message: str, root: Path) -> None:
    file_of(root, kind).unlink()
    np.save(root / kind / "b.left.npy", array)
    with pytest.raises(InputError, match=rf"b\.left\.npy.*{message}"):
        LOADERS[kind](root)[1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ('{"fx": 10}', r"is {'fx': 10}; expected fx, fy, cx and cy"),
        ('{"intrinsics": "none"}', "is no camera matrix"),
        ("[[1, 2], [3]]", "is no camera matrix"),
    ],
)
def test_broken__cameras(content: str, message: str, root: Path) -> None:
    (root / "intrinsics" / "a.json").write_text(content)
    with pytest.raises(InputError, match=rf"a\.json.*{message}"):
        depths(root)[0]


def test_broken__npz_of_several_arrays(root: Path) -> None:
    np.savez(root / "depth" / "a.npz", one=np.ones((6, 8)), two=np.ones((6, 8)))
    with pytest.raises(InputError, match=r"a\.npz holds arrays called \['one', 'two'\]"):
        depths(root)[0]
    np.save(root / "depth" / "a.npz", np.array([{"depth": 1}], dtype=object), allow_pickle=True)
    (root / "depth" / "a.npz").unlink(missing_ok=True)
    (root / "depth" / "a.npz.npy").rename(root / "depth" / "a.npy")
    with pytest.raises(InputError, match=r"a\.npy is not a readable NPY file"):
        depths(root)[0]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("c.txt", "sky\n person \n\n", ("sky", "person")),
        ("c.txt", "\ufeffsky\nperson", ("sky", "person")),
        ("c.json", '["sky", "person"]', ("sky", "person")),
        ("c.json", '{"1": "person", "0": "sky"}', ("sky", "person")),
    ],
)
def test_read_class_list__forms(name: str, content: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert read_class_list(tmp_path / name) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.txt", "", "holds no list of class names"),
        ("c.txt", "sky\nsky", "these repeat: sky"),
        ("c.txt", "sky\n\nperson", "line 2 is blank"),
        ("c.txt", "\nsky\nperson", "line 1 is blank"),
        ("c.json", '{"0": "sky", "2": "person"}', "expected 0 to 1"),
        ("c.json", "[1, 2]", "holds no list of class names"),
        ("c.txt", "\n".join(map(str, range(256))), "has 256 classes"),
    ],
)
def test_read_class_list__faults(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_class_list(tmp_path / name)


def test_read_class_list__other_encoding(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_bytes("himmel\nstraße".encode("latin-1"))
    with pytest.raises(InputError, match=r"c\.txt is not UTF-8 text"):
        read_class_list(tmp_path / "c.txt")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[0, 9]], np.uint8), [[False, True]]),
        (np.array([[[0, 0, 0], [0, 255, 0]]], np.uint8), [[False, True]]),
        (np.array([[[255, 255, 255, 0], [255, 0, 0, 255]]], np.uint8), [[False, True]]),
        (np.array([[[0, 0, 0, 255], [0, 0, 0, 255]]], np.uint8), [[False, False]]),
        (np.array([[[0, 0, 0, 0], [0, 0, 0, 255]]], np.uint8), [[False, True]]),
        (np.array([[[0, 255], [7, 255]]], np.uint8), [[False, True]]),
    ],
)
def test_as_mask__any_colour_that_is_seen(values: np.ndarray, expected: list[list[bool]]) -> None:
    assert as_mask(values, "mask").tolist() == expected


@pytest.mark.parametrize("channels", [1, 3])
def test_as_alpha__grey_under_an_opaque_channel__is_refused(channels: int) -> None:
    grey = np.repeat(np.arange(4, dtype=np.uint8).reshape(2, 2, 1), channels, axis=2)
    opaque = np.full((2, 2, 1), 255, np.uint8)
    with pytest.raises(InputError, match="grey values that vary, and an alpha channel that is 255 everywhere"):
        as_alpha(np.concatenate([grey, opaque], axis=2), "matte")
    np.testing.assert_array_equal(as_alpha(np.concatenate([0 * grey, opaque], axis=2), "matte"), 1)


@pytest.mark.parametrize("level", [np.nan, 128.7, 1.0, np.inf])
def test_as_trimap__other_levels(level: float) -> None:
    with pytest.raises(InputError, match=f"has the values {level}; a trimap has"):
        as_trimap(np.array([[0.0, level]]), "trimap")


def test_camera__as_four_numbers() -> None:
    np.testing.assert_array_equal(as_camera_matrix([9, 8, 3, 2], "camera"), [[9, 0, 3], [0, 8, 2], [0, 0, 1]])


def test_class_maps__own_classes(root: Path, tmp_path: Path) -> None:
    names = [f"class {index}" for index in range(29)]
    made.write_json(tmp_path / "classes.json", names)
    for classes in (names, tmp_path / "classes.json", str(tmp_path / "classes.json")):
        samples = ClassMapFolder(root / "images", root / "parts", classes)
        assert samples.class_names == tuple(json.loads((tmp_path / "classes.json").read_text()))
