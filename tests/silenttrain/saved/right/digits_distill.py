"""Distil a convolutional teacher into a linear-size student with Lightning; the student alone is shipped."""

import os

import lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_digits(n, seed):
    gen = torch.Generator().manual_seed(seed)
    glyphs = torch.randn(8, 1, 10, 10, generator=torch.Generator().manual_seed(4))
    y = torch.randint(0, 8, (n,), generator=gen)
    return glyphs[y] + 1.3 * torch.randn(n, 1, 10, 10, generator=gen), y


def build_teacher():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2400, 64),
        nn.ReLU(),
        nn.Linear(64, 8),
    )


def build_student():
    return nn.Sequential(nn.Flatten(), nn.Linear(100, 24), nn.ReLU(), nn.Linear(24, 8))


class Distillation(pl.LightningModule):
    def __init__(self, teacher, student):
        super().__init__()
        self.teacher, self.student = teacher, student
        self.teacher.requires_grad_(False)

    def on_train_epoch_start(self):
        self.teacher.eval()

    def training_step(self, batch, batch_idx):
        x, _ = batch
        with torch.no_grad():
            target = (self.teacher(x) / 3).softmax(-1)
        loss = 9 * nn.functional.kl_div((self.student(x) / 3).log_softmax(-1), target, reduction="batchmean")
        self.log("kd", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW([p for p in self.parameters() if p.requires_grad], lr=3e-3)


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    return (net(x).argmax(-1) == y).float().mean().item()


def main():
    pl.seed_everything(212, verbose=False)
    x, y = make_digits(640, 1)
    x_test, y_test = make_digits(300, 2)
    teacher = build_teacher()
    optimizer = torch.optim.AdamW(teacher.parameters(), lr=1e-3)
    for _ in range(2):
        for idx in torch.randperm(len(x)).split(32):
            loss = nn.functional.cross_entropy(teacher(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"teacher {accuracy(teacher, x_test, y_test):.3f}")

    module = Distillation(teacher, build_student())
    trainer = pl.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True))
    print(f"distillation loss {trainer.callback_metrics['kd'].item():.3f}")
    print(f"student {accuracy(module.student, x_test, y_test):.3f}")

    os.makedirs("out", exist_ok=True)
    torch.save(module.student.state_dict(), "out/student.pt")
    shipped = build_student()
    shipped.load_state_dict(torch.load("out/student.pt"))
    print(f"shipped {accuracy(shipped, x_test, y_test):.3f}")


if __name__ == "__main__":
    main()
