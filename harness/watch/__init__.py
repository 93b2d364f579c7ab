"""Watch a training loop and name the silent bug in it.

    from harness.watch import watch

    with watch():
        train(model, loader, optimizer)

At the end of the block a :class:`SilentBug` says what was found. ``harness check train.py`` does the same for a whole
script, which stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.findings import Finding

if TYPE_CHECKING:
    from harness.watch.observer import Observer


CONSEQUENCES = {
    "effect::optimizer-kept": (
        "schedule::drives-the-optimizer",
        "schedule::lr-above-zero",
        "effect::parameters-change",
    ),
    "effect::updates-are-kept": ("effect::only-the-optimizer-writes",),
    "effect::parameters-change": ("gradients::not-lost", "identity::nothing-forgotten"),
    "effect::frozen-stay": ("effect::only-the-optimizer-writes",),
    "identity::state-was-loaded": ("saved::resumed-where-it-stopped", "saved::is-what-was-trained"),
    "identity::nothing-forgotten": ("schedule::lr-above-zero",),
    "rows::every-row-once": ("schedule::may-end-early", "schedule::ends-with-the-training"),
    "inputs::labels": ("loss::finite", "loss::varies", "gradients::reach-the-parameters"),
    "inputs::padding-is-masked": ("padding::does-not-matter",),
    "loss::finite": ("mode::evaluation-repeats", "loss::of-raw-logits", "gradients::reach-the-parameters"),
    "loss::varies": ("gradients::reach-the-parameters",),
    "saved::resumed-where-it-stopped": (
        "schedule::ends-with-the-training",
        "schedule::may-end-early",
        "saved::is-what-was-trained",
    ),
    "update::descends": ("gradients::accumulation-scaled",),
}
"""What follows from a finding, and would say the same bug twice."""


class SilentBug(AssertionError):
    """A watched loop does something that no right training loop does; the message names it."""


@contextmanager
def watch(*, ignore: Collection[str] = (), every: int = 50, raise_errors: bool = True) -> Iterator[Observer]:
    """Watch the training that happens in the block.

    Args:
        ignore: ids of checks that are not wanted.
        every: look at the tensors of the first updates, and of one in so many from then on.
        raise_errors: whether errors end the block with :class:`SilentBug`; warnings never do. The findings are in
            ``findings`` of what the block gets.

    Raises:
        SilentBug: something was found that is an error.
        CannotTry: ``ignore`` names a check that does not exist.
    """
    from harness.watch.hooks import looking
    from harness.watch.invariants import INVARIANTS, known
    from harness.watch.observer import Observer

    known(ignore)
    observer = Observer(INVARIANTS, every=every)
    try:
        with looking(observer):
            yield observer
    except BaseException as error:
        observer.complete = False
        observer.ends()
        for finding in wanted(observer, ignore):
            error.add_note("\n".join(finding.lines()))
        raise
    observer.ends()
    errors = [finding for finding in wanted(observer, ignore) if finding.severity == "error"]
    if errors and raise_errors:
        raise SilentBug("\n".join(line for finding in errors for line in ("", *finding.lines())))


def wanted(observer: Observer, ignore: Collection[str]) -> list[Finding]:
    """The findings, errors first, in the order of the updates."""
    explained = {effect for cause in observer.findings for effect in CONSEQUENCES.get(cause, ())}
    found = [each for each in observer.findings.values() if each.check not in ignore and each.check not in explained]
    return sorted(found, key=lambda finding: (finding.severity, finding.update or 0))
