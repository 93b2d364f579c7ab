"""``harness compare --bisect``: the first release of a library with which a script does something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from packaging.version import Version

from harness.compare.differences import CompareReport
from harness.compare.run import UPDATES, compare_scripts
from harness.documented_run.compare.releases import CannotInstall, Environments, ReleaseSpan
from harness.errors import CannotTry
from harness.starts.workdir import Command, no_progress

SAME, DIFFERS = "the same", "differs"


def bisect(
    command: Command, span: ReleaseSpan, *, updates: int = UPDATES, tell: Callable[[str], None] = no_progress
) -> CompareReport:
    """Compare the script with two releases that follow one another, of which the later one differs from ``span.first``.

    Releases that cannot be installed, or with which the script crashes, are left out. Of several changes the first is
    found. All else in the environments is as it is here, but for what the release requires otherwise.

    Raises:
        CannotTry: one of the two ends cannot be installed or tried, or there is nothing between them to look for.
    """
    environments = Environments(span.package, tell)
    releases = environments.releases(span)
    tried: dict[Version, str] = {}
    from_first: dict[Version, CompareReport] = {}

    def with_release(version: Version) -> Command:
        return replace(command, python=environments.python(version))

    def compared(one: Version, other: Version) -> CompareReport:
        found = compare_scripts(with_release(one), with_release(other), updates=updates, tell=tell)
        found.a, found.b = (_shown(command, span, version) for version in (one, other))
        return found

    def parts(version: Version) -> bool | None:
        """Whether it differs from the first; None where that cannot be tried."""
        try:
            from_first[version] = compared(span.first, version)
        except (CannotInstall, CannotTry) as error:
            tried[version] = str(error).splitlines()[0]
            return None
        tried[version] = DIFFERS if from_first[version].differ else SAME
        tell(f"{span.package} {version}: {tried[version]}")
        return from_first[version].differ

    try:
        ends = from_first[span.last] = compared(span.first, span.last)
    except CannotInstall as error:
        raise CannotTry(f"{span.package} {span.first} or {span.last} cannot be installed: {error}") from error
    tried |= {span.first: SAME, span.last: DIFFERS if ends.differ else SAME}
    report = ends
    if ends.differ:
        before, after = _parting(releases, parts)
        report = from_first[after] if before == span.first else compared(before, after)
        if _first(report) != _first(ends):
            report.notes.append(
                f"{span.first} and {span.last} also differ in something else: {_first(ends)}; bisect from {after} "
                "on to find it"
            )
    report.releases = {str(version): tried[version] for version in sorted(tried)}
    return report


def _parting(releases: list[Version], parts: Callable[[Version], bool | None]) -> tuple[Version, Version]:
    """The last that is the same as the first, and the one after it that can be tried; the last of all differs."""
    same, other = 0, len(releases) - 1
    skipped = set[int]()
    while between := [number for number in range(same + 1, other) if number not in skipped]:
        middle = between[len(between) // 2]
        differs = parts(releases[middle])
        if differs is None:
            skipped.add(middle)
        elif differs:
            other = middle
        else:
            same = middle
    return releases[same], releases[other]


def _first(report: CompareReport) -> str:
    first = next(iter(report.differences), None)
    return "in nothing" if first is None else f"update {first.update}, {first.cause}, {first.what}"


def _shown(command: Command, span: ReleaseSpan, version: Version) -> str:
    return " ".join([command.script, *command.arguments, f"with {span.package} {version}"])
