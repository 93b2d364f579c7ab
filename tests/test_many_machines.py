"""Work spread over a Ray cluster of two nodes, all on this machine; one of them is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.documented_run.baseline import sessions
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.recipe import Recipe
from harness.errors import CannotTry
from harness.spread import On, spread
from tests.resume.test_resume import resume, script

ray = pytest.importorskip("ray", reason="needs the extra ray")
pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[1]
EXAMPLES = Path(__file__).parent / "checks" / "gradients" / "not-cleared"
PATIENCE = 240.0

Cluster = Any


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A head that takes no task, and a node with two CPUs and what Ray takes for a GPU."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))  # where Ray keeps a token
        patch.setenv("RAY_TMPDIR", "/tmp")  # or Ray takes the next one, whose name is too long for its sockets
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("tmp")))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        cluster.add_node(num_cpus=2, num_gpus=1)
        patch.setenv("RAY_ADDRESS", cluster.address)
        try:
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


@pytest.fixture
def second(cluster: Cluster) -> Iterator[Any]:
    """A second node, with one CPU."""
    node = cluster.add_node(num_cpus=1)
    yield node
    if node in cluster.worker_nodes:
        cluster.remove_node(node)


@contextmanager
def lost(cluster: Cluster, node: Any, works: Callable[[], bool] | None = None) -> Iterator[None]:
    """The node is killed in the middle of a task that it gets in the block; ``works`` says when, if that matters."""

    def lose() -> None:
        wait_for(works or partial(tasks, node), "the node got no task")
        working = tasks(node)
        assert working
        cluster.remove_node(node, allow_graceful=False)
        wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in working), "its tasks go on")

    with ThreadPoolExecutor() as threads:
        losing = threads.submit(lose)
        yield
        losing.result()
    wait_for(lambda: not list(Path(os.environ["TMPDIR"]).glob("harness-*")), "scratch folders are left")


def tasks(node: Any = None) -> list[int]:
    """The processes that work on a task: of one node, or all."""
    raylets = {each.process.pid for each in node.all_processes["raylet"]} if node else set()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            title = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        if title.startswith(b"ray::_on_a_node") and (node is None or parent in raylets):
            found.append(int(folder.name))
    return found


def wait_for(condition: Callable[[], object], otherwise: str) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, otherwise
        time.sleep(0.02)


def note(folder: Path, item: int) -> str:
    """Leave a note that it has begun, and take a while."""
    (folder / f"{item}-{ray.get_runtime_context().get_node_id()}").touch()
    time.sleep(1)
    return f"{item} done"


def fail(item: int) -> None:
    if item == 2:
        raise CannotTry("folder /nowhere not found")
    time.sleep(600)


def harness(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)


def without(keys: set[str], values: Any) -> Any:
    """JSON without the values of these keys."""
    if isinstance(values, dict):
        return {key: without(keys, value) for key, value in values.items() if key not in keys}
    return [without(keys, each) for each in values] if isinstance(values, list) else values


def test_what_a_lost_node_had_begun_is_done_again(cluster: Cluster, second: Any, tmp_path: Path) -> None:
    with lost(cluster, second, lambda: bool(list(tmp_path.glob(f"*-{second.node_id}")))):
        found = list(spread(partial(note, tmp_path), range(9), "ray", threads=1))
    assert sorted(found) == [(item, f"{item} done") for item in range(9)]
    begun = [int(path.name.split("-")[0]) for path in tmp_path.iterdir()]
    assert set(begun) == set(range(9))
    assert len(begun) == 10, "and nothing else is"


def test_seeds_are_recorded_as_one_machine_records_them(
    cluster: Cluster, second: Any, small: Recipe, tmp_path: Path
) -> None:
    def recorded(on: On) -> Any:
        seeds, start = sessions.seeds_to_record(small, 4, tmp_path / on, timeout=60, on=on)
        recipes = [each for each, _ in seeds]
        files = [path for _, path in sessions.record_seeds(recipes, tmp_path / on, start=start, timeout=60, on=on)]
        assert files == [tmp_path / on / "candidates" / "small-plain-cpu.json"] * 4
        return json.loads(files[0].read_text())

    here = recorded("here")
    with lost(cluster, second):
        there = recorded("ray")
    assert [run["seed"] for run in there["runs"]] == [42, 43, 44, 45]
    assert without({"started"}, there) == without({"started"}, here)


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.distributed)])
def test_a_seed_has_the_bits_of_as_many_threads(cluster: Cluster, small: Recipe, processes: int) -> None:
    """Of two threads in one process, and of one each in two."""
    import torch

    recipe = small if processes == 1 else small.with_(loop="accelerate", processes=2)
    before = torch.get_num_threads()
    torch.set_num_threads(3 - processes)
    try:
        work = partial(sessions._train, timeout=60)
        records = [record for on in ("here", "ray") for _, record in spread(work, [recipe], on, processes=processes)]
    finally:
        torch.set_num_threads(before)
    here, there = (json.loads(record.as_json()) for record in records)
    assert here["fingerprint"]["threads"] == 3 - processes
    for key in ("fingerprint", "curves", "weights", "digests", "metrics", "inputs"):
        assert there[key] == here[key]


def test_scripts_are_checked_as_one_machine_checks_them(cluster: Cluster, second: Any, tmp_path: Path) -> None:
    """In copies of their folder, and nothing but the findings goes to stdout."""
    for kind in ("bad", "good"):
        (tmp_path / f"{kind}.py").write_text((EXAMPLES / f"{kind}.py").read_text() + "open('left', 'w')\n")
    (tmp_path / "below").mkdir()
    scripts = ["good.py", "-m bad", "none.py", "good.py 1"]
    (tmp_path / "pyproject.toml").write_text(f"[tool.harness]\nscripts = {json.dumps(scripts)}\n")
    with lost(cluster, second):
        there = harness(tmp_path / "below", "check", "--format", "json", "--on", "ray")
    assert not (tmp_path / "left").exists()
    here = harness(tmp_path / "below", "check", "--format", "json")
    assert (there.returncode, here.returncode) == (2, 2), there.stderr
    assert without({"seconds"}, json.loads(there.stdout)) == without({"seconds"}, json.loads(here.stdout))
    assert [each["script"] for each in json.loads(there.stdout)["scripts"]] == scripts


def test_kills_are_judged_as_on_one_machine(
    cluster: Cluster, second: Any, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """With an absolute path below the working directory among the arguments."""
    work = tmp_path / "work"
    work.mkdir()
    script(work, PATH="sys.argv[1]", GOES_ON="'--resume' in sys.argv")
    given = ["--kills", "1", "--json", "-", "train.py", str(work / "checkpoint.pt")]
    here = resume(pytestconfig, work, *given)
    with lost(cluster, second):
        there = harness(work, "resume", "--on", "ray", *given)
    assert (there.returncode, here.status) == (1, 1), there.stderr
    assert without({"seconds"}, json.loads(there.stdout)) == without({"seconds"}, json.loads(here.stdout))
    assert [path.name for path in work.iterdir()] == ["train.py"]


def test_what_a_node_cannot_try_is_said_and_ends_the_others(cluster: Cluster) -> None:
    with pytest.raises(CannotTry) as raised:
        list(spread(fail, [1, 2], "ray", threads=1))
    says = str(raised.value)
    assert says.startswith("folder /nowhere not found (on node ")
    assert says.endswith(" of the Ray cluster; every node needs the same packages and paths)")
    wait_for(lambda: not tasks(), "the other goes on")


def test_a_node_that_lacks_a_package(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    only_here = ModuleType("only_here")
    exec("def work(item): return item", vars(only_here))
    monkeypatch.setitem(sys.modules, "only_here", only_here)
    with pytest.raises(
        CannotTry, match=r"^a node .* lacks a package \(No module named 'only_here'\); every node needs"
    ):
        list(spread(only_here.work, [1], "ray", threads=1))


def test_a_task_that_no_node_can_take(cluster: Cluster) -> None:
    with pytest.raises(CannotTry, match="no node of the Ray cluster has 3 CPUs,"):
        list(spread(abs, [1], "ray", threads=3))


def test_each_process_has_a_gpu_where_there_are_any(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert list(spread(os.getenv, ["CUDA_VISIBLE_DEVICES"], "ray", threads=1)) == [("CUDA_VISIBLE_DEVICES", "0")]
    with pytest.raises(CannotTry, match="no node of the Ray cluster has 2 CPUs and 2 GPUs,"):
        list(spread(abs, [1], "ray", threads=1, processes=2))


def test_an_interrupt_keeps_what_is_done_and_ends_the_rest(cluster: Cluster, small: Recipe, tmp_path: Path) -> None:
    """Of a scheduler, which Ray would take for its own."""
    (tmp_path / "mine.py").write_text(
        f"from harness.documented_run.recipe import Recipe\nsmall = {small.with_(epochs=10)!r}\n"
    )
    arguments = ["baseline", "record", "--recipe", "mine.py:small", "--seeds", "8", "--baselines", ".", "--on", "ray"]
    candidate = tmp_path / "candidates" / "small-plain-cpu.json"
    command = [sys.executable, "-m", "harness", *arguments]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(lambda: candidate.exists() or process.poll() is not None, "no seed is recorded")
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 2, errors
    seeds = [run.seed for run in Baseline.read(candidate).runs]
    assert 1 <= len(seeds) < 8
    kept = f"candidates/small-plain-cpu.json keeps the seeds {', '.join(map(str, seeds))}"
    assert errors.splitlines()[-1] == f"harness: interrupted; {kept}, and the same command continues from there"
    assert "Traceback" not in errors
    wait_for(lambda: not tasks(), "seeds go on")
