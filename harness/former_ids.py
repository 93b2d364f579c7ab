"""Ids that faults have had, with those that they have now: they work for good in options, settings and comments."""

from __future__ import annotations

from functools import cache

FORMER_IDS: dict[str, dict[str, tuple[str, ...]]] = {
    "0.2.0": {
        "another computation": ("compare::computation",),
        "another kernel or precision": ("compare::kernel-or-precision",),
        "data order": ("compare::data-order",),
        "effect::frozen-stay": ("parameters::frozen-changed",),
        "effect::only-the-optimizer-writes": ("parameters::modified-outside-optimizer",),
        "effect::optimizer-kept": ("optimizer::made-again",),
        "effect::parameters-change": ("parameters::unchanged",),
        "effect::updates-are-kept": ("parameters::reset",),
        "gradients::accumulation-scaled": ("gradients::accumulation-unscaled",),
        "gradients::cleared-between-updates": ("gradients::not-cleared",),
        "gradients::clipped-in-time": ("gradients::misplaced-clipping",),
        "gradients::misplaced-clipping": (
            "gradients::clipped-in-part",
            "gradients::clipped-while-scaled",
            "gradients::clips-nothing",
        ),
        "gradients::not-lost": ("gradients::lost",),
        "gradients::reach-the-parameters": ("gradients::cut-off",),
        "gradients::wrong-scale": (
            "gradients::not-scaled",
            "gradients::not-unscaled",
        ),
        "groups::decay-exempt-as-meant": ("groups::decay-not-exempt",),
        "groups::known-keys": ("groups::unknown-key",),
        "groups::no-duplicates": ("groups::duplicate-parameters",),
        "hyper-parameter": ("compare::hyper-parameter",),
        "identity::nothing-forgotten": ("optimizer::missing-parameters",),
        "identity::optimizer-holds-the-model": ("optimizer::holds-another-model",),
        "identity::state-was-loaded": ("weights::state-not-loaded",),
        "initialisation": ("compare::initialisation",),
        "inputs::both-sentences": ("inputs::sentence-missing",),
        "inputs::labels": ("inputs::wrong-labels",),
        "inputs::next-token-visible": ("inputs::labels-not-shifted",),
        "inputs::not-cut-off": ("inputs::truncated",),
        "inputs::padding-is-masked": ("inputs::wrong-attention-mask",),
        "inputs::segment-ids": ("inputs::wrong-segment-ids",),
        "inputs::wrong-labels": (
            "inputs::classes-as-numbers",
            "inputs::one-class",
            "inputs::wrong-masked-labels",
        ),
        "loss::finite": ("loss::not-finite",),
        "loss::of-another-batch": (
            "loss::differentiated-again",
            "loss::of-earlier-forward",
            "loss::of-some-rows",
        ),
        "loss::of-raw-logits": ("loss::not-raw-logits",),
        "loss::of-the-batch": ("loss::of-another-batch",),
        "loss::shapes-agree": ("loss::broadcast",),
        "loss::varies": ("loss::constant",),
        "memory::graphs-are-freed": ("memory::graphs-kept",),
        "metrics::aligned": ("metrics::misaligned",),
        "metrics::every-row": ("metrics::rows-missing-or-repeated",),
        "metrics::of-the-predictions": ("metrics::wrong-predictions",),
        "metrics::tells-apart": ("metrics::micro-f1-is-accuracy",),
        "mode::evaluation-in-eval-mode": ("mode::evaluation-in-train-mode",),
        "mode::evaluation-repeats": ("model::nondeterministic-eval",),
        "mode::evaluation-without-graph": ("mode::evaluation-with-graph",),
        "mode::training-in-train-mode": ("mode::training-in-eval-mode",),
        "optimizer::made-again": ("optimizer::state-emptied",),
        "optimizer::missing-parameters": (
            "gradients::clipped-with-unused",
            "parameters::not-registered",
        ),
        "padding::does-not-matter": ("model::output-depends-on-padding",),
        "padding::neighbours-do-not-matter": ("model::output-depends-on-batch",),
        "parameters::frozen-changed": ("parameters::freezes-nothing",),
        "parameters::unchanged": (
            "optimizer::holds-only-frozen",
            "optimizer::never-made",
            "optimizer::never-steps",
        ),
        "random state": ("compare::random-state",),
        "ranks::as-many-as-asked": ("ranks::fewer-than-asked",),
        "ranks::rows-of-its-own": ("ranks::rows-shared",),
        "ranks::same-weights": ("ranks::weights-differ",),
        "rows::another-order-each-epoch": ("rows::same-order-each-epoch",),
        "rows::complete-epochs": ("rows::epoch-cut-short",),
        "rows::evaluation-rows-unseen": ("rows::evaluated-on-training-rows",),
        "rows::every-evaluation-row-once": ("rows::evaluation-incomplete",),
        "rows::every-row-once": ("rows::repeated-or-skipped",),
        "rows::labels-of-their-rows": ("rows::labels-of-other-rows",),
        "rows::repeated-or-skipped": (
            "rows::first-batch-again",
            "rows::given-by-each-worker",
            "rows::rest-never-reached",
            "rows::skipped-in-each-epoch",
            "rows::weights-of-classes",
        ),
        "saved::best-is-best": ("saved::best-is-worst",),
        "saved::is-what-was-trained": ("saved::not-what-was-trained",),
        "saved::not-what-was-trained": (
            "model::evaluated-untrained",
            "saved::before-training",
            "saved::without-adapter",
        ),
        "saved::resumed-where-it-stopped": ("saved::resumed-incompletely",),
        "schedule::after-the-update": ("schedule::stepped-before-update",),
        "schedule::drives-the-optimizer": ("schedule::drives-another-optimizer",),
        "schedule::ends-with-the-training": ("schedule::wrong-length",),
        "schedule::lr-above-zero": ("schedule::lr-zero",),
        "schedule::lr-zero": (
            "schedule::decays-too-fast",
            "schedule::rates-for-factors",
        ),
        "schedule::may-end-early": ("schedule::may-be-too-long",),
        "schedule::stepped-in-wrong-unit": ("schedule::never-stepped",),
        "schedule::steps-with-the-updates": ("schedule::stepped-in-wrong-unit",),
        "schedule::warmup-ends": ("schedule::warmup-never-ends",),
        "update::as-the-optimizer-defines": ("update::not-as-defined",),
        "update::ascends": ("optimizer::maximizes",),
        "update::descends": ("update::ascends",),
        "update::not-rounded-away": ("update::rounded-away",),
        "weights::backbone-from-checkpoint": ("weights::backbone-not-from-checkpoint",),
        "weights::backbone-not-from-checkpoint": ("weights::initialised-again",),
        "weights::not-from-scratch": ("weights::from-scratch",),
        "weights::state-not-loaded": (
            "weights::loaded-into-another",
            "weights::state-kept-without-copy",
        ),
    },
    "0.3.0": {
        "loss::weights-of-other-classes": ("loss::weights-for-frequent-classes",),
        "parameters::adapter-untrained": ("parameters::adapter-frozen",),
    },
}
"""Version to the ids that it replaced, each with those that came in its place; an id that is still that of a fault was
parted, and stands for all parts."""


@cache
def formerly(fault: str) -> tuple[str, ...]:
    """The ids that a fault has had, or those of what it was a part of, the last one first."""
    found = [fault]
    for name in found:  # it grows by what those were called before
        found += [old for old in _replaced_by(name) if old not in found]
    return tuple(found[1:])


def _replaced_by(name: str) -> list[str]:
    return [old for ids in FORMER_IDS.values() for old, new in ids.items() if name in new]
