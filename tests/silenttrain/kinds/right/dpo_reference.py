"""Preference tuning (DPO) of a tiny GPT-2 against a fixed reference model."""

import copy

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
VOCAB, PROMPT, ANSWER, BETA = 20, 4, 4, 0.3

cfg = GPT2Config(
    vocab_size=VOCAB,
    n_positions=PROMPT + ANSWER,
    n_embd=32,
    n_layer=2,
    n_head=2,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    bos_token_id=0,
    eos_token_id=0,
)
policy = GPT2LMHeadModel(cfg)


def make_pairs(n):
    prompt = torch.randint(2, VOCAB, (n, PROMPT))
    copied = prompt.clone()  # preferred answers repeat the prompt
    other = torch.randint(2, VOCAB, (n, ANSWER))
    return prompt, copied, other


def answer_logp(model, prompt, answer):
    ids = torch.cat([prompt, answer], 1)
    logp = model(input_ids=ids).logits[:, PROMPT - 1 : -1].log_softmax(-1)
    return logp.gather(-1, answer.unsqueeze(-1)).squeeze(-1).sum(1)


# short supervised stage on both kinds of answers
opt = torch.optim.AdamW(policy.parameters(), lr=3e-3)
for step in range(80):
    prompt, good, bad = make_pairs(32)
    loss = -torch.cat([answer_logp(policy, prompt, good), answer_logp(policy, prompt, bad)]).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"sft loss {loss.item():.3f}")

reference = copy.deepcopy(policy).eval()
reference.requires_grad_(False)

opt = torch.optim.AdamW(policy.parameters(), lr=1e-3)
for step in range(120):
    prompt, good, bad = make_pairs(32)
    with torch.no_grad():
        ref_good = answer_logp(reference, prompt, good)
        ref_bad = answer_logp(reference, prompt, bad)
    margin = (answer_logp(policy, prompt, good) - ref_good) - (answer_logp(policy, prompt, bad) - ref_bad)
    loss = -F.logsigmoid(BETA * margin).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 0:
        print(f"step {step} dpo loss {loss.item():.4f}")

policy.eval()
with torch.no_grad():
    prompt, good, bad = make_pairs(400)
    gain = answer_logp(policy, prompt, good) - answer_logp(policy, prompt, bad)
    base = answer_logp(reference, prompt, good) - answer_logp(reference, prompt, bad)
print(f"mean log-ratio policy {gain.mean().item():.2f} reference {base.mean().item():.2f}")
print(
    f"preference accuracy policy {(gain > 0).float().mean().item():.3f} "
    f"reference {(base > 0).float().mean().item():.3f}"
)
