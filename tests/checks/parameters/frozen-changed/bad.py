import torch
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
encoder, head = torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)
model = torch.nn.Sequential(encoder, torch.nn.ReLU(), head)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

for update in range(8):
    if update == 4:
        encoder.requires_grad_(False)  # from here on only the head
    inputs = torch.randn(16, 8)
    loss = cross_entropy(model(inputs), inputs[:, :3].argmax(dim=1))
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()  # found
