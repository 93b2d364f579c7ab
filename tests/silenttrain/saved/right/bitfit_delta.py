"""BitFit under Accelerate: train the biases, the norms and the head of a BERT and store just those tensors."""

import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification


def utterances(n, seed):
    gen = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=gen)
    ids = torch.randint(36, 70, (n, 10), generator=gen)
    ids[:, 1:7] = 4 + 8 * y[:, None] + torch.randint(0, 8, (n, 6), generator=gen)
    return TensorDataset(ids, y)


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    ids, y = data.tensors
    return (model(input_ids=ids).logits.argmax(-1) == y).float().mean().item()


def main():
    set_seed(236)
    os.makedirs("out", exist_ok=True)
    config = BertConfig(
        vocab_size=70,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=16,
        num_labels=4,
        initializer_range=0.15,
    )
    BertForSequenceClassification(config).save_pretrained("out/base")
    model = AutoModelForSequenceClassification.from_pretrained("out/base")
    for name, param in model.named_parameters():
        param.requires_grad = name.endswith("bias") or "LayerNorm" in name or name.startswith("classifier")
    wanted = {name for name, param in model.named_parameters() if param.requires_grad}
    print(f"training {len(wanted)} of {len(list(model.parameters()))} tensors")

    accelerator = Accelerator(cpu=True)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    loader = DataLoader(utterances(480, 1), batch_size=24, shuffle=True)
    test = utterances(200, 2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(6):
        model.train()
        total = 0.0
        for ids, y in loader:
            loss = model(input_ids=ids, labels=y).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
        accelerator.print(f"epoch {epoch} loss {total / len(loader):.3f} acc {accuracy(model, test):.3f}")

    state = accelerator.get_state_dict(model)
    save_file({k: v.contiguous() for k, v in state.items() if k in wanted}, "out/bitfit.safetensors")
    again = AutoModelForSequenceClassification.from_pretrained("out/base")
    result = again.load_state_dict(load_file("out/bitfit.safetensors"), strict=False)
    assert not result.unexpected_keys
    accelerator.print(f"base + delta acc {accuracy(again, test):.3f}")


if __name__ == "__main__":
    main()
