import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)

for _ in range(12):
    state, episode = torch.randn(3), []
    for _ in range(10):
        chances = policy(state).softmax(0)
        action = int(torch.multinomial(chances, 1))
        episode.append((chances[action].log(), float(action == int(state.sum() > 0))))
        state = 0.8 * state + 0.2 * torch.randn(3)
    gain = 0.0
    optimizer.zero_grad()
    for chance, reward in reversed(episode):
        gain = reward + 0.9 * gain
        (-chance * gain).backward()
    optimizer.step()
