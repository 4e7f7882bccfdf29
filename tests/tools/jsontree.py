# SPDX-License-Identifier: MIT
"""Reads the call tree of one mode of a JSON output."""


def stacks(mode):
    """Yields the path from the thread down, without the thread, of each node: (names of the frames, its own samples, their weight
    in the mode's unit). A node comes after its parent, which it names by how far back that is; a thread is its own."""
    names = [mode["strings"][at] for at in mode["frames"][::3]]
    weights = mode.get("selfWeight") or [1000 * us for us in mode["selfUs"]]
    paths = {0: []}
    for i, (back, frame) in enumerate(zip(mode["parent"], mode["frame"]), 1):
        paths[i] = [] if i == back else paths[i - back] + [names[frame]]
        yield paths[i], mode["self"][i - 1], weights[i - 1]
