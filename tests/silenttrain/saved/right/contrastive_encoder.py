"""Contrastive training of a sentence encoder; the projection head is only needed during training."""

import os

import torch
from torch import nn
from transformers import AutoModel, BertConfig, BertModel

torch.manual_seed(203)
TOPICS = 12


class ContrastiveModel(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        dim = encoder.config.hidden_size
        self.projection = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 16))

    def forward(self, ids):
        pooled = self.encoder(input_ids=ids).last_hidden_state.mean(1)
        return nn.functional.normalize(self.projection(pooled), dim=-1)


def sentence(topic, gen):
    ids = torch.randint(80, 120, (len(topic), 10), generator=gen)
    ids[:, :4] = 5 + 6 * topic[:, None] + torch.randint(0, 6, (len(topic), 4), generator=gen)
    return ids.gather(1, torch.rand(ids.shape, generator=gen).argsort(1))


def pair_batch(n, gen):
    topic = torch.randint(0, TOPICS, (n,), generator=gen)
    return sentence(topic, gen), sentence(topic, gen), topic


def retrieval_accuracy(encoder):
    """Share of queries whose nearest neighbour is about the same topic."""
    gen = torch.Generator().manual_seed(77)
    query, document, topic = pair_batch(150, gen)
    encoder.eval()
    with torch.no_grad():
        q = nn.functional.normalize(encoder(input_ids=query).last_hidden_state.mean(1), dim=-1)
        d = nn.functional.normalize(encoder(input_ids=document).last_hidden_state.mean(1), dim=-1)
    return (topic[(q @ d.T).argmax(1)] == topic).float().mean().item()


os.makedirs("out", exist_ok=True)
config = BertConfig(
    vocab_size=120,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=16,
)
BertModel(config, add_pooling_layer=False).save_pretrained("out/base")
model = ContrastiveModel(AutoModel.from_pretrained("out/base", add_pooling_layer=False))
print(f"before training: retrieval {retrieval_accuracy(model.encoder):.3f}")

optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
gen = torch.Generator().manual_seed(5)
for step in range(100):
    model.train()
    left, right, topic = pair_batch(32, gen)
    similarity = model(left) @ model(right).T / 0.1
    target = (topic[:, None] == topic[None]).float()
    target = target / target.sum(1, keepdim=True)
    loss = nn.functional.cross_entropy(similarity, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.3f}")

print(f"after training: retrieval {retrieval_accuracy(model.encoder):.3f}")
model.encoder.save_pretrained("out/sentence_encoder")
reloaded = AutoModel.from_pretrained("out/sentence_encoder", add_pooling_layer=False)
print(f"reloaded encoder: retrieval {retrieval_accuracy(reloaded):.3f}")
