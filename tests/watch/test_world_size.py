"""What holds the number of processes in a script's text, and which lines divide by it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from harness.watch.world_size import divides, held


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n = dist.get_world_size()", {"n": 1}),
        ("n = int(os.environ.get('WORLD_SIZE', 1))", {"n": 1}),
        ("n = int(os.environ['WORLD_SIZE'])", {"n": 1}),
        ("n = max(1, dist.get_world_size())", {"n": 1}),
        ("n = dist.get_world_size() if dist.is_initialized() else 1", {"n": 1}),
        ("rank, n = dist.get_rank(), dist.get_world_size()", {"n": 1}),
        ("self.n = accelerator.num_processes", {"n": 1}),
        ("config = Config(n=dist.get_world_size())", {"n": 1}),
        ("def count():\n    return dist.get_world_size()\nn = count()", {"count": 1, "n": 1}),
        ("def mean(value, n): ...\nmean(loss, dist.get_world_size())", {"n": 1}),
        ("class A:\n    def __init__(self, n): ...\nA(dist.get_world_size())", {"n": 1}),
        ("@dataclass\nclass A:\n    n: int\nA(dist.get_world_size())", {"n": 1}),
        ("n = ACCUMULATE * dist.get_world_size()", {"n": 1}),
        ("n = 1 / dist.get_world_size()", {"n": -1}),
        ("dist.all_reduce(n)", {"n": 1}),
        ("dist.all_reduce(n, op=dist.ReduceOp.AVG)", {}),
        ("n = rows // dist.get_world_size()", {}),
        ("loss = loss / dist.get_world_size()", {}),
        ("n = 2", {}),
        ("n = dist.get_rank()", {}),
    ],
)
def test_names_that_hold_it(text: str, names: dict[str, int]) -> None:
    assert held([ast.parse(text)]) == names


@pytest.mark.parametrize(
    ("line", "does"),
    [
        ("loss = loss / dist.get_world_size()", True),
        ("loss = loss / n", True),
        ("loss /= self.config.n", True),
        ("loss = loss / steps / n", True),
        ("loss = loss / (steps * n)", True),
        ("loss = loss * (1 / n)", True),
        ("loss = inverse * loss", True),
        ("loss.div_(n)", True),
        ("loss.mul_(inverse)", True),
        ("loss = torch.div(loss, n)", True),
        ("loss = loss / 2", False),
        ("loss = 0.5 * loss", False),
        ("loss = loss * n", False),
        ("loss = loss / (tokens / n)", False),
        ("loss = loss / tokens * n", False),
        ("loss = loss / (n / n)", False),
        ("loss = loss // n", False),
        ("loss = loss + 1 / tokens", False),
    ],
)
def test_a_line_that_divides_by_it(line: str, does: bool, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(f"n = dist.get_world_size()\ninverse = 1.0 / n\n{line}\n")
    where = f"{file}:3"
    assert divides(where, [str(file)]) == (where if does else None)
    assert divides(f"{file}:1", [str(file)]) is None
    assert divides(None, [str(file)]) == (where if "torch.div" in line else None)


def test_a_function_of_another_file(tmp_path: Path) -> None:
    helper, script = tmp_path / "helper.py", tmp_path / "train.py"
    helper.write_text("def share(value, parts):\n    return value / parts\n")
    script.write_text("from helper import share\nloss = share(loss, dist.get_world_size())\n")
    files = [str(helper), str(script)]
    assert divides(f"{helper}:2", files) == f"{helper}:2"
    script.write_text("from helper import share\nloss = share(loss, 2)\nworld_size = 2\n")
    assert divides(f"{helper}:2", files) is None
