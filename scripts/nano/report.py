"""Measure the checkpoints of the package: held-out people, pictures with nobody, and the committed photograph.

``python -m scripts.nano.report --pictures FOLDER`` leaves in the folder what ``sapiens2 eval`` leaves, and writes
``scripts/nano/report.json``, from which ``scripts.nano.pages`` writes the cards and the guide.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import sapiens2
from sapiens2.assets import part_table, sample_photo
from sapiens2.io import write_json

__all__ = ["REPORT", "photo_figures"]

ROOT = Path(__file__).parents[2]
REPORT = Path(__file__).parent / "report.json"
PEOPLE = "synthetic:count=500,seed=900,size=256x192,people=1-1"
NOBODY = "synthetic:count=100,seed=901,size=256x192,people=0-0"


def photo_figures() -> dict[str, Any]:
    """Agreement of the matte and the parts with what was drawn by hand on the photograph."""
    sys.path.insert(0, str(ROOT / "tests"))
    from photo_outline import held_mask, outline_box, outline_mask, outline_parts

    with Image.open(sample_photo()) as photo:
        pixels = np.array(photo.convert("RGB"))
    x, y, width, height = (round(value) for value in outline_box())
    window = (slice(y, y + height), slice(x, x + width))
    prediction = sapiens2.load(["seg", "matting"], size="nano")(pixels[window])
    found = prediction.matting.alpha > 0.5
    person, held = outline_mask()[window], held_mask()[window]
    certain = person | ~held
    parts = outline_parts()[window]
    drawn = (parts != part_table().ignore_index) & (parts != 0)
    agreement = prediction.seg.segmentation == parts
    return {
        "crop_xywh": [x, y, width, height],
        "matte_iou": _iou(found, person),
        "matte_iou_with_helmet": _iou(found, person | held),
        "matte_iou_helmet_left_out": _iou(found[certain], person[certain]),
        "part_agreement": float(agreement[drawn].mean()),
        "part_agreement_by_class": {
            part_table().names[label]: float(agreement[parts == label].mean()) for label in np.unique(parts[drawn])
        },
    }


def _iou(found: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> float:
    return float((found & wanted).sum() / max((found | wanted).sum(), 1))


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=Path, required=True, help="folder for pages, worst cases, single figures")
    pictures: Path = parser.parse_args().pictures
    people = sapiens2.evaluate("nano", PEOPLE, "all", batch_size=4)
    people.save(pictures / "people")
    nobody = sapiens2.evaluate("nano", NOBODY, "matting", batch_size=4)
    nobody.save(pictures / "nobody")
    report = {"people": people.to_dict(), "nobody": nobody.to_dict(), "photo": photo_figures()}
    print(write_json(REPORT, report, indent=1))


if __name__ == "__main__":
    main()
