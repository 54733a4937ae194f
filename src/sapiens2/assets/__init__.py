"""Data that comes with the package: the tables of keypoints and body parts, and a sample photo."""

from sapiens2.assets.photos import sample_photo
from sapiens2.assets.tables import KeypointTable, PartTable, keypoint_table, part_table

__all__ = ["KeypointTable", "PartTable", "keypoint_table", "part_table", "sample_photo"]
