"""The catalogue: every fault that the harness can name, by its id.

There are four kinds: a check of ``harness check``, a loss of ``harness resume``, a cause of ``harness compare``, a
relation of ``harness vary``. A fault registers itself when its class is made; what can be listed, explained, selected
and ignored, the pages in docs/checks, the hints in the terminal, the rules of SARIF and the tests all come from here.
Importing this module imports no fault: :func:`faults` does.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from harness.errors import CannotTry
from harness.findings import Finding, Severity
from harness.former_ids import formerly

CHECKS, LOSSES, CAUSES = "harness.watch.checks", "harness.resume.losses", "harness.compare.causes"
RELATIONS, SETTINGS = "harness.vary.relations", "harness.vary.settings.faults"
"""The packages in which the faults of each kind are."""

SECTIONS = {
    "Why is this a bug?": "why",
    "What to do": "remedy",
    "When it is right": "right_when",
    "References": "references",
}
"""The sections of a check's docstring, by what they are called in ``harness explain --json``."""


class Page:
    """What a check's docstring says: its statement, and why, what to do, when it is right all the same, references.

    Raises:
        TypeError: the docstring has another section, or lacks one of those that every check has.
    """

    statement: str
    why: str
    remedy: str
    right_when: str
    references: list[str]

    def __init__(self, name: str, docstring: str) -> None:
        if sys.flags.optimize > 1:
            raise CannotTry(
                "Python runs with -OO (PYTHONOPTIMIZE=2), which removes the docstrings that describe the checks; "
                "start it with -O or without either option"
            )
        head, *parts = re.split(r"^## (.+)\n", inspect.cleandoc(docstring), flags=re.MULTILINE)
        sections = dict(zip(map(str.strip, parts[::2]), parts[1::2], strict=True))
        if unknown := set(sections) - set(SECTIONS):
            raise TypeError(f"{name}: unknown section {unknown.pop()!r}; the sections are {', '.join(SECTIONS)}")
        if missing := [section for section in SECTIONS if section not in sections and section != "References"]:
            raise TypeError(f"{name}: its docstring has no section {missing[0]!r}")
        self.statement = " ".join(head.split())
        self.why, self.remedy, self.right_when = (
            sections[name].strip() for name in ("Why is this a bug?", "What to do", "When it is right")
        )
        lines = sections.get("References", "").splitlines()
        self.references = [line.strip().removeprefix("- ") for line in lines if line.strip()]

    @property
    def hint(self) -> str:
        """The first paragraph of what to do, for the terminal."""
        return " ".join(self.remedy.partition("\n\n")[0].split())


Status = Literal["new", "stable"]


class Fault:
    """Something that can be wrong with a training, as a class of its own.

    The first sentence of its docstring says what is wrong where it is reported; the sections that follow are its page.
    A kind of fault is a subclass that says in which package its faults are: ``class Check(Fault, package="…")``. The id
    is ``family::name``: the family is a package within that one, or the kind's own, and the name is the class's.

    Raises:
        TypeError: when a subclass is made whose id is taken, or whose docstring lacks a section.
    """

    package: ClassVar[str]
    """Where the faults of its kind are."""
    family: ClassVar[str | None] = None
    """Family of its kind; None where the packages are the families."""
    id: ClassVar[str]
    severity: ClassVar[Severity] = "error"
    """An error changes what the training comes to; a warning may be meant, or costs no more than time and memory."""
    new_since: ClassVar[str | None] = None
    """The version that brought it, as long as it has not met much code of others; None for a stable one.

    A new fault is reported as a warning, however severe it is."""
    since: ClassVar[str] = "0.2.0"
    """The version that names it first."""
    explains: ClassVar[tuple[str, ...]] = ()
    """Ids of faults whose findings follow from this one's, and would say the same bug twice."""
    page: ClassVar[Page]

    def __init_subclass__(cls, package: str | None = None, family: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if package is not None:
            cls.package, cls.family = package, family
            return
        if cls.__module__.startswith(f"{cls.package}."):
            within = cls.__module__.removeprefix(f"{cls.package}.").partition(".")[0].replace("_", "-")
            cls.id = f"{cls.family or within}::{_kebab(cls.__name__)}"
        cls.since = cls.new_since or cls.since
        cls.page = Page(cls.__qualname__, cls.__doc__ or "")
        _register(cls)

    @classmethod
    def finding(
        cls, expected: str, observed: str, where: str | None = None, update: int | None = None, hint: str | None = None
    ) -> Finding:
        """What was found, with what the page says."""
        return Finding(
            expected=expected,
            observed=observed,
            hint=hint or cls.page.hint,
            where=where,
            update=update,
            check=cls.id,
            severity="warning" if cls.new_since else cls.severity,
            message=cls.page.statement,
        )


def _kebab(name: str) -> str:
    """NotCleared -> not-cleared."""
    return re.sub(r"(?<!^)(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z0-9])", "-", name).lower()


_registered: dict[str, type[Fault]] = {}


def _register(fault: type[Fault]) -> None:
    known = _registered.get(fault.id)
    if known is not None and known.__qualname__ != fault.__qualname__:
        raise TypeError(f"{fault.__qualname__}: {fault.id} is already the id of {known.__qualname__}")
    _registered[fault.id] = fault


def _ids(known: Container[str]) -> dict[str, set[str]]:
    """Every id that these faults have or had, with the ids that it stands for now."""
    ids: dict[str, set[str]] = {}
    for fault in _registered.values():
        for name in (fault.id, *formerly(fault.id)) if fault.id in known else ():
            ids.setdefault(name, set()).add(fault.id)
    return ids


@cache
def _load(name: str) -> None:
    package = importlib.import_module(name)
    for module in pkgutil.iter_modules(package.__path__, f"{name}."):
        _load(module.name) if module.ispkg else importlib.import_module(module.name)


def checks() -> dict[str, type[Fault]]:
    """Every check of ``harness check`` by its id, in the order of the ids."""
    return _of_package(CHECKS)


def losses() -> dict[str, type[Fault]]:
    """Every loss of ``harness resume`` by its id, in the order of the ids."""
    return _of_package(LOSSES)


def causes() -> dict[str, type[Fault]]:
    """Every cause of ``harness compare`` by its id, in the order of the ids."""
    return _of_package(CAUSES)


def relations() -> dict[str, type[Fault]]:
    """Every relation of ``harness vary`` by its id, in the order of the ids."""
    return _of_package(RELATIONS)


def settings() -> dict[str, type[Fault]]:
    """Every fault of a setting that ``harness vary --settings`` names, by its id, in the order of the ids."""
    return _of_package(SETTINGS)


def faults() -> dict[str, type[Fault]]:
    """Every fault of every kind by its id."""
    return checks() | losses() | causes() | relations() | settings()


def _of_package(package: str) -> dict[str, type[Fault]]:
    _load(package)
    return {name: _registered[name] for name in sorted(_registered) if _registered[name].__module__.startswith(package)}


def names(*, checks_only: bool = True) -> list[str]:
    """The families and ids by the classes in their files, without importing them: for a shell's completion."""
    root = Path(__file__).parent
    files = [(file.parent.name.replace("_", "-"), file) for file in root.glob("watch/checks/*/*.py")]
    if not checks_only:
        files += [("resume", file) for file in root.glob("resume/losses/*.py")]
        files += [("compare", file) for file in root.glob("compare/causes/*.py")]
        files += [(file.parent.name, file) for file in root.glob("vary/relations/*/*.py")]
        files += [("settings", file) for file in root.glob("vary/settings/faults/*.py")]
    classes = re.compile(r"^class (\w+)\((?:Check|Loss|Cause|Relation|SettingFault)\b", re.MULTILINE)
    known = {(family, _kebab(name)) for family, file in files for name in classes.findall(file.read_text("utf-8"))}
    return sorted({family for family, _ in known}) + [f"{family}::{name}" for family, name in sorted(known)]


def families() -> list[str]:
    return sorted({check.partition("::")[0] for check in checks()})


def resolve(names: Iterable[str], known: Mapping[str, type[Fault]] | None = None) -> set[str]:
    """The ids that are meant, of all checks or of ``known``: a name is an id, one that a check had before, or a family.

    Raises:
        CannotTry: there is no check and no family of that name.
    """
    found = set()
    known = checks() if known is None else known
    ids = _ids(known)
    families = sorted({check.partition("::")[0] for check in known})
    for name in names:
        family = name.removesuffix("::*").removesuffix("::")
        if name in ids:
            found |= ids[name]
        elif family in families:
            found |= {check for check in known if check.startswith(f"{family}::")}
        else:
            close = difflib.get_close_matches(name, [*ids, *families], n=1, cutoff=0.4)
            meant = f"; did you mean {min(ids.get(close[0], close))}?" if close else ""
            kind = "check" if all(fault in checks() for fault in known) else "fault"
            raise CannotTry(f"there is no {kind} {name}{meant or '; harness explain lists them'}")
    return found


def explain(names: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The pages of the faults that are named, of all without a name, as ``harness explain --json`` has them.

    An id that is one's own names that one, also where other faults were parted from it.

    Raises:
        CannotTry: there is no fault and no family of that name.
    """
    names = set(names)
    known = faults()
    wanted = (names & set(known)) | resolve(names - set(known), known) if names else set(known)
    return [_explained(known[name]) for name in sorted(wanted)]


@dataclass(frozen=True)
class Explained:
    """A fault as ``harness explain --json`` has it."""

    id: str
    formerly: list[str]
    severity: Severity
    status: Status
    since: str
    statement: str
    why: str
    remedy: str
    right_when: str
    references: list[str]


def _explained(fault: type[Fault]) -> dict[str, Any]:
    page = fault.page
    status: Status = "new" if fault.new_since else "stable"
    about = (fault.id, list(formerly(fault.id)), fault.severity, status, fault.since)
    return asdict(Explained(*about, page.statement, page.why, page.remedy, page.right_when, page.references))
