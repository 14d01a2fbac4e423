# SPDX-License-Identifier: Apache-2.0
"""The door to torch.distributed: `import weft` makes "weft" a back end of it, before or after `import torch`.

    import torch.distributed as dist
    import weft
    dist.init_process_group("weft")

Nothing of torch is imported for that: if it is there already, the back end is registered at once, else when
torch.distributed gets imported.
"""

import importlib
import importlib.abc
import importlib.util
import inspect
import pathlib
import sys

_MODULE = "torch.distributed.distributed_c10d"


def arm():
    """Registers the back end "weft" with torch.distributed, now or when that is imported. More than once does nothing."""
    module = sys.modules.get(_MODULE)
    if module is not None and hasattr(module, "Backend"):
        _register(module.Backend)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing by itself: has what is found for one module register the back end after it has run."""

    def find_spec(self, name, path=None, target=None):
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _register(module.Backend)


def _register(backend):
    if "WEFT" in backend._plugins:
        return
    options = {"extended_api": True}
    if "devices" in inspect.signature(backend.register_backend).parameters:  # torch 2
        options["devices"] = ["cpu"]
    backend.register_backend("weft", _create, **options)


def _create(options, _):
    ranks = list(options.global_ranks_in_group)
    name = f"group {options.group_id!r}"
    if ranks:
        name += f" of ranks {_shorten(ranks)}"
    return extension().create(
        store=options.store, rank=options.group_rank, size=options.group_size, timeout=options.timeout, name=name
    )


def _shorten(ranks):
    shown = ", ".join(map(str, ranks[:8]))
    return shown if len(ranks) <= 8 else f"{shown}, ... ({len(ranks)} ranks)"


def extension():
    """The module that was built for this torch. A class of torch has another layout in each version."""
    torch = sys.modules["torch"]
    version = torch.__version__.split("+")[0].split(".")[:2]
    name = f"{__package__}._torch_{'_'.join(version)}"
    if importlib.util.find_spec(name) is None:
        raise ImportError(
            f"weft has no back end for torch {torch.__version__} ({torch.__file__}); it has been built for "
            f"{_built_for() or 'none'}; fix: use such a torch, or configure weft with "
            f"-DWEFT_TORCH_PYTHON={sys.executable} and build it"
        )
    return importlib.import_module(name)


def _built_for():
    stems = {path.name.split(".")[0] for path in pathlib.Path(__file__).parent.glob("_torch_[0-9]*")}
    return ", ".join("torch " + stem.removeprefix("_torch_").replace("_", ".") for stem in sorted(stems))
