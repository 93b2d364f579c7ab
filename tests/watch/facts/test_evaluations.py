"""Evaluations and losses by hand: what is found without a DataLoader, and what must not be."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Subset, TensorDataset

from harness.watch import watch
from harness.watch.bus import OutcomeListener
from harness.watch.events import Pairing, Scored
from harness.watch.instrument import instrumented
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options
from harness.watch.session import Session
from tests.watch.facts.small import found

ROWS, UNSEEN = 240, 60


def data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    inputs = torch.randn(ROWS + UNSEEN, 8)
    labels = (inputs[:, 0] > 0).long()
    return inputs[:ROWS], labels[:ROWS], inputs[ROWS:].clone(), labels[ROWS:].clone()


def batches(epochs: int = 1) -> Iterator[torch.Tensor]:
    for _ in range(epochs):
        yield from torch.randperm(ROWS).split(24)


def classifier(classes: int = 2) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, classes))


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=1e-2)


def step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


# In train mode


def evaluates(
    *, calls_eval: bool, epochs: int, samples: int = 1, training_rows: bool = False, anew: bool = False
) -> None:
    inputs, labels, unseen, true = data()
    if training_rows:
        unseen, true = inputs, labels
    model = classifier()
    optimizer = adam(model)
    for _ in range(epochs):
        model.train()
        for rows in batches():
            step(optimizer, functional.cross_entropy(model(inputs[rows]), labels[rows]))
        if calls_eval:
            model.eval()
        with torch.no_grad():
            for part, expected in zip(unseen.split(30), true.split(30), strict=True):
                logits = torch.stack([model(part.clone() if anew else part) for _ in range(samples)]).mean(dim=0)
                (logits.argmax(dim=1) == expected).float().mean()


@pytest.mark.parametrize("epochs", [1, 3])
def test_an_evaluation_in_train_mode(epochs: int) -> None:
    assert found(lambda: evaluates(calls_eval=False, epochs=epochs)) == {"mode::evaluation-in-train-mode"}
    assert found(lambda: evaluates(calls_eval=True, epochs=epochs)) == set()


def test_samples_and_training_rows_in_train_mode_are_right() -> None:
    assert found(lambda: evaluates(calls_eval=False, epochs=3, samples=5)) == set()
    assert found(lambda: evaluates(calls_eval=False, epochs=3, samples=5, anew=True)) == set()
    assert found(lambda: evaluates(calls_eval=False, epochs=3, anew=True)) == {"mode::evaluation-in-train-mode"}
    assert found(lambda: evaluates(calls_eval=False, epochs=3, training_rows=True)) == set()


def new_rows(*, calls_eval: bool, graph: bool, trained: bool = False) -> None:
    """Rows come from a generator: those of an evaluation are others each time, and the last update comes after it."""
    inputs, labels, unseen, true = data()
    if trained:
        unseen, true = inputs, labels
    model = classifier()
    optimizer = adam(model)
    for rows in batches(4):
        step(optimizer, functional.cross_entropy(model(inputs[rows]), labels[rows]))
        if rows[0] % 3 == 0:
            model.train(not calls_eval)
            chosen = torch.randint(len(unseen), (16,))
            with torch.set_grad_enabled(graph):
                functional.cross_entropy(model(unseen[chosen]), true[chosen]).item()
            model.train()
    step(optimizer, functional.cross_entropy(model(inputs), labels))


def test_an_evaluation_of_other_rows_each_time() -> None:
    train_mode, with_graph = "mode::evaluation-in-train-mode", "mode::evaluation-with-graph"
    assert found(lambda: new_rows(calls_eval=True, graph=False)) == set()
    assert found(lambda: new_rows(calls_eval=False, graph=False)) == {train_mode}
    assert found(lambda: new_rows(calls_eval=False, graph=True)) == {train_mode, with_graph}
    assert found(lambda: new_rows(calls_eval=True, graph=True)) == {with_graph}
    assert found(lambda: new_rows(calls_eval=False, graph=True, trained=True)) == set()


def mean_teacher() -> None:
    inputs, labels, *_ = data()
    student = classifier()
    teacher, optimizer = copy.deepcopy(student), adam(student)
    for rows in batches(3):
        with torch.no_grad():
            guess = teacher(inputs[rows])
            (guess.argmax(dim=1) == labels[rows]).float().mean()
        logits = student(inputs[rows])
        step(optimizer, functional.cross_entropy(logits, labels[rows]) + functional.mse_loss(logits, guess))
        with torch.no_grad():
            for mine, its in zip(teacher.parameters(), student.parameters(), strict=True):
                mine.lerp_(its, 0.1)


def chooses_rows_by_their_loss() -> None:
    inputs, labels, *_ = data()
    model = classifier()
    optimizer = adam(model)
    for rows in batches(3):
        with torch.no_grad():
            kept = rows[
                functional.cross_entropy(model(inputs[rows]), labels[rows], reduction="none").topk(12, largest=False)[1]
            ]
        step(optimizer, functional.cross_entropy(model(inputs[kept]), labels[kept]))


def shows_pictures_of_the_same_noise() -> None:
    inputs, *_ = data()
    generator, noise = classifier(8), torch.randn(16, 8)
    optimizer = adam(generator)
    for rows in batches(3):
        step(optimizer, (generator(torch.randn(24, 8)).mean(dim=0) - inputs[rows].mean(dim=0)).pow(2).sum())
        with torch.no_grad():
            generator(noise)


def attacks_in_eval_mode() -> None:
    inputs, labels, *_ = data()
    model = classifier()
    optimizer = adam(model)
    for rows in batches():
        model.eval()
        attacked = inputs[rows].clone().requires_grad_()
        functional.cross_entropy(model(attacked), labels[rows]).backward()
        assert attacked.grad is not None
        model.train()
        step(optimizer, functional.cross_entropy(model(attacked.detach() + 0.1 * attacked.grad.sign()), labels[rows]))


def looks_ahead() -> None:
    """A network's answers to the next rows are targets, without a gradient, as in Q-learning."""
    inputs, *_ = data()
    model = classifier()
    optimizer = adam(model)
    for rows in batches(3):
        following = model(torch.randn(24, 8)).max(dim=1)[0].detach()
        chosen = model(inputs[rows]).max(dim=1)[0]
        step(optimizer, functional.mse_loss(chosen, 0.9 * following))
        chosen = model(inputs[rows]).max(dim=1)[0]
        following = model(torch.randn(24, 8)).max(dim=1)[0].detach()
        step(optimizer, functional.mse_loss(chosen, 0.9 * following))


@pytest.mark.parametrize(
    "loop",
    [mean_teacher, looks_ahead, chooses_rows_by_their_loss, shows_pictures_of_the_same_noise, attacks_in_eval_mode],
)
def test_what_is_no_evaluation(loop: Callable[[], None]) -> None:
    assert {each for each in found(loop) if each.startswith(("mode", "model", "metrics", "loss"))} == set()


# In eval mode


class Noisy(nn.Module):
    def __init__(self, noise: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.noise = nn.Linear(8, 16), nn.Linear(16, 2), noise

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.second(self.noise(self.first(inputs)))


def predicts(noise: Callable[[torch.Tensor], torch.Tensor], samples: int) -> None:
    inputs, labels, unseen, _ = data()
    model = Noisy(noise)
    optimizer = adam(model)
    for rows in batches():
        step(optimizer, functional.cross_entropy(model(inputs[rows]), labels[rows]))
    model.eval()
    with torch.no_grad():
        for _ in range(samples):
            model(unseen)


def test_only_dropout_is_no_chance_on_purpose() -> None:
    fault = {"model::nondeterministic-eval"}
    assert found(lambda: predicts(lambda hidden: functional.dropout(hidden, 0.2), 2)) == fault
    assert found(lambda: predicts(lambda hidden: nn.Dropout(0.2)(hidden), 2)) == fault
    assert found(lambda: predicts(lambda hidden: functional.dropout(hidden, 0.2), 5)) == set()
    assert found(lambda: predicts(lambda hidden: hidden + torch.randn_like(hidden), 2)) == set()


class Reader(nn.Module):
    """Reads sequences of 5 steps, (rows, 5, 3), or one of 20 of them at a time where ``unbatched``."""

    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        self.recurrent, self.head = nn.GRU(3, 8, batch_first=batch_first), nn.Linear(8, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(inputs)[0][:, -1])


def reads(*, batch_first: bool, shuffles: bool) -> None:
    inputs, labels = torch.randn(ROWS, 5, 3), torch.randint(2, (ROWS,))
    model = Reader(batch_first=batch_first)
    optimizer = adam(model)
    for _ in range(11):
        for rows in torch.randperm(ROWS).split(40) if shuffles else torch.arange(ROWS).split(40):
            step(optimizer, functional.cross_entropy(model(inputs[rows]), labels[rows]))
    model.eval()
    with torch.no_grad():
        model(torch.randn(50, 5, 3))


def test_rows_are_what_is_shuffled() -> None:
    """The same model is wrong for rows, and right for the members of a set, such as all stocks of a day."""
    assert found(lambda: reads(batch_first=False, shuffles=True)) == {"model::output-depends-on-batch"}
    assert found(lambda: reads(batch_first=True, shuffles=True)) == set()
    assert found(lambda: reads(batch_first=False, shuffles=False)) == set()


# Losses and accuracies by hand


def regresses(loss_of: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
    inputs, *_ = data()
    model = nn.Linear(8, 1)
    optimizer = adam(model)
    for rows in batches():
        step(optimizer, loss_of(model(inputs[rows]), inputs[rows].sum(dim=1)))


def test_differences_by_hand() -> None:
    assert found(lambda: regresses(lambda given, true: (given - true).pow(2).mean())) == {"loss::broadcast"}
    assert found(lambda: regresses(lambda given, true: (true - given).abs().mean())) == {"loss::broadcast"}
    assert found(lambda: regresses(lambda given, true: (given.squeeze(1) - true).pow(2).mean())) == set()
    assert found(lambda: regresses(lambda given, true: (given - true.unsqueeze(0)).abs().mean())) == set()
    energy = found(
        lambda: regresses(lambda given, true: 2 * (given - true).abs().mean() - (given - given.T).abs().mean())
    )
    assert energy == set()
    assert found(lambda: regresses(lambda given, true: functional.mse_loss(given, torch.zeros(1)))) == set()


def scores(compare: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
    inputs, labels, unseen, true = data()
    model = nn.Linear(8, 1)
    optimizer = adam(model)
    for rows in batches():
        step(
            optimizer, functional.binary_cross_entropy_with_logits(model(inputs[rows]).squeeze(1), labels[rows].float())
        )
    with torch.no_grad():
        compare((model(unseen) > 0).long(), true)


def test_accuracies_by_hand() -> None:
    assert found(lambda: scores(lambda given, true: given == true)) == {"metrics::broadcast"}
    assert found(lambda: scores(lambda given, true: given.ne(true))) == {"metrics::broadcast"}
    assert found(lambda: scores(lambda given, true: given.squeeze(1) == true)) == set()
    assert found(lambda: scores(lambda given, true: true.unsqueeze(1) == true)) == set()
    assert found(lambda: scores(lambda given, true: true.unsqueeze(1) == torch.randint(2, (UNSEEN,)))) == set()


def test_what_is_told_of_operations_by_hand() -> None:
    told: list[object] = []

    class Listens(OutcomeListener):
        id = "tests::listens"

        def __init__(self, monitor: Monitor) -> None: ...

        def on_pairing(self, event: Pairing) -> None:
            told.append((event.sign, tuple(event.one.shape), tuple(event.other.shape)))

        def on_scored(self, event: Scored) -> None:
            told.append(event.forward.number)

    threads = Session(Options(checks=(Listens,), every=1), Locator())
    model, flat, column = nn.Linear(2, 1), torch.ones(3), torch.ones(3, 1)
    with instrumented(threads):
        assert (flat - column).shape == (3, 3)
        assert bool((flat == flat).all())
        with torch.no_grad():
            model(torch.ones(3, 2))
            assert column.eq(flat).shape == (3, 3)
            assert bool((flat == 1).all())
            assert bool((flat == flat).all())
            functional.mse_loss(flat, flat)
            functional.softplus(flat)
    threads.ends()
    assert told == [("-", (3,), (3, 1)), ("==", (3, 1), (3,)), 1, 1]


# Losses that are kept, and numbers that a metric is given


def test_losses_that_are_kept_with_a_last_layer_that_has_a_bias() -> None:
    """What goes back from such a loss comes to the bias first, which is one and the same in all graphs."""
    kept: list[torch.Tensor] = []

    def keeps(loss: torch.Tensor) -> torch.Tensor:
        kept.append(loss)
        return loss

    def loss_of(given: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
        return functional.mse_loss(given, true[:, None])

    assert found(lambda: regresses(lambda given, true: keeps(loss_of(given, true)))) == {"memory::graphs-kept"}
    assert found(lambda: regresses(loss_of)) == set()


def reports(numbers: Callable[[torch.Tensor], list[object]]) -> None:
    """An accuracy of the last batch alone."""
    from sklearn.metrics import accuracy_score

    inputs, labels, unseen, true = data()
    model = nn.Linear(8, 2)
    optimizer = adam(model)
    for rows in batches():
        step(optimizer, functional.cross_entropy(model(inputs[rows]), labels[rows]))
    with torch.no_grad():
        guesses = [model(batch).argmax(dim=1) for batch, _ in DataLoader(TensorDataset(unseen, true), batch_size=20)]
    accuracy_score(numbers(true[-20:]), numbers(guesses[-1]))


@pytest.mark.parametrize("numbers", [torch.Tensor.tolist, lambda each: list(each.numpy()), list])
def test_a_metric_is_given_lists_of_any_numbers(numbers: Callable[[torch.Tensor], list[object]]) -> None:
    assert found(lambda: reports(numbers)) == {"metrics::rows-missing-or-repeated"}


@pytest.mark.parametrize("anew", [False, True], ids=["one model", "a model for each fold"])
def test_a_model_that_is_carried_from_fold_to_fold(*, anew: bool) -> None:
    torch.manual_seed(0)
    whole = TensorDataset(*data()[:2])
    with watch(raise_errors=False, select=["rows::evaluated-on-training-rows"]) as watched:
        model = classifier()
        for fold in range(3):
            model = classifier() if anew else model
            optimizer = adam(model)
            held = [row for row in range(ROWS) if row % 3 == fold]
            rest = [row for row in range(ROWS) if row % 3 != fold]
            for inputs, labels in DataLoader(Subset(whole, rest), batch_size=24, shuffle=True):
                step(optimizer, functional.cross_entropy(model(inputs), labels))
            model.eval()
            with torch.no_grad():
                for inputs, labels in DataLoader(Subset(whole, held), batch_size=24):
                    functional.cross_entropy(model(inputs), labels)
            model.train()
    found = watched.all_findings
    assert bool(found) is not anew
    assert all("Make a new model" in each.hint and "in another split" in each.observed for each in found)


@pytest.mark.parametrize("read", ["it", "its rows, by another", "none"])
def test_a_loader_that_is_never_read(read: str) -> None:
    inputs, labels, unseen, true = data()
    training, held_out = (DataLoader(TensorDataset(*rows), 60) for rows in ((inputs, labels), (unseen, true)))
    prepared = DataLoader(held_out.dataset, 30)
    evaluated = {"it": held_out, "its rows, by another": prepared, "none": training}[read]
    model = classifier()
    optimizer = adam(model)
    with watch(raise_errors=False) as watched:
        validating = DataLoader(TensorDataset(unseen, true) if read == "none" else held_out.dataset, 60)
        for rows, wanted in training:
            step(optimizer, functional.cross_entropy(model(rows), wanted))
        model.eval()
        with torch.no_grad():
            for rows, wanted in evaluated:
                functional.cross_entropy(model(rows), wanted)
    assert len(validating) == 1
    notes = [note for note in watched.notes if note.startswith("nothing was read from the DataLoader that was made at")]
    assert len(notes) == (read == "none")


@pytest.mark.parametrize("labels_of", ["other rows", "their rows", "rows in another order", "their rows, in place"])
def test_labels_that_are_a_slice(labels_of: str) -> None:
    def loop() -> None:
        inputs, labels, *_ = data()
        model = classifier()
        optimizer = adam(model)
        for _ in range(2):
            order = torch.randperm(ROWS)
            if labels_of == "rows in another order":
                inputs, labels = inputs[order], labels[order]
            elif labels_of == "their rows, in place":
                inputs.copy_(inputs[order])
                labels.copy_(labels[order])
            for i in range(0, ROWS, 24):
                picked, place = order[i : i + 24], slice(i, i + 24)
                if labels_of == "other rows":
                    step(optimizer, functional.cross_entropy(model(inputs[picked]), labels[place]))
                elif labels_of == "their rows":
                    step(optimizer, functional.cross_entropy(model(inputs[picked]), labels[picked]))
                else:
                    within = torch.arange(i, i + 24)
                    step(optimizer, functional.cross_entropy(model(inputs[within]), labels[place]))

    assert found(loop) == ({"rows::labels-of-other-rows"} if labels_of == "other rows" else set())
