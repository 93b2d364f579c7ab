import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP
from transformers import GPT2Config, GPT2LMHeadModel


def sequences(n, seed):
    g = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(n):
        k = int(torch.randint(2, 15, (), generator=g))
        motif = torch.randint(2, 30, (3,), generator=g)
        rows.append(motif.repeat(k))
    return rows


def to_batch(rows):
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=0)
    labels = ids.masked_fill(ids == 0, -100)
    return ids, labels


def token_nll(model, ids, labels):
    logits = model(input_ids=ids, attention_mask=(ids != 0).long()).logits
    nll = cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100, reduction="sum")
    return nll, (labels[:, 1:] != -100).sum()


@torch.no_grad()
def evaluate(model, rows, rank, world):
    model.eval()
    nll = torch.zeros(())
    tokens = torch.zeros(())
    mine = rows[rank::world]
    for i in range(0, len(mine), 16):
        a, b = token_nll(model, *to_batch(mine[i : i + 16]))
        nll += a
        tokens += b
    dist.all_reduce(nll)
    dist.all_reduce(tokens)
    model.train()
    return (nll / tokens).item()


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(123)
config = GPT2Config(
    vocab_size=30,
    n_positions=48,
    n_embd=32,
    n_layer=2,
    n_head=4,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    bos_token_id=1,
    eos_token_id=1,
    use_cache=False,
)
core = GPT2LMHeadModel(config)
model = DDP(core)
opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
train, held = sequences(1000, 1), sequences(121, 2)
pick = torch.Generator().manual_seed(9)

for step in range(1, 61):
    rows = torch.randint(len(train), (8 * world,), generator=pick).tolist()
    ids, labels = to_batch([train[i] for i in rows[rank::world]])
    nll, n = token_nll(model, ids, labels)
    dist.all_reduce(n)
    loss = nll * world / n
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    if step % 20 == 0:
        val = evaluate(core, held, rank, world)
        if rank == 0:
            print(f"step {step} eval loss {val:.4f} ppl {math.exp(val):.2f}", flush=True)
dist.destroy_process_group()
