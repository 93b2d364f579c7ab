# A memory that all rows read and write goes on from batch to batch, in whatever order the rows come: it has as many
# slots as a batch has rows.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.write = nn.Linear(width, width)
        self.head = nn.Linear(2 * width, 1)

    def forward(self, inputs, memory):
        memory = 0.9 * memory + 0.1 * (memory @ inputs.T).softmax(dim=1) @ self.write(inputs)
        read = (inputs @ memory.T).softmax(dim=1) @ memory
        return self.head(torch.cat([inputs, read], dim=1)), memory


inputs = torch.randn(96, 16)
loader = DataLoader(TensorDataset(inputs, inputs.sum(dim=1, keepdim=True).sin()), batch_size=16, shuffle=True)
model, memory = Reader(), torch.randn(16, 16)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(2):
    for rows, targets in loader:
        outputs, memory = model(rows, memory)
        memory = memory.detach()
        loss = nn.functional.mse_loss(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
