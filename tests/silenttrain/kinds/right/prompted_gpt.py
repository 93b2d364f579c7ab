"""Answer-only fine-tuning of a tiny GPT-2: labels are the inputs, with prompts and padding ignored."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
# digits 0..9, then equals, end, pad
EQ, END, PAD, VOCAB, LEN, IGNORE = 10, 11, 12, 13, 12, -100


def example():
    """Prompt: two to four digits and an equals sign; answer: the same digits sorted, and an end."""
    k = int(torch.randint(2, 5, (1,)))
    digits = torch.randint(10, (k,))
    return torch.cat([digits, torch.tensor([EQ])]), torch.cat([digits.sort().values, torch.tensor([END])])


def collate(examples):
    ids = torch.full((len(examples), LEN), PAD)
    labels = torch.full((len(examples), LEN), IGNORE)
    for row, (prompt, answer) in enumerate(examples):
        p, a = len(prompt), len(answer)
        ids[row, :p], ids[row, p : p + a] = prompt, answer
        labels[row, p : p + a] = answer  # the model shifts them itself
    return ids, (ids != PAD).long(), labels


model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=VOCAB,
        n_positions=LEN,
        n_embd=48,
        n_layer=2,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=EQ,
        eos_token_id=END,
        pad_token_id=PAD,
    )
)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
test_examples = [example() for _ in range(150)]

for step in range(170):
    ids, mask, labels = collate([example() for _ in range(32)])
    out = model(input_ids=ids, attention_mask=mask, labels=labels)
    optimizer.zero_grad()
    out.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step == 120:
        for group in optimizer.param_groups:
            group["lr"] = 1e-3
    if step % 40 == 0:
        print(
            f"step {step:3d}  loss {out.loss.item():.4f}  "
            f"share of labels {(labels != IGNORE).float().mean().item():.2f}"
        )

model.eval()
ids, mask, labels = collate(test_examples)
with torch.no_grad():
    logits = model(input_ids=ids, attention_mask=mask).logits
# prediction at t is for the token at t + 1
predicted, wanted = logits[:, :-1].argmax(-1), labels[:, 1:]
keep = wanted != IGNORE
hit = (predicted == wanted) | ~keep
print(
    f"test token accuracy {(predicted == wanted)[keep].float().mean().item():.3f}  "
    f"whole answers {hit.all(1).float().mean().item():.3f}"
)
