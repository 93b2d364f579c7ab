"""The catalogue: what a check must be, and how checks are found by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness import catalogue
from harness.errors import CannotTry
from harness.former_ids import FORMER_IDS
from harness.watch.bus import Listener
from harness.watch.check import Check
from harness.watch.events import Step

SECTIONS = """
    ## Why is this a bug?
    Because.

    ## What to do
    Something else.

    In detail.

    ## When it is right
    Never.
    """


def made(**about: object) -> type[Check]:
    """A check that is made with what is given, and is right otherwise."""
    right = {"id": "tests::another", "__doc__": f"Wrong.\n{SECTIONS}", "__module__": __name__}
    return type("AnotherCheck", (Check,), right | about)


@pytest.fixture(autouse=True)
def _forget() -> object:
    """Checks that a test makes are gone afterwards."""
    catalogue.faults()
    before = dict(catalogue._registered)
    yield
    catalogue._registered.clear()
    catalogue._registered.update(before)


def test_a_page_comes_from_the_docstring() -> None:
    page = made().page
    assert page.statement == "Wrong."
    assert page.hint == "Something else."
    assert page.remedy == "Something else.\n\nIn detail."
    assert page.right_when == "Never."
    assert page.references == []


@pytest.mark.parametrize(
    ("docstring", "message"),
    [
        ("Wrong.", "no section 'Why is this a bug\\?'"),
        (f"Wrong.\n{SECTIONS}\n    ## Whatever\n    Text.\n", "unknown section 'Whatever'"),
    ],
)
def test_a_docstring_without_its_sections_is_refused(docstring: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        made(__doc__=docstring)


def test_a_method_that_names_no_fact_is_refused() -> None:
    with pytest.raises(TypeError, match="judge is told of nothing: annotate its first parameter with an event"):
        made(judge=lambda self, fact: None)


def test_a_handler_that_names_no_event_is_refused() -> None:
    with pytest.raises(TypeError, match="on_step is told of nothing: annotate its first parameter with an event"):
        made(on_step=lambda self, event: None)


def test_an_id_that_is_taken_is_refused() -> None:
    with pytest.raises(TypeError, match="gradients::not-cleared is already the id of NotCleared"):
        type(
            "NotCleared",
            (Check,),
            {
                "__doc__": f"Wrong.\n{SECTIONS}",
                "__module__": f"{catalogue.CHECKS}.gradients.x",
                "__qualname__": "Other",
            },
        )


def test_the_name_of_the_class_is_the_id() -> None:
    assert made(__module__=f"{catalogue.CHECKS}.gradients.clearing").id == "gradients::another-check"


def test_a_check_is_told_of_what_its_handlers_take() -> None:
    class Counts(Listener):
        def on_step(self, event: Step) -> None: ...

    assert Counts.told_of == {"on_step": (Step,)}
    assert Listener.told_of == {}


def test_every_check_is_told_of_something_and_refers_to_others_that_exist() -> None:
    known = catalogue.checks()
    assert len(known) >= 61
    for name, check in known.items():
        assert issubclass(check, Check)
        assert check.told_of, name
        assert set(check.explains) <= set(known) - {name}, name


def test_every_check_says_what_it_needs() -> None:
    """So that the outcome can say why it did not look; that it looks at its good example, tests/checks shows."""
    for check, kind in catalogue.checks().items():
        assert issubclass(kind, Check)
        assert kind.needs != Check.needs, check


def test_files_name_the_checks() -> None:
    """A shell's completion does not import them."""
    assert set(catalogue.names()) == {*catalogue.checks(), *catalogue.families()}
    every = {*catalogue.faults(), *catalogue.families(), "resume", "compare", "depends", "independent"}
    assert set(catalogue.names(checks_only=False)) == every


def test_names_are_ids_former_ids_and_families() -> None:
    gradients = {check for check in catalogue.checks() if check.startswith("gradients::")}
    assert catalogue.resolve(["gradients"]) == catalogue.resolve(["gradients::*"]) == gradients
    assert catalogue.resolve(["gradients::cleared-between-updates"]) == {"gradients::not-cleared"}
    assert catalogue.resolve(["loss::not-finite", "memory"]) == {"loss::not-finite", "memory::graphs-kept"}


def test_an_id_whose_fault_was_parted_stands_for_all_parts() -> None:
    parts = {"inputs::one-class", "inputs::classes-as-numbers", "inputs::wrong-masked-labels"}
    assert catalogue.resolve(["inputs::wrong-labels"]) == parts
    assert catalogue.resolve(["schedule::lr-zero"]) > {"schedule::lr-zero"}
    assert [page["id"] for page in catalogue.explain(["schedule::lr-zero"])] == ["schedule::lr-zero"]
    assert {page["id"] for page in catalogue.explain(["inputs::wrong-labels"])} == parts


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gradients::not-clear", "did you mean gradients::not-cleared?"),
        ("gradient", "did you mean gradients?"),
        ("padding::does-not-mater", "did you mean model::output-depends-on-padding?"),
        ("?!", "harness explain lists them"),
    ],
)
def test_an_unknown_name_is_refused_with_a_suggestion(name: str, meant: str) -> None:
    with pytest.raises(CannotTry) as refused:
        catalogue.resolve([name])
    assert str(refused.value).startswith(f"there is no check {name}")
    assert meant in str(refused.value)


def test_explain_has_the_keys_of_the_contract() -> None:
    (page,) = catalogue.explain(["gradients::not-cleared"])
    assert set(page) == {
        *("id", "formerly", "severity", "status", "since", "statement", "why", "remedy", "right_when", "references"),
    }
    assert page["formerly"] == ["gradients::cleared-between-updates"]
    assert len(catalogue.explain()) == len(catalogue.faults())


@pytest.mark.parametrize(
    ("about", "severity"),
    [({}, "error"), ({"severity": "warning"}, "warning"), ({"new_since": "0.3.0"}, "warning")],
    ids=["stable", "warning", "new"],
)
def test_what_is_new_is_reported_as_a_warning(about: dict[str, object], severity: str) -> None:
    fault = made(**about)
    assert fault.finding("this", "that").severity == severity
    assert fault.since == about.get("new_since", "0.2.0")


@pytest.mark.nightly
def test_python_without_docstrings_is_named() -> None:
    code = "from harness.cli import main; main(['explain', 'gradients'])"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("harness: Python runs with -OO (PYTHONOPTIMIZE=2)")


def test_former_ids_lead_to_faults_of_today() -> None:
    """One that leads nowhere would be refused in the pyproject.toml of somebody who has written it."""
    former = {old for ids in FORMER_IDS.values() for old in ids}
    assert catalogue.resolve(former, catalogue.faults()) <= set(catalogue.faults())
    assert catalogue.resolve(["gradients::clipped-in-time"]) == {
        "gradients::misplaced-clipping",
        "gradients::clipped-in-part",
        "gradients::clipped-while-scaled",
        "gradients::clips-nothing",
    }, "it was renamed, and then parted"
