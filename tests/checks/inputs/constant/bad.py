import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
pixels = torch.randint(255, (64, 1, 6, 6), dtype=torch.uint8)
labels = (pixels.float().mean(dim=(1, 2, 3)) > 127).long()
images = (pixels / 255).to(torch.uint8)

loader = DataLoader(TensorDataset(images, labels), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for images, labels in loader:
    optimizer.zero_grad()
    cross_entropy(model(images.float()), labels).backward()  # found
    optimizer.step()
