"""Graph convolution for node classification on a synthetic citation graph."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class GCN(nn.Module):
    def __init__(self, dim, hidden, classes):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden)
        self.w2 = nn.Linear(hidden, classes)
        self.drop = nn.Dropout(0.2)

    def forward(self, x, adj):
        h = F.relu(adj @ self.w1(x))
        return adj @ self.w2(self.drop(h))


class CitationGraph:
    def __init__(self, n=400, dim=60, classes=4, p_in=0.012, p_out=0.006):
        self.y = torch.randint(classes, (n,))
        same = self.y[:, None] == self.y[None]
        upper = torch.rand(n, n) < torch.where(same, p_in, p_out)
        a = upper.triu(1).float()
        a = a + a.T + torch.eye(n)
        d = a.sum(1).rsqrt()
        self.adj = d[:, None] * a * d[None]
        self.x = 0.22 * torch.randn(classes, dim)[self.y] + torch.randn(n, dim)
        order = torch.randperm(n)
        self.train_mask, self.test_mask = torch.zeros(n, dtype=torch.bool), torch.zeros(n, dtype=torch.bool)
        self.train_mask[order[:120]] = True
        self.test_mask[order[200:]] = True


class NodeTrainer:
    def __init__(self, model, graph, lr=0.01, weight_decay=5e-4):
        self.model, self.g = model, graph
        self.opt = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)

    def train_epoch(self):
        self.model.train()
        out = self.model(self.g.x, self.g.adj)
        loss = F.cross_entropy(out, self.g.y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    @torch.no_grad()
    def accuracy(self, mask):
        self.model.eval()
        pred = self.model(self.g.x, self.g.adj).argmax(1)
        return (pred[mask] == self.g.y[mask]).float().mean().item()


torch.manual_seed(0)
graph = CitationGraph()
trainer = NodeTrainer(GCN(60, 32, 4), graph)
for epoch in range(100):
    loss = trainer.train_epoch()
    if epoch % 20 == 0:
        print(f"epoch {epoch} loss {loss:.4f} train accuracy {trainer.accuracy(graph.train_mask):.3f}")
print(f"test accuracy {trainer.accuracy(graph.test_mask):.3f}")
