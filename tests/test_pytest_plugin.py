"""The plugin in a project of somebody else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence

import filelock  # noqa: F401
import pytest
import torch

from harness.documented_run.recipe import RECIPES, Recipe
from harness.documented_run.sources import hub
from harness.documented_run.stages import CHECKS, Run, columns
from harness.findings import Finding
from harness.resume import run as resume_run
from harness.vary import run as vary_run
from scripts import corpus

pytest_plugins = ["pytester"]

CONTRACT = """
def test_documented(documented_check):
    documented_check()
"""


@pytest.fixture
def project(pytester: pytest.Pytester, small: Recipe, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with a recipe of its own and the contract as its only test."""
    for name in ("HARNESS_DATA", "HARNESS_CHECKPOINT", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    source = f"from harness.documented_run.recipe import Recipe\nsmall = {small!r}\n"
    pytester.makepyfile(mine=source + "fake = small.with_(dataset='glue/mrpc')\n")
    pytester.makepyfile(test_contract=CONTRACT)
    return pytester


def run(project: pytest.Pytester, *arguments: str, **options: bool) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", *arguments, **options)


def test_contract_of_an_own_recipe(project: pytest.Pytester) -> None:
    result = run(project, "-v", "-rs", "--recipe", "mine.py:small", "-k", "not train:: and not evaluate::")
    outcomes = result.parseoutcomes()
    assert outcomes.pop("deselected") > 0
    assert set(outcomes) == {"passed", "skipped"}
    result.stdout.fnmatch_lines(["*test_documented?tokenize::pairs-carry-token-type-ids? PASSED*"])
    result.stdout.fnmatch_lines(
        ["SKIPPED*not applicable: about dataset glue/mrpc or built-in/mrpc-shaped or glue/sst2; *"]
    )


@pytest.mark.slow
def test_contract_of_three_classes(project: pytest.Pytester, small: Recipe) -> None:
    assert small.data is not None
    three = RECIPES["tiny-three"].with_(name="three", data=small.data + "-three", epochs=1)
    rows = {"train": 48, "validation": 24, "test": 12}
    corpus.raw_datasets(seed=7, split_rows=rows, dataset=three.dataset).save_to_disk(three.data)
    project.makepyfile(mine=f"from harness.documented_run.recipe import Recipe\nthree = {three!r}\n")
    result = run(project, "-v", "--recipe", "mine.py:three", "-k", "load:: or model:: or evaluate::")
    outcomes = result.parseoutcomes()
    assert outcomes.pop("deselected") > 0
    assert outcomes.keys() <= {"passed", "skipped", "warnings"}
    result.stdout.fnmatch_lines(["*test_documented?evaluate::metric-is-right? PASSED*"])


def test_ini_names_the_recipe(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nharness_recipe = mine.py:small\n")
    run(project, "-k", "columns::").assert_outcomes(passed=6, deselected=len(CHECKS) - 6)


def test_paths_in_settings_are_seen_from_the_rootdir(
    project: pytest.Pytester, small: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert small.data is not None
    shutil.copytree(small.data, project.path / "corpus")
    project.makepyfile(
        mine=f"from harness.documented_run.recipe import Recipe\nsmall = {small.with_(data='elsewhere')!r}\n"
    )
    project.makeini("[pytest]\nharness_recipe = mine.py:small\nharness_data = corpus\n")
    project.mkdir("below")
    (project.path / "test_contract.py").rename(project.path / "below" / "test_contract.py")
    monkeypatch.chdir(project.path / "below")
    run(project, "-k", "columns::").assert_outcomes(passed=6, deselected=len(CHECKS) - 6)
    given = run(project, "--harness-recipe", "../mine.py:small", "-k", "columns::")
    given.assert_outcomes(passed=6, deselected=len(CHECKS) - 6)


def test_a_failing_check_shows_its_finding(project: pytest.Pytester) -> None:
    result = run(project, "-rs", "--recipe", "mine.py:fake", "-k", "split-sizes or columns::completes")
    result.assert_outcomes(failed=1, skipped=1, deselected=len(CHECKS) - 2)
    result.stdout.fnmatch_lines(
        ["*error: load::split-sizes: The splits do not have*", "*expected  *3668*", "*observed  *60*", "*fix  *"]
    )
    result.stdout.fnmatch_lines(["*columns::completes was not reached: load::split-sizes, load::first-* failed*"])
    result.stdout.no_fnmatch_line("*During handling*")


def test_what_failed_fails_one_of_the_tests_that_were_not_reached_where_its_own_is_not_selected(
    project: pytest.Pytester,
) -> None:
    result = run(project, "--recipe", "mine.py:fake", "-k", "columns::")
    result.assert_outcomes(failed=1, skipped=5, deselected=len(CHECKS) - 6)
    result.stdout.fnmatch_lines(["*columns::completes was not reached: load::split-sizes, load::first-* failed*"])
    result.stdout.no_fnmatch_line("*During handling*")


def test_only_the_stages_that_are_needed_are_run(project: pytest.Pytester) -> None:
    project.makeconftest(
        "def pytest_sessionfinish(session):\n"
        "    import json, pathlib\n"
        "    (path,) = pathlib.Path(session.config._tmp_path_factory.getbasetemp()).glob('harness-run-*.json')\n"
        "    print('\\nSTAGES', *json.loads(path.read_text())['seconds'])\n"
    )
    result = run(project, "-s", "--recipe", "mine.py:small", "-k", "tokenize::")
    result.stdout.fnmatch_lines(["STAGES load tokenize"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--recipe", "mine.py:small", "--harness-data", "nowhere"], "*data folder nowhere not found*"),
        (["--recipe", "mine.py:small", "--harness-checkpoint", "./nowhere"], "*checkpoint folder ./nowhere not found*"),
    ],
)
def test_bad_input_is_one_clear_error(project: pytest.Pytester, arguments: list[str], message: str) -> None:
    result = run(project, *arguments, "-k", "tokenize::completes")
    result.assert_outcomes(failed=1, deselected=len(CHECKS) - 1)
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*During handling*")


def test_bad_input_fails_in_one_test(project: pytest.Pytester) -> None:
    result = run(project, "--recipe", "mine.py:small", "--harness-data", "nowhere", "-rs", "-k", "tokenize:: or load::")
    outcomes = result.parseoutcomes()
    assert outcomes.pop("skipped") == len(CHECKS) - outcomes.pop("deselected") - 1
    assert outcomes == {"failed": 1}
    result.stdout.fnmatch_lines(["SKIPPED*not reached: harness: data folder nowhere not found*"])


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("huge", "unknown recipe 'huge': expected one of tiny, minilm, bert-base*"),
        ("nowhere.py:small", "recipe file nowhere.py not found"),
        ("mine.py:smaller", "mine.py has no recipe 'smaller'; recipes in that file: *"),
    ],
)
def test_a_recipe_that_cannot_be_loaded_is_one_usage_error(project: pytest.Pytester, recipe: str, message: str) -> None:
    result = run(project, "--harness-recipe", recipe)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: harness: {message}"])
    result.stdout.no_fnmatch_line("*FAILED*")
    project.makepyfile(test_contract="def test_other():\n    pass\n")
    run(project, "--harness-recipe", recipe).assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_recipe_that_cannot_be_loaded_is_one_usage_error_for_several_workers(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess("-n", "2", "--harness-recipe", "huge")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: harness: unknown recipe 'huge': *"])


@pytest.mark.nightly
def test_two_workers_share_one_run(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    project.makepyfile(
        test_record="import os, pytest\n"
        "@pytest.mark.parametrize('n', range(4))\n"
        "def test_record(run_record, n):\n"
        "    open(f'started-{os.getpid()}', 'w').write(run_record.started + str(run_record.curves.loss))\n"
    )
    result = project.runpytest_subprocess("-n", "2", "--recipe", "mine.py:small", "test_record.py")
    result.assert_outcomes(passed=4)
    assert len({path.read_text() for path in project.path.glob("started-*")}) == 1


def test_gpu_tests_are_skipped_with_a_reason(pytester: pytest.Pytester) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("about machines without a GPU")
    pytester.makepyfile("import pytest\n@pytest.mark.gpu\ndef test_it():\n    assert False\n")
    result = run(pytester, "-rs", "--harness-recipe", "tiny")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*needs a CUDA device*"])


FOREIGN = """
import pytest

@pytest.fixture
def recipe():
    return "flour, water"

@pytest.mark.gpu
def test_of_a_marker():
    pass

@pytest.mark.hub
def test_of_another():
    pass

def test_of_names(recipe, request):
    assert recipe == "flour, water"
    assert request.config.getoption("--recipe") == "bread"
"""
OPTION = "def pytest_addoption(parser):\n    parser.addoption('--recipe')\n"


@pytest.mark.slow
def test_nothing_changes_in_a_suite_that_does_not_use_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "reachable", lambda: False)
    pytester.makeconftest(OPTION)
    pytester.makepyfile(FOREIGN)
    run(pytester, "--recipe", "bread").assert_outcomes(passed=3)
    strict = pytester.runpytest_subprocess("--recipe", "bread", "--strict-markers")  # marks are known to a process
    strict.assert_outcomes(errors=1)
    strict.stdout.fnmatch_lines(["*'gpu' not found in `markers` configuration option*"])


def test_fixtures_of_other_plugins_keep_their_names(project: pytest.Pytester) -> None:
    project.makepyfile(
        cook="import pytest\n@pytest.fixture(scope='session')\ndef recipe():\n    return 'flour, water'\n"
        "@pytest.fixture\ndef watch():\n    return 'quartz'\n",
        test_names="def test_names(recipe, watch, harness_recipe, harness_watch):\n"
        "    assert (recipe, watch, harness_recipe.name) == ('flour, water', 'quartz', 'small')\n"
        "    assert harness_watch.__module__ == 'harness.watch'\n",
    )
    given = ("-p", "cook", "--harness-recipe", "mine.py:small", "-k", "test_names or columns::completes")
    project.syspathinsert()
    run(project, *given).assert_outcomes(passed=2, deselected=len(CHECKS) - 1)


@pytest.mark.parametrize(("reachable", "outcome"), [(True, {"passed": 1}), (False, {"skipped": 1})])
def test_hub_tests_are_skipped_without_the_hub(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, reachable: bool, outcome: dict[str, int]
) -> None:
    monkeypatch.setattr(hub, "reachable", lambda: reachable)
    pytester.makepyfile("import pytest\n@pytest.mark.hub\ndef test_it():\n    pass\n")
    run(pytester, "--harness-recipe", "tiny").assert_outcomes(**outcome)


def test_interrupt_ends_the_session(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(run: Run) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(columns.STAGE, "do", interrupt)
    result = run(project, "--recipe", "mine.py:small", "-k", "columns::", no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_markers_are_registered(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--markers", "--harness-recipe", "tiny")
    result.stdout.fnmatch_lines([f"@pytest.mark.{name}: *" for name in ("gpu", "slow", "hub", "distributed")])


def test_plugin_imports_nothing_heavy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys\n"
        "def test_it():\n"
        "    assert not {'torch', 'transformers', 'datasets', 'pydantic'} & set(sys.modules)\n"
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_plugin_is_registered() -> None:
    code = "from importlib.metadata import entry_points as e; print(*[p.value for p in e(group='pytest11')])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "full_training_harness" in result.stdout.split()


QUALITY = """
def test_quality(run_record, baseline):
    baseline(run_record)
"""


@pytest.mark.slow
def test_baseline_fixture(project: pytest.Pytester) -> None:
    """Without a baseline it fails; --harness-update only adds to a candidate; once accepted, the same run passes."""
    from harness.documented_run.baseline import review, stored

    project.makepyfile(test_contract=QUALITY)
    arguments = ("--recipe", "mine.py:small", "-rs")
    missing = run(project, *arguments)
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(
        ["harness: no baseline *small-plain-cpu.json; record one with harness baseline record --recipe mine.py:small"]
    )
    updated = run(project, *arguments, "--harness-update")
    updated.assert_outcomes(skipped=1)
    updated.stdout.fnmatch_lines(
        ["SKIPPED*added to *candidates*; accept it with harness baseline accept small-plain-cpu"]
    )
    folder = project.path / "baselines"
    assert not (folder / "small-plain-cpu.json").exists()
    candidate = stored.Baseline.read(folder / "candidates" / "small-plain-cpu.json")
    candidate.runs.append(candidate.runs[0].model_copy(update={"seed": 43}))
    candidate.write(folder / "candidates" / "small-plain-cpu.json")
    review.accept(folder, "small-plain-cpu", "a test")
    run(project, *arguments).assert_outcomes(passed=1)
    accepted = stored.Baseline.read(folder / "small-plain-cpu.json")
    accepted.runs[0].curve[-1] += 1e-9
    accepted.write(folder / "small-plain-cpu.json")
    failed = run(project, *arguments)
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*same seed*fails*", "*small-plain-cpu.json, seed 42, curve, update 16*"])


GPU_TESTS = """
import pytest

@pytest.mark.gpu
def test_with(benchmark):
    benchmark(lambda: None)

@pytest.mark.gpu
def test_without():
    assert False

def test_other():
    pass
"""


def test_a_gpu_test_that_benchmark_only_would_skip_is_an_error(project: pytest.Pytester) -> None:
    """pytest-benchmark skips what lacks its fixture and says nothing: ``assert False`` would pass for a green run."""
    project.makeini("[pytest]\nharness_recipe = mine.py:small\n")
    project.makepyfile(test_contract="", test_gpu=GPU_TESTS)
    lost = run(project, "-m", "gpu", "--benchmark-only")
    assert lost.ret == pytest.ExitCode.USAGE_ERROR
    lost.stderr.fnmatch_lines(["ERROR: --benchmark-only would skip 1 GPU tests, *: test_gpu.py::test_without; *"])
    for arguments in (("-m", "gpu", "--benchmark-only", "-k", "with and not without"), ("--benchmark-only",)):
        assert run(project, *arguments).ret == pytest.ExitCode.OK, "nothing is lost, or GPU tests were not asked for"
    only_gpu = run(project, "--benchmark-only", "-k", "without")
    assert only_gpu.ret == pytest.ExitCode.USAGE_ERROR, "nothing else is selected"
    assert run(project, "--benchmark-only", "-m", "not hub").ret == pytest.ExitCode.OK
    outcomes = {"passed": 1, "failed": 1} if torch.cuda.is_available() else {"skipped": 2}
    run(project, "-m", "gpu").assert_outcomes(deselected=1, **outcomes)


def test_the_fixture_watch(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # the summary is cut to the terminal's width
    pytester.makepyfile(
        """
        import torch

        def test_loop(watch):
            model = torch.nn.Linear(2, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with watch():
                for _ in range(3):
                    model(torch.ones(1, 2)).sum().backward()
                    optimizer.step()
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">       with watch():*",
            "E       harness.watch.SilentBug: gradients::not-cleared at *test_the_fixture_watch.py:9, update 3",
            "FAILED *test_loop - harness.watch.SilentBug: gradients::not-cleared at *",
        ]
    )
    result.stdout.no_fnmatch_line("*harness/watch/__init__.py*")
    result.stdout.no_fnmatch_line("*contextlib*")


def test_the_fixture_vary(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    def vary(script: str, arguments: Sequence[str] = (), *, select: Sequence[str] = ()) -> vary_run.VaryReport:
        found = Finding("the same", "another", "look", check="depends::on-workers", message="It is another.")
        report = vary_run.VaryReport(script, seconds={"one start": 1.0, "in all": 3.0})
        report.findings = [found] if select else []
        return report

    monkeypatch.setattr(vary_run, "vary_script", vary)
    pytester.makepyfile(
        """
        def test_holds(vary):
            assert vary("train.py", ["--epochs", "1"]).script == "train.py"

        def test_is_broken(vary):
            vary("train.py", select=["depends"])
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*depends::on-workers: It is another.*"])


def test_the_fixture_resume(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails with what was lost, and returns the report."""
    report = resume_run.ResumeReport("train.py", seconds={"uninterrupted": 1.0, "in all": 5.0})
    lost = Finding("to go on", "it begins anew", "save it", check="resume::began-anew", severity="error", message="No.")
    given = []

    def resume_script(script: str, args: list[str], **options: object) -> resume_run.ResumeReport:
        given.append((script, args, options))
        report.findings = [lost] if "--lose" in args else []
        return report

    monkeypatch.setattr(resume_run, "resume_script", resume_script)
    pytester.makepyfile(
        """
        def test_survives(resume):
            assert resume("train.py", count=4).script == "train.py"

        def test_loses(resume):
            resume("train.py", ["--lose"])
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*error: resume::began-anew: No.*"])
    assert given == [("train.py", (), {"count": 4}), ("train.py", ["--lose"], {})]


@pytest.mark.parametrize("given", ["option", "setting"])
def test_a_page_of_the_sessions_runs_is_written(project: pytest.Pytester, given: str) -> None:
    options = ["--harness-report", "found.html"] if given == "option" else []
    if given == "setting":
        project.makeini("[pytest]\nharness_report = found.html")
    result = run(project, "--recipe", "mine.py:fake", *options, "-k", "load::")
    result.stdout.fnmatch_lines(["harness: written to *found.html"])
    found = (project.path / "found.html").read_text(encoding="utf-8")
    assert "small, plain loop, seed 42" in found
    assert "load::split-sizes" in found


def test_a_page_that_cannot_be_written_fails_no_test(project: pytest.Pytester) -> None:
    result = run(
        project, "--recipe", "mine.py:small", "--harness-report", "nowhere/found.html", "-k", "load::completes"
    )
    result.assert_outcomes(passed=1, deselected=len(CHECKS) - 1)
    result.stdout.fnmatch_lines(["harness: *nowhere/found.html could not be written (No such file or directory)"])
    assert result.ret == 0


def test_a_session_without_a_run_has_no_page(project: pytest.Pytester) -> None:
    project.makepyfile(test_contract="def test_it():\n    pass\n")
    result = run(project, "--harness-report", "found.html")
    result.stdout.fnmatch_lines(["harness: *found.html is not written: no test of this session ran a recipe"])
    assert not (project.path / "found.html").exists()


@pytest.mark.nightly
def test_workers_tell_of_their_runs(project: pytest.Pytester) -> None:
    options = ("--recipe", "mine.py:small", "--harness-report", "found.html", "-k", "load::")
    result = project.runpytest_subprocess("-n", "2", *options)
    assert result.ret == 0
    assert (project.path / "found.html").exists()


def test_a_recipe_without_a_test_says_what_to_add(project: pytest.Pytester) -> None:
    (project.path / "test_contract.py").unlink()
    result = run(project, "--recipe", "mine.py:small")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(
        ["harness: no test asks for the run of mine.py:small; add a file test_documented.py with"]
    )
    project.makepyfile(test_contract=CONTRACT)
    asked = run(project, "--recipe", "mine.py:small", "--collect-only", "-q")
    assert "no test asks" not in asked.stdout.str()
