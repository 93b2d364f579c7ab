"""Direct preference optimisation of a tiny GPT-2 against its frozen starting point."""

import copy

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
VOCAB, PROMPT, ANSWER, BETA = 20, 4, 4, 0.1
config = GPT2Config(
    vocab_size=VOCAB,
    n_positions=8,
    n_embd=32,
    n_layer=2,
    n_head=2,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    bos_token_id=0,
    eos_token_id=0,
)
policy = GPT2LMHeadModel(config)


def make(n, good):
    prompt = torch.randint(1, VOCAB, (n, PROMPT))
    answer = prompt.flip(1) if good else prompt.clone()
    return torch.cat([prompt, answer], 1)


# supervised stage: both kinds of answers occur
opt = torch.optim.AdamW(policy.parameters(), lr=3e-3)
for _ in range(120):
    batch = torch.cat([make(32, True), make(32, False)])
    labels = batch.clone()
    labels[:, :PROMPT] = -100
    loss = policy(input_ids=batch, labels=labels).loss
    opt.zero_grad()
    loss.backward()
    opt.step()

reference = copy.deepcopy(policy).eval()
reference.requires_grad_(False)


def answer_logp(net, seq):
    logp = F.log_softmax(net(input_ids=seq).logits[:, :-1], -1)
    picked = logp.gather(-1, seq[:, 1:, None]).squeeze(-1)
    return picked[:, PROMPT - 1 :].sum(1)


def pairs(n):
    chosen = make(n, True)
    rejected = torch.cat([chosen[:, :PROMPT], chosen[:, :PROMPT]], 1)
    return chosen, rejected


def margin(n=64):
    chosen, rejected = pairs(n)
    with torch.no_grad():
        ref = answer_logp(reference, chosen) - answer_logp(reference, rejected)
    return answer_logp(policy, chosen) - answer_logp(policy, rejected) - ref


opt = torch.optim.AdamW(policy.parameters(), lr=5e-4)
for step in range(80):
    m = margin()
    loss = -F.logsigmoid(BETA * m).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(f"step {step:2d}  dpo loss {loss.item():.4f}  margin {m.mean().item():.3f}")

policy.eval()
with torch.no_grad():
    chosen, rejected = pairs(300)
    before = (answer_logp(reference, chosen) > answer_logp(reference, rejected)).float().mean()
    after = (answer_logp(policy, chosen) > answer_logp(policy, rejected)).float().mean()
print(f"prefers the chosen answer: reference {before.item():.3f}  policy {after.item():.3f}")
