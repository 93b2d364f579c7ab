"""Classify padded token sequences with a tiny BERT, batching whole tensors by index."""

import torch
import torch.nn.functional as F
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
VOCAB, MAX_LEN, PAD, CLS = 30, 20, 0, 1


def make(n):
    """The class says whether more than half of a sequence's tokens are from the upper half."""
    ids = torch.full((n, MAX_LEN), PAD)
    mask = torch.zeros(n, MAX_LEN, dtype=torch.long)
    y = torch.zeros(n, dtype=torch.long)
    for i in range(n):
        length = torch.randint(4, MAX_LEN, (1,)).item()
        p = 0.3 if torch.rand(1).item() < 0.5 else 0.7
        upper = torch.rand(length) < p
        tokens = torch.where(upper, torch.randint(16, VOCAB, (length,)), torch.randint(2, 16, (length,)))
        ids[i, 0] = CLS
        ids[i, 1 : length + 1] = tokens
        mask[i, : length + 1] = 1
        y[i] = int(upper.float().mean() > 0.5)
    return ids, mask, y


input_ids, attention_mask, labels = make(1600)
train = slice(0, 1200)
train_ids, train_mask, train_labels = input_ids[train], attention_mask[train], labels[train]
test_ids, test_mask, test_labels = input_ids[1200:], attention_mask[1200:], labels[1200:]

model = BertForSequenceClassification(
    BertConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=MAX_LEN,
        num_labels=2,
        pad_token_id=PAD,
    )
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batch_size = 60

for epoch in range(6):
    model.train()
    perm = torch.randperm(len(train_ids))
    total = 0.0
    for i in range(0, len(train_ids), batch_size):
        idx = perm[i : i + batch_size]
        out = model(input_ids=train_ids[idx], attention_mask=train_mask[i : i + batch_size], labels=train_labels[idx])
        optimizer.zero_grad()
        out.loss.backward()
        optimizer.step()
        total += out.loss.item() * len(idx)
    print(f"epoch {epoch}  loss {total / len(train_ids):.4f}")

model.eval()
with torch.no_grad():
    logits = model(input_ids=test_ids, attention_mask=test_mask).logits
    loss = F.cross_entropy(logits, test_labels).item()
    acc = (logits.argmax(-1) == test_labels).float().mean().item()
print(f"test loss {loss:.4f}  test accuracy {acc:.3f}")
