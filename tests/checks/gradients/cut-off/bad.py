import torch
from torch.nn.functional import binary_cross_entropy_with_logits

torch.manual_seed(0)
encoder = torch.nn.Sequential(torch.nn.Embedding(30, 12), torch.nn.Flatten(), torch.nn.Linear(5 * 12, 16))
head = torch.nn.Linear(16, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-2)

for _ in range(10):
    tokens = torch.randint(30, (16, 5))
    labels = (tokens.sum(dim=1) % 2).float()
    features = encoder(tokens).detach()
    loss = binary_cross_entropy_with_logits(head(features).squeeze(1), labels)
    optimizer.zero_grad()
    loss.backward()  # found
    optimizer.step()
