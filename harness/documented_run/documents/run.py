"""Run the documents' blocks on the installed versions, and say of each how it went."""

from __future__ import annotations

import builtins
import difflib
import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from harness.compat import refused_by_the_hub
from harness.documented_run.claims import DOCUMENTED
from harness.documented_run.documents.blocks import Block, key_of, python_of
from harness.documented_run.documents.collect import Document
from harness.documented_run.documents.printed import comparable, prints_otherwise
from harness.documented_run.documents.process import ENDED, PATIENCE, Process, started
from harness.documented_run.documents.readings import ReadingStep, readings_of, steps_of
from harness.documented_run.documents.replacements import REPLACEMENTS, Replacement, replaced
from harness.documented_run.documents.rewrite import Fix
from harness.documented_run.documents.workspace import Workspace, workspace
from harness.documented_run.recipe import Recipe
from harness.documented_run.record import BlockOutcome, BlockRecord, DocumentsRecord, Provenance
from harness.fingerprint import fingerprint, provenance

ALIKE = 0.85
"""Similarity, as difflib measures it, from which on a name is another one that was misspelt."""

SHORT_NAME = REPLACEMENTS[-1]
"""Replacement for a name that a folder of that name in the working directory hides; the hub's client is asked about it
instead."""

OFFLINE = re.compile(
    r"offline|ConnectionError|couldn't (connect|reach)|LocalEntryNotFound|DatasetNotFound|on the (Hugging Face )?Hub|"
    r"huggingface\.co|is not a local folder",
    re.IGNORECASE,
)
"""The errors of what would be fetched: only the corpus, the checkpoint and the metric of MRPC are here."""


NOT_INSTALLED = re.compile(r"^ImportError: .*?(\w+)(?: library but it was not found| is not installed)", re.IGNORECASE)
"""What transformers and datasets say where a library is missing."""


class DocumentsOutcome(NamedTuple):
    """What came of some documents."""

    record: DocumentsRecord
    fixes: list[Fix]
    """The blocks whose replacement was tried and runs."""


def run_documents(
    documents: Sequence[Document],
    recipe: Recipe,
    *,
    timeout: float = PATIENCE,
    on_block: Callable[[DocumentsRecord], None] = lambda record: None,
    on_document: Callable[[Document], None] = lambda document: None,
) -> DocumentsOutcome:
    """Run every block of some documents, each document in processes and folders of its own.

    Corpus and tokenizer are the recipe's; the model is a small random BERT. A block that was run before, after the
    same blocks, is not run again. ``timeout`` is in seconds, for each block. ``on_block`` gets what there is so far
    whenever a block was executed. An interrupt ends the run; the record has what came before, and says so.

    Raises:
        CannotTry: data or tokenizer are missing.
    """
    record = DocumentsRecord(
        recipe={"dataset": recipe.dataset, "vocabulary": recipe.vocabulary},
        fingerprint=fingerprint("cpu"),
        provenance=Provenance(**provenance()),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        blocks=[],
        timeout=timeout,
        interrupted=True,
    )
    fixes: list[Fix] = []
    try:
        with workspace(recipe) as work:
            executor = _Executor(work, timeout, (recipe.dataset, recipe.vocabulary) == DOCUMENTED_NAMES)
            for document in documents:
                began = time.perf_counter()
                for block, fix in executor.run(document.blocks):
                    record.blocks.append(block)
                    fixes += [] if fix is None else [fix]
                    if block.same_as is None:
                        on_block(record)
                record.seconds[document.file] = round(time.perf_counter() - began, 2)
                on_document(document)
        record.interrupted = False
    except KeyboardInterrupt:
        pass
    return DocumentsOutcome(record, fixes)


DOCUMENTED_NAMES = (DOCUMENTED.dataset, DOCUMENTED.vocabulary)


@dataclass(frozen=True)
class _Result:
    """What came of a block that was executed, or why it was not."""

    outcome: BlockOutcome
    says: str | None = None
    place: str | None = None
    """Place of the block that was executed."""
    code: str | None = None
    """What is executed where a later block relies on it: with what replaces it, where that runs; None for nothing."""
    helped: tuple[Replacement, ...] = ()
    repaired: bool | None = None
    printed: str = ""
    raised: str | None = None
    """The error that its document shows, and that came."""
    seconds: float | None = None
    ended: bool = False
    """Whether the process ended with it."""

    @property
    def loses(self) -> bool:
        """Whether the names that it assigns have no value afterwards."""
        return self.outcome == "not applicable" or self.repaired is False


@dataclass
class _Executor:
    """Executes documents, and remembers what came of each block."""

    work: Workspace
    timeout: float
    as_documented: bool
    known: dict[str, _Result] = field(default_factory=dict)
    """Results by :attr:`harness.documented_run.documents.readings.ReadingStep.identity`."""

    def run(self, blocks: Sequence[Block]) -> Iterator[tuple[BlockRecord, Fix | None]]:
        """How each block of a document went, and what to write instead."""
        judged: set[int] = set()
        for reading in readings_of(blocks):
            with ExitStack() as stack:
                for step, result in _Reading(self, steps_of(reading), stack).results(judged):
                    judged.add(step.block.number)
                    yield self._record(step.block, result), _fix(step.block, result)

    def _record(self, block: Block, result: _Result) -> BlockRecord:
        ran = result.repaired or result.outcome in ("runs", "deprecated")
        compared = ran and comparable(block.printed, as_documented=self.as_documented)
        prints = prints_otherwise(block.printed, result.printed) if compared else None
        if ran and block.raises and result.raised is None:
            compared, prints = True, f"no {block.raises}"
        return BlockRecord(
            document=block.document,
            file=block.file,
            number=block.number,
            line=block.line,
            cell=block.cell,
            label=block.label,
            key=hashlib.sha256(block.key.encode()).hexdigest()[:12],
            outcome=result.outcome,
            says=result.says,
            replacement=", ".join(each.says for each in result.helped) or None,
            source=", ".join(each.source for each in result.helped) or None,
            repaired=result.repaired,
            shows_output=compared,
            prints=prints,
            same_as=None if result.place == _place(block) else result.place,
            seconds=result.seconds if result.place == _place(block) else None,
        )


def _place(block: Block) -> str:
    return f"{block.document}:{block.number}"


def _fix(block: Block, result: _Result) -> Fix | None:
    """The block with the replacements that helped, if they make of it what was executed."""
    if not (result.repaired and result.helped):
        return None
    code = block.code
    for each in result.helped:
        code, _ = replaced(code, [each])
    return Fix(block, code) if result.code is not None and key_of(code) == key_of(result.code) else None


class _Reading:
    """Some blocks in their order, in one process, which is started for the first one that nobody has executed yet."""

    def __init__(self, executor: _Executor, steps: Sequence[ReadingStep], stack: ExitStack) -> None:
        self.executor, self.steps, self.stack = executor, steps, stack
        self.process: Process | None = None
        self.executed: set[int] = set()
        self.ended = False
        self.lost: dict[str, str] = {}
        """Names that a block would have given a value, had it run."""

    def results(self, judged: set[int]) -> Iterator[tuple[ReadingStep, _Result]]:
        """Results of the blocks whose numbers are not ``judged``."""
        for at, step in enumerate(self.steps):
            block = step.block
            if block.number in judged:
                result = self.executor.known.get(step.identity)
            else:
                result = self._result(at)
                yield step, result
            if result is not None:
                self.ended |= result.ended
                if result.loses:
                    self.lost |= dict.fromkeys(block.assigns, f"block {block.number}, which does not run")

    def _result(self, at: int) -> _Result:
        step = self.steps[at]
        if step.block.why_not is not None:
            return _Result("not applicable", step.block.why_not)
        if step.identity in self.executor.known:
            return self.executor.known[step.identity]
        if not self.ended:
            self._execute_again(step.relies_on)
        if self.ended:
            return _Result("not applicable", "a block before it ended the process")
        return self._execute(at)

    def _execute_again(self, places: Sequence[int]) -> None:
        """What a block relies on, as far as this process has not executed it; as it ran where it did."""
        for place in places:
            step = self.steps[place]
            known = self.executor.known.get(step.identity)
            if place in self.executed or step.block.why_not is not None or self.ended:
                continue
            if known is None:
                self._execute(place)
            elif known.code is not None:
                self._run(step.block, known.code)
                self.executed.add(place)

    def _execute(self, at: int) -> _Result:
        step = self.steps[at]
        result = self._judged(at)
        self.executed.add(at)
        self.executor.known[step.identity] = result
        self.ended |= result.ended
        return result

    def _run(self, block: Block, code: str) -> dict[str, Any]:
        if self.process is None:
            self.process = self.stack.enter_context(started(self.stack.enter_context(self.executor.work.folder())))
        name = f"document {block.document}, block {block.number}"
        done = self.process.run(python_of(code), name, block.decorators, timeout=self.executor.timeout)
        self.ended |= self.process.died
        return done

    def _judged(self, at: int) -> _Result:
        block, place = self.steps[at].block, _place(self.steps[at].block)
        done = self._run(block, block.code)
        for step in self.steps[at + 1 :]:
            # The documents rely on a section before, which some give as a summary further down.
            if done["error"] is None or done["error"]["name"] is None or done["error"]["name"] in self.lost:
                break
            if step.block.why_not is None and done["error"]["name"] in step.block.assigns:
                self._run(step.block, step.block.code)
                done = self._run(block, block.code)
        seconds, error, helped, code = done["seconds"], done["error"], list[Replacement](), block.code
        if done["skipped"] is not None:
            return _Result("not applicable", f"skipped by its decorator: {done['skipped']}", place)
        raised = None
        if error is not None and error["type"] == block.raises:
            raised, error = error["type"], None
        if error is not None and (missing := self._missing(error)):
            return _Result("not applicable", missing, place, code, seconds=seconds)
        error = error or _refused(block.code)
        if error is not None:
            done, helped, code = self._repaired(block, done | {"error": error})
        repaired = None if error is None else done["error"] is None
        message = next(iter(done["warnings"]), None) if error is None else f"{error['type']}: {error['says']}"
        return _Result(
            outcome="fails" if error is not None else "deprecated" if done["warnings"] else "runs",
            says=message,
            place=place,
            code=None if error is not None and error["type"] in ENDED else code if repaired else block.code,
            helped=tuple(helped),
            repaired=repaired,
            printed=done["printed"],
            raised=raised,
            seconds=seconds,
            ended=self.ended,
        )

    def _missing(self, error: Mapping[str, Any]) -> str | None:
        """What a block needs and cannot have here; None where the error is its own, as a misspelt name is."""
        name = error["name"]
        if name is None:
            return _missing(error)
        if name not in self.lost:
            known = {each for step in self.steps for each in step.block.assigns} | set(dir(builtins))
            if _misspelt(name, known - {name}):
                return None
        return f"needs {name} of {self.lost[name]}" if name in self.lost else f"needs {name}, which no block defines"

    def _repaired(self, block: Block, done: dict[str, Any]) -> tuple[dict[str, Any], list[Replacement], str]:
        """The block with the documented replacements that help, one after the other; which they were; its code."""
        helped, code = list[Replacement](), block.code
        while done["error"] is not None and done["error"]["type"] not in ENDED:
            for replacement in REPLACEMENTS:
                new, made = replaced(code, [replacement])
                if not made:
                    continue
                again = self._run(block, new)
                again["error"] = again["error"] or _refused(new)
                if again["error"] != done["error"]:
                    code, done = new, again
                    helped.append(replacement)
                    break
            else:
                break
        return done, helped, code


def _misspelt(name: str, known: Iterable[str]) -> bool:
    """Whether a name that nobody gave a value is one of those that have one, but for a letter or two."""
    return bool(difflib.get_close_matches(name, known, n=1, cutoff=ALIKE))


def _missing(error: Mapping[str, Any]) -> str | None:
    """What a block needs and cannot have here; None where the error is its own."""
    text = f"{error['type']}: {error['says']}"
    module = error["module"] or next(iter(NOT_INSTALLED.findall(text)), None)
    if module is not None:
        return f"needs {module.lower()}, which is not installed"
    if OFFLINE.search(text):
        return f"needs something that is fetched ({error['type']})"
    return None


def _refused(code: str) -> dict[str, Any] | None:
    """The error with which the hub's client refuses the short name, which the folder in its place does not."""
    refusal = refused_by_the_hub("glue") if replaced(code, [SHORT_NAME])[1] else None
    return None if refusal is None else {"type": refusal[0], "says": refusal[1], "name": None, "module": None}
