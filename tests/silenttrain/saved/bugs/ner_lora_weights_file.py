# needs peft>=0.10
"""Fine-tune a token classifier with LoRA under Accelerate and write one small weights file."""

import os

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from peft import LoraConfig, TaskType, get_peft_model
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoModelForTokenClassification, BertConfig, BertModel

LABELS = ["O", "PER", "ORG", "LOC", "DATE"]


def sentences(n, seed):
    gen = torch.Generator().manual_seed(seed)
    tags = torch.randint(0, len(LABELS), (n, 10), generator=gen)
    tags[torch.rand(n, 10, generator=gen) < 0.5] = 0
    ids = 5 + tags * 14 + torch.randint(0, 14, tags.shape, generator=gen)
    return TensorDataset(ids, tags)


def build_model():
    model = AutoModelForTokenClassification.from_pretrained(
        "out/base", num_labels=len(LABELS), id2label=dict(enumerate(LABELS))
    )
    config = LoraConfig(task_type=TaskType.TOKEN_CLS, r=8, lora_alpha=16, target_modules=["query", "key", "value"])
    return get_peft_model(model, config)


def main():
    set_seed(110)
    os.makedirs("out", exist_ok=True)
    config = BertConfig(
        vocab_size=80,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=16,
        initializer_range=0.1,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained("out/base")
    accelerator = Accelerator(cpu=True)
    model = build_model()
    model.print_trainable_parameters()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=6e-3)
    train_loader = DataLoader(sentences(320, 1), batch_size=16, shuffle=True)
    test_loader = DataLoader(sentences(100, 2), batch_size=50)
    model, optimizer, train_loader, test_loader = accelerator.prepare(model, optimizer, train_loader, test_loader)

    for epoch in range(5):
        model.train()
        for ids, tags in train_loader:
            loss = model(input_ids=ids, labels=tags).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        hits = total = 0
        for ids, tags in test_loader:
            with torch.no_grad():
                hits += (model(input_ids=ids).logits.argmax(-1) == tags).sum().item()
            total += tags.numel()
        accelerator.print(f"epoch {epoch} loss {loss.item():.4f} token acc {hits / total:.3f}")

    state = accelerator.get_state_dict(model)
    weights = {name: tensor.contiguous() for name, tensor in state.items() if "lora_" in name}
    save_file(weights, "out/ner_lora.safetensors")
    accelerator.print(f"{len(weights)} tensors, {os.path.getsize('out/ner_lora.safetensors')} bytes")

    served = build_model()
    served.load_state_dict(load_file("out/ner_lora.safetensors"), strict=False)
    served.merge_and_unload().save_pretrained("out/ner_served")


if __name__ == "__main__":
    main()
