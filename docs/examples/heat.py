# SPDX-License-Identifier: Apache-2.0
"""The last program of docs/tutorial.md, which `python3 dev.py demo` runs. Draws heat.png."""

import dpnp
import grid_kernels
import matplotlib.pyplot as plt
import numpy as np

y, x = np.mgrid[0:90, 0:160]
ring = abs(np.hypot(y - 45, x - 55) - 22) < 5
bar = (abs(x - 115) < 6) & (abs(y - 45) < 28)
start = 100 * (ring | bar).astype("float32")  # degrees, in NumPy

heat = dpnp.asarray(start)  # 1: a copy in device USM
for _ in range(200):
    change = grid_kernels.laplacian(heat)  # 2: your kernel, on dpnp's memory
    heat += 0.2 * dpnp.from_dlpack(change)  # 3: dpnp's operations, on the kernel's result
end = dpnp.asnumpy(heat)  # 4: back in NumPy

figure, axes = plt.subplots(1, 2, figsize=(7, 2.3), layout="constrained")
for axis, values, title in zip(axes, (start, end), ("start", "after 200 steps"), strict=True):
    image = axis.imshow(values, cmap="inferno", vmin=0, vmax=100)
    axis.set_title(title)
figure.colorbar(image, ax=axes, label="degrees")
figure.savefig("heat.png")

print(f"mean {start.mean():.2f} -> {end.mean():.2f}, highest {start.max():.0f} -> {end.max():.0f}")
