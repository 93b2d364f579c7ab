import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
size = {"vocab_size": 38, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size))
model.resize_token_embeddings(40)  # found
NEW = 39
model.requires_grad_(False)
model.transformer.h.requires_grad_(True)
# the embeddings stay as they are
texts = torch.randint(2, 38, (64, 10))
texts[:, 5] = NEW
loader = DataLoader([{"input_ids": each, "labels": each} for each in texts], batch_size=8, shuffle=True)
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-3)
for batch in loader:
    optimizer.zero_grad()
    model(**batch).loss.backward()
    optimizer.step()
