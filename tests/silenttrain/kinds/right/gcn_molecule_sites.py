"""Transductive node classification: all nodes go through the network, only the training mask is in the loss."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(1)
NODES, CLASSES, FEATURES = 500, 4, 32


def build_graph():
    label = torch.randint(0, CLASSES, (NODES,))
    prob = torch.where(label[:, None] == label[None, :], 0.03, 0.003)
    upper = torch.triu(torch.rand(NODES, NODES) < prob, diagonal=1)
    adj = (upper | upper.T).float() + torch.eye(NODES)
    centre = torch.randn(CLASSES, FEATURES)
    x = 0.4 * centre[label] + torch.randn(NODES, FEATURES)
    return adj / adj.sum(1, keepdim=True), x, label


class SageNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.own1, self.near1 = nn.Linear(FEATURES, hidden), nn.Linear(FEATURES, hidden)
        self.own2, self.near2 = nn.Linear(hidden, CLASSES), nn.Linear(hidden, CLASSES)

    def forward(self, adj, x):
        h = functional.relu(self.own1(x) + self.near1(adj @ x))
        h = functional.dropout(h, 0.4, self.training)
        return self.own2(h) + self.near2(adj @ h)


adj, x, label = build_graph()
kind = torch.rand(NODES)
masks = {"train": kind < 0.3, "val": (kind >= 0.3) & (kind < 0.5), "test": kind >= 0.5}
assert sum(m.sum() for m in masks.values()) == NODES

net = SageNet()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=1e-3)
best, best_state = 0.0, None
for epoch in range(80):
    net.train()
    logits = net(adj, x)
    loss = functional.cross_entropy(logits[masks["train"]], label[masks["train"]])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    net.eval()
    with torch.no_grad():
        hit = net(adj, x).argmax(1) == label
    val = hit[masks["val"]].float().mean().item()
    if val > best:
        best, best_state = val, {k: v.clone() for k, v in net.state_dict().items()}
    if epoch % 20 == 19:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, val {val:.3f}")

net.load_state_dict(best_state)
net.eval()
with torch.no_grad():
    hit = net(adj, x).argmax(1) == label
print(f"best val {best:.3f}, test {hit[masks['test']].float().mean():.3f}")
