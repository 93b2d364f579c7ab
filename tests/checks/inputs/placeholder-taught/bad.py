import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
IMAGE = 5


def row(_):
    ids = torch.tensor([1, *[IMAGE] * 6, *torch.randint(6, 40, (8,)).tolist()])
    labels = ids.clone()
    return {"input_ids": ids, "labels": labels}


loader = DataLoader([row(each) for each in range(64)], batch_size=8, shuffle=True)
size = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model.config.image_token_id = IMAGE
for batch in loader:
    optimizer.zero_grad()
    model(**batch).loss.backward()  # found
    optimizer.step()
