"""Ops that make, copy, pick, join and view tensors."""

import itertools
import os

import numpy as np

from numpy_runner import Call, Device, Dtype, Keep, OpTest, Ref, Refused, SYNCHRONOUS, random, run, some


class Copies(OpTest):
    def test_casts(self):
        x = np.array([[-1.9, 0.0, 1.9], [300.0, np.nan, 7.5]], np.float32)
        self.check(np.array([[-1, 0, 1], [300, 0, 7]], np.int32), "cast", x, Dtype("i32"))
        self.check(x != 0, "cast", x, Dtype("bool"))
        self.check(x.astype(np.float64), "cast", x, Dtype("f64"))
        self.check(x, "cast", x, Dtype("f32"))

    def test_moves(self):
        x = some(3, 4)
        self.check(x, "to", x, Device(os.environ["TENON_DEVICE"]))
        self.check(x, "to", Call("to", x, Device("host")), Device(os.environ["TENON_DEVICE"]))
        self.check(np.broadcast_to(x[:, :1], (3, 4)), "to", Call("expand", x[:, :1], [3, 4]), Device("host"))
        other = some(4, 3)
        self.close(run("copy_from", Call("permute", Keep(3, x), [1, 0]), other)[0], other)
        self.close(run("clone", Ref(3))[0], other.T)
        self.close(run("copy_from", Ref(3), Call("to", Call("permute", other, [1, 0]), Device("host")))[0], other.T)
        self.refused("copy_from: output 0 is f32 [3, 4], but the result is f32 [4, 3].", "copy_from", Ref(3), other)

    def test_copies_between_axes_in_any_orders(self):
        orders = list(itertools.permutations(range(3)))
        for to, source in itertools.product(orders, orders):
            x, into = some(5, 6, 7), np.zeros([(5, 6, 7)[axis] for axis in to], np.float32)
            back = np.argsort(to).tolist()  # `into`, seen so, has the shape of x
            stored = np.ascontiguousarray(x.transpose(source))
            run("copy_", Call("permute", Keep(4, into), back), Call("permute", stored, np.argsort(source).tolist()))
            self.close(run("clone", Ref(4))[0], x.transpose(to))

    def test_copies_are_row_major(self):
        x = some(3, 4, 5)
        self.check(x, "contiguous", x)
        self.check(x, "clone", x)

    def test_writes(self):
        x, y = some(3, 4), some(4, dtype=np.int32)
        self.close(run("copy_", Keep(1, x), y)[0], np.broadcast_to(y, (3, 4)))
        self.close(run("fill_", Call("slice", Ref(1), 1, 1, 3), 5)[0], np.full((3, 2), 5))
        self.close(run("zero_", Call("select", Ref(1), 0, 0))[0], np.zeros(4))
        expected = np.broadcast_to(y, (3, 4)).astype(np.float32).copy()
        expected[:, 1:3] = 5
        expected[0] = 0
        self.close(run("clone", Ref(1))[0], expected)
        run("copy_", Call("slice", Keep(2, np.arange(6.0)), 0, 1), Call("slice", Ref(2), 0, 0, 5))
        self.close(run("clone", Ref(2))[0], np.array([0, 0, 1, 2, 3, 4.0]))
        self.refused("copy_: shape [4] of src does not broadcast to shape [3] of input.", "copy_", some(3), some(4))


class Factories(OpTest):
    def test_filled(self):
        self.assertEqual(run("empty", [2, 0, 3])[0].shape, (2, 0, 3))
        self.check(np.full((2, 3), 1.5, np.float32), "full", [2, 3], 1.5)
        self.check(np.full((2,), 7, np.int64), "full", [2], 7)
        self.check(np.full((), True), "full", [], True)
        self.check(np.zeros((3, 1), np.float32), "zeros", [3, 1])
        self.assertEqual(run("ones", [4], dtype=Dtype("u8"))[0].tolist(), [1] * 4)
        x = some(2, 3, dtype=np.float64)
        self.check(np.zeros((2, 3)), "zeros_like", x)
        self.check(np.ones((2, 3)), "ones_like", x)
        self.check(np.full((2, 3), 4.0), "full_like", x, 4)
        self.assertEqual(run("empty_like", x)[0].shape, (2, 3))
        self.refused("empty: rank 9 is more than 8.", "empty", [1] * 9)
        with self.assertRaisesRegex(Refused, "zeros|full"):
            run("zeros", [-1])

    def test_ranges(self):
        self.check(np.arange(5), "arange", 5)
        self.check(np.arange(2, 11, 3), "arange", 2, 11, 3)
        self.check(np.arange(5, 0, -2), "arange", 5, 0, -2)
        self.check(np.arange(0, 1, 0.25, dtype=np.float32), "arange", 0, 1, 0.25)
        for start, end, step in ((-3, 2000, 3), (5.5, -70.25, -0.25)):  # longer than a block of the loop
            whole = isinstance(start, int)
            self.check(np.arange(start, end, step, np.int64 if whole else np.float32), "arange", start, end, step)
        self.assertEqual(run("arange", 3, 3)[0].shape, (0,))
        self.check(np.eye(3, 4, dtype=np.float32), "eye", 3, 4)
        self.check(np.eye(2, dtype=np.float32), "eye", 2)
        self.refused("arange: step is 0.", "arange", 0, 3, 0)
        self.refused("arange: a step of -1 does not lead from 0 to 3.", "arange", 0, 3, -1)

    def test_errors_name_the_function_called(self):
        for op, value in (("zeros", ()), ("ones", ()), ("empty", ()), ("full", (1,))):
            self.refused(f"{op}: the shape [-1, 2] has a negative dim (-1).", op, [-1, 2], *value)
            self.refused(f"{op}: rank 9 is more than 8.", op, [1] * 9, *value)

    def test_one_hot(self):
        x = np.array([[0, 2], [1, 1]])
        self.check(np.eye(3, dtype=np.int64)[x], "one_hot", x, 3)
        self.close(run("one_hot", x.astype(np.uint8), 3, dtype=Dtype("u8"))[0], np.eye(3, dtype=np.uint8)[x])
        self.assertEqual(run("one_hot", np.zeros((2, 0), np.int64), 3)[0].shape, (2, 0, 3))
        self.refused("one_hot: num_classes is 0; it must be at least 1.", "one_hot", x, 0)
        self.refused("one_hot: input must be integers, not f32.", "one_hot", some(2), 3)

    def test_one_hot_refuses_what_is_no_class(self):
        for wrong in (3, -1, -3, 2**40):
            with self.assertRaisesRegex(Refused, "one_hot: input has the element|index -?[0-9]+ is out of range for an axis of length 3"):
                run("one_hot", np.array([0, wrong, 2]), 3)
        if SYNCHRONOUS:
            self.refused("one_hot: input has the element -1, which is outside [0, 3): num_classes is 3.", "one_hot",
                         np.array([0, -1, 2]), 3)


class Indexing(OpTest):
    def test_slices(self):
        x = some(5, 4, 3)
        for dim, index in ((0, np.array([4, 0, 2])), (1, np.array([[1, -1], [0, 3]], np.int32)), (-1, np.asarray(2))):
            self.check(np.take(x, index, dim), "gather_slices", x, dim, index)
        self.check(x[[1, 1]], "index_select", x, 0, np.array([1, 1]))
        self.check(x[[[1, 2]]], "embedding", x, np.array([[1, 2]]))
        self.check(np.zeros((0, 4, 3), np.float32), "gather_slices", x, 0, np.zeros(0, np.int64))
        with self.assertRaisesRegex(Refused, "7"):
            run("gather_slices", x, 0, np.array([7]))
        self.refused("gather_slices: index must be integers, not f32.", "gather_slices", x, 0, some(2))
        self.refused("index_select: index must be integers, not f32.", "index_select", x, 0, some(2))
        self.refused("embedding: indices must be integers, not f32.", "embedding", x, some(2))
        self.check(np.take(x, [[59, -60], [7, 0]]), "take", x, np.array([[59, -60], [7, 0]]))

    def test_elements(self):
        x = some(4, 5)
        index = random.integers(-5, 5, (4, 3))
        self.check(np.take_along_axis(x, index, 1), "take_along_dim", x, index, 1)
        self.check(np.take_along_axis(x, index % 5, 1), "gather", x, 1, index % 5)
        index = random.integers(0, 4, (2, 5))
        self.check(np.take_along_axis(x, index, 0), "gather", x, 0, index)
        self.check(x[index[:1], np.arange(5)], "gather", x, 0, index[:1])
        self.check(np.take_along_axis(x, index[:, :1], 0), "take_along_dim", x, index[:, :1], 0)
        self.check(x.ravel()[[19, -1, 0, 7]], "take_along_dim", x, np.array([[19, -1], [0, 7]]))


class Assembling(OpTest):
    def test_concat(self):
        a, b, c = some(2, 3), some(1, 3), some(4, 3)
        self.check(np.concatenate([a, b, c]), "concat", (a, b, c))
        self.check(np.concatenate([a.T, c.T], 1), "concat", (Call("t", a), np.ascontiguousarray(c.T)), -1)
        self.check(np.concatenate([a, b.astype(np.float64)]), "concat", (a, b.astype(np.float64)))
        self.check(a, "concat", (np.zeros((0,), np.float32), a, np.zeros((0, 3), np.float32)))
        many = tuple(some(1, 2) for _ in range(40))
        self.check(np.concatenate(many), "concat", many)
        self.check(np.stack([a, a], 1), "stack", (a, a), 1)
        self.check(np.stack([a, a], -1), "stack", (a, a), -1)
        self.refused("concat: the list of tensors is empty.", "concat", ())
        self.refused("stack: shapes [2, 3] and [1, 3] differ.", "stack", (a, b))
        with self.assertRaisesRegex(Refused, r"concat: .*\[2, 3\].*\[2, 4\]"):
            run("concat", (a, some(2, 4)))

    def test_split(self):
        x = some(7, 4)
        self.check([x[:3], x[3:6], x[6:]], "split", x, 3)
        self.check([x[:, :1], x[:, 1:]], "split", x, [1, 3], 1)
        self.check([x[:5], x[5:]], "split_with_sizes_copy", x, [5, 2])
        self.check([x[:, :1], x[:, 1:2], x[:, 2:]], "split_with_sizes_copy", x, [1, 1, 2], 1)
        self.check([x[:3], x[3:6], x[6:]], "chunk", x, 3)
        with self.assertRaisesRegex(Refused, "split"):
            run("split", x, [1, 2], 1)
        self.refused("split: parts of 0 elements are not possible; a part has at least 1.", "split", x, 0)

    def test_pad(self):
        x = some(3, 4, 5)
        self.check(np.pad(x, [(0, 0), (0, 0), (1, 2)], constant_values=7), "pad", x, [1, 2], value=7)
        self.check(np.pad(x, [(0, 0), (2, 0), (1, 2)]), "pad", x, [1, 2, 2, 0])
        self.check(np.pad(x, [(0, 0), (2, 1), (1, 2)], "reflect"), "pad", x, [1, 2, 2, 1], "reflect")
        self.check(np.pad(x, [(1, 1), (0, 0), (0, 3)], "edge"), "pad", x, [0, 3, 0, 0, 1, 1], "replicate")
        self.check(np.pad(x[:, :, 1:], [(0, 0), (0, 0), (0, 2)]), "pad", x, [-1, 2])
        # Cropped elements are reflected too.
        self.check(np.pad(x, [(0, 0), (0, 0), (0, 3)], "reflect")[:, :, 2:], "pad", x, [-2, 3], "reflect")
        self.check(np.pad(x, [(0, 0), (2, 0), (3, 0)], "reflect")[:, :-1, :-2], "pad", x, [3, -2, 2, -1], "reflect")
        self.check(np.pad(x[:, :, 2:], [(0, 0), (0, 0), (0, 3)], "edge"), "pad", x, [-2, 3], "replicate")
        self.check(x[:, :, 1:-1], "pad", x, [-1, -1], "reflect")
        self.refused("pad: padding (-6, 0) of axis 2 crops more than its 5 elements.", "pad", x, [-6, 0], "reflect")
        self.refused("pad: mode is 'wrap'; it may be 'constant', 'reflect' or 'replicate'.", "pad", x, [1, 1], "wrap")

    def test_tile_and_flip(self):
        x = some(2, 3)
        self.check(np.tile(x, (2, 1, 3)), "tile", x, [2, 1, 3])
        self.check(np.tile(x, (2,)), "tile", x, [2])
        self.check(np.flip(x, (0, 1)), "flip", x, [0, 1])
        for dtype in (np.float32, np.float64, np.int16, np.uint8):
            cube = some(3, 5, 7, dtype=dtype, low=1, high=100)
            for dims in ([0], [1], [-1], [0, 1], [-1, 1], [0, 2], [2, 1, 0]):
                self.check(np.flip(cube, dims), "flip", cube, dims)
            rows = some(3, 301, dtype=dtype, low=1, high=100)  # longer than a block of the loops
            for dims in ([0], [1], [0, 1]):
                self.check(np.flip(rows, dims), "flip", rows, dims)
            # Axes so long that their blocks are turned and then the elements of each; short rows; and some of the axes.
            for shape, dims in (((1031, 1283), [0, 1]), ((50021, 3), [1, 0]), ((5, 300, 301), [0, 1, 2]), ((5, 300, 301), [1, 2]),
                                ((131077,), [0]), ((2, 65536), [1]), ((70001, 3), [0])):
                large = some(*shape, dtype=dtype, low=1, high=100)
                self.check(np.flip(large, dims), "flip", large, dims)
            gaps = Call("slice", np.repeat(rows, 2, 1), 1, None, None, 2)
            tall = Call("slice", np.repeat(rows.T, 2, 1), 1, None, None, 2)
            for dims in ([0], [1], [0, 1]):
                self.check(np.flip(rows, dims), "flip", gaps, dims)
                self.check(np.flip(rows.T, dims), "flip", tall, dims)
                self.check(np.flip(rows[:, :1], dims), "flip", np.ascontiguousarray(rows[:, :1]), dims)

    def test_indices_in_even_steps(self):
        """A list of positions in even steps is a copy; one that only begins so is not."""
        for dtype in (np.float32, np.float64, np.int16, np.uint8):
            for shape in ((70,), (70, 3), (5, 70), (4, 70, 40), (2, 70, 5, 6)):
                x = some(*shape, dtype=dtype, low=1, high=100)
                axis = shape.index(70)
                for index in (np.arange(70), np.arange(69, -1, -1), np.arange(3, 60, 7), np.full(9, 5), np.array([69]),
                              np.arange(-1, -71, -2), np.append(np.arange(40), 3), np.arange(-3, 4), np.arange(2, -4, -1)):
                    self.check(np.take(x, index, axis), "gather_slices", x, axis, index)
        x = some(6, 300)
        for index in (np.arange(3, 8), np.array([5, 6]), np.arange(-5, -8, -1), np.array([-6, -7])):
            with self.assertRaisesRegex(Refused, "out of range"):
                run("clone", Call("gather_slices", x, 0, index))

    def test_elements_of_short_axes(self):
        for shape, taken, axis in (((300, 3), (300, 3), 0), ((300, 3), (300, 3), 1), ((300, 17), (300, 1), 1), ((7, 300, 2), (6, 300, 2), 1)):
            for dtype in (np.float32, np.float64, np.int16, np.uint8):
                x, index = some(*shape, dtype=dtype, low=1, high=100), random.integers(0, shape[axis], taken)
                inside = x[tuple(slice(None) if k == axis else slice(n) for k, n in enumerate(taken))]
                self.check(np.take_along_axis(inside, index, axis), "gather", x, axis, index)
                if axis > 0:
                    want = np.take_along_axis(np.broadcast_to(inside[:1], inside.shape), index, axis)
                    self.check(want, "gather", Call("expand", x[:1], list(shape)), axis, index)


class Views(OpTest):
    def test_shapes(self):
        x = some(2, 3, 4)
        self.check(x.reshape(6, 4), "reshape", x, [6, 4])
        self.check(x.reshape(4, -1), "reshape", x, [4, -1])
        self.check(x.reshape(6, 4), "flatten", x, 0, 1)
        self.check(x.reshape(-1), "flatten", x)
        self.check(x.reshape(2, 3, 2, 2), "unflatten", x, -1, [2, -1])
        self.close(run("view", x, [3, 8])[0], x.reshape(3, 8))
        self.close(run("view", Call("slice", x, 2, 0, None, 2), [6, 2])[0], x[:, :, ::2].reshape(6, 2))
        with self.assertRaisesRegex(Refused, "view: .* without a copy"):
            run("view", Call("transpose", x, 0, 2), [24])
        with self.assertRaisesRegex(Refused, r"reshape: .*24.*"):
            run("reshape", x, [5, 5])

    def test_axes(self):
        x = some(2, 3, 4)
        self.check(x.transpose(2, 0, 1), "permute", x, [2, 0, 1])
        self.check(x.swapaxes(0, 2), "transpose", x, 0, -1)
        self.check(x[0].T, "t", x[0])
        self.check(np.moveaxis(x, 0, 2), "movedim", x, 0, 2)
        self.check(np.moveaxis(x, [0, 1], [-1, 0]), "movedim", x, [0, 1], [-1, 0])
        self.refused("t: a tensor of rank 3 is not a matrix; use transpose.", "t", x)
        y = x[:, :1]
        self.check(y.squeeze(), "squeeze", y)
        self.check(y.squeeze(1), "squeeze", y, 1)
        self.check(y, "squeeze", y, 0)
        self.check(x[:, None], "unsqueeze", x, 1)
        self.check(x[..., None], "unsqueeze", x, -1)
        self.check(x[None, ..., None], "unsqueeze", x, [0, 4])

    def test_repeats(self):
        x = some(3, 1)
        self.check(np.broadcast_to(x, (2, 3, 4)), "expand", x, [2, -1, 4])
        self.check(np.broadcast_to(x, (3, 4)), "broadcast_to", x, [3, 4])
        self.check(np.broadcast_to(x, (3, 5)), "expand_as", x, some(3, 5))
        with self.assertRaisesRegex(Refused, "expand"):
            run("expand", x, [4, 4])

    def test_parts(self):
        x = some(7, 5)
        for start, end, step in ((1, 6, 2), (None, -2, 1), (-3, None, 1), (100, None, 1), (5, 1, -2), (None, None, -1), (0, 3, -1)):
            with self.subTest(start=start, end=end, step=step):
                self.check(x[start:end:step], "slice", x, 0, start, end, step)
        self.check(x[:, 1:4], "narrow", x, 1, 1, 3)
        self.check(x[-2], "select", x, 0, -2)
        self.check(x[:, 2:], "narrow", x, 1, 2, x.shape[1] - 2)
        self.refused("narrow: 3 elements from 3 are not all inside axis 1 of length 5.", "narrow", x, 1, 3, 3)
        with self.assertRaisesRegex(Refused, "select: .*5"):
            run("select", x, 1, 5)
        with self.assertRaisesRegex(Refused, "slice: .*0"):
            run("slice", x, 0, 0, 3, 0)

    def test_parts_are_replaced(self):
        x = some(7, 5)
        for start, end, step in ((1, 6, 2), (None, -2, 1), (-3, None, 1), (100, None, 1), (2, 3, 4)):
            with self.subTest(start=start, end=end, step=step):
                want = x.copy()
                src = some(*x[start:end:step].shape)
                want[start:end:step] = src
                self.check(want, "slice_scatter", x, src, 0, start, end, step)
        want, src = x.copy(), some(7, 2, dtype=np.float64)
        want[:, 1:3] = src
        self.check(want, "slice_scatter", x, src, -1, 1, 3)
        want, src = x.copy(), some(5, dtype=np.int32)
        want[-2] = src
        self.check(want, "select_scatter", x, src, 0, -2)
        want, src = x.copy(), some(7)
        want[:, 3] = src
        self.check(want, "select_scatter", x, src, 1, 3)
        self.close(run("slice_scatter", Keep(4, x), some(2, 5), 0, 1, 3)[0][3:], x[3:])
        self.close(run("clone", Ref(4))[0], x)
        self.refused("slice_scatter: src has shape [5], but the part to replace has shape [2, 5].", "slice_scatter", x, some(5), 0, 1, 3)
        self.refused("slice_scatter: step is -1; it must be at least 1.", "slice_scatter", x, x, 0, None, None, -1)
        self.refused("select_scatter: src has shape [1, 5], but the part to replace has shape [5].", "select_scatter", x, some(1, 5), 0, 1)
        with self.assertRaisesRegex(Refused, "select_scatter: .*5"):
            run("select_scatter", x, some(7), 1, 5)

    def test_share_their_storage(self):
        x = some(4, 3)
        run("zero_", Call("transpose", Call("narrow", Keep(1, x), 0, 1, 2), 0, 1))
        expected = x.copy()
        expected[1:3] = 0
        self.close(run("clone", Ref(1))[0], expected)
