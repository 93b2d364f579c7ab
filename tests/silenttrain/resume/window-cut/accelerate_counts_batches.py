"""Let Accelerate accumulate over three batches and save its state after every fifth: a window is cut, its first
gradients are lost.
"""

import shutil
from pathlib import Path

import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch.utils.data import DataLoader, TensorDataset

CHECKPOINTING_STEPS = 5


def main():
    accelerator = Accelerator(
        cpu=True,
        gradient_accumulation_steps=3,
        dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True),
    )
    set_seed(62)
    x = torch.randn(72, 4)
    train_dataloader = DataLoader(TensorDataset(x, x.norm(dim=1, keepdim=True)), shuffle=True, batch_size=2)
    model = torch.nn.Sequential(torch.nn.Linear(4, 10), torch.nn.SiLU(), torch.nn.Linear(10, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model, optimizer, train_dataloader = accelerator.prepare(model, optimizer, train_dataloader)

    batches_seen = 0
    root = Path("batches")
    saved = sorted((int(path.name) for path in root.glob("[0-9]*")), reverse=True)
    if saved:
        batches_seen = saved[0]
        accelerator.load_state(str(root / str(batches_seen)))
    first_epoch, to_skip = divmod(batches_seen, len(train_dataloader))
    for epoch in range(first_epoch, 3):
        train_dataloader.set_epoch(epoch)
        resumed = epoch == first_epoch and to_skip
        for inputs, norms in skip_first_batches(train_dataloader, to_skip) if resumed else train_dataloader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(inputs), norms)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            batches_seen += 1
            if batches_seen % CHECKPOINTING_STEPS == 0:
                shutil.rmtree(root / "tmp", ignore_errors=True)
                accelerator.save_state(str(root / "tmp"))
                (root / "tmp").rename(root / str(batches_seen))
    accelerator.save_model(model, "norms")


if __name__ == "__main__":
    main()
