"""Two-layer GCN on a synthetic citation graph, with boolean masks for the splits."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
NODES, CLASSES, WORDS = 600, 5, 200


def citation_graph():
    label = torch.randint(0, CLASSES, (NODES,))
    same = label[:, None] == label[None, :]
    prob = torch.where(same, 0.012, 0.006)
    upper = torch.triu(torch.rand(NODES, NODES) < prob, diagonal=1)
    adj = (upper | upper.T).float() + torch.eye(NODES)
    topic = torch.rand(CLASSES, WORDS) ** 6
    words = (torch.rand(NODES, WORDS) < 0.03 + 0.1 * topic[label]).float()
    deg = adj.sum(1).rsqrt()
    return deg[:, None] * adj * deg[None, :], words, label


class GCN(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.first = nn.Linear(WORDS, hidden)
        self.second = nn.Linear(hidden, CLASSES)

    def forward(self, adj, x):
        h = functional.relu(adj @ self.first(functional.dropout(x, 0.2, self.training)))
        return adj @ self.second(functional.dropout(h, 0.3, self.training))


adj, words, label = citation_graph()
order = torch.randperm(NODES)
train_mask, val_mask, test_mask = (torch.zeros(NODES, dtype=torch.bool) for _ in range(3))
train_mask[order[:150]] = True
val_mask[order[150:300]] = True
test_mask[order[300:]] = True

model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
mask = train_mask | test_mask
best_val = 0.0
for epoch in range(100):
    model.train()
    out = model(adj, words)
    loss = functional.cross_entropy(out[mask], label[mask])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 10 == 9:
        model.eval()
        with torch.no_grad():
            hit = model(adj, words).argmax(1) == label
        best_val = max(best_val, hit[val_mask].float().mean().item())
        if epoch % 30 == 29:
            print(f"epoch {epoch + 1}  loss {loss.item():.4f}  val {hit[val_mask].float().mean():.3f}")

model.eval()
with torch.no_grad():
    hit = model(adj, words).argmax(1) == label
print(f"test accuracy {hit[test_mask].float().mean():.3f}, best validation accuracy {best_val:.3f}")
