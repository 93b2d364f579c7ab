# The forward scales what it is given in place: asked again with the same tensor it would be given other numbers.
import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, pixels):
        return self.layers(pixels.div_(255))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(6):
    pixels, labels = 255 * torch.rand(32, 8), torch.randint(2, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(pixels), labels).backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    pixels, labels = torch.full((32, 8), 255.0), torch.randint(2, (32,))
    print("accuracy", (model(pixels).argmax(dim=1) == labels).float().mean().item())
    assert (pixels == 1).all(), "written to once, and by nobody else"
