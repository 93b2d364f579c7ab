"""Each check that judges facts, given facts that are made by hand."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from harness import catalogue
from harness.watch.check import Check, Found
from harness.watch.checks.rows.evaluation import EvaluatedOnTrainingRows
from harness.watch.checks.rows.order import SameOrderEachEpoch
from harness.watch.checks.saved.loaded_again import ResumedIncompletely
from harness.watch.checks.saved.observations.resumes import TrainingResumed
from harness.watch.events import Event
from tests.checks.judging import Case, Values, all_cases, is_as_said, judged, values

LOADER = DataLoader(TensorDataset(torch.arange(8)))


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_of_a_fact_a_check_says(case: Case) -> None:
    verdict = judged(case.check, case.fact)
    assert is_as_said(case, verdict), verdict


@pytest.mark.parametrize(
    ("check", "fact"),
    [
        (EvaluatedOnTrainingRows, values(rows=60, trained=20, by_content=True)),
        (SameOrderEachEpoch, values(loader=LOADER, same_order=True, in_vain=True)),
        (ResumedIncompletely, TrainingResumed(apart="nothing loads it", may_be_meant=True)),
    ],
)
def test_what_may_be_meant_is_a_warning(check: type[Check], fact: Event | Values) -> None:
    verdict = judged(check, fact)
    assert isinstance(verdict, Found)
    assert verdict.may_be_meant


def test_each_check_is_shown_by_hand_what_it_can_say() -> None:
    """The fault, and each of held and nothing to judge that it knows."""
    shown: dict[str, set[str]] = {}
    for case in all_cases():
        shown.setdefault(case.check.id, set()).add(
            {"held": "HELD", "nothing to judge": "NOTHING"}.get(case.said, "Found")
        )
    for name, check in catalogue.checks().items():
        assert issubclass(check, Check)
        source = inspect.getsource(check).replace(check.__doc__ or "", "")
        source = source.replace("NothingToJudge", "NOTHING")
        says = {each for each in ("Found", "HELD", "NOTHING") if each in source}
        assert says <= shown.get(name, set()), f"{name}: make the facts by hand in tests/checks/*/facts.py"
