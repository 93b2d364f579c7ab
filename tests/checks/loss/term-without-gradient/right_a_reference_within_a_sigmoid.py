import copy

import torch
from torch import nn
from torch.nn.functional import logsigmoid

torch.manual_seed(0)
policy = nn.Linear(6, 1)
reference = copy.deepcopy(policy)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

for _ in range(20):
    chosen, rejected = torch.randn(6) + 1, torch.randn(6)
    with torch.no_grad():
        expected = (reference(chosen) - reference(rejected)).squeeze()
    margin = (policy(chosen) - policy(rejected)).squeeze()
    loss = -logsigmoid(0.1 * (margin - expected))  # the difference decides how steep it is
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
