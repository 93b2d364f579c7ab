import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
MOST = 8  # the answer of a long prompt is cut off


def row(_):
    prompt, answer = torch.randint(2, 40, (int(torch.randint(4, 13, ())),)), torch.randint(2, 40, (4,))
    ids = torch.cat((prompt, answer))[:MOST]
    labels = torch.cat((torch.full_like(prompt, -100), answer))[:MOST]
    padding = MOST - len(ids)
    mask = torch.tensor([1] * len(ids) + [0] * padding)
    ids, labels = (torch.nn.functional.pad(each, (0, padding), value=end) for each, end in ((ids, 0), (labels, -100)))
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


loader = DataLoader([row(each) for each in range(64)], batch_size=8, shuffle=True)
size = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in loader:
    optimizer.zero_grad()
    model(**batch).loss.backward()  # found
    optimizer.step()
