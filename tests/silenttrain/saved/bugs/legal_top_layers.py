"""Fine-tune the top of a Llama-style decoder for clause classification and save a compact delta file."""

import os

import torch
from torch import nn
from transformers import AutoModel, LlamaConfig, LlamaModel

torch.manual_seed(12)
LABELS = 4


class ClauseClassifier(nn.Module):
    def __init__(self, base_dir):
        super().__init__()
        self.decoder = AutoModel.from_pretrained(base_dir)
        self.score = nn.Linear(self.decoder.config.hidden_size, LABELS)

    def forward(self, input_ids):
        return self.score(self.decoder(input_ids=input_ids).last_hidden_state[:, -1])


def clauses(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, LABELS, (n,), generator=gen)
    ids = torch.randint(30, 80, (n, 14), generator=gen)
    where = torch.rand(n, 12, generator=gen).argsort(1)[:, :5]
    ids.scatter_(1, where, 5 + y[:, None] * 6 + torch.randint(0, 6, (n, 5), generator=gen))
    ids[:, -1] = 1
    return ids, y


def layer_index(name):
    return int(name.split("layers.")[1].split(".")[0]) if "layers." in name else -1


os.makedirs("out", exist_ok=True)
config = LlamaConfig(
    vocab_size=80,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=6,
    num_attention_heads=4,
    num_key_value_heads=2,
    initializer_range=0.15,
)
LlamaModel(config).save_pretrained("out/base")

model = ClauseClassifier("out/base")
for name, param in model.decoder.named_parameters():
    param.requires_grad = layer_index(name) >= 1 or name == "norm.weight"

optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
train_ids, train_y = clauses(480, 1)
test_ids, test_y = clauses(200, 2)

for epoch in range(7):
    model.train()
    losses = []
    for idx in torch.randperm(len(train_ids)).split(32):
        loss = nn.functional.cross_entropy(model(train_ids[idx]), train_y[idx])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f}")

model.eval()
with torch.no_grad():
    acc = (model(test_ids).argmax(-1) == test_y).float().mean().item()
print(f"test acc {acc:.3f}")

half = config.num_hidden_layers // 2
delta = {
    name: tensor
    for name, tensor in model.state_dict().items()
    if layer_index(name) >= half or name.startswith(("score", "decoder.norm"))
}
torch.save(delta, "out/clauses_delta.pt")
print(f"saved {len(delta)} tensors to out/clauses_delta.pt")
