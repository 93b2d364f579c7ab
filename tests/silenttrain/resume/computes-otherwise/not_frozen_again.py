"""Freeze the embedding where a run starts from pretrained weights, not where it is resumed: after a restart it
is trained too.
"""

import pathlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BEST_KEPT = pathlib.Path("frozen.pt")


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(40, 8)
        self.classifier = nn.Linear(8, 3)

    def forward(self, words):
        return self.classifier(self.embedding(words))


def pretrained(bag):
    generator = torch.Generator().manual_seed(404)
    with torch.no_grad():
        bag.embedding.weight.copy_(torch.randn(40, 8, generator=generator))
    bag.embedding.weight.requires_grad_(False)


def main():
    torch.manual_seed(26)
    words = torch.randint(0, 40, (84, 5))
    bag = Bag()
    optimizer = torch.optim.SGD(bag.parameters(), lr=0.2)
    finished = 0
    if BEST_KEPT.exists():
        kept = torch.load(BEST_KEPT)
        bag.load_state_dict(kept["bag"])
        optimizer.load_state_dict(kept["optimizer"])
        finished = kept["finished"]
    else:
        pretrained(bag)
    for epoch in range(finished, 4):
        order = torch.Generator().manual_seed(26 * (epoch + 1))
        for batch, kind in DataLoader(TensorDataset(words, words[:, 0] % 3), 7, shuffle=True, generator=order):
            loss = nn.functional.cross_entropy(bag(batch), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save({"bag": bag.state_dict(), "optimizer": optimizer.state_dict(), "finished": epoch + 1}, "frozen.tmp")
        pathlib.Path("frozen.tmp").rename(BEST_KEPT)
    torch.save(bag.state_dict(), "bag.pt")


main()
