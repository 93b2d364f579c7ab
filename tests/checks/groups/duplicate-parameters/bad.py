import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
embedding, recurrent, decoder = nn.Embedding(40, 16), nn.GRU(16, 16, batch_first=True), nn.Linear(16, 40)
decoder.weight = embedding.weight  # tied, as in most language models
optimizer = torch.optim.Adam(  # found
    [*embedding.parameters(), *recurrent.parameters(), *decoder.parameters()],
    lr=1e-3,
)

for _ in range(10):
    tokens = torch.randint(40, (8, 13))
    hidden, _ = recurrent(embedding(tokens[:, :-1]))
    loss = cross_entropy(decoder(hidden).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
