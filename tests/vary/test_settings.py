"""``harness vary --settings``: which values are settings, to what they are turned, and what is said of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.starts.journal import BatchTrained, Journal, Update
from harness.starts.levels import Level, why_not
from harness.vary.settings.child import _ends_on_arrival
from harness.vary.settings.configured import named_in, settings_in, written
from harness.vary.settings.differ import After, beyond_training, loss_alone, noise_of, of_updates
from harness.vary.settings.find import ARGPARSE, Setting, settings_of
from harness.vary.settings.purpose import is_side, purpose
from harness.vary.settings.reads import reads_of, stores_of
from harness.vary.settings.run import _judged
from harness.vary.settings.starts import Turned
from harness.vary.settings.turn import extremes, others


def found(text: str, *arguments: str) -> dict[str, Any]:
    return {each.name: each.value for each in settings_of({"train.py": text.encode()}, arguments).settings}


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("LR = 1e-3", {"LR": 1e-3}),
        ("lr: float = 0.1", {"lr": 0.1}),
        ("AdamW(parameters, lr=2e-5, betas=(0.9, 0.95))", {"lr": 2e-5, "betas": (0.9, 0.95)}),
        ("config = {'lr': 1e-3, 'name': 'run', 'layers': [1, 2]}", {"lr": 1e-3, "layers": [1, 2]}),
        ("config['lr'] = 1e-3", {"lr": 1e-3}),
        ("model.clip = 0.5", {"clip": 0.5}),
        ("nn.Dropout(0.3)", {"p": 0.3}),
        ("clip_grad_norm_(parameters, 1.0)", {"max_norm": 1.0}),
        ("torch.manual_seed(5)", {"seed": 5}),
        ("def train(model, epochs=3, *, decay=0.1): pass", {"epochs": 3, "decay": 0.1}),
        ("class Net:\n    def __init__(self, width=16): pass", {"width": 16}),
        ("@dataclass\nclass C:\n    lr: float = 0.1\n    decay: float = field(default=0.2)", {"lr": 0.1, "decay": 0.2}),
        ("parser.add_argument('--lr', type=float, default=1e-3)", {"lr": 1e-3}),
        ("parser.add_argument('-s', '--no-shuffle', action='store_true')", {"no_shuffle": False}),
        ("parser.add_argument('--no-amsgrad', action='store_false', dest='amsgrad')", {"amsgrad": True}),
        ("grad_clip = 1.0\ndropout = 0.0", {"grad_clip": 1.0, "dropout": 0.0}),
        (
            "class C:\n    def __init__(self):\n        self.p = 0.3\n\nclass D:\n    def f(self):\n        self.p = 0",
            {"p": 0.3},
        ),
        ("LOGO = 'a\\nb'", {}),
        ("class Own(Optimizer):\n    def __init__(self, parameters, lr=0.1): pass", {}),
        ("class Own(Optimizer):\n    def step(self):\n        torch.clamp(x, min=0.1)", {"min": 0.1}),
        (
            "@click.option('--lr', default=0.1)\n@click.option('--amp', is_flag=True)\ndef main(lr, amp): pass",
            {"lr": 0.1, "amp": False},
        ),
        ("@click.option('--drop/--no-drop', default=True)\ndef main(drop): pass", {"drop": True}),
        # Counters, axes, shapes, paths, and what is assigned again
        ("total = 0.0\nfor each in rows:\n    total += each", {}),
        ("best = -1", {}),
        ("step = 10\nstep = step + 1", {}),
        ("x.mean(dim=1, keepdim=True)", {}),
        ("for fold in range(5): pass", {}),
        ("torch.save(state, path='a.pt')\nopen('a', mode='r')", {}),
        ("lr = 10 ** -3", {}),
    ],
)
def test_what_is_a_setting(text: str, settings: dict[str, Any]) -> None:
    assert found(text) == settings


OPTION = "parser.add_argument('--lr', default=1e-3)\nparser.add_argument('--shuffle', action='store_true')"


def test_an_option_has_the_value_of_the_command_line() -> None:
    given = settings_of({"train.py": OPTION.encode()}, ["--lr", "0.5", "--shuffle"]).settings
    assert [(each.name, each.value, each.argument) for each in given] == [("lr", 0.5, 1), ("shuffle", True, 2)]
    assert settings_of({"train.py": OPTION.encode()}, ["--lr=0.5"]).settings[0].argument == 0


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("lr = 1e-3\nexec(open('configurator.py').read())", "train.py:1"),  # which assigns to globals()
        ("defaults = dict(lr=1e-3)", "train.py:1"),  # of which a loop makes options
        ("@dataclass\nclass Other:\n    lr: float = 1e-3\nlr = 1e-3", "train.py:4"),
        ("print()", "command line:2"),  # one of TrainingArguments
    ],
)
def test_the_command_line_gives_what_no_parser_names(text: str, where: str) -> None:
    (given,) = settings_of({"train.py": text.encode()}, ["--lr", "0.5"]).settings
    assert (given.where, given.value, given.argument, given.kind) == (where, 0.5, 1, "option")


def test_a_constant_beside_an_option_of_its_name_is_something_else() -> None:
    seen = settings_of({"train.py": f"lr = 1\n{OPTION}".encode()}, ["--lr", "0.5"])
    assert [(each.line, each.kind, each.value) for each in seen.settings][:2] == [
        (1, "constant", 1),
        (2, "option", 0.5),
    ]
    assert seen.overridden == []


def test_calls_may_give_a_parameter_and_a_field_another_value() -> None:
    text = (
        b"class A:\n    lr = 1\n    def f(self, k=2): pass\n@dataclass\nclass B:\n    b: int = 3\nclass C:\n    c = 4"
    )
    seen = {each.name: each.is_parameter for each in settings_of({"train.py": text}).settings}
    assert seen == {"lr": False, "k": True, "b": True, "c": False}


def test_an_option_is_found_once() -> None:
    seen = settings_of({"train.py": f"def f(lr=1): pass\n{OPTION}".encode()}, ["--lr", "0.5"])
    assert [(each.where, each.name) for each in seen.settings] == [("train.py:2", "lr"), ("train.py:3", "shuffle")]
    assert [(each.where, by) for each, by in seen.overridden] == [("train.py:1", "the command line")]


@pytest.mark.parametrize(
    ("text", "overridden"),
    [
        ("def train(lr=1e-3): pass\ntrain(lr=0.5)", ["lr"]),
        ("def train(lr=1e-3): pass\ntrain(0.5)", ["lr"]),
        ("def train(lr=1e-3): pass\ntrain(**config)", ["lr"]),
        ("def train(lr=1e-3): pass\ntrain()", []),
        ("def train(lr=1e-3): pass\ntrain(0.5)\ntrain()", []),
        ("class Net:\n    def __init__(self, width=16): pass\nNet(8)", ["width"]),
        ("class C:\n    lr = 1e-3\nC(lr=0.5)", ["lr"]),
        ("class C:\n    lr = 1e-3\nc = C()\nc.lr = 0.5", ["lr"]),
        ("class Net:\n    def __init__(self, momentum=0.9): pass\nNet()\nother.momentum = 0.5", []),
        ("def train(*, lr=1e-3): pass\ntrain()\nother.lr = 0.5", []),
        ("class C:\n    sizes = '3,4'\nc.sizes = c.sizes.split(',')", []),
    ],
)
def test_a_default_that_is_not_in_force_is_no_setting(text: str, overridden: list[str]) -> None:
    assert [each.name for each, _ in settings_of({"train.py": text.encode()}).overridden] == overridden


def test_a_line_that_is_not_executed_gives_no_other_value() -> None:
    text = b"class C:\n    lr = 1e-3\nif warm:\n    c.lr = 0.5"
    assert [setting.line for setting in settings_of({"train.py": text}).settings] == [4]
    kept = settings_of({"train.py": text}, (), lambda place: place != "train.py:4").settings
    assert [setting.line for setting in kept] == [2, 4]


def test_a_file_that_is_no_python_is_left_out() -> None:
    seen = settings_of({"a.py": b"lr = (", "b.py": b"lr = 0.1"})
    assert [each.file for each in seen.settings] == ["b.py"]
    assert seen.not_read[0].startswith("a.py: ")


def test_literals_are_replaced_where_they_lie() -> None:
    data = "a = 'ü'; lr = 1e-3  # ü\nAdamW(p,\n      lr=2e-5)".encode()
    for each in settings_of({"train.py": data}).settings:
        edited = data[: each.start] + written(each, 7) + data[each.end :]
        assert edited.decode() in (
            "a = 'ü'; lr = 7  # ü\nAdamW(p,\n      lr=2e-5)",
            "a = 'ü'; lr = 1e-3  # ü\nAdamW(p,\n      lr=7)",
            "a = 7; lr = 1e-3  # ü\nAdamW(p,\n      lr=2e-5)",
        )


FILES = {
    "c.yaml": ("optim:\n  lr: 1e-3  # ü\n  nesterov: true\n  name: sgd\n", {"optim.lr": 1e-3, "optim.nesterov": True}),
    "c.json": ('{"lr": 0.001, "data": {"length": 8}}', {"lr": 0.001, "data.length": 8}),
    "c.toml": ("[optim]\nlr = 1e-3 # rate\nuse = true\n", {"lr": 1e-3, "use": True}),
}


@pytest.mark.parametrize("name", FILES)
def test_values_of_configuration_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, values = FILES[name]
    seen = [each for each in settings_in(name, text.encode()) if not each.name.endswith("name")]
    assert {each.name: each.value for each in seen} == values
    first = seen[0]
    edited = text.encode()[: first.start] + written(first, 0.5) + text.encode()[first.end :]
    assert next(settings_in(name, edited)).value == 0.5
    assert [each.line for each in seen] == sorted(each.line for each in seen)
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    assert named_in([f'open("{name}")', 'open("none.yaml")'], []) == [name]
    assert named_in([], [f"--config={name}"]) == [name]


def a(value: Any, name: str = "x", **more: Any) -> Setting:
    return Setting(name, "constant", "", "train.py", 1, value, **more)


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        (a(1e-3, "lr"), [2e-3, 5e-4]),
        (a(0.1, "dropout"), [0.05, 0.025]),
        (a(0.0, "dropout"), [0.1, 1.0]),
        (a(3, "epochs"), [1, 6]),
        (a(16, "batch_size"), [32, 8]),
        (a(1, "accumulation"), [2, 3]),
        (a(0, "num_workers"), [2]),
        (a(-100, "ignore_index"), [-200]),
        (a(True), [False]),
        (a((0.9, 0.999), "betas"), [(0.45, 0.999)]),
        (a(["q", "v"], "target_modules"), [["q"]]),
        (a(["q", "v"], "names"), []),
        (a("linear", "schedule"), ["constant"]),
        (a("a", choices=("a", "b", "c")), ["b", "c"]),
        (a("my run"), []),
        (a(0.1, "model.dropout"), [0.05, 0.025]),
        (a(3, "train.epochs"), [1, 6]),
        (a(True, "use_cuda"), []),
    ],
)
def test_to_what_it_is_turned(setting: Setting, values: list[Any]) -> None:
    assert others(setting) == values


@pytest.mark.parametrize(
    ("name", "what", "side"),
    [
        ("weight_decay", "weight decay", False),
        ("learning_rate", "the learning rate", False),
        ("per_device_train_batch_size", "the batch", False),
        ("lora_alpha", "the adapter", False),
        ("hidden", None, False),
        ("logging_steps", None, True),
        ("num_workers", None, True),
        ("per_device_eval_batch_size", None, True),
        ("fp16", None, False),
        ("optim.weight_decay", "weight decay", False),
        ("trainer.num_workers", None, True),
        ("samples", None, False),
    ],
)
def test_what_a_name_says(name: str, what: str | None, side: bool) -> None:
    known = purpose(name)
    assert (known is None) == (what is None)
    assert what is None or str(known) in what or what in str(known)
    assert is_side(name) == side


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        (a(1.0, "max_grad_norm"), [1e-4, 1e4]),
        (a(0.1, "dropout"), [1e-5, 1.0]),
        (a(512, "max_length"), [1, 0]),
        (a(1, "patience"), [0, 10]),
        (a(-1, "unfreeze_at"), [1, 0]),
        (a(0.0, "min_delta"), [1000.0]),
        (a(True), []),
        (a("linear"), []),
    ],
)
def test_values_that_something_reaches(setting: Setting, values: list[Any]) -> None:
    assert extremes(setting) == pytest.approx(values)


def update(at: int = 1, **changes: Any) -> Update:
    batches = (BatchTrained(1, (0, 1), "rows 0 and 1"),)
    same: dict[str, Any] = {"losses": ("0x1p-1",), "lr": (0.1,), "options": {"decay": "0.1"}, "weights": {"a": "1"}}
    same |= {"scale": 1.0, "skipped": 0, "state": {}, "gradients": {"a": "2"}, "random": {"torch": "3"}, "modes": ""}
    return Update(at, **({"batches": batches} | same | changes))


@pytest.mark.parametrize(
    ("changes", "part", "by_draws"),
    [
        ({"batches": (BatchTrained(1, (1, 0), "rows 1 and 0"),), "random": {"torch": "4"}}, "rows", True),
        ({"batches": (BatchTrained(1, (0,), "row 0"),), "random": {"torch": "4"}}, "rows", False),
        ({"batches": (BatchTrained(1, (0, 1), "otherwise"),)}, "values of rows", False),
        ({"lr": (0.2,), "weights": {"a": "5"}}, "learning rate", False),
        ({"options": {"decay": "0.2"}}, "optimizer", False),
        ({"weights": {"a": "5"}, "random": {"torch": "4"}}, "weights", True),
        ({"losses": ("0x1p-2",), "gradients": {"a": "5"}}, "loss", False),
        ({"losses": ("0x1p-2",)}, None, False),  # the number alone trains nothing
        ({"gradients": {"a": "5"}}, "gradients", False),
        ({"random": {"torch": "4"}}, None, False),
        ({"where": "train.py:9"}, None, False),
    ],
)
def test_what_an_update_has_otherwise(changes: dict[str, Any], part: str | None, by_draws: bool) -> None:
    differs = of_updates(update(), update(**changes))
    assert (None if differs is None else (differs.part, differs.by_draws)) == (
        None if part is None else (part, by_draws)
    )


def test_what_two_unchanged_starts_differ_in_is_no_difference() -> None:
    journals = [Journal([update(losses=(value,))]) for value in ("0x1p-1", "0x1p-2")]
    noise = noise_of(*journals)
    assert noise == {"losses": [1]}
    assert loss_alone(update(), update(losses=("0x1p-3",)), noise) is None
    assert loss_alone(update(2), update(2, losses=("0x1p-3",)), noise) is not None
    assert of_updates(update(), update(weights={"a": "9"}), {"weights": [1]}) is None


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"evaluations": [("b",)]}, "evaluation"),
        ({"saved": {("out/model.pt", 2): {"a": "9"}}}, "saved"),
        ({"printed": ["loss 0.5", "saved to x"]}, "printed"),
        ({"printed": ["loss 0.5", "took 9 s"]}, None),
        ({"printed": ["loss 0.5", "took 3 s", "took 5 s"]}, None),
        ({}, None),
    ],
)
def test_what_differs_beside_the_training(changes: dict[str, Any], part: str | None) -> None:
    one = After([("a",)], {("out/model.pt", 2): {"a": "1"}}, ["loss 0.5", "took 3 s"])
    again = replace(one, printed=["loss 0.5", "took 4 s"])
    differs = beyond_training(one, again, replace(one, **changes))
    assert (None if differs is None else differs.part) == part


@pytest.mark.parametrize(
    ("name", "effect", "check"),
    [
        ("weight_decay", "nothing", "settings::without-effect"),
        ("weight_decay", "output", "settings::without-effect"),
        ("weight_decay", "evaluation", None),
        ("weight_decay", "training", None),
        ("max_grad_norm", "not in play", None),
        ("hidden", "nothing", None),
        ("logging_steps", "training", "settings::with-side-effect"),
        ("logging_steps", "random draws", None),
        ("logging_steps", "output", None),
        ("num_workers", "nothing", None),
    ],
)
def test_what_is_found(name: str, effect: Any, check: str | None) -> None:
    turned = Turned(name, name, "train.py:1", 0.1, [0.2], effect, "loss", 3, "0.5 for 0.6")
    setting = Setting(name, "option", "", "train.py", 1, 0.1)
    assert [found.check for found in _judged([(setting, turned)], {})] == ([] if check is None else [check])


def test_where_a_name_is_read() -> None:
    text = b"lr = 1\nprint(lr)\nargs.lr\nargs.lr = 2\nconfig['lr']\nconfig.get('lr')\nf(lr=3)"
    files = {"a.py": text, "b.py": b"lr = ("}
    assert reads_of(Setting("optim.lr", "entry", "", "a.py", 1, 1), files) == ["a.py:3", "a.py:5", "a.py:6"]
    assert reads_of(Setting("lr", "default", "f#0", "a.py", 1, 1, lines=(2, 2)), files) == ["a.py:2"]
    assert reads_of(Setting("lr", "argument", "SGD", "a.py", 1, 1), files) == [], "what a call does with it is not seen"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("print(args.p)", [1]),
        ("print(args.p)\nuse(args.p)", [2]),
        ("self.p = p\nif x > self.p: pass", [2]),
        ("self.p, self.x = p, 0\nif x > self.p: pass", [2]),
        ("f(p=args.p)\ndict(p=args.p)\n{'p': args.p}\nuse(args.p)", [4]),
        ("random.p(3)\nargs.p", [2]),
        ("random.p(3)", []),
    ],
)
def test_lines_that_only_pass_a_value_on_are_no_use_of_it(text: str, lines: list[int]) -> None:
    setting = Setting("p", "entry", "", "a.py", 9, 1)
    assert reads_of(setting, {"a.py": text.encode()}) == [f"a.py:{line}" for line in lines]
    used = reads_of(setting, {"a.py": text.encode()}, uses_alone=True)
    assert used == ([] if text == "print(args.p)" else [f"a.py:{line}" for line in lines])


def test_an_option_that_nobody_hands_over_is_read_nowhere() -> None:
    option = Setting("shuffle", "option", ARGPARSE, "a.py", 1, False)
    own = b"class Own:\n    def f(self):\n        return self.shuffle"
    assert reads_of(option, {"a.py": own}) == []
    assert reads_of(option, {"a.py": own + b"\nOwn(shuffle=args.shuffle)"}) == ["a.py:3"]


def test_where_another_value_is_assigned() -> None:
    text = b"opt = SGD(p, lr=1)\nfor group in opt.param_groups: group['lr'] = 2\nself.lr = lr\nprint(group['lr'])"
    assert stores_of(Setting("lr", "argument", "SGD", "a.py", 1, 1), {"a.py": text}) == ["a.py:2"]


@pytest.mark.parametrize(("given", "arrives"), [({}, True), ({"k": 3}, False), ({"k": 7919.0}, False)])
@pytest.mark.parametrize("kind", ["function", "over lines", "dataclass", "subclass"])
def test_a_default_that_is_in_force_arrives(
    given: dict[str, Any], arrives: bool, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def function(x: int, k: float = 7919) -> None:
        pass

    def over_lines(
        x: int,
        k: float = 7919,
    ) -> None:
        pass

    @dataclass
    class Own:
        x: int
        k: float = 7919

    class Below(Own):
        pass

    called: Any = {"function": function, "over lines": over_lines, "dataclass": Own, "subclass": Below}[kind]

    def ends(process: int, number: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "kill", ends)
    ends_at = max(line for _, _, line in called.__code__.co_lines()) if kind in ("function", "over lines") else 0
    lines = (ends_at, ends_at)  # its body
    default = {"file": __file__, "lines": lines, "of": "Own", "name": "k", "value": 7919}
    sys.setprofile(_ends_on_arrival(default, tmp_path / "arrived"))
    try:
        with pytest.raises(KeyboardInterrupt) if arrives else nullcontext():
            called(1, **given)
    finally:
        sys.setprofile(None)
    assert (tmp_path / "arrived").exists() == arrives


@pytest.mark.parametrize(
    ("setting", "tried", "part", "found"),
    [
        (Setting("optimizer", "option", "", "a.py", 1, "adam"), "sgd", None, False),
        (Setting("optimizer", "option", "", "a.py", 1, "adam"), "adadelta", None, True),
        (Setting("optimizer", "option", "", "a.py", 1, "adam", choices=("adam", "sgd")), "sgd", None, True),
        (Setting("reduction", "argument", "loss", "a.py", 1, "sum", choices=("mean",)), "mean", "printed", False),
        (Setting("lr", "option", "", "a.py", 1, 0.1), 0.2, "printed", True),
    ],
)
def test_what_says_little_is_no_finding(setting: Setting, tried: Any, part: Any, found: bool) -> None:
    effect: Any = "output" if part else "nothing"
    turned = Turned(setting.name, setting.shown, setting.where, setting.value, [tried], effect, part)
    sources = {"a.py": b"if optimizer == 'adadelta': pass"}
    assert bool([*_judged([(setting, turned)], sources)]) == found


SCRIPT = """
import argparse
import torch
from torch import nn
from helper import optimizer_of

LOG_EVERY = 4
SMOOTHING = 0.1
CLIP = 100.0


class Config:
    label_smoothing = 0.1


class Noise(nn.Module):
    def __init__(self, scale=0.5):
        super().__init__()
        self.mask_prob = scale


def scheduled(optimizer, gamma=0.5):
    return torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma)


MAKES = {"schedule": scheduled}

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-2)
parser.add_argument("--warmup", type=int, default=5)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
torch.manual_seed(0)
x = torch.randn(96, 8)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = optimizer_of(model, lr=args.lr, weight_decay=0.1)
schedule = MAKES["schedule"](optimizer, gamma=1.0 - args.lr)
step = 0
for epoch in range(args.epochs):
    for rows, labels in zip(x.split(16), y.split(16)):
        loss = nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        step += 1
        if step % LOG_EVERY == 0:
            print(f"step {step} loss {loss.item():.4f}")
"""

HELPER = """
import torch

def optimizer_of(model, lr=1.0, weight_decay=0.0):
    return torch.optim.AdamW(model.parameters(), lr=lr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", ["overlay", pytest.param("mirror", marks=pytest.mark.nightly)])
def test_the_table_of_a_script(tmp_path: Path, level: Level) -> None:
    """As a user starts it, in processes of its own."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text(HELPER)
    command = [
        sys.executable,
        "-m",
        "harness",
        "vary",
        "--settings",
        "--json",
        "found.json",
        "train.py",
        "--epochs",
        "3",
    ]
    environment = os.environ | ({"HARNESS_ISOLATION": level} if why_not(level) is None else {})
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "found.json").read_text())
    assert {each["name"]: each["effect"] for each in report["settings"]} == {
        "lr": "training",
        "epochs": "training",
        "seed": "training",
        "LOG_EVERY": "output",
        "CLIP": "not in play",
        "scale": "not in play",
        "gamma": "not in play",
        "SMOOTHING": "nothing",
        "label_smoothing": "nothing",
        "warmup": "nothing",
        "weight_decay": "nothing",
    }
    told = {each["name"]: each for each in report["settings"]}
    assert (told["lr"]["part"], told["lr"]["update"]) == ("learning rate", 1)
    assert told["scale"]["what"] == "Noise is not called in this run"
    assert told["gamma"]["what"] == "each call gives another value"
    assert (told["epochs"]["value"], told["epochs"]["what"]) == (3, "6 for 18")
    assert [each["where"] for each in report["findings"]] == ["train.py:8", "train.py:13", "train.py:30", "train.py:37"]
    assert "weight_decay = 0.0 (helper.py:4) is not in force: another value is given at train.py:37" in done.stderr
    assert (tmp_path / "train.py").read_text() == SCRIPT
    assert sorted(each.name for each in tmp_path.iterdir()) == ["found.json", "helper.py", "train.py"]


def test_relations_to_ignore_are_none_of_settings() -> None:
    refused = CliRunner().invoke(main, ["vary", "--settings", "--ignore", "depends", "train.py"])
    assert refused.exit_code == 2
    assert "name the settings to turn with --select" in refused.output
