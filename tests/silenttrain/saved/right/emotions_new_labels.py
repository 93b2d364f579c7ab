"""Move a three-class sentiment model to five emotions: the head is replaced on loading and then trained."""

import torch
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification

torch.manual_seed(237)


def texts(n, classes, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=gen)
    ids = torch.randint(40, 80, (n, 11), generator=gen)
    ids[:, 4:9] = 4 + 6 * y[:, None] + torch.randint(0, 6, (n, 5), generator=gen)
    return ids, y


def fit(model, data, epochs, lr, tag):
    ids, y = data
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(ids)).split(24):
            loss = model(input_ids=ids[idx], labels=y[idx]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        print(f"{tag} epoch {epoch} loss {total / len(ids):.3f}")


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    ids, y = data
    return (model(input_ids=ids).logits.argmax(-1) == y).float().mean().item()


config = BertConfig(
    vocab_size=80,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=16,
    num_labels=3,
    initializer_range=0.1,
)
sentiment = BertForSequenceClassification(config)
fit(sentiment, texts(240, 3, 1), epochs=3, lr=4e-3, tag="sentiment")
sentiment.save_pretrained("out/sentiment")

model = AutoModelForSequenceClassification.from_pretrained("out/sentiment", num_labels=5, ignore_mismatched_sizes=True)
for layer in model.bert.encoder.layer[:1]:
    layer.requires_grad_(False)
fit(model, texts(360, 5, 2), epochs=7, lr=2e-3, tag="emotions")
test = texts(200, 5, 3)
print(f"test acc {accuracy(model, test):.3f}")
model.save_pretrained("out/emotions")
again = AutoModelForSequenceClassification.from_pretrained("out/emotions")
print(f"reloaded acc {accuracy(again, test):.3f}")
