"""Measure the checkpoints of the package: held-out people, pictures with nobody, and the committed photograph.

``python -m scripts.nano.report -o FOLDER`` leaves there what ``sapiens2 eval`` leaves, for both kinds of pictures, and
``photo.json``; the cards are written from it by ``scripts.nano.export``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import sapiens2
from sapiens2.assets import part_table, sample_photo

ROOT = Path(__file__).parents[2]
HELD_OUT = "synthetic:count={count},seed=900,size=256x192,people=1-1"
NOBODY = "synthetic:count={count},seed=901,size=256x192,people=0-0"


def photo_figures() -> dict[str, Any]:
    """Agreement of the matte and the parts with what was drawn by hand on the photograph."""
    sys.path.insert(0, str(ROOT / "tests"))
    from photo_outline import held_mask, outline_box, outline_mask, outline_parts

    with Image.open(sample_photo()) as photo:
        pixels = np.array(photo.convert("RGB"))
    x, y, width, height = (round(value) for value in outline_box())
    window = (slice(max(y, 0), y + height + 1), slice(max(x, 0), x + width + 1))
    prediction = sapiens2.load(["seg", "matting"], size="nano")(pixels[window])
    found = prediction.matting.alpha > 0.5
    person, held = outline_mask()[window], held_mask()[window]
    parts = outline_parts()[window]
    counted = (parts != part_table().ignore_index) & (parts != 0)
    agreement = prediction.seg.segmentation == parts
    return {
        "crop_xywh": [x, y, width, height],
        "matte_iou": _iou(found, person),
        "matte_iou_with_helmet": _iou(found, person | held),
        "matte_iou_helmet_left_out": _iou(found[~(held & ~person)], person[~(held & ~person)]),
        "part_agreement": float(agreement[counted].mean()),
        "part_agreement_by_class": {
            part_table().names[label]: float(agreement[parts == label].mean()) for label in np.unique(parts[counted])
        },
    }


def _iou(found: np.ndarray, wanted: np.ndarray) -> float:
    return float((found & wanted).sum() / max((found | wanted).sum(), 1))


def main() -> None:
    """Measure everything; print where it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--count", type=int, default=500)
    arguments = parser.parse_args()
    output: Path = arguments.output
    sapiens2.evaluate("nano", HELD_OUT.format(count=arguments.count), "all", batch_size=4).save(output)
    nobody = NOBODY.format(count=max(arguments.count // 5, 1))
    sapiens2.evaluate("nano", nobody, "matting", batch_size=4).save(output / "nobody")
    (output / "photo.json").write_text(json.dumps(photo_figures(), indent=2) + "\n", encoding="utf-8")
    print(output / "report.md", output / "nobody" / "report.md", output / "photo.json", sep="\n")


if __name__ == "__main__":
    main()
