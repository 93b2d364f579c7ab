"""Tune a tiny language model towards a reward while staying near the pretrained one."""

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
VOCAB, LEN, BONUS = 16, 10, 7


def sample_text(n):
    start = torch.randint(VOCAB, (n, 1))
    step = torch.randint(1, 3, (n, LEN - 1))
    return torch.cat([start, start + step.cumsum(1)], 1) % VOCAB


config = GPT2Config(
    vocab_size=VOCAB,
    n_positions=LEN,
    n_embd=32,
    n_layer=1,
    n_head=2,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    bos_token_id=0,
    eos_token_id=0,
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(150):
    batch = sample_text(64)
    loss = model(input_ids=batch, labels=batch).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
heldout = sample_text(256)
with torch.no_grad():
    print(f"pretrained  lm loss {model(input_ids=heldout, labels=heldout).loss.item():.3f}")

# policy optimisation: reward for emitting the bonus token, KL to the reference
ref_model = model
ref_model.eval()
kl_coef = 0.5
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def token_logps(net, seq):
    logits = net(input_ids=seq).logits[:, :-1]
    return F.log_softmax(logits, -1)


@torch.no_grad()
def rollout(n):
    seq = torch.randint(VOCAB, (n, 1))
    for _ in range(LEN - 1):
        logits = model(input_ids=seq).logits[:, -1]
        nxt = torch.multinomial(logits.softmax(-1), 1)
        seq = torch.cat([seq, nxt], 1)
    return seq


for step in range(70):
    seq = rollout(64)
    reward = (seq[:, 1:] == BONUS).float().sum(1)
    logp = token_logps(model, seq)
    with torch.no_grad():
        ref_logp = token_logps(ref_model, seq)
    chosen = logp.gather(-1, seq[:, 1:, None]).squeeze(-1)
    kl = (logp.exp() * (logp - ref_logp)).sum(-1).mean()
    advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
    loss = -(advantage[:, None] * chosen).mean() + kl_coef * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0 or step == 69:
        print(f"step {step:3d}  reward {reward.mean().item():.3f}  kl {kl.item():.4f}")

with torch.no_grad():
    print(f"tuned  lm loss {model(input_ids=heldout, labels=heldout).loss.item():.3f}")
