"""Save Accelerate's state every few steps and go on in the middle of an epoch with skip_first_batches."""

import shutil
from argparse import ArgumentParser
from pathlib import Path

import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch import nn
from torch.utils.data import DataLoader
from transformers import get_scheduler


class Sums(torch.utils.data.Dataset):
    """Two digits and whether their sum is above nine."""

    def __len__(self):
        return 100

    def __getitem__(self, i):
        a, b = divmod(i, 10)
        return {"input_ids": torch.tensor([a, b]), "labels": torch.tensor(int(a + b > 9))}


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.digits = nn.Embedding(10, 6)
        self.classify = nn.Linear(12, 2)

    def forward(self, input_ids, labels):
        logits = self.classify(self.digits(input_ids).flatten(1))
        return nn.functional.cross_entropy(logits, labels)


def main():
    parser = ArgumentParser()
    parser.add_argument("--checkpointing_steps", type=int, default=4)
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--output_dir", type=Path, default=Path("sums"))
    args = parser.parse_args()

    set_seed(7)
    accelerator = Accelerator(
        cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True, data_seed=7)
    )
    loader = DataLoader(Sums(), batch_size=10, shuffle=True)
    model = Embedder()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    steps = args.num_train_epochs * len(loader)
    scheduler = get_scheduler("cosine", optimizer, num_warmup_steps=4, num_training_steps=steps)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

    completed = 0
    found = sorted(args.output_dir.glob("step_*"), key=lambda path: int(path.name[5:]))
    if found:
        accelerator.load_state(str(found[-1]))
        completed = int(found[-1].name[5:])
    first_epoch, skip = divmod(completed, len(loader))

    for epoch in range(first_epoch, args.num_train_epochs):
        loader.set_epoch(epoch)
        batches = skip_first_batches(loader, skip) if epoch == first_epoch and skip else loader
        for batch in batches:
            loss = model(**batch)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            completed += 1
            if completed % args.checkpointing_steps == 0:
                unfinished = args.output_dir / "unfinished"
                shutil.rmtree(unfinished, ignore_errors=True)
                accelerator.save_state(str(unfinished))
                unfinished.rename(args.output_dir / f"step_{completed}")

    accelerator.save(accelerator.unwrap_model(model).state_dict(), args.output_dir / "final.bin")


if __name__ == "__main__":
    main()
