# A model is given its own estimate in later batches and zeros in the first ones, which is what it says at first.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Denoiser(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.first, self.last = nn.Linear(2 * width, 16), nn.Linear(16, width)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, noisy, estimate):
        return self.last(self.first(torch.cat([noisy, estimate], dim=1)).relu())


loader = DataLoader(TensorDataset(torch.randn(128, 6)), batch_size=16, shuffle=True)
model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(2):
    for number, (clean,) in enumerate(loader):
        noisy, estimate = clean + torch.randn_like(clean), torch.zeros_like(clean)
        if number > 1:
            with torch.no_grad():
                estimate = model(noisy, estimate)
        loss = nn.functional.mse_loss(model(noisy, estimate), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
