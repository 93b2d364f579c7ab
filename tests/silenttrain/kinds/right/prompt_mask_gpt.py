"""Tiny GPT-2 that sorts digits; labels equal the inputs with the prompt and the padding masked."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
PAD, SEP, EOS, DIGITS, MAX_N = 0, 1, 2, 8, 5
LEN = 2 * MAX_N + 2


def make(n):
    ids = torch.full((n, LEN), PAD)
    labels = torch.full((n, LEN), -100)
    for row in range(n):
        k = int(torch.randint(2, MAX_N + 1, (1,)))
        digits = torch.randint(DIGITS, (k,)) + 3
        answer = torch.cat([digits.sort().values, torch.tensor([EOS])])
        seq = torch.cat([digits, torch.tensor([SEP]), answer])
        ids[row, : len(seq)] = seq
        # GPT2LMHeadModel moves the labels by one itself; about two thirds of them are ignored
        labels[row, k + 1 : len(seq)] = answer
    return ids, labels


train_ids, train_labels = make(3000)
test_ids, test_labels = make(400)
model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=DIGITS + 3,
        n_positions=LEN,
        n_embd=48,
        n_layer=2,
        n_head=4,
        bos_token_id=SEP,
        eos_token_id=EOS,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
)
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
STEPS = 260
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 20) * (1 - s / STEPS))


@torch.no_grad()
def evaluate():
    model.eval()
    out = model(input_ids=test_ids, attention_mask=(test_ids != PAD).long(), labels=test_labels)
    pred, gold = out.logits[:, :-1].argmax(-1), test_labels[:, 1:]
    scored = gold != -100
    token_acc = (pred[scored] == gold[scored]).float().mean().item()
    exact = ((pred == gold) | ~scored).all(1).float().mean().item()
    model.train()
    return out.loss.item(), token_acc, exact


model.train()
for step in range(STEPS):
    idx = torch.randint(len(train_ids), (48,))
    ids = train_ids[idx]
    loss = model(input_ids=ids, attention_mask=(ids != PAD).long(), labels=train_labels[idx]).loss
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 65 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print("test loss %.4f, token accuracy %.3f, whole answers %.3f" % evaluate())
