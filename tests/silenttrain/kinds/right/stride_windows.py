"""GPT-2 on a series of symbols: overlapping training windows, a gap, then a held-out tail."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
VOCAB, BLOCK, STRIDE, GAP = 12, 24, 5, 24


def series(n):
    """Symbols follow a period of 7 whose phase slips now and then."""
    base = torch.tensor([2, 9, 4, 4, 7, 1, 10])
    phase = torch.cumsum((torch.rand(n) < 0.03).long(), 0)
    s = base[(torch.arange(n) + phase) % 7]
    noise = torch.rand(n) < 0.04
    return torch.where(noise, torch.randint(VOCAB, (n,)), s)


data = series(6000)
cut = 5000
train, test = data[: cut - GAP], data[cut:]  # the rows of the gap are used by neither part
windows = train.unfold(0, BLOCK, STRIDE)  # neighbours share 19 of 24 symbols
test_windows = test.unfold(0, BLOCK, BLOCK)  # no overlap for the test

model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=VOCAB,
        n_positions=BLOCK,
        n_embd=32,
        n_layer=2,
        n_head=2,
        resid_pdrop=0.1,
        embd_pdrop=0.0,
        attn_pdrop=0.1,
        bos_token_id=0,
        eos_token_id=0,
    )
)
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)


@torch.no_grad()
def evaluate():
    model.eval()
    out = model(input_ids=test_windows, labels=test_windows)
    half = BLOCK // 2
    # only the second half is scored for accuracy: there the context is long enough
    hit = out.logits[:, half - 1 : -1].argmax(-1) == test_windows[:, half:]
    model.train()
    return out.loss.item(), hit.float().mean().item()


model.train()
for epoch in range(4):
    total, n = 0.0, 0
    for idx in torch.randperm(len(windows)).split(32):
        if len(idx) < 32:
            continue  # incomplete batch of this epoch
        batch = windows[idx]
        loss = model(input_ids=batch, labels=batch).loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        total, n = total + loss.item(), n + 1
    test_loss, acc = evaluate()
    print(f"epoch {epoch} train loss {total / n:.4f} test loss {test_loss:.4f} test accuracy {acc:.3f}")
