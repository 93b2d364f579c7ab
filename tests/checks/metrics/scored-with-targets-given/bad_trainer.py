import torch
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config, T5ForConditionalGeneration

torch.manual_seed(0)
config = T5Config(vocab_size=32, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config)


def rows(number):
    return [{"input_ids": one, "labels": one.flip(0)} for one in torch.randint(2, 32, (number, 8))]


def exact_match(predicted):
    written = predicted.predictions[0].argmax(-1)
    return {"exact_match": float((written == predicted.label_ids).all(1).mean())}


arguments = Seq2SeqTrainingArguments(
    "out", num_train_epochs=2, eval_strategy="epoch", save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True
)
trainer = Seq2SeqTrainer(model, arguments, train_dataset=rows(64), eval_dataset=rows(16), compute_metrics=exact_match)
trainer.train()  # found
