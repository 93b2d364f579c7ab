import torch
from torch import nn
from torch.nn.functional import ctc_loss

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _ in range(20):
    lengths = torch.randint(1, 5, (8,))
    words = torch.randint(1, 5, (8, 4)) * (torch.arange(4) < lengths[:, None])
    sound = nn.functional.one_hot(words.repeat_interleave(3, 1), 5).float()
    logarithms = model(sound).log_softmax(2).transpose(0, 1)
    loss = ctc_loss(logarithms, words, torch.full((8,), 12), lengths, zero_infinity=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
