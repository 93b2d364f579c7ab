"""Token tagging with a tiny BERT on padded sentences."""

import torch
from transformers import BertConfig, BertForTokenClassification

torch.manual_seed(0)
VOCAB, MAX_LEN, PAD = 40, 24, 0
TAGS = ["O", "NAME", "PLACE"]


def sentence():
    """A token in 30..39 opens a mention; its tag depends on how the sentence begins."""
    length = torch.randint(4, 12, (1,)).item()
    ids = torch.randint(2, VOCAB, (length,))
    tags = torch.zeros(length, dtype=torch.long)
    for i in range(1, length):
        if ids[i] >= 30:
            tags[i] = 1 if ids[0] < 15 else 2
    return ids, tags


def pad_batch(sentences):
    input_ids = torch.full((len(sentences), MAX_LEN), PAD)
    attention_mask = torch.zeros(len(sentences), MAX_LEN, dtype=torch.long)
    labels = torch.zeros(len(sentences), MAX_LEN, dtype=torch.long)
    for row, (ids, tags) in enumerate(sentences):
        input_ids[row, : len(ids)] = ids
        attention_mask[row, : len(ids)] = 1
        labels[row, : len(tags)] = tags
    return input_ids, attention_mask, labels


train = pad_batch([sentence() for _ in range(1000)])
test = pad_batch([sentence() for _ in range(300)])

model = BertForTokenClassification(
    BertConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=MAX_LEN,
        num_labels=len(TAGS),
        pad_token_id=PAD,
    )
)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

for epoch in range(6):
    model.train()
    total = 0.0
    for idx in torch.randperm(1000).split(40):
        input_ids, attention_mask, labels = (t[idx] for t in train)
        out = model(input_ids=input_ids, attention_mask=attention_mask, labels=labels)
        optimizer.zero_grad()
        out.loss.backward()
        optimizer.step()
        total += out.loss.item() / 25
    print(f"epoch {epoch}  loss {total:.4f}")

model.eval()
input_ids, attention_mask, labels = test
with torch.no_grad():
    predictions = model(input_ids=input_ids, attention_mask=attention_mask).logits.argmax(-1)
keep = labels != -100
accuracy = (predictions[keep] == labels[keep]).float().mean().item()
mention = labels > 0
print(
    f"token accuracy {accuracy:.3f} over {int(keep.sum())} tokens  "
    f"mention accuracy {(predictions[mention] == labels[mention]).float().mean().item():.3f}"
)
