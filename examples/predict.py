"""Every task that a set of checkpoints has, for some pictures, one line on each result.

    python examples/predict.py photo.jpg --model weights/ --task pose --task seg
    python examples/predict.py photo.jpg --size nano

What `sapiens2 predict` does, in Python, to start from.
"""

from __future__ import annotations

import argparse

import sapiens2


def main() -> None:
    """Predict, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="+")
    weights = parser.add_mutually_exclusive_group(required=True)
    weights.add_argument("--size", help="published size, such as 0.4b")
    weights.add_argument("--model", help="checkpoint, or folder with one for each task")
    parser.add_argument("--task", dest="tasks", action="append", help="repeatable; left out, all that there are")
    parser.add_argument("--output", default="out")
    options = parser.parse_args()

    predict = sapiens2.load(options.tasks or "all", size=options.size, model=options.model)
    for prediction in predict(options.pictures):
        for result in prediction:
            print(result)
        for path in prediction.save(options.output):
            print(f"  {path}")


if __name__ == "__main__":
    main()
