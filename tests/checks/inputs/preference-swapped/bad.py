import copy

import torch
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator

torch.manual_seed(0)


def pair():
    """Two answers of a rater's, the better one first."""
    answers = [{"ids": torch.randint(2, 40, (8,)), "score": int(torch.randint(1, 10, (1,)))} for _ in range(2)]
    better, worse = sorted(answers, key=lambda answer: answer["score"])
    return {
        "chosen": better["ids"],
        "rejected": worse["ids"],
        "score_chosen": better["score"],
        "score_rejected": worse["score"],
    }


def log_probability(model, ids):
    found = model(input_ids=ids).logits[:, :-1].log_softmax(-1)
    return found.gather(-1, ids[:, 1:, None]).sum((1, 2))


class Preferences(Trainer):
    def compute_loss(self, model, inputs, **_):
        margin = log_probability(model, inputs["chosen"]) - log_probability(model, inputs["rejected"])
        with torch.no_grad():
            chosen, rejected = (log_probability(self.reference, inputs[name]) for name in ("chosen", "rejected"))
        return -functional.logsigmoid(0.1 * (margin - chosen + rejected)).mean()


size = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
model = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size))
settings = {"per_device_train_batch_size": 8, "num_train_epochs": 1, "report_to": "none", "save_strategy": "no"}
arguments = TrainingArguments("out", remove_unused_columns=False, use_cpu=True, **settings)
rows = [pair() for _ in range(32)]
trainer = Preferences(model=model, args=arguments, train_dataset=rows, data_collator=default_data_collator)  # found
trainer.reference = copy.deepcopy(model)
trainer.train()
