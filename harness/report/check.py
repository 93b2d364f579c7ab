"""The lines of ``harness check``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness import launch
from harness.findings import NOT_SEEN, Unusual, count
from harness.watch import by_reason
from harness.watch.script import CheckReport
from harness.watch.scripts import ScriptReport

REASONS = 3
"""Reasons for which checks did not apply that are shown, the commonest first."""


WIDEST = 10
"""Characters before what a line of the outline says."""

ENDED = re.compile(r"(ended itself with \S+|was interrupted)$")
"""How a script ended that did not crash."""


def outcome_lines(report: CheckReport, *, quiet: bool = False, verbose: bool = False) -> Iterator[str]:
    """What was found, and what was looked at: with ``verbose`` by name; with ``quiet`` only what was found."""
    for finding in report.findings:
        yield from finding.lines()
    for check in report.ignored:
        yield f"  ignored: {check} found something"
    for checks, why in by_reason({each.check: each.why for each in report.not_looked_at}):
        yield f"  not judged: {checks}: {why}"
    if quiet:
        yield from report.isolation.lines(quiet=True) if report.isolation is not None else ()
        return
    for note in report.notes:
        yield f"  note: {note}"
    if report.updates or report.crashed is None:
        yield f"  {_looked_at(report, hint=not verbose)}"
        yield from (f"  {what:<{WIDEST}}{text}" for what, text in report.did.items())
        if "metrics" in _blind(report) and not report.did.get("scored", "nothing").startswith("nothing"):
            yield f"  harness vary {report.script} tests whether the score changes when something irrelevant changes"
    if report.unusual:
        yield "  worth a look (harness explain unusual):"
        yield from (f"    {each.section}: {each.text} {_at(each)}{each.mark}" for each in report.unusual)
    if verbose:
        yield from (f"    passed: {check}{_what(report.looked_at.get(check))}" for check in report.held)
        yield from (f"    did not apply: {', '.join(each.checks)}: {each.why}" for each in report.did_not_apply)
    if report.isolation is not None:
        yield from report.isolation.lines()
    yield summary_line(report)


def _what(looked_at: str | None) -> str:
    return f": {looked_at}" if looked_at else ""


def _at(mark: Unusual) -> str:
    return f"({mark.where}) " if mark.where else ""


def summary_line(report: CheckReport) -> str:
    """What it came to, in one line."""
    errors = sum(finding.severity == "error" for finding in report.findings)
    warnings = len(report.findings) - errors
    counted = [count(n, what) for n, what in ((errors, "error"), (warnings, "warning")) if n]
    if report.not_looked_at:
        counted.append(f"{count(len(report.not_looked_at), 'check')} crashed")
    passes = " (long epochs were cut; use --full for complete ones)" if report.shortened else ""
    seconds = report.seconds
    parts = [f"{seconds['before the first batch']:.1f} s for importing and loading"]
    if "reloading" in seconds:
        parts.append(f"{seconds['reloading']:.1f} s for loading again what it saved (--no-reload)")
    found, made = ", ".join(counted) or "nothing found", f"{count(report.updates, 'update')}{passes}"
    says = f"{found} in {made}"
    if report.crashed is not None:
        ended = ENDED.search(report.crashed)
        when = f"after {made}" if report.updates else "before its first update"
        says = f"{ended[0] if ended else 'crashed'} {when}; until then {found}"
    return f"{report.script}: {says}; {seconds['in all']:.1f} s, of which {' and '.join(parts)}"


RECEIPT = "**harness check**: "
"""How a receipt begins."""


def receipt_lines(report: CheckReport, versions: Mapping[str, str | None], words: Sequence[str] = ()) -> Iterator[str]:
    """What was looked at and what it came to, as Markdown of one screen for a pull request.

    ``words`` are the script and its arguments as the command line had them, with -m where it is a module.
    """
    yield f"{RECEIPT}{summary_line(report)}"
    yield ""
    for finding in report.findings:
        follows = f" (may follow from `{finding.explained_by}`)" if finding.explained_by else ""
        indent = "  " if finding.explained_by else ""
        yield f"{indent}- {finding.severity} `{finding.check}` {finding.where}: {finding.observed}{follows}"
    yield from (f"- {what}: {text}" for what, text in report.did.items())
    yield f"- {_looked_at(report)}"
    for why, checks in ((each.why, each.checks) for each in report.did_not_apply):
        if any(check.startswith("ranks::") for check in checks):
            yield f"- not judged: {', '.join(each for each in checks if each.startswith('ranks::'))}: {why}"
    yield from (f"- {note}" for note in report.notes)
    yield ""
    processes = f"--processes {launch.world_size()} " if launch.world_size() else ""
    command = f"harness check {processes}{shlex.join(words or [report.script])}"
    yield f"`{command}`, {', '.join(f'{name} {version}' for name, version in versions.items() if version)}"


def script_lines(each: ScriptReport, *, quiet: bool = False, verbose: bool = False) -> Iterator[str]:
    """One of several scripts: what was found, and one line; with ``quiet`` none where nothing was."""
    if each.report is None:
        yield f"{each.script}: could not run: {each.error}"
        return
    report = replace(each.report, script=each.script)
    if report.crashed is not None:
        yield report.crashed
    yield from outcome_lines(report, quiet=not verbose, verbose=verbose)
    if not verbose and (each.status or not quiet):
        yield summary_line(report)


def patch_lines(report: CheckReport, *, written: bool) -> Iterator[str]:
    """What has a patch, and why the rest has none."""
    for patch in report.patches:
        if patch.gone_with is not None:
            yield f"  {'repaired' if written else 'patch'}: {patch.check}, by the patch for {patch.gone_with}"
        elif patch.diff is None:
            yield f"  no patch: {patch.check}: {patch.why}"
        else:
            yield f"  {'repaired' if written else 'patch'}: {patch.check} in {patch.file}"
    done = len(report.findings) - len(report.left)
    says = "repaired" if written else "can be repaired"
    yield f"{report.script}: {done} of {count(len(report.findings), 'finding')} {says}"


def _looked_at(report: CheckReport, *, hint: bool = False) -> str:
    """How many checks passed, why others did not apply, and the families of which none did."""
    held = f"{count(len(report.held), 'check')} passed"
    if not report.did_not_apply:
        return held
    reasons = sorted(((len(each.checks), each.why) for each in report.did_not_apply), key=lambda each: -each[0])
    missing = [(number, why) for number, why in reasons if why.startswith("no ") and why.endswith(NOT_SEEN)]
    shown = [f"{why[3 : -len(NOT_SEEN)]} ({number})" for number, why in missing[:REASONS]]
    shown = [f"not seen: {', '.join(shown)}"] if shown else []
    if others := sum(number for number, _ in reasons) - sum(number for number, _ in missing[:REASONS]):
        shown.append(f"other reasons ({others})")
    without = f"{sum(number for number, _ in reasons)} did not apply"
    blind = _blind(report)
    all_of = f", among them every check of {', '.join(blind)}" if blind else ""
    return "; ".join([held, f"{without}{all_of}", *shown, *["-v lists them"] * hint])


def _blind(report: CheckReport) -> list[str]:
    """The families of which no check applied."""
    looked = {_family(each) for each in (*report.held, *report.ignored, *(found.check for found in report.findings))}
    return sorted({_family(check) for each in report.did_not_apply for check in each.checks} - looked)


def _family(check: str) -> str:
    return check.partition("::")[0]
