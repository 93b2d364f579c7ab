import copy

import torch
from torch import nn

torch.manual_seed(0)
server = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))
inputs = torch.randn(96, 8)
labels = inputs[:, :3].argmax(dim=1)

for _ in range(3):
    average = server.state_dict()
    clients = [copy.deepcopy(server) for _ in range(2)]
    for number, client in enumerate(clients):
        optimizer = torch.optim.SGD(client.parameters(), lr=0.1)
        for rows in range(48 * number, 48 * number + 48, 16):
            optimizer.zero_grad()
            nn.functional.cross_entropy(client(inputs[rows : rows + 16]), labels[rows : rows + 16]).backward()
            optimizer.step()
    states = [client.state_dict() for client in clients]
    for name, values in average.items():
        values.copy_(sum(state[name] for state in states) / len(states))
    server.load_state_dict(average)
    print((server(inputs).argmax(dim=1) == labels).float().mean().item())
