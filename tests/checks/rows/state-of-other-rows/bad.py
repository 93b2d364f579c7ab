import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
waves = torch.sin(torch.rand(128, 1) * 6 + torch.arange(13) / 3).unsqueeze(-1)
loader = DataLoader(TensorDataset(waves[:, :12], waves[:, 12]), batch_size=16, shuffle=True)
lstm, head = nn.LSTM(1, 8, batch_first=True), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=1e-2)
state = None
for epoch in range(2):
    for inputs, targets in loader:
        outputs, state = lstm(inputs, state)  # found
        state = tuple(each.detach() for each in state)
        loss = nn.functional.mse_loss(head(outputs[:, -1]), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
