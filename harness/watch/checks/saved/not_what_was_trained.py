from __future__ import annotations

from dataclasses import dataclass

from harness.torch_objects import share_parameters
from harness.watch.check import Check
from harness.watch.events import End, Save
from harness.watch.facts.saved_states import SavedStates, states_in
from harness.watch.facts.trained_models import ModelsFromCheckpoints, TrainedModels, is_state_of
from harness.watch.monitor import Monitor


@dataclass(frozen=True)
class Saved:
    name: str
    """Of the model's class."""
    where: str | None
    update: int


class NotWhatWasTrained(Check):
    """The model that is saved is not the one that was trained.

    ## Why is this a bug?
    Several objects stand for one model: what was loaded, what `prepare` returned, a wrapper, a copy. If the one that is
    saved is not the one that the optimizer changed, the file holds the checkpoint that the training began with, and a
    random new head; or the teacher instead of its student. The training's own results look correct.

    ## What to do
    Save the model that was trained (with Accelerate: accelerator.unwrap_model(model)).

    ## When it is right
    Saving the first weights as well as the trained ones is not reported. Neither are moving averages of the weights,
    copies that the script changes, or frozen models, such as a teacher, or a feature extractor of another class.

    ## References
    - https://huggingface.co/docs/accelerate/usage_guides/checkpoint
    """

    needs = "model saved after its updates"
    formerly = ("saved::is-what-was-trained",)
    explains = ("saved::not-what-was-evaluated", "weights::left-random")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.trained = monitor.fact(TrainedModels)
        self.loaded = monitor.fact(ModelsFromCheckpoints)
        self.states = monitor.fact(SavedStates)
        self.saved_fresh: Saved | None = None
        """The first that was saved after an update, and is one from a checkpoint as it was loaded."""
        self.saved_trained = False
        """Whether a model was saved that was trained."""

    def on_save(self, event: Save) -> None:
        states = states_in(event.what) if self.monitor.stepped else []
        if not states:
            return
        self.looked = True
        trained = list(self.trained.all)
        self.saved_trained |= any(is_state_of(state, model) for state in states for model in trained)
        fresh = [model for model in self.loaded.as_loaded() if any(is_state_of(state, model) for state in states)]
        trained_frozen = any(share_parameters(model, other) for model in fresh for other in trained)
        names = [type(model).__name__ for model in fresh if type(model).__name__ in self.trained.names]
        if names and not trained_frozen:
            self.saved_fresh = self.saved_fresh or Saved(names[0], event.where, self.monitor.updates_made)

    def on_end(self, event: End) -> None:
        latest = max((each.updates_made for each in self.states.saves), default=None)
        if latest is not None and latest == self.monitor.updates_made - 1:
            self.looked = False  # what is saved may be meant to have the one update that came after it
        if self.monitor.complete:
            self._report_another()
            self._report_as_it_was()

    def _report_as_it_was(self) -> None:
        whole = [each for each in self.states.saves if each.values or each.is_base]
        copies = [each for each in whole if each.untouched]
        if copies and len(copies) == len(whole) and not (self.saved_trained or self.monitor.passes_shortened):
            name = self.states.trained[copies[-1].of].name
            self.found(
                expected="the weights that the updates made",
                observed=f"{name} as it was when the training began: a copy that nothing has changed since",
                where=copies[-1].where,
                update=copies[-1].updates_made,
                hint="Save the model that was trained, or a copy that is made after the training; an average of its "
                "weights has to be updated after each step.",
            )
        elif self.saved_fresh is not None and not self.saved_trained:
            self.found(
                expected="the model that the updates changed",
                observed=f"{self.saved_fresh.name} as it was loaded from its checkpoint, without any update",
                where=self.saved_fresh.where,
                update=self.saved_fresh.update,
            )

    def _report_another(self) -> None:
        """A teacher whose training was over before that of its student began."""
        saved = {each.of for each in self.states.saves}
        latest = max(self.states.trained, key=lambda number: self.states.trained[number].updates_made, default=None)
        if latest is None or not saved or latest in saved:
            return
        last = self.states.trained[latest]
        kept = [self.states.trained[number] for number in saved]
        before = all(each.updates_made < last.began_at for each in kept)
        teach = all(each.references > 1 and each.shapes != last.shapes for each in kept)
        if before and teach and all(each.name == last.name for each in kept):
            saves = self.states.saves[-1]
            self.found(
                expected="the model that was trained last",
                observed=f"a {last.name} that was trained until update {kept[-1].updates_made + 1}; another, which was "
                f"trained until update {last.updates_made + 1}, is saved nowhere",
                where=saves.where,
                update=saves.updates_made,
                hint="Save the student, and not its teacher.",
            )
