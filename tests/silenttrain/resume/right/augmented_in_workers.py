"""Crop at random in two loader workers, which the loader's generator seeds; its state is in the checkpoint of
each epoch.
"""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class RandomCrops(Dataset):
    """Windows of 10 from series of 16, each at a random place."""

    def __init__(self, count=48):
        generator = torch.Generator().manual_seed(0)
        slope = torch.randn(count, 1, generator=generator)
        self.series = slope * torch.linspace(0, 1, 16) + 0.1 * torch.randn(count, 16, generator=generator)
        self.rising = (slope.squeeze(1) > 0).float()

    def __len__(self):
        return len(self.series)

    def __getitem__(self, index):
        start = int(torch.randint(0, 7, ()))
        return self.series[index, start : start + 10], self.rising[index]


def main():
    torch.manual_seed(12)
    generator = torch.Generator().manual_seed(12)
    loader = DataLoader(RandomCrops(), batch_size=6, shuffle=True, num_workers=2, generator=generator)
    model = nn.Sequential(nn.Linear(10, 6), nn.ReLU(), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    epoch = 0
    if os.path.exists("crops.pt"):
        saved = torch.load("crops.pt")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        generator.set_state(saved["generator"])
        epoch = saved["epoch"]
    while epoch < 3:
        for series, rising in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(series).squeeze(1), rising)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        epoch += 1
        saved = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "generator": generator.get_state(),
            "epoch": epoch,
        }
        torch.save(saved, "crops.tmp")
        os.replace("crops.tmp", "crops.pt")
    torch.save(model.state_dict(), "crops_model.pt")


if __name__ == "__main__":
    main()
