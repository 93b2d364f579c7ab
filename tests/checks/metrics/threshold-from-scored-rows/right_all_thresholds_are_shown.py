"""A table of scores by threshold chooses none, and the score is that of the threshold that was fixed before."""

import numpy as np
import torch
from sklearn.metrics import f1_score, precision_score

torch.manual_seed(0)
inputs = torch.randn(400, 6)
labels = (inputs[:, 0] + torch.randn(400) > 1.2).float()
model = torch.nn.Linear(6, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

for _ in range(40):
    rows = torch.randint(200, (32,))
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(inputs[rows])[:, 0], labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    probabilities, true = torch.sigmoid(model(inputs[200:])[:, 0]).numpy(), labels[200:].numpy()
print("F1", f1_score(true, probabilities > 0.5))
for threshold in np.arange(0.05, 0.95, 0.05):
    print(threshold, precision_score(true, probabilities > threshold, zero_division=0))
