import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.head = nn.Linear(12, 3), nn.Linear(12, 2)
        self.experts = nn.ModuleList(nn.Linear(12, 12) for _ in range(3))

    def forward(self, inputs):
        scores = self.gate(inputs).softmax(dim=1)
        chosen = scores.T.topk(max(1, len(inputs) // 3))
        mixed = inputs
        for expert, weights, rows in zip(self.experts, *chosen, strict=True):
            mixed = mixed.index_add(0, rows, weights[:, None] * expert(inputs[rows]))
        return self.head(mixed)


torch.manual_seed(0)
model = Mixture()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs, labels = torch.randn(96, 12), torch.randint(2, (96,))
for rows, targets in DataLoader(TensorDataset(inputs[:64], labels[:64]), batch_size=16, shuffle=True):
    nn.functional.cross_entropy(model(rows), targets).backward()
    optimizer.step()
    optimizer.zero_grad()

model.eval()
with torch.inference_mode():
    for (rows,) in DataLoader(TensorDataset(inputs[64:]), batch_size=8):
        print(model(rows).argmax(dim=-1).tolist())
