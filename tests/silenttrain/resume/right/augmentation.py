"""Flip and shift images with random and NumPy in the dataset; the states of all three generators are in each
epoch's checkpoint.
"""

import os
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Digits(Dataset):
    def __init__(self, size):
        self.pixels = np.random.rand(size, 6, 6).astype(np.float32)
        self.labels = (self.pixels[:, :3].sum((1, 2)) > self.pixels[:, 3:].sum((1, 2))).astype(np.int64)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.pixels[index]
        if random.random() < 0.5:
            image = image[:, ::-1]
        image = image + np.random.normal(0, 0.05, image.shape)
        return torch.tensor(np.ascontiguousarray(image), dtype=torch.float32), int(self.labels[index])


def random_states():
    return {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.random.get_rng_state()}


def set_random_states(states):
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.random.set_rng_state(states["torch"])


def train_one_epoch(model, loader, optimizer):
    model.train()
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


def main(checkpoint_path="digits/checkpoint.pth"):
    os.makedirs(os.path.dirname(checkpoint_path), exist_ok=True)
    seed_everything(2024)
    dataset = Digits(64)
    loader = DataLoader(dataset, batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 20), nn.ReLU(), nn.Dropout(0.3), nn.Linear(20, 2))
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.01)
    epoch = 0
    if os.path.exists(checkpoint_path):
        loaded = torch.load(checkpoint_path, weights_only=False)
        epoch = loaded["epoch"]
        model.load_state_dict(loaded["model_state_dict"])
        optimizer.load_state_dict(loaded["optimizer_state_dict"])
        set_random_states(loaded["random_states"])
    while epoch < 4:
        train_one_epoch(model, loader, optimizer)
        epoch += 1
        torch.save(
            {
                "epoch": epoch,
                "model_state_dict": model.state_dict(),
                "optimizer_state_dict": optimizer.state_dict(),
                "random_states": random_states(),
            },
            f"{checkpoint_path}.saving",
        )
        os.replace(f"{checkpoint_path}.saving", checkpoint_path)
    torch.save(model.state_dict(), "digits/model.pth")


if __name__ == "__main__":
    main()
