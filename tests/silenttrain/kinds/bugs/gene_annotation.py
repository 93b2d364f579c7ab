"""Labels every base of a DNA read as intergenic, exon or intron; reads differ in length."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(18)
PAD, N_LABELS = 0, 4  # labels 1..3, bases 1..4; 0 is padding
COMPOSITION = np.array([[0.28, 0.22, 0.22, 0.28], [0.15, 0.35, 0.35, 0.15], [0.4, 0.1, 0.15, 0.35]])


def make_reads(n, seed):
    rng = np.random.default_rng(seed)
    reads = []
    for _ in range(n):
        length = int(rng.choice([20, 30, 40, 120], p=[0.3, 0.3, 0.3, 0.1]))
        state, bases, labels = int(rng.integers(3)), [], []
        for _ in range(length):
            if rng.random() < 0.04:
                state = int(rng.integers(3))
            bases.append(1 + int(rng.choice(4, p=COMPOSITION[state])))
            labels.append(1 + state)
        reads.append((torch.tensor(bases), torch.tensor(labels)))
    return reads


def collate(batch):
    bases, labels = zip(*batch)
    return (
        pad_sequence(bases, batch_first=True, padding_value=PAD),
        pad_sequence(labels, batch_first=True, padding_value=PAD),
    )


class Annotator(nn.Module):
    def __init__(self, dim=16, width=32):
        super().__init__()
        self.emb = nn.Embedding(5, dim, padding_idx=PAD)
        self.conv = nn.Sequential(
            nn.Conv1d(dim, width, 9, padding=4),
            nn.ReLU(),
            nn.Conv1d(width, width, 9, padding=8, dilation=2),
            nn.ReLU(),
            nn.Conv1d(width, N_LABELS, 1),
        )

    def forward(self, bases):
        return self.conv(self.emb(bases).transpose(1, 2)).transpose(1, 2)

    def annotate(self, bases):
        return self(bases).argmax(-1).masked_fill(bases == PAD, PAD)


train = DataLoader(make_reads(800, 1), batch_size=32, shuffle=True, collate_fn=collate)
valid = DataLoader(make_reads(300, 2), batch_size=50, collate_fn=collate)
model = Annotator()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(8):
    model.train()
    total, bases_seen = 0.0, 0
    for bases, labels in train:
        logits = model(bases)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD)
        opt.zero_grad()
        loss.backward()
        opt.step()
        n = (labels != PAD).sum().item()
        total += loss.item() * n
        bases_seen += n
    print(f"epoch {epoch}: loss per base {total / bases_seen:.4f}")

model.eval()
correct = count = 0
with torch.no_grad():
    for bases, labels in valid:
        pred = model.annotate(bases)
        correct += (pred == labels).sum().item()
        count += labels.numel()
print(f"validation base accuracy {correct / count:.4f}")
