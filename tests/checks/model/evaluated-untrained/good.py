import torch
from torch.nn.functional import cross_entropy


def build():
    return torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 2))


torch.manual_seed(0)
inputs = torch.randn(200, 10)
labels = (inputs[:, 0] * inputs[:, 1] > 0).long()
model = build()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(30):
    optimizer.zero_grad()
    cross_entropy(model(inputs[:150]), labels[:150]).backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")

tested = build()
state = torch.load("model.pt", weights_only=True)
tested.load_state_dict(state)
tested.eval()
with torch.no_grad():
    predicted = tested(inputs[150:]).argmax(dim=1)
print(f"accuracy {(predicted == labels[150:]).float().mean():.3f}")
