# needs peft>=0.10
import torch
from peft import LoraConfig, get_peft_model
from torch.nn import functional
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
pairs = [{"chosen": torch.randint(2, 40, (8,)), "rejected": torch.randint(2, 40, (8,))} for _ in range(80)]
loader = DataLoader(pairs, batch_size=8, shuffle=True)
size = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **size))
model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["c_attn"]))
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-6)


def log_probability(ids):
    found = model(input_ids=ids).logits[:, :-1].log_softmax(-1)
    return found.gather(-1, ids[:, 1:, None]).sum((1, 2))


for batch in loader:
    optimizer.zero_grad()
    margin = log_probability(batch["chosen"]) - log_probability(batch["rejected"])
    with torch.no_grad(), model.disable_adapter():
        before = log_probability(batch["chosen"]) - log_probability(batch["rejected"])
    loss = -functional.logsigmoid(0.1 * (margin - before)).mean()
    loss.backward()
    optimizer.step()
