"""Ten runs of the command line, whose JSON and terminal lines are kept: what they say may not change unseen.

``python -m tests.golden.runs`` makes them anew and writes tests/golden/*.json; look at the difference before it is
committed. What depends on the machine or the clock is left out, and losses are kept to four digits. So is what a new
check changes in all of them: which checks held or did not apply, and how many. tests/verdicts.json has that.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import catalogue
from tests.checks.corpus import all_cases
from tests.server import CHECKPOINT, Done, Server, make_data

FOLDER = Path(__file__).parent

CHECKED = (
    "flat",
    "trainer",
    "flat_never_clears_gradients",
    "accumulating_does_not_scale_the_loss",
    "raw_torch_takes_the_data_of_the_embeddings",
    "functions_stops_early",
)
"""Scripts of the corpus that ``harness check`` is run on."""

RECIPE = """
from harness.documented_run.recipe import RECIPES

SMALL = RECIPES["tiny"].with_(name="small", dataset="tests/small", data=r"{data}", epochs=2)
"""

RUNS = {
    "run-plain": ("recipe.py:SMALL", "--loop", "plain"),
    "run-accelerate": ("recipe.py:SMALL", "--loop", "accelerate"),
    "run-trainer": ("recipe.py:SMALL", "--loop", "trainer"),
    "run-stops": ("recipe.py:SMALL", "--checkpoint", "checkpoint"),
}
"""Options of ``harness run``; the last has a checkpoint without its weights."""

SAYS = re.compile(
    r"^  (error|warning|ignored|not looked at|note): |^    (expected|observed|where|fix|also) |.py: .* in \d+ updates?|"
    r"^  \d+ checks? held|"
    r"^\w+ +\d+ (passed|failed)|^recipe |checks did not apply: |^written to |^no baseline |^harness: |checks passed"
)
"""What the harness itself says, but for the figures that another machine computes a little differently."""

COUNTS = re.compile(r"\d+ checks? passed; \d+ did not apply.*")

LEFT_OUT = ("seconds", "script", "held", "looked_at", "did_not_apply")
"""Keys of the report of ``harness check`` that are not kept."""

ALL_CHECKS = "run-plain"
"""The run of the recipe whose every check is kept; of the others those that do not hold are."""


def golden(name: str, folder: Path, server: Server) -> dict[str, Any]:
    """What the command says today; ``folder`` is an empty one."""
    file = folder / "found.json"
    if name in RUNS:
        spec, *options = RUNS[name]
        (folder / "recipe.py").write_text(RECIPE.format(data=server.data))
        if "--checkpoint" in options:
            shutil.copytree(CHECKPOINT, folder / "checkpoint", ignore=shutil.ignore_patterns("*.safetensors"))
        command = ("run", "--recipe", spec, "--baselines", "none", "--output", name, *options)
        done = server.run(folder, *command, "--json", file.name)
        found = _of_run(json.loads(file.read_text()), every=name == ALL_CHECKS) if file.exists() else None
    else:
        case = next(each for each in all_cases() if each.name == name)
        (folder / case.script).write_text(case.text)
        # Where another run of the script has left its tokenized rows, there is nothing to tokenize.
        make_data(folder / "data")
        done = server.run(folder, "check", "--json", file.name, case.script, "data", str(CHECKPOINT))
        found = _of_check(json.loads(file.read_text()))
    return {"status": done.status, "terminal": list(_lines(done, folder, server)), "json": found}


def _lines(done: Done, folder: Path, server: Server) -> Iterator[str]:
    """What the harness itself says on the terminal, without times, paths and measured figures."""
    text = (done.stdout + done.stderr).replace(str(folder), "FOLDER").replace(str(server.data), "DATA")
    for line in text.splitlines():
        line = re.sub(r" *\d+\.\d s", " S", line).rstrip()
        if SAYS.search(line):
            yield COUNTS.sub("N checks passed; N did not apply", line)


def _of_check(found: dict[str, Any]) -> dict[str, Any]:
    judged = {*found["held"], *found["ignored"], *(finding["check"] for finding in found["findings"])}
    judged |= {check for reason in found["did_not_apply"] for check in reason["checks"]}
    judged |= {check["check"] for check in found["not_looked_at"]}
    kept = {name: value for name, value in found.items() if name not in LEFT_OUT}
    return kept | {"checks without an outcome": sorted(set(catalogue.checks()) - judged)}


def _of_run(found: dict[str, Any], *, every: bool) -> dict[str, Any]:
    if not every:
        found["checks"] = [check for check in found["checks"] if check["outcome"] not in ("holds", "not applicable")]
    kept = ("schema", "updates", "updates_planned", "interrupted", "findings", "checks", "rows", "model")
    losses = [float(f"{loss:.4g}") for loss in found["curves"]["loss"]]
    return {**{name: found[name] for name in kept}, "keys": sorted(found), "loss": losses, "lr": found["curves"]["lr"]}


def main() -> None:
    server = Server()
    try:
        for name in (*CHECKED, *RUNS):
            with tempfile.TemporaryDirectory() as folder:
                text = json.dumps(golden(name, Path(folder), server), indent=1) + "\n"
            (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    finally:
        server.close()


if __name__ == "__main__":
    main()
