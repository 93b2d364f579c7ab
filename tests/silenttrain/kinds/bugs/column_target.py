"""Wine-score regression with a mean squared error written out by hand."""

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)
rng = np.random.default_rng(3)

N, FEATURES = 1400, 9
X = rng.normal(size=(N, FEATURES)).astype(np.float32)
quality = 5.5 + 0.8 * X[:, 0] - 0.6 * X[:, 3] + 0.5 * X[:, 5] * X[:, 6] + 0.3 * rng.normal(size=N)
quality = quality.astype(np.float32)

split = 1000
x_train, y_train = torch.tensor(X[:split]), torch.tensor(quality[:split])
x_test, y_test = torch.tensor(X[split:]), torch.tensor(quality[split:])
center, spread = y_train.mean(), y_train.std()
y_train_n, y_test_n = (y_train - center) / spread, (y_test - center) / spread


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, 64)
        self.fc2 = nn.Linear(64, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.out(x)


def mse(prediction, target):
    return ((prediction - target) ** 2).mean()


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
batch_size = 50
for epoch in range(20):
    net.train()
    order = torch.randperm(split)
    total = 0.0
    for i in range(0, split, batch_size):
        rows = order[i : i + batch_size]
        loss = mse(net(x_train[rows]), y_train_n[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 4 == 0:
        print(f"epoch {epoch} train mse {total / (split // batch_size):.4f}")

net.eval()
with torch.no_grad():
    prediction = net(x_test)
    test_mse = mse(prediction, y_test_n).item()
mae = np.abs(prediction.squeeze(1).numpy() - y_test_n.numpy()).mean() * spread.item()
print(f"test mse {test_mse:.4f}, mean absolute error {mae:.3f} points")
