from __future__ import annotations

import weakref
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import torch

from harness.watch.check import HELD, NOTHING_TO_JUDGE, NothingToJudge
from harness.watch.checks.saved.best_is_worst import BestIsWorst
from harness.watch.checks.saved.loaded_again import LoadsOtherwise, ResumedIncompletely, TokenizerOtherwise
from harness.watch.checks.saved.numbered_by_set import NumberedBySet
from harness.watch.checks.saved.observations.kept_states import StatesKept
from harness.watch.checks.saved.observations.resumes import TrainingResumed
from harness.watch.checks.saved.saves import (
    BeforeLastUpdates,
    BeforeTraining,
    BestIsLast,
    LastUpdateMissing,
    NotWhatWasEvaluated,
    NotWhatWasTrained,
    StateIncomplete,
    WithoutAdapter,
)
from harness.watch.events import MetricMonitored, Position, TrainerMade
from harness.watch.facts.model_reloads import ModelReloaded
from harness.watch.facts.reloads import TokenizerReloaded
from harness.watch.facts.saved_models import EvaluatedSaved, SavesBegun, TrainedNotSaved, TrainedSaved
from harness.watch.facts.saved_states import ModelSaves, SavedState, StateGiven, StateSaved, Trained
from tests.checks.judging import Case, values

STATE: OrderedDict[str, torch.Tensor] = OrderedDict()
KEPT = StateGiven(weakref.ref(STATE), 4, "train.py:20")
CUT = Position(9, 8, complete=False)
ALL = frozenset({"body.weight", "body.bias"})
NONE: frozenset[str] = frozenset()


def saved(
    made: int = 8,
    has: frozenset[str] = ALL,
    *,
    stale: frozenset[str] = NONE,
    infinite: frozenset[str] = NONE,
    base: bool = False,
    asked: StateGiven | None = None,
    passes: int = 8,
    steps: int = 8,
) -> SavedState:
    return SavedState(1, has, stale, infinite, {}, False, True, base, "train.py:30", made, asked, passes, steps)


def saves(*states: SavedState, until: int = 7, adapted: bool = False, **about: Any) -> ModelSaves:
    base = {"q.weight": torch.zeros(1)} if adapted else {}
    trained = Trained("Net", set(ALL), {}, {}, base, updates_made=until, passes=8, steps=8)
    return ModelSaves(trained=trained, saves=states, **about)


def monitored(metric: str, *, greater: bool) -> MetricMonitored:
    return MetricMonitored("ModelCheckpoint", metric, greater, "train.py:10")


def trainer(metric: str | None, *, greater: bool | None) -> TrainerMade:
    args = SimpleNamespace(metric_for_best_model=metric, greater_is_better=greater, load_best_model_at_end=True)
    return TrainerMade(SimpleNamespace(args=args, callback_handler=SimpleNamespace(callbacks=[])), "train.py:5")


CASES = [
    Case(BeforeLastUpdates, saves(saved(4), saved(8), stages={0, 4}), HELD),
    Case(BeforeLastUpdates, saves(saved(4), stages={0}), NOTHING_TO_JUDGE),
    Case(BeforeLastUpdates, saves(saved(4), stages={0, 4}, at=CUT), NOTHING_TO_JUDGE),
    Case(
        BeforeLastUpdates,
        saves(saved(4), stages={0, 4}),
        "Net is saved after 4 updates, then trained until update 8 with a new optimizer",
    ),
    Case(BeforeTraining, SavesBegun(), HELD),
    Case(BeforeTraining, SavesBegun(only_before=True), "the model was saved before the first update and never again"),
    Case(BestIsLast, StateSaved(saved=saved()), HELD),
    Case(BestIsLast, StateSaved(saved=saved(asked=KEPT)), "kept after 4 updates shares its memory with the model"),
    Case(NumberedBySet, values(strings=["oak", "ash"], from_set=False, loaded=False), HELD),
    Case(
        NumberedBySet,
        values(strings=["oak", "ash"], from_set=True, loaded=True),
        NothingToJudge("the process that numbers the classes is the one that loads the model"),
    ),
    Case(
        NumberedBySet, values(strings=["oak", "ash"], from_set=True, loaded=False), "oak, ash are numbered in the order"
    ),
    Case(BestIsWorst, StatesKept(), HELD),
    Case(BestIsWorst, StatesKept(by="the largest loss"), "after each evaluation with the largest loss so far"),
    Case(
        BestIsWorst, StatesKept(by="the smallest accuracy"), "after each evaluation with the smallest accuracy so far"
    ),
    Case(BestIsWorst, trainer("eval_loss", greater=False), HELD),
    Case(BestIsWorst, trainer(None, greater=None), NOTHING_TO_JUDGE),
    Case(BestIsWorst, trainer("eval_loss", greater=True), "greater_is_better=True: the worst checkpoint is kept"),
    Case(BestIsWorst, trainer("f1", greater=False), "greater_is_better=False: the worst checkpoint is kept"),
    Case(BestIsWorst, trainer("f1", greater=True), HELD),
    Case(BestIsWorst, monitored("val_acc", greater=True), HELD),
    Case(BestIsWorst, monitored("val_acc", greater=False), 'ModelCheckpoint with mode="min"'),
    Case(BestIsWorst, monitored("val_loss", greater=False), HELD),
    Case(BestIsWorst, monitored("val_loss", greater=True), 'ModelCheckpoint with mode="max"'),
    Case(BestIsWorst, monitored("val_reward", greater=False), HELD),
    Case(BestIsWorst, monitored("val_power", greater=True), HELD),
    Case(BestIsWorst, monitored("val_wer", greater=True), 'ModelCheckpoint with mode="max"'),
    Case(BestIsWorst, monitored("d_loss", greater=True), HELD),
    Case(LoadsOtherwise, ModelReloaded(path="out", apart=1e-4), HELD),
    Case(LoadsOtherwise, ModelReloaded(path="out", apart=1e-2, coarse=True), HELD),
    Case(LoadsOtherwise, ModelReloaded(path="out", misfit="size mismatch"), "out cannot be loaded in a new process"),
    Case(
        LoadsOtherwise,
        ModelReloaded(path="out", apart=0.5, missing=["head.weight"]),
        "so left at initial values: head.weight",
    ),
    Case(LastUpdateMissing, saves(saved(8)), HELD),
    Case(LastUpdateMissing, saves(saved(7, passes=7, steps=7)), NOTHING_TO_JUDGE),
    Case(LastUpdateMissing, saves(saved(7, steps=7), at=CUT), NOTHING_TO_JUDGE),
    Case(LastUpdateMissing, saves(saved(7, steps=7), saved(8)), HELD),
    Case(LastUpdateMissing, saves(saved(7, steps=7)), "the last save is after update 7; the next update"),
    Case(NotWhatWasEvaluated, EvaluatedSaved(), HELD),
    Case(NotWhatWasEvaluated, EvaluatedSaved(other=True), "the evaluated weights are not the saved ones"),
    Case(NotWhatWasTrained, TrainedSaved(), HELD),
    Case(
        NotWhatWasTrained,
        TrainedSaved(untouched=True),
        NothingToJudge("all that was saved has the weights that the training began with"),
    ),
    Case(
        NotWhatWasTrained,
        TrainedNotSaved(saved="a copy as it began", model="Net"),
        "the saved Net is a copy from the start of the training",
    ),
    Case(NotWhatWasTrained, TrainedNotSaved(saved="as loaded", model="Net"), "as it was loaded from its checkpoint"),
    Case(
        NotWhatWasTrained,
        TrainedNotSaved(saved="an earlier one", model="Net", until=(8, 16)),
        "the saved Net was trained until update 8; another one, trained until update 16",
    ),
    Case(ResumedIncompletely, TrainingResumed(), HELD),
    Case(ResumedIncompletely, TrainingResumed(apart="the optimizer has no moments"), "the optimizer has no moments"),
    Case(StateIncomplete, saves(saved()), HELD),
    Case(StateIncomplete, saves(), NOTHING_TO_JUDGE),
    Case(StateIncomplete, saves(saved(has=frozenset({"body.weight"}))), "the saved state lacks 1 tensor: body.bias"),
    Case(StateIncomplete, saves(saved(infinite=ALL)), "the saved state has NaN or infinite values in 2 tensors"),
    Case(StateIncomplete, saves(saved(stale=ALL)), "the saved state has values from before the training in 2 tensors"),
    Case(TokenizerOtherwise, TokenizerReloaded(path="out"), HELD),
    Case(
        TokenizerOtherwise,
        TokenizerReloaded(path="out", apart=("a b", 3, 2)),
        "the tokenizer loaded from out in a new process splits 'a b' into 2 tokens",
    ),
    Case(
        TokenizerOtherwise,
        TokenizerReloaded(path="out", apart=("a b", 3, 3)),
        "the tokenizer loaded from out in a new process splits 'a b' into different tokens than in training",
    ),
    Case(
        TokenizerOtherwise,
        TokenizerReloaded(path="out", talk="another"),
        "the tokenizer loaded from out in a new process writes another text with its chat template",
    ),
    Case(
        TokenizerOtherwise,
        TokenizerReloaded(path="out", talk="none"),
        "the tokenizer loaded from out in a new process has no chat template",
    ),
    Case(WithoutAdapter, saves(saved(), adapted=True), HELD),
    Case(WithoutAdapter, saves(saved()), NOTHING_TO_JUDGE),
    Case(WithoutAdapter, saves(saved(base=True), adapted=True, at=CUT), NOTHING_TO_JUDGE),
    Case(
        WithoutAdapter,
        saves(saved(base=True), adapted=True),
        "only the unchanged base of Net is saved, without its adapters",
    ),
]
