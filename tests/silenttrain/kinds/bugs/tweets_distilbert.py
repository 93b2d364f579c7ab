"""Mood of short messages with a small DistilBERT trained from scratch on a word vocabulary."""

import random

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification

random.seed(0)
torch.manual_seed(0)
GOOD = "love great happy nice super brilliant lovely sweet".split()
BAD = "hate awful sad terrible boring ugly broken rude".split()
FILLER = "the my train phone today weather again was is so really this place food music game".split()
LENGTH = 12


def message():
    label = random.randint(0, 1)
    words = random.choices(FILLER, k=random.randint(6, 10))
    for _ in range(2):
        words.insert(random.randrange(len(words)), random.choice(GOOD if label else BAD))
    if random.random() < 0.3:
        words.insert(0, random.choice(BAD if label else GOOD))
    words = [w.upper() if random.random() < 0.3 else w.capitalize() if random.random() < 0.3 else w for w in words]
    return " ".join(words), label


class Vocabulary:
    def __init__(self, texts):
        words = sorted({w for t in texts for w in t.split()})
        self.index = {w: i + 2 for i, w in enumerate(words)}

    def encode(self, texts):
        ids = torch.zeros(len(texts), LENGTH, dtype=torch.long)
        for row, text in enumerate(texts):
            for col, word in enumerate(text.split()[:LENGTH]):
                ids[row, col] = self.index.get(word, 1)
        return ids, (ids != 0).long()


train_rows = [message() for _ in range(1200)]
test_rows = [message() for _ in range(400)]
train_texts = [text.lower() for text, _ in train_rows]
test_texts = [text for text, _ in test_rows]
y_train = torch.tensor([label for _, label in train_rows])
y_test = torch.tensor([label for _, label in test_rows])
vocabulary = Vocabulary(train_texts)
ids, mask = vocabulary.encode(train_texts)
ids_test, mask_test = vocabulary.encode(test_texts)

config = DistilBertConfig(
    vocab_size=len(vocabulary.index) + 2, dim=48, hidden_dim=96, n_layers=1, n_heads=2, max_position_embeddings=LENGTH
)
model = DistilBertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    model.train()
    for rows in torch.randperm(len(ids)).split(48):
        out = model(input_ids=ids[rows], attention_mask=mask[rows], labels=y_train[rows])
        optimizer.zero_grad()
        out.loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {out.loss.item():.4f}")

model.eval()
with torch.no_grad():
    logits = model(input_ids=ids_test, attention_mask=mask_test).logits
print(f"test accuracy {(logits.argmax(1) == y_test).float().mean():.3f}")
