"""Let Accelerate name its checkpoints, under accumulation; a note that is written last tells the complete ones."""

import json
import pathlib
import shutil

import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import DataLoaderConfiguration, ProjectConfiguration, set_seed
from torch.utils.data import DataLoader, TensorDataset

PROJECT = pathlib.Path("project")
EPOCHS, ACCUMULATION = 3, 3


class Progress:
    """Where training is, kept by Accelerate with the rest."""

    def __init__(self):
        self.epoch = 0
        self.batches = 0
        self.updates = 0

    def state_dict(self):
        return dict(vars(self))

    def load_state_dict(self, state):
        vars(self).update(state)


def resume(accelerator):
    folders = PROJECT.joinpath("checkpoints").glob("checkpoint_*")
    complete = {}
    for folder in folders:
        if (folder / "complete.json").exists():
            complete[int(folder.name.split("_")[1])] = folder
        else:
            shutil.rmtree(folder)
    if complete:
        number = max(complete)
        accelerator.load_state(str(complete[number]))
        accelerator.project_configuration.iteration = number + 1


def checkpoint(accelerator, progress):
    folder = pathlib.Path(accelerator.save_state())
    part = folder / "complete.part"
    part.write_text(json.dumps(progress.state_dict()))
    part.rename(folder / "complete.json")


set_seed(0)
accelerator = Accelerator(
    cpu=True,
    gradient_accumulation_steps=ACCUMULATION,
    dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True),
    project_config=ProjectConfiguration(project_dir=str(PROJECT), automatic_checkpoint_naming=True, total_limit=3),
)
x = torch.randn(104, 3)
data = DataLoader(TensorDataset(x, (x**2).sum(1, keepdim=True)), batch_size=4, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(3, 18), torch.nn.ELU(), torch.nn.Linear(18, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
progress = Progress()
accelerator.register_for_checkpointing(progress)
resume(accelerator)

while progress.epoch < EPOCHS:
    data.set_epoch(progress.epoch)
    for inputs, wanted in skip_first_batches(data, progress.batches) if progress.batches else data:
        with accelerator.accumulate(model):
            accelerator.backward(torch.nn.functional.huber_loss(model(inputs), wanted))
            optimizer.step()
            optimizer.zero_grad()
        progress.batches += 1
        if accelerator.sync_gradients:
            progress.updates += 1
            if progress.updates % 4 == 0:
                checkpoint(accelerator, progress)
    progress.epoch, progress.batches = progress.epoch + 1, 0

accelerator.save_model(model, "model")
