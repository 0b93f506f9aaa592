# SPDX-License-Identifier: Apache-2.0
"""The tutorial's last chapter, run as it stands: what it prints, computes and draws."""

from pathlib import Path

import guide
import matplotlib.pyplot as plt
import numpy as np


def test_heat_spreads_as_in_numpy_and_is_drawn_as_the_page_shows(tmp_path: Path) -> None:
    program = guide.programs_of("tutorial")[-1]
    program.code += 'np.savez("values.npz", start=start, end=end)\n'
    assert program.run(tmp_path) == program.printed
    values = np.load(tmp_path / "values.npz")
    heat = values["start"]
    for _ in range(200):
        around = np.pad(heat, 1)
        vertical = around[:-2, 1:-1] + around[2:, 1:-1]
        change = vertical + around[1:-1, :-2] + around[1:-1, 2:] - 4 * heat
        heat = heat + np.float32(0.2) * change
    assert np.allclose(values["end"], heat, rtol=0, atol=1e-3)
    drawn = plt.imread(tmp_path / "heat.png")
    shown = plt.imread(guide.DOCS / "diagrams/heat.png")
    assert drawn.shape == shown.shape
    assert np.abs(drawn - shown).mean() < 0.01
