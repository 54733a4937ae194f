"""Files: one module per format, arrays in and out, and every file appears whole or not at all."""

from sapiens2.io.atomic import atomic_path, write_bytes
from sapiens2.io.coco import PosedImage, coco_pose_document, read_coco_poses, write_coco_poses
from sapiens2.io.json_file import read_json, write_json
from sapiens2.io.npz import read_npz, write_npz
from sapiens2.io.ply import PointCloud, read_ply, write_ply
from sapiens2.io.png import PngContents, encode_png, read_normals_png, read_png, write_normals_png, write_png

__all__ = [
    "PngContents",
    "PointCloud",
    "PosedImage",
    "atomic_path",
    "coco_pose_document",
    "encode_png",
    "read_coco_poses",
    "read_json",
    "read_normals_png",
    "read_npz",
    "read_ply",
    "read_png",
    "write_bytes",
    "write_coco_poses",
    "write_json",
    "write_normals_png",
    "write_npz",
    "write_ply",
    "write_png",
]
