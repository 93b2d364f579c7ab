"""``harness compare --bisect``, with releases of a library that are made here."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from packaging.version import Version

from harness.cli import main
from harness.compare.differences import OTHER, CompareReport, Difference
from harness.documented_run.compare import bisect as bisecting
from harness.documented_run.compare.bisect import bisect
from harness.documented_run.compare.releases import CannotInstall, Environments, ReleaseSpan
from harness.errors import CannotTry
from harness.starts.workdir import Command, no_progress

RELEASES = {"1.0": 1.0, "1.1": 1.0, "1.2": 1.0, "2.0": 2.0, "2.1": 2.0, "3.0rc1": 3.0}
"""Of the library, with what it multiplies the loss by."""

TRAINS = """
import torch
from scales_losses import scaled

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    scaled(model(torch.randn(8, 4)).square().mean()).backward()
    optimizer.step()
"""


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the releases, which is all that pip sees."""
    folder = tmp_path / "releases"
    folder.mkdir()
    for version, scale in RELEASES.items():
        about = f"scales_losses-{version}.dist-info"
        with zipfile.ZipFile(folder / f"scales_losses-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("scales_losses.py", f"def scaled(loss):\n    return {scale} * loss\n")
            wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: scales-losses\nVersion: {version}\n")
            wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("train.py").write_text(TRAINS)
    return folder


def compare(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["compare", *arguments])


@pytest.mark.nightly
def test_the_release_is_found(released: Path) -> None:
    result = compare("train.py", "--bisect", "scales-losses=1.0..2.1", "--json", "found.json")
    assert result.exit_code == 1, result.output
    found = json.loads(Path("found.json").read_text())
    assert found["a"] == "train.py with scales-losses 1.2"
    assert found["b"] == "train.py with scales-losses 2.0"
    assert found["differences"][0]["what"].startswith("the loss")
    assert found["releases"] == {"1.0": "the same", "1.2": "the same", "2.0": "differs", "2.1": "differs"}
    for wheel in released.iterdir():  # what is installed is not asked for again
        wheel.unlink()
    environments = Environments("scales-losses", no_progress)
    span = ReleaseSpan.parse("scales-losses=1.0..2.1")
    assert {"1.0", "1.2", "2.0", "2.1"} <= {str(each) for each in environments.releases(span)}
    assert Path(environments.python(Version("2.0"))).exists()


def test_releases_that_pip_tells(released: Path) -> None:
    assert [
        str(each)
        for each in Environments("scales-losses", no_progress).releases(ReleaseSpan.parse("scales-losses=1.0..9"))
    ] == [
        *("1.0", "1.1", "1.2", "2.0", "2.1"),
        "9",
    ]


def test_a_release_that_there_is_not(released: Path) -> None:
    environments = Environments("scales-losses", no_progress)
    with pytest.raises(CannotInstall, match=r"No matching distribution found for scales-losses==9"):
        environments.python(Version("9"))
    assert not list((released.parent / "cache").rglob("*9*"))


@pytest.mark.parametrize(
    ("span", "says"),
    [
        ("transformers", "expected PACKAGE=FIRST..LAST"),
        ("transformers=4.57.6", "expected PACKAGE=FIRST..LAST"),
        ("transformers=4.57.6..new", "expected PACKAGE=FIRST..LAST"),
        ("transformers=5.0..4.57", "the earlier one first"),
    ],
)
def test_a_span_that_is_none(span: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = compare("train.py", "--bisect", span)
    assert result.exit_code == 2
    assert says in result.output


def test_bisect_takes_one_script() -> None:
    result = compare("a.py", "b.py", "--bisect", "torch=1..2")
    assert result.exit_code == 2
    assert "--bisect takes one script" in result.output


def test_nothing_is_known_of_a_library_without_a_network(released: Path) -> None:
    with pytest.raises(CannotTry, match="pip finds no release of no-such-thing from 1 to 2"):
        Environments("no-such-thing", no_progress).releases(ReleaseSpan.parse("no-such-thing=1..2"))


def differing(what: str | None) -> CompareReport:
    differences = [] if what is None else [Difference(OTHER, "loss", 1, what)]
    return CompareReport("", "", 3, differences)


@pytest.fixture
def bisected(monkeypatch: pytest.MonkeyPatch) -> Callable[..., CompareReport]:
    """What is found where the releases 1 to 8 do certain things; a release that does an error's cannot be tried."""

    def find(*does: str | Exception) -> CompareReport:
        def compared(one: Command, other: Command, **options: object) -> CompareReport:
            for error in (does[int(each.python) - 1] for each in (one, other)):
                if isinstance(error, Exception):
                    raise error
            first, second = (does[int(each.python) - 1] for each in (one, other))
            return differing(None if first == second else f"{first} and {second}")

        monkeypatch.setattr(bisecting, "compare_scripts", compared)
        monkeypatch.setattr(Environments, "python", lambda self, version: str(version))
        monkeypatch.setattr(Environments, "_listed", lambda self: [Version(str(n + 1)) for n in range(len(does))])
        return bisect(Command("train.py"), ReleaseSpan.parse(f"library=1..{len(does)}"))

    return find


@pytest.mark.parametrize("at", range(1, 8))
def test_every_place_is_found(bisected: Callable[..., CompareReport], at: int) -> None:
    report = bisected(*["old"] * at, *["new"] * (8 - at))
    assert (report.a, report.b) == (f"train.py with library {at}", f"train.py with library {at + 1}")
    assert report.notes == []
    assert len(report.releases) <= 2 + 3


def test_what_cannot_be_tried_is_left_out(bisected: Callable[..., CompareReport]) -> None:
    report = bisected("old", "old", CannotInstall("no wheel"), CannotTry("it crashes\nat length"), "new", "new")
    assert (report.a, report.b) == ("train.py with library 2", "train.py with library 5")
    assert (report.releases["3"], report.releases["4"]) == ("no wheel", "it crashes")


def test_ends_that_are_the_same(bisected: Callable[..., CompareReport]) -> None:
    report = bisected("old", "new", "old")
    assert (report.differ, report.releases) == (False, {"1": "the same", "3": "the same"})


def test_ends_that_part_in_something_else(bisected: Callable[..., CompareReport]) -> None:
    report = bisected("old", "rounds", "rounds", "rounds", "new")
    assert (report.a, report.b) == ("train.py with library 1", "train.py with library 2")
    (note,) = report.notes
    assert note.startswith("1 and 5 also differ in something else: update 1, compare::computation, old and new; ")
    assert note.endswith("bisect from 2 on to find it")


def test_an_end_that_cannot_be_installed(bisected: Callable[..., CompareReport]) -> None:
    with pytest.raises(CannotTry, match="library 1 or 3 cannot be installed: no wheel"):
        bisected("old", "old", CannotInstall("no wheel"))
