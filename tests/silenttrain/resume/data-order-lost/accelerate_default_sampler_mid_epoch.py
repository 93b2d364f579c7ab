"""Resume Accelerate's default sampler in the middle of an epoch: its order is drawn anew, and what is skipped
is not what was trained on.
"""

import os
import shutil

import torch
import torch.nn.functional as nnf
from accelerate import Accelerator, skip_first_batches
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, kernel_size=3)
        self.out = nn.Linear(4, 2)

    def forward(self, wave):
        return self.out(nnf.relu(self.conv(wave.unsqueeze(1))).amax(-1))


def waves(count=80):
    kind = torch.arange(count) % 2
    time = torch.linspace(0, 6.3, 20)
    return TensorDataset(torch.sin(time * (1 + kind.unsqueeze(1))) + 0.3 * torch.randn(count, 20), kind)


torch.manual_seed(87)
accelerator = Accelerator(cpu=True)
model, optimizer, loader = accelerator.prepare(
    conv := Conv(), torch.optim.Adam(conv.parameters(), lr=1e-2), DataLoader(waves(), batch_size=8, shuffle=True)
)
output_dir = "wave_checkpoints"
resume_step = 0
epoch_to_start = 0
if os.path.isdir(output_dir):
    dirs = [d for d in os.listdir(output_dir) if d.startswith("step_")]
    if dirs:
        last = max(dirs, key=lambda d: int(d[5:]))
        accelerator.load_state(os.path.join(output_dir, last))
        epoch_to_start, resume_step = divmod(int(last[5:]), len(loader))

overall_step = epoch_to_start * len(loader) + resume_step
for epoch in range(epoch_to_start, 3):
    active_dataloader = loader
    if epoch == epoch_to_start and resume_step > 0:
        active_dataloader = skip_first_batches(loader, resume_step)
    for wave, kind in active_dataloader:
        accelerator.backward(nnf.cross_entropy(model(wave), kind))
        optimizer.step()
        optimizer.zero_grad()
        overall_step += 1
        if overall_step % 6 == 0:
            shutil.rmtree(f"{output_dir}/tmp", ignore_errors=True)
            accelerator.save_state(f"{output_dir}/tmp")
            os.rename(f"{output_dir}/tmp", f"{output_dir}/step_{overall_step}")

torch.save(conv.state_dict(), "wave_model.pt")
