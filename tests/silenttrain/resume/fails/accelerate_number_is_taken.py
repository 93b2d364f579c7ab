"""Let Accelerate number its checkpoints; a restart numbers from 0 again, and the first save in it finds its
name taken and raises.
"""

import pathlib
import shutil

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, ProjectConfiguration, set_seed
from torch import nn

set_seed(47)
accelerator = Accelerator(
    cpu=True,
    project_config=ProjectConfiguration("numbered", automatic_checkpoint_naming=True),
    dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True),
)
vectors = torch.randn(60, 3)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(vectors, vectors.cross(torch.ones(1, 3), dim=1)), batch_size=6, shuffle=True
)
model = nn.Linear(3, 3)
model, optimizer, loader = accelerator.prepare(model, torch.optim.Adam(model.parameters(), lr=0.05), loader)


def complete_checkpoints():
    for folder in pathlib.Path("numbered/checkpoints").glob("checkpoint_*"):
        if (folder / "done").exists():
            yield int(folder.name.removeprefix("checkpoint_")), folder
        else:
            shutil.rmtree(folder)


number, folder = max(complete_checkpoints(), default=(-1, None))
if folder is not None:
    accelerator.load_state(str(folder))

for epoch in range(number + 1, 4):
    loader.set_epoch(epoch)
    for a, product in loader:
        accelerator.backward(nn.functional.mse_loss(model(a), product))
        optimizer.step()
        optimizer.zero_grad()
    pathlib.Path(accelerator.save_state(), "done").touch()

torch.save(accelerator.unwrap_model(model).state_dict(), "numbered/final.pt")
