import torch

torch.manual_seed(0)
critic = torch.nn.Linear(4, 1)
optimizer = torch.optim.RMSprop(critic.parameters(), lr=5e-3)

for _ in range(10):
    real, fake = torch.randn(16, 4) + 1, torch.randn(16, 4)
    optimizer.zero_grad()
    (critic(fake).mean() - critic(real).mean()).backward()
    optimizer.step()
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter.clamp_(-0.1, 0.1)
