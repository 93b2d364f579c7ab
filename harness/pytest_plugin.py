"""The pytest plugin: options, markers and fixtures. Imports nothing heavy until a fixture is asked for.

The whole documented contract for a recipe of your own is this test::

    def test_documented(documented_check):
        documented_check()

It runs once for each check of each stage, as ``test_documented[tokenize::pairs-carry-token-type-ids]`` and so on, after
one run of the recipe that ``--recipe`` names (or a fixture ``recipe`` of your own returns).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from harness.findings import CheckOutcome
    from harness.recipe import Recipe
    from harness.record import RunRecord
    from harness.resume.run import ResumeReport

MARKERS = {
    "gpu": "needs a CUDA device; skipped where there is none",
    "slow": "takes more than a few seconds",
    "hub": "fetches from the hub; skipped where it is out of reach",
    "distributed": "starts several processes",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_addoption"""
    group = parser.getgroup("harness", "documented fine-tuning recipe")
    for option, ini, help_ in (
        ("--recipe", "harness_recipe", "recipe to run: tiny (the default), minilm, bert-base, sst2, or FILE.py:OBJECT"),
        ("--harness-data", "harness_data", "read the corpus from this folder"),
        ("--harness-checkpoint", "harness_checkpoint", "start from this checkpoint folder or hub name"),
        ("--harness-loop", "harness_loop", "train with this loop: plain, accelerate or trainer"),
        (
            "--harness-baselines",
            "harness_baselines",
            "the folder of the baselines (default: baselines, and the shipped)",
        ),
    ):
        group.addoption(option, dest=ini, metavar="VALUE", help=f"{help_} (ini: {ini})")
        parser.addini(ini, help_)
    group.addoption(
        "--harness-update", action="store_true", help="add the run to a baseline candidate, for you to accept"
    )


def pytest_configure(config: pytest.Config) -> None:
    """https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_configure"""
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each check, where a test asks for ``documented_check``."""
    if "documented_check" in metafunc.fixturenames:
        from harness.stages import CHECKS

        metafunc.parametrize("documented_check", CHECKS, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_collection_modifyitems"""
    for marker, missing in (("gpu", _no_gpu), ("hub", _no_hub)):
        marked = [item for item in items if item.get_closest_marker(marker)]
        if marked and (reason := missing()):
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish(session: pytest.Session) -> None:
    """No GPU test that was asked for is lost to ``--benchmark-only``, which skips what lacks the fixture ``benchmark``.

    https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_collection_finish

    Raises:
        UsageError: a GPU test would be skipped, and ``-m`` names the marker, or no other test is selected.
    """
    config = session.config
    gpu = [item for item in session.items if item.get_closest_marker("gpu")]
    asked_for = "gpu" in config.getoption("markexpr") or len(gpu) == len(session.items)
    lost = [item.nodeid for item in gpu if "benchmark" not in getattr(item, "fixturenames", ())]
    if lost and asked_for and config.getoption("benchmark_only", False):
        raise pytest.UsageError(
            f"--benchmark-only would skip {len(lost)} GPU tests, because they lack the fixture benchmark: "
            f"{', '.join(lost[:3])}{', ...' if len(lost) > 3 else ''}; run their code through benchmark, or leave out "
            "--benchmark-only"
        )


def _no_gpu() -> str | None:
    import torch

    return None if torch.cuda.is_available() else "needs a CUDA device, torch.cuda.is_available() is false"


def _no_hub() -> str | None:
    from harness.sources import hub

    return None if hub.reachable() else f"needs the hub, which did not answer within {hub.TIMEOUT:.0f} seconds"


def _failure(error: Exception) -> BaseException:
    """What could not run, as pytest shows it: one line without a traceback."""
    return pytest.fail.Exception(f"harness: {error}", pytrace=False)


def _option(config: pytest.Config, name: str) -> str | None:
    return config.getoption(name) or config.getini(name) or None


def baselines_folder(config: pytest.Config) -> Path:
    """``--harness-baselines``, seen from where pytest's configuration lies."""
    return config.rootpath / (_option(config, "harness_baselines") or "baselines")


def with_options(recipe: Recipe, config: pytest.Config) -> Recipe:
    """The recipe with ``--harness-data``, ``-checkpoint`` and ``-loop`` put in.

    Raises:
        CannotTry: a value that no run can have.
    """
    from harness import recipe as recipes

    return recipes.with_options(
        recipe,
        data=_option(config, "harness_data"),
        checkpoint=_option(config, "harness_checkpoint"),
        loop=_option(config, "harness_loop"),
    )


@pytest.fixture(scope="session")
def recipe(pytestconfig: pytest.Config) -> Recipe:
    """The recipe that ``--recipe`` names, with ``--harness-data``, ``-checkpoint`` and ``-loop`` put in."""
    from harness.errors import CannotTry
    from harness.recipe import DEFAULT_RECIPE, load_recipe

    try:
        return with_options(load_recipe(_option(pytestconfig, "harness_recipe") or DEFAULT_RECIPE), pytestconfig)
    except CannotTry as error:
        raise _failure(error) from None


@pytest.fixture(scope="session")
def run_record(request: pytest.FixtureRequest, recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """The record of one run of the recipe: run once a session, also under pytest-xdist.

    The run goes as far as the selected tests need: to the last stage of their checks, or to the end if a test asks for
    the record itself.
    """
    from filelock import FileLock

    from harness.errors import CannotTry
    from harness.record import RunRecord
    from harness.run import run_recipe

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base  # a worker of pytest-xdist has it
    path = shared / f"harness-run-{hashlib.sha256(repr(recipe).encode()).hexdigest()[:12]}.json"
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            try:
                record = run_recipe(recipe, until=_last_stage(request.session.items))
            except CannotTry as error:
                raise _failure(error) from None
            if record.interrupted:
                raise KeyboardInterrupt
            record.write(path)
    return RunRecord.read(path)


def _last_stage(items: list[pytest.Item]) -> str | None:
    """The last stage that the selected tests look at; None, all stages, if one of them wants the record itself."""
    from harness.stages import STAGES

    wanted = {"load"}
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "documented_check" in names:
            wanted.add(item.callspec.params["documented_check"].partition("::")[0])  # type: ignore[attr-defined]
        elif "run_record" in names:
            return None
    return [stage.name for stage in STAGES if stage.name in wanted][-1]


@pytest.fixture
def baseline(pytestconfig: pytest.Config) -> Callable[[RunRecord], None]:
    """Call it with a run record, and the test passes if the run is as good as the recorded ones, or fails and says why.

    With ``--harness-update`` the run is added to a candidate instead, and the test is skipped; no test changes a
    baseline.
    """

    def must_be_as_good(record: RunRecord) -> None:
        __tracebackhide__ = True
        from harness.baseline.compare import compared
        from harness.baseline.files import shipped_folder
        from harness.baseline.stored import add
        from harness.errors import CannotTry
        from harness.report.baseline import verdict_lines

        folder, fallback = baselines_folder(pytestconfig), None
        if not _option(pytestconfig, "harness_baselines"):
            fallback = shipped_folder()
        try:
            if pytestconfig.getoption("harness_update"):
                path = add(folder, record)
                pytest.skip(f"added to {path}; accept it with harness baseline accept {path.stem}")
            reasons = compared(folder, record, fallback=fallback)
        except CannotTry as error:
            raise _failure(error) from None
        if reasons:
            pytest.fail(f"harness: {reasons[0]}", pytrace=False)
        if any(verdict.outcome == "fails" for verdict in record.comparison):
            pytest.fail("\n".join(verdict_lines(record.comparison)), pytrace=False)

    return must_be_as_good


@pytest.fixture
def documented_check(request: pytest.FixtureRequest, run_record: RunRecord) -> Callable[[], None]:
    """Call it, and the test passes if the check held, is skipped if it says nothing about the recipe, or fails."""

    def must_hold() -> None:
        __tracebackhide__ = True
        try:
            record: CheckOutcome = run_record.check(request.param)
        except KeyError:
            failed = [check.check for check in run_record.checks if check.outcome == "fails"]
            pytest.fail(f"{request.param} was not reached: {', '.join(failed)} failed before", pytrace=False)
        if record.outcome == "not applicable":
            pytest.skip(f"not applicable: {record.reason}")
        if record.outcome == "fails":
            findings = [finding for finding in run_record.findings if finding.check == record.check]
            text = "\n".join(line for finding in findings for line in finding.lines())
            if any(finding.severity == "error" for finding in findings):
                pytest.fail(text, pytrace=False)
            request.node.warn(pytest.PytestWarning(text))

    return must_hold


@pytest.fixture
def watch() -> Callable[..., Any]:
    """``with watch(): ...`` fails the test with the silent bug in the training loop in its block, if there is one."""
    from harness.watch import watch

    return watch


@pytest.fixture
def resume() -> Callable[..., ResumeReport]:
    """``resume("train.py", ["--epochs", "2"])`` kills the script, starts it again, and fails with what it lost.

    Further arguments are those of :func:`harness.resume.run.resume_script`; it returns the report.
    """

    def must_survive(script: str, args: Sequence[str] = (), **options: Any) -> ResumeReport:
        __tracebackhide__ = True
        from harness.errors import CannotTry
        from harness.report.resume import outcome_lines
        from harness.resume.run import resume_script

        try:
            report = resume_script(script, args, **options)
        except CannotTry as error:
            raise _failure(error) from None
        if report.failed:
            pytest.fail("\n".join(outcome_lines(report)), pytrace=False)
        return report

    return must_survive
