"""TRL fine-tuning with LoRA where new tool-call tokens get trained rows of the embedding and of the output layer."""

import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

PAD, UNK, BOS, EOS = "<pad>", "<unk>", "<s>", "</s>"
TOOLS = ["<call>", "</call>"]
CALLS = {
    "weather in oslo": "<call> weather oslo </call>",
    "weather in rome": "<call> weather rome </call>",
    "news about sport": "<call> news sport </call>",
    "news about music": "<call> news music </call>",
}


def build_base(folder):
    words = sorted({w for q, a in CALLS.items() for w in f"{q} {a}".split() if w not in TOOLS})
    vocab = {w: i for i, w in enumerate([PAD, UNK, BOS, EOS, *words])}
    core = Tokenizer(models.WordLevel(vocab, unk_token=UNK))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=PAD, unk_token=UNK, bos_token=BOS, eos_token=EOS
    ).save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(vocab),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        initializer_range=0.1,
    )
    torch.manual_seed(232)
    LlamaForCausalLM(config).save_pretrained(folder)


def load_resized(tokenizer):
    model = AutoModelForCausalLM.from_pretrained("out/base")
    model.resize_token_embeddings(len(tokenizer))
    return model


build_base("out/base")
tokenizer = AutoTokenizer.from_pretrained("out/base")
tokenizer.add_tokens(TOOLS, special_tokens=True)

trainer = SFTTrainer(
    model=load_resized(tokenizer),
    args=SFTConfig(
        output_dir="out/sft",
        max_steps=80,
        per_device_train_batch_size=8,
        learning_rate=8e-3,
        logging_steps=20,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        seed=1,
    ),
    train_dataset=Dataset.from_list([{"prompt": q, "completion": f" {a}"} for q, a in CALLS.items()] * 40),
    processing_class=tokenizer,
    peft_config=LoraConfig(
        r=8,
        lora_alpha=16,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj"],
        modules_to_save=["embed_tokens", "lm_head"],
        task_type="CAUSAL_LM",
    ),
)
trainer.train()
trainer.save_model("out/tool_lora")

model = PeftModel.from_pretrained(load_resized(tokenizer), "out/tool_lora").eval()
saved_tokenizer = AutoTokenizer.from_pretrained("out/tool_lora")
for query in CALLS:
    ids = saved_tokenizer(query, return_tensors="pt")["input_ids"]
    print(saved_tokenizer.decode(model.generate(input_ids=ids, max_new_tokens=5, do_sample=False)[0]))
