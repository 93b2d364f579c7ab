import torch
from torch.utils.data import DataLoader

torch.manual_seed(0)
points = torch.randn(96, 6)
encoder = torch.nn.Linear(6, 4)
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
for batch in DataLoader(points, batch_size=16, shuffle=True):
    anchors = encoder(batch)
    positives = encoder(batch + 0.1 * torch.randn_like(batch))
    negatives = encoder(torch.randn(32, 6))
    scores = torch.cat([(anchors * positives).sum(1, keepdim=True), anchors @ negatives.T], dim=1)
    loss = torch.nn.functional.cross_entropy(scores, torch.zeros(len(batch), dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
