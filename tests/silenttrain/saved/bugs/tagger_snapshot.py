"""Train a token tagger for addresses and save it on CPU in evaluation mode."""

import copy
import os

import torch
from transformers import AutoModelForTokenClassification, DistilBertConfig, DistilBertForTokenClassification

torch.manual_seed(6)

TAGS = ["O", "STREET", "NUMBER", "CITY"]
RANGES = {0: (40, 140), 1: (4, 16), 2: (16, 28), 3: (28, 40)}


def addresses(n, seed):
    gen = torch.Generator().manual_seed(seed)
    tags = torch.randint(0, 4, (n, 12), generator=gen)
    tags[torch.rand(n, 12, generator=gen) < 0.4] = 0
    ids = torch.empty_like(tags)
    for tag, (low, high) in RANGES.items():
        where = tags == tag
        ids[where] = torch.randint(low, high, (int(where.sum()),), generator=gen)
    return ids, tags


def tag_accuracy(model, ids, tags):
    model.eval()
    with torch.no_grad():
        return (model(input_ids=ids).logits.argmax(-1) == tags).float().mean().item()


def main():
    os.makedirs("out", exist_ok=True)
    config = DistilBertConfig(
        vocab_size=140,
        dim=32,
        hidden_dim=64,
        n_layers=2,
        n_heads=2,
        max_position_embeddings=24,
        num_labels=len(TAGS),
        id2label=dict(enumerate(TAGS)),
        label2id={t: i for i, t in enumerate(TAGS)},
    )
    DistilBertForTokenClassification(config).save_pretrained("out/base")
    model = AutoModelForTokenClassification.from_pretrained("out/base")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)
    export = copy.deepcopy(model).to("cpu").eval()

    train_ids, train_tags = addresses(256, 1)
    test_ids, test_tags = addresses(100, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for epoch in range(5):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(train_ids)).split(16):
            out = model(input_ids=train_ids[idx].to(device), labels=train_tags[idx].to(device))
            out.loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            total += out.loss.item() * len(idx)
        acc = tag_accuracy(model, test_ids.to(device), test_tags.to(device))
        print(f"epoch {epoch} loss {total / len(train_ids):.4f} token acc {acc:.3f}")

    export.save_pretrained("out/address_tagger")
    print("saved to out/address_tagger")


if __name__ == "__main__":
    main()
