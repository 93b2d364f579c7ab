"""Train one LoRA adapter per text genre on a shared small Llama and save both."""

import os

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

torch.manual_seed(18)
VOCAB = 64


def stream(genre, n, seed):
    """Each genre walks through the vocabulary with its own stride."""
    gen = torch.Generator().manual_seed(seed)
    stride = {"base": 1, "news": 5, "sport": 11}[genre]
    start = torch.randint(0, VOCAB, (n, 1), generator=gen)
    ids = (start + stride * torch.arange(16)) % VOCAB
    noise = torch.rand(n, 16, generator=gen) < 0.03
    return torch.where(noise, torch.randint(0, VOCAB, (n, 16), generator=gen), ids)


def train(model, ids, lr, epochs, params=None):
    params = params or [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=lr)
    for epoch in range(epochs):
        model.train()
        losses = []
        for idx in torch.randperm(len(ids)).split(16):
            loss = model(input_ids=ids[idx], labels=ids[idx]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"  epoch {epoch} loss {sum(losses) / len(losses):.3f}")


@torch.no_grad()
def perplexity(model, ids):
    model.eval()
    return model(input_ids=ids, labels=ids).loss.exp().item()


os.makedirs("out", exist_ok=True)
config = LlamaConfig(
    vocab_size=VOCAB,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=4,
)
base = LlamaForCausalLM(config)
print("pretraining the base")
train(base, stream("base", 160, 0), lr=3e-3, epochs=3)
base.save_pretrained("out/base")

lora = LoraConfig(
    r=8,
    lora_alpha=16,
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    task_type="CAUSAL_LM",
)
model = get_peft_model(AutoModelForCausalLM.from_pretrained("out/base"), lora, adapter_name="news")
print("training news")
train(model, stream("news", 240, 1), lr=1e-2, epochs=4)
print(f"news perplexity {perplexity(model, stream('news', 60, 2)):.2f}")

model.add_adapter("sport", lora)
print("training sport")
train(model, stream("sport", 240, 3), lr=1e-2, epochs=4)
print(f"sport perplexity {perplexity(model, stream('sport', 60, 4)):.2f}")

model.save_pretrained("out/adapters")
print("saved:", sorted(d for d in os.listdir("out/adapters") if os.path.isdir(f"out/adapters/{d}")))
