"""One test for each example and edited script of a check's folder: ``pytest tests/checks/gradients/not-cleared``.

Its two examples guard every change, beside the facts that are made by hand; what else is in it is nightly.

What guards every change is run in one fork for a family, one after another. What is nightly, and there those examples
once more, runs in a fork of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from scripts.detection import KINDS, found_in, line_of
from scripts.record_pages import DETECTION
from tests.checks.corpus import Case, all_cases, cases_of
from tests.rings import TOGETHER
from tests.server import Verdict, server_of
from tests.versions import installed


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name == "corpus.toml":
        collected: pytest.Collector = CheckFolder.from_parent(parent, path=file_path)
        return collected
    return None


@cache
def foreign() -> bool:
    """Whether the installed versions are others than those of the records."""
    return any(case.needed or not installed(*case.on) for case in all_cases())


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """The entries of detection.json by script; none on other versions than those of the record."""
    if foreign():
        return {}
    kept = json.loads(DETECTION.read_text(encoding="utf-8"))
    return {entry["name"]: entry for entries in ("mutants", "variants", "unseen") for entry in kept[entries]}


class CheckFolder(pytest.File):
    """The folder of a check."""

    def collect(self) -> Iterable[pytest.Item]:
        family = self.path.parent.parent.name
        for case in cases_of(self.path.parent):
            together = case.guards and case.processes == 1 and not case.environment
            item = CaseItem.from_parent(self, name=case.name, case=case, together=family if together else "")
            if not case.guards:
                item.add_marker("nightly")
            elif not together:
                item.add_marker("slow")
            if case.processes > 1:
                item.add_marker("distributed")
            yield item
            if together:
                alone = CaseItem.from_parent(self, name=f"{case.name}-alone", case=case)
                alone.add_marker("nightly")
                yield alone


class CaseItem(pytest.Item):
    """One script is watched, and what is found is what must be."""

    def __init__(self, *, case: Case, together: str = "", **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.case, self.together = case, together
        if together:
            self.stash[TOGETHER] = together

    def runtest(self) -> None:
        case = self.case
        if case.needed:
            pytest.skip(f"needs {' or '.join(case.needed)}")
        must_be_as_said(case, server_of(self.config).watch(case, together=self.together))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.case.check}: {self.name}"


def must_be_as_said(case: Case, verdict: Verdict) -> None:
    """A bug is found by its check, in a line of its script, and by others only below it; nothing in what is right."""
    __tracebackhide__ = True
    assert verdict.crashed is None, verdict.crashed
    assert verdict.not_looked_at == [], "a check itself crashed"
    kept = recorded().get(case.name) if case.kind in KINDS else None
    if kept is not None:  # a new one is recorded by scripts.detection
        assert (found_in(verdict), verdict.updates) == (kept["found"], kept["updates"])
    if case.is_bug:
        if kept is not None or case.also:
            assert verdict.checks == [case.check, *case.also]
        alone = [finding for finding in verdict.findings if finding["explained_by"] is None]
        assert {finding["check"] for finding in alone} == {case.check}
        assert all(finding["where"].startswith(f"{case.script}:") for finding in verdict.findings)
        if case.marked:
            assert tuple(line_of(finding["where"]) for finding in alone) == case.marked
    else:  # a bug that is none on these versions, too
        assert verdict.checks == list(case.warns)
        assert all(finding["severity"] == "warning" for finding in verdict.findings)
    if case.name == "good.py":  # what is right may be so because it lacks what the check looks at
        assert case.check in verdict.held, "it had nothing to look at"
