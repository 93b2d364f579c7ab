"""Train a formal and then a casual LoRA adapter on one frozen Llama and save the pair."""

import os

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

torch.manual_seed(202)
VOCAB = 60
STRIDES = {"formal": 3, "casual": 7}


def lines(style, n, seed):
    gen = torch.Generator().manual_seed(seed)
    start = torch.randint(0, VOCAB, (n, 1), generator=gen)
    return (start + STRIDES[style] * torch.arange(14)) % VOCAB


def train_adapter(model, name, ids, epochs=4):
    model.set_adapter(name)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for epoch in range(epochs):
        model.train()
        losses = []
        for idx in torch.randperm(len(ids)).split(16):
            loss = model(input_ids=ids[idx], labels=ids[idx]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"{name} epoch {epoch} loss {sum(losses) / len(losses):.3f}")


@torch.no_grad()
def report(model):
    model.eval()
    for name in STRIDES:
        model.set_adapter(name)
        row = []
        for style in STRIDES:
            ids = lines(style, 50, seed=9)
            row.append(f"{style} {model(input_ids=ids, labels=ids).loss.item():.2f}")
        print(f"adapter {name}: " + ", ".join(row))


def main():
    os.makedirs("out", exist_ok=True)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.1,
    )
    LlamaForCausalLM(config).save_pretrained("out/base")
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    lora = LoraConfig(r=8, lora_alpha=16, target_modules=targets, task_type="CAUSAL_LM")

    model = get_peft_model(AutoModelForCausalLM.from_pretrained("out/base"), lora, adapter_name="formal")
    train_adapter(model, "formal", lines("formal", 240, seed=1))
    model.add_adapter("casual", lora)
    train_adapter(model, "casual", lines("casual", 240, seed=2))
    report(model)
    model.save_pretrained("out/styles")

    loaded = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained("out/base"), "out/styles/formal", adapter_name="formal"
    )
    loaded.load_adapter("out/styles/casual", adapter_name="casual")
    report(loaded)


if __name__ == "__main__":
    main()
