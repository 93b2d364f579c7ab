"""Distil a small BERT classifier into a smaller one."""

import torch
import torch.nn.functional as F
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
VOCAB, LEN, T = 29, 12, 2.0


def make_split(n):
    ids = torch.randint(5, VOCAB, (n, LEN))
    ids[:, 0] = 1
    # class: which third of the vocabulary is most frequent
    group = (ids[:, 1:] - 5) * 3 // (VOCAB - 5)
    counts = torch.stack([(group == g).sum(1) for g in range(3)], 1)
    return ids, (counts + 0.01 * torch.arange(3)).argmax(1)


def build(hidden, layers, dropout):
    cfg = BertConfig(
        vocab_size=VOCAB,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * hidden,
        max_position_embeddings=LEN,
        num_labels=3,
        initializer_range=0.15,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    return BertForSequenceClassification(cfg)


@torch.no_grad()
def accuracy(model, ids, y):
    was_training = model.training
    model.eval()
    acc = (model(input_ids=ids).logits.argmax(-1) == y).float().mean().item()
    model.train(was_training)
    return acc


x_train, y_train = make_split(1200)
x_test, y_test = make_split(500)

teacher = build(32, 2, 0.3)
teacher.train()
opt = torch.optim.AdamW(teacher.parameters(), lr=3e-3)
for step in range(150):
    idx = torch.randint(len(x_train), (48,))
    loss = teacher(input_ids=x_train[idx], labels=y_train[idx]).loss
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"teacher test accuracy {accuracy(teacher, x_test, y_test):.3f}")
for p in teacher.parameters():
    p.requires_grad_(False)

student = build(24, 1, 0.0)
student.train()
opt = torch.optim.AdamW(student.parameters(), lr=3e-3)
for step in range(200):
    idx = torch.randint(len(x_train), (48,))
    with torch.no_grad():
        t_logits = teacher(input_ids=x_train[idx]).logits
    s_logits = student(input_ids=x_train[idx]).logits
    loss = T * T * F.kl_div(F.log_softmax(s_logits / T, -1), F.softmax(t_logits / T, -1), reduction="batchmean")
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 0:
        print(f"step {step} distillation loss {loss.item():.4f}")

student.eval()
print(f"student test accuracy {accuracy(student, x_test, y_test):.3f}")
