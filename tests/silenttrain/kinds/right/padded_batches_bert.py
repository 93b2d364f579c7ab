"""Tiny BERT with dynamic padding, word dropout in training and unseen words in the test set."""

import random

import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
random.seed(0)
SPORT = ["goal", "match", "team", "coach", "league", "score"]
FOOD = ["soup", "bread", "salt", "oven", "sauce", "recipe"]
COMMON = ["the", "a", "and", "with", "after", "before", "good", "new", "old"]
NAMES = [f"name{i}" for i in range(60)]


def document(min_len, max_len, names):
    label = random.randrange(2)
    words = random.choices(SPORT if label else FOOD, k=3) + random.choices(names, k=2)
    words += random.choices(COMMON, k=random.randint(min_len, max_len))
    random.shuffle(words)
    return " ".join(words), label


train_docs = [document(2, 8, NAMES[:40]) for _ in range(800)]
test_docs = [document(8, 16, NAMES[30:]) for _ in range(300)]  # longer, with new names
vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]"])}
for text, _ in train_docs:
    for w in text.split():
        vocab.setdefault(w, len(vocab))


def collate(docs, word_dropout=0.0):
    rows = []
    for text, _ in docs:
        ids = [vocab.get(w, 1) for w in text.split()]
        rows.append([2] + [1 if random.random() < word_dropout else i for i in ids])
    width = max(map(len, rows))
    ids = torch.tensor([r + [0] * (width - len(r)) for r in rows])
    return ids, (ids != 0).long(), torch.tensor([label for _, label in docs])


model = BertForSequenceClassification(
    BertConfig(
        vocab_size=len(vocab),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=2,
    )
)
# positions beyond the training lengths are never learned; leave order out
model.bert.embeddings.position_embeddings.weight.data.zero_()
model.bert.embeddings.position_embeddings.weight.requires_grad_(False)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
for epoch in range(4):
    model.train()
    # batches of similar length, in random order
    by_length = sorted(train_docs, key=lambda d: (len(d[0].split()), random.random()))
    batches = [by_length[i : i + 40] for i in range(0, len(by_length), 40)]
    random.shuffle(batches)
    for docs in batches:
        ids, mask, y = collate(docs, word_dropout=0.15)
        loss = model(input_ids=ids, attention_mask=mask, labels=y).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}  loss {loss.item():.4f}  last width {ids.shape[1]}")

model.eval()
hits = 0
with torch.no_grad():
    for i in range(0, len(test_docs), 50):
        ids, mask, y = collate(test_docs[i : i + 50])
        hits += (model(input_ids=ids, attention_mask=mask).logits.argmax(-1) == y).sum().item()
print(f"test accuracy {hits / len(test_docs):.3f}")
