"""Ten kinds of bugs: copied networks (A), terms of a loss (B), rows as indices (C), normalisation (D), contracts of
losses and metrics (E), recurrent models and how models are called (F), schedules (G), splits, folds and seeds (H),
reported numbers (I), metrics by hand (J); :mod:`tests.written_apart`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.written_apart import must_be_complete, must_be_named, parameters

FOLDER = Path(__file__).parent
GUARDS = (
    *("bugs/kfold_bioassay.py", "right/annealed_vae.py", "right/gcn_molecule_sites.py"),
    *("bugs/machine_faults_weighted.py", "right/mixup_soft_targets.py"),
)


@pytest.mark.parametrize("script", list(parameters(FOLDER, GUARDS)))
def test_what_is_wrong_is_named_and_nothing_else(script: dict[str, Any], pytestconfig: pytest.Config) -> None:
    must_be_named(FOLDER, script, pytestconfig)


def test_there_are_as_many_as_promised() -> None:
    must_be_complete(FOLDER, bugs=126, right=126)
