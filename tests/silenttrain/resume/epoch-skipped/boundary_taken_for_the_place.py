"""Keep the place in the epoch; a checkpoint at its very end leaves it there, and after a restart the whole next
epoch is passed over.
"""

import os

import torch
from torch import nn


class StatefulLoader:
    """Shuffled batches of an epoch, and how many of them were given out."""

    def __init__(self, tensors, batch_size):
        self.tensors, self.batch_size, self.given = tensors, batch_size, 0
        self.epoch = 0

    def __len__(self):
        return len(self.tensors[0]) // self.batch_size

    def __iter__(self):
        order = torch.randperm(len(self.tensors[0]), generator=torch.Generator().manual_seed(self.epoch))
        for rows in order.view(len(self), self.batch_size)[self.given :]:
            self.given += 1
            yield [tensor[rows] for tensor in self.tensors]
        self.given = 0

    def state_dict(self):
        return {"given": self.given}

    def load_state_dict(self, state):
        self.given = state["given"]


def main(total_epochs=4, save_freq=9):
    torch.manual_seed(74)
    x = torch.randn(54, 4)
    loader = StatefulLoader([x, x.pow(2).mean(1)], batch_size=6)
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    global_step = 0
    if os.path.exists("global_step.pt"):
        saved = torch.load("global_step.pt")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        global_step = saved["global_step"]
    for epoch in range(global_step // len(loader), total_epochs):
        loader.epoch = epoch
        for inputs, wanted in loader:
            loss = nn.functional.mse_loss(model(inputs).squeeze(1), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            global_step += 1
            if global_step % save_freq == 0:
                saved = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "loader": loader.state_dict(),
                    "global_step": global_step,
                }
                torch.save(saved, "global_step.tmp")
                os.replace("global_step.tmp", "global_step.pt")
    torch.save(model.state_dict(), "last_step.pt")


if __name__ == "__main__":
    main()
