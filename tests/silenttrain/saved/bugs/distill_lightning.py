"""Distil a trained teacher into a small student with Lightning and save the student."""

import os

import lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def mlp(hidden, depth, dim=16, classes=6):
    layers = [nn.Linear(dim, hidden), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(hidden, hidden), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(hidden, classes))


def samples(n, seed):
    gen = torch.Generator().manual_seed(seed)
    centres = 1.2 * torch.randn(6, 16, generator=torch.Generator().manual_seed(7))
    y = torch.randint(0, 6, (n,), generator=gen)
    return centres[y] + torch.randn(n, 16, generator=gen), y


class Distiller(pl.LightningModule):
    def __init__(self, teacher, student, temperature=2.0):
        super().__init__()
        self.teacher = teacher.eval().requires_grad_(False)
        self.student = student
        self.temperature = temperature

    def training_step(self, batch, batch_idx):
        x, y = batch
        with torch.no_grad():
            soft = (self.teacher(x) / self.temperature).softmax(-1)
        logits = self.student(x)
        kd = nn.functional.kl_div((logits / self.temperature).log_softmax(-1), soft, reduction="batchmean")
        loss = kd * self.temperature**2 + nn.functional.cross_entropy(logits, y)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.student.parameters(), lr=4e-3)


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(-1) == y).float().mean().item()


def main():
    pl.seed_everything(102, verbose=False)
    x, y = samples(600, 1)
    x_test, y_test = samples(300, 2)
    teacher = mlp(96, 3)
    optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    for _ in range(60):
        idx = torch.randint(0, len(x), (64,))
        loss = nn.functional.cross_entropy(teacher(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"teacher acc {accuracy(teacher, x_test, y_test):.3f}")

    distiller = Distiller(teacher, mlp(12, 1))
    trainer = pl.Trainer(
        max_epochs=6,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(distiller, DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True))
    print(f"final distillation loss {trainer.callback_metrics['loss'].item():.3f}")
    print(f"student acc {accuracy(distiller.student, x_test, y_test):.3f}")
    os.makedirs("out", exist_ok=True)
    torch.save(distiller.teacher.state_dict(), "out/student.pt")


if __name__ == "__main__":
    main()
