"""Pages that say what the records say: they are made when the site is built, and kept nowhere.

    python -m scripts.record_pages [detection | repairs | account]

prints one. A new check, or a new script of the corpus, changes the record when a release makes it anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from scripts import account

ROOT = Path(__file__).parents[1]
DETECTION = ROOT / "baselines" / "detection.json"
MARGINS = ROOT / "scripts" / "records" / "margins.json"
"""What scripts.margins writes."""

BROKEN = ROOT / "scripts" / "records" / "broken-checks.json"
"""What scripts.broken_checks writes."""

REPAIRS = ROOT / "scripts" / "records" / "repairs.json"

SHOWN = 2
"""Scripts that are named where a constant changes the verdict on more."""

HELD_OUT = """\
Held out: of 24 scripts in the style of tutorials and notebooks, each with a bug, written without a view of the
repairs, 20 bugs were named (1 by a warning), and 8 got a patch, the right one each; of 12 right scripts none was
flagged or changed. One bug is of a kind that has no check. Failures with a general cause were fixed afterwards.
""".splitlines()
"""What was measured once, before anything was fixed on these scripts."""


def detection() -> str:
    """What ``harness check`` finds in its own corpus, the constants that decide, and the checks that were broken."""
    found, margins, broken = (_read(file) for file in (DETECTION, MARGINS, BROKEN))
    return "\n".join([*corpus_lines(found), "", *margin_lines(margins), "", *broken_lines(broken)]) + "\n"


def repairs() -> str:
    """What ``harness check --fix`` repairs in the corpus."""
    return "\n".join(repair_lines(_read(REPAIRS)["scripts"])) + "\n"


PAGES: dict[str, Callable[[], str]] = {"detection": detection, "repairs": repairs, "account": account.text}


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def corpus_lines(detection: dict[str, Any]) -> Iterator[str]:
    """By check: which mutants are caught, and at which update."""
    mutants, variants = detection["mutants"], detection["variants"]
    caught = [each for each in mutants if _causes(each) == {each["check"]}]
    flagged = [each for each in variants if _causes(each) != {*each["warns"]}]
    more = sum(len(_causes(each)) < len(each["found"]) for each in mutants)
    warned = sum(bool(each["warns"]) for each in variants)
    yield "# What `harness check` finds in its own corpus"
    yield ""
    yield "Written by `python -m scripts.detection`. The corpus was written together with the checks, so these figures"
    yield "say that nothing got lost, not how well other people's scripts are judged."
    yield ""
    yield (
        f"{len(caught)} of {len(mutants)} mutants are caught by the check that they are meant for and by no other, but "
        f"for findings that it explains ({more} have some); "
        f"{len(flagged)} of {len(variants)} right scripts are flagged ({warned} with a warning that explains when the "
        f"code is intended); {len(detection['unseen'])} more bugs are known that no check sees."
    )
    yield ""
    yield "| check | mutants: caught at update |"
    yield "| --- | --- |"
    for check in sorted({each["check"] for each in mutants}):
        mine = [each for each in mutants if each["check"] == check]
        cells = [f"{each['name']}: {_when(each)}" + (f" ({each['case']})" if each["case"] else "") for each in mine]
        yield f"| `{check}` | {', '.join(cells)} |"
    yield ""
    yield "Not seen: " + "; ".join(f"{each['name']} ({each['why']})" for each in detection["unseen"]) + "."


def _causes(entry: dict[str, Any]) -> set[str]:
    """The checks whose findings no other one explains."""
    return {found["check"] for found in entry["found"] if "explained_by" not in found}


def margin_lines(margins: dict[str, Any]) -> Iterator[str]:
    """Which constants of the watch decide: those of which half or double changes a verdict."""
    constants = margins["constants"]
    sharp = {name: each for name, each in constants.items() if each["halved"] or each["doubled"]}
    yield "## Constants that decide"
    yield ""
    yield "Written by `python -m scripts.margins`. Each numeric constant of `harness/watch` was halved and doubled, and"
    yield f"{margins['scripts']} scripts were watched again, the checks' examples included. {len(sharp)} of"
    yield f"{len(constants)} constants change a verdict; neither half nor double of the others does. Several were"
    yield "turned at once, and parted where a verdict changed, so two that undo each other would not show. Of a number"
    yield "from 0.5 to 1, it is the distance from 1 that is halved or doubled."
    yield ""
    yield "| constant | value | halved | doubled |"
    yield "| --- | --- | --- | --- |"
    for name, each in sorted(sharp.items()):
        yield f"| `{name}` | {each['value']:g} | {_scripts(each['halved'])} | {_scripts(each['doubled'])} |"


def broken_lines(broken: dict[str, Any]) -> Iterator[str]:
    """What of a broken check nothing notices."""
    changes = broken["broken"]
    left = [each for each in changes if each["survives"]]
    yield "## Checks that were broken"
    yield ""
    yield "Written by `python -m scripts.broken_checks`. Wherever a check reports, the report was removed,"
    yield "and the condition that it depends on inverted. Then it judged its facts that are made by hand,"
    yield "and its scripts of the first ring were watched."
    yield f"Of {len(changes)} changes in {len({each['check'] for each in changes})} checks, {len(left)} survive."
    if left:
        yield ""
        yield "| check | line | what was changed |"
        yield "| --- | --- | --- |"
        yield from (f"| `{each['check']}` | {each['line']} | {each['how']} |" for each in left)


def _scripts(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _when(mutant: dict[str, Any]) -> str:
    updates = [found["update"] for found in mutant["found"] if found["check"] == mutant["check"]]
    if not updates:
        return "missed"
    return "evaluation" if updates[0] is None else str(updates[0])


def repair_lines(entries: Sequence[dict[str, Any]]) -> Iterator[str]:
    """By check: which scripts are repaired."""
    bad = [each for each in entries if each["kind"] in ("bad", "bug")]
    right = [each for each in entries if each["kind"] not in ("bad", "bug")]
    mended = [each for each in bad if is_repaired(each)]
    examples = [each for each in bad if each["kind"] == "bad"]
    likes = {like: sum(each.get("like") == like for each in mended) for like in ("code", "outcome", "other")}
    yield "# What `harness check --fix` repairs in the corpus"
    yield ""
    yield "Written by `python -m scripts.repairs`. The repairs were written with the corpus, so these figures say that"
    yield "nothing got lost and nothing was made worse, not how many of other people's bugs have a repair."
    yield ""
    yield from HELD_OUT
    yield ""
    yield (
        f"{len(mended)} of {len(bad)} scripts with a bug are repaired ({sum(map(is_repaired, examples))} of "
        f"{len(examples)} examples, {len(mended) - sum(map(is_repaired, examples))} of {len(bad) - len(examples)} "
        f"mutants), and {sum(map(is_worse, bad))} are made worse. Of those, {likes['code']} are then the code "
        f"of the right script, {likes['outcome']} other code in which every check comes out as in the right one, and "
        f"{likes['other']} other code in which one does not."
    )
    yield f"Of {len(right)} right scripts {sum(map(is_worse, right))} are changed."
    yield ""
    yield "| check | repaired | no patch |"
    yield "| --- | --- | --- |"
    for check in sorted({each["check"] for each in bad}):
        mine = [each for each in bad if each["check"] == check]
        done = ", ".join(_name(each) for each in mine if is_repaired(each))
        left = ", ".join(f"{_name(each)} ({why_not(each)})" for each in mine if not is_repaired(each))
        yield f"| `{check}` | {done} | {left} |"


def _name(entry: dict[str, Any]) -> str:
    return str(entry["name"]).rpartition("/")[2]


def is_repaired(entry: dict[str, Any]) -> bool:
    return any(each["changes"] is not None for each in entry.get("patches", ()))


def is_worse(entry: dict[str, Any]) -> bool:
    """Whether something is found in it afterwards that was not found before, or a right script was changed."""
    if entry["kind"] not in ("bad", "bug"):
        return is_repaired(entry) and entry["found"] == []
    return not set(entry.get("left", ())) <= set(entry.get("found", ()))


def why_not(entry: dict[str, Any]) -> str:
    return entry.get("failed") or "; ".join(each["why"] for each in entry["patches"] if each["why"])


if __name__ == "__main__":
    sys.stdout.write(PAGES[sys.argv[1]]())
