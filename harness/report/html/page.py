"""The page: what each input comes to, failures first, in one file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harness import __version__
from harness.documented_run.baseline.statistics import ALPHA
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.matrix import BESIDES, KINDS, merged
from harness.documented_run.record import RunRecord
from harness.errors import CannotTry
from harness.files import write_atomically
from harness.findings import count, shortened
from harness.report import tokens
from harness.report.html import curves, findings, runs
from harness.report.html.inputs import Input
from harness.report.html.runs import Runs, RunView

FILE_NAME = "report.html"

GENERATOR = '<meta name="generator" content="full-training-harness'
"""Start of a tag that every page made here has near its beginning."""

HEAD = 2000
"""Bytes in which :data:`GENERATOR` is looked for."""

Status = Literal["fails", "differs", "warns", "holds", "recorded"]

WORST_FIRST: tuple[Status, ...] = ("fails", "differs", "warns", "holds", "recorded")


@dataclass(frozen=True)
class PagePart:
    """What the page says of one input, or of several runs together."""

    template: str
    title: str
    status: Status
    says: str
    content: Any
    path: Path | None = None
    id: str = ""


def default_output(first: Path, inputs: Sequence[Input]) -> Path:
    """Where the page goes, if nobody says: beside a run's record, else into the working directory.

    ``first`` is the first input as it was named.
    """
    if isinstance(inputs[0].content, RunRecord):
        return inputs[0].path.parent / FILE_NAME
    return Path(f"{first.stem}-{FILE_NAME}")


def check_output(path: Path) -> None:
    """Whether a page may take the place of a file: of an older page only.

    Raises:
        CannotTry: it is another file, or cannot be read.
    """
    if not path.exists() or not (path.is_file() or path.is_dir()):  # a device or a pipe holds nothing
        return
    try:
        with path.open("rb") as file:
            ours = GENERATOR.encode() in file.read(HEAD)
    except OSError as error:
        raise CannotTry(f"{path} cannot be written ({error.strerror}); choose another with --output") from error
    if not ours:
        raise CannotTry(f"{path} exists and is not a report; choose another file with --output")


def write_page(inputs: Sequence[Input], output: Path, *, baselines: Path, fallback: Path | None) -> None:
    """Write the page of the inputs; see :func:`page_of`.

    Raises:
        CannotTry: ``output`` is another file than a page, or a baseline is broken.
        OSError: it cannot be written.
    """
    check_output(output)
    write_atomically(output, page_of(inputs, baselines=baselines, fallback=fallback))


def write_beside(record: Path, content: RunRecord, *, baselines: Path, fallback: Path | None) -> str | None:
    """Write the page of a run beside its record, and return None; or why it could not be written."""
    output = record.parent / FILE_NAME
    try:
        write_page([Input(record, content)], output, baselines=baselines, fallback=fallback)
    except CannotTry as error:
        return str(error)
    except OSError as error:
        return f"{output} could not be written ({error.strerror})"
    return None


def page_of(inputs: Sequence[Input], *, baselines: Path, fallback: Path | None) -> str:
    """The page. A run is shown beside a baseline of the inputs, or of the folder ``baselines``, or of ``fallback``."""
    parts = sorted(_parts(inputs, baselines, fallback), key=lambda part: WORST_FIRST.index(part.status))
    numbered = [PagePart(**{**vars(part), "id": f"part-{number}"}) for number, part in enumerate(parts, start=1)]
    style, script = (_asset(name) for name in ("style.css", "page.js"))
    return (
        _environment()
        .get_template("page.html")
        .render(
            parts=numbered,
            generator=Markup(GENERATOR),  # noqa: S704 - ours
            version=__version__,
            style=style,
            script=script,
            style_hash=_hash(style),
            script_hash=_hash(script),
        )
    )


def _parts(inputs: Sequence[Input], baselines: Path, fallback: Path | None) -> Iterator[PagePart]:
    given = [each.content for each in inputs if isinstance(each.content, Baseline)]
    views = [
        runs.run_view(each.path, each.content, given, baselines, fallback)
        for each in inputs
        if isinstance(each.content, RunRecord)
    ]
    if len(views) > 1:
        together = runs.side_by_side(views)
        yield _of_runs(together)
        yield from (_of_run(view, label) for view, label in zip(views, together.labels, strict=True))
    else:
        yield from map(_of_run, views)
    for shown in inputs:
        if not isinstance(shown.content, RunRecord):
            yield _PARTS[shown.content.kind](shown)


def _of_run(view: RunView, label: str | None = None) -> PagePart:
    """``label``: as it is called among several runs, whose curves are drawn together."""
    charts = runs.charts_of(view) if label is None else []
    content = {"view": view, "charts": charts, "samples": runs.samples(view.record)}
    bad = view.record.failed or view.record.contradictions
    status: Status = "fails" if bad else "warns" if view.warns else "holds"
    return PagePart("run.html", label or view.name, status, view.says, content, view.path)


def _of_runs(found: Runs) -> PagePart:
    differ = sum(each.report.differ for each in found.compared)
    says = f"{differ} of {len(found.compared)} differ from the first" if differ else "the same curves and settings"
    title = f"{len(found.views)} runs side by side"
    return PagePart("runs.html", title, "differs" if differ else "holds", says, found)


def _of_check(given: Input) -> PagePart:
    report = given.content
    shown = findings.of_script(report.findings, given.path)
    warns = report.findings or report.not_looked_at
    status: Status = "fails" if report.failed or report.crashed else "warns" if warns else "holds"
    counts = Counter(each.finding.severity for each in shown)
    found = ", ".join(count(number, what) for what, number in counts.items()) or "nothing found"
    says = f"{found} in {count(report.updates, 'update')}, {count(len(report.held), 'check')} passed"
    content = {"report": report, "findings": shown}
    return PagePart("check.html", f"harness check {report.script}", status, says, content, given.path)


def _of_resume(given: Input) -> PagePart:
    report = given.content
    survived = sum(not kill.lost for kill in report.kills)
    says = f"{survived} of {count(len(report.kills), 'kill')} survived bit for bit"
    content = {"report": report, "findings": findings.of_script(report.findings, given.path)}
    status: Status = "fails" if report.failed else "holds"
    return PagePart("resume.html", f"harness resume {report.script}", status, says, content, given.path)


def _of_tokens(given: Input) -> PagePart:
    report = given.content
    real = report.tokens - report.padding
    says = f"{count(report.taught, 'token')} of {real} carry a loss in {count(report.rows_seen, 'row')}"
    status: Status = "fails" if report.crashed else "warns" if report.without_label else "recorded"
    return PagePart("tokens.html", f"harness tokens {report.script}", status, says, report, given.path)


def _of_description(given: Input) -> PagePart:
    report = given.content
    says = f"what {count(report.updates, 'update')} did, in {count(len(report.facts), 'fact')}"
    status: Status = "fails" if report.crashed else "warns" if report.findings else "recorded"
    return PagePart("description.html", f"harness describe {report.script}", status, says, report, given.path)


def _of_compare(given: Input) -> PagePart:
    report = given.content
    says = f"the same, bit for bit, in {count(report.updates, 'update')}"
    if report.differ:
        first = report.differences[0]
        says = f"first difference at update {first.update}: {first.cause}"
    title = f"harness compare {report.a} {report.b}"
    return PagePart("compare.html", title, "differs" if report.differ else "holds", says, report, given.path)


def _of_documents(given: Input) -> PagePart:
    record = given.content
    order = ("fails", "deprecated", "runs", "not applicable")
    counts = Counter(block.outcome for block in record.blocks)
    says = ", ".join(f"{counts[outcome]} {outcome}" for outcome in order if counts[outcome]) or "no block"
    status: Status = "fails" if counts["fails"] else "warns" if counts["deprecated"] else "holds"
    blocks = sorted(record.blocks, key=lambda block: (order.index(block.outcome), block.prints is None))
    content = {"record": record, "blocks": blocks}
    return PagePart("documents.html", "The documents' code, as printed", status, says, content, given.path)


def _of_matrix(given: Input) -> PagePart:
    matrix = given.content
    rows = sorted(merged(matrix.rows), key=lambda row: not row.varies)
    varies = sum(row.varies for row in rows)
    kinds = [(kind, *about, [row for row in rows if row.kind == kind]) for kind, about in KINDS.items()]
    content = {"matrix": matrix, "kinds": [each for each in kinds if each[-1]], "rows": len(rows), "varies": varies}
    says = f"{varies} of {len(rows)} rows are not as documented on all of {len(matrix.columns)} sets of versions"
    return PagePart("matrix.html", "Library versions", "recorded", says, content, given.path)


def _of_baseline(given: Input) -> PagePart:
    baseline: Baseline = given.content
    says = f"{count(len(baseline.runs), 'seed')}, {baseline.reason or 'a candidate'}"
    return PagePart("baseline.html", f"Baseline {baseline.name}", "recorded", says, baseline, given.path)


_PARTS = {
    "check": _of_check,
    "resume": _of_resume,
    "compare": _of_compare,
    "tokens": _of_tokens,
    "description": _of_description,
    "documents": _of_documents,
    "matrix": _of_matrix,
    "baseline": _of_baseline,
}
"""Kind of what is shown to what makes its part of the page."""


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("harness.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "short": curves.short,
        "figure": _figure,
        "shortened": partial(shortened, limit=160),
        "paragraphs": _paragraphs,
        "number": count,
        "shown": _shown,
    }
    environment.globals |= {
        "besides": BESIDES,
        "baseline_rows": runs.baseline_rows,
        "token_shares": tokens.shares,
        "false_alarms": ALPHA,
    }
    return environment


def _asset(name: str) -> Markup:
    """A file of the package as it is: nothing that was read is in it."""
    source, _, _ = _environment().loader.get_source(_environment(), name)  # type: ignore[union-attr]
    return Markup(source)  # noqa: S704


def _hash(text: str) -> str:
    """Hash of what is between the tags, as a Content-Security-Policy names what may be applied."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _figure(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else f"{value}"


def _shown(value: Any) -> str:
    """A value of a record in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None or value == "" else str(value)


def _paragraphs(text: str) -> list[str]:
    """The paragraphs of a check's page, each on one line."""
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
