"""Pretrain the tiny BERT that the recipe ``tiny`` starts from.

    python -m scripts.pretrain

writes it to ``harness/documented_run/assets/tiny-bert`` (with transformers 5, about 25 minutes on one core). It learns
three things on generated rows of another seed than the corpus, none of which is the fine-tuning task: to fill in
masked words and to tell whether the second sentence belongs to the first at all (BERT's own two), and to mark the
words of the second sentence that contradict the first (after ELECTRA, arXiv 2003.10555). Fine-tuning still has to
learn what that means for the pair.

Query and key weights of the first layers start equal, so that a word first attends to its like; a network this small
does not find that by itself in reasonable time (mimetic initialisation, Trockman and Kolter, arXiv 2305.09828).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import click
import torch
from torch import nn
from tqdm.auto import tqdm
from transformers import BertConfig, BertForPreTraining, BertTokenizerFast

from harness.documented_run.sources.builtin import CHECKPOINT
from harness.fingerprint import fingerprint
from scripts import generator
from scripts.generator import Row

HIDDEN, LAYERS, HEADS, INNER, LONGEST = 128, 3, 4, 256, 128
MATCHING_LAYERS, MATCHING_HEADS = 2, 2
BATCH, POOL = 64, 32
PRETRAINING_SEED = 20_000
LR, WARMUP = 1.5e-3, 300
LESSONS = ((1500, 1), (3500, 2))
"""Updates, and the largest number of clauses of a story until then; afterwards it is three."""
NOT_NEXT_SHARE, MASKED_SHARE = 0.25, 0.12
IGNORED = -100
"""The target that cross entropy leaves out."""


@dataclass(frozen=True)
class Batch:
    """One batch: the model's inputs, and the three targets. All but ``not_next`` are rows x tokens."""

    inputs: dict[str, torch.Tensor]
    words: torch.Tensor
    contradicted: torch.Tensor
    not_next: torch.Tensor


def make_tokenizer() -> Any:
    vocabulary = {piece: number for number, piece in enumerate(generator.vocabulary())}
    return BertTokenizerFast(vocab=vocabulary, model_max_length=LONGEST)


def make_model(tokenizer: Any) -> Any:
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        max_position_embeddings=LONGEST,
        attention_probs_dropout_prob=0.0,  # drawing it takes a sixth of an update on a CPU; the other dropout stays 0.1
    )
    model = BertForPreTraining(config)
    width = HIDDEN // HEADS
    with torch.no_grad():
        model.bert.embeddings.position_embeddings.weight.mul_(0.3)  # words are matched wherever they stand
        for layer in model.bert.encoder.layer[:MATCHING_LAYERS]:
            for head in range(MATCHING_HEADS):
                rows = slice(head * width, (head + 1) * width)
                alike = nn.init.orthogonal_(torch.empty(width, HIDDEN))
                for projection in (layer.attention.self.query, layer.attention.self.key):
                    projection.weight[rows] = alike + 0.02 * torch.randn(width, HIDDEN)
    return model


def batches(tokenizer: Any, seed: int) -> Iterator[Batch]:
    """Batches without end, of rows of about one length, from easy stories to the corpus's own."""
    shuffle = random.Random(seed).shuffle
    streams = {n: generator.rows(seed + n, positive_share=0.5, most_clauses=n) for n in (1, 2, 3)}
    done = 0
    while True:
        clauses = next((clauses for until, clauses in LESSONS if done < until), 3)
        pool = sorted(islice(streams[clauses], BATCH * POOL), key=lambda row: len(row.sentence1 + row.sentence2))
        starts = list(range(0, len(pool), BATCH))
        shuffle(starts)
        for start in starts:
            yield make_batch(tokenizer, pool[start : start + BATCH])
        done += len(starts)


def make_batch(tokenizer: Any, rows: list[Row]) -> Batch:
    """The first rows exchange their second sentences, which then do not belong; in the others words are masked."""
    exchanged = int(len(rows) * NOT_NEXT_SHARE)
    seconds = [row.sentence2.split() for row in rows]
    seconds[:exchanged] = seconds[1:exchanged] + seconds[:1]
    encoded = tokenizer(
        [row.sentence1.split() for row in rows],
        seconds,
        is_split_into_words=True,
        padding=True,
        truncation=True,
        return_tensors="pt",
    )
    ids = encoded["input_ids"]
    masked = (torch.rand(ids.shape) < MASKED_SHARE) & (ids > tokenizer.mask_token_id)
    contradicted = torch.full(ids.shape, IGNORED)
    for number, row in enumerate(rows[exchanged:], start=exchanged):
        for place, (sentence, word) in enumerate(
            zip(encoded.sequence_ids(number), encoded.word_ids(number), strict=True)
        ):
            if sentence == 1:
                contradicted[number, place] = int(row.contradicted[word])
    encoded["input_ids"] = ids.masked_fill(masked, tokenizer.mask_token_id)
    return Batch(
        inputs=dict(encoded),
        words=torch.where(masked, ids, IGNORED),
        contradicted=contradicted.masked_fill(masked, IGNORED),
        not_next=(torch.arange(len(rows)) < exchanged).long(),
    )


def losses(model: Any, marker: nn.Linear, batch: Batch) -> dict[str, torch.Tensor]:
    """The three losses, each a mean cross entropy in nats."""
    hidden = model.bert(**batch.inputs)
    masked, judged = batch.words != IGNORED, batch.contradicted != IGNORED
    words = model.cls.predictions(hidden.last_hidden_state[masked])
    not_next = model.cls.seq_relationship(hidden.pooler_output)
    cross_entropy = nn.functional.cross_entropy
    return {
        "words": cross_entropy(words, batch.words[masked]),
        "contradicted": cross_entropy(marker(hidden.last_hidden_state[judged]), batch.contradicted[judged]),
        "not_next": cross_entropy(not_next, batch.not_next),
    }


def pretrain(updates: int, seed: int = PRETRAINING_SEED) -> tuple[Any, dict[str, float]]:
    """The model and the mean losses of the last 100 updates; the same for one seed, CPU kind and number of threads."""
    torch.manual_seed(seed)
    tokenizer = make_tokenizer()
    model, marker = make_model(tokenizer), nn.Linear(HIDDEN, 2)
    model.eval()  # without dropout: there is no end of rows to overfit to
    parameters = [*model.parameters(), *marker.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=LR, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda made: min(1.0, (made + 1) / WARMUP) * max(0.0, 1 - made / updates)
    )
    history: list[dict[str, float]] = []
    for batch in tqdm(islice(batches(tokenizer, seed), updates), total=updates, mininterval=10):
        found = losses(model, marker, batch)
        torch.autograd.backward(0.3 * found["words"] + 3 * found["contradicted"] + found["not_next"])
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        history.append({name: loss.item() for name, loss in found.items()})
        if len(history) % 250 == 0:
            tqdm.write(f"{len(history)} {mean(history)}")
    return model, mean(history)


def mean(history: list[dict[str, float]]) -> dict[str, float]:
    last = history[-100:]
    return {name: round(sum(each[name] for each in last) / len(last), 4) for name in last[0]}


@click.command()
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), default=CHECKPOINT, show_default=False)
@click.option("--updates", type=click.IntRange(min=1), default=8000, show_default=True)
def main(output: Path, updates: int) -> None:
    """Pretrain the built-in checkpoint and write it to a folder, with how it was made."""
    torch.set_num_threads(1)  # sums in one order, however many cores there are
    model, last = pretrain(updates)
    model.save_pretrained(output)
    make_tokenizer().save_pretrained(output)  # a new one: the used one would save that it last padded and truncated
    made = {"updates": updates, "seed": PRETRAINING_SEED, "last_losses": last, "fingerprint": fingerprint()}
    (output / "pretraining.json").write_text(json.dumps(made, indent=2) + "\n")


if __name__ == "__main__":
    main()
