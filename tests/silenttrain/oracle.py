"""Show that the two versions of a program are two trainings, without any tool that is to be measured.

    python oracle.py [--json FILE] PART [ID]...

A PART is a folder with a ``manifest.toml``. Of each program that has both versions, the right one is run twice and the
one with the bug once, as Python runs them. The effect of the bug is what differs between the versions and not between
the two runs of the right one: the optimizers' parameters after an update, the number of updates, what is printed, what
is written. Exit status 1: a pair without an effect, or a program that fails.

It needs torch and what the programs need, and nothing of this project.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

LIMIT = 600
"""Seconds after which a program is ended."""

TIMES = re.compile(r"\d+(\.\d+)? ?(ms|s|it/s|MB|MiB)\b|_(runtime|per_second)\W+[\d.e+-]+")
"""What differs from run to run: times and memory."""


@dataclass(frozen=True)
class Run:
    """What a program did: digests of the parameters after each update, its lines, digests of its files."""

    failed: str | None
    updates: list[str]
    lines: list[str]
    files: dict[str, str]


def run(script: Path, arguments: list[str], processes: int) -> Run:
    """Run a program in an empty folder."""
    with tempfile.TemporaryDirectory() as name:
        folder, updates = Path(name, "work"), Path(name, "updates")
        folder.mkdir()
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)] if processes > 1 else []
        command = [sys.executable, *launcher, __file__, "--run", str(updates), str(script), *arguments]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "CUDA_VISIBLE_DEVICES": ""}
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return Run(f"it did not end within {LIMIT} s", [], [], {})
        files = {
            str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(folder.rglob("*"))
            if file.is_file() and "__pycache__" not in file.parts
        }
        failed = None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        ranks = [file.read_text().split() for file in sorted(Path(name).glob("updates*"))]
        lines = [TIMES.sub("", line) for line in done.stdout.splitlines()]
        return Run(failed, ["".join(each) for each in zip(*ranks)], sorted(lines) if processes > 1 else lines, files)


def run_here(updates: str, script: str, arguments: list[str]) -> None:
    """Run the program in this process, and write a digest of the optimizer's parameters after each update."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    digests = open(updates + os.environ.get("RANK", ""), "w")

    def stepped(optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
        whole = hashlib.blake2b(digest_size=8)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                whole.update(parameter.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
        digests.write(whole.hexdigest() + "\n")
        digests.flush()

    register_optimizer_step_post_hook(stepped)
    sys.argv, sys.path[0] = [script, *arguments], str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")


def effect(bug: Run, right: Run, again: Run) -> list[str]:
    """What differs between the versions, beyond what differs between two runs of the right one."""
    found = []
    noisy = next((n for n, both in enumerate(zip(right.updates, again.updates), 1) if both[0] != both[1]), None)
    first = next((n for n, both in enumerate(zip(right.updates, bug.updates), 1) if both[0] != both[1]), None)
    if len(bug.updates) != len(right.updates):
        found.append(f"{len(bug.updates)} updates, not {len(right.updates)}")
    if first is not None and (noisy is None or first < noisy):
        found.append(f"other parameters from update {first} of {len(right.updates)}")
    if right.lines == again.lines and bug.lines != right.lines:
        found.append("it prints something else")
    stable = {name for name, digest in right.files.items() if again.files.get(name) == digest}
    if set(bug.files) != set(right.files) or any(bug.files[name] != right.files[name] for name in stable):
        found.append("it writes something else")
    return found


def main() -> None:
    if sys.argv[1:2] == ["--run"]:
        run_here(sys.argv[2], sys.argv[3], sys.argv[4:])
        return
    parser = argparse.ArgumentParser(description="Show that the two versions of a program are two trainings.")
    parser.add_argument("part", type=Path, help="a folder with a manifest.toml")
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--json", type=Path, help="also write what was found to this file")
    asked = parser.parse_args()
    programs = tomllib.loads((asked.part / "manifest.toml").read_text(encoding="utf-8"))["program"]
    pairs = [each for each in programs if {"bug", "right"} <= set(each) and (not asked.ids or each["id"] in asked.ids)]
    found: dict[str, object] = {}
    bad = 0
    for each in pairs:
        bug, right = ((asked.part / each[version]).resolve() for version in ("bug", "right"))
        how = (each.get("arguments", []), each.get("processes", 1))
        runs = run(bug, *how), run(right, *how), run(right, *how)
        failed = next((one.failed for one in runs if one.failed), None)
        said = [f"fails: {failed}"] if failed else effect(*runs)
        bad += bool(failed) or not said
        found[each["id"]] = said
        print(f"{each['id']}: {'; '.join(said) or 'NO EFFECT'}", flush=True)
    print(f"{len(pairs) - bad} of {len(pairs)} pairs are two trainings")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
