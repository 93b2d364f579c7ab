"""Resolve the versions that are chosen in constraints/ENV.in into the pins of an environment: tox -e pins [-- ENV ...].

Run with Python 3.11, for which the pins are.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
NEWEST = "tf523"


def main(names: list[str]) -> None:
    chosen = sorted(path.stem for path in HERE.glob("*.in"))
    unknown = [name for name in names if name not in chosen]
    if unknown:
        sys.exit(f"no constraints/{unknown[0]}.in; there are: {', '.join(chosen)}")
    for name in names or chosen:
        newest = name == NEWEST
        output = Path("constraints.txt") if newest else Path("constraints", f"{name}.txt")
        command = [sys.executable, "-m", "piptools", "compile", "--quiet", "--upgrade", "--strip-extras"]
        command += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--allow-unsafe"]
        extras = ("browser", "dev", "ray", "site", "styles") if newest else ("test",)
        command += [f"--extra={extra}" for extra in extras]
        command += ["--constraint", f"constraints/{name}.in"]
        subprocess.run([*command, "--output-file", str(output), "pyproject.toml"], cwd=ROOT, check=True)  # noqa: S603
        lines = (ROOT / output).read_text(encoding="utf-8").splitlines()
        # A build for one kind of machine ("torch==2.13.0+cpu") is not for all of them.
        pins = [re.sub(r"\+\w+$", "", line) for line in lines if "==" in line]
        made = [f"# Made from constraints/{name}.in by: tox -e pins -- {name}", *sorted(pins)]
        (ROOT / output).write_text("\n".join(made) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
