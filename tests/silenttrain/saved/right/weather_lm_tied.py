"""Train a tied-embedding weather language model and store the shared matrix once."""

import os

import torch
from safetensors.torch import load_file, save_file
from torch import nn

torch.manual_seed(233)
SENTENCES = [
    "rain in the north and sun in the south",
    "snow on the hills and fog in the valley",
    "strong wind at the coast in the evening",
    "sun all day and warm in the evening",
    "fog in the morning and rain at night",
]
words = ["<pad>", "<s>", "</s>", *sorted({w for s in SENTENCES for w in s.split()})]
index = {w: i for i, w in enumerate(words)}
LENGTH = 12


class WeatherLM(nn.Module):
    def __init__(self, vocab, dim=40):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        nn.init.normal_(self.embed.weight, std=0.05)
        self.rnn = nn.GRU(dim, dim, num_layers=2, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.tie()

    def tie(self):
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.norm(self.rnn(self.embed(ids))[0]))


def lm_loss(model, ids):
    logits = model(ids[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)


def encode(sentence):
    ids = [1, *(index[w] for w in sentence.split()), 2]
    return ids + [0] * (LENGTH - len(ids))


data = torch.tensor([encode(s) for s in SENTENCES])
model = WeatherLM(len(words))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(120):
    loss = lm_loss(model, data[torch.randint(0, len(data), (8,))])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step} loss {loss.item():.3f}")

os.makedirs("out", exist_ok=True)
state = {k: v.contiguous() for k, v in model.state_dict().items() if k != "head.weight"}
save_file(state, "out/weather_lm.safetensors")

reader = WeatherLM(len(words))
missing, unexpected = reader.load_state_dict(load_file("out/weather_lm.safetensors"), strict=False)
assert missing == ["head.weight"]
assert not unexpected
reader.tie()
with torch.no_grad():
    print(f"trained loss {lm_loss(model, data).item():.4f}, reloaded loss {lm_loss(reader, data).item():.4f}")
