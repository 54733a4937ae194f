"""transformers' Trainer with a recipe's loss, optimiser, schedule, and checkpoints that are whole or not there."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from sapiens2.errors import ConfigurationError
from sapiens2.losses import LossTerms
from sapiens2.training.averaging import WeightAverage
from sapiens2.training.failures import DivergenceError, TrainingError, is_disk_full
from sapiens2.training.objectives import Objective
from sapiens2.training.optimisers import build_optimizer
from sapiens2.training.recipe import Recipe
from sapiens2.training.resume_points import CheckpointNeeds, damage, step_of
from sapiens2.training.schedules import learning_rate_schedule
from sapiens2.training.training_data import INDEX, SampleOrder, TrainingSamples, collate

__all__ = ["RecipeTrainer", "training_arguments"]


def training_arguments(recipe: Recipe, folder: Path) -> TrainingArguments:
    """What transformers' Trainer is told of a recipe.

    Args:
        recipe: The recipe.
        folder: For checkpoints.

    Raises:
        ConfigurationError: A precision that the device does not have.
    """
    try:
        arguments = _arguments(recipe, folder)
    except ValueError as error:
        if recipe.training.precision != "bf16":
            raise
        raise ConfigurationError(
            f"training.precision is bf16, which the device cannot do ({error}); give fp32, or training.device: cpu"
        ) from error
    if arguments.device.type == "cuda":
        arguments._n_gpu = 1  # one process would otherwise spread each batch over all GPUs, in threads
    return arguments


def _arguments(recipe: Recipe, folder: Path) -> TrainingArguments:
    training, log = recipe.training, recipe.log
    # Said outright: what is left to be found refuses bf16 where there is nothing but a CPU, which can do it.
    on_cpu = training.device == "cpu" or not torch.accelerator.is_available()
    return TrainingArguments(
        output_dir=str(folder),
        max_steps=training.steps or -1,
        num_train_epochs=training.epochs or 1.0,
        per_device_train_batch_size=training.batch_size,
        gradient_accumulation_steps=training.accumulation,
        max_grad_norm=recipe.optimizer.clip,
        learning_rate=recipe.optimizer.lr,
        bf16=training.precision == "bf16",
        seed=training.seed,
        data_seed=training.seed,
        use_cpu=on_cpu,
        dataloader_num_workers=recipe.data.workers,
        dataloader_persistent_workers=recipe.data.workers > 0,
        dataloader_pin_memory=torch.cuda.is_available() and not on_cpu,
        remove_unused_columns=False,
        logging_steps=log.every,
        logging_first_step=True,
        logging_nan_inf_filter=False,
        save_strategy="steps" if log.save_every else "no",
        save_steps=log.save_every or 500,
        save_total_limit=log.keep,
        report_to="none",
        disable_tqdm=True,
    )


class _DataEpoch(TrainerCallback):
    """Tells the data its epoch.

    accelerate does, too, but not in the epoch that a training is resumed in: its loaders that skip batches do not pass
    the epoch on, so augmentations would be drawn for epoch 0, and with several processes the order, too.
    """

    def __init__(self, samples: TrainingSamples) -> None:
        self.samples = samples

    def on_epoch_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        self.samples.set_epoch(int(state.epoch or 0))


class RecipeTrainer(Trainer):
    """Trains a model as a recipe says.

    Args:
        recipe: The recipe.
        model: A task model, or a peft model around one.
        arguments: Those of :func:`training_arguments`.
        samples: The training data.
        objective: The loss.
        average: A moving average of the weights, saved with each checkpoint.
        callbacks: What else shall happen.

    Attributes:
        has_begun: Whether a batch came to the model; before that, everything is still being read.
    """

    def __init__(
        self,
        recipe: Recipe,
        model: nn.Module,
        arguments: TrainingArguments,
        samples: TrainingSamples,
        objective: Objective,
        *,
        average: WeightAverage | None = None,
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        self.optimizer: Any
        self.lr_scheduler: Any
        super().__init__(
            model=model,
            args=arguments,
            train_dataset=samples,
            data_collator=collate,
            callbacks=[_DataEpoch(samples), *callbacks],
        )
        self.recipe, self.samples, self.objective, self.average = recipe, samples, objective, average
        self.model_accepts_loss_kwargs = False  # the losses are means, of models inside a wrapper, too
        self.has_begun = False
        self._needs = CheckpointNeeds.of(recipe, arguments.world_size)
        self._term_sums: dict[str, Tensor] = {}
        self._term_count = 0

    def create_optimizer(self, model: nn.Module | None = None) -> Optimizer:
        """The recipe's optimiser."""
        current: Optimizer | None = self.optimizer
        if current is None:
            section = self.recipe.optimizer
            current = build_optimizer(
                self.model if model is None else model,
                section.name,
                lr=section.lr,
                weight_decay=section.weight_decay,
                layer_decay=section.layer_decay,
                betas=section.betas,
            )
            self.optimizer = current
        return current

    def create_scheduler(self, num_training_steps: int, optimizer: Optimizer | None = None) -> LRScheduler:
        """The recipe's schedule."""
        current: LRScheduler | None = self.lr_scheduler
        if current is None:
            chosen = self.optimizer if optimizer is None else optimizer
            chosen = getattr(chosen, "optimizer", chosen)  # accelerate wraps it
            current = learning_rate_schedule(chosen, self.recipe.schedule, num_training_steps)
            self.lr_scheduler, self._created_lr_scheduler = current, True
        return current

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The recipe's loss of a batch.

        Raises:
            DivergenceError: It is not finite; the message names the step and the samples.
        """
        self.has_begun = True
        labels = dict(inputs)
        indices, pixel_values = labels.pop(INDEX), labels.pop("pixel_values")
        outputs = model(pixel_values=pixel_values)
        terms = self.objective(outputs, labels)
        total = terms.total
        if not torch.isfinite(total):
            raise self._not_finite(terms, indices)
        self._add_terms(terms)
        return (total, outputs) if return_outputs else total

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log, with the head's learning rate, and the mean of each term of the loss since the last time.

        The terms are those of this process.
        """
        if "learning_rate" in logs and self.lr_scheduler is not None:
            rates = self.lr_scheduler.base_lrs  # Trainer logs that of the first group, the lowest
            logs["learning_rate"] *= max(rates) / rates[0]
        if "loss" in logs and self._term_count:
            logs |= {f"loss_{name}": value.item() / self._term_count for name, value in self._term_sums.items()}
            self._term_sums, self._term_count = {}, 0
        super().log(logs, start_time)

    def save_now(self) -> Path | None:
        """Save a checkpoint of the last step that was finished; None if there was none, or it is saved already."""
        folder = self._checkpoint_folder()
        if self.state.global_step == 0 or damage(folder, self._needs) is None:
            return None
        self._save_checkpoint(self.model_wrapped, trial=None)
        return folder

    def load_finished(self, checkpoint: Path) -> None:
        """Take the weights of a checkpoint after which nothing is left to train."""
        self._load_from_checkpoint(str(checkpoint))
        self.state.global_step = step_of(checkpoint)

    def _get_train_sampler(self, train_dataset: Any = None) -> SampleOrder:
        return SampleOrder(self.samples, self.recipe.training.seed)

    def _checkpoint_folder(self) -> Path:
        return Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        folder = self._checkpoint_folder()
        try:
            if self.average is not None and self.args.should_save:
                folder.mkdir(parents=True, exist_ok=True)
                self.average.save(folder)
            super()._save_checkpoint(model, trial)  # writes the state last: a checkpoint that has one is whole
        except (OSError, SafetensorError, RuntimeError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            reason = "the disk is full; free some space" if is_disk_full(error) else str(error)
            raise TrainingError(f"{folder} cannot be written: {reason}") from error

    def _get_grad_norm(self, model: nn.Module, grad_norm: Any = None) -> Any:
        norm = super()._get_grad_norm(model, grad_norm=grad_norm)
        value = norm.item() if isinstance(norm, Tensor) else norm
        if value is not None and not abs(value) < float("inf"):
            raise DivergenceError(
                f"the gradient of step {self.state.global_step + 1} is {value}, though its loss is finite; the weights "
                "were not changed. Lower optimizer.lr, or give training.precision: fp32"
            )
        return norm

    def _add_terms(self, terms: LossTerms) -> None:
        for name, value in terms.terms.items():
            detached = value.detach().float()
            self._term_sums[name] = self._term_sums[name] + detached if name in self._term_sums else detached
        self._term_count += 1

    def _not_finite(self, terms: LossTerms, indices: Tensor) -> DivergenceError:
        values = ", ".join(f"{name} {value.item():g}" for name, value in terms.terms.items())
        names = ", ".join(self.samples.names(indices.tolist()))
        return DivergenceError(
            f"the loss of step {self.state.global_step + 1} is not finite ({values}). Its batch holds the samples "
            f"{names}. Lower optimizer.lr, lengthen schedule.warmup_steps, give training.precision: fp32, or look at "
            "these samples"
        )
