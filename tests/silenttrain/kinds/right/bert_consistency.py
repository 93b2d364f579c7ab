"""Semi-supervised tiny BERT: UDA-style consistency with confidence masking and a signal schedule."""

import torch
import torch.nn.functional as F
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(1)
VOCAB, LEN, MASK, CONFIDENT, TEMP = 30, 10, 2, 0.8, 0.5


def make(n):
    y = torch.randint(2, (n,))
    ids = torch.randint(4, VOCAB, (n, LEN))
    cue = torch.rand(n, LEN) < 0.35
    ids = torch.where(cue, 4 + 3 * y[:, None] + torch.randint(3, (n, LEN)), ids)
    ids[:, 0] = 1
    return ids, y


def corrupt(ids):
    hide = torch.rand(ids.shape) < 0.2
    hide[:, 0] = False
    return ids.masked_fill(hide, MASK)


labelled_x, labelled_y = make(120)
unlabelled_x, _ = make(1200)
test_x, test_y = make(400)
model = BertForSequenceClassification(
    BertConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=2,
        max_position_embeddings=LEN,
    )
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
STEPS = 140
for step in range(STEPS):
    model.train()
    rows = torch.randint(len(labelled_x), (24,))
    ce = F.cross_entropy(model(input_ids=labelled_x[rows]).logits, labelled_y[rows], reduction="none")
    # training signal annealing: drop labelled rows the model already has
    with torch.no_grad():
        threshold = 0.5 + 0.5 * (step + 1) / STEPS
        keep = ((-ce).exp() < threshold).float()
    supervised = (ce * keep).sum() / keep.sum().clamp(min=1)

    pool = unlabelled_x[torch.randint(len(unlabelled_x), (48,))]
    with torch.no_grad():
        clean = model(input_ids=pool).logits
        sure = (clean.softmax(-1).max(-1).values > CONFIDENT).float()
        target = (clean / TEMP).softmax(-1)
    noisy = F.log_softmax(model(input_ids=corrupt(pool)).logits, -1)
    consistency = (F.kl_div(noisy, target, reduction="none").sum(-1) * sure).mean()
    loss = supervised + consistency
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(
            f"step {step:3d}  supervised {supervised.item():.4f} ({int(keep.sum())} rows)  "
            f"consistency {consistency.item():.4f} ({int(sure.sum())} rows)"
        )

model.eval()
with torch.no_grad():
    acc = (model(input_ids=test_x).logits.argmax(-1) == test_y).float().mean().item()
print(f"test accuracy {acc:.3f}")
