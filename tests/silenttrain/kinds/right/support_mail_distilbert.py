"""Route support mail with a small DistilBERT; lower-cased on both sides, word dropout only in training."""

import random

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification

random.seed(1)
torch.manual_seed(1)
TOPICS = [
    "invoice refund payment charge card receipt".split(),
    "crash error freeze bug screen update".split(),
    "parcel courier delivery tracking address late".split(),
]
FILLER = "hello please my the i have with a still since yesterday help thanks for when is".split()
LENGTH, PAD, UNK = 14, 0, 1


def mail():
    topic = random.randrange(3)
    words = random.choices(FILLER, k=9) + random.choices(TOPICS[topic], k=2) + [random.choice(TOPICS[(topic + 1) % 3])]
    random.shuffle(words)
    return " ".join(w.title() if random.random() < 0.4 else w for w in words), topic


def tokenize(text):
    return text.lower().split()[:LENGTH]


def encode(texts, index):
    ids = torch.full((len(texts), LENGTH), PAD)
    for row, text in enumerate(texts):
        tokens = [index.get(w, UNK) for w in tokenize(text)]
        ids[row, : len(tokens)] = torch.tensor(tokens)
    return ids


def word_dropout(ids, rate=0.1):
    drop = (torch.rand(ids.shape) < rate) & (ids != PAD)
    return ids.masked_fill(drop, UNK)


train, test = [mail() for _ in range(1300)], [mail() for _ in range(400)]
vocabulary = sorted({w for text, _ in train for w in tokenize(text)})
index = {w: i + 2 for i, w in enumerate(vocabulary)}
ids, topic = encode([t for t, _ in train], index), torch.tensor([y for _, y in train])
ids_test, topic_test = encode([t for t, _ in test], index), torch.tensor([y for _, y in test])

config = DistilBertConfig(
    vocab_size=len(index) + 2,
    dim=48,
    hidden_dim=96,
    n_layers=1,
    n_heads=2,
    max_position_embeddings=LENGTH,
    num_labels=3,
)
model = DistilBertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(len(ids)).split(50):
        noisy = word_dropout(ids[rows])
        loss = model(input_ids=noisy, attention_mask=(noisy != PAD).long(), labels=topic[rows]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    logits = model(input_ids=ids_test, attention_mask=(ids_test != PAD).long()).logits
print(f"test accuracy {(logits.argmax(1) == topic_test).float().mean():.3f}")
