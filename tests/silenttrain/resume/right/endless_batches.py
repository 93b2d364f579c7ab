"""Train a character model on an endless stream of batches with a warm-up; the stream is wound forward to where
it was.
"""

import glob
import itertools
import os
import re

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

TEXT = "the quick brown fox jumps over the lazy dog and runs away from the bear " * 4
VOCABULARY = sorted(set(TEXT))
CODES = torch.tensor([VOCABULARY.index(letter) for letter in TEXT])
CONTEXT, BATCH, STEPS, SAVE_AT = 8, 12, 40, 9


def stream(seed=17):
    generator = torch.Generator().manual_seed(seed)
    starts = len(CODES) - CONTEXT - 1
    while True:
        for chosen in torch.randperm(starts, generator=generator).split(BATCH):
            window = torch.stack([CODES[s : s + CONTEXT + 1] for s in chosen.tolist()])
            yield window[:, :-1], window[:, 1:]


class Letters(nn.Module):
    def __init__(self, size=12):
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), size)
        self.rnn = nn.GRU(size, size, batch_first=True)
        self.head = nn.Linear(size, len(VOCABULARY))

    def forward(self, codes):
        hidden, _ = self.rnn(self.embedding(codes))
        return self.head(hidden)


def latest():
    found = glob.glob("letters_*.pt")
    return max(found, key=lambda name: int(re.findall(r"\d+", name)[0])) if found else None


torch.manual_seed(0)
letters = Letters()
adam = torch.optim.Adam(letters.parameters(), lr=0.02, betas=(0.9, 0.98))
warmup = LambdaLR(adam, lambda step: min((step + 1) / 10, 1.0) * (1 - step / 60))

begin = 0
if (name := latest()) is not None:
    saved = torch.load(name)
    letters.load_state_dict(saved["letters"])
    adam.load_state_dict(saved["adam"])
    warmup.load_state_dict(saved["warmup"])
    begin = saved["step"]

for step, (inputs, following) in enumerate(itertools.islice(stream(), begin, STEPS), start=begin + 1):
    logits = letters(inputs)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())
    adam.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(letters.parameters(), 0.5)
    adam.step()
    warmup.step()
    if step % SAVE_AT == 0:
        parts = {
            "letters": letters.state_dict(),
            "adam": adam.state_dict(),
            "warmup": warmup.state_dict(),
            "step": step,
        }
        torch.save(parts, "letters.tmp")
        os.rename("letters.tmp", f"letters_{step}.pt")

torch.save(letters.state_dict(), "letters.final")
