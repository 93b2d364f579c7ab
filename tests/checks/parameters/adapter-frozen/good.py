import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
size = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size)).save_pretrained("base")
config = LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["c_attn"], init_lora_weights=False)
get_peft_model(GPT2LMHeadModel.from_pretrained("base"), config).save_pretrained("earlier")

base = GPT2LMHeadModel.from_pretrained("base")
model = PeftModel.from_pretrained(base, "earlier", is_trainable=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
texts = [{"input_ids": each, "labels": each} for each in torch.randint(2, 40, (64, 10))]
for batch in DataLoader(texts, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    model(**batch).loss.backward()
    optimizer.step()
