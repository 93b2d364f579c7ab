"""R-Drop on a tiny BERT classifier: two passes with different dropout should agree."""

import torch
import torch.nn.functional as F
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
VOCAB, LEN, ALPHA = 40, 12, 2.0


def make(n):
    ids = torch.randint(4, VOCAB, (n, LEN))
    ids[:, 0] = 1
    low = (ids[:, 1:] < 20).sum(1)
    y = (low > 5).long()
    return ids, y


train_ids, train_y = make(800)
test_ids, test_y = make(400)
config = BertConfig(
    vocab_size=VOCAB,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=64,
    num_labels=2,
    max_position_embeddings=LEN,
    hidden_dropout_prob=0.3,
    attention_probs_dropout_prob=0.1,
)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)


def symmetric_kl(p_logits, q_logits):
    p_log, q_log = F.log_softmax(p_logits, -1), F.log_softmax(q_logits, -1)
    forward = F.kl_div(p_log, q_log, log_target=True, reduction="batchmean")
    backward = F.kl_div(q_log, p_log, log_target=True, reduction="batchmean")
    return (forward + backward) / 2


for epoch in range(8):
    model.train()
    for idx in torch.randperm(len(train_ids)).split(50):
        out1 = model(input_ids=train_ids[idx], labels=train_y[idx])
        out2 = model(input_ids=train_ids[idx], labels=train_y[idx])
        ce = (out1.loss + out2.loss) / 2
        consistency = symmetric_kl(out1.logits, out1.logits)
        loss = ce + ALPHA * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}  ce {ce.item():.4f}  consistency {consistency.item():.4f}")

with torch.no_grad():
    model.train()
    a, b = model(input_ids=test_ids).logits, model(input_ids=test_ids).logits
    disagreement = symmetric_kl(a, b).item()
    model.eval()
    acc = (model(input_ids=test_ids).logits.argmax(-1) == test_y).float().mean().item()
print(f"test accuracy {acc:.3f}  disagreement under dropout {disagreement:.4f}")
