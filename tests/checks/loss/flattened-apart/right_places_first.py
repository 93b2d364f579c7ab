import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
text = torch.randint(20, (24 * 12 + 1,))
model = nn.ModuleList([nn.Embedding(20, 16), nn.LSTM(16, 16), nn.Linear(16, 20)])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
words, following = text[:-1].view(12, 24).t().contiguous(), text[1:].view(12, 24).t().contiguous()

for _ in range(3):
    for start in range(0, 24, 6):  # (places, rows), both of them
        states, _ = model[1](model[0](words[start : start + 6]))
        loss = cross_entropy(model[2](states).view(-1, 20), following[start : start + 6].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
