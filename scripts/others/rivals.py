"""Other tools, each in an environment of its own, which has what this one has besides."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from harness.errors import CannotTry
from scripts import adapters


def release(tool: str) -> str:
    """The release of a tool that is measured."""
    return adapters.TOOLS[tool].release


def environment(tool: str, folder: Path) -> Path:
    """The interpreter of an environment that has the tool, made where there is none.

    Raises:
        CannotTry: the tool cannot be installed.
    """
    place = folder / f"{tool}-{release(tool)}"
    python = place / "bin" / "python"
    installed = place / "installed"
    if not installed.exists():
        venv.create(place, with_pip=False)
        ours = sysconfig.get_path("purelib")
        theirs = sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)})
        Path(theirs, "beside.pth").write_text(f"import site; site.addsitedir({ours!r})\n", encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            f"{tool}=={release(tool)}",
        ]
        done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise CannotTry(f"{tool} {release(tool)} could not be installed: {said}; leave it out with --tool")
        installed.touch()
    return python
