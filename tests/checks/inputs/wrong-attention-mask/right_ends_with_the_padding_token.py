import torch
from transformers import GPT2Config, GPT2LMHeadModel

END = 7


def batch_of(texts, side):
    longest = max(len(text) for text in texts)
    ids, mask = torch.full((len(texts), longest), END), torch.zeros(len(texts), longest, dtype=torch.long)
    for row, text in enumerate(texts):
        at = slice(0, len(text)) if side == "right" else slice(longest - len(text), longest)
        ids[row, at], mask[row, at] = torch.tensor(text), 1
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    labels = ids.masked_fill(mask == 0, -100)
    return {"input_ids": ids, "attention_mask": mask, "position_ids": positions, "labels": labels}


torch.manual_seed(0)
config = GPT2Config(
    vocab_size=40, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=END, eos_token_id=END, pad_token_id=END
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for update in range(12):
    lengths = torch.randint(3, 12, (8,)).tolist()
    texts = [[*torch.randint(8, 40, (length,)).tolist(), END] for length in lengths]
    loss = model(**batch_of(texts, "left" if update % 2 else "right")).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
