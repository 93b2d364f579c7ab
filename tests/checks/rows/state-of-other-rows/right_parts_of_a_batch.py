# Truncated backpropagation: a shuffled batch is gone through in parts, and each part goes on from the one before.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
waves = torch.sin(torch.rand(64, 1) * 6 + torch.arange(25) / 3).unsqueeze(-1)
loader = DataLoader(TensorDataset(waves), batch_size=16, shuffle=True)
gru, head = nn.GRU(1, 8, batch_first=True), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*gru.parameters(), *head.parameters()], lr=1e-2)

for _ in range(2):
    for (rows,) in loader:
        state = None
        for begin in range(0, 24, 8):
            inputs, targets = rows[:, begin : begin + 8], rows[:, begin + 1 : begin + 9]
            outputs, state = gru(inputs, state)
            state = state.detach()
            loss = nn.functional.mse_loss(head(outputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
