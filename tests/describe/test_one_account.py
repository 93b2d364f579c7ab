"""One account: where the page has a line, a check that judges such a line has looked, and gives no other reason."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from harness import catalogue
from harness.describe.page import SECTIONS, lines_of
from harness.watch import checks_of
from harness.watch.instrument import instrumented
from harness.watch.locate import Locator
from harness.watch.monitor import Options
from harness.watch.run.evaluations import Evaluations
from harness.watch.session import Session
from tests.describe.accounts import ACCOUNT, KINDS, NUMBERS, Account, Judged
from tests.programs import LIMIT, PARTS, Version, versions_of
from tests.server import server_of
from tests.versions import installed

torch.manual_seed(0)
ROWS = torch.randn(96, 4)
LABELS = (ROWS[:, 0] > 0).long()
TRAINED, HELD_OUT = slice(0, 64), slice(64, 96)


class Network(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))


def fit(model: nn.Module, epochs: int = 2) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, epochs * 4)
    model.train()
    for _ in range(epochs):
        for given, label in DataLoader(TensorDataset(ROWS[TRAINED], LABELS[TRAINED]), batch_size=16, shuffle=True):
            optimizer.zero_grad()
            functional.cross_entropy(model(given), label).backward()
            optimizer.step()
            scheduler.step()


def over_a_loader() -> None:
    model = Network()
    fit(model)
    model.eval()
    hits = 0
    with torch.no_grad():
        for given, label in DataLoader(TensorDataset(ROWS[HELD_OUT], LABELS[HELD_OUT]), batch_size=8):
            hits += int((model(given).argmax(1) == label).sum())
    print(f"accuracy {hits / 32:.4f}")


def once_at_the_end() -> None:
    model = Network()
    fit(model)
    model.eval()
    with torch.no_grad():
        hits = (model(ROWS[HELD_OUT]).argmax(1) == LABELS[HELD_OUT]).float().mean()
    print(f"accuracy {hits:.4f}")


def by_forward() -> None:
    model = Network()
    fit(model)
    model.eval()
    with torch.no_grad():
        print(f"test loss {functional.cross_entropy(model.forward(ROWS[HELD_OUT]), LABELS[HELD_OUT]):.4f}")


def with_a_graph() -> None:
    model = Network()
    fit(model)
    model.eval()
    print(f"test loss {functional.cross_entropy(model(ROWS[HELD_OUT]), LABELS[HELD_OUT]).item():.4f}")


def on_some_training_rows() -> None:
    model = Network()
    fit(model)
    model.eval()
    with torch.no_grad():
        print(f"test loss {functional.cross_entropy(model(ROWS[48:80]), LABELS[48:80]):.4f}")


def scored_by_nobody() -> None:
    model = Network()
    fit(model)
    model.eval()
    with torch.no_grad():
        print("first answers", model(ROWS[HELD_OUT]).softmax(1)[:2].tolist())


def row_by_row() -> None:
    model = Network()
    fit(model)
    model.eval()
    hits = 0
    with torch.no_grad():
        for given, label in zip(ROWS[HELD_OUT], LABELS[HELD_OUT], strict=True):
            hits += int(model(given[None]).argmax(1) == label)
    print(f"accuracy {hits / 32:.4f}")


def from_a_generator() -> None:
    model = Network()
    fit(model)
    model.eval()
    batches = ((ROWS[at : at + 8], LABELS[at : at + 8]) for at in range(64, 96, 8))
    with torch.no_grad():
        losses = [functional.cross_entropy(model(given), label).item() for given, label in batches]
    print(f"test loss {sum(losses) / len(losses):.4f}")


def forgets_both() -> None:
    model = Network()
    fit(model)
    hits = (model(ROWS[HELD_OUT]).argmax(1) == LABELS[HELD_OUT]).float().mean()
    print(f"accuracy {hits:.4f}")


def in_a_method() -> None:
    class Lit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = Network()

        def training_step(self, given: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
            return functional.cross_entropy(self.network(given), label)

        def validation_step(self) -> float:
            with torch.no_grad():
                return functional.cross_entropy(self.network(ROWS[HELD_OUT]), LABELS[HELD_OUT]).item()

    model = Lit()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model.train()
        for at in range(0, 64, 16):
            optimizer.zero_grad()
            model.training_step(ROWS[at : at + 16], LABELS[at : at + 16]).backward()
            optimizer.step()
        model.eval()
        print(f"val loss {model.validation_step():.4f}")


def with_a_part_that_nothing_uses() -> None:
    model = Network()
    model.add_module("spare", nn.Identity())
    model.register_parameter("scale", nn.Parameter(torch.ones(3)))
    fit(model)


def with_a_loss_by_hand() -> None:
    model = Network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(3):
        for rows in (torch.randperm(64)[at : at + 16] for at in range(0, 64, 16)):
            chosen = model(ROWS[rows]).log_softmax(1).gather(1, LABELS[rows, None])
            optimizer.zero_grad()
            (-chosen.mean()).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            loss = -model(ROWS[HELD_OUT]).log_softmax(1).gather(1, LABELS[HELD_OUT, None]).mean()
        model.train()
        print(f"epoch {epoch} val loss {loss:.5f}")


def with_rates_by_hand() -> None:
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for update in range(12):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * (1 - update / 12)
        optimizer.zero_grad()
        functional.cross_entropy(model(ROWS[:64]), LABELS[:64]).backward()
        optimizer.step()


def scored_by_numpy() -> None:
    model = Network()
    fit(model)
    model.eval()
    with torch.no_grad():
        logits = model(ROWS[HELD_OUT]).numpy()
    hits = logits.argmax(1) == LABELS[HELD_OUT].numpy()
    print(f"accuracy {hits.mean():.4f}")


def with_a_frozen_body() -> None:
    model = Network()
    model[0].requires_grad_(False)
    fit(model)
    model.eval()
    with torch.no_grad():
        print(f"test loss {functional.cross_entropy(model(ROWS[HELD_OUT]), LABELS[HELD_OUT]):.4f}")


EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("scored_by_nobody", "mode::evaluation-in-train-mode"): "an answer that nothing scores is no evaluation",
    ("scored_by_nobody", "mode::evaluation-with-graph"): "an answer that nothing scores is no evaluation",
    ("with_a_graph", "mode::evaluation-with-graph"): "once, it costs hardly anything",
    ("forgets_both", "mode::evaluation-with-graph"): "once, it costs hardly anything",
    ("with_a_part_that_nothing_uses", "gradients::cut-off"): "one tensor may be unused",
    ("with_a_loss_by_hand", "mode::evaluation-in-train-mode"): "without a graph, a loss by hand is no loss yet",
    ("with_a_loss_by_hand", "mode::evaluation-with-graph"): "without a graph, a loss by hand is no loss yet",
    ("scored_by_numpy", "mode::evaluation-in-train-mode"): "what NumPy makes of it is not seen",
    ("scored_by_numpy", "mode::evaluation-with-graph"): "what NumPy makes of it is not seen",
}
"""Loop and check to the reason for which it does not look though the page has the line."""

LOOPS = [
    over_a_loader, once_at_the_end, by_forward, with_a_graph, on_some_training_rows, scored_by_nobody,
    row_by_row, from_a_generator, forgets_both, in_a_method, with_a_part_that_nothing_uses,
    with_a_loss_by_hand, with_rates_by_hand, scored_by_numpy, with_a_frozen_body,
]  # fmt: skip


def account_of(loop: Callable[[], None]) -> Account:
    torch.manual_seed(1)
    session = Session(Options(checks_of(catalogue.checks()), every=1, sections=SECTIONS), Locator())
    with instrumented(session):
        loop()
    session.ends()
    return Account(list(lines_of(session)), session.looked, session.lacking)


def not_looked_at(loop: Callable[[], None]) -> dict[str, str]:
    """The checks that did not look, of those that judge lines of the page, each with its reason."""
    account = account_of(loop)
    assert any(kind.is_in(line) for kind in KINDS for line in account.lines), "the page has no line of these"
    return {check: why for _, check, why in account.not_looked_at()}


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_what_the_page_shows_is_judged(loop: Callable[[], None]) -> None:
    meant = {check for name, check in EXCEPTIONS if name == loop.__name__}
    assert {check: why for check, why in not_looked_at(loop).items() if check not in meant} == {}


@pytest.mark.parametrize("loop", [over_a_loader, once_at_the_end, by_forward, from_a_generator])
def test_what_has_held_has_the_count_and_the_formula_of_the_page(loop: Callable[[], None]) -> None:
    account = account_of(loop)
    lines = account.lines
    rows = next(line.facts[key] for line in lines for key in line.facts if key.endswith("asked.different"))
    assert account.looked["rows::evaluated-on-training-rows"] == f"{rows} evaluated rows, none of them trained on"
    reported = [line.text.partition("; it is ")[2] for line in lines if line.text.startswith("reported: ")]
    judged = {said.partition(", ")[2] for check in NUMBERS if (said := account.looked.get(check))}
    assert judged <= {*reported}
    assert len(judged) == 1


def test_a_line_that_no_check_judges_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Evaluations, "on_end", lambda self, event: None)
    lost = not_looked_at(once_at_the_end)
    assert {*lost} == {
        "rows::evaluated-on-training-rows",
        "mode::evaluation-in-train-mode",
        "mode::evaluation-with-graph",
    }
    assert set(lost.values()) == {"no evaluation whose rows are known was seen", "no evaluation was seen"}
    assert account_of(once_at_the_end).contradicted() == lost


def every_check(kinds: Sequence[Judged]) -> set[str]:
    return {check for kind in kinds for check in kind.checks}


def test_the_checks_are_there() -> None:
    assert every_check(KINDS) <= {*catalogue.checks()}
    assert {check for _, check in EXCEPTIONS} <= every_check(KINDS)


OF_PROGRAMS: Mapping[tuple[str, str], str] = {
    ("forum/right/clean_wgan_gp", "mode::evaluation-in-train-mode"): "a critic is asked for what trains the generator",
    ("forum/right/clean_wgan_gp", "mode::evaluation-with-graph"): "the same",
    ("forum/right/clean_wgan_gp", "rows::evaluated-on-training-rows"): "the same",
    ("kinds/bugs/wgan_gp_ring", "rows::evaluated-on-training-rows"): "the same",
}
"""Program and check to the reason for which its calls without an update are no evaluation."""


def programs() -> Iterator[Any]:
    for part in PARTS:
        for version in versions_of(part):
            if version.program.processes == 1:
                yield pytest.param(version, id=f"{part}/{version.file}".removesuffix(".py"))


@pytest.mark.nightly
@pytest.mark.parametrize("version", list(programs()))
def test_no_check_says_of_a_program_what_its_page_contradicts(version: Version, pytestconfig: pytest.Config) -> None:
    if not installed("transformers>=5"):
        pytest.skip("the programs are written for transformers 5")
    for needed in version.program.needs:
        if not installed(needed):
            pytest.skip(f"needs {needed}, of the extra styles")
    server = server_of(pytestconfig)
    with tempfile.TemporaryDirectory(dir=server.folder) as name:
        shutil.copy(version.path, name)
        words = (version.file.name, *version.program.arguments)
        done = server.run(Path(name), *words, program="tests.describe.accounts", limit=LIMIT)
        assert Path(name, ACCOUNT).exists(), done.stderr[-2000:]
        account = Account.read(Path(name, ACCOUNT))
    name = f"{version.path.parts[-3]}/{version.file}"
    meant = {check for program, check in OF_PROGRAMS if name == f"{program}.py"}
    assert {check: why for check, why in account.contradicted().items() if check not in meant} == {}
