"""What becomes of texts on their way through a tokenizer."""

from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.inputs.observations.sentences import MIN_ROWS, MIN_SHARE, Counts, PairsOverTraining
from harness.watch.facts.texts import TextsEncoded, WordsEncoded

MIN_TEXTS = 16
"""Texts that are tokenized before something is said of all of them."""

MIN_TOKENS = 64
"""Tokens that are looked at before something is said of all of them."""

MAX_UNKNOWN = 0.8
"""Largest share of a text's tokens that may be unknown. Far above what names and numbers in a foreign vocabulary come
to."""


class Truncated(Check):
    """Most texts are truncated, and more of their tokens are cut off than kept.

    ## Why is this a bug?
    Truncation is silent. With a `max_length` that was meant for other texts, the model is trained and evaluated on the
    beginnings of sentences, and both numbers agree.

    ## What to do
    Raise max_length. Ignore this for long documents of which you only want the beginning.

    ## When it is right
    Ignore the warning if the beginning of a long document says enough. Texts that are split into parts with
    `return_overflowing_tokens` lose nothing, and are not reported.
    """

    severity = "warning"

    def judge(self, fact: TextsEncoded) -> Verdict:
        if fact.texts < MIN_TEXTS:
            return NOTHING_TO_JUDGE
        if fact.cut <= fact.texts / 2 or fact.left_out <= fact.kept:
            return HELD
        return Found(
            expected="most of each text",
            observed=f"{fact.cut} of {fact.texts} texts are truncated, and more tokens are cut off than kept",
        )


class UnknownWords(Check):
    """Nearly every word is unknown to the tokenizer.

    ## Why is this a bug?
    All words outside the vocabulary become one and the same token: the model sees how long a text is, and nothing else.
    Nobody notices a vocabulary that was not read (its argument has another name, its file belongs to something else),
    because a tokenizer without words makes tokens too.

    ## What to do
    Print tokenizer.vocab_size and tokenizer.tokenize(text), and check how the tokenizer is made.

    ## When it is right
    A few unknown words are not reported, nor are tokenizers other than the fast ones.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/tokenizer
    """

    explains = ("rows::repeated-or-skipped", "rows::labels-of-other-rows", "rows::evaluated-on-training-rows")

    def judge(self, fact: WordsEncoded) -> Verdict:
        if fact.tokens < MIN_TOKENS:
            return NOTHING_TO_JUDGE
        if fact.unknown <= MAX_UNKNOWN * fact.tokens:
            return HELD
        return Found(
            expected="words that the tokenizer knows",
            observed=f"{fact.unknown} of {fact.tokens} tokens of the texts looked at are the unknown token",
            update=1,
        )


class SentenceMissing(Check):
    """The model gets only one sentence of each pair.

    ## Why is this a bug?
    One sentence alone does not show whether two sentences mean the same. The model learns what the first one gives
    away, which is little more than how often each class occurs. If it is trained on pairs and evaluated on single
    sentences, the evaluation does not measure what was learned.

    ## What to do
    Tokenize both sentences: tokenizer(example[first], example[second], truncation=True).

    ## When it is right
    A dataset from which one of the two columns was removed is not reported: a single sentence is intended. Neither are
    bi-encoders, which get each sentence separately, or rows that do not each have a label. A dataset is not checked
    without columns that are known to belong together (sentence1 and sentence2, premise and hypothesis, ...).
    """

    def judge(self, fact: PairsOverTraining) -> Verdict:
        calls = fact.tokenized_twice
        twice = None if calls is None else f"in {calls.twice} of {calls.rows} rows the same sentence comes twice"
        observed = twice or _observed(fact.trained) or _in_the_evaluation(fact.trained, fact.evaluated)
        if observed is None:
            return HELD if fact.trained.rows >= MIN_ROWS else NOTHING_TO_JUDGE
        first, second = fact.columns
        return Found(expected=f"both {first} and {second} in each row", observed=observed, update=1)


def _observed(seen: Counts) -> str | None:
    if seen.rows < MIN_ROWS:
        return None
    if seen.pairs == 0 and seen.without_second == 0:
        return "the rows that reach the model have only one segment"
    if seen.twice > MIN_SHARE * seen.pairs:
        return f"in {seen.twice} of {seen.pairs} rows the same sentence comes twice"
    if seen.without_second > seen.pairs:
        return f"in {seen.without_second} of {seen.rows} rows the second sentence is cut off completely"
    return None


def _in_the_evaluation(trained: Counts, seen: Counts) -> str | None:
    if trained.pairs < max(MIN_ROWS, MIN_SHARE * trained.rows) or seen.rows < MIN_ROWS:
        return None
    if seen.pairs or seen.without_second:
        return None
    return "the model is trained on pairs, but the evaluation rows have only one segment"
