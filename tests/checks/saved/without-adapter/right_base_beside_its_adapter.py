# needs peft>=0.10
import tempfile

import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
texts = [{"input_ids": each, "labels": each} for each in torch.randint(2, 40, (64, 10))]
loader = DataLoader(texts, batch_size=8, shuffle=True)
size = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size))
model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["c_attn"], fan_in_fan_out=True))
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-3)
for batch in loader:
    optimizer.zero_grad()
    model(**batch).loss.backward()
    optimizer.step()
with tempfile.TemporaryDirectory() as folder:
    adapter = {name: each.clone() for name, each in get_peft_model_state_dict(model).items()}
    torch.save(adapter, f"{folder}/adapter.pt")
    torch.save(model.unload().state_dict(), f"{folder}/base.pt")
