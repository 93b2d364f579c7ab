"""A small transformer that tells which class a sequence of tokens belongs to, in plain PyTorch."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, BATCH_SIZE, WARMUP = 2, 8, 4

data = torch.Generator().manual_seed(1234)
tokens = torch.randint(0, 50, (128, 12), generator=data)
labels = tokens[:, :3].sum(dim=1) % 4
train_set = TensorDataset(tokens[:96], labels[:96])
held_out, answers = tokens[96:], labels[96:]


class Block(nn.Module):
    def __init__(self, width=32, heads=4, p=0.1):
        super().__init__()
        self.heads = heads
        self.first_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.second_norm = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))
        self.dropout = nn.Dropout(p)

    def attend(self, x):
        rows, length, width = x.shape
        split = self.query_key_value(x).view(rows, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.output(mixed.transpose(1, 2).reshape(rows, length, width))

    def forward(self, x):
        x = x + self.dropout(self.attend(self.first_norm(x)))
        return x + self.dropout(self.feed_forward(self.second_norm(x)))


class Classifier(nn.Module):
    def __init__(self, vocabulary=50, width=32, classes=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList([Block(width), Block(width)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(dim=1))


torch.manual_seed(0)
model = Classifier()
shuffle = torch.Generator().manual_seed(7)
loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True, generator=shuffle)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
total = EPOCHS * len(loader)


def factor(step):
    return min((step + 1) / WARMUP, (total - step) / (total - WARMUP))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
criterion = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    model.train()
    for ids, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(ids), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(held_out).argmax(dim=-1) == answers).float().mean().item()
    print(f"epoch {epoch + 1}: loss {loss.item():.4f}, accuracy {accuracy:.3f}")
