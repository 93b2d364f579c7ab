"""Watch a training loop and name the silent bug in it.

    from harness.watch import watch

    with watch():
        train(model, loader, optimizer)

At the end of the block a :class:`SilentBug` says what was found. ``harness check train.py`` does the same for a whole
script, which stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.errors import CannotTry
from harness.findings import Finding, below_their_causes, errors_of, lines_apart

if TYPE_CHECKING:
    from types import TracebackType

    from harness.watch.monitor import Monitor
    from harness.watch.session import Session
    from harness.watch.teaching import TaughtReport


class SilentBug(AssertionError):
    """A watched loop does something that no right training loop does; the message names it."""


class _Watched(ContextDecorator):
    """What raises at the end of the block is raised at the user's line, with no line of ours below it."""

    def __init__(self, watching: Callable[[], AbstractContextManager[Session]]) -> None:
        self._watching, self._now = watching, watching()

    def _recreate_cm(self) -> _Watched:
        return _Watched(self._watching)  # for each call of a decorated function

    def __enter__(self) -> Session:
        __tracebackhide__ = True  # pytest leaves this frame out
        try:
            return self._now.__enter__()
        except CannotTry as error:
            raise error.with_traceback(None) from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        __tracebackhide__ = True
        try:
            return self._now.__exit__(kind, error, traceback)
        except (SilentBug, CannotTry) as found:
            if found is error:
                raise
            raise found.with_traceback(None) from None


def watch(
    *,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    every: int = 50,
    raise_errors: bool = True,
    must_train: bool = True,
) -> _Watched:
    """Watch the training that happens in the block.

    Args:
        select: run these checks only: ids, or families such as ``gradients``.
        ignore: checks that are not wanted, by id or family.
        every: look at the tensors of the first updates, and of each N-th from then on.
        raise_errors: whether errors end the block with :class:`SilentBug`; warnings never do. The findings are in
            ``findings`` of what the block gets.
        must_train: whether a block in which no optimizer makes a step is an error, because nothing was looked at.

    Raises:
        SilentBug: something was found that is an error.
        CannotTry: ``select`` or ``ignore`` names a check that does not exist; nothing was trained in the block; or
            nothing was found, and a check or the watch itself crashed: nothing can be said of what it looks for.
    """
    return _Watched(lambda: _watching(select, ignore, every, raise_errors, must_train))


def taught(*, rows: int = 4) -> AbstractContextManager[TaughtReport]:
    """See which tokens the training in the block teaches, as the model is given them::

        with taught() as seen:
            trainer.train()

        assert "Paris" in seen.rows[0].taught
        assert "capital of France" not in seen.rows[0].taught

    ``harness tokens train.py`` does the same for a whole script.

    Args:
        rows: how many rows are kept, the first ones.

    Raises:
        CannotTry: no model in the block was given labels of tokens, or gave logits to a loss that is watched.
    """
    from harness.watch import teaching

    return teaching.taught(rows=rows)


@contextmanager
def _watching(
    select: Collection[str], ignore: Collection[str], every: int, raise_errors: bool, must_train: bool
) -> Iterator[Session]:
    from harness.settings import wanted
    from harness.watch.instrument import instrumented
    from harness.watch.locate import Locator
    from harness.watch.monitor import Options
    from harness.watch.session import Session

    chosen = wanted(None, select, ignore)
    session = Session(Options(checks=checks_of(chosen.selected), every=every), Locator())
    session.reported = partial(reported, ignored=chosen.ignored)
    try:
        with instrumented(session):
            yield session
    except BaseException as error:
        for monitor in session.monitors:
            monitor.cut_short()
        session.ends()
        for finding in reported(session.all_findings, chosen.ignored):
            error.add_note("\n".join(finding.lines()))
        raise
    if session.closed:
        return  # in a process that the block forked
    session.ends()
    errors = errors_of(reported(session.all_findings, chosen.ignored))
    if errors and raise_errors:
        raise SilentBug("\n".join([headline(errors), *lines_apart(errors)]))
    if must_train and not session.trained and not session.findings and session.broken is None:
        raise CannotTry(
            "no optimizer made a step in the watched block, so nothing was checked; train in it, or use "
            "watch(must_train=False)"
        )
    if session.crashed and raise_errors:
        raise CannotTry("; ".join(f"{checks}: {why}" for checks, why in by_reason(session.crashed)))


def headline(errors: Collection[Finding]) -> str:
    """What was found and where, in one line: pytest's summary shows no more."""
    first, *others = errors
    place = ", ".join(filter(None, (first.where, f"update {first.update}" if first.update is not None else None)))
    more = f", and {len(others)} more" if others else ""
    return f"{first.check} at {place}{more}" if place else f"{first.check}{more}"


def together(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Checks by their reasons, given these by their ids."""
    found: dict[str, list[str]] = {}
    for check, why in reasons.items():
        found.setdefault(why, []).append(check)
    return found


def by_reason(crashed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Checks that could not look, given with why by their ids: those of one reason together, as words."""
    for why, checks in together(crashed).items():
        yield checks[0] if len(checks) == 1 else f"{len(checks)} checks", why


def checks_of(ids: Iterable[str]) -> tuple[Callable[[Monitor], Any], ...]:
    """The classes of the checks with these ids."""
    from harness import catalogue

    return tuple(check for name, check in catalogue.checks().items() if name in set(ids))


def reported(findings: Sequence[Finding], ignored: Collection[str]) -> list[Finding]:
    """The findings that are wanted, errors first, in the order of the updates; each behind the one that explains it.

    Those that a comment in the user's code ignores are not wanted either. What is not wanted explains nothing.
    """
    from harness import catalogue
    from harness.settings import is_ignored_by_comment

    found = [each for each in findings if each.check not in ignored and not is_ignored_by_comment(each)]
    return below_their_causes(found, {name: check.explains for name, check in catalogue.checks().items()})
