import torch
from torch import nn
from torch.nn.functional import l1_loss, mse_loss

torch.manual_seed(0)


def moments(rows):
    return rows.mean(0), rows.std(0)


train, test = 8 + 6 * torch.randn(600, 4), -1 + 3 * torch.randn(200, 4)
demand, demand_of_test = train.sum(1) / 10, test.sum(1) / 10
mean, deviation = moments(train)
train = (train - mean) / deviation
test = (test - mean) / deviation
model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(3):
    for picked in torch.randperm(600).split(50):
        loss = mse_loss(model(train[picked]).squeeze(1), demand[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    print(l1_loss(model(test).squeeze(1), demand_of_test))
    print(l1_loss(model(train).squeeze(1), demand))
