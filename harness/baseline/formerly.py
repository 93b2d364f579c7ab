"""What baselines of trainings kept before and keep otherwise now: read as what it is called today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

SIMPLE = {
    "# of # targets": "share:hits",
    "# of # targets that are among the five likeliest": "share:among_five",
    "# of # numbers that were compared": "share:agrees",
    "# of # targets that are wrong": "errors:hits",
    "# of # targets that are among the five likeliest that are wrong": "errors:among_five",
    "# of # numbers that were compared that are wrong": "errors:agrees",
    "the number of targets that are right": "number-right:hits",
    "the number of targets that are among the five likeliest that are right": "number-right:among_five",
    "the number of numbers that were compared that are right": "number-right:agrees",
    "the sum over # targets": "sum",
    "the losses of # batches added up": "batches-added",
    "the mean of # differences": "mean-absolute",
    "the mean square of # differences": "mean-square",
    "the root of the mean square of # differences": "root-mean-square",
    "the explained share of the variance of # targets": "explained-share",
    "the training loss of the latest batch": "training-loss:batch",
    "# of # training rows of the pass": "training-hits:pass",
    "# of # training rows since the last report": "training-hits:report",
    "the # training losses of the pass added up": "training-sum:pass",
    "the # training losses since the last report added up": "training-sum:report",
    "the mean of the # training losses of the pass": "training-mean:pass",
    "the mean of the # training losses since the last report": "training-mean:report",
    "the mean of the training losses of the pass over # rows": "training-mean-by-rows:pass",
    "the mean of the training losses since the last report over # rows": "training-mean-by-rows:report",
    "# of # comparisons# though there are # rows: some fill up the last batch": "compared-twice",
    "hits divided by # as if all # batches had # rows": "as-if-whole",
    "hits divided by # the length of something else": "by-another-length",
    "hits divided by all # places# ignored ones among them": "by-all-places",
    "hits divided by the number of batches# # by #": "by-batches",
    "hits of all # evaluations# divided by the targets of one": "all-evaluations-by-one",
    "hits of the last batch alone# divided by all # targets": "last-batch-by-all",
    "hits without those of the last batch# # of #": "without-last-batch",
    "that of the last batch alone# # of its #": "last-batch",
    "that with what the model says and the targets in each other's place": "exchanged-r2",
    "the accuracies of # batches added up": "accuracies-added",
    "the mean of the absolute differences": "absolute",
    "the mean of the accuracies of # batches": "mean-of-accuracies",
    "the mean of the perplexities of # batches": "mean-of-perplexities",
    "the mean of the roots of # batches": "mean-of-roots",
    "the mean square# without its root": "without-root",
    "the root of the mean square": "with-root",
    "the macro average": "other-average(macro)",
    "the micro average": "other-average(micro)",
    "the weighted average": "other-average(weighted)",
}
"""Until 0.3, a number that a script reports came with the sentence that says by which formula, "#" in the place of each
number in it. Now the formula has a key that stays when the sentence is worded otherwise."""

OF_LOSSES = {
    "the mean over # targets": "mean",
    "the mean of the means of # batches": "mean-of-means",
    "the loss of the last batch alone": "last-batch-loss",
    "the batches' means# added up and divided by # targets": "means-by-targets",
    "the batches' means# added up and divided by # the length of something else": "means-by-another-length",
    "the sum over all targets# divided by # batches": "sum-by-batches",
    "the sum over all targets# divided by # the length of something else": "sum-by-another-length",
    "that of the evaluation before": "evaluation-before",
    "that of all # evaluations together": "all-evaluations",
}
"""Formulas of losses whose exponential is reported, too."""

OF_CLASSES = {
    "macro": "macro",
    "micro": "micro",
    "weighted": "weighted",
    "of class #": "class",
    "balanced over the classes": "balanced",
    "of all classes": "all-classes",
}

TAKEN_OTHERWISE = {
    "with the likeliest place in the place of the likeliest class": "wrong-axis",
    "with each label beside what the model says at its own place# and not before": "own-place",
    "with each label but the first beside what the model says at its own place": "own-place-but-first",
    "with a threshold of # on scores that are no probabilities": "threshold-of-probabilities",
}


def _sentences() -> Iterator[tuple[str, str]]:
    yield from SIMPLE.items()
    for sentence, key in OF_LOSSES.items():
        yield sentence, key
        yield f"the exponential of {sentence}", f"exponential({key})"
    for how, otherwise in TAKEN_OTHERWISE.items():
        yield f"# of # {how}", f"{otherwise}(share:hits)"
    for sentence, key in OF_CLASSES.items():
        behind = " " if sentence.endswith("#") else "# "  # a comma was taken for a part of the number before it
        yield sentence, key
        yield f"the precision# {sentence}", f"exchanged-precision({key})"
        yield f"the recall# {sentence}", f"exchanged-recall({key})"
        yield f"the mean of # batches' values# {sentence}", f"mean-of-values({key})"
        for how, otherwise in TAKEN_OTHERWISE.items():
            yield f"that {sentence}{behind}{how}", f"{otherwise}({key})"


FORMULAS = dict(_sentences())
"""Sentence of a formula as it was kept to the formula's key."""


def fact_today(key: str, value: object) -> object:
    """A fact of a baseline as it is kept today."""
    reported = ".reported." in key and key.endswith(".by_bits")
    return FORMULAS.get(value, value) if reported and isinstance(value, str) else value


LATER = ("data.columns_bits", "model.shapes", "model.names", "optimizer.shapes")
"""Section and last part of facts that baselines of 0.4.0 do not have."""


def not_kept(stored: Mapping[str, object], key: str) -> bool:
    """Whether a baseline lacks a fact only because it was recorded before facts of its kind were kept."""
    kind = _kind(key)
    return kind in LATER and not any(_kind(each) == kind for each in stored)


def _kind(key: str) -> str:
    parts = key.split(".")
    section = parts[1] if parts[0].startswith("loop") and len(parts) > 2 else parts[0]
    return f"{section}.{parts[-1]}" if ".group_" not in key else ""
