"""Run the script to its end, run it again where it was killed, and print in what the two differ.

    python repro.py

``begins/`` is the folder in which the script begins, ``killed/`` the same folder as the kill left it, and
``repro.json`` says how the script is started. Both are run in copies. Exit status: 0 they end alike, 1 they do not.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def main() -> int:
    about = json.loads((HERE / "repro.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        whole, again = Path(scratch, "whole"), Path(scratch, "again")
        shutil.copytree(HERE / "begins", whole, symlinks=True)
        shutil.copytree(HERE / "killed", again, symlinks=True)
        print("uninterrupted", flush=True)
        start(about["command"], whole)
        print("started again where it was killed", flush=True)
        status = start([*about["command"], *about["resume_arguments"]], again)
        differences = [f"it ends with exit status {status}"] * bool(status) + list(compared(whole, again))
    for each in differences:
        print(f"  {each}")
    print(f"{len(differences)} differences" if differences else "both end alike")
    return bool(differences)


def start(command: list[str], folder: Path) -> int:
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True)  # noqa: S603
    for line in [*done.stdout.splitlines(), *done.stderr.splitlines()][-15:]:
        print(f"    {line}")
    return done.returncode


def compared(whole: Path, again: Path) -> list[str]:
    """Differences in the files with tensors that both have, and the files that one lacks."""
    files = [{str(path.relative_to(each)) for path in each.rglob("*") if path.is_file()} for each in (whole, again)]
    found = []
    for name in sorted(files[0] | files[1]):
        if not name.endswith((".pt", ".pth", ".ckpt", ".bin", ".safetensors")):
            continue
        if name not in files[0] or name not in files[1]:
            found.append(f"{name} is only there {'without' if name in files[0] else 'after'} the kill")
            continue
        one, other = (tensors(each / name) for each in (whole, again))
        other_keys = [key for key in one.keys() | other.keys() if not same(one.get(key), other.get(key))]
        if other_keys:
            found.append(f"{name} differs in {len(other_keys)} values: {', '.join(sorted(other_keys)[:5])}")
    return found


def tensors(file: Path) -> dict[str, Any]:
    """Tensors and numbers of a file, by the keys that lead to them; empty where it cannot be read."""
    import torch

    try:
        if file.suffix == ".safetensors":
            from safetensors.torch import load_file

            return dict(load_file(str(file)))
        return dict(flat(torch.load(file, map_location="cpu", weights_only=True), ""))
    except Exception as error:  # noqa: BLE001 - a file that cannot be read is what this is about
        return {"": f"cannot be read: {type(error).__name__}"}


def flat(value: Any, key: str) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [each for name, one in value.items() for each in flat(one, f"{key}.{name}" if key else str(name))]
    if isinstance(value, (list, tuple)):
        return [each for place, one in enumerate(value) for each in flat(one, f"{key}.{place}")]
    return [(key, value)]


def same(one: Any, other: Any) -> bool:
    import torch

    if torch.is_tensor(one) and torch.is_tensor(other):
        return one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all())
    return type(one) is type(other) and bool(one == other)


if __name__ == "__main__":
    sys.exit(main())
