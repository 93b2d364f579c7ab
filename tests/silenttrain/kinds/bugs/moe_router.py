"""A tiny Mixtral language model with load balancing of the experts."""

import torch
import torch.nn.functional as F
from transformers import MixtralConfig, MixtralForCausalLM

torch.manual_seed(0)
VOCAB, LEN = 24, 16

config = MixtralConfig(
    vocab_size=VOCAB,
    hidden_size=32,
    intermediate_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=LEN,
    num_local_experts=4,
    num_experts_per_tok=2,
    output_router_logits=True,
    router_aux_loss_coef=0.5,
    bos_token_id=1,
    eos_token_id=2,
)
model = MixtralForCausalLM(config)


# a noisy cyclic grammar: next = current + stride(first token)
def sequences(n):
    ids = torch.zeros(n, LEN, dtype=torch.long)
    ids[:, 0] = torch.randint(1, 4, (n,))
    ids[:, 1] = torch.randint(4, VOCAB, (n,))
    for t in range(2, LEN):
        ids[:, t] = 4 + (ids[:, t - 1] - 4 + ids[:, 0]) % (VOCAB - 4)
    flip = torch.rand(n, LEN) < 0.05
    flip[:, :2] = False
    return torch.where(flip, torch.randint(4, VOCAB, (n, LEN)), ids)


def lm_loss(logits, ids, smoothing=0.0):
    return F.cross_entropy(logits[:, :-1].reshape(-1, VOCAB), ids[:, 1:].reshape(-1), label_smoothing=smoothing)


@torch.no_grad()
def expert_load(out):
    chosen = torch.cat(out.router_logits).argmax(-1)
    return torch.bincount(chosen.flatten(), minlength=4).float() / chosen.numel()


train, test = sequences(1500), sequences(300)
opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=6e-3, total_steps=140)

model.train()
for step in range(140):
    batch = train[torch.randint(len(train), (32,))]
    out = model(input_ids=batch)
    loss = lm_loss(out.logits, batch, smoothing=0.05)
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
    if step % 35 == 0:
        print(f"step {step} loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    out = model(input_ids=test)
    print(f"test loss {lm_loss(out.logits, test).item():.4f}")
    print("expert load", [round(v, 3) for v in expert_load(out).tolist()])
