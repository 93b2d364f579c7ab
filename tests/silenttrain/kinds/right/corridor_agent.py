"""A recurrent policy learns to remember a cue in a corridor (REINFORCE, vectorised)."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
N_ENVS, ROLLOUT, HIDDEN = 64, 24, 24


class Corridors:
    """A cue is shown in the first step; the last step must answer with it."""

    def __init__(self, n):
        self.n = n
        self.t = np.zeros(n, dtype=int)
        self.length = rng.integers(3, 7, size=n)
        self.cue = rng.integers(2, size=n)

    def observe(self):
        obs = np.zeros((self.n, 4), dtype=np.float32)
        obs[np.arange(self.n), self.cue] = self.t == 0
        obs[:, 2] = self.t == self.length - 1
        obs[:, 3] = 1.0
        return torch.from_numpy(obs)

    def step(self, action):
        done = self.t == self.length - 1
        reward = np.where(done, np.where(action == self.cue, 1.0, -1.0), 0.0)
        self.t = np.where(done, 0, self.t + 1)
        k = int(done.sum())
        self.length[done] = rng.integers(3, 7, size=k)
        self.cue[done] = rng.integers(2, size=k)
        return torch.tensor(reward, dtype=torch.float32), torch.from_numpy(done)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, HIDDEN)
        self.pi = nn.Linear(HIDDEN, 2)

    def forward(self, obs, h):
        h = self.cell(obs, h)
        return torch.distributions.Categorical(logits=self.pi(h)), h


def returns_from(rewards, dones, gamma=0.95):
    out, run = [], torch.zeros(N_ENVS)
    for r, d in zip(reversed(rewards), reversed(dones)):
        run = r + gamma * run * (~d).float()
        out.append(run)
    return torch.stack(out[::-1])


def main():
    env, policy = Corridors(N_ENVS), Policy()
    opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
    h = torch.zeros(N_ENVS, HIDDEN)
    history = []
    for update in range(150):
        h = h.detach()
        logps, rewards, dones, ents = [], [], [], []
        for _ in range(ROLLOUT):
            dist, h = policy.forward(env.observe(), h)
            action = dist.sample()
            reward, done = env.step(action.numpy())
            h = h * (~done).float().unsqueeze(1)
            logps.append(dist.log_prob(action))
            ents.append(dist.entropy())
            rewards.append(reward)
            dones.append(done)
        ret = returns_from(rewards, dones)
        adv = (ret - ret.mean()) / (ret.std() + 1e-6)
        loss = -(torch.stack(logps) * adv).mean() - 0.01 * torch.stack(ents).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt.step()
        finished = torch.stack(dones)
        history.append((torch.stack(rewards)[finished] > 0).float().mean().item())
        if (update + 1) % 30 == 0:
            print(f"update {update + 1}: success rate of the last 10 rollouts {np.mean(history[-10:]):.3f}")
    print(f"final success rate {np.mean(history[-10:]):.3f}")


if __name__ == "__main__":
    main()
