"""A training from its recipe to its report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from transformers import TrainingArguments, set_seed

from sapiens2.data import SampleSource
from sapiens2.errors import ConfigurationError, Sapiens2Error
from sapiens2.io import read_json, write_json
from sapiens2.models import Sapiens2PreTrainedModel
from sapiens2.training.averaging import WeightAverage
from sapiens2.training.failures import TrainingError
from sapiens2.training.interruption import StopRequest
from sapiens2.training.measure import collect, figures_of, label_names, report_of
from sapiens2.training.monitoring import Averaging, Evaluation, Interruption, Progress, RunLog, Say, Scalars
from sapiens2.training.objectives import Objective, objective_of
from sapiens2.training.overfit import OverfitReport, overfit_one_batch
from sapiens2.training.pictures import comparison_sheet
from sapiens2.training.recipe import OverfitSection, Recipe
from sapiens2.training.recipe_files import read_recipe, write_recipe
from sapiens2.training.report import RunFacts, run_report, write_report
from sapiens2.training.starting_models import StartingModel, add_lora, freeze, starting_model
from sapiens2.training.strict_fields import plain
from sapiens2.training.trainer import RecipeTrainer, last_checkpoint, training_arguments
from sapiens2.training.training_data import TrainingSamples, chosen_labels, collate, open_data, training_samples
from sapiens2.types import PathLike

__all__ = ["TrainingOutcome", "TrainingRun", "check_overfit", "train"]

_MAY_CHANGE = ("log", "data.workers", "data.eval", "training.device", "training.steps", "training.epochs", "overfit")
"""Keys of a recipe that may differ when a training is resumed."""


@dataclass(frozen=True)
class TrainingOutcome:
    """Where everything is.

    Attributes:
        folder: Of the training.
        model: The final model, as :func:`sapiens2.load` takes it.
        report: What ``report.json`` holds.
    """

    folder: Path
    model: Path
    report: dict[str, Any]


def train(recipe: Recipe, output: PathLike, *, resume: bool = False, say: Say = print) -> TrainingOutcome:
    """Train a model as a recipe says.

    The folder gets ``recipe.yaml`` (with every key), ``checkpoints/``, ``log.jsonl``, ``pictures/``, ``tensorboard/``,
    ``model/`` (and ``adapter/`` with LoRA), ``report.json`` and ``report.md``.

    Args:
        recipe: The recipe.
        output: The folder; empty, unless ``resume`` goes on in it.
        resume: Go on from the last whole checkpoint, with the same weights as if there had been no interruption.
        say: Takes lines for people.

    Returns:
        Where everything is. With several processes all return, and the first has written.

    Raises:
        KeyboardInterrupt: SIGINT or SIGTERM came; a checkpoint was saved.
        TrainingError: The loss is not finite, the overfit check failed, or the disk is full; the message names the
            step, the samples, and what is kept.
        InputError: A sample or a file cannot be used; the message names it.
        ConfigurationError: The recipe does not fit the model, the data, or the folder.
    """
    return TrainingRun(recipe, Path(output), resume=resume, say=say).run()


def check_overfit(recipe: Recipe, *, say: Say = print) -> OverfitReport:
    """Only see whether the recipe's model can learn one batch by heart; nothing is written.

    Args:
        recipe: The recipe; without ``overfit`` its defaults are taken.
        say: Takes lines for people.
    """
    with torch.random.fork_rng(devices=[]):
        set_seed(recipe.training.seed)
        parts = _Parts.of(recipe)
        device = "cuda" if recipe.training.device == "auto" and torch.cuda.is_available() else "cpu"
        model = parts.trained.to(device)
        report = overfit_one_batch(
            model, _first_batch(parts.samples, recipe), parts.objective, recipe, recipe.overfit or OverfitSection()
        )
    say(str(report))
    return report


@dataclass(frozen=True)
class _Parts:
    """What a recipe names, loaded."""

    start: StartingModel
    trained: Any
    """The model that is trained: the starting one, or a peft model around it."""
    samples: TrainingSamples
    evaluation: SampleSource | None
    objective: Objective

    @classmethod
    def of(cls, recipe: Recipe) -> _Parts:
        data, evaluation = open_data(recipe.data, recipe.task)
        labels = chosen_labels(recipe.model, recipe.task, data)
        start = starting_model(recipe.model, recipe.task, labels=labels, seed=recipe.training.seed)
        names = label_names(recipe.task, start.model)
        samples = training_samples(recipe, data, start.processor, start.model.config, names)
        objective = objective_of(recipe.task, recipe.loss, start.model.config)
        freeze(start.model, recipe.freeze)
        if recipe.training.gradient_checkpointing:
            start.model.activation_checkpointing_enable({"use_reentrant": False})
        trained = start.model if recipe.lora is None else add_lora(start.model, recipe.lora, seed=recipe.training.seed)
        return cls(start, trained, samples, evaluation, objective)


class TrainingRun:
    """One sitting of a training.

    Args:
        recipe: The recipe.
        folder: For everything that is written.
        resume: Whether to go on in it.
        say: Takes lines for people.
    """

    def __init__(self, recipe: Recipe, folder: Path, *, resume: bool, say: Say) -> None:
        self.recipe, self.folder = recipe, folder
        self.arguments: TrainingArguments = training_arguments(recipe, folder / "checkpoints")
        self.is_main = self.arguments.process_index == 0
        self.say: Say = say if self.is_main else _say_nothing
        self.checkpoint = self._prepare_folder(resume)
        self.first_step = 0 if self.checkpoint is None else int(self.checkpoint.name.partition("-")[2])
        set_seed(recipe.training.seed)
        self.parts = _Parts.of(recipe)
        self.average = None if recipe.ema is None else WeightAverage(self.parts.trained, recipe.ema.decay)
        self.log: RunLog | None = None

    @property
    def model(self) -> Sapiens2PreTrainedModel:
        """The task model, without what is wrapped around it."""
        return self.parts.start.model

    def run(self) -> TrainingOutcome:
        """Do all of it."""
        if self.is_main:
            self.log = RunLog(self.folder, tensorboard=self.recipe.log.tensorboard, first_step=self.first_step)
        request = StopRequest()
        interruption = Interruption(request)
        trainer = self._trainer(interruption)
        for note in self.parts.start.notes:
            self.say(note)
        try:
            before, overfit = self._first_look(trainer)
            started = time.monotonic()
            with request:
                self._train(trainer)
            seconds = time.monotonic() - started
            if interruption.stopped:
                self.say(f"interrupted after step {trainer.state.global_step}, which is saved; go on with --resume")
                raise KeyboardInterrupt
            return self._finish(trainer, before, overfit, seconds)
        finally:
            if self.log is not None:
                self.log.close()

    def measure(self) -> dict[str, Any] | None:
        """Figures of the model as it is (of the average, where one is kept); all processes share the work."""
        samples = self.parts.evaluation
        if samples is None:
            return None
        rank, world = self.arguments.process_index, self.arguments.world_size
        metrics = collect(
            self.model,
            self.parts.start.processor,
            samples,
            self.recipe.task,
            indices=range(rank, len(samples), world),
            batch_size=self.recipe.training.batch_size,
        )
        if world > 1:
            states = gather_object([[metric.state() for metric in metrics]])
            kinds = [type(metric) for metric in metrics]
            merged = [kind.from_state(state) for kind, state in zip(kinds, states[0], strict=True)]
            for others in states[1:]:
                for metric, kind, state in zip(merged, kinds, others, strict=True):
                    metric.merge(kind.from_state(state))
            metrics = merged
        return report_of(metrics, self.recipe.task, len(samples))

    def _prepare_folder(self, resume: bool) -> Path | None:
        """Write the recipe, or compare it with the one that is there; the checkpoint to go on from."""
        path = self.folder / "recipe.yaml"
        checkpoint = last_checkpoint(self.folder / "checkpoints") if resume else None
        if self.is_main:
            if resume and path.is_file():
                _check_same(read_recipe(path), self.recipe)
            elif not resume and self.folder.is_dir() and any(self.folder.iterdir()):
                raise ConfigurationError(
                    f"{self.folder} is not empty; give another folder, or go on in it with --resume"
                )
            self.folder.mkdir(parents=True, exist_ok=True)
            write_recipe(path, self.recipe)
            if resume:
                self.say(
                    f"going on from {checkpoint}" if checkpoint else "there is no whole checkpoint: beginning anew"
                )
        self.arguments.distributed_state.wait_for_everyone()
        return checkpoint

    def _trainer(self, interruption: Interruption) -> RecipeTrainer:
        log = self.recipe.log
        callbacks: list[Any] = [] if self.average is None else [Averaging(self.average)]
        evaluation = Evaluation(
            log.evaluate_every if self.parts.evaluation is not None else 0,
            log.pictures_every,
            self._measure_now,
            self._draw_now,
        )
        callbacks += [evaluation, interruption, Progress(self.say)]
        if self.log is not None:
            callbacks.append(Scalars(self.log))
        trainer = RecipeTrainer(
            self.recipe,
            self.parts.trained,
            self.arguments,
            self.parts.samples,
            self.parts.objective,
            average=self.average,
            callbacks=callbacks,
        )
        from transformers import PrinterCallback

        trainer.remove_callback(PrinterCallback)
        return trainer

    def _first_look(self, trainer: RecipeTrainer) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Figures of the model as it begins, and the overfit check; of the first sitting where this is a later one."""
        path = self.folder / "before.json"
        if self.checkpoint is not None and path.is_file():
            document = read_json(path)
            return document["before"], document["overfit"]
        before = self.measure()
        if before is not None:
            self._log_figures(0, before)
        overfit = None
        if self.recipe.overfit is not None:
            report = overfit_one_batch(
                trainer.model,
                _first_batch(self.parts.samples, self.recipe),
                self.parts.objective,
                self.recipe,
                self.recipe.overfit,
            )
            if not report.passed:
                raise TrainingError(str(report))
            self.say(str(report))
            overfit = {"first_loss": report.losses[0], "last_loss": report.losses[-1], "steps": len(report.losses) - 1}
        if self.is_main:
            write_json(path, {"before": before, "overfit": overfit})
        set_seed(self.recipe.training.seed)  # training does not depend on what was done here
        return before, overfit

    def _train(self, trainer: RecipeTrainer) -> None:
        if self.checkpoint is not None and self.average is not None:
            self.average.load(self.checkpoint)
        if self.checkpoint is not None and self.first_step >= (self.recipe.training.steps or self.first_step + 1):
            trainer.load_finished(self.checkpoint)
            return
        try:
            trainer.train(resume_from_checkpoint=None if self.checkpoint is None else str(self.checkpoint))
        except (Sapiens2Error, OSError, RuntimeError) as error:
            kept = self._rescue(trainer)
            reason = _without_traceback(str(error))
            kind = type(error) if isinstance(error, Sapiens2Error) else TrainingError
            raise kind(f"{reason}{'' if reason.endswith('.') else '.'} {kept}") from error

    def _rescue(self, trainer: RecipeTrainer) -> str:
        """Save what was learnt so far, and say so."""
        try:
            if self.arguments.world_size == 1 and (folder := trainer.save_now()) is not None:
                return f"Step {trainer.state.global_step} is saved in {folder}: go on with --resume"
        except TrainingError:
            pass  # the disk is full; what is whole is named below
        whole = last_checkpoint(self.folder / "checkpoints")
        return f"{whole} is whole: go on with --resume" if whole else "No step was finished that could be saved"

    def _measure_now(self, step: int) -> None:
        report = self._of_average(self.measure)
        assert report is not None
        self._log_figures(step, report)

    def _draw_now(self, step: int) -> None:
        if self.log is not None:
            self.log.add_picture(step, self._of_average(self._sheet))

    def _sheet(self) -> Any:
        samples = self.parts.evaluation or self.parts.samples.augmented.samples
        return comparison_sheet(
            self.model, self.parts.start.processor, samples, self.recipe.task, rows=self.recipe.log.pictures
        )

    def _of_average(self, action: Any) -> Any:
        if self.average is None:
            return action()
        with self.average.applied(self.parts.trained):
            return action()

    def _log_figures(self, step: int, report: Mapping[str, Any]) -> None:
        figures = {f"eval_{name}": value for name, value in figures_of(dict(report)).items()}
        if self.log is not None:
            self.log.add(step, figures)

    def _finish(
        self,
        trainer: RecipeTrainer,
        before: dict[str, Any] | None,
        overfit: dict[str, Any] | None,
        seconds: float,
    ) -> TrainingOutcome:
        if self.average is not None:
            self.average.copy_to(self.parts.trained)
        trained = sum(p.numel() for p in self.parts.trained.parameters() if p.requires_grad)
        after = self.measure()
        facts = RunFacts(
            steps=trainer.state.global_step,
            resumed_from=self.first_step,
            seconds=seconds,
            device=str(self.arguments.device),
            processes=self.arguments.world_size,
            train_samples=len(self.parts.samples),
            parameters=sum(p.numel() for p in self.parts.trained.parameters()),
            trained_parameters=trained,
            notes=self.parts.start.notes,
        )
        if after is not None:
            self._log_figures(facts.steps, after)
        entries = [] if self.log is None else self.log.entries
        report = run_report(self.recipe, facts, before=before, after=after, overfit=overfit, log=entries)
        if self.is_main:
            assert self.log is not None
            self.log.add_picture(facts.steps, self._sheet(), name="after")
            self._save_model()
            write_report(self.folder, report, self.recipe)
        self.arguments.distributed_state.wait_for_everyone()
        return TrainingOutcome(self.folder, self.folder / "model", report)

    def _save_model(self) -> None:
        """The final model, ready for :func:`sapiens2.load`; with LoRA the adapter alone as well."""
        model = self.model
        if self.recipe.lora is not None:
            self.parts.trained.save_pretrained(self.folder / "adapter")
            model = self.parts.trained.merge_and_unload()
        model = model.to(getattr(torch, self.recipe.model.save_dtype)).eval()
        model.save_pretrained(self.folder / "model")
        self.parts.start.processor.save_pretrained(self.folder / "model")


def _first_batch(samples: TrainingSamples, recipe: Recipe) -> dict[str, torch.Tensor]:
    count = min(recipe.training.batch_size, len(samples))
    return collate([samples[index] for index in range(count)])


def _check_same(there: Recipe, now: Recipe) -> None:
    """Refuse to resume another training under the same name."""
    old, new = _flat(plain(there)), _flat(plain(now))
    changed = [
        f"{key}: {old.get(key)!r} became {new.get(key)!r}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key) and not key.startswith(_MAY_CHANGE)
    ]
    if changed:
        raise ConfigurationError(
            f"the recipe is not the one that this training began with: {'; '.join(changed[:5])}. "
            "Begin anew in another folder, or give the old values"
        )


def _flat(document: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(document, Mapping):
        return {path: document}
    flat: dict[str, Any] = {}
    for key, value in document.items():
        flat |= _flat(value, f"{path}.{key}" if path else str(key))
    return flat


def _without_traceback(message: str) -> str:
    """The message of an error that a worker process passed on with its traceback."""
    if "Original Traceback" not in message:
        return message
    return message.strip().splitlines()[-1].partition("Error: ")[2]


def _say_nothing(_line: str) -> None:
    """Processes other than the first have nothing to say."""
