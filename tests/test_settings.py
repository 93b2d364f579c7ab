"""Which checks are wanted: the command line, pyproject.toml and comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import catalogue
from harness.errors import CannotTry
from harness.findings import Finding
from harness.settings import Reload, is_ignored_by_comment, reload, scripts, wanted


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "scripts"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text("print()\n")
    return folder / "train.py"


def table(script: Path, text: str, *, up: int = 1) -> Path:
    file = script.parents[up] / "pyproject.toml"
    file.write_text(text)
    return file


def test_what_keeps_checks_from_being_read_is_not_the_files_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> None:
        raise CannotTry("Python runs with -OO")

    (tmp_path / "pyproject.toml").write_text("[tool.harness]\nreload = false\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "checks", none)
    with pytest.raises(CannotTry, match=r"^Python runs with -OO$"):
        wanted(None)


def test_without_anything_all_checks_are_wanted(script: Path) -> None:
    chosen = wanted(script)
    assert chosen.selected == set(catalogue.checks())
    assert chosen.ignored == set()


def test_the_nearest_table_counts(script: Path) -> None:
    table(script, '[tool.harness]\nselect = ["loss"]\n', up=2)
    table(script, '[tool.harness]\nignore = ["memory", "effect::frozen-stay"]\n')
    table(script, "[tool.ruff]\n", up=0)
    chosen = wanted(script)
    assert chosen.selected == set(catalogue.checks())
    assert chosen.ignored == {"memory::graphs-kept", "parameters::frozen-changed", "parameters::freezes-nothing"}


def test_the_command_line_selects_anew_and_ignores_besides(script: Path) -> None:
    table(script, '[tool.harness]\nselect = ["loss"]\nignore = ["loss::constant"]\n')
    chosen = wanted(script, ["gradients::lost"], ["memory"])
    assert chosen.selected == {"gradients::lost"}
    assert chosen.ignored == {"loss::constant", "memory::graphs-kept"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool.harness]\nignored = ["loss"]\n', "unknown key 'ignored'; did you mean ignore?"),
        ("[tool.harness]\nxyz = 1\n", "unknown key 'xyz'; the keys are select, ignore, scripts, reload"),
        ('[tool.harness]\nignore = "loss"\n', "ignore of [tool.harness] must be a list of checks; found 'loss'"),
        ('[tool.harness]\nignore = ["los"]\n', "there is no check los; did you mean loss?"),
        ("[tool]\nharness = 1\n", "tool.harness must be a table"),
        ("[tool.harness\n", "cannot be read"),
    ],
)
def test_a_wrong_table_is_refused(script: Path, text: str, message: str) -> None:
    file = table(script, text)
    with pytest.raises(CannotTry) as refused:
        wanted(script)
    assert str(file) in str(refused.value)
    assert message in str(refused.value)


def test_how_what_was_saved_is_loaded_again(script: Path) -> None:
    assert reload(script) == Reload()
    assert reload(script, wanted=False) == Reload(wanted=False)
    file = table(script, '[tool.harness]\nreload = "mine.io:load"\n')
    assert reload(script) == Reload(True, "mine.io:load", str(file.parent))
    assert not reload(script, wanted=False).wanted
    table(script, "[tool.harness]\nreload = false\n")
    assert not reload(script).wanted


@pytest.mark.parametrize("said", ['"mine"', '"mine:"', '"mine:lo ad"', "3", '["mine:load"]'])
def test_a_way_to_load_that_is_none_is_refused(script: Path, said: str) -> None:
    table(script, f"[tool.harness]\nreload = {said}\n")
    with pytest.raises(CannotTry, match='write "module:function"'):
        reload(script)


def at(script: Path, line: int, check: str = "gradients::not-cleared") -> bool:
    return is_ignored_by_comment(Finding("", "", "", f"{script}:{line}", check=check))


def test_a_comment_silences_the_statement_that_it_stands_in(script: Path) -> None:
    script.write_text(
        "step()  # harness: ignore[gradients::not-cleared]\n"
        "step(  # the second\n"
        "    1,\n"
        ")  # harness: ignore[loss, gradients::cleared-between-updates]\n"
        "for _ in range(2):  # harness: ignore[gradients]\n"
        "    step()\n"
        "text = '# harness: ignore[gradients]'\n"
    )
    assert at(script, 1)
    assert not at(script, 1, "gradients::lost")
    assert at(script, 2), "the comment stands in the last line of the statement"
    assert at(script, 4, "loss::constant")
    assert not at(script, 6), "a loop's comment is not its body's"
    assert not at(script, 7), "a string is no comment"
    assert not is_ignored_by_comment(Finding("", "", "", None))
    assert not is_ignored_by_comment(Finding("", "", "", "absent.py:3"))


def test_an_unknown_check_in_a_comment_of_the_script_is_refused(script: Path) -> None:
    script.write_text("step()  # harness: ignore[gradients::never]\n")
    with pytest.raises(CannotTry, match="there is no check gradients::never"):
        wanted(script)


def test_the_scripts_are_those_of_the_nearest_table(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(script, '[tool.harness]\nscripts = ["train.py --lr 1e-3 \'a b\'", "-m mine.train 3"]\n')
    monkeypatch.chdir(script.parent)
    assert scripts() == (
        script.parents[1],
        [["train.py", "--lr", "1e-3", "a b"], ["-m", "mine.train", "3"]],
    )


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ('"train.py"', "scripts of [tool.harness] must be a list of scripts; found 'train.py'"),
        ('[""]', "must be a list of scripts"),
        ("[1]", "must be a list of scripts"),
        ("[]", 'write scripts = ["train.py"] below [tool.harness]'),
        ('["--full train.py"]', "'--full train.py' begins with an option"),
        ('["-m"]', "'-m' begins with an option"),
        ("""['train.py "a']""", "cannot be read: No closing quotation"),
    ],
)
def test_scripts_that_are_none_are_refused(
    script: Path, listed: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(script, f"[tool.harness]\nscripts = {listed}\n")
    monkeypatch.chdir(script.parent)
    with pytest.raises(CannotTry) as refused:
        scripts()
    assert message in str(refused.value)
