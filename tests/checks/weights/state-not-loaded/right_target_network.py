import torch
from torch import nn

torch.manual_seed(0)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.values = nn.Linear(4, 16), nn.Linear(16, 2)

    def forward(self, states):
        return self.values(torch.relu(self.hidden(states)))


def learn(critic, updates=24):
    target = Critic()
    target.load_state_dict(critic.state_dict())
    optimizer = torch.optim.AdamW(critic.parameters(), lr=1e-3)
    for update in range(1, updates + 1):
        states, actions = torch.randn(32, 4), torch.randint(2, (32, 1))
        with torch.no_grad():
            goal = states.sum(dim=1) + 0.9 * target(states.roll(1, 0)).max(dim=1).values
        optimizer.zero_grad()
        nn.functional.smooth_l1_loss(critic(states).gather(1, actions).squeeze(1), goal).backward()
        optimizer.step()
        if update % 6 == 0:
            target.load_state_dict(critic.state_dict())


critic = Critic()
learn(critic)
print(critic(torch.randn(1, 4)).argmax(dim=1).item())
torch.save(critic.state_dict(), "critic.pt")

restored = Critic()
print(restored.load_state_dict(torch.load("critic.pt")))
