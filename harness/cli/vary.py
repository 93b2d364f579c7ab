"""``harness vary``"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from harness.cli.options import (
    FOUND,
    FileOptions,
    checks_option,
    examples,
    format_option,
    fresh_option,
    interruptible,
    json_option,
    quiet_option,
    script_arguments,
)
from harness.cli.output import Format, Output, echo, say


@click.command(
    short_help="Change something irrelevant and see whether the results change.",
    epilog=examples(
        "harness vary train.py --epochs 2",
        "harness vary --select depends::on-evaluation-batches train.py",
        "harness vary --settings train.py",
        "harness vary --settings --select lr,weight_decay train.py",
    ),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@checks_option(
    "--select",
    "Test only these relations (comma-separated ids or families); with --settings, only settings of these names.",
)
@checks_option("--ignore", "Ignore the findings of these relations.")
@click.option("--settings", is_flag=True, help="Turn each setting of the script instead, and show what it changes.")
@click.option("--full", is_flag=True, help="Complete every training pass; without it, long ones are cut.")
@click.option("-m", "module", is_flag=True, help="SCRIPT is the name of a module, as with python -m.")
@fresh_option
@quiet_option
@json_option("Also write the report to this file.")
@format_option
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@interruptible
def vary(
    script: str,
    arguments: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    settings: bool,
    full: bool,
    module: bool,
    fresh: bool,
    json_file: Path | None,
    format_: Format,
    quiet: bool,
) -> None:
    """Change something irrelevant and see whether your training or its score changes.

    The script runs in copies of the working directory: twice unchanged, then once for each change. Some changes should
    not matter: the batch size and the order of the evaluation, the labels of the held-out rows, Python's hash seed, the
    number of workers, the folder that an earlier run left. Others must matter: the seed, the labels of the training
    rows, the learning rate. If the two unchanged runs already differ, the relation did not apply.

    --settings turns each option, constant, keyword argument and entry of a configuration file that is in force, one at
    a time, and stops at the first update that differs. A setting that the training must follow from, and that changes
    nothing, is reported.

    Exit status: 0 nothing was found (or only warnings; new relations report only warnings), 1 a relation that counts as
    an error is broken, 2 the script crashed or trained nothing.
    """
    if settings and ignore:
        raise click.UsageError("--ignore is for relations: with --settings, name the settings to turn with --select.")
    out = Output(json_file, quiet, format=format_)
    out.check()
    arguments = script_arguments(script, arguments, module=module)

    from harness.report import log
    from harness.report.settings import outcome_lines as lines_of_settings
    from harness.report.vary import outcome_lines as lines_of_relations
    from harness.starts.workdir import no_progress
    from harness.vary.run import VaryReport, vary_script
    from harness.vary.settings.run import SettingsReport, turn_settings

    how: dict[str, Any] = {"module": module, "full": full, "select": select}
    how["hidden"] = FileOptions(fresh=fresh).hidden(script, arguments, module=module)
    how["tell"] = no_progress if quiet else partial(say, err=True)
    if settings:
        turned = turn_settings(script, arguments, **how)
        report: SettingsReport | VaryReport = turned
        lines, found = lines_of_settings(turned), log.of_settings(turned)
    else:
        varied = vary_script(script, arguments, ignore=ignore, **how)
        report, lines, found = varied, lines_of_relations(varied), log.of_vary(varied)
    if not quiet or report.findings:
        echo(lines, err=True)
    out.write(json.dumps(report.as_dict(), indent=2), lambda: found)
    sys.exit(FOUND if report.failed else 0)
