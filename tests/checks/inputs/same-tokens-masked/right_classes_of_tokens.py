"""Labels of tokens that are classes, and -100 for parts of words, are in the same places each time."""

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForTokenClassification

torch.manual_seed(0)
config = BertConfig(
    vocab_size=45, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=3
)
model = BertForTokenClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(5, 45, (32, 20))
labels = (ids % 3).masked_fill(torch.rand(32, 20) < 0.3, -100)
rows = [
    {"input_ids": one, "attention_mask": torch.ones_like(one), "labels": two}
    for one, two in zip(ids, labels, strict=True)
]

for _ in range(3):
    for batch in DataLoader(rows, batch_size=8, shuffle=True):
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
