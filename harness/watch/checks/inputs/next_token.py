"""The token that a language model is taught to say at each place."""

from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.inputs.observations.taught_rows import EndOverTraining
from harness.watch.checks.inputs.observations.visible_tokens import TargetShown
from harness.watch.facts.next_tokens import TokensTaught

MIN_TEXTS = 8
"""Texts of which the model must have been taught the token before the end. By reasoning, fewer may be chance."""


class LabelsNotShifted(Check):
    """A causal language model is trained to predict a token that it already sees: its labels are not shifted.

    ## Why is this a bug?
    If the label at a position is the token at that position, the model copies its input. The loss quickly falls to
    nearly 0. Nothing of that is left when the model generates, since it must then predict the next token.

    ## What to do
    Shift the labels: use text[:, 1:] as labels for text[:, :-1]. Models of transformers shift the labels that you pass
    to them themselves.

    ## When it is right
    Models in which a position sees later ones (masked language models, autoencoders), and those from which the training
    hides tokens (word dropout), are not reported. Neither are those in which the tokens pass through a state without
    positions. A model that sees only what came before, and is trained to repeat each token as it is shown, is reported:
    it can copy.

    ## References
    - https://huggingface.co/docs/transformers/tasks/language_modeling
    """

    explains = ("inputs::wrong-decoder-start",)

    def judge(self, fact: TargetShown) -> Verdict:
        if fact.ahead or not fact.visible:
            return HELD if fact.ahead or fact.visible is not None else NOTHING_TO_JUDGE
        return Found(
            expected="labels shifted by one, so that the model predicts a token that it does not see yet",
            observed="labels are not shifted: position t is trained to predict token t, which the model can see",
        )


class NextTokenVisible(Check):
    """A language model sees the token that it must predict, because a causal mask is missing.

    ## Why is this a bug?
    If all positions attend to all others, the next token is in plain sight, and the model learns to copy it. The loss
    quickly falls to nearly 0. Nothing of that is left when the model generates, since there is then no next token to
    see.

    ## What to do
    Give the layers a causal mask: torch.nn.Transformer.generate_square_subsequent_mask, is_causal=True, or
    is_decoder=True in the configuration of a BERT.

    ## When it is right
    Models that are taught the tokens at their own positions (masked language models, autoencoders) are not reported.
    Neither are those in which the tokens pass through a state without positions, such as the code of a variational
    autoencoder.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Transformer.html
    """

    def judge(self, fact: TargetShown) -> Verdict:
        if not fact.ahead or fact.visible is None:
            return NOTHING_TO_JUDGE
        if not fact.visible:
            return HELD
        return Found(
            expected="logits that depend only on earlier tokens",
            observed="changing the next token changes the logits that predict it: the model sees its target",
            where=fact.called,
        )


class LabelsShiftedTwice(Check):
    """A language model is trained to predict the token after the next one: its labels are shifted twice.

    ## Why is this a bug?
    The causal language models of transformers shift the labels themselves: they expect `labels=input_ids`. If the
    script shifts them too, each position is taught to predict the token two positions ahead. The loss falls to that of
    a harder task, and the text that the model generates leaves out every other word.

    ## What to do
    Shift the labels only once: pass labels=input_ids to the model, or shift them yourself and call the loss function
    with the model's logits.

    ## When it is right
    Heads that predict several tokens ahead, alongside one that predicts the next, are not reported.

    ## References
    - https://github.com/huggingface/accelerate/issues/4303
    - https://huggingface.co/docs/transformers/model_doc/gpt2#transformers.GPT2LMHeadModel.forward.labels
    """

    def judge(self, fact: TokensTaught) -> Verdict:
        if {each.ahead for each in fact.losses} != {2}:
            return HELD
        places = int(fact.losses[0].counted.sum())
        return Found(
            expected="the next token as the target of each position",
            observed=f"the token after the next one is the target at all {places} positions in the loss",
        )


class EndNotTaught(Check):
    """The end-of-text token (EOS) is left out of the loss, so the model never learns to stop.

    ## Why is this a bug?
    Suppose `pad_token` is `eos_token`, and labels are set to -100 wherever the padding's id occurs (`labels[labels ==
    tokenizer.pad_token_id] = -100`, as in DataCollatorForLanguageModeling). Then the one end-of-text token that closes
    each text is ignored together with the padding after it. The loss looks fine, and the trained model keeps talking
    until it is cut off.

    ## What to do
    Mask padding by the attention mask instead of the token id, labels.masked_fill(attention_mask == 0, -100), or give
    the tokenizer its own padding token, tokenizer.pad_token = "<pad>", and resize the embeddings.

    ## When it is right
    A model that should not learn where texts end: one that continues a text for as long as it is asked to. The model's
    configuration or the tokenizer says which token ends a text, and the attention mask says which of these tokens
    belong to it. Texts that do not end in this token are not checked. Neither are texts in which no other token, or
    only one, is taught.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/data_collator#transformers.DataCollatorForLanguageModeling
    """

    severity = "warning"

    def judge(self, fact: EndOverTraining) -> Verdict:
        if fact.without < MIN_TEXTS or fact.taught:
            return HELD
        padding = " and is also the padding token" if fact.is_padding else ""
        return Found(
            expected="the end-of-text token as a label in each text",
            observed=f"token {fact.end}, which ends {fact.without} texts{padding}, is never a label, though the token "
            "before it is",
            update=fact.update,
        )
