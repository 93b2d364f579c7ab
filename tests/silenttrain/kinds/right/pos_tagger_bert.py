"""Part-of-speech tags with a small BERT; padded places carry -100, every real tag from 0 on counts."""

import torch
from transformers import BertConfig, BertForTokenClassification

torch.manual_seed(3)
TAGS = ["NOUN", "VERB", "DET", "ADJ"]
VOCAB, LENGTH, PAD = 80, 12, 0


def corpus(n):
    ids = torch.randint(1, VOCAB, (n, LENGTH))
    base = ids % 3
    previous = base.roll(1, dims=1)
    previous[:, 0] = 0
    tags = torch.where((base == 1) & (previous == 2), 3, base)
    length = torch.randint(6, LENGTH + 1, (n,))
    mask = torch.arange(LENGTH)[None] < length[:, None]
    return ids.masked_fill(~mask, PAD), tags.masked_fill(~mask, -100), mask.long()


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
model = BertForTokenClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
ids, tags, mask = corpus(1200)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(len(ids)).split(60):
        loss = model(input_ids=ids[rows], attention_mask=mask[rows], labels=tags[rows]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")

model.eval()
ids, tags, mask = corpus(300)
correct = total = 0
with torch.no_grad():
    for rows in torch.arange(300).split(60):
        guess = model(input_ids=ids[rows], attention_mask=mask[rows]).logits.argmax(-1)
        known = tags[rows] != -100
        correct += (guess == tags[rows])[known].sum().item()
        total += known.sum().item()
print(
    f"token accuracy {correct / total:.3f} over {total} tokens, most common tag {TAGS[tags[tags >= 0].mode().values]}"
)
