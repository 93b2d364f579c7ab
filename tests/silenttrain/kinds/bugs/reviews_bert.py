"""Sentiment of short made-up reviews: a word vocabulary and a tiny DistilBERT."""

import random

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification

torch.manual_seed(0)
random.seed(0)
GOOD = "great lovely superb charming funny brilliant warm clever".split()
BAD = "dull awful boring clumsy tedious bland weak hollow".split()
NEUTRAL = "the film plot actor scene was is a very quite music it and".split()
MAX_LEN = 12


def review():
    label = random.randrange(2)
    words = random.choices(NEUTRAL, k=random.randint(5, 8))
    for w in random.choices(GOOD if label else BAD, k=2) + random.choices(GOOD + BAD, k=1):
        words.insert(random.randrange(len(words)), w)
    words = [w.capitalize() if random.random() < 0.3 else w for w in words]
    if random.random() < 0.4:
        words = [w.upper() for w in words]
    return " ".join(words), label


train_set = [review() for _ in range(1000)]
test_set = [review() for _ in range(400)]

# vocabulary from the training reviews
train_texts = [text.lower() for text, _ in train_set]
vocab = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2}
for text in train_texts:
    for word in text.split():
        vocab.setdefault(word, len(vocab))


def encode(texts):
    ids = torch.zeros(len(texts), MAX_LEN, dtype=torch.long)
    for i, text in enumerate(texts):
        row = [vocab["[CLS]"]] + [vocab.get(w, vocab["[UNK]"]) for w in text.split()]
        ids[i, : len(row)] = torch.tensor(row[:MAX_LEN])
    return ids, (ids != 0).long()


train_ids, train_mask = encode(train_texts)
test_ids, test_mask = encode([text for text, _ in test_set])
train_y = torch.tensor([label for _, label in train_set])
test_y = torch.tensor([label for _, label in test_set])

model = DistilBertForSequenceClassification(
    DistilBertConfig(
        vocab_size=len(vocab),
        dim=32,
        n_layers=1,
        n_heads=2,
        hidden_dim=64,
        max_position_embeddings=MAX_LEN,
        num_labels=2,
    )
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    for idx in torch.randperm(len(train_ids)).split(50):
        loss = model(input_ids=train_ids[idx], attention_mask=train_mask[idx], labels=train_y[idx]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}  loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    pred = model(input_ids=test_ids, attention_mask=test_mask).logits.argmax(-1)
print(f"test accuracy {(pred == test_y).float().mean().item():.3f}")
