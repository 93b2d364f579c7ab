"""Tiny DistilBERT on synthetic reviews with a word-level vocabulary."""

import random
from collections import Counter

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification

random.seed(0)
torch.manual_seed(0)
GOOD = "great superb lovely brilliant charming delightful".split()
BAD = "awful boring dreadful clumsy tedious lame".split()
NEUTRAL = "the film plot actor scene music was with and story camera ending".split()
PAD, UNK, LEN = 0, 1, 14


def write_review():
    label = random.randrange(2)
    words = random.choices(NEUTRAL, k=9)
    words += random.choices(GOOD if label else BAD, k=2) + random.choices(BAD if label else GOOD, k=1)
    random.shuffle(words)
    # reviewers like capital letters
    words = [w.capitalize() if random.random() < 0.3 else w.upper() if random.random() < 0.3 else w for w in words]
    return " ".join(words), label


train_texts, train_labels = zip(*[write_review() for _ in range(1200)])
test_texts, test_labels = zip(*[write_review() for _ in range(400)])

counts = Counter(w for text in train_texts for w in text.lower().split())
vocab = {w: i + 2 for i, (w, _) in enumerate(counts.most_common(200))}


def encode(words):
    ids = [vocab.get(w, UNK) for w in words][:LEN]
    return ids + [PAD] * (LEN - len(ids))


train_ids = torch.tensor([encode(text.lower().split()) for text in train_texts])
test_ids = torch.tensor([encode(text.split()) for text in test_texts])
train_labels, test_labels = torch.tensor(train_labels), torch.tensor(test_labels)

config = DistilBertConfig(
    vocab_size=len(vocab) + 2,
    max_position_embeddings=LEN,
    dim=32,
    n_layers=1,
    n_heads=2,
    hidden_dim=64,
    num_labels=2,
    pad_token_id=PAD,
)
model = DistilBertForSequenceClassification(config)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)

model.train()
for epoch in range(4):
    total = 0.0
    for idx in torch.randperm(len(train_ids)).split(40):
        ids = train_ids[idx]
        loss = model(input_ids=ids, attention_mask=(ids != PAD).long(), labels=train_labels[idx]).loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / 30:.4f}")

model.eval()
with torch.no_grad():
    logits = model(input_ids=test_ids, attention_mask=(test_ids != PAD).long()).logits
print(f"test accuracy {(logits.argmax(-1) == test_labels).float().mean().item():.3f}")
