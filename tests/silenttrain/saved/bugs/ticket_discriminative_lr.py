"""Fine-tune a BERT encoder on support tickets with a lower learning rate for the encoder than for the head."""

import os

import torch
from torch import nn
from transformers import AutoModel, BertConfig, BertModel

torch.manual_seed(31)
QUEUES = 5


class TicketClassifier(nn.Module):
    def __init__(self, encoder_dir, queues):
        super().__init__()
        self.encoder = AutoModel.from_pretrained(encoder_dir, add_pooling_layer=False)
        hidden = self.encoder.config.hidden_size
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, queues))

    def encode(self, input_ids, attention_mask):
        with torch.no_grad():
            states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).float()
        return (states * mask).sum(1) / mask.sum(1)

    def forward(self, input_ids, attention_mask):
        return self.head(self.dropout(self.encode(input_ids, attention_mask)))


def tickets(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, QUEUES, (n,), generator=gen)
    topic = 10 + y[:, None] * 12 + torch.randint(0, 12, (n, 5), generator=gen)
    filler = torch.randint(70, 150, (n, 9), generator=gen)
    ids = torch.cat([torch.full((n, 1), 2), topic, filler], dim=1)
    mask = torch.ones_like(ids)
    mask[:, -3:] = (torch.rand(n, 1, generator=gen) > 0.5).long()
    return ids * mask, mask, y


os.makedirs("out", exist_ok=True)
config = BertConfig(
    vocab_size=150,
    hidden_size=48,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=32,
)
BertModel(config).save_pretrained("out/encoder_base")

model = TicketClassifier("out/encoder_base", QUEUES)
optimizer = torch.optim.AdamW(
    [
        {"params": model.encoder.parameters(), "lr": 5e-4},
        {"params": model.head.parameters(), "lr": 5e-3},
    ],
    weight_decay=0.0,
)

ids, mask, labels = tickets(480, 1)
test_ids, test_mask, test_labels = tickets(200, 2)
for epoch in range(6):
    model.train()
    losses = []
    for idx in torch.randperm(len(ids)).split(32):
        loss = nn.functional.cross_entropy(model(ids[idx], mask[idx]), labels[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        acc = (model(test_ids, test_mask).argmax(-1) == test_labels).float().mean().item()
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} acc {acc:.3f}")

torch.save(model.state_dict(), "out/tickets.pt")
