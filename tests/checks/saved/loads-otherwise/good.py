import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
size = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size))
wrapped = nn.DataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(8):
    ids = torch.randint(2, 40, (8, 12))
    loss = wrapped(input_ids=ids, labels=ids).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.save_pretrained("fine-tuned", state_dict=wrapped.module.state_dict())
