"""Small programs that a user of PyTorch writes without a thought. Each is a function of the module, torch or tenon, and what
it gives or raises is the same for both (programs_test.py). Results are tensors, numbers, texts, or lists of them."""

import copy
import pickle


def some(T, *shape, dtype=None):
    count = 1
    for each in shape:
        count *= each
    return (T.arange(count, dtype=T.float32) * 0.75 - 2).reshape(shape).to(dtype or T.float32)


# ---- reading by index ----

def index_by_int(T):
    x = some(T, 3, 4)
    return [x[0], x[-1], x[1, 2], x[1][2], x[-1, -1]]


def index_out_of_bounds(T):
    return some(T, 3, 4)[3]


def index_out_of_bounds_below(T):
    return some(T, 3, 4)[0, -5]


def index_too_many(T):
    return some(T, 3)[0, 0]


def index_of_a_number(T):
    return T.tensor(3.0)[0]


def slices(T):
    x = some(T, 6, 5)
    return [x[1:3], x[:, ::2], x[-2:], x[:100], x[4:2], x[::3, 1:-1], x[:]]


def slice_with_negative_step(T):
    return some(T, 5)[::-1]


def slice_with_step_zero(T):
    return some(T, 5)[::0]


def slice_bounds_are_tensors(T):
    return some(T, 5)[T.tensor(1):T.tensor(3)]


def ellipsis_and_none(T):
    x = some(T, 2, 3, 4)
    return [x[..., 0], x[0, ..., 1], x[None].shape, x[:, None, 1].shape, x[..., None].shape, x[...]]


def masks(T):
    x = some(T, 3, 4)
    return [x[x > 1], x[x[:, 0] > 0], x[T.tensor([True, False, True])], x[[True, False, True]], x[:, [True, False, False, True]]]


def mask_of_another_shape(T):
    return some(T, 3, 4)[T.tensor([True, False])]


def index_by_bools(T):
    x = some(T, 3)
    return [x[True], x[False], x[True, 1], x[T.tensor(True)]]


def index_tensors(T):
    x = some(T, 4, 3)
    i = T.tensor([2, 0, -1])
    return [x[i], x[:, i % 3], x[i, i % 3], x[i[:, None], i % 3], x[T.tensor(2)]]


def index_lists(T):
    x = some(T, 4, 3)
    return [x[[2, 0]], x[[1, 2], [0, 1]], x[T.tensor([[0, 1], [2, 3]])], x[:, [0, 2]], x[[]]]


def index_tensors_apart(T):
    x = some(T, 2, 3, 4)
    i = T.tensor([0, 1])
    return [x[i, :, i], x[:, i, i], x[0, :, i], x[i, 0], x[..., i], x[None, i]]


def index_tensor_out_of_bounds(T):
    return some(T, 3)[T.tensor([5])]


def index_by_floats(T):
    return some(T, 3)[T.tensor([1.0])]


def index_by_a_float(T):
    return some(T, 3)[1.5]


def index_by_text(T):
    return some(T, 3)["a"]


def index_gives_a_view(T):
    x = some(T, 3, 4)
    x[1].fill_(9)
    x[:, 0].mul_(2)
    return x


def index_by_tensor_gives_a_copy(T):
    x = some(T, 3, 4)
    x[T.tensor([0])].fill_(9)
    return x


# ---- writing by index ----

def assign_numbers(T):
    x = some(T, 3, 4)
    x[0] = 5
    x[:, 1] = 2.5
    x[2, 3] = True
    x[..., 2] = T.tensor(7.0)
    return x


def assign_tensors(T):
    x = T.zeros(3, 4)
    x[0] = T.arange(4)
    x[1:] = T.ones(2, 1)
    x[:, 3] = T.tensor([[7.0, 8.0, 9.0]])
    return x


def assign_by_mask(T):
    x = some(T, 3, 4)
    x[x < 0] = 0
    x[x > 5] = T.tensor([1.0, 2.0])[:1]
    return x


def assign_values_by_mask(T):
    x = T.zeros(4)
    x[T.tensor([True, False, True, False])] = T.tensor([3.0, 4.0])
    return x


def assign_by_index_tensors(T):
    x = T.zeros(4, 3)
    x[T.tensor([0, 2])] = 1
    x[[1, 3], [0, 2]] = T.tensor([5.0, 6.0])
    x[:, T.tensor([1])] = 9
    return x


def assign_apart(T):
    x = T.zeros(2, 3, 4)
    i = T.tensor([0, 1])
    x[i, :, i] = some(T, 2, 3)
    return x


def assign_of_another_shape(T):
    x = T.zeros(3, 4)
    x[0] = T.ones(3)


def assign_integers_take_the_dtype(T):
    x = T.zeros(3, dtype=T.int64)
    x[0] = 2.7
    x[1:] = T.tensor([1.9, -1.9])
    return x


def assign_lists(T):
    x = T.zeros(2, 3)
    x[0] = T.tensor([1, 2, 3])
    x[1, 1:] = T.tensor([4.0, 5.0])
    return x


def delete_an_item(T):
    x = some(T, 3)
    del x[0]


def assign_then_gradient(T):
    w = T.ones(3, requires_grad=True)
    x = T.zeros(4)
    x[1:] = w * 2
    x[0] = 5
    (x * T.arange(4)).sum().backward()
    return w.grad


# ---- sequences and numbers ----

def lengths(T):
    return [len(some(T, 3, 4)), len(T.zeros(0, 2))]


def length_of_a_number(T):
    return len(T.tensor(1.0))


def iteration(T):
    return [row * 2 for row in some(T, 3, 2)]


def iteration_of_a_number(T):
    return list(T.tensor(1.0))


def unpacking(T):
    a, b = some(T, 2, 3)
    return [a, b]


def membership(T):
    x = T.tensor([1.0, 2.0, 3.0])
    return [2 in x, 5 in x, T.tensor(3.0) in x]


def truth(T):
    return [bool(T.tensor(0.0)), bool(T.tensor([3])), not T.tensor(False)]


def truth_of_several(T):
    return bool(T.tensor([1.0, 2.0]))


def truth_of_none(T):
    return bool(T.zeros(0))


def numbers(T):
    return [float(T.tensor(2.5)), int(T.tensor(2.9)), T.tensor([[7]]).item(), float(T.tensor(3))]


def numbers_of_several(T):
    return float(T.tensor([1.0, 2.0]))


def item_of_several(T):
    return T.tensor([1, 2]).item()


def as_an_index(T):
    return [10, 20, 30][T.tensor(1)]


def float_as_an_index(T):
    return [10, 20, 30][T.tensor(1.0)]


def as_a_range(T):
    return list(range(T.tensor(3)))


def tolist(T):
    return [some(T, 2, 2).tolist(), T.tensor(3).tolist(), T.zeros(0).tolist(), T.zeros(2, 0).tolist(), T.tensor([True]).tolist()]


def reversed_rows(T):
    return reversed(some(T, 3, 2))


def formats(T):
    return [f"{T.tensor(2.5):.2f}", f"{T.tensor(7):04d}", "{}".format(T.tensor([1.0, 2.5])), f"{T.tensor(3.14159)}"]


def format_of_several(T):
    return f"{T.tensor([1.0, 2.0]):.2f}"


# ---- identity, copies ----

def hash_by_identity(T):
    x, y = T.tensor(1.0), T.tensor(1.0)
    return [x in {x: 1}, len({x, y}), hash(x) == hash(x)]


def copies(T):
    x = some(T, 3)
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    x[0] = 100
    return [shallow, deep]


def deepcopy_keeps_gradients(T):
    w = T.ones(2, requires_grad=True)
    (w * 3).sum().backward()
    other = copy.deepcopy(w)
    return [other, other.requires_grad, other.grad, other.is_leaf]


def deepcopy_of_a_result(T):
    return copy.deepcopy(T.ones(2, requires_grad=True) * 2)


def deepcopy_shares_within(T):
    x = some(T, 2)
    a, b = copy.deepcopy([x, x])
    return a is b


def pickles(T):
    x = some(T, 2, 3)
    w = T.ones(2, dtype=T.float64, requires_grad=True)
    y, v = pickle.loads(pickle.dumps((x.T, w)))
    return [y, v, v.requires_grad]


# ---- operators ----

def arithmetic(T):
    x, y = some(T, 2, 3), some(T, 3) + 3.3
    return [x + y, x - 1, 2 - x, x * y, x / y, 1 / y, x ** 2, 2 ** x, -x, abs(x), x // 2, 7 // y, x % 3, x @ y, +x]


def integers(T):
    x = T.tensor([7, -7, 5])
    return [x // 2, x % 3, x / 2, x ** 2, x << 1, x >> 1, x & 6, x | 1, x ^ 3, ~x, x + 0.5, 2 * x]


def in_place(T):
    x = some(T, 4)
    y = x
    x += 1
    x *= 2
    x -= T.ones(4)
    x /= 4
    x **= 2
    return [x, y is x]


def in_place_integers(T):
    x = T.tensor([7, 12, 5])
    x //= 2
    x %= 4
    x &= 3
    x |= 8
    x ^= 1
    x <<= 2
    x >>= 1
    return x


def in_place_refuses_another_dtype(T):
    x = T.tensor([1, 2])
    x += 0.5


def in_place_refuses_another_shape(T):
    x = T.ones(1)
    x += T.ones(3)


def comparisons(T):
    x, y = T.tensor([1.0, 2.0, 3.0]), T.tensor([3.0, 2.0, 1.0])
    return [x < y, x <= 2, x > y, 2 >= x, x == y, x != y]


def comparison_with_none(T):
    x = T.tensor([1.0])
    return [x == None, x != None]  # noqa: E711


def comparison_with_text(T):
    return T.tensor([1.0]) == "a"


def order_with_none(T):
    return T.tensor([1.0]) < None


def addition_of_text(T):
    return T.tensor([1.0]) + "a"


def addition_of_none(T):
    return T.tensor([1.0]) + None


def shapes_that_do_not_broadcast(T):
    return T.ones(2, 3) + T.ones(2)


def products_that_do_not_fit(T):
    return T.ones(2, 3) @ T.ones(2, 3)


def promotion(T):
    i, f, d, b = T.tensor([1, 2]), T.tensor([0.5, 1.5]), T.tensor([1.0], dtype=T.float64), T.tensor([True, False])
    return [i + f, f + d, i + 1.5, b + b, b + 1, i * True, f + 1, i.to(T.int8) + i, i / i, f.half() + f, i + T.tensor(0.5)]


def numpy_operands(T):
    import numpy
    x, a = T.tensor([1.0, 2.0]), numpy.array([3.0, 4.0], "float32")
    return [x + a, x * numpy.float32(2)]


# ---- attributes ----

def metadata(T):
    x = some(T, 2, 3)
    return [list(x.shape), x.ndim, x.dim(), x.numel(), x.nelement(), list(x.size()), x.size(0), x.size(-1), list(x.stride()), x.stride(1),
            x.is_contiguous(), x.T.is_contiguous(), x.element_size(), x.is_floating_point(), x.requires_grad, x.is_leaf, x.grad is None,
            x.storage_offset(), x[1].storage_offset(), str(x.device)[:3]]


def size_of_no_axis(T):
    return some(T, 2, 3).size(2)


def dtypes(T):
    x = some(T, 3)
    return [x.double(), x.half(), x.long(), x.int(), x.short(), x.char(), x.bool(), x.abs().byte(), x.bfloat16().float(), x.to(T.float64),
            x.to("cpu"), x.to(T.tensor([1])), x.type(T.float64), x.to(dtype=T.int32)]


def dtype_names(T):
    return [str(T.float32), repr(T.float64), str(T.int64), str(T.bool), str(T.tensor([1]).dtype), T.float32 == T.float32, T.float == T.float32]


def transposes(T):
    x = some(T, 2, 3)
    return [x.T, x.mT, x.t(), x.H, some(T, 2, 2, 3).mT, x.transpose(0, 1), x.permute(1, 0)]


def mt_of_a_vector(T):
    return some(T, 3).mT


def setting_requires_grad(T):
    x = some(T, 2)
    x.requires_grad = True
    y = x.detach()
    return [x.requires_grad, y.requires_grad, x.requires_grad_(False).requires_grad]


def integers_want_no_gradient(T):
    T.tensor([1, 2]).requires_grad_()


def results_keep_requires_grad(T):
    x = T.ones(2, requires_grad=True)
    y = x * 2
    y.requires_grad = False


def data_without_history(T):
    w = T.ones(2, requires_grad=True)
    w.data.mul_(3)
    w.data[0] = 7
    return [w.detach(), w.data.requires_grad]


def numpy_of_a_leaf(T):
    return T.ones(2, requires_grad=True).numpy()


def numpy_shares_memory(T):
    x = T.zeros(3)
    x.numpy()[1] = 5
    return x


def new_tensors(T):
    x = some(T, 2, dtype=T.float64)
    return [x.new_zeros(2, 3), x.new_ones((2,)), x.new_full((2,), 7), x.new_tensor([1, 2]), x.new_empty(0)]


# ---- making ----

def factories(T):
    return [T.zeros(2, 3), T.ones((2,)), T.full((2,), 7.0), T.arange(5), T.arange(1, 2, 0.25), T.linspace(0, 1, 5), T.eye(2), T.tensor([[1, 2], [3, 4]]),
            T.zeros_like(T.ones(2)), T.empty(0), T.tensor([]), T.tensor([True]), T.tensor(1.5), T.full((2,), 3), T.ones(2, dtype=T.int32)]


def factories_with_gradients(T):
    w = T.zeros(2, requires_grad=True)
    return [w.requires_grad, T.randn(3, requires_grad=True).is_leaf, T.ones_like(w).requires_grad, T.tensor([1.0], requires_grad=True)]


def ragged_lists(T):
    return T.tensor([[1, 2], [3]])


def lists_of_tensors(T):
    return [T.tensor([T.tensor(1.0), T.tensor(2.0)]), T.as_tensor([1, 2]), T.stack([T.ones(2), T.zeros(2)])]


def seeds(T):
    T.manual_seed(3)
    a = T.rand(4)
    T.manual_seed(3)
    return bool((a == T.rand(4)).all())


# ---- text ----

def text_of_floats(T):
    return [repr(T.tensor(x)) for x in ([1.0, 2.0], [0.5, 100.25], [1e-5, 1.0], [1e9, 1.0], [0.1, 1000.5], [float("inf"), 1.0], [float("nan"), 0.5], 0.25, [])]


def text_of_others(T):
    return [repr(T.tensor(x)) for x in ([1, -20, 3], [True, False], 7, [[1, 2], [3, 4]])] + [repr(T.tensor([1, 2], dtype=T.int32))]


def text_of_rows(T):
    return [repr(some(T, 2, 3)), repr(some(T, 2, 2, 2)), repr(T.zeros(2, 0)), repr(T.ones(1, 1, 1)), repr(T.tensor([-0.0, 0.0]))]


def text_of_many(T):
    return [repr(T.arange(2000)), repr(T.arange(2000.0).reshape(40, 50)), repr(T.arange(30.0)), repr(T.arange(30) * 1000), repr(T.arange(3000.0).reshape(10, 10, 30))]


def text_of_dtypes(T):
    return [repr(T.ones(2, dtype=T.float64)), repr(T.ones(2, dtype=T.float16)), repr(T.ones(2, dtype=T.int8)), repr(T.tensor([], dtype=T.int64)), repr(T.ones(2).bfloat16())]


def text_of_gradients(T):
    w = T.ones(2, requires_grad=True)
    return [repr(w), repr(w * 2), repr((w * 2).sum()), repr(w + 1), repr(w.exp()), repr(w.detach())]


# ---- methods ----

def reductions(T):
    x = some(T, 3, 4)
    return [x.sum(), x.sum(0), x.sum(dim=1, keepdim=True), x.mean((0, 1)), x.max(), x.max(1)[0], x.max(dim=1).indices, x.min(0).values, x.argmax(), x.argmax(1), x.prod(1),
            x.std(), x.var(1), x.norm(), x.any(), x.all(), x.cumsum(0), x.logsumexp(1), x.amax(1)]


def rearrangements(T):
    x = some(T, 2, 6)
    return [x.view(3, 4), x.view(-1), x.reshape(4, -1), x.flatten(), x.unsqueeze(0).squeeze(), x.expand(2, 2, 6), x.repeat(2, 1), x.chunk(2, 1)[1], x.split(4, dim=1)[1],
            x.unbind(0)[1], x.flip(0), x.roll(1, 1), x.narrow(1, 1, 2), x.select(1, 3), x.tril(), T.cat([x, x], dim=1), x.unflatten(1, (2, 3))]


def views_that_do_not_fit(T):
    return some(T, 2, 3).view(4, 2)


def views_of_strided(T):
    return some(T, 2, 3).T.view(6)


def elementwise(T):
    x = some(T, 6)
    return [x.exp(), x.abs().sqrt(), x.sin(), x.tanh(), x.sigmoid(), x.relu(), x.clamp(-1, 1), x.clamp(min=0), x.sign(), x.floor(), x.round(), x.pow(2), x.square(), x.abs().log1p(),
            x.softmax(0), x.log_softmax(dim=0), x.isnan(), x.masked_fill(x > 0, 7.0), T.where(x > 0, x, T.zeros(6)), x.lerp(x * 2, 0.5)]


def in_place_methods(T):
    x = some(T, 6)
    x.add_(1).mul_(2).clamp_(min=0).sqrt_().neg_()
    x.masked_fill_(x == 0, 5)
    y = T.zeros(3)
    y.copy_(T.ones(3, dtype=T.int64)).zero_().fill_(2)
    z = T.zeros(2, 3).scatter_(1, T.tensor([[0], [2]]), 1.0)
    return [x, y, z, T.zeros(3).index_add_(0, T.tensor([0, 0]), T.ones(2))]


def in_place_places(T):
    def x():
        return some(T, 2, 3)
    mask, rows, each = x() > 0, T.tensor([[0, 1, 0], [1, 0, 1]]), T.tensor([0, 2, 0])
    return [x().masked_fill_(mask, 5), x().masked_scatter_(mask, x() * 3), x().scatter_(0, rows, x() * 3), x().scatter_(1, rows[:, :1], 7.0),
            x().scatter_add_(0, rows, x()), x().scatter_reduce_(0, rows, x() * 3, "amax"), x().index_add_(1, each, x(), alpha=2),
            x().index_copy_(0, T.tensor([1, 0]), x() * 3), x().index_fill_(1, each[:2], 4.0), x().put_(T.tensor([1, 4]), T.tensor([9.0, 8.0])),
            x().put_(T.tensor([1, 1]), T.tensor([9.0, 8.0]), accumulate=True), x().index_put_((T.tensor([0, 1]), T.tensor([2, 0])), T.tensor([9.0, 8.0])),
            x().tril_(), x().triu_(1), x().cumsum_(1), x().cumprod_(0)]


def in_place_comparisons(T):
    def x():
        return some(T, 6)
    y = T.tensor([0.25, -1.25, 0.0, 1.0, 1.0, -2.0])
    return [x().eq_(y), x().ne_(-2), x().lt_(y), x().le_(0.25), x().gt_(y), x().ge_(y), x().not_equal_(y), x().less_(y), x().less_equal_(y),
            x().greater_(y), x().greater_equal_(y), x().logical_not_(), x().logical_and_(y), x().logical_or_(y), x().logical_xor_(y),
            T.tensor([1, 2, 3]).eq_(2), T.tensor([True, False]).logical_and_(T.tensor([1, 2]))]


def in_place_numbers(T):
    def x():
        return some(T, 6)
    y, small = T.tensor([0.5, -1.25, 2.0, 1.0, 1.0, -2.0]), x() / 4
    return [x().clamp_min_(0), x().clamp_max_(y), x().clip_(-1, 1), x().addcmul_(y, x(), value=2), x().addcdiv_(x(), y), x().nan_to_num_(),
            (small * small).logit_(), small.clone().logit_(eps=0.25), small.clone().erfinv_(), x().deg2rad_(), x().rad2deg_(), x().true_divide_(y),
            x().double().float_power_(2), x().ldexp_(T.tensor([1, 2, 3, 4, 5, 6])), x().nextafter_(y)]


def in_place_by_other_names(T):
    def x():
        return some(T, 6) / 4
    y = x() + 2
    return [x().absolute_(), x().negative_(), x().multiply_(y), x().subtract_(y, alpha=2), x().divide_(y), x().arccos_(), x().arcsin_(),
            x().arctan_(), y.clone().arccosh_(), x().arcsinh_(), x().arctanh_(), x().arctan2_(y), x().fix_(), x().sgn_()]


def in_place_products(T):
    a, b, u, v = some(T, 2, 3), some(T, 3, 2), some(T, 2), some(T, 3)
    c, d = some(T, 4, 2, 3), some(T, 4, 3, 2)
    return [some(T, 2, 2).addmm_(a, b, beta=0.5, alpha=2), some(T, 2).addmv_(a, v), some(T, 2, 3).addr_(u, v, alpha=3), some(T, 4, 2, 2).baddbmm_(c, d),
            some(T, 2, 2).addbmm_(c, d, beta=2)]


def in_place_result_of_another_shape(T):
    return some(T, 1).addcmul_(some(T, 3), some(T, 3))


def in_place_quotient_of_integers(T):
    return T.tensor([1, 2]).true_divide_(2)


def in_place_through_a_view(T):
    x = some(T, 3, 4)
    x[:, 1:3].masked_fill_(x[:, 1:3] > 0, -5)
    x.t()[0].cumsum_(0)
    return x


def in_place_gradients(T):
    x = some(T, 6).requires_grad_()
    y = x * 2
    y.addcmul_(y.detach(), x, value=3).masked_fill_(some(T, 6) > 1, 0).absolute_()
    y.sum().backward()
    return [y, x.grad]


def chances_outside_their_range(T):
    return T.bernoulli(T.tensor([0.5, 1.5]))


def chances_that_are_no_number(T):
    return T.bernoulli(T.tensor([0.5, float("nan")]))


def chances_below_zero_in_place(T):
    return some(T, 3).bernoulli_(-0.5)


def chances_of_no_number_in_place(T):
    return some(T, 3).bernoulli_(float("nan"))


def chances_of_a_tensor_in_place(T):
    return some(T, 2).bernoulli_(T.tensor([0.5, -0.5]))


def weights_of_zero(T):
    return T.multinomial(T.tensor([[1.0, 2.0], [0.0, 0.0]]), 1)


def weights_below_zero(T):
    return T.multinomial(T.tensor([1.0, -2.0]), 1)


def weights_that_are_no_number(T):
    return T.multinomial(T.tensor([1.0, float("nan")]), 2, replacement=True)


def weights_without_bound(T):
    return T.multinomial(T.tensor([1.0, float("inf")]), 1)


def deviations_below_zero(T):
    return T.normal(T.zeros(2), T.tensor([1.0, -1.0]))


def certain_draws(T):
    p = T.tensor([0.0, 1.0, 1.0, 0.0])
    return [T.bernoulli(p), some(T, 2, 4).bernoulli_(p), T.zeros(3, dtype=T.int64).bernoulli_(1), T.multinomial(T.tensor([0.0, 2.0, 0.0]), 3, replacement=True)]


def sorting(T):
    x = T.tensor([3.0, 1.0, 2.0])
    values, indices = x.sort(descending=True)
    return [values, indices, x.topk(2).values, x.argsort(), T.sort(x).indices, x.kthvalue(2).values, T.unique(T.tensor([3, 1, 3]))]


def gathers(T):
    x = some(T, 3, 3)
    i = T.tensor([[0, 2], [1, 1], [2, 0]])
    return [x.gather(1, i), x.index_select(0, T.tensor([2, 0])), x.take(T.tensor([0, 8])), x.nonzero(), (x > 1).nonzero(), x.masked_select(x > 1)]


def products(T):
    a, b = some(T, 2, 3), some(T, 3, 2)
    return [a @ b, a.mm(b), T.matmul(a, b), a.mv(b[:, 0]), a[0].dot(b[:, 0]), T.einsum("ij,jk->ik", a, b), T.bmm(a[None], b[None]), T.outer(a[0], a[1])]


def chained_comparison_of_results(T):
    x = some(T, 4)
    return [bool(T.allclose(x, x + 1e-9)), bool(x.equal(x)), bool(T.isclose(x, x).all())]


# ---- gradients ----

def backward(T):
    w = T.tensor([2.0, 3.0], requires_grad=True)
    loss = (w * w).sum()
    loss.backward()
    return [w.grad, loss.item()]


def gradients_accumulate(T):
    w = T.ones(2, requires_grad=True)
    for _ in range(3):
        (w * 2).sum().backward()
    first = w.grad.clone()
    w.grad.zero_()
    w.grad = None
    return [first, w.grad is None]


def backward_of_several(T):
    (T.ones(2, requires_grad=True) * 2).backward()


def backward_with_a_gradient(T):
    w = T.ones(2, requires_grad=True)
    (w * 2).backward(T.tensor([1.0, 10.0]))
    return w.grad


def backward_twice(T):
    w = T.ones(2, requires_grad=True)
    y = (w * w).sum()
    y.backward()
    y.backward()


def backward_retained(T):
    w = T.ones(2, requires_grad=True)
    y = (w * w).sum()
    y.backward(retain_graph=True)
    y.backward()
    return w.grad


def backward_of_what_wants_none(T):
    T.ones(2).sum().backward()


def backward_to_inputs(T):
    a, b = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True)
    (a * b * 3).sum().backward(inputs=[a])
    return [a.grad, b.grad is None]


def no_grad_block(T):
    w = T.ones(2, requires_grad=True)
    with T.no_grad():
        y = w * 2
        w -= 0.5
        with T.enable_grad():
            z = w * 3
    return [y.requires_grad, z.requires_grad, w.detach(), T.is_grad_enabled()]


def no_grad_decorator(T):
    w = T.ones(2, requires_grad=True)

    @T.no_grad()
    def f(x):
        return x * 2

    @T.enable_grad()
    def g(x):
        return x * 2

    with T.no_grad():
        inner = g(w).requires_grad
    return [f(w).requires_grad, inner, f.__name__]


def no_grad_after_an_error(T):
    try:
        with T.no_grad():
            raise KeyError("a")
    except KeyError:
        pass
    return T.is_grad_enabled()


def set_grad_enabled(T):
    w = T.ones(1, requires_grad=True)
    T.set_grad_enabled(False)
    y = w * 2
    T.set_grad_enabled(True)
    with T.set_grad_enabled(False):
        z = w * 2
    return [y.requires_grad, z.requires_grad, (w * 2).requires_grad]


def no_grad_generator(T):
    w = T.ones(1, requires_grad=True)

    @T.no_grad()
    def rows():
        yield (w * 1).requires_grad
        yield (w * 2).requires_grad

    return [(inside, (w * 3).requires_grad) for inside in rows()]


def inference(T):
    with T.inference_mode():
        return (T.ones(1) * 2).requires_grad


def writing_a_leaf(T):
    w = T.ones(2, requires_grad=True)
    w += 1


def writing_what_is_saved(T):
    w = T.ones(2, requires_grad=True)
    x = w * 1
    y = x * x
    x += 1
    y.sum().backward()


def grad_function(T):
    a, b = T.tensor([1.0, 2.0], requires_grad=True), T.tensor([3.0, 4.0], requires_grad=True)
    y = (a * b).sum()
    return list(T.autograd.grad(y, [a, b])) + [a.grad is None]


def grad_of_what_is_unused(T):
    a, b = T.ones(1, requires_grad=True), T.ones(1, requires_grad=True)
    return T.autograd.grad(a.sum(), [b])


def grad_allows_unused(T):
    a, b = T.ones(1, requires_grad=True), T.ones(1, requires_grad=True)
    return [each is None for each in T.autograd.grad(a.sum(), [a, b], allow_unused=True)]


def second_order(T):
    x = T.tensor([2.0], requires_grad=True)
    first, = T.autograd.grad((x ** 3).sum(), x, create_graph=True)
    second, = T.autograd.grad(first.sum(), x, create_graph=True)
    second.sum().backward()
    return [first, second, x.grad]


def weighted_grad(T):
    x = T.ones(2, requires_grad=True)
    return T.autograd.grad(x * 3, x, grad_outputs=T.tensor([1.0, 2.0]))[0]


def hooks(T):
    w, seen = T.ones(2, requires_grad=True), []
    x = w * 2
    x.register_hook(lambda g: seen.append(g.clone()))
    handle = w.register_hook(lambda g: g * 10)
    x.sum().backward()
    first = w.grad.clone()
    handle.remove()
    w.grad = None
    (w * 2).sum().backward()
    return [seen[0], len(seen), first, w.grad]


def hook_on_what_wants_none(T):
    T.ones(2).register_hook(lambda g: g)


def retain_grad(T):
    w = T.ones(2, requires_grad=True)
    x = w * 2
    x.retain_grad()
    (x * 3).sum().backward()
    return [x.grad, w.grad]


def error_in_a_hook(T):
    w = T.ones(2, requires_grad=True)

    def hook(g):
        raise KeyError("mine")
    w.register_hook(hook)
    w.sum().backward()


def function_of_the_user(T):
    class Square(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x * x * scale

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return 2 * x * grad * ctx.scale, None

    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = Square.apply(x, 3.0)
    y.sum().backward()
    with T.no_grad():
        z = Square.apply(x, 2.0)
    return [y, x.grad, z.requires_grad]


def function_with_several_results(T):
    class Both(T.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a + b, a * b

        @staticmethod
        def backward(ctx, of_sum, of_product):
            a, b = ctx.saved_tensors
            return of_sum + of_product * b, of_sum + of_product * a

    a, b = T.tensor([2.0], requires_grad=True), T.tensor([5.0], requires_grad=True)
    s, p = Both.apply(a, b)
    (s + p * 10).sum().backward()
    return [s, p, a.grad, b.grad]


def function_twice_differentiable(T):
    class Cube(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return 3 * x ** 2 * grad

    x = T.tensor([2.0], requires_grad=True)
    first, = T.autograd.grad(Cube.apply(x), x, create_graph=True)
    second, = T.autograd.grad(first, x)
    return [first, second]


def function_with_too_few_gradients(T):
    class Wrong(T.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad):
            return grad

    a, b = T.ones(1, requires_grad=True), T.ones(1, requires_grad=True)
    Wrong.apply(a, b).sum().backward()


def function_asks_what_is_needed(T):
    seen = []

    class Asks(T.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad):
            seen.append(ctx.needs_input_grad)
            return grad, grad

    Asks.apply(T.ones(1, requires_grad=True), T.ones(1)).sum().backward()
    return list(seen[0])


def function_raises(T):
    class Raises(T.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("mine")

    Raises.apply(T.ones(1, requires_grad=True)).sum().backward()


def detached_results(T):
    w = T.ones(2, requires_grad=True)
    y = (w * 2).detach()
    return [y.requires_grad, y.is_leaf, (y * w).requires_grad]


def views_of_results(T):
    w = T.ones(2, 3, requires_grad=True)
    y = w * 2
    y[0] *= 5
    y.sum().backward()
    return w.grad


# ---- errors ----

def function_of_text(T):
    return T.relu("a")


def function_without_arguments(T):
    return T.relu()


def function_with_an_unknown_keyword(T):
    return T.relu(T.ones(2), nothing=1)


def cat_of_other_shapes(T):
    return T.cat([T.ones(2, 3), T.ones(3, 2)])


def unknown_attribute(T):
    return T.ones(2).no_such_thing


def unknown_function(T):
    return T.no_such_thing


def negative_sizes(T):
    return T.zeros(-1)


def reshape_of_another_size(T):
    return T.ones(6).reshape(4)
