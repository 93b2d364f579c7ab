"""Formula: how a number comes out of what an evaluation counted, as data and in words."""

from __future__ import annotations

from dataclasses import dataclass, replace

STREAMS = {
    "hits": "targets",
    "among_five": "targets that are among the five likeliest",
    "agrees": "numbers that were compared",
}
"""What is counted as right: the likeliest class by the labels that are known, one of the five likeliest, and what the
script itself compared."""

TRAINED = {
    "batch": "of the latest batch",
    "pass": "of the pass",
    "report": "since the last report",
    "training": "of the training",
}
"""Which batches of the training a formula is over."""

AVERAGES = ("macro", "micro", "weighted")
"""Over the classes."""

OTHERWISE = {
    "wrong-axis": "with the argmax over places, not classes",
    "own-place": "with labels not shifted",
    "own-place-but-first": "with labels not shifted, the first one left out",
    "threshold-of-probabilities": "with a threshold of 0.5 on scores that are no probabilities",
}
"""How classes are taken by mistake from what a model says."""

WORDS: dict[str, str] = {
    "macro": "macro",
    "micro": "micro",
    "weighted": "weighted",
    "class": "of class {number}",
    "all-classes": "of all classes",
    "share": "{hits:,} of {targets:,} {over}",
    "sum": "the sum over {targets:,} targets",
    "mean": "the mean over {targets:,} targets",
    "balanced": "balanced over the classes",
    "mean-absolute": "the mean of {targets:,} differences",
    "errors": "{errors:,} of {targets:,} {over} that are wrong",
    "batches-added": "the losses of {batches} {parts} added up",
    "mean-square": "the mean square of {targets:,} differences",
    "mean-of-means": "the mean of the means of {batches} {parts}",
    "number-right": "the number of {over} that are right",
    "training-loss": "the training loss {over}",
    "training-hits": "{hits:,} of {targets:,} training rows {over}",
    "training-sum": "the {losses} training losses {over} added up",
    "training-mean": "the mean of the {losses} training losses {over}",
    "training-mean-by-rows": "the mean of the training losses {over} over {rows} rows",
    "root-mean-square": "the root of the mean square of {targets:,} differences",
    "explained-share": "the explained share of the variance of {targets:,} targets",
    "exponential": "the exponential of {of}",
    "unscaled": "{of}, as the loss function gave it",
    "lowest": "the lowest of {evaluations} evaluations, each {of}",
    "highest": "the highest of {evaluations} evaluations, each {of}",
    # Mistakes
    "compared-twice": "{hits} of {targets} comparisons, though there are {rows} rows: some fill up the last batch",
    "as-if-whole": "hits divided by {rows}, as if all {batches} batches had {size} rows",
    "by-another-length": "hits divided by {length}, the length of something else",
    "by-all-places": "hits divided by all {places} places, ignored ones among them",
    "by-batches": "hits divided by the number of {parts}, {hits} by {batches}",
    "all-evaluations-by-one": "hits of all {evaluations} evaluations, divided by the targets of one",
    "last-batch-by-all": "hits of the last batch alone, divided by all {targets} targets",
    "without-last-batch": "hits without those of the last batch, {hits} of {targets}",
    "all-evaluations": "that of all {evaluations} evaluations together",
    "evaluation-before": "that of the evaluation before",
    "last-batch": "that of the last batch alone, {hits} of its {rows}",
    "exchanged-r2": "that with what the model says and the targets in each other's place",
    "accuracies-added": "the accuracies of {batches} {parts} added up",
    "means-by-targets": "the batches' means, added up and divided by {targets} targets",
    "means-by-another-length": "the batches' means, added up and divided by {length}, the length of something else",
    "last-batch-loss": "the loss of the last batch alone",
    "value-of-last-batch": "that of the last batch alone, {of}",
    "value-before": "that of the evaluation before, {of}",
    "value-of-all": "that of all evaluations together, {of}",
    "mean-of-values": "the mean of {batches} {parts}' values, {of}",
    "absolute": "the mean of the absolute differences",
    "mean-of-accuracies": "the mean of the accuracies of {batches} {parts}",
    "mean-of-perplexities": "the mean of the perplexities of {batches} {parts}",
    "mean-of-roots": "the mean of the roots of {batches} {parts}",
    "without-root": "the mean square, without its root",
    "exchanged-precision": "the precision, {of}",
    "exchanged-recall": "the recall, {of}",
    "with-root": "the root of the mean square",
    "sum-by-batches": "the sum over all targets, divided by {batches} batches",
    "sum-by-another-length": "the sum over all targets, divided by {length}, the length of something else",
    "other-average": "the {of} average",
    "rank-alone": "that of rank 0 alone, {of}",
    "sum-by-own-targets": "the sum over all ranks, divided by the {targets} targets of rank 0",
    **{how: f"{{of}}, {words}" for how, words in OTHERWISE.items()},
}
"""What each kind of formula is in words, which may change. Where several give a number, the first one here is said, so
that the order stays as it is."""


@dataclass(frozen=True)
class Formula:
    """How a number comes out of what was counted; in words, it is ``str(formula)``."""

    kind: str
    """One of WORDS."""
    over: str = ""
    """Which of STREAMS or of TRAINED it is over, where there are several."""
    of: Formula | None = None
    """The formula that it takes the value of."""
    numbers: tuple[tuple[str, int], ...] = ()
    """What was counted, by its name in WORDS."""
    parts: str = "batches"
    """What an evaluation consists of."""

    @property
    def key(self) -> str:
        """The formula without its numbers, which differ from one evaluation to the next: "share:agrees",
        "exponential(mean)". Baselines keep it, so that it stays as it is."""
        over, of = f":{self.over}" if self.over else "", f"({self.of.key})" if self.of is not None else ""
        return f"{self.kind}{over}{of}"

    @property
    def of_training(self) -> bool:
        """Whether it is over what the model was trained on."""
        return self.over in TRAINED or (self.of is not None and self.of.of_training)

    @property
    def rank(self) -> tuple[int, ...]:
        """What it is sorted by among those that give a number: the simplest first, those of the training last."""
        trained = [*TRAINED].index(self.over) if self.over in TRAINED else -1
        stream = [*STREAMS].index(self.over) if self.over in STREAMS else -1
        inner = self.of.rank if self.of is not None else ()
        # Of several parts of an evaluation that give it, the largest is the one that the script is about.
        return trained, [*WORDS].index(self.kind), stream, *inner, *(-number for _, number in self.numbers)

    def of_ranks(self) -> Formula:
        """The same of the parts of several ranks instead of batches."""
        return replace(self, parts="ranks", of=None if self.of is None else self.of.of_ranks())

    def __str__(self) -> str:
        over = {**STREAMS, **TRAINED}.get(self.over, "")
        return WORDS[self.kind].format(over=over, of=self.of, parts=self.parts, **dict(self.numbers))


def formula(kind: str, of: Formula | None = None, *, over: str = "", **numbers: int) -> Formula:
    """A formula over numbers that are given by their names in WORDS."""
    return Formula(kind, over, of, tuple(numbers.items()))
