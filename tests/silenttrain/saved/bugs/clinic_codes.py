"""Add diagnosis codes to the vocabulary of a pretrained encoder and fine-tune it for triage."""

import os

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification

torch.manual_seed(241)
BASE_VOCAB, NEW_CODES, LEVELS = 60, 24, 4


def visits(n, seed):
    """A visit is a few words and three codes; the codes decide how urgent it is."""
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, LEVELS, (n,), generator=gen)
    ids = torch.randint(3, BASE_VOCAB, (n, 9), generator=gen)
    ids[:, 0] = 1
    ids[:, 3:6] = BASE_VOCAB + 6 * y[:, None] + torch.randint(0, 6, (n, 3), generator=gen)
    return ids, y


def extend_embeddings(model, extra):
    old = model.get_input_embeddings()
    new = nn.Embedding(old.num_embeddings + extra, old.embedding_dim, padding_idx=old.padding_idx)
    with torch.no_grad():
        new.weight.normal_(std=model.config.initializer_range)
        new.weight[: old.num_embeddings] = old.weight
    model.set_input_embeddings(new)
    model.config.vocab_size = new.num_embeddings


@torch.no_grad()
def accuracy(model, ids, y):
    model.eval()
    return (model(input_ids=ids).logits.argmax(-1) == y).float().mean().item()


def main():
    os.makedirs("out", exist_ok=True)
    config = BertConfig(
        vocab_size=BASE_VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=16,
        num_labels=LEVELS,
    )
    BertForSequenceClassification(config).save_pretrained("out/base")
    model = AutoModelForSequenceClassification.from_pretrained("out/base")

    no_decay = ("bias", "LayerNorm.weight")
    groups = [
        {"params": [p for n, p in model.named_parameters() if not n.endswith(no_decay)], "weight_decay": 0.01},
        {"params": [p for n, p in model.named_parameters() if n.endswith(no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=2e-3)
    extend_embeddings(model, NEW_CODES)
    print(f"vocabulary: {BASE_VOCAB} + {NEW_CODES}")

    ids, y = visits(360, 1)
    test_ids, test_y = visits(160, 2)
    for epoch in range(7):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(ids)).split(24):
            loss = model(input_ids=ids[idx], labels=y[idx]).loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch} loss {total / len(ids):.3f} acc {accuracy(model, test_ids, test_y):.3f}")

    model.save_pretrained("out/triage")


if __name__ == "__main__":
    main()
