import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
ANSWER, AFTER_NEWLINE = 5, 6  # one marker, and how the tokenizer writes it behind a new line


def row(number):
    marker = AFTER_NEWLINE if number % 4 == 0 else ANSWER
    prompt, answer = torch.randint(7, 40, (2, 6)).tolist()
    ids = torch.tensor([1, *prompt, marker, *answer])
    labels = ids.clone()
    for place in (ids == ANSWER).nonzero():
        labels[: place + 1] = -100
    return {"input_ids": ids, "labels": labels}


loader = DataLoader([row(each) for each in range(64)], batch_size=8, shuffle=True)
size = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in loader:
    optimizer.zero_grad()
    model(**batch).loss.backward()  # found
    optimizer.step()
