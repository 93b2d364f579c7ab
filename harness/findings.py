"""Finding and Check: the two words that everything else speaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from harness.errors import CannotTry

Severity = Literal["error", "warning"]
Outcome = Literal["holds", "fails", "not applicable"]

Observed = TypeVar("Observed")
"""What a check looks at: a run of the documented stages, or the trace of somebody's loop."""


class NotApplicable(Exception):
    """Raised by a check that has nothing to say about this run; its message is the reason."""


@dataclass(frozen=True)
class Finding:
    """Something that should hold and does not.

    A check yields findings with what it saw; the check's own id, severity and sentence are filled in when it is run.
    """

    expected: str
    observed: str
    hint: str
    """What to do about it."""
    where: str | None = None
    """FILE:LINE, or the place in the data."""
    update: int | None = None
    """The number of the update, counted from 1, where the finding is about one."""
    check: str = ""
    severity: Severity = "error"
    message: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class CheckResult:
    """How one check came out. ``reason`` says why it is not applicable."""

    check: str
    claim: str
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    reason: str | None = None

    @property
    def failed(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)


@dataclass(frozen=True)
class Check(Generic[Observed]):
    """A named statement that must hold.

    ``claim`` is the id of the claim or invariant that it stands for. The mutant that proves that it can fail carries
    the check's id (tests/mutants).
    """

    id: str
    claim: str
    statement: str
    function: Callable[[Observed], Iterator[Finding]]
    severity: Severity = "error"
    otherwise: str | None = None
    """The invariant that it stands for where the claim does not apply."""

    def __call__(self, observed: Observed) -> CheckResult:
        """Look, and say how it came out. A check that itself crashes has found something; it never passes."""
        try:
            found = list(self.function(observed))
        except NotApplicable as reason:
            return CheckResult(self.id, self.claim, "not applicable", reason=str(reason))
        except CannotTry:
            raise
        except Exception as error:
            found = [
                Finding(
                    expected="something that can be checked",
                    observed=f"{type(error).__name__}: {error}",
                    hint="The step left something behind that this check cannot read; compare it with the document's.",
                )
            ]
        findings = tuple(
            replace(
                finding,
                check=self.id,
                severity=self.severity,
                message=finding.message or self.statement,
            )
            for finding in found
        )
        return CheckResult(self.id, self.claim, "fails" if findings else "holds", findings)

    def not_applicable(self, reason: str) -> CheckResult:
        return CheckResult(self.id, self.claim, "not applicable", reason=reason)
