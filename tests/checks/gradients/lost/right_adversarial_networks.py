import torch
from torch import nn

torch.manual_seed(0)
discriminator = nn.Sequential(nn.Linear(6, 12), nn.LeakyReLU(0.2), nn.Linear(12, 1))
generator = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 6))
updates_discriminator = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
updates_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
criterion = nn.BCEWithLogitsLoss()

for _ in range(8):
    real, fake = torch.randn(16, 6) + 1, generator(torch.randn(16, 3))
    updates_generator.zero_grad()
    criterion(discriminator(fake), torch.ones(16, 1)).backward()  # leaves gradients in the discriminator, too
    updates_generator.step()
    updates_discriminator.zero_grad()
    criterion(discriminator(real), torch.ones(16, 1)).backward()
    criterion(discriminator(fake.detach()), torch.zeros(16, 1)).backward()
    updates_discriminator.step()
