"""Distil a small BERT into a smaller one on made-up reviews."""

import torch
from torch import nn
from torch.nn import functional
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
VOCAB, LENGTH, TEMP = 120, 12, 1.0


def make_reviews(n):
    tokens = torch.randint(5, VOCAB, (n, LENGTH))
    tokens[:, 0] = 1
    score = ((tokens > 5) & (tokens < 45)).sum(1) - ((tokens > 80) & (tokens < 120)).sum(1)
    return tokens, (score > 0).long()


def bert(hidden, layers, dropout):
    cfg = BertConfig(
        vocab_size=VOCAB,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * hidden,
        max_position_embeddings=LENGTH,
        num_labels=2,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    return BertForSequenceClassification(cfg)


class Distiller(nn.Module):
    def __init__(self, teacher, student):
        super().__init__()
        self.teacher = teacher.requires_grad_(False)
        self.student = student

    def forward(self, ids):
        with torch.no_grad():
            soft = functional.softmax(self.teacher(input_ids=ids).logits / TEMP, dim=1)
        log_p = functional.log_softmax(self.student(input_ids=ids).logits / TEMP, dim=1)
        return functional.kl_div(log_p, soft, reduction="batchmean") * TEMP**2


x, y = make_reviews(960)
x_test, y_test = make_reviews(600)

teacher = bert(32, 2, 0.3)
opt = torch.optim.AdamW(teacher.parameters(), lr=3e-3)
for _ in range(80):
    rows = torch.randint(0, len(x), (48,))
    loss = teacher(input_ids=x[rows], labels=y[rows]).loss
    opt.zero_grad()
    loss.backward()
    opt.step()
teacher.eval()
with torch.no_grad():
    teacher_logits = teacher(input_ids=x_test).logits
print(f"teacher accuracy {(teacher_logits.argmax(1) == y_test).float().mean():.3f}")

distiller = Distiller(teacher, bert(24, 1, 0.0))
opt = torch.optim.AdamW(distiller.student.parameters(), lr=4e-3)
for epoch in range(3):
    distiller.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(60):
        loss = distiller(x[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(rows)
    distiller.eval()
    with torch.no_grad():
        logits = distiller.student(input_ids=x_test).logits
    gap = functional.kl_div(
        logits.log_softmax(1), teacher_logits.log_softmax(1), reduction="batchmean", log_target=True
    )
    acc = (logits.argmax(1) == y_test).float().mean()
    print(f"epoch {epoch}: train {total / len(x):.4f}, divergence {gap:.4f}, student accuracy {acc:.3f}")
