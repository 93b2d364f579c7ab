import copy

import torch
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator

torch.manual_seed(0)
pairs = [{"chosen": torch.randint(2, 40, (8,)), "rejected": torch.randint(2, 40, (8,))} for _ in range(32)]
size = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
base = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size))
model = copy.deepcopy(base)
with torch.no_grad():  # stands for a supervised fine-tuning
    model.transformer.wte.weight += 0.1


def log_probability(model, ids):
    found = model(input_ids=ids).logits[:, :-1].log_softmax(-1)
    return found.gather(-1, ids[:, 1:, None]).sum((1, 2))


class Preferences(Trainer):
    ref_model = None

    def compute_loss(self, model, inputs, **_):
        margin = log_probability(model, inputs["chosen"]) - log_probability(model, inputs["rejected"])
        with torch.no_grad():
            chosen, rejected = (log_probability(self.ref_model, inputs[name]) for name in ("chosen", "rejected"))
        return -functional.logsigmoid(0.1 * (margin - chosen + rejected)).mean()


settings = {"per_device_train_batch_size": 8, "num_train_epochs": 1, "report_to": "none", "save_strategy": "no"}
arguments = TrainingArguments("out", remove_unused_columns=False, use_cpu=True, **settings)
trainer = Preferences(model=model, args=arguments, train_dataset=pairs, data_collator=default_data_collator)  # found
trainer.ref_model = base
trainer.train()
