"""Train in a folder named by the time of the start; a restart looks for its checkpoint in another, new folder,
and begins anew.
"""

from datetime import datetime
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

RUN = Path("runs") / datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")


class Tagger(nn.Module):
    def __init__(self, vocabulary=25, width=6):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.tag = nn.Linear(width, 3)

    def forward(self, words):
        return self.tag(self.embed(words))


def fit():
    torch.manual_seed(40)
    words = torch.randint(0, 25, (48, 5))
    tagger = Tagger()
    optimizer = torch.optim.AdamW(tagger.parameters(), lr=0.02)
    RUN.mkdir(parents=True, exist_ok=True)
    latest = RUN / "latest.pt"
    first = 0
    if latest.exists():
        saved = torch.load(latest)
        tagger.load_state_dict(saved["tagger"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["next_epoch"]
    for epoch in range(first, 4):
        order = torch.Generator().manual_seed(40 + epoch)
        for sentence, tags in DataLoader(TensorDataset(words, words % 3), 6, shuffle=True, generator=order):
            loss = nn.functional.cross_entropy(tagger(sentence).flatten(0, 1), tags.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        state = {"tagger": tagger.state_dict(), "optimizer": optimizer.state_dict(), "next_epoch": epoch + 1}
        torch.save(state, RUN / "latest.writing")
        (RUN / "latest.writing").rename(latest)
    torch.save(tagger.state_dict(), "tagger.pt")


fit()
