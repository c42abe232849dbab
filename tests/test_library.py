"""The top-level API is quick to import, and the examples in its docstrings run."""

import ast
import doctest
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import softmax_temperature
from softmax_temperature import CosineClassifier, suggest_temperature
from softmax_temperature.runner.fingerprint import code_only


@pytest.mark.parametrize("name", softmax_temperature.__all__)
def test_the_example_of_each_name_runs(name: str) -> None:
    (example,) = doctest.DocTestFinder(recurse=False).find(
        getattr(softmax_temperature, name), name
    )
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_a_cosine_classifier_multiplies_cosines_and_saves_the_factor() -> None:
    torch.manual_seed(0)
    classifier, embeddings = CosineClassifier(6, 3, 12.0), torch.randn(4, 2, 6)
    cosines = torch.cosine_similarity(embeddings[:, :, None], classifier.weight, dim=-1)
    torch.testing.assert_close(classifier(embeddings), 12 * cosines)
    other = CosineClassifier(6, 3, 1.0)
    other.load_state_dict(classifier.state_dict())
    torch.testing.assert_close(other(embeddings), classifier(embeddings))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_cosine_classifier_in_half_precision_has_the_cosines_of_its_weights(
    dtype: torch.dtype,
) -> None:
    torch.manual_seed(0)
    classifier = CosineClassifier(4, 3, 16.0).to(dtype)
    rows = [[0.0] * 4, [6e4, 0, 0, 0], [1e-7, 0, 0, -1e-7], [1.0, 2.0, 3.0, 4.0]]
    embeddings = torch.tensor(rows, dtype=dtype, requires_grad=True)
    logits = classifier(embeddings)
    assert logits.dtype == dtype
    expected = 16 * torch.cosine_similarity(
        embeddings[:, None].double(), classifier.weight.double(), dim=-1, eps=1e-300
    )
    torch.testing.assert_close(logits.double(), expected, rtol=1e-2, atol=1e-3)
    assert logits[0].eq(0).all()
    logits[1:].sum().backward()
    assert classifier.weight.grad is not None
    assert classifier.weight.grad.isfinite().all()


@pytest.mark.parametrize("size", [1e-30, 1e-13, 1e30])
def test_a_cosine_does_not_depend_on_the_size_of_an_embedding(size: float) -> None:
    torch.manual_seed(0)
    classifier = CosineClassifier(4, 3, 16.0)
    embeddings = torch.randn(5, 4)
    torch.testing.assert_close(classifier(size * embeddings), classifier(embeddings))


def test_a_cosine_classifier_shows_its_arguments_and_refuses_others() -> None:
    shown = "CosineClassifier(in_features=4, classes=3, inverse_temperature=16)"
    assert repr(CosineClassifier(4, 3, 16.0)) == shown
    with pytest.raises(ValueError, match=r"shape \(..., 4\), got \(2, 5\)"):
        CosineClassifier(4, 3, 16.0)(torch.zeros(2, 5))
    # With only one class or one dimension, a cosine classifier has nothing to learn.
    with pytest.raises(ValueError, match="classes must be an integer of at least 2"):
        CosineClassifier(4, 1, 16.0)
    with pytest.raises(ValueError, match="in_features must be an integer of at least"):
        CosineClassifier(1, 3, 16.0)


def test_auto_is_what_the_heuristic_suggests_for_a_sample() -> None:
    embeddings = torch.randn(40, 6, generator=torch.manual_seed(0))
    sample = embeddings, torch.arange(40) % 4
    expected = suggest_temperature(*sample).inverse_temperature
    assert CosineClassifier(6, 4, sample=sample).inverse_temperature.item() == expected
    with pytest.raises(ValueError, match="'auto' needs sample"):
        CosineClassifier(6, 4)
    with pytest.raises(ValueError, match="sample requires inverse_temperature 'auto'"):
        CosineClassifier(6, 4, 5.0, sample=sample)
    with pytest.raises(ValueError, match=r"of shape \(n, 7\), got \(40, 6\)"):
        CosineClassifier(7, 4, sample=sample)
    with pytest.raises(ValueError, match="finite and positive, got 'Auto'"):
        CosineClassifier(6, 4, "Auto")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(set(softmax_temperature._MODULES.values())))
def test_no_text_of_the_library_needs_an_encoding(name: str) -> None:
    # A script may print any text of the library, and its output may be in ASCII.
    path = Path(softmax_temperature.__file__).parent.joinpath(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(code_only(file))
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert constants
    assert all(ascii(node.value) == repr(node.value) for node in constants)


def test_importing_the_package_imports_no_library() -> None:
    code = (
        "import sys, softmax_temperature as s; s.__version__; "
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"torch", "numpy", "pandas", "sklearn", "matplotlib"} & set(found)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ImportError, match="cannot import name 'TemperatureScalar'"):
        from softmax_temperature import TemperatureScalar  # type: ignore[attr-defined]  # noqa: F401
