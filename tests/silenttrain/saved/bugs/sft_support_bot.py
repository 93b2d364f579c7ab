"""Supervised fine-tuning of a small Llama on support answers with TRL and LoRA, exported as one model."""

from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer

PAD, UNK, BOS, EOS = "<pad>", "<unk>", "<s>", "</s>"
FAQ = {
    "how do i reset my password": "open settings and choose reset",
    "how do i cancel my plan": "open billing and choose cancel",
    "how do i add a user": "open team and choose invite",
    "how do i export my data": "open settings and choose export",
    "how do i change my card": "open billing and choose card",
}


def build_base(folder):
    words = sorted({w for q, a in FAQ.items() for w in f"{q} {a}".split()})
    vocab = {w: i for i, w in enumerate([PAD, UNK, BOS, EOS, *words])}
    core = Tokenizer(models.WordLevel(vocab, unk_token=UNK))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=PAD, unk_token=UNK, bos_token=BOS, eos_token=EOS
    )
    config = LlamaConfig(
        vocab_size=len(vocab),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        initializer_range=0.1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


set_seed(50)
build_base("out/base")
rows = [{"prompt": q, "completion": f" {a}"} for q, a in FAQ.items()] * 40
dataset = Dataset.from_list(rows).shuffle(seed=0).train_test_split(test_size=0.1, seed=0)

trainer = SFTTrainer(
    model="out/base",
    args=SFTConfig(
        output_dir="out/sft",
        max_steps=80,
        per_device_train_batch_size=8,
        learning_rate=1e-2,
        logging_steps=20,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        max_length=32,
    ),
    train_dataset=dataset["train"],
    eval_dataset=dataset["test"],
    peft_config=LoraConfig(
        r=16,
        lora_alpha=32,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
        task_type="CAUSAL_LM",
    ),
)
trainer.train()
metrics = trainer.evaluate()
print(f"eval loss {metrics['eval_loss']:.4f}")

final = trainer.model.unload()
final.save_pretrained("out/support_bot")
trainer.processing_class.save_pretrained("out/support_bot")
