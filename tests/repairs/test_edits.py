"""What each repair makes of a script's text: it touches one place, and leaves comments, tabs and line ends alone."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from harness import catalogue
from harness.findings import Finding
from harness.repairs.repair import all_repairs, candidates
from harness.watch.check import Found
from harness.watch.checks.optimizer.steps import NeverSteps
from tests.checks.judging import all_cases, judged


class Edit(NamedTuple):
    """A check's finding at the line that has ``at`` in it, and the first edit that is tried for it."""

    check: str
    at: str
    before: str
    after: str
    details: Mapping[str, str] = MappingProxyType({})
    """What the check says of its finding that the repair reads."""


def edits(check: str, at: str, text: str, **details: str) -> list[str]:
    """The texts that are tried, in their order."""
    (line,) = [number for number, each in enumerate(text.splitlines(), start=1) if at in each]
    finding = Finding("", "", "", f"train.py:{line}", check=check, details=details)
    return [each.decode() for each in candidates(text.encode(), finding)]


EDITS = [
    Edit(
        "gradients::not-cleared",
        "optimizer.step",
        """
        for batch in loader:
            loss.backward()
            optimizer.step()  # an update

            # what is shown
            print(loss)
        """,
        """
        for batch in loader:
            loss.backward()
            optimizer.step()  # an update
            optimizer.zero_grad()

            # what is shown
            print(loss)
        """,
    ),
    Edit(
        "gradients::not-cleared",
        "scaler.step",
        """
        class Fit:
            async def train(self):
                async for batch in self.loader:
                    if self.ready: self.scaler.step(self.optimizer)
                    self.scaler.update()
        """,
        """
        class Fit:
            async def train(self):
                async for batch in self.loader:
                    if self.ready: self.scaler.step(self.optimizer); self.optimizer.zero_grad()
                    self.scaler.update()
        """,
    ),
    Edit(
        "gradients::lost",
        "zero_grad",
        """
        for batch in loader:
            loss.backward()

            optimizer.zero_grad()  # for the next one
            optimizer.step()
            scheduler.step()
        """,
        """
        for batch in loader:
            loss.backward()

            optimizer.step()
            optimizer.zero_grad()  # for the next one
            scheduler.step()
        """,
    ),
    Edit(
        "gradients::left-over",
        "optimizer.step",
        """
        for i, batch in enumerate(loader):
            (loss / 3).backward()
            if (i + 1) % 3 == 0:  # a window
                optimizer.step()
        """,
        """
        for i, batch in enumerate(loader):
            (loss / 3).backward()
            if (i + 1) % 3 == 0 or i + 1 == len(loader):  # a window
                optimizer.step()
        """,
    ),
    Edit(
        "gradients::accumulation-unscaled",
        "backward",
        """
        for i, batch in enumerate(loader):
            scaler.scale(model(batch).loss).backward()
            if i % args.window == args.window - 1:
                scaler.step(optimizer)
        """,
        """
        for i, batch in enumerate(loader):
            scaler.scale(model(batch).loss / args.window).backward()
            if i % args.window == args.window - 1:
                scaler.step(optimizer)
        """,
    ),
    Edit(
        "gradients::accumulation-unscaled",
        "backward",
        """
        for _ in range(updates):
            for _ in range(n + 1):
                accelerator.backward(loss_of(next(batches)))
            optimizer.step()
        """,
        """
        for _ in range(updates):
            for _ in range(n + 1):
                accelerator.backward(loss_of(next(batches)) / (n + 1))
            optimizer.step()
        """,
    ),
    Edit(
        "gradients::misplaced-clipping",
        "clip_grad_norm_",
        """
        for batch in loader:
            loss.backward()
            optimizer.step()
            # no larger than 1
            clip_grad_norm_(model.parameters(), 1)
            optimizer.zero_grad()
        """,
        """
        for batch in loader:
            loss.backward()
            # no larger than 1
            clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            optimizer.zero_grad()
        """,
    ),
    Edit(
        "gradients::clipped-in-part",
        "clip_grad_norm_",
        """
        for step, batch in enumerate(loader, start=1):
            (loss_of(batch) / n).backward()
            clip_grad_norm_(model.parameters(), 1)
            if step % n == 0:
                optimizer.step()
                optimizer.zero_grad()
        """,
        """
        for step, batch in enumerate(loader, start=1):
            (loss_of(batch) / n).backward()
            if step % n == 0:
                clip_grad_norm_(model.parameters(), 1)
                optimizer.step()
                optimizer.zero_grad()
        """,
    ),
    Edit(
        "gradients::clipped-while-scaled",
        "clip_grad_norm_",
        """
        scaler.scale(loss).backward()
        clip_grad_norm_(model.parameters(), 1)
        scaler.step(optimizer)
        """,
        """
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1)
        scaler.step(optimizer)
        """,
    ),
    Edit(
        "gradients::not-scaled",
        "backward",
        """
        scaler.scale(loss)
        loss.backward()
        scaler.step(optimizer)
        """,
        """
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        """,
    ),
    Edit(
        "gradients::not-unscaled",
        "optimizer.step",
        """
        scaler.scale(loss).backward()
        optimizer.step()
        """,
        """
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        """,
    ),
    Edit(
        "groups::unknown-key",
        "AdamW",
        """
        groups = [
            {'params': head, 'learning_rate': 1e-3},
            {'params': body, 'learning_rate': 1e-5},
        ]
        optimizer = AdamW(groups)
        """,
        """
        groups = [
            {'params': head, 'lr': 1e-3},
            {'params': body, 'lr': 1e-5},
        ]
        optimizer = AdamW(groups)
        """,
        {"key": "learning_rate", "meant": "lr"},
    ),
    Edit(
        "inputs::labels-shifted-twice",
        "model(",
        """
        loss = model(input_ids=tokens[:, :-1], labels=tokens[:, 1:]).loss
        """,
        """
        loss = model(input_ids=tokens, labels=tokens).loss
        """,
    ),
    Edit(
        "inputs::stale-batch",
        "model(",
        """
        batch = next(iter(loader))
        for _data in loader:
            model(batch)
        """,
        """
        batch = next(iter(loader))
        for batch in loader:
            model(batch)
        """,
    ),
    Edit(
        "loss::broadcast",
        "mse_loss",
        """
        loss = F.mse_loss(model(x), y)
        """,
        """
        loss = F.mse_loss(model(x).squeeze(-1), y)
        """,
    ),
    Edit(
        "loss::broadcast",
        "mean",
        """
        loss = ((a + b) - y).pow(2).mean()
        """,
        """
        loss = ((a + b).squeeze(-1) - y).pow(2).mean()
        """,
    ),
    Edit(
        "loss::constant",
        "cross_entropy",
        """
        loss = F.cross_entropy(logits, labels)
        """,
        """
        loss = F.binary_cross_entropy_with_logits(logits, labels)
        """,
        {"case": "one-class"},
    ),
    Edit(
        "loss::axes-mixed",
        "criterion(",
        """
        loss = criterion(logits.view(8, 5, -1), y)
        """,
        """
        loss = criterion(logits.movedim(-1, 1), y)
        """,
    ),
    Edit(
        "loss::axes-mixed",
        "criterion(",
        """
        sizes = (8, 5, 7)
        loss = criterion((a + b).reshape((8, 5, 7)), y.view(8, 7))
        """,
        """
        sizes = (8, 5, 7)
        loss = criterion((a + b).movedim(-1, 1), y.view(8, 7))
        """,
    ),
    Edit(
        "loss::axes-mixed",
        "criterion(",
        """
        loss = criterion(torch.reshape(a + b, [8, 5, 7]), y)
        """,
        """
        loss = criterion((a + b).movedim(-1, 1), y)
        """,
    ),
    Edit(
        "loss::not-raw-logits",
        "criterion(",
        """
        loss = criterion(torch.softmax(model(x), dim=-1), y)
        """,
        """
        loss = criterion(model(x), y)
        """,
    ),
    Edit(
        "loss::not-raw-logits",
        "kl_div",
        """
        loss = kl_div(logits.softmax(-1), soft)
        """,
        """
        loss = kl_div(logits.log_softmax(-1), soft)
        """,
        {"takes": "log-probabilities"},
    ),
    Edit(
        "loss::not-raw-logits",
        "criterion(model",
        """
        model = nn.Sequential(
            nn.Linear(4, 3),
            nn.Softmax(dim=-1),
        )
        loss = criterion(model(x), y)
        """,
        """
        model = nn.Sequential(
            nn.Linear(4, 3),
        )
        loss = criterion(model(x), y)
        """,
    ),
    Edit(
        "loss::of-another-batch",
        "cross_entropy",
        """
        x, y = next(iter(loader))
        for x, _ in loader:
            cross_entropy(model(x), y).backward()
        """,
        """
        x, y = next(iter(loader))
        for x, y in loader:
            cross_entropy(model(x), y).backward()
        """,
    ),
    Edit(
        "loss::targets-truncated",
        "mse_loss",
        """
        targets = scores.long()  # of the rows
        loss = mse_loss(outputs, targets)
        """,
        """
        targets = scores  # of the rows
        loss = mse_loss(outputs, targets)
        """,
    ),
    Edit(
        "memory::graphs-kept",
        "loss = model",
        """
        for batch in loader:
            loss = model(**batch).loss
            loss.backward()
            log.append({"loss": loss})
        """,
        """
        for batch in loader:
            loss = model(**batch).loss
            loss.backward()
            log.append({"loss": loss.item()})
        """,
    ),
    Edit(
        "metrics::broadcast",
        "==",
        """
        right += (predicted == labels).sum()
        """,
        """
        right += (predicted.squeeze(-1) == labels).sum()
        """,
    ),
    Edit(
        "metrics::rows-missing-or-repeated",
        "accuracy_score",
        """
        predictions, references = [], []
        for epoch in range(3):
            train()
            for x, y in loader:
                predictions += model(x).argmax(-1).tolist()
                references += y.tolist()
            print(accuracy_score(references, predictions))
        """,
        """
        for epoch in range(3):
            train()
            predictions, references = [], []
            for x, y in loader:
                predictions += model(x).argmax(-1).tolist()
                references += y.tolist()
            print(accuracy_score(references, predictions))
        """,
    ),
    Edit(
        "metrics::wrong-predictions",
        "compute",
        """
        predictions = logits.argmax(dim=0)
        metric.compute(predictions=predictions, references=labels)
        """,
        """
        predictions = logits.argmax(dim=-1)
        metric.compute(predictions=predictions, references=labels)
        """,
    ),
    Edit(
        "mode::evaluation-in-train-mode",
        "model(",
        """
        def evaluate(model, loader):
            # no dropout
            with torch.no_grad():
                for batch in loader:
                    metric(model(**batch))
        """,
        """
        def evaluate(model, loader):
            model.eval()
            # no dropout
            with torch.no_grad():
                for batch in loader:
                    metric(model(**batch))
        """,
    ),
    Edit(
        "mode::evaluation-with-graph",
        "net(",
        """
        import torch


        @timed
        def scores(loader):
            return [net(x) for x in loader]
        """,
        """
        import torch


        @timed
        @torch.no_grad()
        def scores(loader):
            return [net(x) for x in loader]
        """,
    ),
    Edit(
        "mode::evaluation-with-graph",
        "net(",
        """
        import torch
        for x in loader:
            y = net(x)  # logits
            show(y)
        """,
        """
        import torch
        for x in loader:
            with torch.no_grad():
                y = net(x)  # logits
            show(y)
        """,
    ),
    Edit(
        "mode::training-in-eval-mode",
        "self.model(",
        """
        for epoch in range(3):
            for batch in loader:
                self.model(**batch).loss.backward()
            evaluate(self.model)
        """,
        """
        for epoch in range(3):
            self.model.train()
            for batch in loader:
                self.model(**batch).loss.backward()
            evaluate(self.model)
        """,
    ),
    Edit(
        "model::nondeterministic-eval",
        "evaluate(",
        """
        class Net(nn.Module):
            def forward(self, x):
                return self.head(F.dropout(
                    x,
                    0.1,
                ))
        evaluate(Net())
        """,
        """
        class Net(nn.Module):
            def forward(self, x):
                return self.head(F.dropout(
                    x,
                    0.1,
                    training=self.training,
                ))
        evaluate(Net())
        """,
    ),
    Edit(
        "model::output-depends-on-batch",
        "gru",
        """
        gru = nn.GRU(size, size)
        """,
        """
        gru = nn.GRU(size, size, batch_first=True)
        """,
    ),
    Edit(
        "optimizer::holds-another-model",
        "Adam(",
        """
        model = build()
        optimizer = Adam(model.parameters())

        model = build(3)
        """,
        """
        model = build()

        model = build(3)
        optimizer = Adam(model.parameters())
        """,
    ),
    Edit(
        "optimizer::made-again",
        "Adam(",
        """
        for epoch in range(3):
            optimizer = Adam(model.parameters())
            for batch in loader:
                train(batch)
        """,
        """
        optimizer = Adam(model.parameters())
        for epoch in range(3):
            for batch in loader:
                train(batch)
        """,
    ),
    Edit(
        "optimizer::made-again",
        "lr=lr",
        """
        optimizer = Adam(model.parameters())
        for epoch in range(3):
            optimizer = Adam(model.parameters(), lr=lr)
            train()
        """,
        """
        optimizer = Adam(model.parameters())
        for epoch in range(3):
            train()
        """,
    ),
    Edit(
        "optimizer::missing-parameters",
        "AdamW",
        """
        optimizer = AdamW(model.backbone.parameters())
        """,
        """
        optimizer = AdamW(model.parameters())
        """,
    ),
    Edit(
        "parameters::not-registered",
        "Adam(",
        """
        class Net(nn.Module):
            def __init__(self):
                self.layers = [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]
        optimizer = Adam(net.parameters())
        """,
        """
        class Net(nn.Module):
            def __init__(self):
                self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])
        optimizer = Adam(net.parameters())
        """,
    ),
    Edit(
        "parameters::frozen-changed",
        "optimizer.step",
        """
        encoder.requires_grad_(False)
        for batch in loader:
            optimizer.zero_grad(set_to_none=False)
            optimizer.step()
        """,
        """
        encoder.requires_grad_(False)
        for batch in loader:
            optimizer.zero_grad()
            optimizer.step()
        """,
    ),
    Edit(
        "parameters::freezes-nothing",
        "model(",
        """
        model.bert.requires_grad = False; model.head.train()
        model(x)
        """,
        """
        model.bert.requires_grad_(False); model.head.train()
        model(x)
        """,
    ),
    Edit(
        "parameters::reset",
        "optimizer.step",
        """
        for epoch in range(3):
            restore()
            for batch in loader:
                loss.backward()
                optimizer.step()
        """,
        """
        restore()
        for epoch in range(3):
            for batch in loader:
                loss.backward()
                optimizer.step()
        """,
    ),
    Edit(
        "optimizer::never-steps",
        "Adam(",
        """
        optimizer = Adam(model.parameters())
        for batch in loader:
            loss.backward()
            clip_grad_norm_(model.parameters(), 1)
            optimizer.zero_grad()
        """,
        """
        optimizer = Adam(model.parameters())
        for batch in loader:
            loss.backward()
            clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            optimizer.zero_grad()
        """,
        {"case": "no-step"},
    ),
    Edit(
        "rows::changed-in-place",
        "for",
        """
        class Rows:
            def __getitem__(self, i):
                row = self.rows[i]
                row /= a + b
                return row
        for row in Rows(): ...
        """,
        """
        class Rows:
            def __getitem__(self, i):
                row = self.rows[i]
                row = row / (a + b)
                return row
        for row in Rows(): ...
        """,
    ),
    Edit(
        "rows::evaluation-incomplete",
        "model(",
        """
        train = DataLoader(rows, shuffle=True, drop_last=True)
        test = DataLoader(rows, 8, drop_last=True)
        for x in test: model(x)
        """,
        """
        train = DataLoader(rows, shuffle=True, drop_last=True)
        test = DataLoader(rows, 8)
        for x in test: model(x)
        """,
    ),
    Edit(
        "rows::same-order-each-epoch",
        "model(",
        """
        test = DataLoader(others, batch_size=8)
        train = DataLoader(rows, batch_size=8, shuffle=False)
        for x in train:
            model(x).backward()
        """,
        """
        test = DataLoader(others, batch_size=8)
        train = DataLoader(rows, batch_size=8, shuffle=True)
        for x in train:
            model(x).backward()
        """,
        {"sampler": "SequentialSampler"},
    ),
    Edit(
        "saved::best-is-worst",
        "save(",
        """
        if loss >= best:
            save(model)
        """,
        """
        if loss <= best:
            save(model)
        """,
    ),
    Edit(
        "saved::resumed-incompletely",
        "optimizer.step",
        """
        torch.save({"m": model.state_dict(), "o": optimizer.state_dict()}, path)
        kept = torch.load(path)
        model.load_state_dict(kept["m"])
        optimizer.step()
        """,
        """
        torch.save({"m": model.state_dict(), "o": optimizer.state_dict()}, path)
        kept = torch.load(path)
        model.load_state_dict(kept["m"])
        optimizer.load_state_dict(kept["o"])
        optimizer.step()
        """,
    ),
    Edit(
        "schedule::drives-another-optimizer",
        "LambdaLR",
        """
        optimizer = SGD(model.parameters(), lr=1)
        schedule = LambdaLR(optimizer, decay)
        optimizer = SGD(model.parameters(), lr=2)
        """,
        """
        optimizer = SGD(model.parameters(), lr=1)
        optimizer = SGD(model.parameters(), lr=2)
        schedule = LambdaLR(optimizer, decay)
        """,
    ),
    Edit(
        "schedule::lr-zero",
        "LambdaLR",
        """
        schedule = LambdaLR(optimizer, lambda n: (9 - n)//9)
        """,
        """
        schedule = LambdaLR(optimizer, lambda n: (9 - n)/9)
        """,
    ),
    Edit(
        "schedule::plateau-wrong-mode",
        "Plateau",
        """
        schedule = ReduceLROnPlateau(optimizer, "min", patience=2)
        """,
        """
        schedule = ReduceLROnPlateau(optimizer, "max", patience=2)
        """,
        {"mode": "max"},
    ),
    Edit(
        "schedule::stepped-before-update",
        "lr_scheduler.step",
        """
        for batch in loader:
            loss.backward()
            lr_scheduler.step()
            optimizer.step()
        """,
        """
        for batch in loader:
            loss.backward()
            optimizer.step()
            lr_scheduler.step()
        """,
    ),
    Edit(
        "schedule::stepped-in-wrong-unit",
        "scheduler.step",
        """
        for epoch in range(3):
            for batch in loader:
                optimizer.step()
                scheduler.step()

            evaluate()
        """,
        """
        for epoch in range(3):
            for batch in loader:
                optimizer.step()
            scheduler.step()

            evaluate()
        """,
    ),
    Edit(
        "schedule::never-stepped",
        "get_scheduler",
        """
        scheduler = get_scheduler("linear", optimizer)
        for batch in loader:
            optimizer.step()
        """,
        """
        scheduler = get_scheduler("linear", optimizer)
        for batch in loader:
            optimizer.step()
            scheduler.step()
        """,
    ),
    Edit(
        "schedule::warmup-never-ends",
        "warmup",
        """
        schedule = get_linear_schedule_with_warmup(optimizer, num_training_steps=warm, num_warmup_steps=9 * n)
        """,
        """
        schedule = get_linear_schedule_with_warmup(optimizer, num_training_steps=9 * n, num_warmup_steps=warm)
        """,
    ),
    Edit(
        "schedule::wrong-length",
        "LinearLR",
        """
        schedule = LinearLR(optimizer, total_iters=epochs * len(loader))
        for i, x in enumerate(loader):
            loss.backward()
            if i % 4 == 3: optimizer.step()
        """,
        """
        schedule = LinearLR(optimizer, total_iters=epochs * len(loader) // 4)
        for i, x in enumerate(loader):
            loss.backward()
            if i % 4 == 3: optimizer.step()
        """,
        {"case": "too-long"},
    ),
    Edit(
        "schedule::wrong-length",
        "get_scheduler",
        """
        schedule = get_scheduler("linear", optimizer, num_training_steps=len(loader))
        for _ in range(args.epochs):
            for batch in loader:
                optimizer.step()
        """,
        """
        schedule = get_scheduler("linear", optimizer, num_training_steps=args.epochs * len(loader))
        for _ in range(args.epochs):
            for batch in loader:
                optimizer.step()
        """,
        {"case": "too-short"},
    ),
    Edit(
        "optimizer::maximizes",
        "SGD",
        """
        optimizer = SGD(
            model.parameters(),
            lr=0.1,
            maximize=True,
        )
        """,
        """
        optimizer = SGD(
            model.parameters(),
            lr=0.1,
        )
        """,
    ),
    Edit(
        "update::ascends",
        "backward",
        """
        loss = -nll_loss(x, y)
        loss.backward()
        """,
        """
        loss = nll_loss(x, y)
        loss.backward()
        """,
    ),
    Edit(
        "weights::units-alike",
        "model(",
        """
        nn.init.constant_(layer.weight, 0.1)
        model(x)
        """,
        """
        nn.init.xavier_uniform_(layer.weight)
        model(x)
        """,
    ),
    Edit(
        "gradients::lost",
        "zero_grad",
        """
        for x in range(60):
            loss = criterion(model(x), y)

            opt.zero_grad()
            opt.step()
            loss.backward()  # at last
            print(x)
        """,
        """
        for x in range(60):
            loss = criterion(model(x), y)

            opt.zero_grad()
            loss.backward()  # at last
            opt.step()
            print(x)
        """,
        {"case": "step-before-backward"},
    ),
    Edit(
        "loss::not-raw-logits",
        "criterion",
        """
        class Net(nn.Module):
            def forward(self, x):
                x = torch.relu(self.one(x))
                x = F.softmax(self.two(x), dim=1)  # classes

                return x

        loss = criterion(Net()(x), y)
        """,
        """
        class Net(nn.Module):
            def forward(self, x):
                x = torch.relu(self.one(x))
                x = self.two(x)  # classes

                return x

        loss = criterion(Net()(x), y)
        """,
    ),
    Edit(
        "loss::not-raw-logits",
        "criterion",
        """
        class Net(nn.Module):
            def forward(self, x):
                return self.softmax(self.head(x))

        loss = criterion(Net()(x), y)
        """,
        """
        class Net(nn.Module):
            def forward(self, x):
                return self.head(x)

        loss = criterion(Net()(x), y)
        """,
    ),
    Edit(
        "metrics::rows-missing-or-repeated",
        "f1_score",
        """
        guesses = []
        truth = []  # of the rows
        for epoch in range(2):
            train(model)
            for x, y in loader:
                guesses += model(x).argmax(1).tolist()
                truth += y.tolist()
            print(f1_score(truth, guesses))
        """,
        """
        for epoch in range(2):
            train(model)
            guesses = []
            truth = []  # of the rows
            for x, y in loader:
                guesses += model(x).argmax(1).tolist()
                truth += y.tolist()
            print(f1_score(truth, guesses))
        """,
    ),
    Edit(
        "optimizer::missing-parameters",
        "Adam",
        """
        reader = Reader(8).to(device)
        writer = Writer(8).to(device)
        optimizer = Adam(writer.parameters(), lr=0.1)
        """,
        """
        reader = Reader(8).to(device)
        writer = Writer(8).to(device)
        optimizer = Adam([*writer.parameters(), *reader.parameters()], lr=0.1)
        """,
        {"model": "Reader"},
    ),
    Edit(
        "schedule::stepped-before-update",
        "sched.step",
        """
        sched = StepLR(opt, 3)
        for epoch in range(8):
            sched.step()
            for x in loader:
                loss.backward()
                opt.step()
            print(epoch)
        """,
        """
        sched = StepLR(opt, 3)
        for epoch in range(8):
            for x in loader:
                loss.backward()
                opt.step()
            sched.step()
            print(epoch)
        """,
    ),
    Edit(
        "schedule::stepped-in-wrong-unit",
        "sched.step",
        """
        sched = CosineAnnealingLR(opt, T_max=epochs)
        def one_epoch():
            for x in loader:
                loss.backward()
                opt.step()
                sched.step()
        for epoch in range(epochs):
            one_epoch()
        """,
        """
        sched = CosineAnnealingLR(opt, T_max=epochs)
        def one_epoch():
            for x in loader:
                loss.backward()
                opt.step()
            sched.step()
        for epoch in range(epochs):
            one_epoch()
        """,
    ),
    Edit(
        "schedule::wrong-length",
        "LinearLR",
        """
        steps = len(loader)
        schedule = LinearLR(optimizer, total_iters=steps)
        for epoch in range(0, epochs):
            for batch in loader:
                train(batch)
        """,
        """
        steps = len(loader)
        schedule = LinearLR(optimizer, total_iters=epochs * steps)
        for epoch in range(0, epochs):
            for batch in loader:
                train(batch)
        """,
        {"case": "too-short"},
    ),
    Edit(
        "weights::state-kept-without-copy",
        "best, least =",
        """
        import copy, torch
        if loss < least:
            best, least = model.state_dict(), loss  # the best
        """,
        """
        import copy, torch
        if loss < least:
            best, least = copy.deepcopy(model.state_dict()), loss  # the best
        """,
        {"case": "kept"},
    ),
    Edit(
        "weights::state-kept-without-copy",
        "best =",
        """
        if loss < least:
            best = {"model": model.state_dict()}
        """,
        """
        if loss < least:
            best = {"model": {name: each.clone() for name, each in model.state_dict().items()}}
        """,
        {"case": "kept"},
    ),
    Edit(
        "weights::state-kept-without-copy",
        "best =",
        """
        from copy import copy, deepcopy
        best = model.state_dict()
        """,
        """
        from copy import copy, deepcopy
        best = deepcopy(model.state_dict())
        """,
        {"case": "kept"},
    ),
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.check)
def test_the_first_edit(edit: Edit) -> None:
    before, after = (textwrap.dedent(each).lstrip("\n") for each in (edit.before, edit.after))
    assert edits(edit.check, edit.at, before, **edit.details)[0] == after


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.check)
def test_tabs_and_line_ends_stay(edit: Edit) -> None:
    before, after = (
        textwrap.dedent(each).lstrip("\n").replace("    ", "\t").replace("\n", "\r\n")
        for each in (edit.before, edit.after)
    )
    assert edits(edit.check, edit.at, before, **edit.details)[0] == after


@pytest.mark.parametrize(
    ("check", "details"),
    [
        *((edit.check, edit.details) for edit in EDITS if edit.details),
        ("mode::training-in-eval-mode", {"case": "updates-in-validation"}),
        ("schedule::plateau-wrong-mode", {"mode": "min"}),
    ],
)
def test_what_a_repair_reads_is_what_its_check_says(check: str, details: dict[str, str]) -> None:
    """Of the check's own cases one has it: names of the script may be others."""
    verdicts = [judged(case.check, case.fact) for case in all_cases() if case.check.id == check]
    said = [dict(verdict.details) for verdict in verdicts if isinstance(verdict, Found) and verdict.details]
    of_script = {"key": "learning_rate", "meant": "lr", "model": "Net"}
    assert {**details, **{name: value for name, value in of_script.items() if name in details}} in said


def test_what_a_check_says_comes_with_its_finding() -> None:
    case = next(each for each in all_cases() if each.check is NeverSteps and isinstance(each.verdict, str))
    reported: list[Finding] = []
    monitor: Any = SimpleNamespace(report=reported.append, locator=SimpleNamespace(script_place=None))
    for kind, tell in NeverSteps(monitor).subscriptions():
        if isinstance(case.fact, kind):
            tell(case.fact)
    assert [each.details for each in reported] == [{"case": "no-step"}]


def test_every_repair_is_shown_and_is_that_of_a_check() -> None:
    assert {edit.check for edit in EDITS} == set(all_repairs())
    assert set(all_repairs()) <= set(catalogue.checks())


def test_what_is_right_already_gets_no_edit() -> None:
    """An edit that changes nothing is not tried, and so no script is run for it."""
    assert (
        edits(
            "rows::same-order-each-epoch", "model", "for x in DataLoader(r, shuffle=True):\n    model(x).backward()\n"
        )
        == []
    )
    assert edits("gradients::not-cleared", "step", "trainer.step()\n") == []


def test_two_models_of_the_same_parameters_are_not_repaired_by_a_copy_of_the_state() -> None:
    text = "target = copy.copy(online)\ntarget.load_state_dict(online.state_dict())\n"
    assert edits("weights::state-kept-without-copy", "load_state_dict", text) == []


def test_what_the_author_must_decide_gets_no_edit() -> None:
    text = "for x in validation:\n    model(x).backward()\n"
    assert edits("mode::training-in-eval-mode", "model", text) != []
    assert edits("mode::training-in-eval-mode", "model", text, case="updates-in-validation") == []


def test_a_shuffled_loader_drops_its_last_batch_on_purpose() -> None:
    text = "train = DataLoader(rows, shuffle=True, drop_last=True)\nfor x in train:\n    model(x)\n"
    assert edits("rows::evaluation-incomplete", "model", text) == []


@pytest.mark.parametrize("line", ["x = p > 0.5", "x = p.max(-1)", "x = p.topk(2)"])
def test_probabilities_that_somebody_reads_stay(line: str) -> None:
    text = f"model = nn.Sequential(a, nn.Softmax(-1))\nloss = criterion(model(x), y)\np = model(x)\n{line}\n"
    assert edits("loss::not-raw-logits", "criterion", text) == []


def test_a_softmax_that_is_read_before_it_is_returned_stays() -> None:
    text = (
        "def forward(self, x):\n    p = F.softmax(x, -1)\n    self.seen = p\n    return p\nloss = criterion(model(x))\n"
    )
    assert edits("loss::not-raw-logits", "criterion", text) == []


@pytest.mark.parametrize(
    "text",
    [
        "model = Whole(Reader())\noptimizer = Adam(model.writer.parameters())\n",
        "one = Reader()\ntwo = Reader()\noptimizer = Adam(writer.parameters())\n",
        "reader = Reader()\noptimizer = Adam(reader.head.parameters())\n",
        "reader = Reader()\noptimizer = Adam([{'params': writer.parameters()}])\n",
    ],
)
def test_parameters_of_a_second_model_are_those_of_one_variable(text: str) -> None:
    tried = edits("optimizer::missing-parameters", "Adam", text, model="Reader")
    assert not [each for each in tried if "*" in each]


def test_encodings_and_byte_order_marks_stay() -> None:
    finding = Finding("", "", "", "train.py:2", check="gradients::not-cleared")
    text = "# coding: latin-1\noptimizer.step()  # \xe9\n"
    (edited,) = candidates(text.encode("latin-1"), finding)
    assert edited == (text + "optimizer.zero_grad()\n").encode("latin-1")
    (edited,) = candidates(b"\xef\xbb\xbf\noptimizer.step()", finding)
    assert edited == b"\xef\xbb\xbf\noptimizer.step()\noptimizer.zero_grad()"


def test_a_finding_at_no_line_gets_no_edit() -> None:
    for where in (None, "Cell In[2], line 5", "train.py:9"):
        finding = Finding("", "", "", where, check="gradients::not-cleared")
        assert list(candidates(b"optimizer.step()\n", finding)) == []


def test_what_is_cleared_once_an_epoch_is_not_moved() -> None:
    """What the epoch's end leaves over would go into the next one, and nobody would see it."""
    text = """\
for epoch in range(2):
    optimizer.zero_grad()  # here
    for i, batch in enumerate(batches()):
        loss.backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
"""
    assert edits("gradients::lost", "# here", text) == []


@pytest.mark.parametrize(
    ("loop", "test", "after"),
    [
        ("enumerate(loader)", "(i + 1) % n == 0", "(i + 1) % n == 0 or i + 1 == len(loader)"),
        ("enumerate(loader)", "i % 4 == 3", "i % 4 == 3 or i + 1 == len(loader)"),
        ("enumerate(loader)", "ready and i % n == n - 1", "ready and i % n == n - 1 or i + 1 == len(loader)"),
        ("enumerate(loader, 1)", "not i % n", "not i % n or i == len(loader)"),
        ("enumerate(loader, start=1)", "(i - 1) % n == 0", "i % n == 0 or i == len(loader)"),
        ("enumerate(loader)", "i % n == 0", "(i + 1) % n == 0 or i + 1 == len(loader)"),
        ("enumerate(loader, 1)", "i % n == n - 1", "i % n == 0 or i == len(loader)"),
    ],
)
def test_the_last_window(loop: str, test: str, after: str) -> None:
    """A window that is counted from the first batch is counted right: no check would see that it is shorter."""
    text = f"for i, batch in {loop}:\n    loss.backward()\n    if TEST:\n        optimizer.step()\n"
    assert edits("gradients::left-over", "step()", text.replace("TEST", test)) == [text.replace("TEST", after)]


@pytest.mark.parametrize("length", ["steps", "24", "epochs * len(loader)"])
def test_a_schedule_whose_loop_may_be_wrong_is_not_made_longer(length: str) -> None:
    text = f"schedule = LinearLR(optimizer, total_iters={length})\nfor _ in range(epochs):\n    train(loader)\n"
    assert edits("schedule::wrong-length", "LinearLR", text, case="too-short") == []
