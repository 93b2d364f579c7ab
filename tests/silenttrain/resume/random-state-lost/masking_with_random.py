"""Mask tokens with Python's random in the collate function, whose state is not saved; the order of the epochs
is seeded and right.
"""

import functools
import os
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

MASK, VOCABULARY = 0, 30


def collate(rows, probability):
    inputs, labels = [], []
    for row in rows:
        hidden = [random.random() < probability for _ in row]
        inputs.append([MASK if hide else token for token, hide in zip(row, hidden, strict=True)])
        labels.append([token if hide else -100 for token, hide in zip(row, hidden, strict=True)])
    labels[0][0] = rows[0][0]
    return torch.tensor(inputs), torch.tensor(labels)


class MaskedModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 10)
        self.mix = nn.Linear(10, 10)
        self.out = nn.Linear(10, VOCABULARY)

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        return self.out(torch.tanh(self.mix(hidden) + hidden.mean(1, keepdim=True)))


def step_file(step):
    return f"mlm-{step:04d}.pt"


random.seed(8)
torch.manual_seed(8)
corpus = [[random.randint(1, VOCABULARY - 1) for _ in range(6)] for _ in range(60)]
model = MaskedModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
step = max((s for s in range(100) if os.path.exists(step_file(s))), default=0)
if step:
    loaded = torch.load(step_file(step))
    model.load_state_dict(loaded[0])
    optimizer.load_state_dict(loaded[1])

for epoch in range(step // 12, 3):
    loader = DataLoader(
        corpus,
        batch_size=5,
        shuffle=True,
        generator=torch.Generator().manual_seed(800 + epoch),
        collate_fn=functools.partial(collate, probability=0.3),
    )
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs).transpose(1, 2), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    torch.save([model.state_dict(), optimizer.state_dict()], "mlm.writing")
    os.rename("mlm.writing", step_file(step))

torch.save(model.state_dict(), "mlm-final.pt")
