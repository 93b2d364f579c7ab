from __future__ import annotations

from torch import nn

from harness.watch.check import HELD, NOTHING_TO_JUDGE
from harness.watch.checks.model.identity import (
    EvaluatedUntrained,
    HooksSkipped,
    LayersShared,
    ReferenceIsAnother,
    ReferenceIsThePolicy,
)
from harness.watch.checks.model.observations.packed_documents import DocumentsPacked
from harness.watch.checks.model.observations.references import ReferenceAsked, ReferenceGiven
from harness.watch.checks.model.observations.replays import (
    OTHER_PADDING,
    SAME_ROWS,
    SINGLE_ROWS,
    DropoutInEvalMode,
    EvaluationReplay,
    Replayed,
)
from harness.watch.checks.model.observations.stacks import StacksCalled
from harness.watch.checks.model.outputs import (
    DocumentsSeeEachOther,
    NondeterministicEval,
    OutputDependsOnBatch,
    OutputDependsOnPadding,
)
from harness.watch.events import Forward, Position
from harness.watch.facts.trained_models import CalledAfterTraining, CheckpointEvaluated
from tests.checks.judging import Case


def call(*, unhooked: bool, hooks: int = 0) -> Forward:
    model = nn.Linear(2, 2)
    for _ in range(hooks):
        model.register_forward_hook(lambda *_: None)
    return Forward(1, model, (), {}, None, unhooked=unhooked)


def replayed(*compared: str, **apart: float | int) -> Replayed:
    return Replayed(replay=EvaluationReplay(**apart), compared=compared)  # type: ignore[arg-type]


CASES = [
    Case(DocumentsSeeEachOther, DocumentsPacked(place=5, they_see=False), HELD),
    Case(DocumentsSeeEachOther, DocumentsPacked(place=5, they_see=True), "position ids restart at position 5 of a row"),
    Case(DocumentsSeeEachOther, DocumentsPacked(place=5, they_see=True, masked=True), "(an attention mask is given)"),
    Case(NondeterministicEval, replayed(SAME_ROWS), HELD),
    Case(NondeterministicEval, replayed(), NOTHING_TO_JUDGE),
    Case(NondeterministicEval, DropoutInEvalMode(apart=0.5), "the logits of a second call differ by 0.5"),
    Case(OutputDependsOnBatch, replayed(SAME_ROWS, SINGLE_ROWS), HELD),
    Case(OutputDependsOnBatch, replayed(SAME_ROWS), NOTHING_TO_JUDGE),
    Case(
        OutputDependsOnBatch,
        replayed(SINGLE_ROWS, alone=0.25),
        "a row's logits in a batch differ by 0.25 from those of the row alone",
    ),
    Case(OutputDependsOnPadding, replayed(SAME_ROWS, OTHER_PADDING), HELD),
    Case(OutputDependsOnPadding, replayed(SAME_ROWS), NOTHING_TO_JUDGE),
    Case(OutputDependsOnPadding, replayed(OTHER_PADDING, bare=0.5, removed=3), "without its 3 padding tokens"),
    Case(
        OutputDependsOnPadding,
        replayed(OTHER_PADDING, longer=0.5),
        "with 3 more masked padding tokens, a row's logits differ by 0.5",
    ),
    Case(EvaluatedUntrained, CalledAfterTraining(), HELD),
    Case(EvaluatedUntrained, CalledAfterTraining(untrained="it has new weights"), "never trained: it has new weights"),
    Case(
        EvaluatedUntrained,
        CheckpointEvaluated(),
        "the evaluated model has the weights of the checkpoint that the training started from",
    ),
    Case(HooksSkipped, call(unhooked=True), HELD),
    Case(HooksSkipped, call(unhooked=False, hooks=1), NOTHING_TO_JUDGE),
    Case(HooksSkipped, call(unhooked=True, hooks=2), "which skips 2 hooks"),
    Case(LayersShared, StacksCalled(), HELD),
    Case(LayersShared, StacksCalled(stack="Net.layers", places=["0", "1"], layer="Linear"), "0, 1 of Net.layers are"),
    Case(ReferenceIsThePolicy, ReferenceAsked(loss=0.5), HELD),
    Case(ReferenceIsThePolicy, ReferenceAsked(loss=0.6931, in_a_row=4, at=Position(9, 8)), HELD),
    Case(
        ReferenceIsThePolicy,
        ReferenceAsked(loss=0.6931, in_a_row=5, at=Position(9, 8)),
        "the reference is the policy itself",
    ),
    Case(ReferenceIsAnother, ReferenceGiven(tensors=4), HELD),
    Case(
        ReferenceIsAnother,
        ReferenceGiven(tensors=4, others=["a.weight"]),
        "1 of the 4 tensors differs between policy and reference",
    ),
]
