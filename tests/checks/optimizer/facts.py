from __future__ import annotations

import torch

from harness.watch.check import HELD, NOTHING_TO_JUDGE, NothingToJudge
from harness.watch.checks.gradients.cut_off import CutOff
from harness.watch.checks.optimizer.held import HoldsAnotherModel, HoldsOnlyFrozen, Maximizes, MissingParameters
from harness.watch.checks.optimizer.observations.optimizer_steps import (
    BackwardWithoutOptimizer,
    HeldByAll,
    OptimizerGiven,
    OptimizerMadeAgain,
    OptimizerUnused,
    Setting,
    StateCounted,
    StepsMade,
)
from harness.watch.checks.optimizer.steps import (
    MadeAgain,
    NeverMade,
    NeverSteps,
    NotAsAsked,
    NotPrepared,
    StateEmptied,
)
from harness.watch.events import Position, StepBegins
from harness.watch.facts.accelerators import StepsWithAccelerator
from harness.watch.facts.ascent import LossFollowed
from harness.watch.facts.parameters import ModelHeld, TensorsHeld, ZeroGradients
from tests.checks.judging import Case

SGD = torch.optim.SGD([torch.zeros(1)], lr=0.1)
FIRST = StepBegins(SGD, 1, 1, True, "train.py:9")
LATER = StepBegins(SGD, 2, 2, True, "train.py:9", at=Position(update=2, updates_made=1))
SMALL_PART = "too few parameters without gradients to tell them from unused ones"

CASES = [
    Case(CutOff, TensorsHeld(tensors=8), HELD),
    Case(CutOff, TensorsHeld(tensors=0), NOTHING_TO_JUDGE),
    Case(CutOff, TensorsHeld(tensors=8, left_out=2, share_left_out=0.1), HELD),
    Case(
        CutOff,
        TensorsHeld(tensors=8, left_out=3, shown_left_out="a.weight of Net"),
        "3 of 8 trainable tensors in the optimizer never get a gradient, because the modules that they are in are",
    ),
    Case(CutOff, TensorsHeld(tensors=8, left_out=1, share_left_out=0.5), "are never called"),
    Case(CutOff, TensorsHeld(tensors=8, without_gradient=1, any_cut_off=True), NothingToJudge(SMALL_PART)),
    Case(
        CutOff,
        TensorsHeld(tensors=8, without_gradient=1, any_cut_off=True, in_each="norm of blocks.*", blocks=3),
        "norm of blocks.* never gets a gradient in any of 3 blocks",
    ),
    Case(CutOff, TensorsHeld(tensors=8, without_gradient=8, of_another_model=True), HELD),
    Case(
        CutOff,
        TensorsHeld(tensors=8, without_gradient=4, shown="a.weight of Net"),
        "4 of 8 trainable tensors in the optimizer never get a gradient, though their model is called: a.weight of Net",
    ),
    Case(CutOff, TensorsHeld(tensors=8, without_gradient=1, share_of_elements=0.5), "1 of 8 trainable tensors"),
    Case(
        CutOff,
        TensorsHeld(tensors=8, without_gradient=8, called=False, ends_in=(2, 3)),
        "the loss's graph ends in a new tensor of shape (2, 3)",
    ),
    Case(CutOff, ZeroGradients(matrices=1), NOTHING_TO_JUDGE),
    Case(
        CutOff,
        ZeroGradients(matrices=2, shown="a.weight of Net"),
        "the gradients of 2 matrices in the optimizer are exactly 0 in all updates looked at: a.weight of Net",
    ),
    Case(HoldsAnotherModel, TensorsHeld(tensors=8), HELD),
    Case(
        HoldsAnotherModel,
        TensorsHeld(tensors=8, foreign=8, of_another_model=True),
        "8 of the optimizer's 8 tensors belong to no model that was called",
    ),
    Case(
        HoldsAnotherModel,
        TensorsHeld(
            tensors=6, foreign=2, of_another_model=True, not_held=["head.weight", "head.bias"], replaced_at="train.py:9"
        ),
        "are in no optimizer. The optimizer was made before train.py:9, and holds 2 tensors",
    ),
    Case(HoldsOnlyFrozen, HeldByAll(), HELD),
    Case(
        HoldsOnlyFrozen,
        HeldByAll(only_frozen=True, update=1),
        "all parameters in the optimizer are frozen (requires_grad is False)",
    ),
    Case(Maximizes, LossFollowed(), HELD),
    Case(Maximizes, LossFollowed(climbs="by the loss"), HELD),
    Case(Maximizes, LossFollowed(climbs="by the optimizer"), "maximize=True"),
    Case(MissingParameters, ModelHeld(model="Net"), HELD),
    Case(MissingParameters, ModelHeld(model="Net", forgotten=["head.bias"]), "head.bias of Net get gradients"),
    Case(MadeAgain, LATER, HELD),
    Case(MadeAgain, FIRST, NOTHING_TO_JUDGE),
    Case(MadeAgain, OptimizerMadeAgain(optimizer="AdamW"), "this line creates another AdamW for the same parameters"),
    Case(NeverMade, BackwardWithoutOptimizer(passes=8, meant=True), HELD),
    Case(NeverMade, BackwardWithoutOptimizer(passes=8, meant=False), "after 8 backward passes"),
    Case(NeverSteps, StepsMade(any_step=True), HELD),
    Case(NeverSteps, StepsMade(any_step=False, passes=8), "8 backward passes, but no optimizer step"),
    Case(NeverSteps, OptimizerUnused(shown="a.weight of Net"), "nothing else changes a.weight of Net"),
    Case(NotAsAsked, OptimizerGiven(), HELD),
    Case(NotAsAsked, OptimizerGiven(settings=[Setting("learning_rate", 5e-5, [1e-3, 5e-5])]), HELD),
    Case(
        NotAsAsked,
        OptimizerGiven(settings=[Setting("learning_rate", 5e-5, [1e-3]), Setting("weight_decay", 0.1, [None])]),
        "has 0.001, and learning_rate=5e-05 is ignored",
    ),
    Case(NotAsAsked, OptimizerGiven(settings=[Setting("weight_decay", 0.1, [None])]), "has none"),
    Case(NotPrepared, StepsWithAccelerator(micro_batches=4, passes=8, steps=2), HELD),
    Case(NotPrepared, StepsWithAccelerator(micro_batches=4, passes=7, steps=7), HELD),
    Case(NotPrepared, StepsWithAccelerator(micro_batches=4, passes=8, steps=8), "8 updates in 8 backward passes"),
    Case(StateEmptied, StateCounted(before=9.0, emptied=False), HELD),
    Case(StateEmptied, StateCounted(before=9.0, emptied=True), "the optimizer's state was emptied during training"),
]
