"""What a command found, as programs read it: SARIF and GitHub's annotations are written from this."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness import catalogue
from harness.findings import PLACE, Finding, Severity

if TYPE_CHECKING:
    from harness.documented_run.matrix import Change
    from harness.documented_run.record import BlockRecord, DocumentsRecord, RunRecord
    from harness.resume.run import ResumeReport
    from harness.vary.run import VaryReport
    from harness.vary.settings.run import SettingsReport
    from harness.watch.script import CheckReport
    from harness.watch.scripts import ScriptsReport


@dataclass(frozen=True)
class Rule:
    """What can be found; texts are Markdown that reads as plain text too."""

    id: str
    severity: Severity
    statement: str
    why: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class LogEntry:
    """One thing that was found; without a file it has no location."""

    rule: Rule
    severity: Severity
    subject: str
    """What is wrong, or what it is about, in one line."""
    details: str
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


@dataclass(frozen=True)
class Log:
    """What one command found."""

    about: str
    """The command, with its script where it has one."""
    results: list[LogEntry]
    invocations: list[list[Notification]]
    """For each script that was run, what kept the command from looking."""


DOCUMENTS: Mapping[str, Rule] = {
    "fails": Rule("documents::fails", "error", "A block of a document fails as printed."),
    "deprecated": Rule("documents::deprecated", "warning", "A block of a document is deprecated."),
}
MATRIX = Rule("matrix::changed", "warning", "The results on these versions differ from the recorded ones.")


def of_check(report: CheckReport) -> Log:
    """Log of ``harness check SCRIPT``."""
    return Log(f"check {report.script}", of_findings(report.findings), [_of_script(report)])


def of_checks(report: ScriptsReport) -> Log:
    """Log of ``harness check`` for several scripts: one invocation each."""
    invocations = [
        _of_script(each.report) if each.report else [Notification("error", f"{each.script}: {each.error}")]
        for each in report.scripts
    ]
    return Log("check", of_findings(report.findings), invocations)


def of_resume(report: ResumeReport) -> Log:
    """Log of ``harness resume SCRIPT``."""
    return Log(f"resume {report.script}", of_findings(report.findings), [[]])


def of_vary(report: VaryReport) -> Log:
    """Log of ``harness vary SCRIPT``."""
    return Log(f"vary {report.script}", of_findings(report.findings), [[]])


def of_settings(report: SettingsReport) -> Log:
    """Log of ``harness vary --settings SCRIPT``."""
    return Log(f"vary --settings {report.script}", of_findings(report.findings), [[]])


def of_run(record: RunRecord) -> Log:
    """Log of ``harness run``."""
    ended = [Notification("error", "The run was interrupted.")] if record.interrupted else []
    return Log("run", of_findings(record.all_findings), [ended])


def of_documents(record: DocumentsRecord, paths: Mapping[str, Path]) -> Log:
    """Log of ``harness documents``; ``paths`` are those of the record's files."""
    results = [_of_block(each, str(paths[each.file])) for each in record.blocks if each.outcome in DOCUMENTS]
    ended = [Notification("error", "Not all documents were run: interrupted.")] if record.interrupted else []
    return Log("documents", results, [ended])


def of_changes(changes: Iterable[Change]) -> Log:
    """Log of ``harness matrix``: the cells that are not what was recorded, which have no place."""
    results = []
    for change in changes:
        now = f"{change.now.outcome} {change.now.value or ''}".strip() if change.now else "gone"
        subject, details = f"{change.row.title} on {change.column}", f"was {change.before.outcome}, is {now}"
        results.append(LogEntry(MATRIX, "warning", subject, details, same=f"{change.row.key} {change.column}"))
    return Log("matrix", results, [[]])


def of_findings(findings: Iterable[Finding]) -> list[LogEntry]:
    return [_of_finding(each) for each in findings]


def _of_block(block: BlockRecord, path: str) -> LogEntry:
    rule = DOCUMENTS[block.outcome]
    details = f"{block.says}" + (f"\nwrite {block.replacement} ({block.source})" if block.replacement else "")
    return LogEntry(rule, rule.severity, block.label, details, path, block.line, block.key)


def _of_finding(finding: Finding) -> LogEntry:
    follows = f"\nIt may follow from {finding.explained_by}." if finding.explained_by else ""
    details = f"expected {finding.expected}; observed {finding.observed}\n{finding.hint}{follows}"
    found = LogEntry(_rule_of(finding.check, finding), finding.severity, finding.message, details)
    place = PLACE.match(finding.where or "")
    if place is None:
        return found
    file, line = place["file"], int(place["line"])
    return replace(found, file=file, line=line, same=_source(file, line))


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
