"""Fine-tune a segmentation model with transformers' Trainer, on random pictures that stand in for yours.

    python examples/finetune_trainer.py --output tuned
    python examples/finetune_trainer.py --output tuned --trunk facebook/sapiens2-pretrain-0.4b --steps 1000

Replace `RandomDiscs` by a dataset of your own; the rest stays.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments

import sapiens2
from sapiens2 import Sapiens2Config, Sapiens2ForSemanticSegmentation, Sapiens2ImageProcessor
from sapiens2.checkpoints import default_processor

NAMES = {0: "background", 1: "disc"}


class RandomDiscs(Dataset[dict[str, Tensor]]):
    """Bright discs on noise, and the maps of their pixels."""

    def __init__(self, processor: Sapiens2ImageProcessor, length: int = 16) -> None:
        self.processor = processor
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        image, classes = self.sample(index)
        inputs = self.processor(image, segmentation_maps=classes, return_tensors="pt")
        return {name: tensor[0] for name, tensor in inputs.items()}  # pixel_values, labels

    @staticmethod
    def sample(index: int) -> tuple[Tensor, Tensor]:
        """Picture `(3, H, W)` uint8 and class ids `(H, W)`, the same for the same index."""
        generator = torch.Generator().manual_seed(index)
        image = torch.randint(0, 128, (3, 160, 120), dtype=torch.uint8, generator=generator)
        row, column = (int(torch.randint(40, side - 40, (), generator=generator)) for side in image.shape[1:])
        rows, columns = torch.meshgrid(torch.arange(160), torch.arange(120), indexing="ij")
        disc = (rows - row) ** 2 + (columns - column) ** 2 < 30**2
        return torch.where(disc, 230, image), disc.long()


def build(trunk: str | None) -> tuple[Sapiens2ForSemanticSegmentation, Sapiens2ImageProcessor]:
    """A model with a new head: on published weights, or on a small random trunk."""
    labels = {"id2label": NAMES, "label2id": {name: index for index, name in NAMES.items()}}
    if trunk is None:
        model = Sapiens2ForSemanticSegmentation(Sapiens2Config.from_size("nano", "seg", **labels))
    else:
        model = Sapiens2ForSemanticSegmentation.from_pretrained(trunk, pos_embed_rescale=None, **labels)
    return model, default_processor(model.config, "seg")


def main() -> None:
    """Train, save, and predict with what was saved."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="tuned", help="folder for the checkpoint")
    parser.add_argument("--trunk", help="backbone checkpoint to start from; left out, a random nano trunk")
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()

    torch.manual_seed(0)
    model, processor = build(options.trunk)
    arguments = TrainingArguments(
        f"{options.output}/run",
        max_steps=options.steps,
        per_device_train_batch_size=4,
        learning_rate=5e-4,
        logging_steps=10,
        save_strategy="no",
        report_to="none",
    )
    trainer = Trainer(model, arguments, train_dataset=RandomDiscs(processor))
    trainer.train()
    trainer.save_model(options.output)
    processor.save_pretrained(options.output)

    image, classes = RandomDiscs.sample(1000)
    result = sapiens2.load("seg", model=options.output)(image)
    right = (torch.tensor(result.segmentation) == classes).float().mean()
    print(f"{right:.1%} of the pixels of an unseen picture are right")


if __name__ == "__main__":
    main()
