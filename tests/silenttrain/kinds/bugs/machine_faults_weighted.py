"""Machine states with very uneven counts; class weights are to help the rare ones."""

from collections import Counter

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
STATES = ["overheat", "normal", "vibration", "leak"]
SHARES = torch.tensor([0.03, 0.80, 0.12, 0.05])
CENTRES = torch.tensor([[1.6, 0.4, 0.0], [0.0, 0.0, 0.0], [0.3, 1.6, 0.2], [0.0, 0.3, 1.7]])


def telemetry(n):
    state = torch.multinomial(SHARES, n, replacement=True)
    noise = torch.randn(n, 8)
    x = noise.clone()
    x[:, :3] = CENTRES[state] + 0.8 * noise[:, :3]
    return x, state


def class_weights(labels):
    counts = Counter(labels.tolist()).most_common()
    weights = torch.tensor([len(labels) / count for _, count in counts])
    return weights / weights.mean()


x_train, y_train = telemetry(2400)
x_test, y_test = telemetry(3000)
model = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, len(STATES)))
criterion = nn.CrossEntropyLoss(weight=class_weights(y_train))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=150, shuffle=True)
for epoch in range(12):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: loss {total / len(loader):.4f}")

model.eval()
with torch.no_grad():
    guess = model(x_test).argmax(1)
recalls = []
for c, name in enumerate(STATES):
    recall = (guess[y_test == c] == c).float().mean().item()
    recalls.append(recall)
    print(f"  recall of {name}: {recall:.3f}")
print(f"balanced accuracy {sum(recalls) / len(recalls):.3f}")
