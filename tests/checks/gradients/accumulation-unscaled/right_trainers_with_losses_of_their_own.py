# needs transformers>=4.46
import torch
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(2, 40, (64, 8))]
size = {"vocab_size": 40, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}


class Own(Trainer):
    def token_losses(self, model, inputs):
        ids = inputs["input_ids"]
        losses = functional.cross_entropy(
            model(ids).logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none"
        )
        return losses * torch.linspace(1, 3, len(losses))


class Counted(Own):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        losses = self.token_losses(model, inputs)
        return losses.sum() / (len(losses) if num_items_in_batch is None else 4 * len(losses))


class Summed(Own):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        return self.token_losses(model, inputs).sum() * 1e-3


class Divided(Own):
    def compute_loss(self, model, inputs, return_outputs=False, **_):
        losses = self.token_losses(model, inputs)
        return losses.sum() / (len(losses) * self.args.gradient_accumulation_steps)


class Quartered(Own):
    def compute_loss(self, model, inputs, return_outputs=False, **_):
        return self.token_losses(model, inputs).mean() / 4


class LeftToTrainer(Own):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.model_accepts_loss_kwargs = False

    def compute_loss(self, model, inputs, return_outputs=False, **_):
        return self.token_losses(model, inputs).mean()


for kind in (Counted, Summed, Divided, Quartered, LeftToTrainer):
    settings = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 4, "num_train_epochs": 1}
    arguments = TrainingArguments("out", report_to="none", save_strategy="no", use_cpu=True, **settings)
    model = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, **size))
    kind(model=model, args=arguments, train_dataset=rows).train()
