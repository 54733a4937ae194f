"""Pictures to model input, and model output to results: one image processor, and the pure functions behind it."""

from sapiens2.processing.albedo import post_process_albedo_estimation
from sapiens2.processing.backgrounds import load_backgrounds
from sapiens2.processing.image_input import image_size_hw, list_images, load_image, load_images
from sapiens2.processing.image_processor import Sapiens2ImageProcessor, Sapiens2ImageProcessorKwargs
from sapiens2.processing.label_maps import IGNORE_INDEX
from sapiens2.processing.matting import composite_over, post_process_image_matting
from sapiens2.processing.normal import post_process_normal_estimation
from sapiens2.processing.pointmap import post_process_pointmap_estimation
from sapiens2.processing.pose import post_process_pose_estimation
from sapiens2.processing.segmentation import classify_pixels, post_process_semantic_segmentation
from sapiens2.processing.sizes import as_sizes

__all__ = [
    "IGNORE_INDEX",
    "Sapiens2ImageProcessor",
    "Sapiens2ImageProcessorKwargs",
    "as_sizes",
    "classify_pixels",
    "composite_over",
    "image_size_hw",
    "list_images",
    "load_backgrounds",
    "load_image",
    "load_images",
    "post_process_albedo_estimation",
    "post_process_image_matting",
    "post_process_normal_estimation",
    "post_process_pointmap_estimation",
    "post_process_pose_estimation",
    "post_process_semantic_segmentation",
]
