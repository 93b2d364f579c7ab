"""SimSiam on tabular customer profiles with stop-gradient; the spread of the embeddings is only logged."""

import logging
import warnings

import lightning
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
lightning.seed_everything(3, verbose=False)
GROUPS, COLUMNS = 5, 30


def profiles(n):
    group = torch.randint(0, GROUPS, (n,))
    centre = 2.0 * torch.randn(GROUPS, COLUMNS, generator=torch.Generator().manual_seed(7))
    return centre[group] + torch.randn(n, COLUMNS), group


def corrupt(x):
    swap = torch.rand_like(x) < 0.25
    return torch.where(swap, x[torch.randperm(len(x))], x)


class SimSiam(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(COLUMNS, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 24))
        self.predictor = nn.Sequential(nn.Linear(24, 12), nn.ReLU(), nn.Linear(12, 24))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        z1, z2 = self.encoder(corrupt(x)), self.encoder(corrupt(x))
        p1, p2 = self.predictor(z1), self.predictor(z2)
        one = functional.cosine_similarity(p1, z2.detach()).mean()
        two = functional.cosine_similarity(p2, z1.detach()).mean()
        with torch.no_grad():
            self.log("spread", functional.normalize(z1, dim=1).std(0).mean())
        return -0.5 * (one + two)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


x, group = profiles(1200)
x_test, group_test = profiles(400)
model = SimSiam()
trainer = lightning.Trainer(
    max_epochs=12,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(TensorDataset(x), batch_size=100, shuffle=True))
model.eval()
with torch.no_grad():
    z = functional.normalize(model.encoder(x), dim=1)
    z_test = functional.normalize(model.encoder(x_test), dim=1)
neighbours = group[(z_test @ z.T).topk(5, dim=1).indices]
accuracy = (neighbours.mode(dim=1).values == group_test).float().mean()
print(f"spread {trainer.callback_metrics['spread']:.3f}, 5-nearest-neighbour accuracy {accuracy:.3f}")
