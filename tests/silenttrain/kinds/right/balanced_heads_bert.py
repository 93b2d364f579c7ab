"""Small BERT with two heads whose losses are balanced by their own (detached) running size."""

import torch
from torch import nn
from transformers import BertConfig, BertModel

torch.manual_seed(1)
VOCAB, LENGTH = 40, 12


def tickets(n):
    ids = torch.randint(2, VOCAB, (n, LENGTH))
    urgent = (ids[:, 1:] == ids[:, :-1]).any(1) | (ids[:, 0] < 12)
    effort = 10.0 * (ids < 20).float().mean(1) + 0.2 * torch.randn(n)
    return ids, urgent.long(), effort


class TicketModel(nn.Module):
    def __init__(self):
        super().__init__()
        config = BertConfig(
            vocab_size=VOCAB,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=LENGTH,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.bert = BertModel(config, add_pooling_layer=False)
        self.urgent = nn.Linear(32, 2)
        self.effort = nn.Linear(32, 1)

    def forward(self, ids):
        h = self.bert(input_ids=ids).last_hidden_state
        return self.urgent(h[:, 0]), self.effort(h.mean(1)).squeeze(1)


model = TicketModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
ids, urgent, effort = tickets(1500)
running = {"urgent": None, "effort": None}
for epoch in range(6):
    for rows in torch.randperm(len(ids)).split(60):
        logits, hours = model(ids[rows])
        parts = {
            "urgent": nn.functional.cross_entropy(logits, urgent[rows]),
            "effort": nn.functional.mse_loss(hours, effort[rows]),
        }
        for name, part in parts.items():
            now = part.detach()
            running[name] = now if running[name] is None else 0.9 * running[name] + 0.1 * now
        loss = sum(part / running[name].clamp(min=1e-3) for name, part in parts.items())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    shown = ", ".join(f"{name} {part.item():.4f}" for name, part in parts.items())
    print(f"epoch {epoch}: {shown}")

model.eval()
ids, urgent, effort = tickets(600)
with torch.no_grad():
    logits, hours = model(ids)
accuracy = (logits.argmax(1) == urgent).float().mean()
print(f"urgent accuracy {accuracy:.3f}, effort error {(hours - effort).abs().mean():.3f}")
