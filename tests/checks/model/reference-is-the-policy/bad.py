import torch
from torch.nn import functional
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
pairs = [{"chosen": torch.randint(2, 40, (8,)), "rejected": torch.randint(2, 40, (8,))} for _ in range(80)]
loader = DataLoader(pairs, batch_size=8, shuffle=True)
size = {
    "vocab_size": 40,
    "n_positions": 32,
    "n_embd": 16,
    "n_layer": 1,
    "n_head": 2,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
}
model = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size))
reference = model
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def log_probability(model, ids):
    found = model(input_ids=ids).logits[:, :-1].log_softmax(-1)  # found
    return found.gather(-1, ids[:, 1:, None]).sum((1, 2))


for batch in loader:
    optimizer.zero_grad()
    margin = log_probability(model, batch["chosen"]) - log_probability(model, batch["rejected"])
    with torch.no_grad():
        before = log_probability(reference, batch["chosen"]) - log_probability(reference, batch["rejected"])
    loss = -functional.logsigmoid(0.1 * (margin - before)).mean()
    loss.backward()
    optimizer.step()
