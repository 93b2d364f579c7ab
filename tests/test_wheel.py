"""What an installed package finds, far from the checkout: the shipped baselines and the matrix."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from harness.documented_run.baseline.files import shipped_folder
from tests.baseline.conftest import make_record

ROOT = Path(__file__).parents[1]
SHIPPED = {path.name for path in (ROOT / "baselines").glob("*.json")} - {"suite.json"}


def test_the_wheel_is_told_of_every_shipped_file() -> None:
    """By name, so that no candidate gets in; so each has to be named."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {
        f"baselines/{name}": f"harness/documented_run/assets/baselines/{name}" for name in sorted(SHIPPED)
    }


def test_a_checkout_has_them_beside_the_package() -> None:
    assert shipped_folder() == ROOT / "baselines"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as its wheel has it. Nothing is fetched for it."""
    pytest.importorskip("hatchling", reason="needs hatchling, which builds the wheel")
    built, folder = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("installed")
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index")
    subprocess.run([*command, "--wheel-dir", built, ROOT], check=True, capture_output=True)
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder)
    return folder


def harness(installed: Path, where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True)


def test_the_wheel_carries_them(installed: Path) -> None:
    inside = installed / "harness" / "documented_run" / "assets" / "baselines"
    assert {path.name for path in inside.iterdir()} == SHIPPED
    assert all((inside / name).read_bytes() == (ROOT / "baselines" / name).read_bytes() for name in SHIPPED)


def test_the_wheel_carries_the_corpora(installed: Path) -> None:
    corpora = Path("harness", "documented_run", "assets", "corpora")
    names = {path.name for path in (ROOT / corpora).iterdir()}
    assert {path.name for path in (installed / corpora).iterdir()} == names
    assert all((installed / corpora / name).read_bytes() == (ROOT / corpora / name).read_bytes() for name in names)


def test_the_wheel_carries_the_templates_of_the_page(installed: Path) -> None:
    templates = Path("harness", "report", "html", "templates")
    names = {path.name for path in (ROOT / templates).iterdir()}
    assert {path.name for path in (installed / templates).iterdir()} == names >= {"page.html", "style.css", "page.js"}


@pytest.mark.slow
def test_they_are_found_without_the_checkout(installed: Path, tmp_path: Path) -> None:
    shown = harness(installed, tmp_path, "baseline", "show", "tiny-plain-cpu")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("tiny-plain-cpu: 20 seeds, ")
    everything = harness(installed, tmp_path, "baseline", "show")
    assert everything.returncode == 0, everything.stderr
    assert "minilm-plain-cpu: 5 seeds" in everything.stdout
    given = harness(installed, tmp_path, "baseline", "show", "tiny-plain-cpu", "--baselines", str(tmp_path))
    assert given.returncode == 2, "who names a folder means it"


@pytest.mark.nightly
def test_the_matrix_is_found_without_the_checkout(installed: Path, tmp_path: Path) -> None:
    """A run of today's versions is laid beside the recorded ones."""
    make_record().write(tmp_path / "run.json")
    recorded = "no matrix was recorded: nothing is compared"
    alone = harness(installed, tmp_path, "matrix", "run.json", "--baselines", str(tmp_path))
    assert alone.returncode == 0, alone.stderr
    assert recorded in alone.stdout
    beside = harness(installed, tmp_path, "matrix", "run.json")
    assert beside.returncode in (0, 1), beside.stderr
    assert beside.stdout
    assert recorded not in beside.stdout
