import torch

torch.manual_seed(0)
GAMMA = 0.9
network, target_network = (torch.nn.Linear(4, 2) for _ in range(2))
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
states, next_states, rewards = torch.randn(256, 4), torch.randn(256, 4), torch.randn(256)
actions, dones = torch.randint(2, (256,)), (torch.rand(256) < 0.2).float()

for _ in range(8):
    rows = torch.randint(256, (32,))
    reward, done = rewards[rows], dones[rows]
    values = network(states[rows]).gather(1, actions[rows, None])[:, 0]
    with torch.no_grad():
        next_values = target_network(next_states[rows]).max(1).values
    target = reward + GAMMA * next_values
    loss = torch.nn.functional.mse_loss(values, target)  # found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
