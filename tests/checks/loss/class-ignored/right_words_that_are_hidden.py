import torch
from torch import nn

torch.manual_seed(0)
VOCABULARY, MASK, UNASKED = 50, 1, 0
model = nn.Sequential(nn.Embedding(VOCABULARY, 16), nn.Linear(16, VOCABULARY))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss(ignore_index=UNASKED)

for _ in range(12):
    tokens = torch.randint(2, VOCABULARY, (16, 12))
    hidden = torch.rand(16, 12) < 0.3
    labels = torch.where(hidden, tokens, UNASKED)  # only words that are hidden are asked for
    logits = model(torch.where(hidden, MASK, tokens))
    loss = criterion(logits.flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
