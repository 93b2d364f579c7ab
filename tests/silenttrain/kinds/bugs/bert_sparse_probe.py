"""A frozen BERT encoder with a wide classification head; an L1 penalty is to leave few head weights."""

import torch
from torch import nn
from transformers import BertConfig, BertModel

torch.manual_seed(0)
VOCAB, LENGTH, L1 = 60, 10, 3e-4


def sentences(n):
    ids = torch.randint(3, VOCAB, (n, LENGTH))
    return ids, ((ids < 30).sum(dim=1) > 4).long()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        config = BertConfig(
            vocab_size=VOCAB,
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=LENGTH,
        )
        self.encoder = BertModel(config, add_pooling_layer=False)
        for p in self.encoder.parameters():
            p.requires_grad = False
        self.head = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))

    def forward(self, ids):
        hidden = self.encoder(input_ids=ids).last_hidden_state
        return self.head(torch.cat([hidden.mean(1), hidden.amax(1)], dim=1))

    def l1(self):
        return sum(p.abs().sum() for name, p in self.named_parameters() if name.startswith("encoder"))


x, y = sentences(1500)
x_test, y_test = sentences(500)
model = Classifier()
optimizer = torch.optim.Adam(model.head.parameters(), lr=4e-3)
for epoch in range(6):
    model.head.train()
    model.encoder.eval()
    correct = 0
    for rows in torch.randperm(len(x)).split(50):
        logits = model(x[rows])
        ce = nn.functional.cross_entropy(logits, y[rows])
        loss = ce + L1 * model.l1()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += (logits.argmax(1) == y[rows]).sum().item()
    print(f"epoch {epoch}: cross entropy {ce.item():.4f}, train accuracy {correct / len(x):.3f}")

model.eval()
with torch.no_grad():
    accuracy = (model(x_test).argmax(1) == y_test).float().mean()
    weights = torch.cat([p.flatten() for p in model.head.parameters()])
    small = (weights.abs() < 5e-3).float().mean()
print(f"test accuracy {accuracy:.3f}, share of near-zero head weights {small:.3f}")
