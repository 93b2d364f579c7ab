import torch
from torch.nn.functional import mse_loss
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
model = torch.nn.ModuleDict({"actor": torch.nn.Linear(8, 3), "critic": torch.nn.Linear(8, 1)})
actor = torch.optim.Adam(model["actor"].parameters(), lr=1e-2)
critic = torch.optim.Adam(model["critic"].parameters(), lr=1e-2)

for _ in range(10):
    states, actions = torch.randn(32, 8), torch.randint(3, (32, 1))
    rewards, values = states[:, :1], model["critic"](states)
    chosen = model["actor"](states).log_softmax(dim=1).gather(1, actions)
    actor.zero_grad()
    (-chosen * (rewards - values).detach()).mean().backward()
    clip_grad_norm_(model.parameters(), 0.5)
    actor.step()
    actor.zero_grad()
    critic.zero_grad()
    mse_loss(values, rewards).backward()
    clip_grad_norm_(model.parameters(), 0.5)
    critic.step()
    critic.zero_grad()
