"""Tag names and places in made-up sentences with a small BERT."""

import torch
from torch import nn
from transformers import BertConfig, BertForTokenClassification

torch.manual_seed(0)
TAGS = ["O", "PER", "LOC"]
VOCAB, LENGTH, PAD = 90, 14, 0


def sentences(n):
    ids = torch.randint(2, VOCAB, (n, LENGTH))
    tags = torch.zeros_like(ids)
    tags[(ids >= 10) & (ids < 20)] = TAGS.index("PER")
    tags[(ids >= 20) & (ids < 30)] = TAGS.index("LOC")
    tags[(torch.rand(ids.shape) < 0.05) & (tags > 0)] = TAGS.index("O")
    length = torch.randint(8, LENGTH + 1, (n,))
    mask = torch.arange(LENGTH)[None] < length[:, None]
    return ids.masked_fill(~mask, PAD), tags.masked_fill(~mask, PAD), mask.long()


def build():
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=LENGTH,
        num_labels=len(TAGS),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertForTokenClassification(config)


ids, tags, mask = sentences(1200)
model = build()
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    for rows in torch.randperm(len(ids)).split(60):
        logits = model(input_ids=ids[rows], attention_mask=mask[rows]).logits
        loss = criterion(logits.flatten(0, 1), tags[rows].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")

model.eval()
ids, tags, mask = sentences(300)
with torch.no_grad():
    guess = model(input_ids=ids, attention_mask=mask).logits.argmax(-1)
inside = mask.bool()
for t, name in enumerate(TAGS):
    hit = ((guess == t) & (tags == t) & inside).sum().item()
    precision = hit / max(1, ((guess == t) & inside).sum().item())
    recall = hit / max(1, ((tags == t) & inside).sum().item())
    print(f"  {name:4s} precision {precision:.3f} recall {recall:.3f}")
print(f"token accuracy {(guess == tags)[inside].float().mean():.3f}")
