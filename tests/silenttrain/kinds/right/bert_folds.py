"""Grouped cross-validation of a tiny BERT; all rows test once and each fold starts anew."""

import torch
from sklearn.model_selection import StratifiedGroupKFold
from transformers import BertConfig, BertForSequenceClassification, set_seed

VOCAB, LEN = 24, 10
torch.manual_seed(0)
n_authors = 60
author = torch.randint(n_authors, (600,))
labels = torch.randint(2, (600,))
ids = torch.randint(4, VOCAB, (600, LEN))
ids[:, 0] = 1
# every author has a habit token; the class shows in the number of 4s and 5s
ids[:, 1] = 10 + author % 10
hint = torch.rand(600, LEN - 2) < 0.4
ids[:, 2:] = torch.where(hint, 4 + labels[:, None], ids[:, 2:])

config = BertConfig(
    vocab_size=VOCAB,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=LEN,
    num_labels=2,
)


def train_and_predict(train_rows, test_rows, seed):
    set_seed(seed)
    model = BertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for epoch in range(3):
        for chunk in torch.randperm(len(train_rows)).split(40):
            rows = train_rows[chunk]
            loss = model(input_ids=ids[rows], labels=labels[rows]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = model(input_ids=ids[test_rows]).logits
    return logits, loss.item()


splitter = StratifiedGroupKFold(n_splits=4, shuffle=True, random_state=1)
out_of_fold = torch.full((600, 2), float("nan"))
for fold, (train_rows, test_rows) in enumerate(splitter.split(ids.numpy(), labels.numpy(), groups=author.numpy())):
    train_rows, test_rows = torch.from_numpy(train_rows), torch.from_numpy(test_rows)
    assert not set(author[train_rows].tolist()) & set(author[test_rows].tolist())
    logits, last = train_and_predict(train_rows, test_rows, seed=0)
    out_of_fold[test_rows] = logits
    acc = (logits.argmax(1) == labels[test_rows]).float().mean().item()
    print(f"fold {fold}  rows {len(test_rows)}  last loss {last:.4f}  accuracy {acc:.3f}")

assert not out_of_fold.isnan().any()
print(f"out-of-fold accuracy {(out_of_fold.argmax(1) == labels).float().mean().item():.3f}")
