"""What a training recipe can say: one frozen dataclass for each section, with its defaults and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from sapiens2.data.sources import SampleSpec
from sapiens2.types import Task

__all__ = [
    "AugmentationSection",
    "DataSection",
    "EmaSection",
    "FreezeSection",
    "LogSection",
    "LoraSection",
    "LossSection",
    "ModelSection",
    "OptimizerSection",
    "OverfitSection",
    "Recipe",
    "ScheduleSection",
    "TrainingSection",
]

Labels: TypeAlias = tuple[str, ...] | str


def _limited(default: Any, **limits: float) -> Any:
    """A field with limits: ``at_least``, ``at_most``, ``above``, ``below``."""
    return field(default=default, metadata=limits)


@dataclass(frozen=True)
class ModelSection:
    """The model that training begins with.

    Attributes:
        source: ``from`` in recipes: a size (its published weights, of nano those of the package), a hub id, a folder
            or a ``.safetensors`` file.
        weights: Those of the source, or random ones with its configuration.
        trunk_only: Take the trunk alone, of a checkpoint of another task too; the head is new.
        labels: Own classes or keypoints in order: a list, a file with one a line, or ``data``: those of the training
            data. The predictor is new where they differ from the model's.
        mirror_pairs: Labels that a mirror exchanges and whose names do not say so.
        image_size: Height and width of the input; left out, the model's own.
        rope_rescale: Stretch positions by a random factor in [1/x, x] in training. The published models did not.
        save_dtype: Number format of the weights in the model folder.
    """

    source: str = field(metadata={"key": "from"})
    weights: Literal["pretrained", "random"] = "pretrained"
    trunk_only: bool = False
    labels: Labels | None = None
    mirror_pairs: tuple[tuple[str, str], ...] = ()
    image_size: tuple[int, int] | None = None
    rope_rescale: float | None = _limited(None, at_least=1)
    save_dtype: Literal["float32", "bfloat16", "float16"] = "float32"


@dataclass(frozen=True)
class DataSection:
    """Where samples come from, each as :func:`sapiens2.data.sources.open_samples` takes it.

    Attributes:
        train: The training data.
        eval: Data that figures are measured on, before, during and after training.
        workers: Processes that prepare samples.
    """

    train: SampleSpec
    eval: SampleSpec | None = None
    workers: int = _limited(0, at_least=0)


@dataclass(frozen=True)
class AugmentationSection:
    """What happens to samples.

    Attributes:
        recipe: The augmentations of the published models, or none.
        limits: Refuse augmented samples that are hardly worth training on, as the published recipes do; off, pictures
            without people are trained on, too.
        backgrounds: Folder of pictures without people, put behind the people of parts and matting.
    """

    recipe: Literal["published", "none"] = "published"
    limits: bool = True
    backgrounds: str | None = None


@dataclass(frozen=True)
class OptimizerSection:
    """How weights change.

    Attributes:
        name: AdamW, or Muon for the matrices of the layers and AdamW for the rest.
        lr: Largest learning rate, that of the head.
        weight_decay: Of all but vectors, biases and tables of positions.
        layer_decay: Factor of the learning rate for each layer below the head.
        betas: Of AdamW.
        clip: Largest norm of the gradient; 0 leaves it as it is.
    """

    name: Literal["adamw", "muon"] = "adamw"
    lr: float = _limited(1e-4, above=0)
    weight_decay: float = _limited(0.1, at_least=0)
    layer_decay: float = _limited(0.85, above=0, at_most=1)
    betas: tuple[float, float] = field(default=(0.9, 0.999), metadata={"at_least": 0, "below": 1})
    clip: float = _limited(2.0, at_least=0)


@dataclass(frozen=True)
class ScheduleSection:
    """How the learning rate changes.

    Attributes:
        kind: After the warm-up: linearly, as a power of the time left, as half a cosine, or not at all.
        warmup_steps: Steps over which it rises linearly.
        warmup_start: Where it begins, as a share of the largest.
        end: Where it ends, as a share of the largest.
        power: Of ``polynomial``.
    """

    kind: Literal["linear", "polynomial", "cosine", "constant"] = "linear"
    warmup_steps: int = _limited(0, at_least=0)
    warmup_start: float = _limited(0.001, at_least=0, at_most=1)
    end: float = _limited(0.0, at_least=0, at_most=1)
    power: float = _limited(1.0, above=0)


@dataclass(frozen=True)
class TrainingSection:
    """How long, and how.

    Attributes:
        steps: Changes of the weights; or give ``epochs``.
        epochs: Passes through the training data.
        batch_size: Samples of each process at once.
        accumulation: Batches for one change of the weights.
        precision: ``bf16`` computes in bfloat16 where that is safe.
        gradient_checkpointing: Compute layers twice and keep less in memory.
        seed: Of everything random.
        device: ``auto`` takes what there is.
    """

    steps: int | None = _limited(None, at_least=1)
    epochs: float | None = _limited(None, above=0)
    batch_size: int = _limited(4, at_least=1)
    accumulation: int = _limited(1, at_least=1)
    precision: Literal["fp32", "bf16"] = "fp32"
    gradient_checkpointing: bool = False
    seed: int = _limited(0, at_least=0, below=2**32)
    device: Literal["auto", "cpu"] = "auto"


@dataclass(frozen=True)
class FreezeSection:
    """What does not change.

    Attributes:
        backbone: The whole trunk.
        layers: The trunk's first layers, and what is in front of them.
    """

    backbone: bool = False
    layers: int = _limited(0, at_least=0)


@dataclass(frozen=True)
class LoraSection:
    """Small matrices beside those of the trunk, which themselves do not change; the head is trained in full.

    Attributes:
        rank: Of the small matrices.
        alpha: Their weight is ``alpha / rank``; left out, twice the rank.
        targets: Names of the matrices.
        dropout: Share of inputs that are left out.
    """

    rank: int = _limited(8, at_least=1)
    alpha: float | None = _limited(None, above=0)
    targets: tuple[str, ...] = ("q_proj", "v_proj")
    dropout: float = _limited(0.0, at_least=0, below=1)


@dataclass(frozen=True)
class EmaSection:
    """A moving average of the weights, which is what is measured and kept in the end.

    Attributes:
        decay: Share of the average that stays with each step; less in the first steps.
    """

    decay: float = _limited(0.999, above=0, below=1)


@dataclass(frozen=True)
class OverfitSection:
    """Before training: can the model learn one batch by heart?

    Attributes:
        steps: How many steps it gets.
        factor: Share of the first loss that the last must be below.
    """

    steps: int = _limited(50, at_least=1)
    factor: float = _limited(0.5, above=0, below=1)


@dataclass(frozen=True)
class LossSection:
    """The task's loss.

    Attributes:
        weights: Name of a term to its weight; those left out keep the published weight.
        class_weights: Of the cross-entropy: ``published`` (29 classes), one number for each class, or none.
        reduction: Of poses: what squared errors are divided by.
    """

    weights: Mapping[str, float] = field(default_factory=dict, metadata={"at_least": 0})
    class_weights: Literal["published"] | tuple[float, ...] | None = _limited(None, at_least=0)
    reduction: Literal["all", "visible"] = "all"


@dataclass(frozen=True)
class LogSection:
    """What is said and kept, and how often; numbers are steps, 0 is never.

    Attributes:
        every: Loss and learning rate.
        evaluate_every: Figures on the evaluation data.
        pictures_every: Input, truth and prediction side by side.
        pictures: How many rows of them; 0 draws none.
        save_every: Checkpoints to resume from.
        keep: How many checkpoints stay.
        tensorboard: Write scalars and pictures for TensorBoard.
    """

    every: int = _limited(10, at_least=1)
    evaluate_every: int = _limited(0, at_least=0)
    pictures_every: int = _limited(0, at_least=0)
    pictures: int = _limited(4, at_least=0, at_most=64)
    save_every: int = _limited(500, at_least=0)
    keep: int = _limited(2, at_least=1)
    tensorboard: bool = True


@dataclass(frozen=True)
class Recipe:
    """A whole recipe.

    Attributes:
        task: What the model learns.
        model: Where it begins.
        data: What it learns from.
        defaults: A size, such as ``0.4b``: what is left out is as the published model of the task and size was trained.
        augmentation: What happens to samples.
        optimizer: How weights change.
        schedule: How the learning rate changes.
        training: How long, and how.
        freeze: What does not change.
        lora: Train small matrices beside the trunk's.
        ema: Keep a moving average of the weights.
        overfit: Check first that one batch can be learnt.
        loss: The task's loss.
        log: What is said and kept.
    """

    task: Task
    model: ModelSection
    data: DataSection
    defaults: str | None = None
    augmentation: AugmentationSection = field(default_factory=AugmentationSection)
    optimizer: OptimizerSection = field(default_factory=OptimizerSection)
    schedule: ScheduleSection = field(default_factory=ScheduleSection)
    training: TrainingSection = field(default_factory=TrainingSection)
    freeze: FreezeSection = field(default_factory=FreezeSection)
    lora: LoraSection | None = None
    ema: EmaSection | None = None
    overfit: OverfitSection | None = None
    loss: LossSection = field(default_factory=LossSection)
    log: LogSection = field(default_factory=LogSection)
