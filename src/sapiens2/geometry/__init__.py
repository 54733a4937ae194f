"""Pure geometry on tensors: boxes, crops, resizing and the camera."""

from sapiens2.geometry.boxes import (
    CROP_PADDING,
    as_boxes,
    as_boxes_per_image,
    clip_boxes,
    expand_to_aspect,
    xywh_to_xyxy,
    xyxy_to_xywh,
)
from sapiens2.geometry.camera import CANONICAL_FOCAL_PX, canonical_scale, project, unproject
from sapiens2.geometry.crops import CropMode, crop_people, crop_to_image, image_to_crop
from sapiens2.geometry.resize import Letterbox, letterbox_geometry, resize_image, resize_labels

__all__ = [
    "CANONICAL_FOCAL_PX",
    "CROP_PADDING",
    "CropMode",
    "Letterbox",
    "as_boxes",
    "as_boxes_per_image",
    "canonical_scale",
    "clip_boxes",
    "crop_people",
    "crop_to_image",
    "expand_to_aspect",
    "image_to_crop",
    "letterbox_geometry",
    "project",
    "resize_image",
    "resize_labels",
    "unproject",
    "xywh_to_xyxy",
    "xyxy_to_xywh",
]
