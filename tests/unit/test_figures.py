"""The figures of the code's structure: what each of them counts, and what it leaves out."""

import ast

from tools.figures import Module, figures, read_tree

MEMORY = "class Lablet:\n    state: str\n    fault: str\n"


def module(path: str, text: str) -> Module:
    return Module(path, text, ast.parse(text))


def figure(name: str, *modules: Module) -> tuple[int, list[str]]:
    found = next(found for found in figures(list(modules)) if found.name == name)
    return found.value, found.places


def test_moved_modules_do_not_count_as_product_at_older_revisions() -> None:
    modules = [
        module(path, "a = 1\n") for path in ("vkprovider/sim/x.py", "vkprovider/cli/demo_story.py", "tunnels/x.py")
    ]
    assert figure("lines of the product", *modules)[0] == 1
    assert figure("lines of vkpsandbox", *modules)[0] == 2


def test_a_long_module_is_named() -> None:
    long = module("vkprovider/x.py", "a = 1\n" * 301)
    assert figure("modules > 300 lines", long, module("vkprovider/y.py", "a = 1\n" * 300)) == (
        1,
        ["vkprovider/x.py: 301"],
    )


def test_writers_of_memory_assign_a_field_or_replace_one() -> None:
    modules = [
        module("vkprovider/controllers/lablet/memory.py", MEMORY),
        module("vkprovider/controllers/lablet/assigns.py", "lablet.state = 'x'\nlablet.state, other = 1, 2\n"),
        module("vkprovider/domain/lablet/after.py", "memory = replace(memory, fault='x')\n"),
        module("vkprovider/controllers/lablet/reads.py", "print(lablet.state)\nlablet.colour = 1\n"),
    ]
    assert figure("modules that write a lablet's memory", *modules) == (
        2,
        ["vkprovider/controllers/lablet/assigns.py: 2", "vkprovider/domain/lablet/after.py: 1"],
    )


def test_claims_are_changed_by_their_verbs_alone() -> None:
    """The class has a verb for each change, whose docstring says what it means."""
    known = [
        module("vkprovider/domain/claims/claim.py", "class Claim:\n    lab_id: str\n    ready_at: int\n"),
        module("vkprovider/domain/session/delivery.py", "class Session:\n    ready_at: int\n"),
    ]
    writes = module(
        "vkprovider/domain/lablet/a.py",
        "a = replace(other, lab_id='x')\nb = structs.replace(claim, ready_at=1)\nc = replace(session, ready_at=1)\n"
        "d = replace(row, **changes)\ne = text.replace(claim, 'x')\nf = Claim(lab_id='x')\n",
    )
    name = "changes of a claim outside its class"
    assert figure(name, *known, writes) == (3, [f"vkprovider/domain/lablet/a.py:{line}" for line in (1, 2, 4)])
    assert figure(name, *read_tree(None)) == (0, [])


def test_late_wiring_is_an_assignment_to_a_callback_of_another_object() -> None:
    declares = module(
        "vkprovider/kube/a.py",
        "class A:\n"
        "    def __init__(self):\n"
        "        self.changed: Callable[[], None] = lambda: None\n"
        "        self.count: int = 0\n",
    )
    wires = module("vkprovider/app/b.py", "a.changed = wake\na.count = other\na.changed()\n")
    assert figure("attributes assigned after construction", declares, wires) == (
        1,
        ["vkprovider/app/b.py:1: a.changed"],
    )
    assert figure("callbacks that do nothing by default", declares, wires)[0] == 1


def test_raw_urls_are_paths_and_what_extends_them() -> None:
    text = '''"""Reads /api/v1/nodes."""
_NODES = "/api/v1/nodes"
a = f"{_NODES}/{name}"
b = f"{self._path}/{name}/status"
c = f"{namespace}/{name}"
'''
    value, places = figure("raw URL strings in controllers", module("vkprovider/controllers/x.py", text))
    assert value == 3, places


def test_a_reason_outside_its_package_is_a_member_and_no_string() -> None:
    defines = module(
        "vkprovider/api/reasons/pod.py",
        'class Trouble(Reasons):\n    LAB_LOST = ("LabLost", "It is lost.")\n    FAILED = ("Failed", "It failed.")\n',
    )
    says = module(
        "vkprovider/domain/x.py",
        'raise InputError("LabLost", "LabLost: m")\nfault(Trouble.LAB_LOST)\nphase = "Failed"\nword = "Other"\n',
    )
    assert figure("reasons written as strings", defines, says) == (1, ["vkprovider/domain/x.py:1: LabLost"])
