# One step of a motion that dies away is learned; the model is judged at the end of a hundred steps from a beginning.
import torch
from torch import nn

torch.manual_seed(0)
turn = torch.tensor([[0.9, 0.2], [-0.2, 0.9]])
model = nn.Linear(2, 2, bias=False)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(150):
    places = torch.randn(64, 2) + torch.tensor([3.0, 0.0])
    optimizer.zero_grad()
    nn.functional.mse_loss(model(places), places @ turn.T).backward()
    optimizer.step()

with torch.no_grad():
    truth = place = torch.randn(32, 2) + torch.tensor([3.0, 0.0])
    for _ in range(50):
        truth, place = truth @ turn.T, model(place)
    print("after 50 steps", nn.functional.mse_loss(model(place), truth @ turn.T).item())
