"""Facts of a page that can be wrong: a closed list, each with a few values by meaning, and never a size or a name.

:func:`judged` gives those of a line, such as ``evaluated rows: all of them trained on``. How many correct trainings
have each of them is counted by ``python -m scripts.usual``; :mod:`harness.describe.unusual` looks them up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from harness.describe.description import Line
from harness.describe.lines import BITS

Facts = Mapping[str, Any]

MOST, SOME = 0.9, 0.1
"""Shares from which on most of something is meant, and below which a few are."""

FALLEN = 0.01
"""Part of the largest learning rate below which it has come to an end."""

ODD_ORDERS = ("in order", "shuffled alike each time", "in several orders")
"""Orders of batches that are not simply shuffled; who draws with repetition means it."""

UNEVEN = 3.0
"""How many times as often one row may come as another before they come unevenly."""


def judged(line: Line) -> Iterator[str]:
    """The facts of a line that are on the list, in words; a line has one of each at most."""
    by = _BY_SECTION.get(line.section)
    if by is not None:
        facts = {key.rpartition(".")[2].removesuffix(BITS): value for key, value in line.facts.items()}
        name = next(iter(line.facts), "").removeprefix(f"{line.section}.").rpartition(".")[0]
        yield from by(name, facts)


def share(part: float, whole: float) -> str:
    """How much of a whole a part is, in a word."""
    if not part:
        return "none"
    if part >= whole:
        return "all"
    return "most" if part >= MOST * whole else "some" if part >= SOME * whole else "few"


def _data(name: str, facts: Facts) -> Iterator[str]:
    role = name.partition("#")[0].replace("_", " ")
    if name.startswith("unread"):
        yield "a DataLoader is never read"
    elif "passes" in facts:
        yield from _passes(role, facts)
    elif "times_each" in facts:
        least, most = facts["times_each"]
        yield f"training rows: come {'equally often' if least == most else _evenness(least, most)}"
        if facts.get("deviation") == 0:
            yield "training rows: all numbers are the same"
    elif "trained_on_too" in facts:
        yield f"evaluated rows: {share(facts['trained_on_too'], facts['different'])} of them trained on"
        if facts["rows"] > facts["different"] and facts["rows"] % facts["different"]:
            yield "evaluated rows: some come more often than others"
    elif "kept" in facts and not facts["kept"]:
        yield "a filter keeps no row"


def _evenness(least: int, most: int) -> str:
    if most <= least + 1:
        return "equally often, but for a last pass"
    return "unevenly" if most > UNEVEN * least else "nearly equally often"


def _passes(role: str, facts: Facts) -> Iterator[str]:
    what = {"train": "training", "evaluation": "evaluation"}.get(role, "other")
    order, rows = facts.get("order"), facts.get("rows") or 0
    if order and rows > 1:
        yield f"{what} batches: {order if order in ODD_ORDERS else 'shuffled'}"
    yield f"{what} passes: {share(facts['passes_to_the_end'], facts['passes'])} of them to the end"
    if facts.get("twice_in_a_pass"):
        yield f"{what} passes: give a row twice"
    if "rows_each_pass" in facts and facts.get("rows"):
        least, most = facts["rows_each_pass"]
        if most > facts["rows"]:
            yield f"{what} passes: more rows than the dataset has"
        yield f"{what} passes: give {share(least, facts['rows'])} of the rows"
    if facts.get("last_batch") == "dropped":
        yield f"{what} passes: the last batch is dropped"


def _taught(name: str, facts: Facts) -> Iterator[str]:
    yield f"tokens: {share(facts['taught'], facts['tokens'])} of them taught"
    yield f"tokens: {share(facts['padding'], facts['padding'] + facts['tokens'])} of all are padding"
    yield f"rows of tokens: {share(facts['rows_without'], facts['rows'])} of them without a target"
    yield f"rows of tokens: the last token of {share(facts['last_token'], facts['rows'])} of them taught"
    yield f"rows of tokens: the second token of {share(facts['second_token'], facts['rows'])} of them taught"


def _loss(name: str, facts: Facts) -> Iterator[str]:
    if "weight" in facts:
        yield f"a loss function: its value {_weight(facts['weight'])}"
    for key, what in (("ignored", "ignored"), ("weightless", "with a weight of 0")):
        part = facts.get(key, 0)
        word = share(part, facts.get("counted", 0) + part * (key == "ignored"))
        if part and word in ("most", "all"):
            yield f"a loss function: {word} targets {what}"
    if "classes" in facts:
        counts = list(facts["classes"].values())
        if len(counts) == 1:
            yield "a loss function: all targets of one class"
        elif max(counts) > MOST * sum(counts):
            yield "a loss function: nearly all targets of one class"
    if "share_of_the_mean" in facts:
        part = facts["share_of_the_mean"]
        size = "negative" if part < 0 else "the mean" if abs(part - 1) < 1e-3 else "less" if part < 1 else "more"
        yield f"what is differentiated, beside the mean over the targets: {size}"
    if facts.get("unknown"):
        yield "what is differentiated comes from no loss function that is known"
    if facts.get("not_finite"):
        yield "a loss that is not finite"


def _weight(weight: Any) -> str:
    if weight is None:
        return "is never differentiated"
    if weight == "varies":
        return "is weighed otherwise each time"
    if weight == 0:
        return "is weighed by 0"
    return "is subtracted" if weight < 0 else "is differentiated" if weight == 1 else "is weighed"


def _model(name: str, facts: Facts) -> Iterator[str]:
    if facts.get("unchanged") and facts["unchanged"] != "not known":
        yield "trainable tensors that never change"
    if facts.get("frozen_changed"):
        yield "frozen tensors that change"
    if facts.get("changed_between"):
        yield "tensors that something else than an optimizer changes"
    if facts.get("in_no_optimizer"):
        yield "a model that is differentiated and in no optimizer"
    if "mode" in facts:
        active, sensitive = facts.get("active"), facts.get("dropout_and_norms", 0)
        yield f"trained in {' and '.join(facts['mode'])} mode{'' if sensitive else ', which changes nothing in it'}"
        if sensitive and active:
            yield f"trained with dropout or batch statistics active in {share(min(active), sensitive)} of its modules"
            if len(active) > 1:
                yield "trained with a changing number of active modules"
    elif "modes" in facts:
        yield f"a model that is never trained, in {'train' if 'train' in facts['modes'] else 'eval'} mode"
    if facts.get("absent"):
        yield "an adapter with targets that no module has"
    if facts.get("modules") == 0:
        yield "an adapter in no module"
    if "shares" in facts and not facts["shares"]:
        yield "a copy of a trained network that drifts from it"


def _loaded(name: str, facts: Facts) -> Iterator[str]:
    missing = share(facts["missing"], facts["missing"] + facts["entries"] - facts["unexpected"])
    if missing in ("most", "all"):
        yield f"a loaded state that lacks {missing} of what it goes into"
    unexpected = share(facts["unexpected"], facts["entries"])
    if unexpected in ("most", "all"):
        yield f"a loaded state, {unexpected} of it without a place"
    if facts["after"][0]:
        yield "a state is loaded in the middle of the training"


def _optimizer(name: str, facts: Facts) -> Iterator[str]:
    if facts.get("in_none"):
        yield "trainable tensors in no optimizer"
    if "lr" in facts and facts["lr"] is not None and not 0 < facts["lr"] < 1:
        yield f"a learning rate {'of 1 or more' if facts['lr'] >= 1 else 'of 0' if not facts['lr'] else 'below 0'}"
    if facts.get("weight_decay", 0) < 0 or facts.get("weight_decay", 0) >= 1:
        yield "a weight decay that is negative, or 1 or more"
    if facts.get("maximize"):
        yield "an optimizer that maximizes"


def _schedule(name: str, facts: Facts) -> Iterator[str]:
    first, last, peak = facts["first"], facts["last"], facts["largest"]
    course = facts.get("course") or []
    by = "a scheduler" if facts["by"] else "the script"
    if facts.get("times") == 0:
        yield "a scheduler that is never stepped"
    if min([first, last, *course]) < 0:
        yield "a learning rate that becomes negative"
    if first == last == peak and by == "a scheduler" and facts.get("times"):
        yield "a learning rate that stays, under a scheduler that is stepped"
    elif first != last or peak != first:
        yield f"the learning rate ends {_end(last, peak)}"
        yield f"the learning rate begins {_end(first, peak)}"
    turns = [later - earlier for earlier, later in pairwise(course)]
    fell = next((place for place, turn in enumerate(turns) if turn < 0), None)
    if fell is not None and any(turn > SOME for turn in turns[fell:]):
        yield "a learning rate that rises again"
    if any(turn < -0.5 for turn in turns[:-1]) and by == "a scheduler":
        yield "a learning rate that falls at once"
    if "groups" in facts:
        moving = [one != other for one, other in facts["groups"].values()]
        yield f"groups whose learning rates {'go apart' if all(moving) else 'move in some alone'}"


def _end(rate: float, peak: float) -> str:
    if rate == peak:
        return "at its largest"
    return "below 0" if rate < 0 else "at 0" if not rate else "close to 0" if rate < FALLEN * peak else "above 0"


def _update(name: str, facts: Facts) -> Iterator[str]:
    steps, passes = facts["steps"], facts["backward_passes"]
    for what, words in (("stale", "with gradients of an earlier one"), ("empty", "without a gradient")):
        if facts[what]:
            yield f"updates {words}: {share(facts[what], steps)}"
    if facts.get("cleared_unused"):
        used = sum(int(number) * times for number, times in passes.items())
        how = "move weights and are then cleared" if facts["moved_before_cleared"] else "are cleared unused"
        yield f"gradients that {how}: {share(facts['cleared_unused'], facts['cleared_unused'] + used)}"
    if len(passes) > 1 and not facts["closures"]:
        yield f"updates of a changing number of backward passes{', often' * (min(passes.values()) > 1)}"
    if facts["without_gradient"]:
        yield "trainable tensors that never have a gradient other than 0"
    if facts["skipped"]:
        yield f"updates left out by a GradScaler: {share(facts['skipped'], facts['skipped'] + steps)}"
    if facts["clipped_scaled"] or "carried" in facts["scale"]:
        yield "gradients that have a GradScaler's factor where they are used"
    if facts["state_lost"]:
        yield "steps that lose the optimizer's state"
    yield from _clipped(facts)


def _clipped(facts: Facts) -> Iterator[str]:
    ways = {how.partition(" to ")[0] for how in facts["clipped"]}
    if len(ways) > 1:
        yield "gradients clipped in some updates alone"
    yield from (f"gradients: {way}" for way in ("values clipped", "norm clipped") if way in ways)
    limits = [float(how.partition(" to ")[2] or 1) for how in facts["clipped"]]
    if not all(0 < limit < math.inf for limit in limits):
        yield "gradients clipped to 0, or to no limit"
    if max(facts["clips"], default=0) > 1:
        yield "gradients clipped several times for an update"


def _evaluation(name: str, facts: Facts) -> Iterator[str]:
    modes, active = facts["modes"], facts["active"]
    noisy = ", with dropout or batch statistics active" if any(active) else ""
    graph = "with a graph" if facts["graph"] == "with a graph" else "without gradients"
    yield f"an evaluation in {'train' if 'train' in modes else 'eval'} mode{noisy}, {graph}"
    if facts["after_updates"][1] == 0:
        yield "an evaluation before the training alone"


def _metric(name: str, facts: Facts) -> Iterator[str]:
    if "references" in facts and len(facts["references"]) == 1:
        yield "a metric whose labels are all of one class"
    if name.startswith("by_hand.every_pair"):
        yield "each number compared with each of the other"
    if "by" in facts:
        yield "a reported number that is known" if facts["by"] != "unknown" else "a reported number that is not known"
    if facts.get("different_scores") in (1, 2) or (facts.get("options") or {}).get("different_scores") in (1, 2):
        yield "a ranking of one or two different scores"


def _saved(name: str, facts: Facts) -> Iterator[str]:
    if facts.get("untouched"):
        yield "saved weights that the training began with"
    elif facts.get("current") is False:
        yield "saved weights that the model does not have then"
    if "again" in facts and "same" not in facts["again"]:
        yield "a saved model that gives other answers when it is loaded again"
    if facts.get("other_than_evaluated"):
        yield "no saved state has the weights that were evaluated last"


_BY_SECTION: Mapping[str, Any] = {
    "data": _data,
    "taught": _taught,
    "loss": _loss,
    "model": _model,
    "loaded": _loaded,
    "optimizer": _optimizer,
    "schedule": _schedule,
    "update": _update,
    "evaluation": _evaluation,
    "metric": _metric,
    "saved": _saved,
}
