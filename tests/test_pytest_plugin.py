"""The plugin in a project of somebody else."""

from __future__ import annotations

import subprocess
import sys

import filelock  # noqa: F401
import pytest
import torch

import harness.report.terminal
import harness.run  # noqa: F401  # pytester forgets what is first imported in an inner session; torch minds that
from harness.findings import Finding
from harness.recipe import RECIPES, Recipe
from harness.resume import run as resume_run
from harness.sources import builtin, hub
from harness.stages import CHECKS, Run, columns

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
    source = f"from harness.recipe import Recipe\nsmall = {small!r}\n"
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


def test_contract_of_three_classes(project: pytest.Pytester, small: Recipe) -> None:
    three = RECIPES["tiny-three"].with_(name="three", data=small.data + "-three", epochs=1)
    rows = {"train": 48, "validation": 24, "test": 12}
    builtin.raw_datasets(seed=7, split_rows=rows, dataset=three.dataset).save_to_disk(three.data)
    project.makepyfile(mine=f"from harness.recipe import Recipe\nthree = {three!r}\n")
    result = run(project, "-v", "--recipe", "mine.py:three", "-k", "load:: or model:: or evaluate::")
    outcomes = result.parseoutcomes()
    assert outcomes.pop("deselected") > 0
    assert outcomes.keys() <= {"passed", "skipped", "warnings"}
    result.stdout.fnmatch_lines(["*test_documented?evaluate::metric-is-right? PASSED*"])


def test_ini_names_the_recipe(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nharness_recipe = mine.py:small\n")
    run(project, "-k", "columns::").assert_outcomes(passed=6, deselected=len(CHECKS) - 6)


def test_a_failing_check_shows_its_finding(project: pytest.Pytester) -> None:
    result = run(project, "--recipe", "mine.py:fake", "-k", "split-sizes or columns::completes")
    result.assert_outcomes(failed=2, deselected=len(CHECKS) - 2)
    result.stdout.fnmatch_lines(
        ["*error: load::split-sizes: The splits have*", "*expected  *3668*", "*observed  *60*", "*fix  *"]
    )
    result.stdout.fnmatch_lines(
        ["*columns::completes was not reached: load::split-sizes, load::first-* failed before*"]
    )


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
        (["--recipe", "huge"], "*unknown recipe 'huge': expected one of tiny, minilm, bert-base*"),
        (["--recipe", "mine.py:small", "--harness-data", "nowhere"], "*data folder nowhere not found*"),
        (["--recipe", "mine.py:small", "--harness-checkpoint", "./nowhere"], "*checkpoint folder ./nowhere not found*"),
    ],
)
def test_bad_input_is_one_clear_error(project: pytest.Pytester, arguments: list[str], message: str) -> None:
    result = run(project, *arguments, "-k", "tokenize::completes")
    assert result.ret != 0
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*During handling*")


@pytest.mark.slow
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
    result = run(pytester, "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*needs a CUDA device*"])


@pytest.mark.parametrize(("reachable", "outcome"), [(True, {"passed": 1}), (False, {"skipped": 1})])
def test_hub_tests_are_skipped_without_the_hub(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, reachable: bool, outcome: dict[str, int]
) -> None:
    monkeypatch.setattr(hub, "reachable", lambda: reachable)
    pytester.makepyfile("import pytest\n@pytest.mark.hub\ndef test_it():\n    pass\n")
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(**outcome)


def test_interrupt_ends_the_session(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(run: Run) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(columns.STAGE, "do", interrupt)
    result = run(project, "--recipe", "mine.py:small", "-k", "columns::", no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_markers_are_registered(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--markers")
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
    assert "harness.pytest_plugin" in result.stdout.split()


QUALITY = """
def test_quality(run_record, baseline):
    baseline(run_record)
"""


@pytest.mark.slow
def test_baseline_fixture(project: pytest.Pytester) -> None:
    """Without a baseline it fails; --harness-update only adds to a candidate; once accepted, the same run passes."""
    from harness.baseline import review, stored

    project.makepyfile(test_contract=QUALITY)
    arguments = ("--recipe", "mine.py:small", "-rs")
    missing = run(project, *arguments)
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(
        ["harness: no baseline *small-plain-cpu.json; record one with harness baseline record"]
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
    failed.stdout.fnmatch_lines(["*exact*fails*", "*small-plain-cpu.json, seed 42, curve, update 16*"])


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


def test_the_fixture_watch(pytester: pytest.Pytester) -> None:
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
    result.stdout.fnmatch_lines(["*gradients::not-cleared*"])


def test_resume(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
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
