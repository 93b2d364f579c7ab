"""The picture of a finding in a terminal, docs/finding.svg: python -m scripts.picture

It is what `harness check` prints of the bug that README shows, colours and all.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from harness.files import write_atomically
from tests.checks.corpus import MARK

ROOT = Path(__file__).parent.parent
BUG = ROOT / "tests" / "checks" / "gradients" / "not-cleared" / "bad.py"
PICTURE = ROOT / "docs" / "finding.svg"
COLUMNS = 120


def on_a_terminal(command: list[str], folder: Path) -> str:
    """What a command writes to a terminal, with its control sequences."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:  # noqa: S603
        os.close(theirs)
        written = b""
        while part := _read(ours):
            written += part
        os.close(ours)
        process.wait()
    return written.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # EIO: nobody writes to it any more
        return b""


def picture(written: str) -> str:
    """The same as an SVG that loads no font."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(written))
        svg = console.export_svg(title="harness check train.py", unique_id="finding")
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def main() -> None:
    """Write it."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(BUG.read_text(encoding="utf-8").replace(MARK, ""), encoding="utf-8")
        written = on_a_terminal([sys.executable, "-m", "harness", "check", script.name], Path(folder))
    # How long it took here is of no interest, and another each time.
    shown = re.sub(r"; \d[\d.]* s, .*", "", written.strip())
    write_atomically(PICTURE, picture(f"$ harness check train.py\n\n{shown}\n"))


if __name__ == "__main__":
    main()
