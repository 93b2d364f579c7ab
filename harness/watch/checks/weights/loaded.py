from __future__ import annotations

import os

from torch import nn

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.weights.observations.trainers_in_a_row import TrainerBegins
from harness.watch.events import Load
from harness.watch.facts.held_tensors import names
from harness.watch.facts.loaded_states import (
    CheckpointTrained,
    LoadedAfterTraining,
    LoadedUnused,
    PretrainedCalled,
    RandomWeightsUsed,
    StateLoading,
)

MAX_CHANGED = 0.5
"""Largest share of the tensors looked at that may have changed between loading and the first update. Who changes one on
purpose (resized or averaged embeddings) leaves the others."""

MIN_SHARE = 0.5
"""Smallest share of tensors that have a place in the module, of the state's or the module's own, from which on a state
is meant for it. Half or double of it changes verdicts (scripts/records/margins.json)."""


class AlreadyTrained(Check):
    """A second Trainer continues with a model that another Trainer has already trained on the same rows.

    ## Why is this a bug?
    A Trainer does not reset the model. If another Trainer has trained it, it is trained further. What was meant as a
    new run with other arguments then contains the first run's updates, and has seen every row more often than its
    epochs say. Nobody can reproduce its results from the checkpoint. Trials with different learning rates that share
    one model are not comparable: each begins where the last one ended.

    ## What to do
    Call from_pretrained before each Trainer, or pass model_init to Trainer, which makes a new model each time.

    ## When it is right
    A second stage on the same rows may be intended, with another schedule or other regularisation: ignore the finding
    there. A stage that is clearly intended is not reported: other rows (a curriculum, another task, the next round),
    another kind of Trainer or collator (supervised tuning and then preferences), other trainable parameters (the head
    first, and then all), a lower learning rate than before, weights that were loaded, reset or pruned in between, a
    resumed run, or the same Trainer's `train()` called again.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/trainer (model_init)
    """

    severity = "warning"

    def judge(self, fact: TrainerBegins) -> Verdict:
        if not fact.goes_on:
            return HELD
        return Found(
            expected="a model that no other Trainer has trained on these rows",
            observed=f"this Trainer starts from the weights that another Trainer left after {fact.updates_before} "
            f"update{'s' * (fact.updates_before != 1)}",
        )


class FromScratch(Check):
    """A model has the configuration of a checkpoint but random weights.

    ## Why is this a bug?
    `from_config` and the model's class make a model of the right size with random weights; only `from_pretrained` reads
    the weights. The training runs as usual, and its result is that of a model that has read nothing but this data set.

    ## What to do
    Use from_pretrained instead of from_config. Ignore this if you train from scratch.

    ## When it is right
    If you train from scratch with a known architecture, you can ignore this warning. A configuration that was made by
    hand and names no checkpoint is not reported, nor is a model into which the script loads a state.

    ## References
    - https://huggingface.co/docs/transformers/model_doc/auto#transformers.AutoModel.from_config
    """

    severity = "warning"

    def judge(self, fact: PretrainedCalled) -> Verdict:
        if fact.configured is None:
            return HELD
        return Found(
            expected=f"the weights of {os.path.basename(fact.configured)}, because the model has its configuration",
            observed=f"{fact.model} was made from the configuration alone, with random weights",
            update=1,
        )


class InitialisedAgain(Check):
    """The weights loaded from a checkpoint are initialised again before the first update.

    ## Why is this a bug?
    `from_pretrained` has loaded the weights that the fine-tuning builds on. `model.init_weights()`, `model.apply(init)`
    or `reset_parameters()` for all modules, meant for a new head, throws them away without a word. The loss still
    falls, as it does for a model that is trained from scratch.

    ## What to do
    Call `init_weights()`, `apply()` or `reset_parameters()` only on the head, or before you load the checkpoint.

    ## When it is right
    Weights that the script loads itself with `load_state_dict`, or changes after the first update, are not reported.
    Neither are weights that it makes from loaded ones (the mean of several checkpoints, pruning, embeddings for more
    words), or a change of less than half of the backbone's tensors.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/model#transformers.PreTrainedModel.from_pretrained
    """

    def judge(self, fact: CheckpointTrained) -> Verdict:
        if fact.changed <= MAX_CHANGED * fact.tensors:
            return HELD
        return Found(
            expected="the checkpoint's weights at the first update",
            observed=f"{fact.changed} of {fact.tensors} tensors looked at have changed since they were loaded",
            update=1,
        )


class LeftRandom(Check):
    """A model loaded for use has random weights, because what was loaded does not contain them.

    ## Why is this a bug?
    `ignore_mismatched_sizes=True` reinitialises a head whose number of labels is not the checkpoint's, and
    `load_state_dict(..., strict=False)` leaves tensors that the state lacks as the constructor made them. Both say
    little. The model then predicts with random numbers in it.

    ## What to do
    Load the model as it was saved: with the same number of labels, the same options and `strict=True`.

    ## When it is right
    A model that is trained afterwards, that is loaded before any training, or whose weights the script sets itself. A
    model with random weights as a baseline is reported: ignore the finding there.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/model#transformers.PreTrainedModel.from_pretrained
    """

    new_since = "0.3.0"
    needs = "model loaded after the training"
    explains = ("saved::loads-otherwise",)

    def judge(self, fact: RandomWeightsUsed) -> Verdict:
        return Found(
            expected="trained weights in the model that you use",
            observed=f"{names(fact.tensors)} of {fact.model} are not in what was loaded, so they are random",
            update=fact.at.updates_made,
        )

    def judge_loading(self, fact: LoadedAfterTraining) -> Verdict:
        return HELD


class LoadedIntoAnother(Check):
    """A state is loaded into a model that is never used, instead of the one that is trained or evaluated.

    ## Why is this a bug?
    A state that is loaded into a copy changes nothing in the model that is trained or evaluated: a resumed training
    starts over, and what is called the best model is the last one.

    ## What to do
    Load the state into the model that you train or evaluate, not into a copy of it.

    ## When it is right
    A second model that is used in any way, before or after, is not reported (a target network that is updated once more
    after the training). Neither is the last state that a script loads.
    """

    needs = "state loaded into a model"
    explains = (
        "saved::resumed-incompletely",
        "saved::not-what-was-trained",
        "model::evaluated-untrained",
        "weights::left-random",
    )

    def judge(self, fact: LoadedUnused) -> Verdict:
        return Found(
            expected="the state loaded into the model that is used afterwards",
            observed=f"the state was loaded into another {fact.model}, which was never used afterwards",
            update=fact.update,
        )

    def judge_loading(self, load: Load) -> Verdict:
        return HELD if isinstance(load.into, nn.Module) and load.state else NOTHING_TO_JUDGE


class StateKeptWithoutCopy(Check):
    """A state was kept without a copy, so loading it restores nothing.

    ## Why is this a bug?
    `best = model.state_dict()` is not a copy: its tensors are the model's, and every update has changed them. Loading
    it gives the model the weights that it already has, those of the last update and not of the best one.

    ## What to do
    Keep copy.deepcopy(model.state_dict()), or save it to a file; if you want two networks, make the second one with
    copy.deepcopy(model).

    ## When it is right
    A state that the script itself writes to in place, such as an average, before it loads it, is not reported.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    explains = ("saved::resumed-incompletely", "saved::not-what-was-trained", "weights::left-random")

    def judge(self, fact: StateLoading) -> Verdict:
        if not fact.of_model:
            return HELD
        return Found(
            expected="a copy of the earlier weights",
            observed="the state shares its memory with the model, so it changed with every update"
            + (f", and {fact.where} loads it" if fact.kept_at is not None and fact.where is not None else ""),
            where=fact.kept_at,
            update=fact.at.updates_made,
            details={} if fact.kept_at is None else {"case": "kept"},
        )


class StateNotLoaded(Check):
    """A state is loaded with `strict=False`, but most of its names don't match the model.

    ## Why is this a bug?
    `load_state_dict(..., strict=False)` drops every name that does not fit, and if none fits, the module keeps the
    weights that it had. It says so only in its return value.

    ## What to do
    Compare the names, look for a prefix such as module. or model., and load with strict=True.

    ## When it is right
    Loading a part of a state with strict=False is not reported if half of its tensors have a place, or if half of the
    module's own tensors are in it.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    needs = "state loaded into a model"
    explains = (
        "saved::resumed-incompletely",
        "saved::not-what-was-trained",
        "model::evaluated-untrained",
        "weights::left-random",
    )

    def judge(self, load: Load) -> Verdict:
        if not isinstance(load.into, nn.Module) or not load.state:
            return NOTHING_TO_JUDGE
        fitting, own = len(load.state) - len(load.unexpected), _names(load.into)
        if load.strict or fitting >= MIN_SHARE * min(len(load.state), len(own)):
            return HELD
        return Found(
            expected="a state with the module's tensor names",
            observed=f"{fitting} of the state's {len(load.state)} tensors match {type(load.into).__name__}; "
            "strict=False drops the others",
        )


def _names(module: nn.Module) -> set[str]:
    """Names of its parameters and buffers."""
    return {name for name, _ in (*module.named_parameters(), *module.named_buffers())}
