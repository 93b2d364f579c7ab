"""Transductive node classification: every node goes through, a few carry labels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)
n, classes = 500, 3
y = torch.randint(classes, (n,))
p = torch.where(y[:, None] == y[None, :], torch.tensor(0.04), torch.tensor(0.006))
edges = torch.triu(torch.rand(n, n) < p, 1).float()
adj = edges + edges.T + torch.eye(n)
adj = adj / adj.sum(1, keepdim=True)
x = torch.randn(n, 20)
x[:, :classes] += 0.8 * F.one_hot(y, classes)

order = torch.randperm(n)
train_nodes, test_nodes = order[:60], order[200:]

encode = nn.Linear(20, 32)
decode = nn.Linear(32 + classes, classes)
optimizer = torch.optim.Adam([*encode.parameters(), *decode.parameters()], lr=0.01, weight_decay=1e-3)


def forward(known):
    """Labels of known nodes are inputs too and travel along the edges."""
    label_input = torch.zeros(n, classes)
    label_input[known] = F.one_hot(y[known], classes).float()
    h = F.relu(adj @ encode(x))
    return adj @ decode(torch.cat([adj @ h, adj @ label_input], 1))


for epoch in range(120):
    # half of the labelled nodes give their label, the loss is on the other half
    shuffled = train_nodes[torch.randperm(len(train_nodes))]
    given, asked = shuffled[:30], shuffled[30:]
    out = forward(given)
    loss = F.cross_entropy(out[asked], y[asked])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 30 == 29:
        print(f"epoch {epoch:3d}  loss on {len(asked)} nodes {loss.item():.4f}")

with torch.no_grad():
    # at test time all training labels may be given
    pred = forward(train_nodes).argmax(1)
acc = (pred[test_nodes] == y[test_nodes]).float().mean().item()
print(f"test accuracy {acc:.3f} over {len(test_nodes)} unlabelled nodes")
