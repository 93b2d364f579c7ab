"""Train a character-level GPT with torch.compile and sample from the saved weights."""

import os

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(9)

TEXT = (
    "the sea was calm and the ship went on. the crew was tired and the night was long. "
    "the captain read the map and the wind was cold. the men sang a song and the stars were bright. "
) * 12
chars = sorted(set(TEXT))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in TEXT])
BLOCK = 32

config = GPT2Config(
    vocab_size=len(chars),
    n_positions=BLOCK,
    n_embd=48,
    n_layer=2,
    n_head=4,
    bos_token_id=0,
    eos_token_id=0,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
)


def get_batch(batch_size=24):
    starts = torch.randint(0, len(data) - BLOCK - 1, (batch_size,))
    return torch.stack([data[s : s + BLOCK] for s in starts])


def sample(model, prompt, length=60):
    model.eval()
    ids = torch.tensor([[stoi[c] for c in prompt]])
    with torch.no_grad():
        for _ in range(length):
            logits = model(input_ids=ids[:, -BLOCK:]).logits[:, -1]
            ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
    return "".join(chars[i] for i in ids[0].tolist())


model = GPT2LMHeadModel(config)
model = torch.compile(model, backend="eager")
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)

for step in range(121):
    model.train()
    batch = get_batch()
    loss = model(input_ids=batch, labels=batch).loss
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.3f}")

os.makedirs("out", exist_ok=True)
torch.save(model.state_dict(), "out/charlm.pt")

# hand the plain model over to the generation scripts as a regular transformers folder
plain = GPT2LMHeadModel(config)
plain.load_state_dict(torch.load("out/charlm.pt"), strict=False)
plain.save_pretrained("out/charlm")
print(sample(plain, "the sea "))
