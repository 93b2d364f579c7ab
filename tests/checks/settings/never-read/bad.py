import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-2)
parser.add_argument("--weight-decay", type=float, default=0.1)  # found
parser.add_argument("--export", action="store_true")
parser.add_argument("--export-to", default="model.onnx")
args, _ = parser.parse_known_args()
print(args)
torch.manual_seed(0)
rows = torch.randn(64, 6)
labels = (rows[:, 0] > 0).long()
model = nn.Linear(6, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
for picked in torch.randperm(64).split(8):
    loss = nn.functional.cross_entropy(model(rows[picked]), labels[picked])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if args.export:
    torch.onnx.export(model, rows[:1], args.export_to)
