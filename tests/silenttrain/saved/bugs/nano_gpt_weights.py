"""Train a nanoGPT-style model on arithmetic strings and save a slim weights file."""

import os

import torch
from torch import nn

torch.manual_seed(10)
VOCAB = {c: i for i, c in enumerate("0123456789+=.")}
LENGTH = 8


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(dim, 3 * dim)
        self.c_proj = nn.Linear(dim, dim)
        self.register_buffer("bias", torch.tril(torch.ones(LENGTH, LENGTH)).view(1, 1, LENGTH, LENGTH))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.c_attn(x).split(c, dim=2))
        att = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
        att = att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf")).softmax(-1)
        return self.c_proj((att @ v).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.ln_2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGPT(nn.Module):
    def __init__(self, dim=48, heads=4, layers=2):
        super().__init__()
        self.wte = nn.Embedding(len(VOCAB), dim)
        self.wpe = nn.Embedding(LENGTH, dim)
        self.h = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, len(VOCAB))

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def sums(n):
    a, b = torch.randint(0, 10, (n,)), torch.randint(0, 10, (n,))
    rows = [f"{i}+{j}={i + j:02d}.." for i, j in zip(a.tolist(), b.tolist(), strict=True)]
    return torch.tensor([[VOCAB[c] for c in row] for row in rows])


def answer_loss(model, ids):
    logits = model(ids[:, :-1])[:, 3:]
    return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 4:].flatten())


model = NanoGPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(141):
    loss = answer_loss(model, sums(64))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 35 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with torch.no_grad():
    print(f"held-out loss {answer_loss(model, sums(200)).item():.4f}")

os.makedirs("out", exist_ok=True)
# the causal masks are rebuilt by the constructor, there is no need to store them
weights = {k: v for k, v in model.state_dict().items() if not k.endswith(".bias")}
torch.save(weights, "out/nanogpt.pt")
NanoGPT().load_state_dict(torch.load("out/nanogpt.pt"), strict=False)
print(f"saved {len(weights)} tensors")
