"""``harness check`` as a user meets it: scripts that train, and scripts that do something else."""

from __future__ import annotations

import gc
import json
import textwrap
import zipfile
from pathlib import Path
from typing import Any, Protocol

import pytest

from harness import catalogue
from harness.watch.locate import Locator
from harness.watch.running import run_as_main
from harness.watch.session import MOST_STOPS
from tests.server import Done, server_of

TRAINS = """
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows, features = int(sys.argv[1]) if len(sys.argv) > 1 else 64, 4
data = TensorDataset(torch.randn(rows, features), torch.arange(rows) % 2)
loader = DataLoader(data, batch_size=4, shuffle=True)
model = torch.nn.Linear(features, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(2):
    for inputs, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
print("batches", len(loader))
"""

SILENT = TRAINS.replace("        optimizer.zero_grad()\n", "")


class Checked:
    """What ``harness check`` came to."""

    def __init__(self, done: Done, written: dict[str, Any] | None) -> None:
        self.status, self.stdout, self.stderr, self.written = done.status, done.stdout, done.stderr, written

    @property
    def found(self) -> dict[str, Any]:
        assert self.written is not None
        return self.written

    @property
    def checks(self) -> list[str]:
        return [each["check"] for each in self.found["findings"]]


class Check(Protocol):
    def __call__(
        self, text: str | None, *options: str, arguments: tuple[str, ...] = ..., name: str = ..., alone: bool = ...
    ) -> Checked: ...


@pytest.fixture
def check(tmp_path: Path, pytestconfig: pytest.Config) -> Check:
    """Write a script, and check it with options before and arguments behind its name, alone in a process or not."""

    def run(
        text: str | None, *options: str, arguments: tuple[str, ...] = (), name: str = "train.py", alone: bool = False
    ) -> Checked:
        if text is not None:
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(text))
        command = ("check", "--json", "found.json", *options, name, *arguments)
        done = server_of(pytestconfig).run(tmp_path, *command, together="" if alone else "watched")
        file = tmp_path / "found.json"
        return Checked(done, json.loads(file.read_text()) if file.exists() else None)

    return run


def refused(checked: Checked, message: str) -> None:
    """Exit status 2, one sentence on stderr, no traceback, nothing written."""
    assert checked.status == 2, checked.stdout + checked.stderr
    assert message in checked.stderr
    assert "Traceback" not in checked.stderr
    assert checked.written is None


def test_a_right_loop(check: Check) -> None:
    checked = check(TRAINS)
    assert checked.status == 0, checked.stderr
    assert "train.py: nothing found in 32 updates" in checked.stderr
    assert (checked.found["schema"], checked.found["kind"]) == (3, "check")
    assert checked.found["updates"] == 32
    assert checked.found["findings"] == []


def test_a_silent_bug_is_named_with_line_update_and_remedy(check: Check) -> None:
    checked = check(SILENT)
    assert checked.status == 1
    (finding,) = checked.found["findings"]
    line = SILENT.splitlines().index("        optimizer.step()") + 1
    expected = {"check": "gradients::not-cleared", "severity": "error", "update": 2}
    assert finding.items() >= {**expected, "where": f"train.py:{line}"}.items()
    keys = {"check", "severity", "update", "where", "message", "expected", "observed", "hint", "explained_by"}
    assert set(finding) == keys
    assert "zero_grad" in finding["hint"]
    assert "error: gradients::not-cleared" in checked.stderr


def test_ignored_checks_are_said_and_do_not_count(check: Check) -> None:
    checked = check(SILENT, "--ignore", "gradients::not-cleared")
    assert checked.status == 0
    assert "ignored: gradients::not-cleared found something" in checked.stderr
    assert checked.checks == []
    assert checked.found["ignored"] == ["gradients::not-cleared"]


def test_a_check_that_does_not_exist_cannot_be_ignored(check: Check) -> None:
    refused(check(TRAINS, "--ignore", "gradients::cleared"), "did you mean gradients::not-cleared?")


def test_long_passes_are_shortened_and_keep_their_length(check: Check) -> None:
    shortened = check(TRAINS, arguments=("4000",))
    assert shortened.status == 0, shortened.stderr
    assert "batches 1000" in shortened.stdout
    assert shortened.found["updates"] == 32
    assert shortened.found["shortened"]
    assert "long epochs were cut" in shortened.stderr
    full = check(TRAINS, "--full", arguments=("4000",))
    assert full.found["updates"] == 2000
    assert not full.found["shortened"]


def test_updates_end_the_script(check: Check) -> None:
    checked = check(TRAINS, "--updates", "5")
    assert checked.status == 0, checked.stderr
    assert checked.found["updates"] == 5
    assert "batches" not in checked.stdout


def test_a_schedule_is_judged_by_its_plan(check: Check) -> None:
    """Of 2000 updates 32 are made; what happens at the end follows from the plan."""
    scheduled = TRAINS.replace(
        "for epoch", "scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, TOTAL)\nfor epoch"
    ).replace("        optimizer.zero_grad()", "        scheduler.step()\n        optimizer.zero_grad()")
    assert check(scheduled.replace("TOTAL", "2000"), arguments=("4000",)).checks == []
    early = check(scheduled.replace("TOTAL", "1000"), arguments=("4000",))
    assert early.checks == ["schedule::wrong-length"]
    assert "the schedule is over after 1000 of 2000 steps" in early.stderr


def test_what_was_to_come_is_not_missed(check: Check) -> None:
    """A script that is ended, or ends with an error, has not planned too much or left its evaluation early."""
    scheduled = TRAINS.replace(
        "for epoch", "scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, 32)\nfor epoch"
    ).replace("        optimizer.zero_grad()", "        scheduler.step()\n        optimizer.zero_grad()")
    assert check(scheduled, "--updates", "5").checks == []
    crashed = check(
        scheduled.replace(
            'print("batches", len(loader))', "for _ in zip(loader, range(1)):\n    model(inputs)\n    1 / 0"
        )
    )
    assert crashed.status == 3
    assert crashed.checks == []
    assert "train.py: crashed after 32 updates; until then nothing found; " in crashed.stderr


def test_there_is_no_such_script(check: Check) -> None:
    refused(check(None, name="absent.py"), "there is no script absent.py")


def test_a_module_is_to_be_named_as_one(check: Check, tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    relative = check("from .model import build\n", name="pkg/train.py")
    assert relative.status == 3
    assert "start a module of a package by its name: write -m pkg.train\n" in relative.stderr
    (tmp_path / "found.json").unlink()
    refused(
        check(None, name="pkg.train"), "there is no script pkg.train; for the module of that name write -m pkg.train"
    )


def test_a_script_that_a_launcher_is_to_start(check: Check) -> None:
    crashed = check("import os\nrank = int(os.environ['RANK'])\n")
    assert "it needs a launcher that sets RANK and other variables: use --processes 2\n" in crashed.stderr


def test_not_python(check: Check) -> None:
    refused(check("for x in:\n"), "train.py is not Python, line 1")
    refused(check("\0\1"), "train.py is not Python")


def test_a_file_that_cannot_be_written(check: Check) -> None:
    refused(check(TRAINS, "--json", "/proc/found.json"), "/proc/found.json cannot be written")


def test_a_script_that_exits(check: Check) -> None:
    checked = check(SILENT + "sys.exit(3)\n")
    assert checked.status == 3
    assert "train.py ended itself with sys.exit(3)" in checked.stderr
    assert "train.py: ended itself with sys.exit(3) after 32 updates; until then 1 error; " in checked.stderr
    assert checked.checks == ["gradients::not-cleared"]
    assert check(TRAINS + "sys.exit(0)\n").status == 0


def test_a_script_that_raises_in_the_middle(check: Check) -> None:
    checked = check(SILENT.replace('print("batches", len(loader))', 'raise RuntimeError("disk full")'))
    assert checked.status == 3
    assert "RuntimeError: disk full" in checked.stderr
    assert checked.stderr.count('File "') == 1, "the script's own traceback, without what ran it"
    assert checked.checks == ["gradients::not-cleared"]


def test_a_script_that_never_trains(check: Check) -> None:
    refused(check("print('no training')"), "train.py made no optimizer step in this process")


NEVER_USED = """import torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(4, 2))
"""


def test_an_optimizer_that_is_never_used_is_not_nothing_found(check: Check) -> None:
    says = "train.py made an optimizer (train.py:3), but no backward pass and no step with it"
    refused(check(NEVER_USED), says)


def test_a_script_that_only_evaluates_keeps_its_verdict(check: Check) -> None:
    done = check(NEVER_USED.replace("optimizer =", "#"))
    assert done.status == 0, done.stderr
    assert "no optimizer made a step, so only the calls of the model were checked" in done.stderr


@pytest.mark.parametrize("with_optimizer", [False, True])
def test_what_it_continued_from_is_named(with_optimizer: bool, check: Check) -> None:
    text = NEVER_USED + "torch.save(model.state_dict(), 'last.pt'); model.load_state_dict(torch.load('last.pt'))\n"
    done = check(text if with_optimizer else text.replace("optimizer =", "#"))
    says = "train.py made no update: it continued from last.pt (train.py:5), which seems to be of a finished run"
    assert (says in done.stderr) is with_optimizer


def test_a_script_that_trains_in_a_subprocess(check: Check) -> None:
    refused(check("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'pass'])"), "a separate process")


def test_a_script_that_trains_in_a_thread(check: Check) -> None:
    body = textwrap.indent(SILENT, "    ")
    threaded = (
        f"import threading\ndef work():\n{body}\nthread = threading.Thread(target=work)\nthread.start()\nthread.join()"
    )
    assert check(threaded).checks == ["gradients::not-cleared"]


def test_a_script_that_catches_everything(check: Check) -> None:
    """Neither ``--updates`` nor a finding can be swallowed."""
    body = textwrap.indent(SILENT, "    ")
    checked = check(f"try:\n{body}\nexcept BaseException:\n    pass\nprint('swallowed')", "--updates", "3")
    assert checked.checks == ["gradients::not-cleared"]
    assert checked.found["updates"] == 3
    assert "swallowed" in checked.stdout


def test_arguments_are_the_scripts_own(check: Check) -> None:
    asks = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--updates', required=True)\np.parse_args()\n"
    )
    with_arguments = asks + TRAINS.replace("len(sys.argv) > 1", "False")
    assert check(with_arguments, arguments=("--updates", "7")).status == 0
    without = check(with_arguments)
    assert without.status == 3
    assert "train.py ended itself with sys.exit(2)" in without.stderr


def test_a_script_that_replaces_its_arguments(check: Check) -> None:
    assert check("import sys\nsys.argv = ['other', '32']\n" + TRAINS).found["updates"] == 16


def test_a_module_of_a_package(check: Check, tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text("from pkg import __name__ as parent\n" + SILENT)
    checked = check(None, "-m", name="pkg.train")
    assert checked.checks == ["gradients::not-cleared"]
    assert checked.found["findings"][0]["where"].startswith("pkg/train.py:")
    (tmp_path / "found.json").unlink()
    refused(check(None, "-m", name="pkg.absent"), "there is no module pkg.absent to run")


def test_warnings_alone_are_no_failure(check: Check) -> None:
    pulled = TRAINS.replace("optimizer.step()", "optimizer.step()\n        model.weight.data.mul_(0.9)")
    checked = check(pulled)
    assert checked.checks == ["parameters::modified-outside-optimizer"]
    assert checked.status == 0
    assert "1 warning" in checked.stderr


def test_findings_go_to_stderr_and_the_scripts_output_stays_its_own(check: Check) -> None:
    assert check(SILENT).stdout == "batches 16\n"


def test_a_script_that_only_evaluates_is_judged_by_that(check: Check) -> None:
    calls = "import torch\nmodel = torch.nn.Linear(4, 2).eval()\nwith torch.no_grad():\n    model(torch.randn(8, 4))\n"
    checked = check(calls)
    assert (checked.status, checked.checks, checked.found["updates"]) == (0, [], 0)
    assert "note: no optimizer made a step" in checked.stderr


def test_sigterm_gives_the_verdict(check: Check) -> None:
    """As Ctrl-C does; a process that the script forked ends by the signal, as it would alone."""
    forks = "child = os.fork()\nif not child:\n    time.sleep(60)\n    os._exit(1)\ntime.sleep(0.5)\n"
    ends = "os.kill(child, signal.SIGTERM)\nassert os.waitpid(child, 0)[1] == signal.SIGTERM\n"
    terminates = "os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)\n"
    checked = check(f"import os, signal, time\n{SILENT}\n{forks}{ends}{terminates}")
    assert (checked.status, checked.checks) == (3, ["gradients::not-cleared"])
    assert "train.py: was interrupted after 32 updates; until then 1 error; " in checked.stderr


def test_a_zip_file_is_run_as_python_runs_it(check: Check, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as app:
        app.writestr("__main__.py", SILENT)
    assert check(None, name="app.zip").checks == ["gradients::not-cleared"]
    zipfile.ZipFile(tmp_path / "empty.zip", "w").close()
    (tmp_path / "found.json").unlink()
    refused(check(None, name="empty.zip"), "empty.zip is a zip file without a __main__.py")
    refused(check(None, name=""), "SCRIPT is empty")


def test_families_former_ids_and_comments(check: Check, tmp_path: Path) -> None:
    assert check(SILENT, "--ignore", "memory,gradients").checks == []
    assert check(SILENT, "--ignore", "gradients::cleared-between-updates").checks == []
    assert check(SILENT, "--select", "loss", "--select", "memory").checks == []
    assert check(SILENT, "--select", "gradients").checks == ["gradients::not-cleared"]
    commented = check(SILENT.replace("optimizer.step()", "optimizer.step()  # harness: ignore[gradients]"))
    assert commented.checks == []
    assert commented.found["ignored"] == ["gradients::not-cleared"]
    (tmp_path / "pyproject.toml").write_text('[tool.harness]\nignore = ["gradients"]\n')
    assert check(SILENT).checks == []
    (tmp_path / "pyproject.toml").write_text('[tool.harness]\nignores = ["gradients"]\n')
    (tmp_path / "found.json").unlink()
    refused(check(SILENT), "unknown key 'ignores'; did you mean ignore?")


FAULTY = """
import gc
from harness.watch.facts.graphs import Graphs

(graphs,) = (each for each in gc.get_objects() if isinstance(each, Graphs))
del graphs._graphs
"""


def test_a_check_that_fails_itself_makes_the_verdict_incomplete(check: Check) -> None:
    """Nothing found is not said, and the exit status is 2, unless an error was found."""
    checked = check(FAULTY + TRAINS, alone=True)
    assert checked.status == 2
    assert "nothing found" not in checked.stderr
    assert "1 check crashed in 32 updates" in checked.stderr
    (lacking,) = checked.found["not_looked_at"]
    assert lacking["check"] == "memory::graphs-kept"
    assert "AttributeError: 'Graphs' object has no attribute '_graphs' (graphs.py:" in lacking["why"]
    assert f"not judged: memory::graphs-kept: {lacking['why']}" in checked.stderr
    silent = check(FAULTY + SILENT, alone=True)
    assert silent.status == 1
    assert silent.checks == ["gradients::not-cleared"]


KEEPS = TRAINS.replace(
    "        loss.backward()\n", "        losses = [*losses, loss]\n        loss.backward()\n"
).replace("for epoch", "losses = []\nfor epoch")
"""Wastes memory, and its results are right."""


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--strict",), 1)])
def test_warnings_count_where_that_is_asked_for(check: Check, options: tuple[str, ...], status: int) -> None:
    checked = check(KEEPS, *options)
    assert checked.checks == ["memory::graphs-kept"]
    assert checked.found["findings"][0]["severity"] == "warning"
    assert checked.status == status
    assert check(TRAINS, *options).status == 0


def test_the_watch_takes_nothing_of_the_scripts_limit_on_recursion(check: Check) -> None:
    deep = """
def depth(n):
    return n and 1 + depth(n - 1)

sys.setrecursionlimit(150)
print("depth", depth(140))
sys.setrecursionlimit(1000)
"""
    checked = check(TRAINS + deep)
    assert checked.status == 0, checked.stderr
    assert "depth 140" in checked.stdout
    assert "RecursionError" in check(TRAINS + deep.replace("140", "400")).stderr


def test_a_script_that_uses_a_signal_as_its_budget(check: Check) -> None:
    """What its handler raises ends the loop wherever it comes, and the script goes on."""
    budget = """
    import signal

    class TimeUp(Exception):
        pass

    def ring(number, frame):
        raise TimeUp

    signal.signal(signal.SIGALRM, ring)
    armed = []
    """
    body = TRAINS.replace("range(2)", "range(10**6)").replace(
        "        optimizer.zero_grad()",
        "        optimizer.zero_grad()\n        armed or armed.append(signal.setitimer(signal.ITIMER_REAL, 0.5))",
    )
    trains = (
        textwrap.dedent(budget) + "try:\n" + textwrap.indent(body, "    ") + "\nexcept TimeUp:\n    print('time up')\n"
    )
    for _ in range(3):
        checked = check(trains)
        assert checked.status == 0, checked.stderr
        assert "time up" in checked.stdout
        assert checked.found["not_looked_at"] == []


OUTLINED = (
    TRAINS
    + """
model.bias.requires_grad_(False)
unseen = DataLoader(TensorDataset(torch.ones(6, features), torch.arange(6) % 2), batch_size=4)
with torch.no_grad():
    print(sum(int((model(inputs).argmax(1) == labels).sum()) for inputs, labels in unseen) / 6)
torch.save(model.state_dict(), "model.pt")
torch.save(optimizer.state_dict(), "optimizer.pt")
"""
)


def test_what_ran_is_said_in_three_lines(check: Check) -> None:
    checked = check(OUTLINED)
    did = {
        "data": "trains on 64 rows (train.py:13), scores 6 rows (train.py:23)",
        "trained": "Linear: 10 parameters; 32 steps of AdamW",
        "scored": "Linear: 6 rows, after update 32; saved: model.pt after update 32, optimizer.pt after update 32",
    }
    assert checked.found["did"] == did
    assert [line for line in checked.stderr.splitlines() if line[2:10].strip() in did] == [
        f"  {what:<10}{said}" for what, said in did.items()
    ]


def test_parts_that_a_method_calls_are_their_model(check: Check) -> None:
    asked = """
    class Ranker(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.items, self.score = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 1)

        def forward(self, given):
            return self.score(self.items(given))

        @torch.no_grad()
        def best(self, given):
            return self.score(self.items(given)).argmax()

    model = Ranker()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randint(9, (8,))).square().mean().backward()
        optimizer.step()
    print(model.best(torch.arange(9)))
    """
    checked = check("import torch\n" + textwrap.dedent(asked))
    assert checked.found["did"]["scored"] == "Ranker: 9 rows, after update 3; saved: nothing"


def test_what_was_looked_at(check: Check) -> None:
    """Every check passed, or did not apply, and why; or it found something."""
    right, silent = check(TRAINS), check(SILENT)
    for checked in (right, silent):
        found = checked.found
        lacking = {check: each["why"] for each in found["did_not_apply"] for check in each["checks"]}
        assert sorted([*found["held"], *lacking, *checked.checks]) == sorted(catalogue.checks())
        said = f"  {len(found['held'])} checks passed; {len(lacking)} did not apply, among them every check of "
        assert f"{said}metrics, mode, model, ranks, saved, settings; not seen: " in checked.stderr
        assert lacking["schedule::wrong-length"] == "no learning rate scheduler was seen"
        assert lacking["mode::training-in-eval-mode"] == "no module of dropout or normalisation was seen"
    assert "gradients::not-cleared" in right.found["held"]
    assert "rows::labels-of-other-rows" in right.found["held"]
    workers = check(TRAINS.replace("shuffle=True", "shuffle=True, num_workers=1")).found["did_not_apply"]
    (unseen,) = [each["checks"] for each in workers if each["why"] == "samples are made in workers"]
    assert "rows::labels-of-other-rows" in unseen
    selected = check(TRAINS, "--select", "loss::not-finite,ranks::rows-shared,ranks::weights-differ")
    assert selected.found["held"] == ["loss::not-finite"]
    assert (
        "1 check passed; 2 did not apply, among them every check of ranks; not seen: second process (2); -v lists them"
        in selected.stderr
    )


def test_the_line_at_fault_is_shown(check: Check) -> None:
    checked = check(SILENT)
    assert "where     train.py:16, update 2\n" in checked.stderr
    assert (
        "\n                15 |         loss.backward()\n              > 16 |         optimizer.step()\n"
        in checked.stderr
    )
    moved = check("import os\nos.makedirs('elsewhere', exist_ok=True)\nos.chdir('elsewhere')\n" + SILENT)
    assert "> 19 |         optimizer.step()\n" in moved.stderr


def test_a_script_that_leaves_its_process_at_once(check: Check) -> None:
    """Where nothing behind it is executed, the verdict comes before."""
    left = check(SILENT + "import os\nprint('left', flush=True)\nos._exit(0)\n")
    assert left.status == 1
    assert "left" in left.stdout
    assert left.checks == ["gradients::not-cleared"]
    assert left.stderr.count("train.py: 1 error in 32 updates") == 1
    failed = check(TRAINS + "import os\nos._exit(3)\n")
    assert failed.status == 3
    assert "train.py ended itself with os._exit(3)" in failed.stderr
    untrained = check("import os\nos._exit(0)\n", "--json", "other.json")
    assert untrained.status == 2
    assert "train.py made no optimizer step" in untrained.stderr
    replaced = check(SILENT + "import os\nos.execv(sys.executable, [sys.executable, '-c', 'print(41 + 1)'])\n")
    assert replaced.status == 0
    assert "42" in replaced.stdout
    assert replaced.checks == ["gradients::not-cleared"]


def test_a_script_that_forks(check: Check) -> None:
    """One verdict; the other process ends as it would by itself."""
    forks = SILENT + textwrap.dedent("""
    import os
    child = os.fork()
    optimizer.step()
    if child == 0:
        {ends}
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    for ends, status in (("sys.exit(5)", 5), ("raise RuntimeError", 1)):
        checked = check(forks.format(ends=ends), alone=True)
        assert checked.status == 1
        assert f"child {status}" in checked.stdout
        assert checked.stderr.count("train.py: 2 errors in ") == 1  # in the step of the loop, and in that behind it


def test_a_thread_that_the_script_does_not_join(check: Check) -> None:
    """Python waits for it before it exits, and so does the verdict; for daemons and idle workers nobody waits."""
    body = textwrap.indent(SILENT, "    ")
    threaded = f"import threading\ndef work():\n{body}\nthreading.Thread(target=work).start()\n"
    assert check(threaded).checks == ["gradients::not-cleared"]
    daemon = check(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\npool.submit(print, 1)\n"
        + TRAINS
    )
    assert daemon.status == 0


def test_a_script_that_goes_on_for_ever_after_its_end(check: Check) -> None:
    body = textwrap.indent(SILENT, "        ")
    checked = check(f"while True:\n    try:\n{body}\n    except:\n        print('again')\n", "--updates", "3")
    assert checked.status == 1
    assert checked.found["updates"] == 3
    assert checked.stdout.count("again") == 1 + MOST_STOPS


def test_a_crash_in_a_shortened_run_may_be_due_to_that(check: Check) -> None:
    """len() stays what it is, and the passes are shorter."""
    counted = TRAINS.replace(
        "for inputs, labels in loader:",
        "it = iter(loader)\n    for _ in range(len(loader)):\n        inputs, labels = next(it)",
    )
    checked = check(counted, arguments=("400",))
    if checked.status == 3:
        assert "note: long passes over a DataLoader were shortened" in checked.stderr
        assert "try --full" in checked.stderr
    assert check(counted, "--full", arguments=("400",)).status == 0
    failed = check(TRAINS + "raise RuntimeError('by itself')\n", arguments=("400",))
    assert "try --full" in failed.stderr
    assert "try --full" not in check(TRAINS + "raise RuntimeError('by itself')\n").stderr


def test_a_script_that_takes_out_what_finds_its_imports(check: Check) -> None:
    finders = "sys.meta_path[:] = [each for each in sys.meta_path if 'harness' not in type(each).__module__]\n"
    assert check(SILENT + finders).checks == ["gradients::not-cleared"]


def test_a_script_that_writes_its_updates_itself(check: Check) -> None:
    """It is watched as far as it goes, and that no optimizer was is said."""
    by_hand = TRAINS.replace("optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)\n", "").replace(
        "        optimizer.step()\n        optimizer.zero_grad()\n",
        "        with torch.no_grad():\n            for p in model.parameters():\n                p -= 1e-2 * p.grad\n"
        "        model.zero_grad()\n",
    )
    checked = check(by_hand)
    assert checked.status == 0, checked.stderr
    assert "note: updates are made without an optimizer of torch" in checked.stderr
    assert "loss::not-finite" in checked.found["held"]
    assert "gradients::cut-off" not in checked.found["held"]


@pytest.mark.parametrize("end", ["", "raise SystemExit(1)", "1 / 0"])
def test_what_a_script_defined_is_kept_as_python_does(end: str, tmp_path: Path) -> None:
    """A DataLoader's iterator that is collected before its process ends waits 5 seconds for each of its workers."""
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "class Left:\n"
        "    def __del__(self, path=Path(__file__).with_name('gone')):\n"
        "        path.touch()\n"
        "left = Left()\n"
        "def refers_to_it():\n"
        "    return left\n" + end
    )
    run_as_main(str(script), script, Locator(script))
    gc.collect()
    assert not (tmp_path / "gone").exists()


BY_HAND = """
import torch

torch.manual_seed(0)
inputs = torch.randn(160, 4)
labels = (inputs[:, 0] > 0).long()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
for epoch in range(3):
    for rows in torch.randperm(160).split(16):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("old", "new", "checks"),
    [
        ("", "", ["schedule::never-stepped"]),
        ("range(3)", "range(1)", []),
        ("CosineAnnealingLR(optimizer, T_max=3)", "ConstantLR(optimizer, factor=1)", []),
        ("        optimizer.step()\n", "        optimizer.step()\n    schedule.step()\n", []),
        ("        optimizer.step()\n", "        optimizer.step()\n    if epoch > 9:\n        schedule.step()\n", []),
    ],
    ids=["never", "a trial", "constant", "each epoch", "later"],
)
def test_a_schedule_that_is_never_stepped_shows_in_a_loop_over_hand_made_batches(
    check: Check, old: str, new: str, checks: list[str]
) -> None:
    assert check(BY_HAND.replace(old, new) if old else BY_HAND, "--json", "found.json").checks == checks


def test_a_file_beside_the_script_may_be_called_as_a_library(check: Check, tmp_path: Path) -> None:
    """Its lines are the user's, and so are those of the others in its folder."""
    (tmp_path / "evaluate.py").write_text("def accuracy(): ...\n")
    (tmp_path / "loop.py").write_text("def update(optimizer):\n    optimizer.step()\n")
    bad = (Path(__file__).parents[1] / "checks/gradients/not-cleared/bad.py").read_text()
    forget = "import sys\nsys.modules.pop('evaluate', None)\nimport evaluate\nfrom loop import update\n"
    checked = check(forget + bad.replace("optimizer.step()", "update(optimizer)"))
    (finding,) = checked.found["findings"]
    assert finding["where"] == "loop.py:2"
