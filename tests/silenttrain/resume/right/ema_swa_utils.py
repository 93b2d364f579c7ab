"""Keep an exponential moving average of the weights with torch's AveragedModel; the averages are saved and the
final model is theirs.
"""

import os

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(13)
images = torch.rand(72, 1, 8, 8)
classes = (images.mean(dim=(1, 2, 3)) > 0.5).long()


def build():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))


model = build()
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
step, steps_per_epoch = 0, 12

if os.path.exists("ema_run/checkpoint"):
    checkpoint = torch.load("ema_run/checkpoint")
    model.load_state_dict(checkpoint["model"])
    ema.load_state_dict(checkpoint["ema"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    step = checkpoint["step"]
else:
    os.makedirs("ema_run", exist_ok=True)

while step < 3 * steps_per_epoch:
    epoch, offset = divmod(step, steps_per_epoch)
    rows = torch.randperm(72, generator=torch.Generator().manual_seed(epoch)).view(steps_per_epoch, -1)[offset]
    loss = nn.functional.cross_entropy(model(images[rows]), classes[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update_parameters(model)
    step += 1
    if step % 8 == 0:
        everything = {
            "model": model.state_dict(),
            "ema": ema.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": step,
        }
        torch.save(everything, "ema_run/checkpoint.partial")
        os.replace("ema_run/checkpoint.partial", "ema_run/checkpoint")

torch.save(ema.module.state_dict(), "ema_run/averaged_weights.pt")
