"""Everyday programs for PyTorch, beyond single ops: NumPy's names and arrays, mixed precision, devices, control
flow, layers, optimisers and training loops. Each is a function of the module, torch or tenon (programs_test.py)."""

import math

import numpy as np
from programs import some


# Programs that PyTorch 1.13 does not run: True if the program raises an error in later versions.
NEWER = {"assignment_by_arrays": False, "autocast_dtypes": False, "autocast_restores_after_an_error": False, "checkpointed": False,
         "checkpointed_dropout": False, "compile_options": False, "compile_with_an_unknown_mode": True, "device_as_a_block": False,
         "scaled_step": False, "scaler_state": False, "unscale_twice": True, "update_without_a_step": True}


# ---- NumPy's names and arrays ----

def axis_for_dim(T):
    x = some(T, 3, 4)
    return [x.sum(axis=0), x.mean(axis=1, keepdims=True), T.sum(x, axis=-1), x.max(axis=0).values, x.argmax(axis=1), T.softmax(x, axis=0),
            x.std(axis=0), x.cumsum(axis=1), T.cat((x, x), axis=1), T.stack([x, x], axis=2), x.sum(axis=(0, 1)), T.sort(x, axis=0).values,
            T.unsqueeze(x, axis=0), T.squeeze(x.reshape(3, 1, 4), axis=1), x.prod(axis=1, keepdims=True), T.logsumexp(x, axis=1)]


def axis_and_dim(T):
    return some(T, 3, 4).sum(dim=0, axis=1)


def unknown_keyword(T):
    return some(T, 3, 4).sum(axes=0)


def numpy_names_of_operands(T):
    x = some(T, 3)
    return [T.add(x1=x, x2=x), T.sum(a=x), T.exp(x=x), T.maximum(x1=x, x2=-x)]


def axis_of_other_functions(T):
    x = some(T, 4, 5)
    return [T.quantile(x, 0.5, axis=1), T.median(x, axis=1).values, T.amax(x, axis=0), T.var(x, axis=0, unbiased=False), T.flip(x, (0,)),
            T.diff(x, axis=0), T.nanmean(x, axis=0, keepdims=True)]


def arrays_as_indices(T):
    x = some(T, 4, 3)
    return [x[np.array([1, 0])], x[np.array([True, False, True, False])], x[:, np.array([2, 0])], x[np.int64(1)], x[np.array([0, 1]), np.array([2, 1])]]


def assignment_by_arrays(T):
    x, y = some(T, 4, 3), some(T, 4, 3)
    x[np.array([1, 3])] = 0
    y[np.asarray(y) > 0] = -1.0
    return [x, y]


def arrays_as_operands(T):
    x, a = some(T, 2, 3), np.ones((2, 3), dtype="f4")
    return [T.tensor(a), T.as_tensor(a) + x, T.from_numpy(a) * x, T.tensor([np.float32(1), np.float32(2)]), T.tensor(np.arange(3))]


def arrays_of_tensors(T):
    x = some(T, 2, 3)
    return [float(np.asarray(x).sum()), str(np.asarray(x).dtype), float(np.mean(x.numpy())), float(np.array(x, dtype="f8")[0, 1]),
            float(x.__array__()[1, 2]), np.asarray(T.tensor([1, 2])).tolist()]


# ---- limits, defaults, devices ----

def limits(T):
    return [[T.finfo(each).max, T.finfo(each).min, T.finfo(each).eps, T.finfo(each).tiny, T.finfo(each).smallest_normal, T.finfo(each).bits,
             T.finfo(each).resolution] for each in (T.float16, T.bfloat16, T.float32, T.float64)]


def limits_of_integers(T):
    return [[T.iinfo(each).max, T.iinfo(each).min, T.iinfo(each).bits] for each in (T.int8, T.uint8, T.int16, T.int32, T.int64)]


def limits_of_the_wrong_dtype(T):
    return T.finfo(T.int32)


def mask_by_the_least_number(T):
    x = some(T, 2, 3)
    return T.softmax(x.masked_fill(x > 0, T.finfo(x.dtype).min), dim=-1)


def default_dtype(T):
    T.set_default_dtype(T.float32)
    return [str(T.get_default_dtype())]


def devices(T):
    device = T.device("cuda" if T.cuda.is_available() else "cpu")
    x = T.ones(2, device=device).to("cpu")
    return [device.type, x, x.device.type, x.is_cuda, x.cpu()]


def device_as_a_block(T):
    with T.device("cpu"):
        x = T.ones(2)
    return [x, x.device.type]


def random_states(T):
    T.manual_seed(3)
    state = T.get_rng_state()
    first = T.rand(4)
    T.set_rng_state(state)
    same = bool((first == T.rand(4)).all())
    with T.random.fork_rng():
        inside = T.rand(4)
    return [same, T.initial_seed(), bool((inside == T.rand(4)).all())]


def deterministic(T):
    T.use_deterministic_algorithms(True)
    on = T.are_deterministic_algorithms_enabled()
    T.use_deterministic_algorithms(False)
    return [on, T.are_deterministic_algorithms_enabled()]


def precisions_of_products(T):
    before = T.get_float32_matmul_precision()
    names = []
    for name in ("high", "medium", "highest"):
        T.set_float32_matmul_precision(name)
        names.append(T.get_float32_matmul_precision())
    return [before, names, T.ones(3, 3) @ T.ones(3, 3)]


def anomalies_from_now_on(T):
    with T.autograd.set_detect_anomaly(True):
        x = T.ones(2, requires_grad=True)
        (x * 2).sum().backward()
    T.autograd.set_detect_anomaly(True)
    T.autograd.set_detect_anomaly(False)
    return x.grad


def memory_formats(T):
    x = some(T, 1, 2, 3, 3)
    return [x.to(memory_format=T.channels_last), x.contiguous(memory_format=T.channels_last).stride(1), x.contiguous().stride(1)]


def shapes(T):
    x = some(T, 2, 3)
    b, c = x.shape
    return [b, c, list(x.size()), x.shape[-1], isinstance(x.shape, T.Size), list(T.Size([1, 2])), tuple(x.shape) == (2, 3)]


# ---- windows ----

def unfold_of_a_tensor(T):
    x = some(T, 7)
    y = some(T, 3, 5).requires_grad_()
    y.unfold(1, 3, 2).square().sum().backward()
    return [x.unfold(0, 2, 1), x.unfold(0, 3, 3), some(T, 2, 6).unfold(1, 2, 2), some(T, 2, 6).unfold(-2, 2, 1), y.grad]


def unfold_that_is_too_long(T):
    return some(T, 3).unfold(0, 4, 1)


def strided(T):
    x = some(T, 3, 4)
    return [T.as_strided(x, (2, 2), (1, 2)), x.as_strided((3,), (5,)), x.as_strided((2, 3), (4, 1), 1), x.as_strided((2, 0), (1, 1)),
            T.as_strided(x, (2, 2), (0, 0), storage_offset=5)]


def strided_outside(T):
    return T.as_strided(some(T, 3, 4), (4, 4), (4, 4))


# ---- mixed precision ----

def autocast_dtypes(T):
    x, w = some(T, 4, 4), some(T, 4, 4)
    with T.autocast("cpu", dtype=T.bfloat16):
        y = x @ w
        z = T.nn.functional.linear(x, w)
        with T.autocast("cpu", enabled=False):
            plain = x @ w
        return [str(y.dtype), str(z.dtype), str(plain.dtype), str((y + x).dtype), str((y.double() @ w.double()).dtype), str(T.relu(y).dtype),
                T.is_autocast_enabled("cpu"), str(T.get_autocast_dtype("cpu"))]


def autocast_layers(T):
    T.manual_seed(0)
    net = T.nn.Sequential(T.nn.Conv1d(2, 3, 2), T.nn.ReLU(), T.nn.Flatten(), T.nn.Linear(9, 2))
    with T.amp.autocast("cpu", dtype=T.bfloat16):
        y = net(T.ones(1, 2, 4))
        loss = T.nn.functional.mse_loss(y.float(), T.zeros(1, 2))
    loss.backward()
    return [str(y.dtype), str(loss.dtype), [str(p.grad.dtype) for p in net.parameters()]]


def autocast_as_a_decorator(T):
    @T.autocast("cpu", dtype=T.bfloat16)
    def product(x):
        return x @ x
    return [str(product(T.ones(2, 2)).dtype), str((T.ones(2, 2) @ T.ones(2, 2)).dtype)]


def autocast_restores_after_an_error(T):
    try:
        with T.autocast("cpu", dtype=T.bfloat16):
            raise KeyError("x")
    except KeyError:
        pass
    return [T.is_autocast_enabled("cpu")]


def scaled_step(T):
    w = T.nn.Parameter(T.tensor([1.0, 2.0]))
    optimizer = T.optim.SGD([w], lr=0.5)
    scaler = T.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    results = []
    for factor in (1.0, 1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale((w * w).sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        results += [w.detach().clone(), scaler.get_scale()]
    return results


def scaler_state(T):
    scaler = T.amp.GradScaler("cpu", init_scale=4.0)
    state = scaler.state_dict()
    other = T.amp.GradScaler("cpu")
    other.load_state_dict(state)
    return [sorted(state), other.get_scale(), T.amp.GradScaler("cpu", enabled=False).state_dict() == {}]


def unscale_twice(T):
    w = T.nn.Parameter(T.ones(1))
    optimizer = T.optim.SGD([w], lr=0.5)
    scaler = T.amp.GradScaler("cpu")
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


def update_without_a_step(T):
    T.amp.GradScaler("cpu").update()


# ---- compiled functions ----

def compile_options(T):
    x = some(T, 3)
    return [T.compile(lambda a: a * 2, fullgraph=True, dynamic=True, backend="eager")(x), T.compile(lambda a: a + 1, disable=True)(x)]


def compile_with_an_unknown_mode(T):
    return T.compile(lambda a: a, mode="fastest")(some(T, 2))


# ---- layers and training ----

def training_loop(T):
    T.manual_seed(0)
    net = T.nn.Linear(2, 1)
    with T.no_grad():
        net.weight.copy_(T.tensor([[0.5, -0.5]]))
        net.bias.zero_()
    x, y = some(T, 8, 2), some(T, 8, 2).sum(dim=1, keepdim=True)
    optimizer = T.optim.Adam(net.parameters(), lr=0.1)
    losses = []
    for _ in range(10):
        optimizer.zero_grad(set_to_none=True)
        loss = T.nn.functional.mse_loss(net(x), y)
        loss.backward()
        T.nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        losses.append(round(loss.item(), 3))
    return losses


def schedules(T):
    w = T.nn.Parameter(T.ones(1))
    optimizer = T.optim.SGD([w], lr=1.0, momentum=0.9, nesterov=True)
    schedule = T.optim.lr_scheduler.SequentialLR(
        optimizer, [T.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3), T.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)], [3])
    rates = []
    for _ in range(8):
        optimizer.step()
        schedule.step()
        rates.append(round(optimizer.param_groups[0]["lr"], 9))
    return rates


def frozen_layers(T):
    net = T.nn.Sequential(T.nn.Linear(2, 2), T.nn.Linear(2, 1))
    for parameter in net[0].parameters():
        parameter.requires_grad = False
    net(T.ones(1, 2)).sum().backward()
    return [[p.grad is None for p in net.parameters()], sum(p.numel() for p in net.parameters() if p.requires_grad)]


def names_of_parameters(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = T.nn.ModuleDict({"a": T.nn.Linear(2, 3), "b": T.nn.BatchNorm1d(3)})
            self.scale = T.nn.Parameter(T.ones(1))
            self.register_buffer("steps", T.zeros(1), persistent=False)

        def forward(self, x):
            return self.layers["b"](self.layers["a"](x)) * self.scale
    net = Net()
    return [[name for name, _ in net.named_parameters()], list(net.state_dict()), [name for name, _ in net.named_buffers()],
            [name for name, _ in net.named_modules()], len(list(net.children())), net.training, net.eval().training]


def loading_states(T):
    net = T.nn.Linear(2, 2)
    found = net.load_state_dict({"weight": T.ones(2, 2)}, strict=False)
    return [list(found.missing_keys), list(found.unexpected_keys), net.weight.detach()]


def loading_a_state_that_lacks_a_key(T):
    T.nn.Linear(2, 2).load_state_dict({"weight": T.ones(2, 2)})


def early_stopping(T):
    best, patience, history = math.inf, 0, []
    for loss in some(T, 6).abs():
        if loss.item() < best:
            best, patience = loss.item(), 0
        else:
            patience += 1
        history.append((round(best, 4), patience))
    return [list(each) for each in history]


def accuracy(T):
    logits, labels = some(T, 6, 3).sin(), T.tensor([0, 1, 2, 0, 1, 2])
    predictions = logits.argmax(dim=1)
    correct = (predictions == labels).float().mean().item()
    confusion = T.zeros(3, 3, dtype=T.int64)
    for p, l in zip(predictions, labels):
        confusion[l, p] += 1
    return [round(correct, 6), confusion, T.nn.functional.one_hot(labels, 3)]


def positional_encoding(T):
    position = T.arange(6).unsqueeze(1)
    div_term = T.exp(T.arange(0, 8, 2) * (-math.log(10000.0) / 8))
    pe = T.zeros(6, 8)
    pe[:, 0::2] = T.sin(position * div_term)
    pe[:, 1::2] = T.cos(position * div_term)
    return pe


def causal_mask(T):
    mask = T.triu(T.ones(4, 4), diagonal=1).bool()
    scores = some(T, 4, 4).masked_fill(mask, float("-inf"))
    return [mask, T.softmax(scores, dim=-1), T.nn.Transformer.generate_square_subsequent_mask(3)]


def top_k_filter(T):
    logits = some(T, 2, 5).cos()
    values, _ = T.topk(logits, 2)
    logits[logits < values[:, [-1]]] = -float("inf")
    return T.softmax(logits, dim=-1)


def nucleus(T):
    probabilities = T.softmax(some(T, 6).sin() * 3, dim=-1)
    ordered, places = T.sort(probabilities, descending=True)
    keep = T.cumsum(ordered, dim=-1) - ordered < 0.8
    return [ordered * keep, places, T.zeros_like(probabilities).scatter(0, places, ordered * keep)]


def moving_average(T):
    net, average = T.nn.Linear(2, 2), T.nn.Linear(2, 2)
    with T.no_grad():
        for p in list(net.parameters()) + list(average.parameters()):
            p.fill_(1.0)
        net.weight.fill_(3.0)
        for slow, fast in zip(average.parameters(), net.parameters()):
            slow.mul_(0.9).add_(fast, alpha=0.1)
    return [p.detach() for p in average.parameters()]


def gradient_accumulation(T):
    w = T.nn.Parameter(T.ones(2))
    for part in some(T, 4, 2).chunk(2):
        ((part * w).sum() / 2).backward()
    return w.grad


def checkpointed(T):
    x = some(T, 3).requires_grad_()
    run = T.utils.checkpoint.checkpoint if hasattr(T, "utils") and hasattr(T.utils, "checkpoint") else T.autograd.checkpoint
    run(lambda a: a.sin() * a, x).sum().backward()
    return x.grad


def checkpointed_dropout(T):
    x = T.ones(100, requires_grad=True)
    y = T.utils.checkpoint.checkpoint(lambda a: T.nn.functional.dropout(a, 0.5), x, use_reentrant=False)
    y.sum().backward()
    return bool(((y == 0) == (x.grad == 0)).all())


def progress_text(T):
    loss, epoch = T.tensor(0.123456), 3
    return [f"epoch {epoch:03d} loss {loss:.4f} {loss.item():.2e}", "%.3f" % loss]


def numpy_round_trip(T):
    x = some(T, 2, 2)
    array = x.detach().cpu().numpy()
    array[0, 0] = 9
    return [x, T.from_numpy(array.copy())]


def broadcasting_and_reshaping(T):
    x = some(T, 2, 3, 4)
    return [x.flatten(1), x.reshape(2, -1), x.permute(2, 0, 1).contiguous(), x.transpose(1, 2).reshape(-1)[:5], x.view(6, 4).t()[0], x[..., None].shape[-1],
            x.unflatten(2, (2, 2)), x.repeat(1, 2, 1).shape[1], x.expand(2, 2, 3, 4).sum(0), T.einsum("bij,bkj->bik", x, x)]


def one_liners(T):
    x = some(T, 3, 3)
    return [x.clamp(min=0), x.where(x > 0, T.zeros(())), (x > 0).sum(), x.abs().max(), x.T @ x, x.norm(), T.eye(3) * 2, T.linspace(0, 1, 5), T.arange(0, 1, 0.25),
            x.diag(), x.trace(), T.outer(x[0], x[1]), x.sum().item() > 0, T.allclose(x, x + 1e-9), T.full((2,), 7), T.tril(x), x.round(decimals=1)]


def gradients_of_vector_products(T):
    results = []
    for first, second in (((4,), (4, 3)), ((3, 4), (4,)), ((4,), (4,)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((5, 2, 3, 4), (4,)), ((4,), (5, 2, 4, 3))):
        x, y = some(T, *first).requires_grad_(), some(T, *second).requires_grad_()
        (x @ y).sin().sum().backward()
        results += [x.grad, y.grad]
    return results
