"""Two-phase Lightning training, reconstruction first and forecasting second, with weights saved after each phase."""

import os

import lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SeriesModule(pl.LightningModule):
    def __init__(self, window=20, dim=24):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(window, 48), nn.GELU(), nn.Linear(48, dim))
        self.decoder = nn.Linear(dim, window)
        self.forecast = nn.Sequential(nn.Linear(dim, 24), nn.GELU(), nn.Linear(24, 1))
        self.phase = "reconstruct"

    def training_step(self, batch, batch_idx):
        window, target = batch
        code = self.encoder(window)
        if self.phase == "reconstruct":
            loss = nn.functional.mse_loss(self.decoder(code), window)
        else:
            loss = nn.functional.mse_loss(self.forecast(code).squeeze(-1), target)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        if self.phase == "reconstruct":
            return torch.optim.AdamW([*self.encoder.parameters(), *self.decoder.parameters()], lr=4e-3)
        return torch.optim.AdamW(
            [
                {"params": self.encoder.parameters(), "lr": 1e-3},
                {"params": self.forecast.parameters(), "lr": 6e-3},
            ]
        )


def make_series(n, seed):
    gen = torch.Generator().manual_seed(seed)
    phase, speed = 6.28 * torch.rand(n, 1, generator=gen), 0.2 + 0.4 * torch.rand(n, 1, generator=gen)
    y = torch.sin(speed * torch.arange(21) + phase) + 0.05 * torch.randn(n, 21, generator=gen)
    return TensorDataset(y[:, :20], y[:, 20])


def fit(module, phase, loader, epochs):
    module.phase = phase
    trainer = pl.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader)
    print(f"{phase}: final loss {trainer.callback_metrics['loss'].item():.4f}")


def main():
    pl.seed_everything(211, verbose=False)
    os.makedirs("out", exist_ok=True)
    loader = DataLoader(make_series(480, 1), batch_size=32, shuffle=True)
    module = SeriesModule()
    fit(module, "reconstruct", loader, epochs=4)
    torch.save({"encoder": module.encoder.state_dict(), "decoder": module.decoder.state_dict()}, "out/phase1.pt")
    fit(module, "forecast", loader, epochs=5)
    torch.save({"encoder": module.encoder.state_dict(), "forecast": module.forecast.state_dict()}, "out/phase2.pt")

    module.eval()
    x, y = make_series(200, 2).tensors
    with torch.no_grad():
        print(f"test mse {nn.functional.mse_loss(module.forecast(module.encoder(x)).squeeze(-1), y).item():.4f}")


if __name__ == "__main__":
    main()
