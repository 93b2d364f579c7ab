"""A tiny BERT, made from nothing, on sentences of different lengths: a loop of one's own around Transformers."""

import random

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, get_scheduler

EPOCHS = 2
BATCH_SIZE = 8
PAD, CLS, SEP = 0, 1, 2


def make_rows(count, seed):
    """Sentences of 5 to 16 tokens; the label says whether the first half of the vocabulary is more frequent."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        words = [draw.randrange(3, 200) for _ in range(draw.randint(3, 14))]
        label = int(sum(word < 100 for word in words) * 2 > len(words))
        rows.append({"input_ids": [CLS, *words, SEP], "label": label})
    return rows


def collate(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    ids = torch.full((len(rows), longest), PAD)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, : len(row["input_ids"])] = torch.tensor(row["input_ids"])
        mask[i, : len(row["input_ids"])] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([row["label"] for row in rows])}


train_rows, eval_rows = make_rows(64, seed=11), make_rows(32, seed=12)
train_loader = DataLoader(
    train_rows, batch_size=BATCH_SIZE, shuffle=True, collate_fn=collate, generator=torch.Generator().manual_seed(5)
)
eval_loader = DataLoader(eval_rows, batch_size=16, collate_fn=collate)

torch.manual_seed(0)
config = BertConfig(
    vocab_size=200,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=32,
    attention_probs_dropout_prob=0.0,
    num_labels=2,
)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
num_training_steps = EPOCHS * len(train_loader)
lr_scheduler = get_scheduler("linear", optimizer, num_warmup_steps=3, num_training_steps=num_training_steps)

seen = 0
for epoch in range(EPOCHS):
    model.train()
    for batch in train_loader:
        outputs = model(**batch)
        loss = outputs.loss
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()
        seen += 1

    model.eval()
    correct = 0
    for batch in eval_loader:
        with torch.no_grad():
            logits = model(**batch).logits
        correct += (logits.argmax(dim=-1) == batch["labels"]).sum().item()
    print(f"epoch {epoch}: {seen} updates, loss {loss.item():.4f}, accuracy {correct / len(eval_rows):.3f}")
