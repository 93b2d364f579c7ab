"""Several processes: each is watched, the first one reports for all."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional

from harness import launch
from harness.compat import accelerates_variable
from harness.errors import CannotTry
from harness.watch import bounded, exchange, watch
from harness.watch.checks.metrics.observations.numbers_of_ranks import same_sets
from harness.watch.exchange import exchange_folder
from harness.watch.facts.rank_gradients import KEY, RankGradients, UpdateCompared, compared, lines_that_scale
from harness.watch.facts.ranks import come_together
from tests.server import Done, run_python, server_of
from tests.versions import installed

pytestmark = pytest.mark.distributed

SCRIPT = """
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

from harness.documented_run.metrics import load_metric

accelerator = Accelerator()
torch.manual_seed(0)
train = TensorDataset(torch.randn(48, 4), torch.arange(48) % 2)
validation = TensorDataset(torch.randn(22, 4), torch.arange(22) % 2)
train_dl = DataLoader(train, batch_size=4, shuffle=True)
eval_dl = DataLoader(validation, batch_size=4)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer, train_dl, eval_dl = accelerator.prepare(model, optimizer, train_dl, eval_dl)
for epoch in range(2):
    for inputs, labels in train_dl:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
metric = load_metric()
model.eval()
for inputs, labels in eval_dl:
    with torch.no_grad():
        predictions = model(inputs).argmax(dim=-1)
    predictions, references = accelerator.gather_for_metrics((predictions, labels))
    metric.add_batch(predictions=predictions, references=references)
if accelerator.is_main_process:
    print(metric.compute())
"""


def started(folder: Path, script: str, *launcher: str) -> tuple[Done, dict[str, Any]]:
    (folder / "train.py").write_text(script)
    environment = {accelerates_variable("ACCELERATE_USE_CPU"): "true"}
    command = ("-m", *launcher, "-m", "harness", "check", "--json", "found.json", "train.py")
    done = run_python(folder, *command, environment=environment)
    file = folder / "found.json"
    assert file.exists(), done.stderr[-2000:]
    return done, json.loads(file.read_text())


def forked(folder: Path, script: str, config: pytest.Config) -> tuple[Done, dict[str, Any]]:
    """As torchrun starts two processes, which are forked."""
    (folder / "train.py").write_text(script)
    cpu = {accelerates_variable("ACCELERATE_USE_CPU"): "true"}
    command = ("check", "--json", "found.json", "train.py")
    done = server_of(config).run(folder, *command, processes=2, environment=cpu)
    return done, json.loads((folder / "found.json").read_text())


TORCHRUN = ("torch.distributed.run", "--nproc-per-node", "2")


@pytest.mark.parametrize("launched", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_right_script_in_two_processes(tmp_path: Path, launched: bool, pytestconfig: pytest.Config) -> None:
    """By torchrun itself, or forked with its variables."""
    done, found = started(tmp_path, SCRIPT, *TORCHRUN) if launched else forked(tmp_path, SCRIPT, pytestconfig)
    assert done.status == 0
    assert found["findings"] == []
    assert found["notes"] == []
    assert found["updates"] == 12
    assert {"ranks::rows-shared", "ranks::weights-differ"} <= set(found["held"])
    assert done.stderr.count("nothing found") == 1, "one report for all ranks"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "old", "new"),
    [
        (
            "ranks::weights-differ",
            "cross_entropy(model(inputs)",
            "cross_entropy(accelerator.unwrap_model(model)(inputs)",
        ),
        ("ranks::rows-shared", "train_dl, eval_dl = accelerator", "_, eval_dl = accelerator"),
        ("metrics::rows-missing-or-repeated", "gather_for_metrics", "gather"),
    ],
)
def test_a_bug_of_several_processes(
    tmp_path: Path, check: str, old: str, new: str, pytestconfig: pytest.Config
) -> None:
    """huggingface/accelerate 350 is the last: ``gather`` gives 24 predictions for 22 rows."""
    assert SCRIPT.count(old) == 1
    done, found = forked(tmp_path, SCRIPT.replace(old, new), pytestconfig)
    assert done.status == 1
    assert [each["check"] for each in found["findings"]] == [check]
    assert found["findings"][0]["where"].startswith("train.py:")


SCORED = """
import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

distributed.init_process_group("gloo")
torch.manual_seed(0)
rows = TensorDataset(torch.randn(206, 4), torch.arange(206) % 2)
loader = DataLoader(rows, batch_size=16, sampler=DistributedSampler(rows, shuffle=False))
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    nn.functional.cross_entropy(model(rows.tensors[0]), rows.tensors[1]).backward()
    optimizer.step()
    optimizer.zero_grad()
    counted = torch.zeros(2)
    with torch.no_grad():
        for inputs, labels in loader:
            counted += torch.tensor([(model(inputs).argmax(1) == labels).sum(), len(labels)])
    distributed.all_reduce(counted)
    if distributed.get_rank() == 0:
        print(f"accuracy {counted[0] / counted[1]:.5f}")
distributed.destroy_process_group()
"""


@pytest.mark.parametrize(
    "alone", [pytest.param(True, marks=pytest.mark.slow), pytest.param(False, marks=pytest.mark.nightly)]
)
def test_a_number_of_one_rank_alone(tmp_path: Path, alone: bool, pytestconfig: pytest.Config) -> None:
    script = SCORED.replace("    distributed.all_reduce(counted)\n", "") if alone else SCORED
    _done, found = forked(tmp_path, script, pytestconfig)
    told = [each["observed"] for each in found["findings"] if each["check"] == "metrics::of-other-rows"]
    assert (len(told) == 1 and "that of rank 0 alone" in told[0]) if alone else not told
    assert ("metrics::of-other-rows" in found["held"]) == (not alone)


@pytest.mark.slow
def test_a_script_is_started_in_several_processes(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("gather_for_metrics", "gather"))
    command = [
        sys.executable,
        "-m",
        "harness",
        "check",
        "--processes",
        "2",
        "--json",
        "found.json",
        "--receipt",
        "r.md",
    ]
    done = subprocess.run([*command, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert done.returncode == 1, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert [each["check"] for each in found["findings"]] == ["metrics::rows-missing-or-repeated"]
    assert found["did"]["ranks"].startswith("the same weights after 8 of 8 updates of 2 processes; their gradient in 8")
    receipt = (tmp_path / "r.md").read_text()
    assert "`metrics::rows-missing-or-repeated`" in receipt
    assert "`harness check --processes 2 train.py`" in receipt


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("raise ValueError('no such label')", "rank 1 of 2 ended with exit status 3; all ranks were ended"),
        ("__import__('os').kill(__import__('os').getpid(), 9)", "rank 1 of 2 ended with SIGKILL; all ranks were ended"),
    ],
)
def test_a_rank_that_fails_ends_all(tmp_path: Path, how: str, said: str) -> None:
    place = "for epoch in range(2):\n"
    script = SCRIPT.replace(place, f"{place}    if accelerator.process_index == 1:\n        {how}\n")
    (tmp_path / "train.py").write_text(script)
    command = [sys.executable, "-m", "harness", "check", "--processes", "2", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert done.returncode == 2
    assert said in done.stderr
    assert ("ValueError: no such label" in done.stderr) == ("ValueError" in how)


def rank(
    *passes: tuple[list[float], int, float],
    used: list[float],
    clipped: list[float] | None = None,
    several: bool = False,
) -> dict[str, Any]:
    """What one rank knows of one update: values, rows and share of each backward pass, ``several`` of losses."""
    own = [{"values": values, "rows": rows, "share": share, "several": several} for values, rows, share in passes]
    before = None if clipped is None else {"values": clipped, "where": "train.py:8"}
    return {"update": 1, "own": own, "used": used, "clipped": before}


def test_a_mean_over_ranks_is_what_one_process_has() -> None:
    found = compared([rank(([2.0, 0.0], 4, 1.0), used=[1.0, 2.0]), rank(([0.0, 4.0], 4, 1.0), used=[1.0, 2.0])])
    assert found == UpdateCompared(
        passes=1,
        reduced=1.0,
        whole=1.0,
        nearest=1.0,
        off=0.0,
        uneven=1.0,
        unequal=1.0,
        of_all=False,
        clipped=False,
        clipped_own=None,
    )


def test_a_sum_over_ranks_is_a_multiple_of_it() -> None:
    found = compared([rank(([2.0, 0.0], 4, 1.0), used=[2.0, 4.0]), rank(([0.0, 4.0], 4, 1.0), used=[2.0, 4.0])])
    assert found is not None
    assert (found.reduced, found.whole) == (2.0, 2.0)


def test_shares_of_the_whole_add_up_to_one() -> None:
    """Three rows and one, each divided by four: what is averaged is half of the mean over four."""
    ranks = [rank(([1.5, 0.0], 3, 0.75), used=[0.75, 0.5]), rank(([0.0, 1.0], 1, 0.25), used=[0.75, 0.5])]
    found = compared(ranks)
    assert found is not None
    assert (found.reduced, found.whole, found.of_all) == (1.0, 0.5, True)


def test_several_losses_in_one_pass_have_the_share_of_the_largest() -> None:
    ranks = [rank(([1.0, 0.0], 4, 0.5), used=[0.5, 1.0], several=True) for _ in range(2)]
    ranks[1]["own"][0]["values"] = [0.0, 2.0]
    found = compared(ranks)
    assert found is not None
    assert (found.reduced, found.whole, found.several) == (1.0, 0.5, True)
    ranks[1]["own"][0]["rows"] = 3
    found = compared(ranks)
    assert found is not None
    assert (found.reduced, found.whole, found.unequal) == (1.0, None, 1.0)


@pytest.mark.parametrize(
    ("reduction", "makes", "shares"),
    [
        ("mean", lambda value: value / 2, [0.5]),
        ("mean", lambda value: value / 2 + 7, [0.5]),
        ("mean", lambda value: value.div_(2), [0.5]),
        ("sum", lambda value: value / 12, [0.5]),
        ("none", lambda value: value.mean() * 3, [3.0]),
        ("none", lambda value: value.sum() / 6, [1.0]),
    ],
)
def test_the_share_of_a_loss_is_by_its_gradient(
    reduction: str,
    makes: Callable[[torch.Tensor], torch.Tensor],
    shares: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, rows = torch.nn.Linear(4, 2), torch.randn(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(select=["ranks::gradient-scaled"], raise_errors=False) as watched, monkeypatch.context() as patched:
        patched.setattr(launch, "in_process_group", lambda: True)
        loss = makes(functional.cross_entropy(model(rows), torch.arange(6) % 2, reduction=reduction))
        loss.backward()
        optimizer.step()
        kept = watched.first.fact(RankGradients).summary()
    assert [each["share"] for update in kept for each in update["own"]] == pytest.approx(shares)


def test_lines_that_scale_are_found_from_what_is_differentiated() -> None:
    loss = torch.ones((), requires_grad=True) * 2
    half = loss / 2
    for value, line in ((loss, "train.py:1"), (half, "train.py:2")):
        node: Any = value.grad_fn
        node.metadata[KEY] = line
    lines = set(lines_that_scale((half * 3 + loss).grad_fn))
    assert lines == {None, "train.py:1", "train.py:2"}
    assert list(lines_that_scale(loss.detach().grad_fn)) == []
    assert list(lines_that_scale(loss.exp().grad_fn)) == [], "no scale that holds for each batch"


def test_rows_of_small_ranks_weigh_more() -> None:
    found = compared([rank(([2.0, 0.0], 3, 1.0), used=[1.0, 2.0]), rank(([0.0, 4.0], 1, 1.0), used=[1.0, 2.0])])
    assert found is not None
    assert (found.reduced, found.whole, found.uneven, found.unequal) == (1.0, None, 3.0, 3.0)
    assert found.off == pytest.approx(4 / 7)  # the tangent between (1, 2) and (1.5, 1)


@pytest.mark.parametrize(("own", "where"), [(True, "train.py:8"), (False, None)])
def test_what_is_clipped_before_it_is_averaged(own: bool, where: str | None) -> None:
    mean = [1.0, 2.0]
    ranks = [
        rank(([2.0, 0.0], 4, 1.0), used=[0.5, 1.0], clipped=[2.0, 0.0] if own else mean),
        rank(([0.0, 4.0], 4, 1.0), used=[0.5, 1.0], clipped=[0.0, 4.0] if own else mean),
    ]
    found = compared(ranks)
    assert found is not None
    assert found.clipped_own == where
    assert found.reduced == (0.5 if own else 1.0)


def evaluated(where: str, *hits: int) -> tuple[str, list[dict[str, Any]]]:
    part: dict[str, Any] = {
        "targets": 8,
        "places": 8,
        "among_five": None,
        "agrees": None,
        "loss": None,
        "squares": None,
    }
    part |= {"absolutes": 0.0, "totals": [0.0, 0.0], "predicted": [0.0, 0.0], "confusion": None, "otherwise": {}}
    return where, [{**part, "hits": each} for each in hits]


def test_sets_of_rows_are_the_same_that_are_evaluated_in_the_same_line() -> None:
    first = [evaluated("train.py:7", 1), evaluated("train.py:9", 2, 3)]
    found = same_sets([first, [evaluated("train.py:9", 4, 5)]])
    assert [[[part.hits for part in rank] for rank in ranks] for ranks in found] == [[[1]], [[2, 3], [4, 5]]]


def test_rows_that_one_rank_evaluates_in_a_line_of_all_are_nobodys() -> None:
    first = [evaluated("train.py:7", 1), evaluated("train.py:7", 2)]
    found = same_sets([first, [evaluated("train.py:7", 4)]])
    assert [[[part.hits for part in rank] for rank in ranks] for ranks in found] == [[[1]], [[2]]]


@pytest.mark.parametrize(
    ("ranks", "together"),
    [
        ([{"1": (0, 1), "2": (1, 3), "3": (5, 6)}, {"1": (0, 2), "2": (2, 4), "3": (5, 7)}], True),
        ([{"1": (0, 1), "2": (1, 3)}, {"1": (0, 2), "2": (2, 4)}], False),
        ([{"1": (0, 1), "10": (1, 2), "2": (1, 1)}, {"1": (0, 1), "10": (1, 3), "2": (1, 1)}], False),
    ],
)
def test_ranks_that_are_averaged_come_together(ranks: list[dict[str, tuple[int, int]]], together: bool) -> None:
    assert come_together(ranks) == together


@pytest.mark.parametrize("used", [[0.0, 0.0], [1.0]])
def test_nothing_is_seen_of_no_gradient_and_of_other_parameters(used: list[float]) -> None:
    ranks = [rank(([0.0, 0.0], 4, 1.0), used=[0.0, 0.0]), rank(([0.0, 0.0], 4, 1.0), used=used)]
    assert compared(ranks) is None


@pytest.mark.nightly
def test_fewer_processes_than_asked_for(tmp_path: Path) -> None:
    launcher: tuple[str, ...] = ("accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_machines", "1")
    launcher = (*launcher, "--mixed_precision", "no")
    if installed("accelerate>=0.16"):
        launcher = (*launcher, "--dynamo_backend", "no")
    _done, found = started(tmp_path, SCRIPT, *launcher)
    assert [each["check"] for each in found["findings"]] == ["ranks::fewer-than-asked"]


def test_the_folder_between_ranks_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    folder = exchange_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert exchange_folder() == folder, "the other ranks find it"
    with monkeypatch.context() as again:
        again.setenv("TORCHELASTIC_RESTART_COUNT", "1")
        assert exchange_folder() != folder, "what a first attempt left is not the second's"
    folder.chmod(0o777)
    with pytest.raises(CannotTry, match="is not your own private folder; remove it"):
        exchange_folder()
    folder.rmdir()
    (tmp_path / "theirs").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "theirs")
    with pytest.raises(CannotTry, match="is not your own private folder"):
        exchange_folder()


LIGHTNING = """
import lightning as L
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, inputs):
        return self.layer(inputs)

    def training_step(self, batch, _):
        return cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch, _):
        hits = (self(batch[0]).argmax(1) == batch[1]).float().mean()
        self.log("val_acc", hits, batch_size=len(batch[1]), SYNC)

    def on_validation_epoch_end(self):
        if self.trainer.is_global_zero:
            print(f"val_acc {self.trainer.callback_metrics['val_acc']:.5f}")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


L.seed_everything(0, verbose=False)
rows = TensorDataset(torch.randn(128, 4), torch.randint(2, (128,)))
more = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, num_sanity_val_steps=0)
trainer = L.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=5, **more)
unseen = TensorDataset(torch.randn(128, 4), torch.randint(2, (128,)))
trainer.fit(Classifier(), DataLoader(rows, batch_size=16, shuffle=True), DataLoader(unseen, batch_size=16))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("synced", [True, False])
def test_lightnings_log_of_one_rank(tmp_path: Path, synced: bool) -> None:
    pytest.importorskip("lightning")
    (tmp_path / "train.py").write_text(LIGHTNING.replace("SYNC", f"sync_dist={synced}"))
    command = [sys.executable, "-m", "harness", "check", "--processes", "2", "--json", "found.json", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180)
    found = json.loads((tmp_path / "found.json").read_text())
    told = [each["observed"] for each in found["findings"]]
    assert (not told) if synced else ("that of rank 0 alone" in told[0]), done.stderr


def test_what_one_rank_left_alone_is_compared_with_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared_ranks: list[Any] = []
    first = SimpleNamespace(summaries=dict, compare_ranks=compared_ranks.append)
    session: Any = SimpleNamespace(first=first, all_findings=[], notes=[], crashed={}, looked={}, lacking={})
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setattr(exchange, "exchange_folder", lambda: tmp_path)
    monkeypatch.setattr(exchange, "PATIENCE", 0.0)
    assert exchange.of_all_ranks(session).notes == ["rank 1 of 2 left no results, so it is left out"]
    assert compared_ranks == []


def of_two_machines(rank: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a rank of four tells, two of which run on each machine."""
    values = {"WORLD_SIZE": 4, "RANK": rank, "LOCAL_WORLD_SIZE": 2, "LOCAL_RANK": rank % 2}
    for name, value in values.items():
        monkeypatch.setenv(name, str(value))
    first = SimpleNamespace(summaries=dict, compare_ranks=lambda summaries: pytest.fail("some are not here"))
    session: Any = SimpleNamespace(first=first, all_findings=[], notes=[], crashed={}, looked={}, lacking={})
    return exchange.of_all_ranks(session)


def test_ranks_of_other_machines_are_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(exchange, "PATIENCE", 5.0)
    for rank in (3, 2):
        assert of_two_machines(rank, monkeypatch).notes == []
    assert list(tmp_path.iterdir()) == [], "nobody would read it there"
    of_two_machines(1, monkeypatch)
    begun = time.monotonic()
    (note,) = of_two_machines(0, monkeypatch).notes
    assert time.monotonic() - begun < 2
    assert note.startswith("2 of 4 ranks run on other machines: they are not checked here")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("passes", "kept"), [(3, 1), (bounded.MOST + 6, 0)])
def test_an_update_of_more_passes_than_are_kept_is_not_compared(
    passes: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(select=["ranks::gradient-scaled"], raise_errors=False) as watched, monkeypatch.context() as patched:
        patched.setattr(launch, "in_process_group", lambda: True)
        for _ in range(passes):
            functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,))).backward()
        optimizer.step()
        assert len(watched.first.fact(RankGradients).summary()) == kept
