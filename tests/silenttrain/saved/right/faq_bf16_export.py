"""Fine-tune an FAQ classifier in float32 and export it in bfloat16 after comparing the predictions."""

import copy
import os

import torch
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification

torch.manual_seed(208)


def faq(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 5, (n,), generator=gen)
    ids = torch.randint(45, 90, (n, 12), generator=gen)
    ids[:, 0] = 2
    ids[:, 3:8] = 4 + 8 * y[:, None] + torch.randint(0, 8, (n, 5), generator=gen)
    return ids, y


@torch.no_grad()
def predict(model, ids):
    model.eval()
    return model(input_ids=ids).logits.float()


def main():
    os.makedirs("out", exist_ok=True)
    config = BertConfig(
        vocab_size=90,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=16,
        num_labels=5,
    )
    BertForSequenceClassification(config).save_pretrained("out/base")
    model = AutoModelForSequenceClassification.from_pretrained("out/base")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    ids, y = faq(400, 1)
    test_ids, test_y = faq(200, 2)
    for epoch in range(5):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(ids)).split(25):
            loss = model(input_ids=ids[idx], labels=y[idx]).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item() * len(idx)
        acc = (predict(model, test_ids).argmax(-1) == test_y).float().mean().item()
        print(f"epoch {epoch} loss {total / len(ids):.3f} acc {acc:.3f}")

    reference = predict(model, test_ids)
    small = copy.deepcopy(model).to(torch.bfloat16)
    logits = predict(small, test_ids)
    agreement = (logits.argmax(-1) == reference.argmax(-1)).float().mean().item()
    print(f"bf16: agreement {agreement:.3f}, largest difference {(logits - reference).abs().max().item():.4f}")
    if agreement < 0.99:
        raise SystemExit("bfloat16 copy disagrees with the trained model")
    small.save_pretrained("out/faq_bf16")
    print("size", os.path.getsize("out/faq_bf16/model.safetensors"))


if __name__ == "__main__":
    main()
