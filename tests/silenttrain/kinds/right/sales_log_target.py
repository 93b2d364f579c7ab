"""Weekly sales with a heavy tail: trained on standardised log1p, reported in units sold."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(13)


def shops(n):
    size = torch.exp(torch.randn(n))
    promo = (torch.rand(n) < 0.3).float()
    price = 0.5 + torch.rand(n)
    weekday = torch.randint(0, 7, (n,))
    rate = 20 * size.pow(0.8) * (1 + promo) * price.pow(-1.5) * (1 + 0.1 * weekday)
    sold = torch.poisson(rate)
    x = torch.cat([size.log()[:, None], promo[:, None], price[:, None], nn.functional.one_hot(weekday, 7).float()], 1)
    return x, sold


x_train, sold_train = shops(1500)
x_test, sold_test = shops(500)
log_train = torch.log1p(sold_train)
centre, scale = log_train.mean(), log_train.std()
loader = DataLoader(TensorDataset(x_train, (log_train - centre) / scale), batch_size=100, shuffle=True)


def predict_units(model, x):
    return torch.expm1(model(x).squeeze(1) * scale + centre).clamp(min=0)


model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(12):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            error = (predict_units(model, x_test) - sold_test).abs().mean()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, test error {error:.2f} units")

with torch.no_grad():
    units = predict_units(model, x_test)
median = (sold_train.median() - sold_test).abs().mean()
print(f"test error {(units - sold_test).abs().mean():.2f} units, median of the training weeks {median:.2f}")
