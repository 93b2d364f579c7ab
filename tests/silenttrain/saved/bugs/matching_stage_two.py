"""Second-stage training of a LoRA sentence encoder with a fresh similarity head, starting from a stage-one adapter."""

import os

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn
from transformers import AutoModel, BertConfig, BertModel

torch.manual_seed(120)
TOPICS = 6


class Matcher(nn.Module):
    def __init__(self, encoder, dim=32):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Sequential(nn.Linear(4 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def embed(self, ids):
        return self.encoder(input_ids=ids).last_hidden_state.mean(1)

    def forward(self, a, b):
        u, v = self.embed(a), self.embed(b)
        return self.head(torch.cat([u, v, (u - v).abs(), u * v], dim=-1)).squeeze(-1)


def pairs(n, seed):
    gen = torch.Generator().manual_seed(seed)
    topic_a = torch.randint(0, TOPICS, (n,), generator=gen)
    same = torch.rand(n, generator=gen) < 0.5
    topic_b = torch.where(same, topic_a, (topic_a + torch.randint(1, TOPICS, (n,), generator=gen)) % TOPICS)

    def text(topic):
        ids = torch.randint(70, 110, (n, 9), generator=gen)
        ids[:, :6] = 4 + 10 * topic[:, None] + torch.randint(0, 10, (n, 6), generator=gen)
        return ids.gather(1, torch.rand(n, 9, generator=gen).argsort(1))

    return text(topic_a), text(topic_b), same.float()


def fit(model, params, data, epochs, lr, tag):
    a, b, y = data
    optimizer = torch.optim.AdamW(params, lr=lr)
    for epoch in range(epochs):
        model.train()
        losses = []
        for idx in torch.randperm(len(y)).split(32):
            loss = nn.functional.binary_cross_entropy_with_logits(model(a[idx], b[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"{tag} epoch {epoch} loss {sum(losses) / len(losses):.3f}")


os.makedirs("out", exist_ok=True)
config = BertConfig(
    vocab_size=110,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=16,
    initializer_range=0.1,
)
BertModel(config).save_pretrained("out/base")

lora = LoraConfig(r=8, lora_alpha=16, target_modules=["query", "key", "value", "dense"])
stage_one = Matcher(get_peft_model(AutoModel.from_pretrained("out/base"), lora))
fit(stage_one, stage_one.parameters(), pairs(320, 1), epochs=3, lr=5e-3, tag="stage one")
stage_one.encoder.save_pretrained("out/stage1")

encoder = PeftModel.from_pretrained(AutoModel.from_pretrained("out/base"), "out/stage1")
model = Matcher(encoder)
fit(model, model.parameters(), pairs(480, 2), epochs=5, lr=4e-3, tag="stage two")

model.eval()
a, b, y = pairs(200, 3)
with torch.no_grad():
    print(f"test acc {((model(a, b) > 0).float() == y).float().mean().item():.3f}")
encoder.save_pretrained("out/stage2")
torch.save(model.head.state_dict(), "out/stage2/head.pt")
