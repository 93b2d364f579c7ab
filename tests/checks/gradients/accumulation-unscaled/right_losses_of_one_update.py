import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(96, 6)), batch_size=16, shuffle=True)
body, heads = nn.Linear(6, 8), nn.ModuleList([nn.Linear(8, 2), nn.Linear(8, 3)])
discriminator = nn.Linear(6, 1)
of_heads = torch.optim.Adam([*body.parameters(), *heads.parameters()], lr=1e-3)
of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=1e-3)

for _ in range(2):
    for (inputs,) in loader:
        of_heads.zero_grad()
        for head in heads:
            classes = torch.randint(head.out_features, (len(inputs),))
            nn.functional.cross_entropy(head(torch.relu(body(inputs))), classes).backward()
        of_heads.step()
        of_discriminator.zero_grad()
        for rows, real in ((inputs, 1.0), (torch.rand_like(inputs), 0.0)):
            logits = discriminator(rows)
            nn.functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, real)).backward()
        of_discriminator.step()
