from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from harness.watch.check import HELD, NOTHING_TO_JUDGE, NothingToJudge
from harness.watch.checks.inputs.batches import Constant, StaleBatch
from harness.watch.checks.inputs.choices import ChoicesApart
from harness.watch.checks.inputs.classes import ClassesAsNumbers, OneClass, PreferenceSwapped, RowsIgnored
from harness.watch.checks.inputs.decoder import WrongDecoderStart
from harness.watch.checks.inputs.evaluated import (
    EvaluatedOnAnotherScale,
    EvaluatedOnUnknownTokens,
    StandardisedApart,
)
from harness.watch.checks.inputs.next_token import (
    EndNotTaught,
    LabelsNotShifted,
    LabelsShiftedTwice,
    NextTokenVisible,
)
from harness.watch.checks.inputs.numbering import NumberedApart
from harness.watch.checks.inputs.observations.classes import (
    ClassesDifferentiated,
    LabelsOverTraining,
    OneOutput,
    OneOutputScored,
    PreferencesGiven,
)
from harness.watch.checks.inputs.observations.evaluated_rows import Moments, MomentsEvaluated, TokensEvaluated
from harness.watch.checks.inputs.observations.given_batches import BatchTrained, RowsTrained
from harness.watch.checks.inputs.observations.input_scales import ColumnsEvaluated, Evaluated, InputEvaluated
from harness.watch.checks.inputs.observations.padding import LeftPadded, PaddingCounted
from harness.watch.checks.inputs.observations.sentences import Counts, PairsOverTraining
from harness.watch.checks.inputs.observations.taught_rows import EndOverTraining, PromptsTaught, RowsWithoutLabel
from harness.watch.checks.inputs.observations.turns import StartsDoubled, StartsTaught, TurnsTaught
from harness.watch.checks.inputs.observations.visible_tokens import TargetShown
from harness.watch.checks.inputs.scalers import ScaledWithEvaluationRows
from harness.watch.checks.inputs.taught import NothingTaught, PaddingInLoss, PlaceholderTaught, PromptTaught
from harness.watch.checks.inputs.templates import (
    GenerationPromptTaught,
    StartMissing,
    StartTwice,
    TemplateTwice,
    ToolsNotShown,
)
from harness.watch.checks.inputs.texts import SentenceMissing, Truncated, UnknownWords
from harness.watch.checks.inputs.tokens import (
    PositionsCountPadding,
    SameTokensMasked,
    WrongAttentionMask,
    WrongMaskedLabels,
    WrongSegmentIds,
)
from harness.watch.events import Forward, LossCall
from harness.watch.facts.labels_given import Labelled
from harness.watch.facts.next_tokens import TokenLoss, TokensTaught
from harness.watch.facts.texts import TextsEncoded, WordsEncoded
from harness.watch.facts.tokens import Calls, Segments, TokensGiven
from tests.checks.judging import Case, values

IDS = torch.tensor([[2, 5, 3, 6, 3, 0, 0, 0], [2, 7, 3, 8, 9, 9, 9, 3]])
"""Two pairs: 2 begins a row, 3 separates and ends, 0 is the padding."""

STARTED, SHOWN = torch.tensor([[0, 5, 6, 3, 0], [0, 7, 3, 0, 0]]), torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]])
"""What a decoder is given that begins with the padding token, and its mask."""


class Model(nn.Module):
    def __init__(self, **config: Any) -> None:
        super().__init__()
        self.config = SimpleNamespace(**config)

    def forward(self, input_ids: Any, attention_mask: Any = None) -> None: ...


def forward(model: nn.Module | None = None, **tensors: torch.Tensor) -> Forward:
    return Forward(1, model or Model(), (), tensors, None, where="train.py:7")


def given(model: nn.Module | None = None, ids: torch.Tensor = IDS, **tensors: torch.Tensor) -> TokensGiven:
    called = forward(model, input_ids=ids, **tensors)
    return TokensGiven(forward=called, ids=ids, padding=0, mask=4, where="train.py:7")


def by_hand(ids: torch.Tensor) -> TokensGiven:
    """Ids that no tokenizer made, all attended to, of a model whose configuration says that 0 is the padding."""
    return replace(given(Model(pad_token_id=0), ids, attention_mask=torch.ones_like(ids)), padding=None)


MASK = (IDS != 0).long()
WORDS = torch.tensor([[2, 5, 3, 6, 3, 0, 0, 0], [2, 7, 0, 8, 9, 9, 9, 3]])
"""0 is a word."""
FEW_SAMPLED = torch.tensor([[2, 5] + [0] * 30, [2, 7, 8] + [0] * 29])
SAMPLED_SHOWN = (FEW_SAMPLED != 0).long().index_fill(1, torch.tensor([3]), 1)
"""The model sampled the padding token once or twice before it ended."""
PAIRS = Segments(2, [(0, 2, 4), (1, 2, 7)], 0, 0)
WITH_SEGMENTS = Model(type_vocab_size=2)
TYPES = torch.tensor([[0, 0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1, 1, 1]])


def pairs(types: torch.Tensor | None = None, *, model: nn.Module = WITH_SEGMENTS) -> TokensGiven:
    tensors = {} if types is None else {"token_type_ids": types}
    return replace(given(model, **tensors), segments=PAIRS)


MASKED = torch.tensor([[2, 4, 3, 6, 3, 9, 8, 7]])
"""One of eight tokens is hidden, which was 5."""


def masked(labels: list[int]) -> TokensGiven:
    return given(ids=MASKED, labels=torch.tensor([labels]))


HIDDEN = torch.tensor([[-100]])
ONE_LABEL = torch.tensor([[-100, 4, -100, -100, -100, -100, -100, -100]])


def with_own_loss(labels: torch.Tensor, targets: torch.Tensor) -> TokensGiven:
    """Of a model that computes its loss of these targets itself."""
    fact, logits = given(ids=MASKED, labels=labels), torch.zeros(targets.numel(), 10)
    call = LossCall("cross_entropy", logits, targets.flatten(), {}, logits.sum(), None, "train.py:7")
    return replace(fact, forward=replace(fact.forward, losses=[call]))


def losses(*ahead: int) -> TokensTaught:
    counted = torch.ones(2, 8, dtype=torch.bool)
    return TokensTaught(losses=[TokenLoss(forward(), None, IDS, 1, each, counted) for each in ahead])


def labelled(model: nn.Module) -> Labelled:
    return Labelled(forward=forward(model), tokens=IDS, labels=IDS, real=MASK != 0)


def prompts(**values: Any) -> PromptsTaught:
    return PromptsTaught(**{"rows": 100, **values})


def sentences(trained: Counts, evaluated: Counts | None = None, calls: Calls | None = None) -> PairsOverTraining:
    columns = "sentence1", "sentence2"
    return PairsOverTraining(columns=columns, trained=trained, evaluated=evaluated or Counts(), tokenized_twice=calls)


def moments(rows: torch.Tensor, *, trained: bool = False) -> Moments:
    rows = rows.double()
    return Moments("train.py:9", rows.sum(0), rows.square().sum(0), len(rows), trained)


def evaluated(*inputs: Moments) -> MomentsEvaluated:
    return MomentsEvaluated(inputs=inputs, update=3)


SHIFTED = torch.arange(120.0).reshape(40, 3)
STANDARDISED = (SHIFTED - SHIFTED.mean(0)) / SHIFTED.std(0)

CASES = [
    Case(ToolsNotShown, values(rows=20, without=7), HELD),
    Case(ToolsNotShown, values(rows=20, without=8), "8 of 20 conversations with tools were written without them"),
    Case(ScaledWithEvaluationRows, values(rows=120, needed=160, with_it=False), HELD),
    Case(ScaledWithEvaluationRows, values(rows=120, needed=0, with_it=False), NOTHING_TO_JUDGE),
    Case(ScaledWithEvaluationRows, values(rows=1600, needed=1600, with_it=True), "it was fitted on 1,600 rows"),
    Case(NumberedApart, values(name="ids", shared=4, moved=0), HELD),
    Case(NumberedApart, values(name="ids", shared=4, moved=1), NOTHING_TO_JUDGE),
    Case(NumberedApart, values(name="ids", shared=4, moved=2, example="'a' is 0 and 1"), "'a' is 0 and 1"),
    Case(ChoicesApart, values(groups=20, within=0.6, between=0.2, error=0.1), HELD),
    Case(ChoicesApart, values(groups=120, within=0.69, between=0.6, error=0.01), HELD),
    Case(ChoicesApart, values(groups=15, within=0.2, between=0.2, error=0.01), NOTHING_TO_JUDGE),
    Case(
        ChoicesApart,
        values(groups=20, within=0.22, between=0.2, error=0.01),
        NothingToJudge("in 20 groups, choices have 22% in common, and those of two groups 20%, which may be by chance"),
    ),
    Case(ChoicesApart, values(groups=20, within=0.21, between=0.2, error=0.02), "have 21% of their tokens in common"),
    Case(SameTokensMasked, values(again=20, alike=19), HELD),
    Case(SameTokensMasked, values(again=15, alike=15), NOTHING_TO_JUDGE),
    Case(SameTokensMasked, values(again=20, alike=20), "each of the 20 texts that came again had the same masks"),
    Case(WrongDecoderStart, values(rows=64, begun=64, twice=0, first=1, written=9, written_on=0), HELD),
    Case(WrongDecoderStart, values(rows=64, begun=0, twice=0, first=2, written=9, written_on=0), HELD),
    Case(WrongDecoderStart, values(rows=15, begun=0, twice=0, first=4, written=9, written_on=0), NOTHING_TO_JUDGE),
    Case(
        WrongDecoderStart,
        values(rows=64, begun=0, twice=0, first=4, written=9, written_on=0),
        "none of 64 rows begins",
    ),
    Case(
        WrongDecoderStart,
        values(rows=64, begun=0, twice=0, first=4, written=7, written_on=0),
        NothingToJudge("no text begins with the start token, and none was written from it"),
    ),
    Case(
        WrongDecoderStart,
        values(rows=64, begun=64, twice=64, first=1, written=9, written_on=8),
        "all 64 rows begin",
    ),
    Case(
        WrongDecoderStart,
        values(rows=64, begun=64, twice=64, first=1, written=9, written_on=7),
        NothingToJudge("all texts begin with two start tokens, and none was written from a single one"),
    ),
    Case(WrongAttentionMask, given(Model(decoder_start_token_id=0), STARTED, attention_mask=SHOWN), HELD),
    Case(WrongAttentionMask, given(Model(), STARTED, attention_mask=SHOWN), "not 0 for 2 padding tokens"),
    Case(WrongAttentionMask, given(attention_mask=MASK), HELD),
    Case(
        WrongAttentionMask,
        given(attention_mask=torch.ones_like(IDS)),
        "the attention mask is not 0 for 3 padding tokens",
    ),
    Case(
        WrongAttentionMask,
        given(attention_mask=torch.zeros_like(IDS)),
        "the attention mask is 0 for 13 of 13 tokens of the text",
    ),
    Case(WrongAttentionMask, given(ids=WORDS, attention_mask=torch.ones_like(WORDS)), HELD),  # sampled between others
    Case(WrongAttentionMask, given(ids=FEW_SAMPLED, attention_mask=SAMPLED_SHOWN), HELD),
    Case(WrongAttentionMask, given(), "there is padding, but the model gets no attention mask"),
    Case(WrongAttentionMask, replace(given(), padding=None), NOTHING_TO_JUDGE),
    Case(WrongAttentionMask, by_hand(IDS), "the attention mask is not 0 for 2 padding tokens"),
    Case(WrongAttentionMask, by_hand(WORDS), NOTHING_TO_JUDGE),
    Case(WrongMaskedLabels, masked([-100, 5, -100, -100, -100, -100, -100, -100]), HELD),
    Case(
        WrongMaskedLabels,
        masked([-100, 4, -100, -100, -100, -100, -100, -100]),
        "the labels at the masked positions are the mask token itself",
    ),
    Case(WrongMaskedLabels, masked([2, 5, 3, 6, 3, 9, 8, 7]), "8 of 8 tokens are labelled; most of them"),
    Case(WrongMaskedLabels, given(labels=IDS), NOTHING_TO_JUDGE),
    Case(WrongMaskedLabels, with_own_loss(MASKED, MASKED[:, 1:]), NOTHING_TO_JUDGE),
    Case(WrongMaskedLabels, with_own_loss(MASKED, torch.cat([MASKED[:, 1:], HIDDEN], dim=1)), NOTHING_TO_JUDGE),
    Case(WrongMaskedLabels, with_own_loss(MASKED, MASKED), "the labels at the masked positions are the mask token"),
    Case(WrongMaskedLabels, with_own_loss(ONE_LABEL, ONE_LABEL[:, 1:2]), "are the mask token itself"),
    Case(WrongSegmentIds, pairs(TYPES), HELD),
    Case(WrongSegmentIds, pairs(), "it gets no token_type_ids"),
    Case(WrongSegmentIds, pairs(torch.zeros_like(IDS)), "token_type_ids of pairs are [0], and do not change"),
    Case(WrongSegmentIds, pairs(model=Model(type_vocab_size=1)), NOTHING_TO_JUDGE),
    Case(WrongSegmentIds, replace(pairs(), separated_by_hand=True), NOTHING_TO_JUDGE),
    Case(PositionsCountPadding, LeftPadded(rows=8, padded=5), HELD),
    Case(PositionsCountPadding, LeftPadded(rows=8, padded=5, differs=True), "5 of 8 rows are padded on the left"),
    Case(LabelsNotShifted, TargetShown(ahead=0, visible=False), HELD),
    Case(LabelsNotShifted, TargetShown(ahead=1, visible=True), HELD),
    Case(LabelsNotShifted, TargetShown(ahead=0, visible=None), NOTHING_TO_JUDGE),
    Case(LabelsNotShifted, TargetShown(ahead=0, visible=True), "position t is trained to predict token t"),
    Case(NextTokenVisible, TargetShown(ahead=1, visible=False), HELD),
    Case(NextTokenVisible, TargetShown(ahead=1, visible=None), NOTHING_TO_JUDGE),
    Case(NextTokenVisible, TargetShown(ahead=0, visible=True), NOTHING_TO_JUDGE),
    Case(NextTokenVisible, TargetShown(ahead=1, visible=True), "the model sees its target"),
    Case(LabelsShiftedTwice, losses(1), HELD),
    Case(LabelsShiftedTwice, losses(1, 2), HELD),
    Case(LabelsShiftedTwice, losses(2), "the token after the next one is the target at all 16 positions in the loss"),
    Case(EndNotTaught, EndOverTraining(end=3), HELD),
    Case(EndNotTaught, EndOverTraining(end=3, without=20, taught=True), HELD),
    Case(EndNotTaught, EndOverTraining(end=3, without=20), "token 3, which ends 20 texts, is never a label"),
    Case(
        EndNotTaught,
        EndOverTraining(end=0, without=20, is_padding=True),
        "which ends 20 texts and is also the padding token",
    ),
    Case(NothingTaught, RowsWithoutLabel(rows=100, without=5, batches=10), HELD),
    Case(
        NothingTaught,
        RowsWithoutLabel(rows=100, without=6, batches=10),
        "6 of the 100 rows looked at, and 0 of 10 whole batches, have",
    ),
    Case(
        NothingTaught,
        RowsWithoutLabel(rows=8, without=8, cut=8, batches=1, empty=1),
        "8 of these rows fill the full length",
    ),
    Case(PromptTaught, prompts(prompts=95, mixed=4), HELD),
    Case(PromptTaught, prompts(), NOTHING_TO_JUDGE),
    Case(PromptTaught, prompts(prompts=90, mixed=10), "in 10 of 100 rows the prompt is also in the loss"),
    Case(PromptTaught, prompts(whole=100, asked="assistant_only_loss"), "in 100 of 100 rows the prompt"),
    Case(PlaceholderTaught, labelled(Model(image_token_id=4)), HELD),
    Case(PlaceholderTaught, labelled(Model()), NOTHING_TO_JUDGE),
    Case(PlaceholderTaught, labelled(Model(image_token_id=9)), "3 of the 16 labels in the loss are the token 9"),
    Case(PaddingInLoss, PaddingCounted(padding=5, counted=100), HELD),
    Case(PaddingInLoss, PaddingCounted(padding=6, counted=100), "6 of the 100 positions in the loss are padding"),
    Case(GenerationPromptTaught, TurnsTaught(rows=16, texts=16, open=7), HELD),
    Case(GenerationPromptTaught, TurnsTaught(rows=16), NOTHING_TO_JUDGE),
    Case(
        GenerationPromptTaught,
        TurnsTaught(rows=16, texts=16, open=8),
        "8 of 16 rows end right where an assistant turn begins",
    ),
    Case(TemplateTwice, TurnsTaught(rows=16, nested=7), HELD),
    Case(TemplateTwice, TurnsTaught(rows=0, texts=16), NOTHING_TO_JUDGE),
    Case(
        TemplateTwice, TurnsTaught(rows=16, nested=8), "in 8 of 16 rows a turn begins right after the start of another"
    ),
    Case(StartMissing, StartsTaught(start="<s>", rows=8, begun=True), HELD),
    Case(StartMissing, StartsTaught(start="<s>", rows=16, begun=False), "none of the 16 rows looked at has '<s>'"),
    Case(StartTwice, StartsDoubled(rows=16, twice=7), HELD),
    Case(StartTwice, StartsDoubled(rows=16, twice=8, start=2), "8 of 16 rows begin with two BOS tokens (id 2)"),
    Case(Truncated, TextsEncoded(texts=16, cut=16, kept=100, left_out=100), HELD),
    Case(Truncated, TextsEncoded(texts=15, cut=15, kept=1, left_out=100), NOTHING_TO_JUDGE),
    Case(Truncated, TextsEncoded(texts=16, cut=9, kept=100, left_out=101), "9 of 16 texts are truncated"),
    Case(UnknownWords, WordsEncoded(tokens=100, unknown=80), HELD),
    Case(UnknownWords, WordsEncoded(tokens=63, unknown=63), NOTHING_TO_JUDGE),
    Case(UnknownWords, WordsEncoded(tokens=100, unknown=81), "81 of 100 tokens of the texts"),
    Case(SentenceMissing, sentences(Counts(rows=16, pairs=16)), HELD),
    Case(SentenceMissing, sentences(Counts(rows=15)), NOTHING_TO_JUDGE),
    Case(SentenceMissing, sentences(Counts(rows=16)), "the rows that reach the model have only one segment"),
    Case(
        SentenceMissing,
        sentences(Counts(rows=16, pairs=16, twice=16)),
        "in 16 of 16 rows the same sentence comes twice",
    ),
    Case(
        SentenceMissing,
        sentences(Counts(rows=16, without_second=16)),
        "in 16 of 16 rows the second sentence is cut off completely",
    ),
    Case(
        SentenceMissing,
        sentences(Counts(rows=16, pairs=16), Counts(rows=16)),
        "but the evaluation rows have only one segment",
    ),
    Case(
        SentenceMissing,
        sentences(Counts(rows=16, pairs=16), calls=Calls(rows=64, pairs=64, twice=64)),
        "in 64 of 64 rows the same sentence comes twice",
    ),
    Case(OneClass, LabelsOverTraining(classes={0, 1}, rows=32), HELD),
    Case(OneClass, LabelsOverTraining(classes={1}, rows=31), HELD),
    Case(OneClass, LabelsOverTraining(classes={1}, rows=32), "all 32 rows that were trained on have the label 1"),
    Case(RowsIgnored, ClassesDifferentiated(classes=2, ignored=-100, rows=8, left_out=1), HELD),
    Case(
        RowsIgnored,
        ClassesDifferentiated(classes=2, ignored=0, rows=8, left_out=3),
        "ignore_index=0 leaves out the rows of class 0: 3 of 8",
    ),
    Case(ClassesAsNumbers, OneOutput(), HELD),
    Case(ClassesAsNumbers, OneOutput(targets={0.0, 1.0, 2.0}, trained=32), HELD),
    Case(ClassesAsNumbers, OneOutput(targets={0.0, 1.0}, trained=32), "all targets are 0 or 1"),
    Case(ClassesAsNumbers, OneOutputScored(largest=0.4, predictions={0.0}, references={0.0, 1.0}), HELD),
    Case(ClassesAsNumbers, OneOutputScored(largest=0.6, predictions={0.0}, references={0.0, 1.0}), "its argmax is 0"),
    Case(PreferenceSwapped, PreferencesGiven(chosen="chosen", rejected="rejected", rows=16, lower=8), HELD),
    Case(
        PreferenceSwapped, PreferencesGiven(chosen="chosen", rejected="rejected", rows=15, lower=15), NOTHING_TO_JUDGE
    ),
    Case(
        PreferenceSwapped,
        PreferencesGiven(chosen="chosen", rejected="rejected", rows=16, lower=9),
        "chosen is below rejected in 9 of 16 rows",
    ),
    Case(Constant, RowsTrained(), HELD),
    Case(Constant, RowsTrained(alike=4, largest=torch.zeros(2, 3)), HELD),
    Case(
        Constant,
        RowsTrained(alike=5, largest=torch.zeros(2, 3)),
        "all rows of 5 batches of shape (2, 3) are the same, with 0 everywhere",
    ),
    Case(Constant, RowsTrained(alike=5, largest=torch.arange(3.0)), "with values from 0 to 2"),
    Case(StaleBatch, BatchTrained(drawn=4), HELD),
    Case(StaleBatch, BatchTrained(drawn=5), "the DataLoader yielded 5 different batches"),
    Case(EvaluatedOnAnotherScale, InputEvaluated(name="x"), HELD),
    Case(
        EvaluatedOnAnotherScale,
        InputEvaluated(name="x", trained=(0.5, 1.0), apart=Evaluated(100.0, 200.0, "train.py:9", 3, rows=8)),
        "rows with a root mean square of",
    ),
    Case(EvaluatedOnAnotherScale, ColumnsEvaluated(name="x", columns=4, far=2, means="7, 7, 7"), NOTHING_TO_JUDGE),
    Case(
        EvaluatedOnAnotherScale, ColumnsEvaluated(name="x", columns=4, far=3, means="7, 7, 7"), "3 of 4 input columns"
    ),
    Case(EvaluatedOnUnknownTokens, TokensEvaluated(trained=1999, evaluated=200, token=1, times=200), HELD),
    Case(EvaluatedOnUnknownTokens, TokensEvaluated(trained=2000, evaluated=200, token=1, times=19), HELD),
    Case(
        EvaluatedOnUnknownTokens,
        TokensEvaluated(trained=2000, evaluated=200, token=1, times=20),
        "20 of 200 evaluation tokens are 1",
    ),
    Case(StandardisedApart, evaluated(moments(SHIFTED)), HELD),
    Case(StandardisedApart, evaluated(moments(STANDARDISED, trained=True)), NOTHING_TO_JUDGE),
    Case(StandardisedApart, evaluated(moments(SHIFTED), moments(STANDARDISED)), "each of 3 columns has mean 0 and"),
]
