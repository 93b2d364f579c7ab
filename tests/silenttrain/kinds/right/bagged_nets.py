"""Bagging: every member learns from a bootstrap sample and is judged out of bag."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def make(n):
    x = torch.randn(n, 6)
    y = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]
    return x, y + 0.3 * torch.randn(n)


class Bagging:
    def __init__(self, members=5, epochs=25, batch=40):
        self.members, self.epochs, self.batch = members, epochs, batch
        self.nets = []

    def new_net(self):
        return nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1), nn.Flatten(0))

    def fit_member(self, x, y):
        net = self.new_net()
        opt = torch.optim.Adam(net.parameters(), lr=3e-3)
        for _ in range(self.epochs):
            for idx in torch.randperm(len(x)).split(self.batch):
                loss = F.mse_loss(net(x[idx]), y[idx])
                opt.zero_grad()
                loss.backward()
                opt.step()
        return net

    def fit(self, x, y):
        n = len(x)
        oob_sum, oob_count = torch.zeros(n), torch.zeros(n)
        for k in range(self.members):
            rows = torch.randint(n, (n,))  # with replacement
            out_of_bag = torch.ones(n, dtype=torch.bool)
            out_of_bag[rows] = False
            net = self.fit_member(x[rows], y[rows])
            with torch.no_grad():
                oob_sum[out_of_bag] += net(x[out_of_bag])
            oob_count[out_of_bag] += 1
            self.nets.append(net)
            print(f"member {k}  distinct rows {rows.unique().numel()} of {n}")
        have = oob_count > 0
        return F.mse_loss(oob_sum[have] / oob_count[have], y[have]).item()

    @torch.no_grad()
    def predict(self, x):
        return torch.stack([net(x) for net in self.nets]).mean(0)


x_train, y_train = make(800)
x_test, y_test = make(500)
ensemble = Bagging()
oob = ensemble.fit(x_train, y_train)
single = F.mse_loss(ensemble.nets[0](x_test), y_test).item()
mse = F.mse_loss(ensemble.predict(x_test), y_test).item()
print(f"out-of-bag mse {oob:.4f}  test mse {mse:.4f}  one member {single:.4f}  variance {y_test.var().item():.4f}")
