"""A transformers script that gets this library's classes through one line.

    python examples/transformers_script.py facebook/sapiens2-pose-0.4b photo.jpg

Without the line marked below it runs on transformers' own classes, which need torchvision.
"""

from __future__ import annotations

import argparse

import torch
from transformers import AutoImageProcessor, AutoModelForPoseEstimation
from transformers.image_utils import load_image

import sapiens2

sapiens2.register_auto_classes()  # the one line


def main() -> None:
    """Print the surest keypoint of the person that fills the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="pose checkpoint: hub id or folder")
    parser.add_argument("picture")
    options = parser.parse_args()

    image = load_image(options.picture)
    processor = AutoImageProcessor.from_pretrained(options.checkpoint)
    model = AutoModelForPoseEstimation.from_pretrained(options.checkpoint, device_map="auto")
    print(f"{type(model).__module__}.{type(model).__name__} on {model.device}")

    boxes = [[[0, 0, image.width, image.height]]]
    inputs = processor(image, boxes=boxes, return_tensors="pt").to(model.device)
    with torch.inference_mode():
        outputs = model(**inputs)
        mirrored = model(inputs["pixel_values"].flip(-1), flip_pairs=model.config.flip_pairs)
    (person,) = processor.post_process_pose_estimation(outputs, boxes=boxes, outputs_flipped=mirrored)[0]

    best = int(person["scores"].argmax())
    x, y = person["keypoints"][best].tolist()
    name = model.config.id2label[best]
    print(
        f"{len(person['scores'])} keypoints; the surest is {name} at ({x:.1f}, {y:.1f}), {person['scores'][best]:.3f}"
    )


if __name__ == "__main__":
    main()
