"""Run a script plain or watched, and keep what it leaves: a program of :class:`tests.server.Server`.

outcome plain|watched SCRIPT [ARGUMENTS]
"""

from __future__ import annotations

import hashlib
import json
import pickle
import random
import runpy
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

DRAWS = "draws.json"


def main(arguments: Sequence[str], prog_name: str) -> None:
    how, script, *further = arguments
    if how == "watched":
        from harness.settings import WatchOptions
        from harness.watch.script import check_script

        report = check_script(script, further, WatchOptions(full=True))
        assert report.not_looked_at == [], report.not_looked_at
    else:
        sys.argv = [script, *further]
        sys.path.insert(0, str(Path(script).parent.resolve()))
        with suppress(SystemExit):
            runpy.run_path(script, run_name="__main__")
    Path(DRAWS).write_text(json.dumps(draws()))


def draws() -> dict[str, str]:
    """A digest of the random state of each library: what the next draw would be."""
    import numpy as np
    import torch

    states = {"torch": torch.get_rng_state().numpy().tobytes(), "random": pickle.dumps(random.getstate())}
    states["numpy"] = pickle.dumps(np.random.get_state())
    return {name: hashlib.sha256(state).hexdigest() for name, state in states.items()}
