# needs trl
"""TRL's SFTTrainer on a tiny model, which goes on from the last checkpoint."""

import os

from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed
from transformers.trainer_utils import get_last_checkpoint
from trl import SFTConfig, SFTTrainer

set_seed(5)
words = ["<end>", *(f"w{number}" for number in range(30))]
own = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="<end>"))
own.pre_tokenizer = Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=own, eos_token="<end>", pad_token="<end>", unk_token="<end>")
texts = [" ".join(words[1 + (row * step) % 30] for step in range(1, 9)) for row in range(48)]
model = GPT2LMHeadModel(GPT2Config(vocab_size=31, n_positions=16, n_embd=16, n_layer=1, n_head=2))
arguments = SFTConfig(
    output_dir="out",
    num_train_epochs=3,
    per_device_train_batch_size=8,
    learning_rate=1e-2,
    save_strategy="steps",
    save_steps=4,
    save_total_limit=2,
    max_length=16,
    report_to=[],
    use_cpu=True,
    bf16=False,
    disable_tqdm=True,
)
rows = Dataset.from_dict({"text": texts})
trainer = SFTTrainer(model, args=arguments, train_dataset=rows, processing_class=tokenizer)
trainer.train(resume_from_checkpoint=get_last_checkpoint("out") if os.path.isdir("out") else None)
