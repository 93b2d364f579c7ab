import torch
from torch.nn.functional import cross_entropy

VOCAB = 20


class TwoAhead(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(VOCAB, 16)
        self.rnn = torch.nn.GRU(16, 16, batch_first=True)
        self.next, self.after_next = torch.nn.Linear(16, VOCAB), torch.nn.Linear(16, VOCAB)

    def forward(self, tokens):
        states = self.rnn(self.words(tokens))[0]
        return self.next(states), self.after_next(states)


torch.manual_seed(0)
model = TwoAhead()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(6):
    tokens = torch.randint(VOCAB, (8, 12))
    one, two = model(tokens)
    loss = cross_entropy(one[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    loss = loss + 0.3 * cross_entropy(two[:, :-2].flatten(0, 1), tokens[:, 2:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
