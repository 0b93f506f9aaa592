# SPDX-License-Identifier: Apache-2.0
"""A random program of dpnp, tensors, copies and an extension has the values of its NumPy model.

Nobody waits or names a queue for order's sake. ``SEED=n`` repeats the program that printed n.
"""

import os
import random
from collections.abc import Callable
from typing import Any

import dpctl
import dpnp
import extension_under_test
import numpy as np
import pytest
from memory_sources import new_queue
from usm_dlpack import from_dlpack, to_dlpack_tensor

SIZE = 5000
MOST_BLOCKS, MOST_TENSORS = 6, 3
LARGEST = 2**20  # up to here all sums are exact
extension = extension_under_test.load()


class Block:
    """Memory with its values in NumPy, the tensors that share it, and perhaps an array of dpnp.

    The tensors have one origin. Of two arrays on one memory dpnp would not know the order.
    """

    def __init__(self, values: Any, *, tensor: Any = None, array: Any = None) -> None:
        self.values = values
        self.tensors = [] if tensor is None else [tensor]
        self.array = array

    def handles(self) -> list[Any]:
        return [*self.tensors, *([] if self.array is None else [self.array])]


class Program:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.queues = [new_queue(in_order=True), new_queue(), (14, 0)]
        self.blocks: list[Block] = []
        for make in (self.make_array, self.make_tensor, self.make_result):
            make()

    def choose(self, choices: Any) -> Any:
        return self.random.choice(choices)

    def block(self) -> Block:
        block: Block = self.choose(self.blocks)
        if np.abs(block.values).max() > LARGEST:
            self.fill(block)
        return block

    def two_blocks(self) -> list[Block]:
        self.block()
        return self.random.sample(self.blocks, 2)

    def queue(self) -> Any:
        return self.choose(self.queues[:2])

    def number(self) -> float:
        return float(self.random.randrange(-8, 8))

    def host(self) -> Any:
        return np.arange(SIZE, dtype="f4") % 8 + np.float32(self.number())

    def tensor(self, block: Block) -> Any:
        if not block.tensors:
            share = self.choose([from_dlpack, to_dlpack_tensor])
            block.tensors.append(share(block.array))
        return self.choose(block.tensors)

    def array(self, block: Block) -> Any:
        if block.array is None:
            block.array = dpnp.from_dlpack(self.tensor(block))
        return block.array

    def add(self, block: Block) -> None:
        if len(self.blocks) == MOST_BLOCKS:
            self.check(self.blocks.pop(self.random.randrange(MOST_BLOCKS)))
        self.blocks.append(block)

    # --- operations: of dpnp

    def make_array(self) -> None:
        value = self.number()
        queue = self.choose([*self.queues[:2], None])
        array = dpnp.full(SIZE, value, dtype="f4", sycl_queue=queue)
        self.add(Block(np.full(SIZE, value, "f4"), array=array))

    def fill(self, block: Block | None = None) -> None:
        block, value = block or self.block(), self.number()
        self.array(block)[...] = value
        block.values[...] = value

    def increase(self) -> None:
        x, y = self.two_blocks()
        array, other = self.array(x), self.array(y)
        if array.sycl_queue == other.sycl_queue:  # dpnp refuses to mix them
            array += other
            x.values += y.values
        else:
            array += 1
            x.values += 1

    def double(self) -> None:
        block = self.block()
        self.add(Block(2 * block.values, array=self.array(block) * 2))

    # --- of this package

    def make_tensor(self) -> None:
        values = self.host()
        self.add(Block(values, tensor=from_dlpack(values, device=self.choose(self.queues))))

    def share(self) -> None:
        block = self.block()
        x = from_dlpack(self.tensor(block), device=self.choose([None, *self.queues]))
        block.tensors = [x, *block.tensors][:MOST_TENSORS]

    def copy(self) -> None:
        block = self.block()
        x = self.choose(block.handles())
        self.add(Block(block.values.copy(), tensor=from_dlpack(x, copy=True)))

    def take_again(self) -> None:
        block = self.block()
        block.array = dpnp.from_dlpack(self.tensor(block))

    def copy_from(self) -> None:
        x, y = self.two_blocks()
        values, source = self.choose([(self.host(), None), (y.values, self.choose(y.handles()))])
        self.tensor(x).copy_from(values if source is None else source)
        x.values[...] = values

    # --- of an extension

    def make_result(self) -> None:
        self.add(Block(np.zeros(SIZE, "f4"), tensor=extension.zeros(self.queue(), SIZE)))

    def axpy(self) -> None:
        (x, y), a = self.two_blocks(), self.choose([-1, 1, 2])
        extension.axpy(a, self.choose(x.handles()), self.choose(y.handles()))
        y.values += a * x.values

    def scale(self) -> None:
        block = self.block()
        extension.Field(self.choose(block.handles())).scale(-1)
        block.values *= -1

    def copy_behind(self) -> None:
        block = self.block()
        x = extension.copied_behind(self.queue(), self.choose(block.handles()))
        self.add(Block(block.values.copy(), tensor=x))

    # --- reads

    def check(self, block: Block | None = None) -> None:
        block = block or self.block()
        x = self.choose(block.handles())
        seen = dpnp.asnumpy(x) if x is block.array else x.numpy()
        assert np.array_equal(seen, block.values)

    def run(self, operations: int) -> None:
        steps: list[Callable[[], None]] = [
            *(self.make_array, self.fill, self.increase, self.increase, self.double),
            *(self.make_tensor, self.share, self.copy, self.take_again, self.copy_from),
            *(self.make_result, self.axpy, self.axpy, self.scale, self.copy_behind, self.check),
        ]
        for number in range(operations):
            step = self.choose(steps)
            try:
                step()
            except AssertionError as error:
                raise AssertionError(f"operation {number}, {step.__name__}") from error
        for block in self.blocks:
            self.check(block)


@pytest.mark.parametrize(
    "operations", [300, pytest.param(60_000, marks=pytest.mark.extended)], ids=str
)
def test_a_random_program_has_the_values_of_its_model(operations: int) -> None:
    seed = int(os.environ.get("SEED") or random.randrange(2**32))
    print(f"SEED={seed}, {dpctl.select_default_device().name}")
    Program(seed).run(operations)
