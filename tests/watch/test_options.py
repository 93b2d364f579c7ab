"""The namespace that argparse fills, watched: it is the same to the script, and what is read of it is known."""

from __future__ import annotations

import argparse
import copy
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.files import LARGEST_FILE, texts_below
from harness.watch.events import OptionsParsed
from harness.watch.locate import Locator
from tests.watch.run.account import told


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser()
    found.add_argument("--lr", type=float, default=0.1)
    found.add_argument("-d", "--weight-decay", type=float, default=0.2)
    return found


def nothing(args: argparse.Namespace) -> object:
    return None


def shown(args: argparse.Namespace) -> object:
    return [print(args), str(args), json.dumps(vars(args))]


def handed_on(args: argparse.Namespace) -> object:
    return dict(**vars(args))


@pytest.mark.parametrize(
    ("use", "names", "whole"),
    [
        (nothing, set(), False),
        (lambda args: args.lr, {"lr"}, False),
        (lambda args: getattr(args, "weight_decay", 0), {"weight_decay"}, False),
        (shown, set(), False),
        (handed_on, set(), True),
        (copy.copy, set(), True),
        (pickle.dumps, set(), True),
    ],
)
def test_what_is_read_of_a_namespace(use: Callable[[argparse.Namespace], object], names: set[str], whole: bool) -> None:
    (parsed,) = told(OptionsParsed, lambda: use(parser().parse_args([])))
    assert [(each.name, each.flag) for each in parsed.options] == [("lr", "--lr"), ("weight_decay", "--weight-decay")]
    assert all(str(each.where).startswith("tests/watch/test_options.py:") for each in parsed.options)
    assert (parsed.reading.names, parsed.reading.whole) == (names, whole)


def test_nothing_is_another_for_the_script() -> None:
    def used() -> list[Any]:
        args = parser().parse_args(["--lr", "0.5"])
        again = pickle.loads(pickle.dumps(args))
        with pytest.raises(AttributeError, match="no attribute 'other'"):
            _ = args.other
        args.other = 1
        return [type(args), repr(args), args == again, sorted(vars(copy.deepcopy(args))), "lr" in args, args.lr]

    alone, watched = used(), list[Any]()
    told(OptionsParsed, lambda: watched.extend(used()))
    assert watched == alone
    assert "__getattribute__" not in vars(argparse.Namespace)


def test_what_nothing_has_to_read_is_no_option() -> None:
    """What a launcher gives, and what a library adds and reads itself."""

    def parse() -> argparse.Namespace:
        own = parser()
        own.add_argument("--local_rank", type=int, default=0)
        library: dict[str, Any] = {}
        exec(compile("def add(parser):\n    parser.add_argument('--theirs')", argparse.__file__, "exec"), library)
        library["add"](own)
        return own.parse_args([])

    (parsed,) = told(OptionsParsed, parse)
    assert [each.name for each in parsed.options] == ["lr", "weight_decay"]


def test_a_parser_within_a_parser_is_no_other_command_line() -> None:
    def parse() -> argparse.Namespace:
        outer = parser()
        outer.add_subparsers(dest="command").add_parser("train").add_argument("--epochs", type=int, default=3)
        return outer.parse_args(["train", "--epochs", "4"])

    assert len(told(OptionsParsed, parse)) == 1


def test_a_file_that_is_not_imported_may_read_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of another model does; a file of an environment, or of a hidden folder, is nobody's."""
    monkeypatch.chdir(tmp_path)
    files = ("models/graph_seen.py", "own/package_unseen.py", ".hidden/file_unseen.py", "build/large_unseen.py")
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"def build(args):\n    return args.{Path(name).stem}\n")
    (tmp_path / "own" / "pyvenv.cfg").touch()
    (tmp_path / "build" / "large_unseen.py").write_text("args.large_unseen\n" + "#" * LARGEST_FILE)
    os.mkfifo(tmp_path / "models" / "pipe.py")
    assert [name for name, _ in texts_below(tmp_path)] == ["models/graph_seen.py"]
    names = [Path(name).stem for name in files]  # no quoted words: this file, too, is the user's
    assert Locator().read_names(names) == {names[0]}
