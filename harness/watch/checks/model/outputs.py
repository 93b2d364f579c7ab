from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.model.observations.packed_documents import DocumentsPacked
from harness.watch.checks.model.observations.replays import (
    COLUMNS,
    OTHER_PADDING,
    SAME_ROWS,
    SINGLE_ROWS,
    DropoutInEvalMode,
    Replayed,
)

MASK = "Pad on the right for models with absolute positions, and use the attention mask wherever tokens are combined."

PACK = (
    "Pack the rows, so that the model does not read their padding: "
    "pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)."
)
"""What to do where a recurrent model reads the padding."""


class DocumentsSeeEachOther(Check):
    """Packed documents see each other: the logits of one depend on the document before it in the row.

    ## Why is this a bug?
    Position ids that restart within a row say that another document begins there. They keep documents apart only if the
    attention is told so, too. The models of transformers read the boundaries from the position ids if they get no
    attention mask and use a kernel that can do it; with a mask of ones, or with a kernel that cannot, each document
    attends to all those before it. The model then learns from texts that have nothing to do with each other.

    ## What to do
    Don't pass attention_mask for packed rows, or pass a block-diagonal 4D mask; use an attention implementation that
    respects document boundaries (`attn_implementation="flash_attention_2"`, or `"sdpa"` from transformers 4.53 on).

    ## When it is right
    When documents are joined on purpose, as in pretraining on a stream of text. Position ids that count through the
    whole row show this.

    ## References
    - https://github.com/huggingface/trl/pull/3673
    - https://huggingface.co/docs/trl/reducing_memory_usage#packing
    """

    new_since = "0.2.0"

    def judge(self, fact: DocumentsPacked) -> Verdict:
        if not fact.they_see:
            return HELD
        mask = "an" if fact.masked else "no"
        return Found(
            expected="logits of a packed document that don't depend on other documents in its row",
            observed=f"position ids restart at position {fact.place} of a row, but changing the tokens before it "
            f"changes the logits after it: the documents attend to each other ({mask} attention mask is given)",
        )


class NondeterministicEval(Check):
    """In eval mode, the model gives different outputs each time for the same rows: dropout is still on.

    ## Why is this a bug?
    Dropout that is called as a function does not know about eval mode, and stays on. Scores are too low, and
    comparisons of runs and of reloaded models mean nothing.

    ## What to do
    Call functional.dropout with training=self.training.

    `scaled_dot_product_attention` ignores the mode: give it `dropout_p=self.p if self.training else 0.0`. A dropout
    module that is made in `forward`, or kept in a list, is always in train mode: make it an attribute.

    ## When it is right
    Models that draw random numbers for something other than dropout in eval mode (a variational autoencoder, noise, a
    sampled choice) are not reported. Neither is dropout that is kept on by putting its modules into train mode (Monte
    Carlo dropout). A model that is called with the same rows three or more times in a row is not reported either.

    ## References
    - https://github.com/pytorch/pytorch/issues/124464
    - https://github.com/huggingface/pytorch-image-models/pull/1978
    """

    needs = "evaluation that can be repeated"

    def judge(self, fact: DropoutInEvalMode) -> Verdict:
        return Found(
            expected="the same logits for the same rows",
            observed=f"the logits of a second call differ by {fact.apart:.2g}, because dropout is active in eval mode",
        )

    def judge_replay(self, fact: Replayed) -> Verdict:
        return HELD if SAME_ROWS in fact.compared else NOTHING_TO_JUDGE


class OutputDependsOnBatch(Check):
    """A row's logits depend on the other rows of its batch.

    ## Why is this a bug?
    The model reads the answer for a row from its neighbours, or blurs it with theirs. It predicts something different
    with another batch size, for a shuffled dataset, and for a single row when it is used.

    ## What to do
    Look for a softmax, mean or normalisation over the batch (dim=0), for reshapes that mix rows, and for recurrent
    layers or `nn.MultiheadAttention` without `batch_first=True`, which treat rows as tokens.

    ## When it is right
    Batch normalisation is not reported: in eval mode, in which the check calls the model, it uses its own statistics.
    Neither are models in which rows compete by their scores (experts that choose their best rows): `torch.topk` or
    `sort` along the rows shows it. Ignore this check if rows attend to one another, or share an expert's capacity, by
    design.

    ## References
    - https://karpathy.github.io/2019/04/25/recipe/
    """

    def judge(self, fact: Replayed) -> Verdict:
        if fact.replay.alone is None:
            return HELD if SINGLE_ROWS in fact.compared else NOTHING_TO_JUDGE
        return Found(
            expected="the same logits for a row alone and in a batch",
            observed=f"a row's logits in a batch differ by {fact.replay.alone:.2g} from those of the row alone",
        )


class OutputDependsOnPadding(Check):
    """A row's logits depend on how far it is padded.

    ## Why is this a bug?
    The longest row that happens to be in the batch decides how much padding a row gets. A mean over all tokens, or the
    last token's state, then depends on that other row. So does the last state of an LSTM that reads the padding.

    ## What to do
    Use the attention mask wherever tokens are combined: attention, means, sums, maxima.

    To pool by the last token, take the last one that the mask keeps. Pad on the right for models with absolute
    positions. Pack the rows of a recurrent model: `pack_padded_sequence(embedded, lengths, enforce_sorted=False)`.

    ## When it is right
    Models that get position ids are not tested, nor those that get no mask, unless they are recurrent, the
    `padding_idx` of their embeddings says what padding is, and their batches have several widths: that is a warning.
    Differences due to rounding are not reported.

    ## References
    - https://github.com/huggingface/transformers/issues/278
    - https://github.com/huggingface/transformers/issues/2860
    """

    needs = "evaluation of padded rows"

    def judge(self, fact: Replayed) -> Verdict:
        replay = fact.replay
        if replay.bare is not None:
            return Found(
                expected="the same logits with and without padding",
                observed=f"without its {replay.removed} padding token{'s' * (replay.removed != 1)}, a row's logits "
                f"differ by {replay.bare:.2g}",
                hint=PACK if replay.recurrent else MASK,
                may_be_meant=replay.recurrent,
            )
        if replay.longer is not None:
            return Found(
                expected="the same logits however far a row is padded",
                observed=f"with {COLUMNS} more masked padding tokens, a row's logits differ by {replay.longer:.2g}",
            )
        return HELD if OTHER_PADDING in fact.compared else NOTHING_TO_JUDGE
