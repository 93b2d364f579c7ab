"""Train with Accelerate and its default sampler, whose orders come from torch's global generator, which
save_state keeps.
"""

from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration, set_seed
from torch import nn


class Quadratic(torch.utils.data.Dataset):
    def __init__(self, size: int = 64):
        self.x = torch.linspace(-2, 2, size)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> dict:
        return {"x": self.x[index : index + 1], "y": self.x[index : index + 1] ** 2}


class Fit(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 20), nn.ReLU(), nn.Linear(20, 1))

    def forward(self, x, y):
        return nn.functional.mse_loss(self.net(x), y)


def main() -> None:
    set_seed(3)
    accelerator = Accelerator(cpu=True, project_config=ProjectConfiguration(project_dir="fit"))
    model = Fit()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loader = torch.utils.data.DataLoader(Quadratic(), batch_size=8, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    root = Path("fit")
    root.mkdir(exist_ok=True)
    marker = root / "LATEST"
    first = 0
    if marker.exists():
        first = int(marker.read_text())
        accelerator.load_state(str(root / f"epoch{first}"))
    for epoch in range(first, 4):
        loader.set_epoch(epoch)
        for batch in loader:
            optimizer.zero_grad()
            accelerator.backward(model(**batch))
            optimizer.step()
        accelerator.save_state(str(root / f"epoch{epoch + 1}"))
        part = root / "LATEST.part"
        part.write_text(str(epoch + 1))
        part.replace(marker)
    torch.save(accelerator.unwrap_model(model).state_dict(), root / "final.pt")


if __name__ == "__main__":
    main()
