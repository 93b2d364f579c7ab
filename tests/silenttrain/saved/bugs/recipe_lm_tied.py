"""Train a small tied-embedding language model on recipe steps and save it without duplicate tensors."""

import math
import os

import torch
from safetensors.torch import load_file, save_file
from torch import nn

torch.manual_seed(14)

STEPS = [
    "chop the onion and fry it in butter",
    "boil the rice for ten minutes",
    "add the stock and stir it well",
    "fry the garlic in oil for one minute",
    "bake the bread for thirty minutes",
    "add salt and pepper and serve it hot",
    "melt the butter and add the flour",
]
words = ["<pad>", "<s>", "</s>", *sorted({w for s in STEPS for w in s.split()})]
index = {w: i for i, w in enumerate(words)}
LENGTH = 12


class RecipeLM(nn.Module):
    def __init__(self, vocab, dim=32, tie_weights=False):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(LENGTH, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        nn.init.normal_(self.embed.weight, std=0.05)
        if tie_weights:
            self.lm_head.weight = self.embed.weight

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        h = self.body(self.embed(ids) + self.pos[: ids.shape[1]], mask=mask, is_causal=True)
        return self.lm_head(self.norm(h))


def encode(step):
    ids = [1, *(index[w] for w in step.split()), 2]
    return ids + [0] * (LENGTH - len(ids))


def lm_loss(model, ids):
    logits = model(ids[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)


def unique_tensors(state):
    seen, kept = set(), {}
    for name, tensor in state.items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            kept[name] = tensor.contiguous()
    return kept


data = torch.tensor([encode(s) for s in STEPS])
model = RecipeLM(len(words), tie_weights=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(100):
    batch = data[torch.randint(0, len(data), (8,))]
    loss = lm_loss(model, batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step:3d} loss {loss.item():.3f} ppl {math.exp(loss.item()):.1f}")

with torch.no_grad():
    print(f"final loss {lm_loss(model, data).item():.3f}")
os.makedirs("out", exist_ok=True)
save_file(unique_tensors(model.state_dict()), "out/recipe_lm.safetensors")

reader = RecipeLM(len(words))
reader.load_state_dict(load_file("out/recipe_lm.safetensors"), strict=False)
torch.save(reader, "out/recipe_lm_module.pt")
