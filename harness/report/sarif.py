"""Findings as SARIF 2.1.0 (OASIS), which code scanning and editors read.

A log has one run of one tool; its rules are those that found something. Files are named from the working directory.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from harness import __version__, catalogue
from harness.findings import PLACE, Finding, Severity

if TYPE_CHECKING:
    from harness.matrix import Change
    from harness.record import BlockRecord, DocumentsRecord, RunRecord
    from harness.watch.script import CheckReport
    from harness.watch.scripts import ScriptsReport

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE = "%SRCROOT%"
"""The working directory, as code scanning calls what files are named from."""
FINGERPRINT = "findingHash/v1"
"""Another number where the same finding gets another hash."""


@dataclass(frozen=True)
class Rule:
    """What can be found; texts are Markdown that reads as plain text too."""

    id: str
    severity: Severity
    statement: str
    why: str = ""
    remedy: str = ""

    def as_dict(self) -> dict[str, Any]:
        texts = {"shortDescription": self.statement, "fullDescription": self.why}
        told: dict[str, Any] = {name: _text(text) for name, text in texts.items() if text}
        if self.remedy:
            told["help"] = _text(self.remedy) | {"markdown": _escaped(self.remedy)}
        return {"id": self.id} | told | {"defaultConfiguration": {"level": self.severity}}


@dataclass(frozen=True)
class SarifResult:
    """One thing that was found; without a file it has no location."""

    rule: Rule
    severity: Severity
    text: str
    file: str | None = None
    line: int | None = None
    same: str = ""
    """Tells it from others of its rule and file; the line's number, which shifts, does not."""


@dataclass(frozen=True)
class Notification:
    """What kept the tool from looking (an error), or what it could not decide (a note)."""

    level: str
    text: str
    rule: Rule | None = None

    def as_dict(self) -> dict[str, Any]:
        about = {"associatedRule": {"id": self.rule.id}} if self.rule else {}
        return {"level": self.level, "message": _text(self.text)} | about


DOCUMENTS: Mapping[str, Rule] = {
    "fails": Rule("documents::fails", "error", "A block of a document fails as printed."),
    "deprecated": Rule("documents::deprecated", "warning", "A block of a document is deprecated."),
}
MATRIX = Rule("matrix::changed", "warning", "What is found on these versions is not what was recorded of them.")


def of_check(report: CheckReport) -> dict[str, Any]:
    """Of ``harness check SCRIPT``."""
    return _log(f"check {report.script}", _of_findings(report.findings), [_of_script(report)])


def of_checks(report: ScriptsReport) -> dict[str, Any]:
    """Of ``harness check`` for several scripts: one invocation each."""
    invocations = [
        _of_script(each.report) if each.report else [Notification("error", f"{each.script}: {each.error}")]
        for each in report.scripts
    ]
    return _log("check", _of_findings(report.findings), invocations)


def of_run(record: RunRecord) -> dict[str, Any]:
    """Of ``harness run``."""
    ended = [Notification("error", "The run was interrupted.")] if record.interrupted else []
    return _log("run", _of_findings(record.all_findings), [ended])


def of_documents(record: DocumentsRecord, paths: Mapping[str, Path]) -> dict[str, Any]:
    """Of ``harness documents``; ``paths`` are those of the record's files."""
    results = [_of_block(each, paths[each.file]) for each in record.blocks if each.outcome in DOCUMENTS]
    ended = [Notification("error", "Not all documents were run: interrupted.")] if record.interrupted else []
    return _log("documents", results, [ended])


def of_changes(changes: Iterable[Change]) -> dict[str, Any]:
    """Of ``harness matrix``: the cells that are not what was recorded, which have no place."""
    results = []
    for change in changes:
        now = f"{change.now.outcome} {change.now.value or ''}".strip() if change.now else "gone"
        text = f"{change.row.title} on {change.column}: was {change.before.outcome}, is {now}"
        results.append(SarifResult(MATRIX, "warning", text, same=f"{change.row.key} {change.column}"))
    return _log("matrix", results, [[]])


def _of_block(block: BlockRecord, path: Path) -> SarifResult:
    rule = DOCUMENTS[block.outcome]
    text = f"{block.label}: {block.says}"
    text += f"\nwrite {block.replacement} ({block.source})" if block.replacement else ""
    return SarifResult(rule, rule.severity, text, str(path), block.line, block.key)


def _of_findings(findings: Iterable[Finding]) -> list[SarifResult]:
    return [_of_finding(each) for each in findings]


def _of_finding(finding: Finding) -> SarifResult:
    text = f"expected {finding.expected}; observed {finding.observed}\n{finding.hint}"
    text = f"{finding.message}\n{text}" if finding.message else text
    place = PLACE.match(finding.where or "")
    if place is None:
        return SarifResult(_rule_of(finding.check, finding), finding.severity, text)
    file, line = place["file"], int(place["line"])
    return SarifResult(_rule_of(finding.check, finding), finding.severity, text, file, line, _source(file, line))


def _of_script(report: CheckReport) -> list[Notification]:
    """What is not a finding, and says how far the verdict goes."""
    told = [Notification("error", report.crashed)] if report.crashed is not None else []
    told += [
        Notification("error", f"not judged: {each.check}: {each.why}", _rule_of(each.check))
        for each in report.not_looked_at
    ]
    return told + [Notification("note", note) for note in report.notes]


def _rule_of(check: str, finding: Finding | None = None) -> Rule:
    """A fault's page as a rule; of a check of the documented run what its finding says of it."""
    if check not in catalogue.faults():
        severity = finding.severity if finding else "error"
        return Rule(check, severity, finding.message if finding else "")
    (page,) = catalogue.explain([check])
    remedy = f"{page['remedy']}\n\nWhen it is right: {page['right_when']}"
    return Rule(check, page["severity"], page["statement"], page["why"], remedy)


def _source(file: str, line: int) -> str:
    """A line without its place and indentation; a file's first line stands for the file where no line is at fault."""
    linecache.checkcache(file)
    return linecache.getline(file, line).strip() if line > 1 else ""


def _log(about: str, results: Sequence[SarifResult], invocations: Sequence[Sequence[Notification]]) -> dict[str, Any]:
    """A log of one run; each invocation with what kept it from looking."""
    found = [each.rule for each in results]
    named = [each.rule for told in invocations for each in told if each.rule]
    rules = {rule.id: rule for rule in (*found, *named)}
    here = f"{Path.cwd().as_uri().rstrip('/')}/"
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "full-training-harness",
                "version": __version__,
                "rules": [rule.as_dict() for rule in rules.values()],
            }
        },
        "automationDetails": {"id": f"harness {about}/"},
        "originalUriBaseIds": {BASE: {"uri": here, "description": {"text": "The working directory."}}},
        "invocations": [_invocation(told) for told in invocations],
        "results": list(_results(results, list(rules))),
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _invocation(told: Sequence[Notification]) -> dict[str, Any]:
    complete = all(each.level != "error" for each in told)
    return {"executionSuccessful": complete, "toolExecutionNotifications": [each.as_dict() for each in told]}


def _results(results: Iterable[SarifResult], rules: Sequence[str]) -> Iterator[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for each in results:
        artifact = _artifact(each.file) if each.file else {}
        hashed = _hash(each.rule.id, artifact.get("uri", ""), each.same)
        seen[hashed] += 1
        told: dict[str, Any] = {
            "ruleId": each.rule.id,
            "ruleIndex": rules.index(each.rule.id),
            "level": each.severity,
            "message": _text(each.text),
            "partialFingerprints": {FINGERPRINT: f"{hashed}:{seen[hashed]}"},
        }
        if artifact:
            region = {"region": {"startLine": each.line}} if each.line else {}
            told["locations"] = [{"physicalLocation": {"artifactLocation": artifact} | region}]
        yield told


def _artifact(file: str) -> dict[str, str]:
    path, here = Path(os.path.abspath(file)), Path.cwd()
    if not path.is_relative_to(here):
        return {"uri": path.as_uri()}
    return {"uri": quote(path.relative_to(here).as_posix()), "uriBaseId": BASE}


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _text(text: str) -> dict[str, str]:
    return {"text": _escaped(text)}


def _escaped(text: str) -> str:
    """A text without placeholders, whose braces are doubled in SARIF, and without links.

    >>> _escaped("AdamW(**{'lr': 0}), rows[1](2)")
    "AdamW(**{{'lr': 0}}), rows\\\\[1](2)"
    """
    return re.sub(r"\[(?=[^\[\]]*\]\()", r"\\[", text.replace("{", "{{").replace("}", "}}"))
