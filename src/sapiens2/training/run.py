"""A training from its recipe to its report."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, TrainingArguments, set_seed

from sapiens2.errors import CheckpointError, Sapiens2Error
from sapiens2.training.averaging import WeightAverage
from sapiens2.training.failures import DivergenceError, TrainingError
from sapiens2.training.interruption import StopRequest
from sapiens2.training.lengths import lengths_note
from sapiens2.training.monitoring import Averaging, Evaluation, Interruption, Progress, Remarks, RunLog, Say, Scalars
from sapiens2.training.observer import Observer
from sapiens2.training.overfit import OverfitReport, overfit_one_batch
from sapiens2.training.parts import TrainingParts
from sapiens2.training.recipe import OverfitSection, Recipe
from sapiens2.training.report import RunFacts, run_report, write_report
from sapiens2.training.resume_points import CheckpointNeeds, ResumePoints, saved_processes, step_of
from sapiens2.training.run_folder import FirstLook, RunFolder
from sapiens2.training.trainer import RecipeTrainer, training_arguments
from sapiens2.types import PathLike

__all__ = ["TrainingOutcome", "TrainingRun", "check_overfit", "train"]


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
        resume: Go on from the last whole checkpoint, with the same weights as if there had been no interruption. Where
            nothing was saved yet, the training begins anew.
        say: Takes lines for people.

    Returns:
        Where everything is. With several processes all return, and the first has written.

    Raises:
        KeyboardInterrupt: SIGINT or SIGTERM came; a checkpoint was saved.
        TrainingError: The loss is not finite, the overfit check failed, or the disk is full; the message names the
            step, the samples, and what is kept.
        InputError: A sample or a file cannot be used; the message names it.
        CheckpointError: The model cannot be loaded; or there are checkpoints in the folder, and none is whole.
        ConfigurationError: The recipe does not fit the model, the data, or the folder; nothing was written then.
    """
    return TrainingRun(recipe, Path(output), resume=resume, say=say).run()


def check_overfit(recipe: Recipe, *, parts: TrainingParts | None = None, say: Say = print) -> OverfitReport:
    """Only see whether the recipe's model can learn one batch by heart; nothing is written.

    Args:
        recipe: The recipe; without ``overfit`` its defaults are taken.
        parts: What it names, if that is loaded already.
        say: Takes lines for people.
    """
    with torch.random.fork_rng(devices=[]):
        set_seed(recipe.training.seed)
        parts = TrainingParts.of(recipe) if parts is None else parts
        device = "cuda" if recipe.training.device == "auto" and torch.cuda.is_available() else "cpu"
        model = parts.trained.to(device)
        report = overfit_one_batch(
            model,
            parts.first_batch(recipe.training.batch_size),
            parts.objective,
            recipe,
            recipe.overfit or OverfitSection(),
        )
    say(str(report))
    return report


class TrainingRun:
    """One sitting of a training.

    Args:
        recipe: The recipe.
        folder: For everything that is written.
        resume: Whether to go on in it.
        say: Takes lines for people.

    Raises:
        Sapiens2Error: Folder, model or data cannot be used as :func:`train` says; the folder is as it was.
    """

    def __init__(self, recipe: Recipe, folder: Path, *, resume: bool, say: Say) -> None:
        self.recipe, self.folder = recipe, RunFolder(folder)
        self.arguments: TrainingArguments = training_arguments(recipe, self.folder.checkpoints)
        self.is_main = self.arguments.process_index == 0
        self.say: Say = say if self.is_main else _say_nothing
        self.needs = CheckpointNeeds.of(recipe, self.arguments.world_size)
        points = self.folder.opening(recipe, resume=resume, needs=self.needs)
        self.checkpoint = points.whole
        self.first_step = 0 if self.checkpoint is None else step_of(self.checkpoint)
        set_seed(recipe.training.seed)
        self.parts = TrainingParts.of(recipe)
        self._claim_folder(points)
        if resume:
            self._say_where(points)
        self.parts.trained.to(self.arguments.device)
        self.remarks = Remarks(self.parts.samples.augmented, self.say)
        self.average = None if recipe.ema is None else WeightAverage(self.parts.trained, recipe.ema.decay)
        self.log: RunLog | None = None
        if self.is_main:
            self.log = RunLog(folder, tensorboard=recipe.log.tensorboard, first_step=self.first_step)
        self.observer = Observer(recipe, self.parts, self.arguments, average=self.average, log=self.log)

    def run(self) -> TrainingOutcome:
        """Do all of it."""
        request = StopRequest()
        interruption = Interruption(request)
        trainer = self._trainer(interruption)
        for note in self.parts.start.notes:
            self.say(note)
        try:
            first_look = self._first_look(trainer)
            started = time.monotonic()
            with request:
                self._train(trainer)
            seconds = time.monotonic() - started
            if interruption.stopped:
                self.say(f"interrupted after step {trainer.state.global_step}, which is saved; go on with --resume")
                raise KeyboardInterrupt
            return self._finish(trainer, first_look, seconds)
        finally:
            if self.log is not None:
                self.log.close()

    def _claim_folder(self, points: ResumePoints) -> None:
        """Write into the folder for the first time, when everything else is known to be usable."""
        self.arguments.distributed_state.wait_for_everyone()  # all have seen the folder as it was
        if self.is_main:
            self.folder.claim(self.recipe, points)
        self.arguments.distributed_state.wait_for_everyone()

    def _say_where(self, points: ResumePoints) -> None:
        for path, fault in points.damaged.items():
            self.say(f"{path.name} is not whole: {fault}; it is now called damaged-{path.name}")
        if points.whole is None:
            self.say("nothing was saved yet: beginning anew")
            return
        self.say(f"going on from {points.whole}")
        if (saved := saved_processes(points.whole)) != self.needs.processes:
            self.say(f"{saved} process(es) saved it, and {self.needs.processes} go on: random numbers will be others")

    def _trainer(self, interruption: Interruption) -> RecipeTrainer:
        log = self.recipe.log
        callbacks: list[Any] = [] if self.average is None else [Averaging(self.average)]
        evaluation = Evaluation(
            log.evaluate_every if self.parts.evaluation is not None else 0,
            log.pictures_every,
            self.observer.measure,
            self.observer.draw,
        )
        callbacks += [evaluation, interruption, Progress(self.say), self.remarks]
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
        trainer.remove_callback(PrinterCallback)
        return trainer

    def _first_look(self, trainer: RecipeTrainer) -> FirstLook:
        """Figures of the model as it begins, and the overfit check; of the first sitting where this is a later one."""
        earlier = self.folder.first_look()
        if self.checkpoint is not None and earlier is not None:
            return earlier
        found = FirstLook(
            self.observer.measure(0), None if self.recipe.overfit is None else self._check_overfit(trainer)
        )
        if self.is_main:
            self.folder.keep_first_look(found)
        set_seed(self.recipe.training.seed)  # training does not depend on what was done here
        return found

    def _check_overfit(self, trainer: RecipeTrainer) -> dict[str, Any]:
        assert self.recipe.overfit is not None
        batch = self.parts.first_batch(self.recipe.training.batch_size)
        report = overfit_one_batch(trainer.model, batch, self.parts.objective, self.recipe, self.recipe.overfit)
        if not report.passed:
            raise TrainingError(str(report))
        self.say(str(report))
        return {"first_loss": report.losses[0], "last_loss": report.losses[-1], "steps": len(report.losses) - 1}

    def _train(self, trainer: RecipeTrainer) -> None:
        try:
            self._train_on(trainer)
        except Exception as error:
            if self.checkpoint is not None and not (trainer.has_begun or isinstance(error, Sapiens2Error)):
                raise self._unreadable(self.checkpoint, error) from error
            if not isinstance(error, Sapiens2Error | OSError | RuntimeError):
                raise
            kept = self._rescue(trainer, diverged=isinstance(error, DivergenceError))
            reason = _without_traceback(str(error))
            kind = type(error) if isinstance(error, Sapiens2Error) else TrainingError
            raise kind(f"{reason}{'' if reason.endswith('.') else '.'} {kept}") from error

    def _train_on(self, trainer: RecipeTrainer) -> None:
        if self.checkpoint is None:
            trainer.train()
            return
        if self.average is not None:
            self.average.load(self.checkpoint)
        if self.first_step >= (self.recipe.training.steps or self.first_step + 1):
            trainer.load_finished(self.checkpoint)
        else:
            trainer.train(resume_from_checkpoint=str(self.checkpoint))

    def _unreadable(self, checkpoint: Path, error: Exception) -> CheckpointError:
        """What a look at the files did not show."""
        return CheckpointError(
            f"{checkpoint} cannot be gone on from ({type(error).__name__}: {error}). If it is damaged, move it away: "
            "--resume then takes the one before it"
        )

    def _rescue(self, trainer: RecipeTrainer, *, diverged: bool) -> str:
        """Save what was learnt so far, and say so."""
        kept, folder = "", None
        try:
            if self.arguments.world_size == 1 and (folder := trainer.save_now()) is not None:
                kept = f"Step {trainer.state.global_step} is saved in {folder}"
        except TrainingError:
            pass  # the disk is full; what is whole is named below
        if folder is None and (folder := self.folder.last_checkpoint(self.needs)) is not None:
            kept = f"{folder} is whole"
        if folder is None:
            return "No step was finished that could be saved; begin again in another folder"
        if not diverged:
            return f"{kept}: go on with --resume"
        # A recipe with other values is refused by --resume, and with the same it would end the same way.
        weights = "" if self.recipe.lora is not None else f" (with model.from: {folder} from these weights)"
        return f"{kept}. With a sample mended, go on with --resume; with another recipe, in another folder{weights}"

    def _finish(self, trainer: RecipeTrainer, first_look: FirstLook, seconds: float) -> TrainingOutcome:
        step = trainer.state.global_step
        after = self.observer.measure(step)
        self.observer.draw(step, "after")
        trained = sum(p.numel() for p in self.parts.trained.parameters() if p.requires_grad)
        earlier = self.folder.earlier_lengths()
        note = lengths_note(earlier, self.recipe)
        facts = RunFacts(
            steps=step,
            resumed_from=self.first_step,
            seconds=seconds,
            device=str(self.arguments.device),
            processes=self.arguments.world_size,
            train_samples=len(self.parts.samples),
            parameters=sum(p.numel() for p in self.parts.trained.parameters()),
            trained_parameters=trained,
            notes=(*self.parts.start.notes, *self.remarks.notes, *([note] if note else [])),
            earlier_lengths=[length.plain() for length in earlier],
        )
        entries = [] if self.log is None else self.log.entries
        report = run_report(
            self.recipe, facts, before=first_look.figures, after=after, overfit=first_look.overfit, log=entries
        )
        if self.is_main:
            self._save_model()
            write_report(self.folder.path, report, self.recipe)
        self.arguments.distributed_state.wait_for_everyone()
        return TrainingOutcome(self.folder.path, self.folder.model, report)

    def _save_model(self) -> None:
        """The final model, ready for :func:`sapiens2.load`; with LoRA the adapter alone as well."""
        if self.average is not None:
            self.average.copy_to(self.parts.trained)
        model = self.parts.start.model
        if self.recipe.lora is not None:
            self.parts.trained.save_pretrained(self.folder.adapter)
            model = self.parts.trained.merge_and_unload()
        model = model.to(getattr(torch, self.recipe.model.save_dtype)).eval()
        model.save_pretrained(self.folder.model)
        self.parts.start.processor.save_pretrained(self.folder.model)


def _without_traceback(message: str) -> str:
    """The message of an error that a worker process passed on with its traceback."""
    if "Original Traceback" not in message:
        return message
    return message.strip().splitlines()[-1].partition("Error: ")[2]


def _say_nothing(_line: str) -> None:
    """Processes other than the first have nothing to say."""
