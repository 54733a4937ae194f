"""The reference's sixteen examples on small checkpoints: what they call, the shapes they state, with our classes.

The checkpoints are written by transformers' own classes and processor; each example runs in a process where
``sapiens2.register_auto_classes()`` was the only line added.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.models.sapiens2 import modeling_sapiens2 as upstream
from transformers.models.sapiens2.configuration_sapiens2 import Sapiens2Config as UpstreamConfig
from transformers.models.sapiens2.image_processing_sapiens2 import Sapiens2ImageProcessor as UpstreamProcessor

import tiny_models as tiny

CHECKPOINTS = {
    "pretrain": "Sapiens2Model",
    "pose": "Sapiens2ForPoseEstimation",
    "seg": "Sapiens2ForSemanticSegmentation",
    "normal": "Sapiens2ForNormalEstimation",
    "pointmap": "Sapiens2ForPointmapEstimation",
    "matting": "Sapiens2ForImageMatting",
}
PROLOGUE = """
import sapiens2
sapiens2.register_auto_classes()
import numpy as np
import torch
import transformers.models.auto.auto_factory as auto_factory
from PIL import Image
from transformers import (
    AutoBackbone, AutoConfig, AutoImageProcessor, AutoModel, AutoModelForImageMatting, AutoModelForKeypointDetection,
    AutoModelForNormalEstimation, AutoModelForPointmapEstimation, AutoModelForPoseEstimation,
    AutoModelForSemanticSegmentation,
)
# AutoBackbone asks the hub whether a repository exists before it looks at a local folder
auto_factory.hf_api = lambda: type("Hub", (), {"repo_exists": staticmethod(lambda name: True)})()
image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (120, 160, 3), np.uint8))
size = (image.height, image.width)
boxes = [[[67.7, 0.2, 73.5, 94.9]]]
def start(auto_class, task, **options):
    processor = AutoImageProcessor.from_pretrained(task)
    model = auto_class.from_pretrained(task, **options)
    assert type(model).__module__.startswith("sapiens2."), type(model)
    assert type(processor).__module__.startswith("sapiens2."), type(processor)
    return processor, model
def run(model, inputs, **options):
    with torch.inference_mode():
        return model(**inputs, **options)
"""
EXAMPLES = {
    "cls_token": """
processor, model = start(AutoModel, "pretrain", device_map="auto")
inputs = processor(images=image, return_tensors="pt").to(model.device)
assert run(model, inputs).pooler_output.shape == (1, 64)
""",
    "backbone": """
processor, model = start(AutoBackbone, "pretrain", device_map="auto")
outputs = run(model, processor(images=image, return_tensors="pt").to(model.device), return_class_token=True)
assert outputs.cls_tokens[0].shape == (1, 64)
assert outputs.feature_maps[0].shape == (1, 64, 6, 4)
""",
    "normals": """
processor, model = start(AutoModelForNormalEstimation, "normal", device_map="auto")
outputs = run(model, processor(image, return_tensors="pt").to(model.device))
assert outputs.normals.shape == (1, 3, 24, 16)
result = processor.post_process_normal_estimation(outputs, source_sizes=[size], target_sizes=[size])
normals = result[0]["normals"]
assert normals.shape == (3, 120, 160)
assert torch.allclose(normals.norm(dim=0), torch.ones(()), atol=1e-5)
""",
    "pointmap": """
processor, model = start(AutoModelForPointmapEstimation, "pointmap", device_map="auto")
outputs = run(model, processor(image, return_tensors="pt").to(model.device))
assert outputs.pointmaps.shape == (1, 3, 24, 16)
assert outputs.scales.shape == (1, 1)
result = processor.post_process_pointmap_estimation(outputs, source_sizes=[size], target_sizes=[size])
assert result[0]["pointmap"].shape == (3, 120, 160)
""",
    "pose": """
processor, model = start(AutoModelForPoseEstimation, "pose", device_map="auto")
outputs = run(model, processor(image, boxes=boxes, return_tensors="pt").to(model.device))
assert outputs.heatmaps.shape == (1, 5, 24, 16)
person = processor.post_process_pose_estimation(outputs, boxes=boxes)[0][0]
assert person["keypoints"].shape == (5, 2)
assert person["scores"].shape == (5,)
""",
    "pose_flip": """
processor, model = start(AutoModelForPoseEstimation, "pose", device_map="auto")
pixel_values = processor(image, boxes=boxes, return_tensors="pt").to(model.device)["pixel_values"]
flip_pairs = torch.tensor(model.config.flip_pairs, device=model.device)
with torch.inference_mode():
    outputs = model(pixel_values)
    outputs_flipped = model(pixel_values.flip(-1), flip_pairs=flip_pairs)
people = processor.post_process_pose_estimation(outputs, outputs_flipped=outputs_flipped, boxes=boxes)[0]
assert people[0]["keypoints"].shape == (5, 2)
""",
    "pose_loss": """
processor, model = start(AutoModelForPoseEstimation, "pose", device_map="auto")
inputs = processor(image, boxes=boxes, return_tensors="pt").to(model.device)
labels = torch.randn(1, 5, 96, 64)
outputs = model(**inputs, labels=labels, label_weights=torch.ones(1, 5, 1, 1))
assert outputs.loss.item() > 0
""",
    "segmentation": """
processor, model = start(AutoModelForSemanticSegmentation, "seg", device_map="auto")
outputs = run(model, processor(image, return_tensors="pt").to(model.device))
assert outputs.logits.shape == (1, 7, 24, 16)
assert processor.post_process_semantic_segmentation(outputs, target_sizes=[size])[0].shape == (120, 160)
""",
    "matting": """
processor, model = start(AutoModelForImageMatting, "matting", device_map="auto")
outputs = run(model, processor(image, return_tensors="pt").to(model.device))
background = torch.tensor([0, 177, 64], dtype=torch.uint8).view(3, 1, 1)
result = processor.post_process_image_matting(outputs, target_sizes=[size], backgrounds=background)[0]
assert result["alpha"].shape == (1, 120, 160)
assert result["foreground"].shape == (3, 120, 160)
assert result["composite"].shape == (3, 120, 160)
assert result["composite"].dtype == torch.uint8
""",
    "auto_model_trunk": """
processor, model = start(AutoModel, "pretrain")
assert run(model, processor(images=image, return_tensors="pt")).pooler_output.shape == (1, 64)
""",
    "auto_backbone_class_token": """
processor, model = start(AutoBackbone, "pretrain")
outputs = run(model, processor(images=image, return_tensors="pt"), return_class_token=True)
assert outputs.feature_maps[0].shape == (1, 64, 6, 4)
assert outputs.cls_tokens[0].shape == (1, 64)
""",
    "auto_model_matting": """
processor, model = start(AutoModel, "matting")
outputs = run(model, processor(image, return_tensors="pt"))
assert outputs.alphas.shape == (1, 1, 24, 16)
assert outputs.foregrounds.shape == (1, 3, 24, 16)
""",
    "auto_model_normal": """
processor, model = start(AutoModel, "normal")
assert run(model, processor(image, return_tensors="pt")).normals.shape == (1, 3, 24, 16)
""",
    "auto_model_pointmap": """
processor, model = start(AutoModel, "pointmap")
assert run(model, processor(image, return_tensors="pt")).pointmaps.shape == (1, 3, 24, 16)
""",
    "auto_model_pose": """
processor, model = start(AutoModel, "pose")
assert run(model, processor(image, boxes=boxes, return_tensors="pt")).heatmaps.shape == (1, 5, 24, 16)
""",
    "auto_model_segmentation": """
processor, model = start(AutoModel, "seg")
assert run(model, processor(image, return_tensors="pt")).logits.shape == (1, 7, 24, 16)
""",
}
MORE = {
    "from_config_and_keypoint_detection": """
config = AutoConfig.from_pretrained("pose")
assert type(config) is sapiens2.Sapiens2Config
assert type(AutoModel.from_config(config)) is sapiens2.Sapiens2ForPoseEstimation
assert type(AutoModelForKeypointDetection.from_pretrained("pose")) is sapiens2.Sapiens2ForPoseEstimation
""",
    "registering_again": """
sapiens2.register_auto_classes()
assert type(AutoModel.from_pretrained("pose")) is sapiens2.Sapiens2ForPoseEstimation
""",
    "trains_on_what_the_processor_returns": """
processor, model = start(AutoModelForPoseEstimation, "pose")
keypoints = [[[[70.0, 20.0, 2], [80.0, 30.0, 2], [90.0, 40.0, 1], [75.0, 50.0, 0], [99.0, 60.0, 2]]]]
inputs = processor(image, boxes=boxes, keypoints=keypoints, return_tensors="pt")
model.train()
loss = model(**inputs).loss
loss.backward()
assert loss.item() > 0
""",
    "no_architectures_is_the_trunk": """
import json, pathlib
path = pathlib.Path("pretrain/config.json")
fields = json.loads(path.read_text())
del fields["architectures"]
path.write_text(json.dumps(fields))
assert type(AutoModel.from_pretrained("pretrain")) is sapiens2.Sapiens2Model
config = sapiens2.Sapiens2Config(num_hidden_layers=1, hidden_size=64)
assert type(AutoModel.from_config(config)) is sapiens2.Sapiens2Model
""",
}


@pytest.fixture(scope="module")
def checkpoint_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("checkpoints")
    for task, class_name in CHECKPOINTS.items():
        extra: dict[str, Any] = {"flip_pairs": [[0, 1], [2, 3]]} if task == "pose" else {}
        torch.manual_seed(0)
        model = getattr(upstream, class_name)(UpstreamConfig(**tiny.fields_of(class_name, **extra)))
        tiny.randomised(model).save_pretrained(root / task)
        size = {"height": tiny.IMAGE_HW[0], "width": tiny.IMAGE_HW[1]}
        UpstreamProcessor(size=size, do_pad=task in ("normal", "pointmap")).save_pretrained(root / task)
    return root


def run_in_fresh_process(code: str, root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROLOGUE + code], cwd=root, capture_output=True, text=True, env=_offline(), check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def _offline() -> dict[str, str]:
    return {**os.environ, "HF_HUB_OFFLINE": "1"}


def _as_functions(examples: dict[str, str]) -> str:
    """One process for all: importing torch and transformers costs more than the examples."""
    body = "".join(f"\ndef {name}():\n{textwrap.indent(code.strip(), '    ')}\n" for name, code in examples.items())
    return body + "\n".join(f"{name}()" for name in examples)


def test_reference__sixteen_examples(checkpoint_root: Path) -> None:
    assert len(EXAMPLES) == 16
    run_in_fresh_process(_as_functions(EXAMPLES), checkpoint_root)


def test_auto_classes__more(checkpoint_root: Path) -> None:
    run_in_fresh_process(_as_functions(MORE), checkpoint_root)


def test_import_alone__changes_nothing_in_transformers(checkpoint_root: Path) -> None:
    code = (
        "import sapiens2.models, sapiens2.processing\n"
        "from transformers import AutoModelForPoseEstimation\n"
        "model = AutoModelForPoseEstimation.from_pretrained('pose')\n"
        "assert type(model).__module__.startswith('transformers.'), type(model)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=checkpoint_root, capture_output=True, text=True, env=_offline(), check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
