import torch
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)


def row(_):
    documents = [torch.randint(2, 40, (length,)) for length in (6, 5, 7)]
    ids = torch.cat(documents)
    positions = torch.cat([torch.arange(len(each)) for each in documents])
    return {
        "input_ids": ids,
        "position_ids": positions,
        "labels": ids.masked_fill(positions == 0, -100),
        "attention_mask": torch.ones_like(ids),
    }


loader = DataLoader([row(each) for each in range(64)], batch_size=8, shuffle=True)
size = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(use_cache=False, **size))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in loader:
    optimizer.zero_grad()
    model(**batch).loss.backward()  # found
    optimizer.step()
