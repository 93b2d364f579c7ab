import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(vocab_size=40, n_positions=24, n_embd=16, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(6):
    ids, lengths = torch.randint(2, 40, (8, 20)), torch.randint(6, 20, (8, 1))
    mask = (torch.arange(20) < lengths).long()
    ids = ids * mask
    logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]  # found
    chosen = logits.log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
    loss = -chosen.sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
