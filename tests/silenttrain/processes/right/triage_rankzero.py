import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def rows(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 15, generator=g)
    y = (x[:, :5].sum(1) * x[:, 5] > 0).long()
    return TensorDataset(x, y)


accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
set_seed(1)
model = nn.Sequential(nn.Linear(15, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
epochs = 4
train = DataLoader(rows(960, 1), batch_size=16, shuffle=True)
held_out = DataLoader(rows(333, 2), batch_size=64)
model, opt, train = accelerator.prepare(model, opt, train)
updates = epochs * len(train) // 2
sched = torch.optim.lr_scheduler.LinearLR(opt.optimizer, 1.0, 0.05, total_iters=updates)

for epoch in range(epochs):
    model.train()
    for x, y in train:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            opt.step()
            if accelerator.sync_gradients:
                sched.step()
            opt.zero_grad()
    if accelerator.is_main_process:
        plain = accelerator.unwrap_model(model).eval()
        hit = n = 0
        with torch.no_grad():
            for x, y in held_out:
                hit += (plain(x).argmax(1) == y).sum().item()
                n += len(y)
        plain.train()
        print(f"epoch {epoch} held-out acc {hit / n:.4f} over {n} rows, lr {sched.get_last_lr()[0]:.5f}", flush=True)
    accelerator.wait_for_everyone()
accelerator.end_training()
