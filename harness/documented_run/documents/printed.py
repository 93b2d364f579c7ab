"""Whether a block printed what the document shows below it."""

from __future__ import annotations

import ast
import re

VARIES = {
    **dict.fromkeys(("0.5441", "0.8431372549019608", "0.8907849829351535"), r"\d+\.\d+"),
    **dict.fromkeys(("0.8578431372549019", "0.8996539792387542"), r"\d+\.\d+"),
    "Size([8,65])": r"Size\(\[8,\d+\]\)",
    "type='cuda'": r"type='\w+'",
}
"""What the documents themselves say varies, and what may stand there: losses, metrics, the width of a shuffled batch,
the device."""

TOLD_BESIDES = re.compile(
    r"^(Downloading and preparing dataset|Dataset \S+ downloaded and prepared to) .*\n?", re.MULTILINE
)
"""What datasets up to 2.13 prints where it has no copy yet; documents show the output of one who has."""

OF_THE_CORPUS = ("'sentence2':", "'input_ids':[", "[CLS]", "[50,59", "Size([8,67])")
"""What is only printed for MRPC with bert-base-uncased's vocabulary."""


def comparable(printed: str, *, as_documented: bool) -> bool:
    """Whether an output can be compared: some depend on corpus and vocabulary, which may not be the documents' own."""
    return bool(printed) and (as_documented or not any(each in _bare(printed) for each in OF_THE_CORPUS))


def prints_otherwise(expected: str, observed: str) -> str | None:
    """What was printed instead; None where it is what the document shows, whatever the layout."""
    observed = TOLD_BESIDES.sub("", observed)
    wanted, got = _bare(expected), _bare(observed)
    # A copy may show an output twice, or with more below it.
    if any(re.fullmatch(_pattern([_bare(each)]), got) for each in (expected, *_expressions(expected)[:1])):
        return None
    if wanted.startswith("DatasetDict(") and _lines(expected) == _lines(observed):
        return None  # the order of the splits is that of the files they come from
    parts, observed_parts = _parts(expected), _parts(observed)
    if (
        parts is not None
        and observed_parts is not None
        and re.fullmatch(_pattern(sorted(parts)), ",".join(sorted(observed_parts)))
    ):
        names = [part.partition(":")[0].strip("'") for part in observed_parts]
        return f"in another order: {', '.join(names)}"
    line = next((line for line in observed.splitlines() if _bare(line) and _bare(line) not in wanted), observed)
    return re.sub(r"\d+\.\d{4,}", "...", line.strip()) or "nothing"


def _bare(text: str) -> str:
    """Without comments, layout, and commas that close a list; with one kind of quotation mark."""
    text = re.sub(r"(?<!#)#(?!#).*$", "", text, flags=re.MULTILINE).replace('"', "'")
    return re.sub(r",(?=[)\]}])", "", re.sub(r"\s", "", text))


def _pattern(parts: list[str]) -> str:
    """What matches the parts, one after the other, with whatever stands where the documents' values vary."""
    pattern = re.escape(",".join(parts))
    for each, may_be in VARIES.items():
        pattern = pattern.replace(re.escape(each), may_be)
    return pattern


def _expressions(text: str) -> list[str]:
    try:
        return [ast.unparse(each) for each in ast.parse(text).body]
    except SyntaxError:
        return []


def _lines(text: str) -> list[str]:
    return sorted(_bare(line) for line in text.splitlines())


def _parts(text: str) -> list[str] | None:
    """The entries of a list or dictionary that was printed; None where it is neither."""
    try:
        value = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return [_bare(f"{ast.unparse(key)}:{ast.unparse(each)}") for key, each in pairs if key is not None]
    return [_bare(ast.unparse(each)) for each in value.elts] if isinstance(value, ast.List) else None
