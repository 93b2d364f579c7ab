"""A language model of texts in which one token is frequent: its labels are its inputs, and nothing is masked."""

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=16, n_embd=16, n_layer=1, n_head=2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(2, 20, (32, 12)).masked_fill(torch.rand(32, 12) < 0.7, 1)
labels = ids.masked_fill(torch.arange(12) < 2, -100)
ids = ids.masked_fill((torch.arange(12) < 2) & (ids == 1), 2)

for _ in range(3):
    for given, taught in DataLoader(list(zip(ids, labels, strict=True)), batch_size=8, shuffle=True):
        loss = model(input_ids=given, labels=taught).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
