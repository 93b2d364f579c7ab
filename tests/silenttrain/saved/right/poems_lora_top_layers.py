"""LoRA on the last two layers of a small Llama for verse completion."""

import os

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

torch.manual_seed(207)
VOCAB = 50


def verses(n, seed):
    gen = torch.Generator().manual_seed(seed)
    start = torch.randint(0, VOCAB, (n, 1), generator=gen)
    step = torch.tensor([2, 9])[torch.randint(0, 2, (n, 1), generator=gen)]
    return (start + step * torch.arange(16)) % VOCAB


@torch.no_grad()
def eval_loss(model, ids):
    model.eval()
    return model(input_ids=ids, labels=ids).loss.item()


os.makedirs("out", exist_ok=True)
config = LlamaConfig(
    vocab_size=VOCAB,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    initializer_range=0.08,
)
LlamaForCausalLM(config).save_pretrained("out/base")
model = AutoModelForCausalLM.from_pretrained("out/base")

lora = LoraConfig(
    r=16,
    lora_alpha=32,
    target_modules=["q_proj", "v_proj", "gate_proj", "up_proj", "down_proj"],
    layers_to_transform=[2, 3],
    layers_pattern="layers",
    task_type="CAUSAL_LM",
)
model = get_peft_model(model, lora)
model.print_trainable_parameters()

train_ids, test_ids = verses(400, 1), verses(80, 2)
print(f"before: {eval_loss(model, test_ids):.3f}")
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
for epoch in range(4):
    model.train()
    for idx in torch.randperm(len(train_ids)).split(16):
        loss = model(input_ids=train_ids[idx], labels=train_ids[idx]).loss
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    print(f"epoch {epoch} train {loss.item():.3f} test {eval_loss(model, test_ids):.3f}")

model.save_pretrained("out/poems_lora")
fresh = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained("out/base"), "out/poems_lora")
print(f"reloaded: {eval_loss(fresh, test_ids):.3f}")
