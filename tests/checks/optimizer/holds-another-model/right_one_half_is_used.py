import torch
from torch import nn

torch.manual_seed(0)
autoencoder = nn.ModuleDict(
    {
        "encoder": nn.Sequential(nn.Linear(8, 16), nn.ReLU()),
        "decoder": nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 8)),
    }
)
head = nn.Linear(16, 3)
optimizer = torch.optim.Adam([*autoencoder.parameters(), *head.parameters()], lr=1e-2)
inputs, labels = torch.randn(40, 8), torch.randint(3, (40,))

for _ in range(10):
    optimizer.zero_grad()
    nn.functional.cross_entropy(head(autoencoder["encoder"](inputs)), labels).backward()
    optimizer.step()
