import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 4)

    def forward(self, inputs):
        return self.head(self.encoder(inputs))


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

for _ in range(10):
    inputs = torch.randn(16, 10)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), inputs[:, :4].argmax(dim=1)).backward()
    optimizer.step()
