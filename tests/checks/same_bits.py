"""Run each script of the corpus unwatched, watched and watched in windows, and print the checksums of its parameters
after each update."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests import forks
from tests.checks.corpus import SCRIPTS, edited
from tests.server import CHECKPOINT, make_data

HOW = ("unwatched", "watched", "in windows")


def checksums(script: Path, data: Path, output: Path, how: str) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from harness.settings import WatchOptions
    from harness.torch_objects import checksum, held_by
    from harness.watch.script import check_script
    from harness.watch.windows import Windows

    found: list[int] = []
    register_optimizer_step_post_hook(lambda optimizer, args, kwargs: found.append(checksum(held_by(optimizer))))
    arguments = [str(data), str(CHECKPOINT)]
    windows = Windows(lambda finding: None, apart=2)
    if how == "watched":
        report = check_script(str(script), arguments, WatchOptions(full=True))
        assert report.not_looked_at == []
    else:
        sys.argv = [str(script), *arguments]
        sys.path.insert(0, str(script.parent))
        if how == "in windows":
            windows.begin()
        runpy.run_path(str(script), run_name="__main__")
        windows.end()
        assert how == "unwatched" or windows.windows
    output.write_text(json.dumps(found))


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    forks.warm()
    folder = Path(tempfile.mkdtemp(prefix="same-bits-"))
    found: dict[str, list[Any]] = {}
    try:
        forks.fork(lambda: make_data(folder / "data")).wait()
        for script in sorted(SCRIPTS.glob("*.py")):
            found[script.name] = []
            for how in HOW:
                output = folder / f"{script.stem}-{how}.json"
                here = folder / script.name
                here.write_text(edited(script, ()), encoding="utf-8")
                forks.fork(lambda s=here, o=output, h=how: checksums(s, folder / "data", o, h)).wait()  # type: ignore[misc]
                found[script.name].append(json.loads(output.read_text()) if output.exists() else [])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
