"""The pytest plugin: options, markers and fixtures. Imports nothing heavy until a fixture is asked for.

The whole documented contract for a recipe of your own is this test::

    def test_documented(documented_check):
        documented_check()

It runs once for each check of each stage, as ``test_documented[tokenize::pairs-carry-token-type-ids]`` and so on, after
one run of the recipe that ``--harness-recipe`` names (or a fixture ``recipe`` of your own returns).

Nothing changes in a suite that does not use it: markers have a meaning where an option or a setting of the harness is
given, and names without a prefix (``--recipe``, ``watch``) are taken where nobody else has them.

PYTEST_DONT_REWRITE: its asserts are no test's, and full_training_harness.py imports it before pytest can rewrite it.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.documented_run.recipe import Recipe
    from harness.documented_run.record import RunRecord
    from harness.resume.run import ResumeReport
    from harness.vary.run import VaryReport

MARKERS = {
    "gpu": "needs a CUDA device; skipped if there is none",
    "slow": "takes more than a few seconds",
    "hub": "fetches from the hub; skipped if the hub cannot be reached",
    "distributed": "starts several processes",
}


OPTIONS = {
    "harness_recipe": "recipe to run: tiny (the default), minilm, bert-base, sst2, or FILE.py:OBJECT",
    "harness_data": "read the corpus from this folder",
    "harness_checkpoint": "start from this checkpoint folder or hub name",
    "harness_loop": "train with this loop: plain, accelerate or trainer",
    "harness_baselines": "the folder of the baselines (default: baselines, and the shipped ones)",
    "harness_report": "write a page (HTML) of the session's runs to this file",
}
"""Each is an option (``--harness-recipe``) and a setting. A path is seen from where it was written: from the working
directory, or the rootdir."""

SHORT_OPTION = "--recipe"

PYPROJECT = "pyproject.toml"

FIRST_RUNS = pytest.StashKey[dict[str, Any]]()
"""Training to what it did by its own command, where other ways are held to it."""

VERDICTS = pytest.StashKey[dict[str, Any]]()
"""Training to how it compares with its baseline, or why it could not be compared."""

RECORDS = pytest.StashKey[dict[str, None]]()
"""The files of the runs that were made in this process, or in a worker of it, each once."""

UNASKED = pytest.StashKey[str | None]()
"""What to add where no test asks for the run of the recipe that is named."""

REPORTED = pytest.StashKey[str]()
"""What became of ``--harness-report``."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_addoption"""
    group = _group(parser)
    for name, help_ in OPTIONS.items():
        option = f"--{name.replace('_', '-')}"
        group.addoption(option, dest=name, metavar="VALUE", help=f"{help_} (ini: {name})")
        parser.addini(name, f"{help_}; a path is relative to the rootdir" if name != "harness_loop" else help_)
    group.addoption(
        "--harness-training",
        action="store_true",
        help="also run each script of [[tool.harness.training]], and compare what it does with its baseline",
    )
    group.addoption(
        "--harness-update", action="store_true", help="add the run to a baseline candidate, for you to accept"
    )


def _group(parser: pytest.Parser) -> pytest.OptionGroup:
    return parser.getgroup("harness", "documented fine-tuning recipe")


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Iterator[None]:
    """``--recipe`` is short for ``--harness-recipe`` where no plugin and no conftest.py has an option of that name.

    https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_load_initial_conftests
    """
    yield
    _, unknown = parser.parse_known_and_unknown_args([f"{SHORT_OPTION}=tiny"])
    if unknown:
        _group(parser).addoption(SHORT_OPTION, dest="harness_recipe", metavar="VALUE", help="the same")


def pytest_configure(config: pytest.Config) -> None:
    """https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_configure"""
    if _is_used(config):
        for name, meaning in MARKERS.items():
            config.addinivalue_line("markers", f"{name}: {meaning}")
    config.stash[RECORDS] = {}
    config.pluginmanager.register(_short_names(config), "harness-short-names")


def pytest_collection(session: pytest.Session) -> None:
    """The pyproject.toml of the rootdir is collected too where its trainings are asked for.

    https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_collection
    """
    file = session.config.rootpath / PYPROJECT
    if session.config.getoption("harness_training") and str(file) not in session.config.args:
        session.config.args.append(str(file))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_collect_file"""
    config = parent.config
    if config.getoption("harness_training") and file_path == config.rootpath / PYPROJECT:
        return Trainings.from_parent(parent, path=file_path)
    return None


class Trainings(pytest.File):
    """The trainings of ``[[tool.harness.training]]``, each with a test for each section of its baseline."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        from harness.baseline.settings_table import SETTINGS
        from harness.baseline.training_file import sections
        from harness.errors import CannotTry
        from harness.settings import trainings

        try:
            folder, found = trainings(self.path.parent)
        except CannotTry as error:
            raise pytest.UsageError(f"harness: {error}") from None
        if not found:
            raise pytest.UsageError(
                f"harness: {self.path} names no training; add [[tool.harness.training]] with a name and a script"
            )
        for script in found:
            for section in ("checks", *(name for name in sections() if name != SETTINGS or script.settings)):
                yield TrainingSection.from_parent(
                    self, name=f"{script.name}[{section}]", training=script, section=section, folder=folder
                )
            for way in script.same_as:
                name = f"{script.name}[same as {way}]"
                yield TrainingWay.from_parent(self, name=name, training=script, way=way, folder=folder)
            if script.vary:
                yield TrainingVaried.from_parent(self, name=f"{script.name}[vary]", training=script, folder=folder)


class TrainingSection(pytest.Item):
    """One section of a training's baseline: it passes where the script does what the section says."""

    def __init__(self, *, training: Any, section: str, folder: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.training, self.section, self.folder = training, section, folder

    def runtest(self) -> None:
        verdict = self.config.stash.setdefault(VERDICTS, {}).get(self.training.name)
        if verdict is None:
            verdict = self.config.stash[VERDICTS][self.training.name] = self._compared()
        if isinstance(verdict, str):
            pytest.fail(f"harness: {verdict}", pytrace=False)
        first = next(iter(verdict.changed), None)
        if self.section == "checks":
            if verdict.findings:
                pytest.fail("\n".join(line for each in verdict.findings for line in each.lines()), pytrace=False)
        elif self.section == first:
            from harness.report.trainings import verdict_lines

            pytest.fail("\n".join(verdict_lines(verdict)), pytrace=False)
        elif self.section in verdict.changed:
            pytest.skip(f"also differs, maybe because of {first}")
        elif self.section == "numbers" and not verdict.numbers_compared:
            pytest.skip(verdict.lane)

    def _compared(self) -> Any:
        from harness.baseline import training_file, trainings
        from harness.errors import CannotTry

        name = self.training.name
        try:
            path = training_file.path_of(baselines_folder(self.config), name)
            return trainings.compare(self.training, self.folder, training_file.read(path, name))
        except CannotTry as error:
            return str(error)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class TrainingWay(pytest.Item):
    """One way in which a training has to be the same: it passes where it takes the same steps."""

    def __init__(self, *, training: Any, way: Any, folder: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.training, self.way, self.folder = training, way, folder

    def runtest(self) -> None:
        from harness.baseline.same_training import SameTrainingReport, compared
        from harness.baseline.trainings import described
        from harness.errors import CannotTry
        from harness.report.same_training import same_training_lines

        name, runs = self.training.name, self.config.stash.setdefault(FIRST_RUNS, {})
        try:
            if name not in runs:
                runs[name] = described(self.training, self.folder)
            way = compared(runs[name], described(self.training, self.folder, way=self.way), self.way)
        except CannotTry as error:
            pytest.fail(f"harness: {error}", pytrace=False)
        report = SameTrainingReport(name, shlex.join(self.training.command), [way])
        if report.failed:
            pytest.fail("\n".join(same_training_lines(report)), pytrace=False)
        if way.not_judged:
            pytest.skip("; ".join(way.not_judged))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class TrainingVaried(pytest.Item):
    """The relations of ``harness vary``: it passes where none of them is broken for a training."""

    def __init__(self, *, training: Any, folder: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.training, self.folder = training, folder

    def runtest(self) -> None:
        from harness.errors import CannotTry
        from harness.files import working_in
        from harness.report.vary import outcome_lines
        from harness.vary.run import vary_script

        module = self.training.command[0] == "-m"
        script, *arguments = self.training.command[module:]
        try:
            with working_in(self.folder):
                report = vary_script(script, arguments, module=module)
        except CannotTry as error:
            pytest.fail(f"harness: {error}", pytrace=False)
        if report.findings:
            pytest.fail("\n".join(outcome_lines(report)), pytrace=False)
        if not report.applied:
            pytest.skip("no relation could be tested")

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


def _is_used(config: pytest.Config) -> bool:
    """Whether the suite says something to the harness, by an option or a setting."""
    asked = config.getoption("harness_update") or config.getoption("harness_training")
    return asked or any(_given(config, name) is not None for name in OPTIONS)


def _short_names(config: pytest.Config) -> ModuleType:
    """The fixtures by names without a prefix, those that no other plugin has; a conftest.py's go before them anyway."""
    short = ModuleType("harness.pytest_plugin.short_names", "Fixtures of the harness by short names.")
    others = config.pluginmanager.get_plugins()
    for name, fixture in SHORT_NAMES.items():
        if not any(_has_fixture(plugin, name) for plugin in others if not _is_conftest(plugin)):
            setattr(short, name, fixture)
    return short


def _has_fixture(plugin: object, name: str) -> bool:
    found = getattr(plugin, name, None)
    # A function that was marked until pytest 8.3, an object of its own since.
    return hasattr(found, "_pytestfixturefunction") or type(found).__name__ == "FixtureFunctionDefinition"


def _is_conftest(plugin: object) -> bool:
    return Path(getattr(plugin, "__file__", None) or "").name == "conftest.py"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each check, where a test asks for ``documented_check``."""
    if "documented_check" in metafunc.fixturenames:
        from harness.documented_run.stages import CHECKS

        metafunc.parametrize("documented_check", CHECKS, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_collection_modifyitems"""
    for marker, missing in (("gpu", _no_gpu), ("hub", _no_hub)) if _is_used(config) else ():
        marked = [item for item in items if item.get_closest_marker(marker)]
        if marked and (reason := missing()):
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Under pytest-xdist what a recipe is is known before workers start: they could not say it once.

    https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_sessionstart
    """
    if session.config.getoption("tx", None) and _given(session.config, "harness_recipe"):
        _check_recipe(session.config)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What makes the tests that were selected useless is said once, before them.

    https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_collection_finish

    Raises:
        UsageError: the recipe that tests ask for cannot be loaded; or GPU tests would be skipped.
    """
    is_worker = hasattr(session.config, "workerinput")
    if not is_worker and any("recipe" in getattr(item, "fixturenames", ()) for item in session.items):
        _check_recipe(session.config)
    if not is_worker and not session.config.getoption("tx", None):
        session.config.stash[UNASKED] = _unasked(session)
    if _is_used(session.config):
        _check_gpu_tests(session)


def _unasked(session: pytest.Session) -> str | None:
    """What to add where the command line names a recipe, and no test was collected that asks for its run."""
    recipe = session.config.getoption("harness_recipe")
    if recipe is None or any({"recipe", "documented_check"} & {*_fixtures(item)} for item in session.items):
        return None
    return (
        f"no test asks for the run of {recipe}; add a file test_documented.py with\n"
        "    def test_documented(documented_check):\n"
        "        documented_check()"
    )


def _fixtures(item: pytest.Item) -> Sequence[str]:
    names: Sequence[str] = getattr(item, "fixturenames", ())
    return names


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """The runs of a worker of pytest-xdist, which tells them with its last words.

    https://github.com/pytest-dev/pytest-xdist/blob/master/src/xdist/newhooks.py
    """
    node.config.stash[RECORDS] |= dict.fromkeys(getattr(node, "workeroutput", {}).get("harness_records", ()))


@pytest.hookimpl(tryfirst=True)  # temporary folders may be removed at the end, and the records with them
def pytest_sessionfinish(session: pytest.Session) -> None:
    """https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_sessionfinish"""
    config = session.config
    records = config.stash[RECORDS]
    if hasattr(config, "workerinput"):
        config.workeroutput["harness_records"] = list(records)  # type: ignore[attr-defined]
    elif file := _given(config, "harness_report"):
        config.stash[REPORTED] = _report(config, Path(file))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """https://docs.pytest.org/en/stable/reference/reference.html#pytest.hookspec.pytest_terminal_summary"""
    for line in filter(None, (config.stash.get(UNASKED, None), config.stash.get(REPORTED, None))):
        terminalreporter.write_line(f"harness: {line}")


def _report(config: pytest.Config, output: Path) -> str:
    """Write the page of the session's runs, each compared with its baseline, and say so."""
    from contextlib import suppress

    from harness.documented_run.baseline.compare import compared
    from harness.errors import CannotTry
    from harness.report.html.inputs import read_inputs
    from harness.report.html.page import write_page

    folder, fallback = _baselines(config)
    try:
        inputs = read_inputs([Path(record) for record in config.stash[RECORDS]])
        if not inputs:
            return f"{output} is not written: no test of this session ran a recipe"
        for given in inputs:
            with suppress(CannotTry):
                compared(folder, given.content, fallback=fallback)
        write_page(inputs, output, baselines=folder, fallback=fallback)
    except CannotTry as error:
        return str(error)
    except OSError as error:
        return f"{output} could not be written ({error.strerror})"
    return f"written to {output}"


def _check_recipe(config: pytest.Config) -> None:
    from harness.errors import CannotTry

    try:
        _recipe(config)
    except CannotTry as error:
        raise pytest.UsageError(f"harness: {error}") from None


def _check_gpu_tests(session: pytest.Session) -> None:
    """No GPU test that was asked for is lost to ``--benchmark-only``, which skips what lacks the fixture ``benchmark``.

    Raises:
        UsageError: a GPU test would be skipped, and ``-m`` names the marker, or no other test is selected.
    """
    config = session.config
    gpu = [item for item in session.items if item.get_closest_marker("gpu")]
    asked_for = "gpu" in config.getoption("markexpr") or len(gpu) == len(session.items)
    lost = [item.nodeid for item in gpu if "benchmark" not in getattr(item, "fixturenames", ())]
    if lost and asked_for and config.getoption("benchmark_only", False):
        raise pytest.UsageError(
            f"--benchmark-only would skip {len(lost)} GPU tests, because they do not use the fixture benchmark: "
            f"{', '.join(lost[:3])}{', ...' if len(lost) > 3 else ''}; run their code through benchmark, or leave "
            "out --benchmark-only"
        )


def _no_gpu() -> str | None:
    import torch

    return None if torch.cuda.is_available() else "needs a CUDA device, torch.cuda.is_available() is false"


def _no_hub() -> str | None:
    from harness.documented_run.sources import hub

    return None if hub.reachable() else f"needs the hub, which did not answer within {hub.TIMEOUT:.0f} seconds"


def _failure(error: Exception) -> BaseException:
    """What could not run, as pytest shows it: one line without a traceback."""
    return pytest.fail.Exception(f"harness: {error}", pytrace=False)


def _given(config: pytest.Config, name: str) -> str | None:
    """What an option or a setting says; paths as they are seen from here."""
    if option := config.getoption(name):
        return _seen_from(config.invocation_params.dir, name, option)
    setting = config.getini(name)
    return _seen_from(config.rootpath, name, setting) if setting else None


def _seen_from(folder: Path, name: str, value: str) -> str:
    """The value, where it is a path as it is seen from here. A checkpoint may be a name on the hub."""
    if folder == Path.cwd() or name == "harness_loop":
        return value
    if name == "harness_recipe":
        file, colon, recipe = value.rpartition(":")
        return f"{folder / file}:{recipe}" if colon else value
    is_name = value == "built-in" or (name == "harness_checkpoint" and not (folder / value).exists())
    return value if is_name else str(folder / value)


def baselines_folder(config: pytest.Config) -> Path:
    """The folder of ``--harness-baselines``; else the one of the rootdir."""
    return config.rootpath / (_given(config, "harness_baselines") or "baselines")


def _baselines(config: pytest.Config) -> tuple[Path, Path | None]:
    """The folder of the baselines, and where else one is looked for: nowhere, if a folder was given."""
    from harness.documented_run.baseline.files import shipped_folder

    return baselines_folder(config), None if _given(config, "harness_baselines") else shipped_folder()


def _recipe(config: pytest.Config) -> Recipe:
    """The recipe that options and settings name.

    Raises:
        CannotTry: it cannot be loaded, or has a value that no run can have.
    """
    from harness.documented_run.recipe import DEFAULT_RECIPE, load_recipe

    return with_options(load_recipe(_given(config, "harness_recipe") or DEFAULT_RECIPE), config)


def with_options(recipe: Recipe, config: pytest.Config) -> Recipe:
    """The recipe with ``--harness-data``, ``-checkpoint`` and ``-loop`` put in.

    Raises:
        CannotTry: a value that no run can have.
    """
    from harness.documented_run import recipe as recipes

    return recipes.with_options(
        recipe,
        data=_given(config, "harness_data"),
        checkpoint=_given(config, "harness_checkpoint"),
        loop=_given(config, "harness_loop"),
    )


@pytest.fixture(scope="session")
def harness_recipe(pytestconfig: pytest.Config) -> Recipe:
    """The recipe named by ``--harness-recipe``, with ``--harness-data``, ``-checkpoint`` and ``-loop`` applied."""
    from harness.errors import CannotTry

    try:
        return _recipe(pytestconfig)
    except CannotTry as error:
        raise _failure(error) from None


@pytest.fixture(scope="session")
def harness_run_record(
    request: pytest.FixtureRequest, recipe: Recipe, tmp_path_factory: pytest.TempPathFactory
) -> RunRecord:
    """The record of one run of the recipe, which runs once per session, also under pytest-xdist.

    The run goes as far as the selected tests need: to the last stage of their checks, or to the end if a test asks for
    the record itself.
    """
    from harness.errors import CannotTry

    try:
        return _run_once(request, recipe, tmp_path_factory)
    except CannotTry as error:
        raise _failure(error) from None


def _run_once(request: pytest.FixtureRequest, recipe: Any, temporary: pytest.TempPathFactory) -> RunRecord:
    from filelock import FileLock

    from harness.documented_run.recipe import Recipe
    from harness.documented_run.record import RunRecord
    from harness.documented_run.run import run_recipe

    if not isinstance(recipe, Recipe):  # somebody else's fixture has the name
        recipe = request.getfixturevalue("harness_recipe")
    base = temporary.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base  # a worker of pytest-xdist has it
    path = shared / f"harness-run-{hashlib.sha256(repr(recipe).encode()).hexdigest()[:12]}.json"
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            record = run_recipe(recipe, until=_last_stage(request.session.items))
            if record.interrupted:
                raise KeyboardInterrupt
            record.write(path)
    request.config.stash[RECORDS][str(path)] = None
    return RunRecord.read(path)


def _selected(items: list[pytest.Item]) -> dict[str, pytest.Item]:
    """The tests of checks that will be run, by the check, in order."""
    asked = (item for item in items if "documented_check" in getattr(item, "fixturenames", ()))
    return {item.callspec.params["documented_check"]: item for item in asked}  # type: ignore[attr-defined]


def _last_stage(items: list[pytest.Item]) -> str | None:
    """The last stage that the selected tests look at; None, all stages, if one of them wants the record itself."""
    from harness.documented_run.stages import STAGES

    if any({"run_record", "harness_run_record"} & set(getattr(item, "fixturenames", ())) for item in items):
        return None
    wanted = {"load", *(check.partition("::")[0] for check in _selected(items))}
    return [stage.name for stage in STAGES if stage.name in wanted][-1]


@pytest.fixture
def harness_baseline(pytestconfig: pytest.Config) -> Callable[[RunRecord], None]:
    """Call it with a run record: the test passes if the run is as good as the recorded ones, else it fails with the
    reason.

    With ``--harness-update`` the run is added to a candidate instead, and the test is skipped; no test changes a
    baseline.
    """

    def must_be_as_good(record: RunRecord) -> None:
        __tracebackhide__ = True
        from harness.documented_run.baseline.compare import compared
        from harness.documented_run.baseline.stored import add
        from harness.errors import CannotTry
        from harness.report.baseline import verdict_lines

        folder, fallback = _baselines(pytestconfig)
        try:
            if pytestconfig.getoption("harness_update"):
                path = add(folder, record)
                pytest.skip(f"added to {path}; accept it with harness baseline accept {path.stem}")
            named = _given(pytestconfig, "harness_recipe")
            reasons = compared(folder, record, fallback=fallback, recipe=named)
        except CannotTry as error:
            raise _failure(error) from None
        if reasons:
            pytest.fail(f"harness: {reasons[0]}", pytrace=False)
        if any(verdict.outcome == "fails" for verdict in record.comparison):
            pytest.fail("\n".join(verdict_lines(record.comparison)), pytrace=False)

    return must_be_as_good


@pytest.fixture
def documented_check(request: pytest.FixtureRequest, recipe: Recipe) -> Callable[[], None]:
    """Call it: the test passes if the check held, is skipped if the check does not apply to the recipe, or fails.

    What ends the run fails in one test; those of the checks that it did not come to are skipped.
    """

    def must_hold() -> None:
        __tracebackhide__ = True
        selected = _selected(request.session.items)
        try:
            record = request.getfixturevalue("harness_run_record")
        except pytest.fail.Exception as failure:
            if request.node is next(iter(selected.values())):
                raise
            message = failure.msg
            record = None
        if record is None:
            pytest.skip(f"not reached: {message}")
        _must_hold(record, request, selected)

    return must_hold


def _must_hold(record: RunRecord, request: pytest.FixtureRequest, selected: dict[str, pytest.Item]) -> None:
    __tracebackhide__ = True
    outcomes = {each.check: each for each in record.checks}
    outcome = outcomes.get(request.param)
    if outcome is None:
        failed = list(dict.fromkeys(each.check for each in record.findings if each.severity == "error"))
        message = f"{request.param} was not reached: {', '.join(failed)} failed before"
        shown = any(check in selected for check in failed)
        first = next(item for check, item in selected.items() if check not in outcomes)
        if shown or request.node is not first:
            pytest.skip(message)
        pytest.fail(message, pytrace=False)  # its own test was not selected, and nothing else would tell
    if outcome.outcome == "not applicable":
        pytest.skip(f"not applicable: {outcome.reason}")
    if outcome.outcome == "fails":
        findings = [finding for finding in record.findings if finding.check == outcome.check]
        text = "\n".join(line for finding in findings for line in finding.lines())
        if any(finding.severity == "error" for finding in findings):
            pytest.fail(text, pytrace=False)
        request.node.warn(pytest.PytestWarning(text))


@pytest.fixture
def harness_watch() -> Callable[..., Any]:
    """``with watch(): ...`` fails the test with the silent bug in the training loop in its block, if there is one."""
    from harness.watch import watch

    return watch


@pytest.fixture
def harness_resume() -> Callable[..., ResumeReport]:
    """``resume("train.py", ["--epochs", "2"])`` kills the script, restarts it, and fails with what it lost.

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


@pytest.fixture
def harness_vary() -> Callable[..., VaryReport]:
    """``vary("train.py", ["--epochs", "2"])`` changes something irrelevant, and fails if the results change.

    Further arguments are those of :func:`harness.vary.run.vary_script`; it returns the report.
    """

    def must_not_matter(script: str, args: Sequence[str] = (), **options: Any) -> VaryReport:
        __tracebackhide__ = True
        from harness.errors import CannotTry
        from harness.report.vary import outcome_lines
        from harness.vary.run import vary_script

        try:
            report = vary_script(script, args, **options)
        except CannotTry as error:
            raise _failure(error) from None
        if report.findings:
            pytest.fail("\n".join(outcome_lines(report)), pytrace=False)
        return report

    return must_not_matter


@pytest.fixture
def harness_training(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """``training("sft")`` runs that ``[[tool.harness.training]]``, and fails if it differs from its baseline."""

    def must_do_the_same(name: str) -> None:
        __tracebackhide__ = True
        from harness.baseline import training_file, trainings
        from harness.errors import CannotTry
        from harness.report.trainings import verdict_lines
        from harness.settings import trainings as named

        try:
            folder, known = named(pytestconfig.rootpath)
            training = next((each for each in known if each.name == name), None)
            if training is None:
                raise CannotTry(f"pyproject.toml names no training {name}; it has {[each.name for each in known]}")
            stored = training_file.read(training_file.path_of(baselines_folder(pytestconfig), name), name)
            verdict = trainings.compare(training, folder, stored)
        except CannotTry as error:
            raise _failure(error) from None
        if verdict.failed:
            pytest.fail("\n".join(verdict_lines(verdict)), pytrace=False)

    return must_do_the_same


@pytest.fixture
def harness_taught() -> Callable[..., Any]:
    """:func:`harness.watch.taught`: ``with taught() as seen`` sees which tokens the training in the block teaches."""
    from harness.watch import taught

    return taught


SHORT_NAMES = {
    "recipe": harness_recipe,
    "run_record": harness_run_record,
    "baseline": harness_baseline,
    "watch": harness_watch,
    "resume": harness_resume,
    "vary": harness_vary,
    "taught": harness_taught,
    "training": harness_training,
}
