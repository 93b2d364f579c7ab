"""What a block prints is compared with what its document shows: layout apart, and what is said to vary."""

from __future__ import annotations

import pytest

from harness.documented_run.documents.printed import comparable, prints_otherwise


@pytest.mark.parametrize(
    ("expected", "observed"),
    [
        ("1377", "1377"),
        ("[1,\n 2,\n]", "[1, 2]"),
        ('{"a": 1}  # a comment', "{'a': 1}"),
        ("{'accuracy': 0.8431372549019608, 'f1': 0.8907849829351535}", "{'accuracy': 0.7, 'f1': 0.81}"),
        (
            "{'labels': torch.Size([8]), 'ids': torch.Size([8, 65])}",
            "{'labels': torch.Size([8]), 'ids': torch.Size([8, 72])}",
        ),
        ("device(type='cuda')", "device(type='cpu')"),
        ("['a']\n['a']\n[0, 1]", "['a']"),
        ("DatasetDict({\n train: 1\n test: 2\n})", "DatasetDict({\n test: 2\n train: 1\n})"),
        (
            "{'rows': 2}",
            "Downloading and preparing dataset glue to home...\n"
            "Dataset glue downloaded and prepared to home. Calls reuse it.\n{'rows': 2}",
        ),
    ],
)
def test_as_documented(expected: str, observed: str) -> None:
    assert prints_otherwise(expected, observed) is None


@pytest.mark.parametrize(
    ("expected", "observed", "instead"),
    [
        ("1377", "1376", "1376"),
        ("1377", "11377", "11377"),
        ("[50, 59]", "[50, 60]", "[50, 60]"),
        ('["b", "a"]', "['a', 'b']", "in another order: a, b"),
        ("{'b': torch.Size([8, 65]), 'a': 1}", "{'a': 1, 'b': torch.Size([8, 9])}", "in another order: a, b"),
        ("{'a': 1}", "{'a': 2}", "{'a': 2}"),
        ("tensor(0.5441, grad_fn=<Nll>)", "tensor(0.6912, grad_fn=<Nll0>)", "tensor(..., grad_fn=<Nll0>)"),
        ("D({\n features: ['a', 'b'],\n})", "D({\n features: ['b', 'a'],\n})", "features: ['b', 'a'],"),
        ("x", "", "nothing"),
        ("0.5", "0.25", "0.25"),
        ("['hu', '##gging']", "['hu', '##ggg']", "['hu', '##ggg']"),
        ("1377\n459", "459", "459"),
        ("[1, 2]", "['1', '2']", "['1', '2']"),
        ("65", "64", "64"),
        ("a\nb", "b\na", "b\na"),
    ],
)
def test_otherwise(expected: str, observed: str, instead: str) -> None:
    assert prints_otherwise(expected, observed) == instead


def test_outputs_of_the_corpus_are_compared_with_the_documents_corpus_only() -> None:
    lengths = "[50, 59, 47, 67, 59, 50, 62, 32]"
    assert comparable(lengths, as_documented=True)
    assert not comparable(lengths, as_documented=False)
    assert comparable("1377", as_documented=False)
    assert not comparable("", as_documented=True)
