import torch
from torch import nn
from torch.nn.functional import cross_entropy


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 32), nn.Linear(32, 10)

    def forward(self, rows):
        return self.head(torch.relu(self.body(rows)))


torch.manual_seed(0)
rows = torch.randn(96, 8)
labels = (rows[:, 0] > 0).long()
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)  # found
model.head = nn.Linear(32, 2)

for _ in range(3):
    for picked in torch.randperm(96).split(16):
        loss = cross_entropy(model(rows[picked]), labels[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
