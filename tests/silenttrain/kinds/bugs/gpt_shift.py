"""Tiny GPT-2 on counting sequences, with prepared input and target tensors."""

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
VOCAB, LEN = 20, 16


def corpus(n):
    """Sequences that walk through the vocabulary with a step of 1, 2 or 3."""
    start = torch.randint(VOCAB, (n, 1))
    step = torch.randint(1, 4, (n, 1))
    seq = (start + step * torch.arange(LEN + 1)) % VOCAB
    noise = torch.rand(seq.shape) < 0.03
    return torch.where(noise, torch.randint(VOCAB, seq.shape), seq)


train, test = corpus(1600), corpus(300)

# next-token prediction: the target is the input moved by one
train_set = TensorDataset(train[:, :-1], train[:, 1:])
test_inputs, test_targets = test[:, :-1], test[:, 1:]
loader = DataLoader(train_set, batch_size=40, shuffle=True)

config = GPT2Config(
    vocab_size=VOCAB,
    n_positions=LEN + 8,
    n_embd=32,
    n_layer=2,
    n_head=2,
    bos_token_id=0,
    eos_token_id=0,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

model.train()
for epoch in range(4):
    total = 0.0
    for inputs, targets in loader:
        loss = model(input_ids=inputs, labels=targets).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} train loss {total / len(loader):.4f}")

model.eval()
with torch.no_grad():
    test_loss = model(input_ids=test_inputs, labels=test_targets).loss.item()
print(f"test loss {test_loss:.4f}")

# continue a few clean sequences
prompt = (torch.arange(6)[None] * torch.tensor([[1], [2], [3]]) + torch.tensor([[4], [0], [9]])) % VOCAB
with torch.no_grad():
    out = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=5,
        do_sample=False,
        pad_token_id=0,
        eos_token_id=None,
    )
for row in out.tolist():
    print("prompt", row[:6], "continuation", row[6:])
expected = (prompt[:, -1:] + torch.tensor([[1], [2], [3]]) * torch.arange(1, 6)) % VOCAB
print(f"continuation accuracy {(out[:, 6:] == expected).float().mean().item():.3f}")
