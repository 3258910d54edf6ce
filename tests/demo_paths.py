"""The scripts of the demo and of its training find each other: each module that is no installed package lies in a folder of theirs."""
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
DEMO, CHECKPOINTS = ROOT / "tools/demo", ROOT / "pipelines/checkpoints"
TRAIN, SMOLVLA, TOKEN = (CHECKPOINTS / f"{name}/train" for name in ("metaworld", "metaworld_smolvla", "metaworld_token"))
INSTALLED = {"PIL", "matplotlib", "metaworld", "mujoco", "numpy", "openpi_client", "safetensors", "sentencepiece", "torch"}


def modules(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def folders(path, text):
    """Where Python looks for modules of a script: its own folder, and what it adds from its place in the tree."""
    yield path.parent
    for up, below in re.findall(r'__file__\)\.resolve\(\)\.parents\[(\d)\] / "([^"]+)"', text):
        yield path.parents[int(up)] / below


wrong = []
for path in sorted([*DEMO.glob("*.py"), *TRAIN.glob("*.py"), *SMOLVLA.glob("*.py"), *TOKEN.glob("*.py")]):
    text = path.read_text()
    there = list(folders(path, text))
    wrong += [f"{path.name}: no folder {folder}" for folder in there if not folder.is_dir()]
    for name in sorted(set(modules(ast.parse(text))) - INSTALLED - set(sys.stdlib_module_names)):
        if not any((folder / f"{name}.py").is_file() for folder in there):
            wrong.append(f"{path.name}: no module {name} in {', '.join(map(str, there))}")
print("\n".join(wrong), end="")
sys.exit(bool(wrong))
