# needs peft>=0.10
"""Adapt a base encoder to product categories with LoRA and publish both the adapter and a merged model."""

import os

import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification, set_seed

BASE_DIR = "out/encoder"
ADAPTER_DIR = "out/encoder_lora"


def products(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=gen)
    ids = torch.randint(30, 70, (n, 10), generator=gen)
    ids[:, 0] = 1
    where = torch.rand(n, 9, generator=gen).argsort(1)[:, :4] + 1
    ids.scatter_(1, where, 4 + 6 * y[:, None] + torch.randint(0, 6, (n, 4), generator=gen))
    return TensorDataset(ids, y)


def main():
    set_seed(71)
    config = BertConfig(
        vocab_size=70,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=16,
        num_labels=4,
        initializer_range=0.1,
    )
    os.makedirs("out", exist_ok=True)
    BertForSequenceClassification(config).save_pretrained(BASE_DIR)

    accelerator = Accelerator(cpu=True)
    model = AutoModelForSequenceClassification.from_pretrained(BASE_DIR)
    model = get_peft_model(model, LoraConfig(r=8, lora_alpha=48, target_modules=["query", "key", "value", "dense"]))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=6e-3)
    train_loader = DataLoader(products(400, 1), batch_size=32, shuffle=True)
    test_loader = DataLoader(products(200, 2), batch_size=100)
    model, optimizer, train_loader, test_loader = accelerator.prepare(model, optimizer, train_loader, test_loader)

    for epoch in range(8):
        model.train()
        for ids, y in train_loader:
            loss = model(input_ids=ids, labels=y).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        hits = 0
        for ids, y in test_loader:
            with torch.no_grad():
                hits += (model(input_ids=ids).logits.argmax(-1) == y).sum().item()
        accelerator.print(f"epoch {epoch} loss {loss.item():.3f} acc {hits / 200:.3f}")

    unwrapped = accelerator.unwrap_model(model)
    unwrapped.save_pretrained(ADAPTER_DIR)
    merged = unwrapped.merge_and_unload()
    merged.save_pretrained(BASE_DIR)
    accelerator.print("adapter:", sorted(os.listdir(ADAPTER_DIR)))
    accelerator.print("merged:", sorted(os.listdir(BASE_DIR)))


if __name__ == "__main__":
    main()
