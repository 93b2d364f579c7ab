"""Tiny BERT with word dropout and random crops in training; tests read the whole text."""

import random

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import BertConfig, BertForSequenceClassification

random.seed(1)
torch.manual_seed(1)
TOPICS = {
    0: "goal match team coach league".split(),
    1: "senate vote party law minister".split(),
    2: "chip code laptop server software".split(),
}
COMMON = "the a of in on for with new big today says after more".split()
PAD, UNK = 0, 1


def article():
    label = random.randrange(3)
    words = random.choices(COMMON, k=random.randint(8, 16)) + random.choices(TOPICS[label], k=3)
    words += random.choices(TOPICS[random.randrange(3)], k=1)
    random.shuffle(words)
    return " ".join(w.title() if random.random() < 0.3 else w for w in words), label


train, test = [article() for _ in range(1000)], [article() for _ in range(300)]
vocab = {w: i + 2 for i, w in enumerate(sorted({w for text, _ in train for w in text.lower().split()}))}


def tokenize(text):
    return [vocab.get(w, UNK) for w in text.lower().split()]


def collate(rows, training):
    ids = []
    for text, _ in rows:
        tokens = tokenize(text)
        if training:
            begin = random.randint(0, max(0, len(tokens) - 12))
            tokens = [UNK if random.random() < 0.1 else tok for tok in tokens[begin : begin + 12]]
        ids.append(torch.tensor(tokens))
    ids = pad_sequence(ids, batch_first=True, padding_value=PAD)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": torch.tensor([y for _, y in rows])}


model = BertForSequenceClassification(
    BertConfig(
        vocab_size=len(vocab) + 2,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=24,
        num_labels=3,
        pad_token_id=PAD,
    )
)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)

model.train()
for epoch in range(5):
    random.shuffle(train)
    total = 0.0
    for i in range(0, len(train), 40):
        loss = model(**collate(train[i : i + 40], training=True)).loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / 25:.4f}")

model.eval()
with torch.no_grad():
    batch = collate(test, training=False)
    out = model(**batch)
print(
    f"test loss {out.loss.item():.4f} accuracy {(out.logits.argmax(-1) == batch['labels']).float().mean().item():.3f}"
)
