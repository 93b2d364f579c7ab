"""Shortened passes: a right script runs as it does unwatched, and what a whole pass would do follows from its plan."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.watch.events import Pass
from harness.watch.shortening import Shortening
from tests.server import server_of

BEGINS = """
import math, random, torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, RandomSampler, Sampler, TensorDataset
torch.manual_seed(0)
inputs = torch.randn(800, 8)
rows = TensorDataset(inputs, (inputs.sum(1) > 0).long())
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(rows, batch_size=4, shuffle=True)
def falling(steps, of=None):
    return torch.optim.lr_scheduler.LinearLR(of or optimizer, 1.0, 0.0, steps)
def train(batch, window=1):
    (cross_entropy(model(batch[0]), batch[1]) / window).backward()
def update(schedule=None):
    optimizer.step()
    optimizer.zero_grad()
    if schedule is not None:
        schedule.step()
"""

COUNTS = {
    "calls next() as often as len() says": """
for _ in range(2):
    batches = iter(loader)
    for _ in range(len(loader)):
        train(next(batches)); update()
""",
    "begins again when there are no more": """
schedule, batches = falling(300), iter(loader)
for _ in range(300):
    try:
        batch = next(batches)
    except StopIteration:
        batches = iter(loader)
        batch = next(batches)
    train(batch); update(schedule)
""",
    "goes round in a generator": """
def cycle():
    while True:
        yield from loader
schedule = falling(300)
for _, batch in zip(range(300), cycle()):
    train(batch); update(schedule)
""",
    "keeps the batches in a list": """
batches = list(loader)
for i in range(len(loader)):
    train(batches[i]); update()
""",
    "calls next() while workers draw ahead": """
loader = DataLoader(rows, batch_size=4, num_workers=9)
batches = iter(loader)
for _ in range(len(loader)):
    train(next(batches)); update()
""",
}

SHORTENED = {
    "a generator of the script's own": """
def moved():
    for batch in loader:
        yield [each.clone() for each in batch]
schedule = falling(400)
for _ in range(2):
    for batch in moved():
        train(batch); update(schedule)
""",
    "while there are steps to make": """
schedule, step = falling(300), 0
while step < 300:
    for batch in loader:
        train(batch); update(schedule)
        step += 1
        if step == 300:
            break
""",
    "a break after so many batches": """
schedule = falling(120)
for step, batch in enumerate(loader):
    if step == 120:
        break
    train(batch); update(schedule)
""",
    "a return after so many updates": """
def training(schedule, step=0):
    for _ in range(9):
        for batch in loader:
            train(batch); update(schedule)
            step += 1
            if step >= 220:
                return
training(falling(220))
""",
    "an endless sampler": """
sampler = RandomSampler(rows, replacement=True, num_samples=10**10)
schedule = falling(100)
for step, batch in enumerate(DataLoader(rows, batch_size=4, sampler=sampler), start=1):
    train(batch); update(schedule)
    if step == 100:
        break
""",
    "a sampler that counts what was drawn": """
class Counting(Sampler):
    drawn = 0
    def __len__(self):
        return 800
    def __iter__(self):
        for index in torch.randperm(800).tolist():
            Counting.drawn += 1
            yield index
for batch in DataLoader(rows, batch_size=4, sampler=Counting()):
    train(batch); update()
assert Counting.drawn < 200
""",
    "windows counted in each epoch": """
schedule = falling(12 * (len(loader) // 8))
for _ in range(12):
    for i, batch in enumerate(loader):
        train(batch, 8)
        if (i + 1) % 8 == 0:
            update(schedule)
""",
    "windows of all epochs, the last filled up by len()": """
schedule = falling(4 * math.ceil(len(loader) / 7))
for _ in range(4):
    for i, batch in enumerate(loader):
        train(batch, 7)
        if (i + 1) % 7 == 0 or i + 1 == len(loader):
            update(schedule)
""",
    "windows of Accelerate": """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
schedule = falling(2 * math.ceil(len(loader) / 3))
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
for _ in range(2):
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(cross_entropy(model(x), y))
            optimizer.step(); schedule.step(); optimizer.zero_grad()
""",
    "two optimizers with a schedule each": """
second = torch.nn.Linear(8, 2)
slow = torch.optim.SGD(second.parameters(), lr=0.1)
schedule, its = falling(3 * len(loader)), falling(3 * math.ceil(len(loader) / 5), slow)
for _ in range(3):
    for i, batch in enumerate(loader):
        train(batch); update(schedule)
        if i % 5 == 0:
            cross_entropy(second(batch[0]), batch[1]).backward()
            slow.step(); slow.zero_grad(); its.step()
""",
    "an evaluation in the middle of the pass": """
schedule, others = falling(2 * len(loader)), DataLoader(TensorDataset(inputs[:64] + 1), batch_size=16)
for _ in range(2):
    for i, batch in enumerate(loader):
        train(batch); optimizer.step(); optimizer.zero_grad()
        if i % 5 == 0:
            with torch.no_grad():
                print(sum(model(x).mean().item() for (x,) in others))
        schedule.step()
""",
    "a schedule that is stepped at the last batch": """
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for _ in range(3):
    for i, batch in enumerate(loader):
        train(batch)
        update()
        if i + 1 == len(loader):
            schedule.step()
""",
    "a schedule in epochs under accumulation": """
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
for _ in range(6):
    for i, batch in enumerate(loader):
        train(batch, 40)
        if (i + 1) % 40 == 0:
            update()
    schedule.step()
""",
}


Check = Callable[[str], tuple[dict[str, Any], str]]


@pytest.fixture
def check(tmp_path: Path, pytestconfig: pytest.Config) -> Check:
    def run(text: str) -> tuple[dict[str, Any], str]:
        (tmp_path / "train.py").write_text(BEGINS + textwrap.dedent(text))
        done = server_of(pytestconfig).run(tmp_path, "check", "--json", "found.json", "train.py", together="watched")
        return json.loads((tmp_path / "found.json").read_text()), done.stderr

    return run


@pytest.mark.parametrize("counts", COUNTS)
def test_a_script_that_counts_its_batches_gets_them_all(check: Check, counts: str) -> None:
    found, errors = check(COUNTS[counts])
    assert (found["crashed"], found["findings"], found["shortened"]) == (None, [], False), errors


@pytest.mark.parametrize("shortened", SHORTENED)
def test_a_right_script_of_shortened_passes(check: Check, shortened: str) -> None:
    found, errors = check(SHORTENED[shortened])
    assert (found["crashed"], found["findings"], found["shortened"]) == (None, [], True), errors


def test_a_schedule_that_was_not_divided_by_the_window(check: Check) -> None:
    found, errors = check(
        SHORTENED["windows of Accelerate"].replace("2 * math.ceil(len(loader) / 3)", "2 * len(loader)")
    )
    assert [each["check"] for each in found["findings"]] == ["schedule::wrong-length"], errors
    assert "made for 400 steps but gets only 134" in errors


def test_an_estimate_says_so(check: Check) -> None:
    found, errors = check(
        SHORTENED["windows of all epochs, the last filled up by len()"].replace("falling(4", "falling(9")
    )
    assert [each["check"] for each in found["findings"]] == ["schedule::wrong-length"], errors
    assert "gets only about 116" in errors


def test_a_script_that_fails_on_a_shortened_pass_is_told_of_full(check: Check) -> None:
    found, errors = check("""
seen = 0
for batch in loader:
    train(batch); update()
    seen += len(batch[0])
assert seen == len(rows)
""")
    assert "AssertionError" in found["crashed"]
    assert "--full" in errors


NEVER_CUT = {
    "a pass for statistics": """
values = torch.cat([x for x, _ in DataLoader(rows, batch_size=2)])
assert len(values) == 800
inputs = (inputs - values.mean(0)) / values.std(0)
loader = DataLoader(TensorDataset(inputs, rows.tensors[1]), batch_size=40, shuffle=True)
""",
    "features that are kept": """
body = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())
with torch.no_grad():
    features = [body(x).numpy() for x, _ in DataLoader(rows, batch_size=8)]
assert sum(map(len, features)) == 800
loader = DataLoader(TensorDataset(torch.tensor(features).flatten(0, 1), rows.tensors[1]), batch_size=40, shuffle=True)
""",
    "features of a frozen model, averaged": """
body = torch.nn.Conv1d(1, 8, 3, padding=1).requires_grad_(False)
features = []
for x, _ in DataLoader(rows, batch_size=8):
    features.append(body(x[:, None]).mean(2))
assert sum(map(len, features)) == 800
loader = DataLoader(TensorDataset(torch.cat(features), rows.tensors[1]), batch_size=40, shuffle=True)
""",
}
"""Before a training whose passes are short."""

TRAINS = """
for _ in range(4):
    for batch in loader:
        train(batch); update()
"""


@pytest.mark.parametrize("before", NEVER_CUT)
def test_what_the_training_is_made_from_is_read_to_its_end(check: Check, before: str) -> None:
    found, errors = check(NEVER_CUT[before] + TRAINS)
    assert (found["crashed"], found["findings"], found["shortened"]) == (None, [], False), errors


EVALUATES = {
    "counts what is right": "right += (model(x).argmax(1) == y).sum().item()",
    "gathers losses": "right += cross_entropy(model(x), y).item()",
    "gathers predictions": "said.append(model(x).argmax(1))",
    "gathers logits after the training": "said.append(model(x))",
}


@pytest.mark.parametrize("how", EVALUATES)
def test_an_evaluation_is_shortened_and_says_of_how_many_rows(check: Check, how: str) -> None:
    evaluates = f"""
held_out, right, said = DataLoader(TensorDataset(inputs + 1, rows.tensors[1]), batch_size=4), 0, []
with torch.no_grad():
    for x, y in held_out:
        {EVALUATES[how]}
print(right, len(said))
"""
    trains = "loader = DataLoader(rows, batch_size=40, shuffle=True)\n" + TRAINS
    after = "training" in how
    found, errors = check(trains + evaluates if after else evaluates + trains)
    assert (found["crashed"], found["findings"], found["shortened"]) == (None, [], True), errors
    assert "scores 64 of 800 rows" in errors


LIGHTNING = """
import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 2)

    def training_step(self, batch, number):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, number):
        self.log("loss of validation", torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


rows = TensorDataset(torch.randn(640, 4), torch.randint(2, (640,)))
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
)
held_out = TensorDataset(torch.randn(64, 4), torch.randint(2, (64,)))
trainer.fit(Module(), DataLoader(rows, batch_size=8, shuffle=True), DataLoader(held_out, batch_size=8))
print("validated:", "loss of validation" in trainer.callback_metrics)
"""


def test_lightning_validates_after_a_shortened_epoch(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    pytest.importorskip("lightning", reason="needs lightning")
    (tmp_path / "train.py").write_text(LIGHTNING, encoding="utf-8")
    done = server_of(pytestconfig).run(tmp_path, "check", "train.py", together="watched")
    assert "long epochs were cut" in done.stderr
    assert done.stdout.endswith("validated: True\n")


@pytest.mark.parametrize(
    ("planned", "number", "whole"), [(63, 1, True), (64, 1, False), (63, 2, False), (163, 1, False)]
)
def test_a_first_pass_whose_micro_batches_leave_a_rest_is_whole(planned: int, number: int, whole: bool) -> None:
    of = Pass(None, number, planned, None, batches=40, updates=5, trains=True)  # type: ignore[arg-type]
    assert Shortening().is_enough(of, 40) is not whole
