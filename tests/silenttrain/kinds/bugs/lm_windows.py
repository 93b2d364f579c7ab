"""Character-level GPT-2 on a synthetic text, random windows, held-out tail."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
VOCAB, BLOCK, BATCH, STEPS = 16, 16, 24, 330


def synthetic_text(length):
    """Second-order Markov chain with random transition table."""
    table = torch.softmax(1.2 * torch.randn(VOCAB, VOCAB, VOCAB), -1)
    out = [0, 1]
    noise = torch.rand(length)
    cum = table.cumsum(-1)
    for i in range(length - 2):
        row = cum[out[-2], out[-1]]
        out.append(min(int((row < noise[i]).sum()), VOCAB - 1))
    return torch.tensor(out)


data = synthetic_text(800)
split = int(0.75 * len(data))
train_data, val_data = data[:split], data[split:]

config = GPT2Config(
    vocab_size=VOCAB,
    n_positions=BLOCK,
    n_embd=48,
    n_layer=1,
    n_head=2,
    bos_token_id=0,
    eos_token_id=0,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)


def get_batch():
    starts = torch.randint(len(data) - BLOCK, (BATCH,))
    return torch.stack([data[s : s + BLOCK] for s in starts])


@torch.no_grad()
def evaluate(tokens):
    model.eval()
    windows = tokens[: len(tokens) // BLOCK * BLOCK].view(-1, BLOCK)
    loss = model(input_ids=windows, labels=windows).loss.item()
    model.train()
    return loss


model.train()
for step in range(STEPS):
    batch = get_batch()
    loss = model(input_ids=batch, labels=batch).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 110 == 0:
        print(f"step {step} train loss {loss.item():.4f} validation loss {evaluate(val_data):.4f}")

print(f"final train loss {evaluate(train_data):.4f} validation loss {evaluate(val_data):.4f}")
