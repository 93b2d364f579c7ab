"""Leave-one-group-out: patients, not rows, are split; rows with a failed sensor are dropped."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
PATIENTS, ROWS, DIM, FOLDS = 20, 40, 8, 4

patient = torch.arange(PATIENTS).repeat_interleave(ROWS)
offset = 0.5 * torch.randn(PATIENTS, DIM)[patient]
clean = torch.randn(len(patient), DIM)
y = clean[:, 0] - 0.7 * clean[:, 1] * clean[:, 2] + 0.2 * torch.randn(len(patient))
x = clean + 0.3 * offset
sensor_ok = torch.rand(len(patient)) > 0.15
x[~sensor_ok] = -99.0  # code of a failed measurement

groups = torch.randperm(PATIENTS).chunk(FOLDS)
pred_all = torch.full_like(y, float("nan"))
for fold, held_out in enumerate(groups):
    is_test = torch.isin(patient, held_out)
    train_rows = torch.nonzero(~is_test & sensor_ok).squeeze(1)
    test_rows = torch.nonzero(is_test & sensor_ok).squeeze(1)

    torch.manual_seed(100)  # every fold begins from the same weights
    net = nn.Sequential(nn.Linear(DIM, 64), nn.Tanh(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    mean, std = x[train_rows].mean(0), x[train_rows].std(0)
    for epoch in range(40):
        total, count = 0.0, 0
        for idx in train_rows[torch.randperm(len(train_rows))].split(64):
            loss = F.mse_loss(net((x[idx] - mean) / std).squeeze(1), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total, count = total + loss.item() * len(idx), count + len(idx)
    with torch.no_grad():
        pred_all[test_rows] = net((x[test_rows] - mean) / std).squeeze(1)
    mse = F.mse_loss(pred_all[test_rows], y[test_rows]).item()
    print(f"fold {fold} patients {held_out.tolist()} train mse {total / count:.3f} test mse {mse:.3f}")

done = ~pred_all.isnan()
r2 = 1 - F.mse_loss(pred_all[done], y[done]) / y[done].var()
print(f"rows predicted {int(done.sum())} of {len(y)}, cross-validated r2 {r2.item():.3f}")
