"""Sapiens2: human-centric vision transformers for pose, parts, normals, pointmaps, matting and albedo."""

__version__ = "0.1.0"
