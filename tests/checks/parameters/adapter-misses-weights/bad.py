import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

torch.manual_seed(0)
texts = [{"input_ids": each, "labels": each} for each in torch.randint(2, 40, (64, 10))]
loader = DataLoader(texts, batch_size=8, shuffle=True)
size = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "head_dim": 8, "intermediate_size": 32}
heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "mlp_only_layers": [0]}
model = Qwen3MoeForCausalLM(Qwen3MoeConfig(**size, **heads, **experts))
config = LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["gate_proj", "up_proj", "down_proj"])
model = get_peft_model(model, config)
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-3)
for batch in loader:
    optimizer.zero_grad()
    model(**batch).loss.backward()  # found
    optimizer.step()
