"""Fine-tune a small BERT on product reviews, opening one more encoder layer per epoch."""

import os
import random

import torch
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification

random.seed(4)
torch.manual_seed(4)

GOOD = list(range(10, 16))
BAD = list(range(16, 22))
NEUTRAL = list(range(22, 60))


def make_reviews(n):
    ids, labels = [], []
    for _ in range(n):
        label = random.randint(0, 1)
        mood = GOOD if label else BAD
        other = BAD if label else GOOD
        words = random.choices(mood, k=5) + random.choices(other, k=1) + random.choices(NEUTRAL, k=5)
        random.shuffle(words)
        ids.append([1, *words])
        labels.append(label)
    return torch.tensor(ids), torch.tensor(labels)


def evaluate(model, ids, labels):
    model.eval()
    with torch.no_grad():
        return (model(input_ids=ids).logits.argmax(-1) == labels).float().mean().item()


os.makedirs("out", exist_ok=True)
config = BertConfig(
    vocab_size=60,
    hidden_size=32,
    num_hidden_layers=4,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=32,
    initializer_range=0.3,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
BertForSequenceClassification(config).save_pretrained("out/base")
model = AutoModelForSequenceClassification.from_pretrained("out/base", num_labels=2)

train_ids, train_labels = make_reviews(384)
test_ids, test_labels = make_reviews(200)

# start from the head alone
for p in model.bert.parameters():
    p.requires_grad = False
for p in model.bert.pooler.parameters():
    p.requires_grad = True

optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3)

layers = list(model.bert.encoder.layer)
for epoch in range(6):
    if 1 <= epoch <= len(layers):
        for p in layers[-epoch].parameters():
            p.requires_grad = True
        print(f"unfroze encoder layer {len(layers) - epoch}")
    model.train()
    total = 0.0
    for idx in torch.randperm(len(train_ids)).split(24):
        loss = model(input_ids=train_ids[idx], labels=train_labels[idx]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.item() * len(idx)
    acc = evaluate(model, test_ids, test_labels)
    print(f"epoch {epoch} loss {total / len(train_ids):.4f} acc {acc:.3f}")

model.save_pretrained("out/reviews")
