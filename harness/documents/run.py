"""Run the documents' blocks on the installed versions, and say of each how it went."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.claims import DOCUMENTED
from harness.compat import refused_by_the_hub
from harness.documents.blocks import Block, blocks_of, with_indentation
from harness.documents.printed import comparable, prints_otherwise
from harness.documents.replacements import REPLACEMENTS, Replacement, replaced
from harness.documents.workspace import workspace
from harness.errors import CannotTry
from harness.fingerprint import fingerprint, provenance
from harness.recipe import Recipe
from harness.record import BlockRecord, DocumentsRecord, Provenance

PATIENCE = 600
"""Seconds after which a block counts as hung."""

SHORT_NAME = REPLACEMENTS[-1]
"""Of what a folder of that name in the working directory hides; the hub's client is asked about it instead."""

OFFLINE = re.compile(
    r"offline|ConnectionError|couldn't (connect|reach)|LocalEntryNotFound|DatasetNotFound|on the (Hugging Face )?Hub|"
    r"huggingface\.co|is not a local folder",
    re.IGNORECASE,
)
"""The errors of what would be fetched: only the corpus, the checkpoint and the metric of MRPC are here."""


def run_documents(
    folder: Path, recipe: Recipe, *, on_block: Callable[[BlockRecord], None] = lambda block: None
) -> DocumentsRecord:
    """Run every block of every document in a folder (``*.txt``, ``*.md``), each document in a process of its own.

    Corpus and tokenizer are the recipe's; the model is a small random BERT.

    Raises:
        CannotTry: the folder has no document, one cannot be read, or data or tokenizer are missing.
    """
    documents = with_indentation(_documents(folder))
    if not any(documents):
        raise CannotTry(
            f"no blocks of Python in the documents of {folder}; expected fences, notebook cells or listings"
        )
    blocks: list[BlockRecord] = []
    with workspace(recipe) as (work, environment):
        for each in documents:
            for record in _run(each, work, environment, recipe):
                blocks.append(record)
                on_block(record)
    return DocumentsRecord(
        recipe={"dataset": recipe.dataset, "vocabulary": recipe.vocabulary},
        fingerprint=fingerprint("cpu"),
        provenance=Provenance(**provenance()),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        blocks=blocks,
    )


def _documents(folder: Path) -> list[list[Block]]:
    paths = sorted(path for path in folder.glob("*") if path.suffix in (".txt", ".md"))
    if not paths:
        raise CannotTry(f"no documents in {folder}: expected files *.txt or *.md with blocks of code")
    found = []
    for path in paths:
        try:
            found.append(blocks_of(path))
        except (OSError, UnicodeDecodeError) as error:
            raise CannotTry(f"document {path} cannot be read ({error}); expected UTF-8 text") from error
    return found


class _Notebook:
    """A process that runs one block after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.died = self.hung = False

    def run(self, code: str, name: str) -> dict[str, Any]:
        """What the block did; a process that died or hung is an error too."""
        assert self.process.stdin
        assert self.process.stdout
        watchdog, line = threading.Timer(PATIENCE, self._hung), ""
        watchdog.start()
        try:
            if self.process.poll() is None:
                self.process.stdin.write(json.dumps({"code": code, "name": name}) + "\n")
                self.process.stdin.flush()
                line = self.process.stdout.readline()
        except OSError:
            pass  # it has just died
        finally:
            watchdog.cancel()
        if line:
            done: dict[str, Any] = json.loads(line)
            return done
        self.died = True
        status = self.process.wait()
        says = f"no end after {PATIENCE:g} s" if self.hung else f"the process ended with status {status}"
        return {"error": {"type": "Died", "says": says, "name": None}, "warnings": [], "printed": ""}

    def _hung(self) -> None:
        self.hung = True
        self.process.kill()


@contextmanager
def _notebook(work: Path, environment: Mapping[str, str]) -> Iterator[_Notebook]:
    command = [sys.executable, "-m", "harness.documents.execute"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=work, env=dict(environment), text=True, **pipes)  # noqa: S603
    try:
        yield _Notebook(process)
    finally:
        process.kill()
        with suppress(OSError):  # of what could not be written to one that died
            process.communicate()


def _run(blocks: Sequence[Block], work: Path, environment: Mapping[str, str], recipe: Recipe) -> Iterator[BlockRecord]:
    as_documented = (recipe.dataset, recipe.vocabulary) == (DOCUMENTED.dataset, DOCUMENTED.vocabulary)
    lost: dict[str, str] = {}
    """Names that a block would have given a value, had it run."""
    with _notebook(work, environment) as notebook:
        for at, block in enumerate(blocks):
            about: dict[str, Any] = {
                "document": block.document,
                "file": block.file,
                "number": block.number,
                "line": block.line,
                "label": block.label,
                "key": hashlib.sha256(block.key.encode()).hexdigest()[:12],
            }
            if block.why_not is not None:
                yield BlockRecord(**about, outcome="not applicable", says=block.why_not)
            elif notebook.died:
                yield BlockRecord(**about, outcome="not applicable", says="a block before it ended the process")
            else:
                record = _ran(block, blocks[at + 1 :], notebook, lost, about, as_documented)
                if record.outcome == "not applicable" or record.repaired is False:
                    lost |= dict.fromkeys(block.assigns, f"block {block.number}, which does not run")
                yield record


def _ran(
    block: Block,
    later: Sequence[Block],
    notebook: _Notebook,
    lost: Mapping[str, str],
    about: dict[str, Any],
    as_documented: bool,
) -> BlockRecord:
    name = f"document {block.document}, block {block.number}"
    done = notebook.run(block.code, name)
    for each in later:  # the documents rely on a section before, which some give as a summary further down
        if done["error"] is None or done["error"]["name"] is None or done["error"]["name"] in lost:
            break
        if each.why_not is None and done["error"]["name"] in each.assigns:
            notebook.run(each.code, name)
            done = notebook.run(block.code, name)
    error, helped = done["error"], list[Replacement]()
    if error is not None and (missing := _missing(error, lost)):
        return BlockRecord(**about, outcome="not applicable", says=missing)
    error = error or _refused(block.code)
    if error is not None:
        done, helped = _repaired(block.code, notebook, name, error)
    compared = done["error"] is None and comparable(block.printed, as_documented=as_documented)
    said = None if error is None else f"{error['type']}: {error['says']}"
    return BlockRecord(
        **about,
        outcome="fails" if error is not None else "deprecated" if done["warnings"] else "runs",
        says=said if said is not None else next(iter(done["warnings"]), None),
        replacement=", ".join(each.says for each in helped) or None,
        source=", ".join(each.source for each in helped) or None,
        repaired=None if error is None else done["error"] is None,
        shows_output=compared,
        prints=prints_otherwise(block.printed, done["printed"]) if compared else None,
    )


def _missing(error: Mapping[str, Any], lost: Mapping[str, str]) -> str | None:
    """What a block needs and cannot have here; None where the error is its own."""
    if error["name"] is not None:
        return f"needs {error['name']} of {lost.get(error['name'], 'no block')}"
    if OFFLINE.search(f"{error['type']}: {error['says']}"):
        return f"needs something that is fetched ({error['type']})"
    return None


def _refused(code: str) -> dict[str, Any] | None:
    """The error with which the hub's client refuses the short name, which the folder in its place does not."""
    refusal = refused_by_the_hub("glue") if replaced(code, [SHORT_NAME])[1] else None
    return None if refusal is None else {"type": refusal[0], "says": refusal[1], "name": None}


def _repaired(
    code: str, notebook: _Notebook, name: str, error: dict[str, Any]
) -> tuple[dict[str, Any], list[Replacement]]:
    """The block with the documented replacements that help, one after the other; which they were."""
    done: dict[str, Any] = {"error": error, "warnings": [], "printed": ""}
    helped: list[Replacement] = []
    while done["error"] is not None:
        for each in REPLACEMENTS:
            new, made = replaced(code, [each])
            if not made:
                continue
            again = notebook.run(new, name)
            again["error"] = again["error"] or _refused(new)
            if again["error"] != done["error"]:
                code, done = new, again
                helped.append(each)
                break
        else:
            break
    return done, helped
