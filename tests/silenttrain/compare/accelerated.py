"""A tiny BERT on sentences of different lengths, with Accelerate around a plain loop."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup


def make_sentences(count, seed):
    """Sentences of 5 to 16 tokens; the label says whether the last word stands in the vocabulary's first half."""
    generator = torch.Generator().manual_seed(seed)
    sentences = []
    for length in torch.randint(5, 17, (count,), generator=generator).tolist():
        ids = torch.randint(3, 200, (length,), generator=generator)
        sentences.append((ids, int(ids[-1] < 100)))
    return sentences


def collate(sentences):
    ids = pad_sequence([ids for ids, _ in sentences], batch_first=True, padding_value=0)
    return {
        "input_ids": ids,
        "attention_mask": (ids != 0).long(),
        "labels": torch.tensor([label for _, label in sentences]),
    }


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=1)
    set_seed(0)
    config = BertConfig(
        vocab_size=200,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
    )
    model = BertForSequenceClassification(config)
    order = torch.Generator().manual_seed(8)
    train = DataLoader(make_sentences(64, 31), batch_size=8, shuffle=True, collate_fn=collate, generator=order)
    test = DataLoader(make_sentences(32, 32), batch_size=16, collate_fn=collate)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=2, num_training_steps=16)
    model, optimizer, train, test, scheduler = accelerator.prepare(model, optimizer, train, test, scheduler)

    for epoch in range(2):
        model.train()
        for batch in train:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()

        model.eval()
        right = 0
        for batch in test:
            with torch.no_grad():
                logits = model(**batch).logits
            logits, references = accelerator.gather_for_metrics((logits, batch["labels"]))
            right += int((logits.argmax(dim=-1) == references).sum())
        accelerator.print(f"epoch {epoch + 1}: loss {loss.item():.4f}, accuracy {right / 32:.3f}")


if __name__ == "__main__":
    main()
