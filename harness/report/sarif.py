"""A log as SARIF 2.1.0 (OASIS), which code scanning and editors read.

It has one run of one tool; its rules are those that found something. Files are named from the working directory.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harness import __version__
from harness.report.log import Log, LogEntry, Notification, Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE = "%SRCROOT%"
"""The working directory, as code scanning calls what files are named from."""
FINGERPRINT = "findingHash/v1"
"""Another number where the same finding gets another hash."""


def of_log(log: Log) -> dict[str, Any]:
    """A SARIF log of one run."""
    found = [each.rule for each in log.results]
    named = [each.rule for told in log.invocations for each in told if each.rule]
    rules = {rule.id: rule for rule in (*found, *named)}
    here = f"{Path.cwd().as_uri().rstrip('/')}/"
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "full-training-harness",
                "version": __version__,
                "rules": [_rule(rule) for rule in rules.values()],
            }
        },
        "automationDetails": {"id": f"harness {log.about}/"},
        "originalUriBaseIds": {BASE: {"uri": here, "description": {"text": "The working directory."}}},
        "invocations": [_invocation(told) for told in log.invocations],
        "results": list(_results(log.results, list(rules))),
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    texts = {"shortDescription": rule.statement, "fullDescription": rule.why}
    told: dict[str, Any] = {name: _text(text) for name, text in texts.items() if text}
    if rule.remedy:
        told["help"] = _text(rule.remedy) | {"markdown": _escaped(rule.remedy)}
    return {"id": rule.id} | told | {"defaultConfiguration": {"level": rule.severity}}


def _notification(told: Notification) -> dict[str, Any]:
    about = {"associatedRule": {"id": told.rule.id}} if told.rule else {}
    return {"level": told.level, "message": _text(told.text)} | about


def _invocation(told: Sequence[Notification]) -> dict[str, Any]:
    complete = all(each.level != "error" for each in told)
    return {"executionSuccessful": complete, "toolExecutionNotifications": [_notification(each) for each in told]}


def _results(results: Iterable[LogEntry], rules: Sequence[str]) -> Iterator[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for result in results:
        artifact = _artifact(result.file) if result.file else {}
        hashed = _hash(result.rule.id, artifact.get("uri", ""), result.same)
        seen[hashed] += 1
        told: dict[str, Any] = {
            "ruleId": result.rule.id,
            "ruleIndex": rules.index(result.rule.id),
            "level": result.severity,
            "message": _text("\n".join(filter(None, (result.subject, result.details)))),
            "partialFingerprints": {FINGERPRINT: f"{hashed}:{seen[hashed]}"},
        }
        if artifact:
            region = {"region": {"startLine": result.line}} if result.line else {}
            told["locations"] = [{"physicalLocation": {"artifactLocation": artifact} | region}]
        yield told


def _artifact(file: str) -> dict[str, str]:
    path, here = Path(os.path.abspath(file)), Path.cwd()
    if not path.is_relative_to(here):
        return {"uri": path.as_uri()}
    return {"uri": quote(path.relative_to(here).as_posix()), "uriBaseId": BASE}


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _text(text: str) -> dict[str, str]:
    return {"text": _escaped(text)}


def _escaped(text: str) -> str:
    """A text without placeholders, whose braces are doubled in SARIF, and without links.

    >>> _escaped("AdamW(**{'lr': 0}), rows[1](2)")
    "AdamW(**{{'lr': 0}}), rows\\\\[1](2)"
    """
    return re.sub(r"\[(?=[^\[\]]*\]\()", r"\\[", text.replace("{", "{{").replace("}", "}}"))
