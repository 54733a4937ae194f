"""Drawing: arrays in, ``(H, W, 3)`` uint8 RGB out."""

from sapiens2.visualization.albedo import draw_albedo
from sapiens2.visualization.contact_sheet import draw_contact_sheet
from sapiens2.visualization.legend import LegendEntry, add_legend
from sapiens2.visualization.matting import checkerboard, draw_matte, straight_foreground
from sapiens2.visualization.normal import draw_normals
from sapiens2.visualization.palette import distinct_palette
from sapiens2.visualization.pointmap import depth_range, draw_pointmap
from sapiens2.visualization.pose import draw_pose
from sapiens2.visualization.segmentation import draw_segmentation

__all__ = [
    "LegendEntry",
    "add_legend",
    "checkerboard",
    "depth_range",
    "distinct_palette",
    "draw_albedo",
    "draw_contact_sheet",
    "draw_matte",
    "draw_normals",
    "draw_pointmap",
    "draw_pose",
    "draw_segmentation",
    "straight_foreground",
]
