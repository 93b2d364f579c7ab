"""What the repository says of itself."""

from __future__ import annotations

import ast
import html
import json
import os
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from harness import catalogue
from harness.documented_run.matrix import Matrix
from harness.former_ids import FORMER_IDS
from harness.report.matrix import markdown_lines
from harness.settings import scripts, wanted
from tests.checks.corpus import MARK, needs_of
from tests.programs import SET, programs_of
from tests.rings import COLLECTED
from tests.server import server_of

ROOT = Path(__file__).parent.parent


def _tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [ROOT / name for name in names]


def test_ci_finds_both_commands_in_the_readme() -> None:
    (pattern,) = re.findall(r"grep -E '(.*)' README\.md", (ROOT / ".ci" / "run").read_text())
    lines = [line for line in (ROOT / "README.md").read_text().splitlines() if re.search(pattern, line)]
    run, tested = lines
    assert run.endswith("harness run")
    assert tested.endswith('pytest -m "not gpu"')
    assert all("-c constraints.txt" in each for each in lines)


SCRIPTS = (
    "checks/*/*",
    "checks/scripts",
    "faults",
    "resume/libraries",
    "silenttrain/*",
    "silenttrain/*/*",
    "styles/*",
)
"""The folders of scripts that tests run."""


def brought_by(extras: str) -> set[str]:
    """The distributions that an installation of this package with these extras brings, by their normalized names."""
    found: set[str] = set()
    waiting = [Requirement(f"full-training-harness[{extras}]")]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        key = f"{name}[{','.join(sorted(wanted.extras))}]"
        if key in found:
            continue
        found |= {name, key}
        with suppress(PackageNotFoundError):
            for each in map(Requirement, requires(name) or ()):
                if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *wanted.extras)):
                    waiting.append(each)
    return found


def imported_by(script: Path) -> set[str]:
    """The packages that a script imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(script.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


MODULES = {"ignite": ["pytorch-ignite"]}
"""The distributions of modules that have another name, where those are not installed."""


def needed_by(script: Path) -> set[str]:
    """The distributions that a script says it needs: in its first line or its corpus.toml, or by its style."""
    said = {Requirement(each).name for each in needs_of(script.read_text(encoding="utf-8"))}
    if script.is_relative_to(SET):
        part, _, name = str(script.relative_to(SET)).partition("/")
        listed = [each for each in programs_of(part) if Path(name) in each.files]
        said |= {Requirement(need).name for each in listed for need in each.needs}
    if (corpus := script.parent / "corpus.toml").exists():
        table = tomllib.loads(corpus.read_text(encoding="utf-8"))
        said |= {Requirement(each).name for each in table.get("example", {}).get("on", ())} | {table.get("needs", "")}
    return {canonicalize_name(each) for each in said if each}


def own_of(script: Path) -> set[str]:
    return {each.stem for each in script.parent.glob("*.py")} | {"harness", "tests", "__future__"}


def test_scripts_import_what_is_installed_or_say_what_they_need() -> None:
    """Else README's command fails where nobody has installed more."""
    command = next(line for line in (ROOT / "README.md").read_text().splitlines() if "/pytest -m " in line)
    installed = brought_by(re.search(r"\.\[([\w,]+)\]", command)[1])  # type: ignore[index]
    distributions = MODULES | dict(packages_distributions())
    lacking = []
    for script in (each for folder in SCRIPTS for each in sorted((ROOT / "tests").glob(f"{folder}/*.py"))):
        if script.name.startswith(("test_", "__init__", "conftest")):
            continue
        at_hand = installed | needed_by(script)
        for package in imported_by(script) - sys.stdlib_module_names - own_of(script):
            if not at_hand.intersection(map(canonicalize_name, distributions.get(package, [package]))):
                lacking.append(f"{script.relative_to(ROOT)} imports {package}")
    assert lacking == [], "their first line must say: # needs PACKAGE"


DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150


@pytest.mark.parametrize("document", DOCS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\((?!https?://)([^)\s]+)\)", document.read_text(encoding="utf-8")):
        name, _, section = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        assert target.exists(), link
        if section:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert section in {re.sub(r"[^\w\- ]", "", each).lower().replace(" ", "-") for each in headings}, link


def test_documents_use_the_ids_of_today() -> None:
    formerly = {old for ids in FORMER_IDS.values() for old in ids if "::" in old} - set(catalogue.faults())
    for document in set(DOCS) - {ROOT / "CHANGELOG.md", ROOT / "docs" / "decisions.md"}:
        assert not formerly.intersection(re.findall(r"[a-z]+::[a-z-]+", document.read_text(encoding="utf-8")))


def test_settings_in_the_documents_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("README.md", "docs/check.md"):
        tables = re.findall(r"```toml\n(\[tool\.harness\].*?)```", (ROOT / name).read_text(), re.DOTALL)
        (tmp_path / "pyproject.toml").write_text(
            "".join([tables[0], *(each.partition("\n")[2] for each in tables[1:])])
        )
        assert wanted(tmp_path / "train.py").ignored
        monkeypatch.chdir(tmp_path)
        assert len(tables) == 1 or len(scripts()[1]) == 3


def test_the_readme_shows_what_harness_check_prints(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    script = (ROOT / "tests/checks/gradients/not-cleared/bad.py").read_text(encoding="utf-8")
    (tmp_path / "train.py").write_text(script.replace(MARK, ""), encoding="utf-8")
    done = server_of(pytestconfig).run(tmp_path, "check", "train.py")
    _, *finding, outcome = done.stderr.splitlines()
    assert done.status == 1
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:23]
    shown, printed = (
        re.sub(r"\d+ checks passed;.*?-v lists them", "checks", " ".join(" ".join(lines).split()))
        for lines in (first_screen, (*finding, outcome.partition(";")[0]))
    )
    assert printed in shown, "how many checks there are may have changed since"
    assert max(map(len, first_screen)) <= 100, "lines are broken there"


def test_the_picture_shows_what_the_readme_shows() -> None:
    """python -m scripts.picture makes it again."""
    shown = re.sub(r"<[^>]+>", "", (ROOT / "docs" / "finding.svg").read_text(encoding="utf-8"))
    (sample,) = re.findall(r"    harness check train\.py\n\n(.*?)\n\n", (ROOT / "README.md").read_text(), re.DOTALL)
    words = html.unescape(shown).replace("\xa0", " ").split()
    assert " ".join(sample.removesuffix("; ...").split()) in " ".join(words)


def test_the_page_has_the_figures_of_the_corpus() -> None:
    found = json.loads((ROOT / "baselines" / "detection.json").read_text(encoding="utf-8"))
    figures = f"({len(found['mutants'])} bugs, {len(found['variants'])} correct scripts)"
    assert figures in (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def test_no_placeholder_is_left() -> None:
    mark = re.compile("@" * 2 + r"\w")  # and not a patch, whose parts begin with two of them and a space
    for path in _tracked():
        if path.suffix not in (".safetensors", ".png", ".bz2"):
            assert not mark.search(path.read_text(encoding="utf-8")), path


@pytest.mark.slow  # it starts pytest once more
def test_the_command_for_gpu_runners_collects_each_gpu_test(pytestconfig: pytest.Config) -> None:
    """Where the fixture benchmark is missing, the plugin refuses; what is not read has no such test."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "--benchmark-only", "--collect-only", "-q"]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "test_the_documented_run[bert-base]" in done.stdout
    gpu = {item.nodeid for item in pytestconfig.stash[COLLECTED] if item.get_closest_marker("gpu")}
    assert gpu <= set(done.stdout.splitlines())


def test_built_in_checkpoint_is_small() -> None:
    folder = ROOT / "harness" / "documented_run" / "assets" / "tiny-bert"
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 4_000_000


def environments() -> list[str]:
    """The environments of tox that stand for library versions."""
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^env_list = (.*)$", tox, re.MULTILINE)
    names: list[str] = []
    for name in re.split(r",\s*(?![^{]*})", listed):
        before, _, factors = name.partition("{")
        names += [before + factor for factor in factors.rstrip("}").split(",")] if factors else [name]
    return [name for name in names if name.startswith("tf")]


def _pins(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {name.lower().replace("_", "-"): version for name, _, version in (line.partition("==") for line in lines)}


def test_each_environment_has_its_pins() -> None:
    chosen = {path.stem for path in (ROOT / "constraints").glob("*.in")}
    assert set(environments()) == chosen
    for name in chosen:
        made = ROOT / ("constraints.txt" if name == "tf523" else f"constraints/{name}.txt")
        pins = _pins(made)
        for library, version in _pins(ROOT / "constraints" / f"{name}.in").items():
            assert pins[library] == version, f"{made.name} is older than {name}.in: run tox -e pins -- {name}"


def test_the_package_asks_for_no_more_than_its_environments_have() -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [Requirement(each) for each in metadata["dependencies"]]
    pins = [_pins(path) for path in (ROOT / "constraints").glob("*.txt")]
    for each in wanted:
        versions = [Version(pin[each.name]) for pin in pins]
        assert all(each.specifier.contains(version) for version in versions), each
        if each.name in ("accelerate", "datasets", "evaluate", "transformers"):
            lowest = next(iter(each.specifier)).version
            assert Version(lowest) == min(versions), f"{each.name} {lowest} is not what the oldest environment has"


def test_the_workflow_runs_every_environment() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert sorted(jobs["versions"]["strategy"]["matrix"]["tox"]) == sorted(environments())
    assert jobs["matrix"]["needs"] == "versions"


def test_ci_takes_older_environments_in_turns() -> None:
    (older,) = re.findall(r"^older=\((.*)\)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert set(older.split()) <= set(environments())
    assert {"tf423", "tf457"} <= set(older.split()), "the oldest, and the last of 4"


def test_ci_runs_a_twentieth_of_the_nightly_tests() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    assert '-m "nightly and not gpu" --nightly-part "$((number % 20))/20"' in text
    assert "git rev-parse" in text


def test_the_docs_show_the_recorded_matrix() -> None:
    recorded = Matrix.read(ROOT / "baselines" / "matrix.json")
    assert "\n".join(markdown_lines(recorded, None)) in (ROOT / "docs" / "matrix.md").read_text(encoding="utf-8")
    assert [column.libraries["transformers"] for column in recorded.columns] == sorted(
        (
            pins["transformers"]
            for pins in map(_pins, [*(ROOT / "constraints").glob("*.txt"), ROOT / "constraints.txt"])
        ),
        key=Version,
    )


def test_the_package_says_that_it_is_typed() -> None:
    """Hatchling takes every tracked file of the package into the wheel."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"]["only-include"] == ["harness", "full_training_harness.py"]
    assert ROOT / "harness" / "py.typed" in _tracked()
