import torch
from torch.nn.functional import mse_loss

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(9, 18), torch.nn.GELU(), torch.nn.Linear(18, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

for _ in range(12):
    inputs = torch.randn(24, 9)
    loss = mse_loss(model(inputs), inputs.amax(dim=1, keepdim=True))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"loss {loss.item():.3f}")
torch.save(model.state_dict(), "model.pt")
