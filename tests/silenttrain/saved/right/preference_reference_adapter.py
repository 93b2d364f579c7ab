"""Preference tuning of a small Llama with a policy adapter and a fixed reference adapter on the same base."""

import os

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

torch.manual_seed(213)
VOCAB, BETA = 40, 0.3


def preferences(n, seed):
    """Both answers continue the prompt; the preferred one counts upwards, the other downwards."""
    gen = torch.Generator().manual_seed(seed)
    start = torch.randint(0, VOCAB, (n, 1), generator=gen)
    prompt = (start + torch.arange(4)) % VOCAB
    up = (prompt[:, -1:] + torch.arange(1, 6)) % VOCAB
    down = (prompt[:, -1:] - torch.arange(1, 6)) % VOCAB
    return torch.cat([prompt, up], 1), torch.cat([prompt, down], 1)


def answer_logprob(model, ids):
    logits = model(input_ids=ids).logits[:, 3:-1].log_softmax(-1)
    return logits.gather(-1, ids[:, 4:, None]).squeeze(-1).sum(-1)


def dpo_loss(model, chosen, rejected):
    model.set_adapter("reference", inference_mode=True)
    with torch.no_grad():
        ref_gap = answer_logprob(model, chosen) - answer_logprob(model, rejected)
    model.set_adapter("policy")
    gap = answer_logprob(model, chosen) - answer_logprob(model, rejected)
    return -nn.functional.logsigmoid(BETA * (gap - ref_gap)).mean(), (gap > ref_gap).float().mean()


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
lora = LoraConfig(
    r=8, lora_alpha=16, target_modules=["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"], task_type="CAUSAL_LM"
)

# supervised stage: both directions are in the data
sft = get_peft_model(AutoModelForCausalLM.from_pretrained("out/base"), lora)
both = torch.cat(preferences(160, 1))
optimizer = torch.optim.AdamW([p for p in sft.parameters() if p.requires_grad], lr=8e-3)
for _ in range(2):
    for idx in torch.randperm(len(both)).split(16):
        loss = sft(input_ids=both[idx], labels=both[idx]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"sft loss {loss.item():.3f}")
sft.save_pretrained("out/sft")

model = PeftModel.from_pretrained(
    AutoModelForCausalLM.from_pretrained("out/base"), "out/sft", adapter_name="policy", is_trainable=True
)
model.load_adapter("out/sft", adapter_name="reference")
policy_params = [p for n, p in model.named_parameters() if ".policy." in n]
optimizer = torch.optim.AdamW(policy_params, lr=3e-3)
chosen, rejected = preferences(240, 2)
for epoch in range(3):
    for idx in torch.randperm(len(chosen)).split(16):
        loss, margin = dpo_loss(model, chosen[idx], rejected[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} dpo loss {loss.item():.3f} preferred {margin.item():.2f}")

model.save_pretrained("out/dpo", selected_adapters=["policy"])
