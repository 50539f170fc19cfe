import ast
from pathlib import Path

import pytest

import sparsevae

PACKAGE = Path(sparsevae.__file__).parent
FILES = sorted(file for part in ("datasets", "metrics") for file in (PACKAGE / part).glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_data_sets_and_measures_import_neither_torch_nor_higher_layers(file):
    imported = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    inside = {name.split(".")[1] for name in imported if name and name.startswith("sparsevae.")}
    assert not any(name == "torch" or name.startswith("torch.") for name in imported)
    assert inside <= {"aliases", "exceptions", "summaries", file.parent.name}
