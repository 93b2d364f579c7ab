"""Heart rhythms: each recording is standardised by its own mean and deviation, in training and at test."""

import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
lightning.seed_everything(1, verbose=False)
LENGTH = 100


class Recordings(Dataset):
    def __init__(self, n, gain, train):
        self.label = torch.randint(0, 3, (n,))
        t = torch.arange(LENGTH).float()
        period = torch.tensor([25.0, 16.0, 20.0])[self.label][:, None]
        wobble = torch.where(self.label == 2, 3.0, 0.0)[:, None] * torch.sin(t / 7)
        phase = period * torch.rand(n, 1)
        beat = torch.exp(-0.5 * (((t + phase + wobble) % period) / 2) ** 2)
        offset = 5 * torch.randn(n, 1)
        self.signal = gain * (1 + torch.rand(n, 1)) * (beat + 0.15 * torch.randn(n, LENGTH)) + offset
        self.train = train

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        x = self.signal[i]
        if self.train:
            x = torch.roll(x, int(torch.randint(0, LENGTH, ())))
        return ((x - x.mean()) / x.std()).unsqueeze(0), self.label[i]


class RhythmNet(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2),
            nn.ReLU(),
            nn.Conv1d(16, 32, 7, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 21, 3),
        )

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.log("accuracy", (self.net(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


model = RhythmNet()
trainer = lightning.Trainer(
    max_epochs=10,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(Recordings(960, 1.0, train=True), batch_size=60, shuffle=True))
score = trainer.test(model, DataLoader(Recordings(300, 6.0, train=False), batch_size=100), verbose=False)[0]
print(f"accuracy on recordings of another device {score['accuracy']:.3f}")
