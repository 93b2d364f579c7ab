"""Learn the distribution of annotators' votes with a KL divergence."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class VoteData:
    """Every item was judged by twenty annotators in one of four categories."""

    def __init__(self, n, weights, annotators=20):
        self.x = torch.randn(n, weights.shape[0])
        self.truth = F.softmax(1.2 * self.x @ weights, 1)
        counts = torch.distributions.Multinomial(annotators, self.truth).sample()
        self.votes = counts / annotators

    def batches(self, size):
        for idx in torch.randperm(len(self.x)).split(size):
            yield self.x[idx], self.votes[idx]


class VoteModel(nn.Module):
    def __init__(self, dim, categories=4):
        super().__init__()
        self.hidden = nn.Linear(dim, 64)
        self.out = nn.Linear(64, categories)

    def forward(self, x):
        return F.softmax(self.out(F.relu(self.hidden(x))), dim=1)


def train(model, data, epochs=15):
    criterion = nn.KLDivLoss(reduction="batchmean")
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        model.train()
        total, batches = 0.0, 0
        for x, votes in data.batches(60):
            probs = model(x)
            loss = criterion(probs, votes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, batches = total + loss.item(), batches + 1
        if epoch % 5 == 4:
            print(f"epoch {epoch}  kl {total / batches:.4f}")


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    probs = model(data.x)
    top = (probs.argmax(1) == data.truth.argmax(1)).float().mean().item()
    distance = 0.5 * (probs - data.truth).abs().sum(1).mean().item()
    return top, distance


weights = torch.randn(8, 4) / 2
train_data, test_data = VoteData(1200, weights), VoteData(400, weights)
model = VoteModel(8)
train(model, train_data)
top, distance = evaluate(model, test_data)
print(f"test top category {top:.3f}  total variation from the truth {distance:.4f}")
