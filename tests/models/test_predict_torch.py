"""`badge.predict` on PyTorch classifiers: the head is found, whatever the model returns and is wrapped in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import badge
from badge.errors import InputError, ModelError
from small_nets import D_IN, C, D, N, Net, X, check, expected, refused


@dataclass
class Answer:
    logits: Tensor
    attention: Any = None


ENDINGS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "logits": lambda z, h: z,
    "pair": lambda z, h: (z, h),
    "pair the other way": lambda z, h: (h, z),
    "dict": lambda z, h: {"features": h, "logits": z},
    "dict of one": lambda z, h: {"out": z},
    "dataclass": lambda z, h: Answer(z),
    "view": lambda z, h: z.view(-1, C),
    "cast": lambda z, h: z.double(),
    "log-softmax": lambda z, h: F.log_softmax(z, dim=1),
    "softmax": lambda z, h: torch.softmax(z, dim=1),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_every_way_to_return_logits(ending: Callable[[Tensor, Tensor], Any]) -> None:
    net = Net(ending)
    check(net, net)


def test_plain_sequential_and_a_bare_linear() -> None:
    net = nn.Sequential(nn.Linear(D_IN, D), nn.ReLU(), nn.Linear(D, D), nn.Tanh(), nn.Linear(D, C))
    out = badge.predict(net, X)
    with torch.no_grad():
        torch.testing.assert_close(out.embeddings, net[:4](X))
        torch.testing.assert_close(out.probabilities, net(X).softmax(dim=1))
    torch.testing.assert_close(badge.predict(nn.Linear(D_IN, C), X).embeddings, X)


class Residual(nn.Module):
    """torchvision-style: convolutions, average pool, flatten, `fc`."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 5, 3, padding=1), nn.BatchNorm2d(5)
        self.conv2 = nn.Conv2d(5, 5, 3, padding=1)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(5, 4)

    def features(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        return torch.flatten(self.avgpool(F.relu(x + self.conv2(x))), 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.features(x))


class Vgg(nn.Module):
    """torchvision-style: the head is `classifier[-1]`, with dropout before it."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(2))
        self.classifier = nn.Sequential(
            nn.Linear(16, 9), nn.ReLU(True), nn.Dropout(), nn.Linear(9, 7), nn.ReLU(True), nn.Dropout(), nn.Linear(7, 4)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(torch.flatten(self.features(x), 1))


def test_torchvision_style_resnet_and_vgg() -> None:
    images = torch.randn(11, 3, 8, 8)
    resnet, vgg = Residual(), Vgg()
    out_r, out_v = badge.predict(resnet, images, batch_size=4), badge.predict(vgg, images, batch_size=4)
    resnet.eval()
    vgg.eval()
    with torch.no_grad():
        torch.testing.assert_close(out_r.embeddings, resnet.features(images))
        torch.testing.assert_close(out_v.embeddings, vgg.classifier[:-1](torch.flatten(vgg.features(images), 1)))


def test_one_logit_is_a_sigmoid() -> None:
    for ending in (lambda z, h: z, lambda z, h: z.squeeze(1), lambda z, h: torch.sigmoid(z)):
        net = Net(ending, classes=1)
        check(net, net)
        assert badge.predict(net, X).classes == 2


def test_data_parallel() -> None:
    net = Net()
    check(nn.DataParallel(net), net)


@pytest.mark.parametrize("warm", [False, True])
def test_compiled(warm: bool) -> None:
    net = Net()
    compiled: Any = torch.compile(net, backend="eager")
    if warm:
        compiled(X)  # compiled code exists before any hook does
    net.eval()
    check(compiled, net)
    check(nn.DataParallel(compiled), net, head="module._orig_mod.fc")


@pytest.mark.skipif(
    torch.__version__.startswith("2.4."), reason="torch 2.4 cannot compile a hook that asks for its thread"
)
def test_a_part_that_was_compiled_by_itself() -> None:
    net = Net()
    net.eval()
    net.fc.compile(backend="eager")
    net.body = torch.compile(net.body, backend="eager")  # type: ignore[assignment]
    net(X)
    check(net, net)


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("norm", [nn.utils.parametrizations.weight_norm, nn.utils.weight_norm])
def test_weight_norm(norm: Any) -> None:
    net = Net()
    norm(net.fc)
    check(net, net)


@pytest.mark.parametrize("trained", [False, True])
def test_lora(trained: bool) -> None:
    from peft import LoraConfig, inject_adapter_in_model

    net: Any = inject_adapter_in_model(LoraConfig(target_modules=["fc"], r=2), Net())
    if trained:  # a fresh adapter adds zero: then wrapper and base layer both give the logits
        nn.init.normal_(net.fc.lora_B["default"].weight)
    check(net, net)


def test_a_head_that_runs_twice() -> None:
    class Twice(Net):
        def forward(self, x: Tensor) -> Tensor:
            self.fc(self.body(x + 1))
            return self.fc(self.body(x))

    net = Twice()
    check(net, net)


def test_an_embedding_changed_in_place_after_the_head() -> None:
    net = Net(lambda z, h: (z, h.zero_())[0])
    check(net, net)


def test_head_by_module_and_by_name() -> None:
    scaled = Net(lambda z, h: z / 2)
    refused(ModelError, r"body\.0 \(6 → 8\), fc \(8 → 3\).*Pass head=", scaled, X)
    for head in ("fc", scaled.fc):
        out = badge.predict(scaled, X, head=head)
        scaled.eval()
        with torch.no_grad():
            torch.testing.assert_close(out.embeddings, scaled.body(X))
            torch.testing.assert_close(out.probabilities, scaled(X).softmax(dim=1))  # of the model, not of the head
    refused(ModelError, r"'fx' is not a module.*fc \(8 → 3\)", scaled, X, head="fx")
    refused(ModelError, "not part of the model", scaled, X, head=nn.Linear(8, 3))
    with pytest.raises(ModelError, match="did not run"):
        scaled.extra = nn.Linear(2, 2)
        badge.predict(scaled, X, head="extra")


def test_a_softmax_that_no_layer_explains_needs_a_head() -> None:
    net = Net(lambda z, h: torch.softmax(z / 3, dim=1))
    refused(ModelError, r"no linear layer gives the logits.* head= .*\(a module or its dotted name\)", net, X)
    out = badge.predict(net, X, head="fc")
    net.eval()
    torch.testing.assert_close(out.probabilities, net(X).detach())
    with pytest.raises(ModelError, match="may be a logit or a probability"):
        badge.predict(Net(lambda z, h: torch.sigmoid(z / 3), classes=1), X, head="fc")


def test_several_heads() -> None:
    class TwoHeads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(D_IN, C), nn.Linear(D, C)
            for layer in (self.a, self.b):
                nn.init.zeros_(layer.weight)
                nn.init.ones_(layer.bias)

        def forward(self, x: Tensor) -> Tensor:
            return torch.maximum(self.a(x), self.b(F.pad(x, (1, 1))))

    refused(ModelError, r"several layers give the logits: a \(6 → 3\), b \(8 → 3\)", TwoHeads(), X)
    assert badge.predict(TwoHeads(), X, head="b").embeddings.shape == (N, D)


def test_a_functional_head_with_the_embedding_returned() -> None:
    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(C, D_IN))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return F.linear(x, self.weight), x

    out = badge.predict(Functional(), X)
    torch.testing.assert_close(out.embeddings, X)


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        (lambda z, h: z[:, :, None].expand(-1, -1, 4), "logits of shape"),
        (lambda z, h: z[:3], "for 37 examples"),
        (lambda z, h: z.argmax(dim=1), "int64 logits"),
        (lambda z, h: {"a": z / 2, "b": z / 3}, "gives none of the 2 outputs .*'a', 'b'"),
        (lambda z, h: "yes", "returned str"),
        (lambda z, h: z * float("nan"), "cannot be used: probabilities hold NaN or inf in 37 rows"),
    ],
)
def test_outputs_that_cannot_be_used(ending: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        badge.predict(Net(ending), X, head="fc")


def test_not_a_model() -> None:
    refused(ModelError, "is a class", Net, X)
    refused(ModelError, "neither a torch module", lambda x: x, X)
    refused(InputError, "batch_size", Net(), X, batch_size=0)


def test_the_scores_of_an_auxiliary_head_are_no_embedding() -> None:
    refused(ModelError, "no linear layer gives the logits", Net(lambda z, h: (z / 2, z / 3)), X)


def test_the_network_sees_each_example_once() -> None:
    seen: list[int] = []

    class Counting(Net):
        def forward(self, x: Tensor) -> Any:
            seen.append(len(x))
            return super().forward(x)

    badge.predict(Counting(), X, batch_size=10)
    assert seen == [10, 10, 10, 7]


@pytest.mark.parametrize("autocast", [True, torch.bfloat16])
def test_autocast(autocast: Any) -> None:
    dtypes = []
    net = Net(lambda z, h: (dtypes.append(z.dtype), z)[1])
    out = badge.predict(net, X, autocast=autocast)
    assert dtypes == [torch.bfloat16]
    assert out.probabilities.dtype == out.embeddings.dtype == torch.float32
    p, h = expected(net)
    torch.testing.assert_close(out.probabilities, p, rtol=0.05, atol=0.02)
    assert not torch.equal(out.embeddings, h)  # it was in fact in half precision
    refused(InputError, "autocast", net, X, autocast="half")  # type: ignore[arg-type]


def test_a_model_in_half_precision_takes_a_float32_pool_and_float64_goes_to_float32() -> None:
    net = Net().to(torch.bfloat16)
    out = badge.predict(net, X)
    assert out.probabilities.dtype == out.embeddings.dtype == torch.float32
    net = Net()
    torch.testing.assert_close(badge.predict(net, X.double()).probabilities, expected(net)[0])
    half = Net(lambda z, h: torch.softmax(z, dim=1)).half()  # half-precision probabilities do not sum to 1
    p = badge.predict(half, X).probabilities
    torch.testing.assert_close(p.sum(dim=1), torch.ones(N), rtol=0, atol=1e-6)


def test_progress(capfd: pytest.CaptureFixture[str]) -> None:
    badge.predict(Net(), X)
    assert capfd.readouterr() == ("", "")
    badge.predict(Net(), X, progress=True)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "predicting" in captured.err and "37/37" in captured.err


class Scriptable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.body = nn.Conv2d(3, 4, 3), nn.Linear(4, 5)
        self.drop, self.fc, self.other = nn.Dropout(0.5), nn.Linear(5, 3), nn.Linear(5, 3)

    def features(self, x: Tensor) -> Tensor:
        return self.drop(torch.relu(self.body(self.conv(x).mean(dim=(2, 3)))))

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.features(x))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("way", ["script", "trace", "freeze"])
def test_scripted_and_traced_networks(way: str) -> None:
    net, images = Scriptable().eval(), torch.randn(11, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    scripted = torch.jit.trace(net, images) if way == "trace" else torch.jit.script(net)
    scripted = torch.jit.freeze(scripted) if way == "freeze" else scripted.train()
    out = badge.predict(scripted, images, batch_size=4)
    with torch.no_grad():
        torch.testing.assert_close(out.embeddings, net.features(images))
        torch.testing.assert_close(out.probabilities, net(images).softmax(dim=1))
    if way != "freeze":
        assert scripted.training
        torch.testing.assert_close(badge.predict(scripted, images, head="fc").embeddings, out.embeddings)
        refused(ModelError, "head='other' did not run", scripted, images, head="other")


def test_pixels_of_whole_numbers_are_not_guessed_at() -> None:
    pixels = torch.randint(0, 256, (5, 3, 8, 8), dtype=torch.uint8)
    for pool in (pixels, pixels.numpy(), list(pixels), {"x": pixels}):
        refused(InputError, r"holds torch.uint8 and the model takes torch.float32: .*processor=", Scriptable(), pool)
    scaled = badge.predict(Scriptable(), pixels, processor=lambda images: torch.stack(images) / 255)
    torch.testing.assert_close(scaled.embeddings, badge.predict(Scriptable(), pixels / 255).embeddings)

    class Scaling(Scriptable):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x / 255)

    torch.testing.assert_close(scaled.embeddings, badge.predict(Scaling(), pixels).embeddings)  # it knows how


def test_a_model_that_cannot_run_on_the_pool() -> None:
    for pool, message in (
        (torch.zeros(3, 9), r"cannot run on a batch of the pool \(float32 \[3, 9\]\): RuntimeError: mat1 and mat2"),
        (torch.zeros(3, 6, dtype=torch.int64), r"\(int64 \[3, 6\]\): RuntimeError"),
    ):
        with pytest.raises((ModelError, InputError), match=message) as caught:
            badge.predict(Net(), pool)
        assert "\n" not in str(caught.value)
    with pytest.raises(ModelError, match="the device has no memory left, in batches of 64 too"):

        class Full(Net):
            def forward(self, x: Tensor) -> Any:
                raise torch.cuda.OutOfMemoryError("no memory")

        badge.predict(Full(), X)


class Lightning(nn.Module):
    """`forward(batch)` as modules of Lightning have it: it takes the batch as the loader gives it."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.fc, self.kind = nn.Linear(D_IN, C), kind

    def forward(self, batch: Any) -> Tensor:
        x = (
            batch
            if self.kind == "tensor"
            else batch["x"] * batch["scale"]
            if self.kind == "dict"
            else batch[0] + batch[1]
        )
        return self.fc(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["tensor", "dict", "tuple"])
@pytest.mark.parametrize("loader", [True, False])
def test_a_forward_that_takes_the_whole_batch(kind: str, loader: bool) -> None:
    items: list[Any] = [
        x if kind == "tensor" else {"x": x, "scale": torch.ones(1), "label": 3} if kind == "dict" else (x, x) for x in X
    ]
    pool: Any = torch.utils.data.DataLoader(items, batch_size=8) if loader else items  # type: ignore[arg-type]
    net = Lightning(kind)
    out = badge.predict(net, pool, batch_size=8)
    wanted = X * 2 if kind == "tuple" else X
    torch.testing.assert_close(out.embeddings, wanted)
    torch.testing.assert_close(out.probabilities, torch.softmax(net.fc(wanted), dim=1).detach())


def test_a_layer_called_tokenizer_is_a_layer() -> None:
    """Networks of images cut these into patches by a layer of that name; it is no tokenizer of the pool."""

    class Patches(Net):
        def __init__(self) -> None:
            super().__init__()
            self.tokenizer = nn.Linear(D_IN, D_IN)

        def forward(self, x: Tensor) -> Any:
            return super().forward(self.tokenizer(x))

    net = Patches()
    out = badge.predict(net, X)
    with torch.no_grad():
        torch.testing.assert_close(out.embeddings, net.body.eval()(net.tokenizer(X)))
