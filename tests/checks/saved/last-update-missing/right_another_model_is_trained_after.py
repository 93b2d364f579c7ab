import tempfile

import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(64, 6)
encoder = nn.Sequential(nn.Linear(6, 4), nn.Tanh())
decoder, head = nn.Linear(4, 6), nn.Bilinear(4, 4, 1)


def train(parameters, loss):
    optimizer = torch.optim.AdamW(parameters, lr=1e-2)
    for rows in torch.randperm(64).split(8):
        optimizer.zero_grad()
        loss(inputs[rows]).backward()
        optimizer.step()


def score(rows):
    with torch.no_grad():
        coded = encoder(rows)
    return nn.functional.mse_loss(head(coded, coded), rows.sum(1, keepdim=True))


with tempfile.TemporaryDirectory() as folder:
    both = nn.Sequential(encoder, decoder)
    train(both.parameters(), lambda rows: nn.functional.mse_loss(both(rows), rows))
    torch.save(both.state_dict(), f"{folder}/encoder.pt")
    train(head.parameters(), score)
    torch.save(head.state_dict(), f"{folder}/head.pt")
