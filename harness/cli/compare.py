"""``harness compare``"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.options import FOUND, FileOptions, examples, fresh_option, interruptible, json_option, quiet_option
from harness.cli.output import Output, say
from harness.errors import CannotTry

if TYPE_CHECKING:
    from harness.baseline.same_training import SameTrainingReport
    from harness.compare.differences import CompareReport
    from harness.starts.workdir import Command


@click.command(
    short_help="Name the first update in which two runs differ, and why.",
    epilog=examples("harness compare train.py train_new.py", 'harness compare train.py --args-b "--lr 1e-4"'),
)
@click.option("--args-a", default="", metavar="ARGS", help="Arguments for A.")
@click.option(
    "--args-b", default="", metavar="ARGS", help="Arguments for B; with --processes, added in the N processes."
)
@click.option("--python-a", metavar="PYTHON", help="Python interpreter for A (the harness must be installed there).")
@click.option("--python-b", metavar="PYTHON", help="Python interpreter for B.")
@click.option(
    "--processes",
    metavar="1,N",
    help="Compare A in N processes with A in one: same settings, losses and norms within rounding.",
)
@click.option(
    "--updates",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="N",
    help="Compare the first N updates.",
)
@click.option(
    "--bisect",
    metavar="PACKAGE=FIRST..LAST",
    help="Find the release of a library from which A behaves differently; pip installs the environments.",
)
@fresh_option
@quiet_option
@json_option("Also write the differences to this file.")
@click.argument("a")
@click.argument("b", required=False)
@interruptible
def compare(
    a: str,
    b: str | None,
    args_a: str,
    args_b: str,
    python_a: str | None,
    python_b: str | None,
    processes: str | None,
    updates: int,
    bisect: str | None,
    fresh: bool,
    json_file: Path | None,
    quiet: bool,
) -> None:
    """Name the first update in which two runs differ, and why.

    Give two training scripts, or one script with two argument lists or two interpreters. Each runs in a copy of the
    working directory. The command compares settings, weights, rows and random numbers. In the first update that
    differs, it also compares what each module, the loss, the gradients and the step compute. You can also give two run
    records (run.json).

    A may also be the name of a [[tool.harness.training]] with same-as: the arguments (or --processes N) with which it
    must be the same training. Each variant is compared with the unchanged training.

    Exit status: 0 the runs are the same, bit for bit, 1 they differ, 2 a script crashed or trained nothing.
    """
    out = Output(json_file, quiet)
    out.check()
    if (same := _same_training(a, b, args_a, processes, (args_b, python_a, python_b, bisect))) is not None:
        sys.exit(_told(same, out))
    if bisect is not None and (b, args_b, python_a, python_b) != (None, "", None, None):
        raise click.UsageError("--bisect takes one script, with --args-a alone")
    if bisect is None and b is None and (args_a, python_a) == (args_b, python_b):
        raise click.UsageError(
            "give a second script, or other arguments (--args-b), another Python (--python-b) or releases "
            "(--bisect) for the first"
        )

    from harness.documented_run.compare.records import compare_records, is_record
    from harness.report.compare import outcome_lines

    if bisect is not None:
        report = _bisected(_command(a, args_a, None), bisect, updates, quiet)
    elif b is not None and is_record(a) and is_record(b):
        report = compare_records(a, b)
    else:
        one, other = _command(a, args_a, python_a), _command(b or a, args_b, python_b)
        files = FileOptions(fresh=fresh)
        one, other = (replace(each, hidden=files.hidden(each.script, each.arguments)) for each in (one, other))
        report = _compared((one, other), updates, quiet)
    out.echo(outcome_lines(report))
    out.write_json(json.dumps(report.as_dict(), indent=2))
    sys.exit(FOUND if report.differ else 0)


def _same_training(
    a: str, b: str | None, args_a: str, processes: str | None, others: tuple[str | None, ...]
) -> SameTrainingReport | None:
    """How the ways to start a training compare, where they are asked for: by ``--processes``, or by its name."""
    from harness.baseline.same_training import same_training
    from harness.settings import Training, Way, trainings

    if processes is not None:
        one, _, several = processes.partition(",")
        if one != "1" or not several.isdigit() or int(several) < 2:
            raise click.UsageError(f"--processes takes 1,N with an N from 2 on; found {processes}")
        args_b, *more = others
        if b is not None or any(more):
            raise click.UsageError("--processes takes one script, with --args-a and --args-b")
        command, besides = _command(a, args_a, None), _command(a, args_b or "", None).arguments
        words = [command.script, *command.arguments]
        return same_training(Training(a, words, [Way(besides, processes=int(several))]), Path.cwd())
    if b is not None or any((args_a, *others)) or Path(a).exists():
        return None
    folder, known = trainings()
    training = next((each for each in known if each.name == a), None)
    if training is not None and not training.same_as:
        raise CannotTry(
            f"training {a} has no same-as: add the arguments with which it must be the same training to its "
            '[[tool.harness.training]], such as same-as = ["--batch 2 --accumulate 4"]'
        )
    return None if training is None else same_training(training, folder)


def _told(report: SameTrainingReport, out: Output) -> int:
    from harness.report.same_training import same_training_lines

    out.echo(same_training_lines(report))
    out.write_json(json.dumps(report.as_dict(), indent=2))
    return FOUND if report.failed else 0


def _command(script: str, arguments: str, python: str | None) -> Command:
    from harness.compare.run import interpreter
    from harness.starts.workdir import Command

    try:
        command = Command(script, tuple(shlex.split(arguments)))
    except ValueError as error:
        raise CannotTry(f"{arguments!r} cannot be read as a command line: {error}") from error
    return command if python is None else replace(command, python=interpreter(python))


def _compared(sides: tuple[Command, Command], updates: int, quiet: bool) -> CompareReport:
    from harness.compare.run import compare_scripts

    return compare_scripts(*sides, updates=updates, tell=_tell(quiet))


def _bisected(command: Command, span: str, updates: int, quiet: bool) -> CompareReport:
    from harness.documented_run.compare.bisect import bisect
    from harness.documented_run.compare.releases import ReleaseSpan

    return bisect(command, ReleaseSpan.parse(span), updates=updates, tell=_tell(quiet))


def _tell(quiet: bool) -> Callable[[str], None]:
    from harness.starts.workdir import no_progress

    return no_progress if quiet else partial(say, err=True)
