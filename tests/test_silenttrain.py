"""``harness check`` finds in each program of SilentTrain what is recorded, and the record is what it should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from scripts import verdicts
from scripts.expectations import Manifest
from tests.programs import PARTS, SET, Version, found_in, programs_of, recorded_of, versions_of
from tests.server import server_of
from tests.versions import installed

GUARDS = {
    *("kinds/bugs/kfold_bioassay.py", "kinds/right/annealed_vae.py", "kinds/right/gcn_molecule_sites.py"),
    *("kinds/bugs/machine_faults_weighted.py", "kinds/right/mixup_soft_targets.py"),
    *("saved/bugs/spectra_classifier.py", "saved/right/pollen_swa.py"),
}
"""Those that guard every change; the others are nightly."""

PROMISED = {
    "course": (55, 36),
    "forum": (51, 57),
    "kinds": (126, 126),
    "llm": (17, 22),
    "processes": (22, 28),
    "reports": (17, 23),
    "saved": (39, 28),
}
"""Programs with a bug and without."""


def parameters() -> Iterator[Any]:
    for part in PARTS:
        for version in versions_of(part):
            named = f"{part}/{version.file}"
            marks = [pytest.mark.slow if named in GUARDS else pytest.mark.nightly]
            marks += [pytest.mark.distributed] if version.program.processes > 1 else []
            yield pytest.param(version, id=named.removesuffix(".py"), marks=marks)


@pytest.mark.parametrize("version", list(parameters()))
def test_what_is_found_is_what_is_recorded(version: Version, pytestconfig: pytest.Config) -> None:
    if not installed("transformers>=5"):
        pytest.skip("the programs are written for transformers 5")
    for needed in version.program.needs:
        if not installed(needed):
            pytest.skip(f"needs {needed}, of the extra styles")
    verdict = found_in(version, server_of(pytestconfig))
    assert verdict.crashed is None, verdict.crashed
    assert verdict.not_looked_at == [], "a check itself crashed"
    roots = [each for each in verdict.findings if each["explained_by"] is None]
    assert [f"{each['severity']} {each['check']}" for each in roots] == version.recorded, verdict.findings
    assert verdicts.differences(verdicts.name_of(version), verdict) == {}, (
        "python -m scripts.verdicts records them anew"
    )


@pytest.mark.parametrize("part", PARTS)
def test_the_manifest_names_each_program_and_the_record_each_version(part: str) -> None:
    versions = list(versions_of(part))
    assert {str(each.file) for each in versions} == {
        str(f.relative_to(SET / part)) for f in (SET / part).glob("*/*.py")
    }
    assert {each.name for each in versions} == set(recorded_of(part))
    kinds = Counter(each.kind for each in versions)
    assert (kinds["bug"], kinds["right"]) == PROMISED[part]
    assert all(each.says for each in programs_of(part) if each.bug is not None)


def test_no_correct_program_gets_an_error() -> None:
    """A record that says so is not accepted: the check is mended, or the program is not correct."""
    found = {
        f"{part}/{each.name}": each.recorded for part in PARTS for each in versions_of(part) if each.kind == "right"
    }
    assert {name: said for name, said in found.items() if any(each.startswith("error ") for each in said)} == {}


def test_all_parts_are_of_one_release() -> None:
    sets = [Manifest.read(file).set for file in sorted(SET.glob("*/manifest.toml"))]
    assert len(sets) == len(PARTS) + 2
    assert {(each.version, each.licence) for each in sets} == {(sets[0].version, "Apache-2.0")}
