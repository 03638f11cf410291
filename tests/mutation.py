"""How much wrong code do the tests let pass?  Break a line of a room, run its tests, see whether one fails.

    python tests/mutation.py --seed 7 --count 60 [--room fabric] [--room-only] [--jobs 2] [--list] [--only N]

A mutant is one small change of the syntax tree: another operator, a constant moved, a term dropped, a
condition turned round, a check removed.  The seed draws the mutants; each is put into a copy of the tree,
never into the tree itself, and meets the tests of its room: the doctests of its module, the files that
speak of the module, the rest of the folder, and the figures recorded of the room (`tests/recorded/`).  One
that lives meets the tests of all other rooms, and is counted apart when they see it: the line is guarded,
if from afar.  A mutant that lives is a gap in the tests, or a change that nobody could see; the second kind
is why the share that lives is read and not asserted.

No mutant is killed by a test that fails without it: what failed is run on clean code, in the same order up
to the file in which it failed, and where it fails there too, the mutant is unclear and counts as alive.

Left alone are annotations, text (docstrings, f-strings, what an error says, functions that return words),
assertions, and lines that say `# pragma: no mutate`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOUSE = Path("src/datahall")
ROOMS = (
    "catalog", "events", "workload", "silicon", "fabric", "cluster", "training", "inference", "reliability",
    "scheduling", "datapath", "power", "economics", "planner",
    "scenario", "answers", "report", "validation", "cli", "breakdown.py", "units.py",
)  # fmt: skip
COPIED = (
    "src", "tests", "calibration", "benchmarks", "docs", "release", "pyproject.toml", "Makefile", "README.md",
    "CHANGELOG.md", "CITATION.cff", "LICENSE",
)  # fmt: skip
HOUSE_TESTS = "the house"
NOT_COPIED = shutil.ignore_patterns("__pycache__", ".hypothesis", ".*_cache")
MARK = "# pragma: no mutate"
UNTOUCHED = {"__repr__", "__str__", "__rich__"}
UNCLEAR = "unclear"  # what failed fails on clean code too
FIRST_WAIT_S, WAIT_RATIO = 60.0, 4.0  # a mutant may take this, and so many times what the clean tests take

LIBRARIES = ("hypothesis", "msgspec", "networkx", "numba", "numpy", "pint", "scipy.optimize", "simpy")
OPTIONS = (
    "-x", "-q", "--no-header", "--tb=line", "--assert=plain", "-W", "ignore::pytest.PytestAssertRewriteWarning",
    "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "mutation_profile",
)  # fmt: skip

# The first failure is enough, so nothing is shrunk; compiling a mutant anew is no reason to fail.
PROFILE = """
from hypothesis import Phase, settings
settings.register_profile(
    "mutation", deadline=None, database=None, derandomize=True, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("mutation")
"""

OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd, ast.MatMult: ast.Mult,
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
PAIRS = [("min", "max"), ("minimum", "maximum"), ("ceil", "floor"), ("argmin", "argmax"), ("any", "all")]
NAMES = dict(PAIRS) | {right: left for left, right in PAIRS}


class Mutant(NamedTuple):
    """One change: the bytes of a file from `start` to `end` become `text`."""

    path: Path
    line: int
    kind: str
    start: int
    end: int
    text: str

    @property
    def room(self) -> str:
        """The room, or the top file, that the mutant lives in."""
        return self.path.relative_to(HOUSE).parts[0]

    def applied(self, source: bytes) -> bytes:
        """The file with the change in it."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def shown(self, source: bytes) -> tuple[str, str]:
        """The line before and after, each on one line."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.end)
        last = len(source) if last < 0 else last
        after = source[first : self.start] + self.text.encode() + source[self.end : last]
        return _one_line(source[first:last]), _one_line(after)


def _one_line(text: bytes) -> str:
    return " ".join(text.decode().split())


def _moved(value: float) -> float:
    """A constant by one, by a tenth, or a tolerance by so much that it lets something through."""
    if isinstance(value, int) or not value:
        return value + 1
    return value * (1e6 if abs(value) < 1e-6 else 1.1)


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What may stand in place of a node, each with the kind of change."""
    match node:
        case ast.BinOp(left, op, right) if not (_is_text(left) or _is_text(right)):
            if other := OPERATORS.get(type(op)):
                yield "operator", ast.BinOp(left, other(), right)
            if isinstance(op, ast.Add):
                yield "term dropped", left
                yield "term dropped", right
        case ast.AugAssign(target, op, value) if not _is_text(value) and type(op) in OPERATORS:
            yield "assignment", ast.AugAssign(target, OPERATORS[type(op)](), value)
            yield "assignment", ast.Assign([target], value, lineno=0)
        case ast.Compare(left, [*before, last], right) if type(last) in COMPARISONS:
            yield "comparison", ast.Compare(left, [*before, COMPARISONS[type(last)]()], right)
        case ast.BoolOp(op, values):
            yield "and, or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            yield "not dropped", operand
        case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield "sign dropped", operand
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            yield "constant", ast.Constant(_moved(value))
        case ast.Call(ast.Name(name), args, keywords) if name in NAMES:
            yield "function", ast.Call(ast.Name(NAMES[name]), args, keywords)
        case ast.Call(ast.Attribute(owner, name), args, keywords) if name in NAMES:
            yield "function", ast.Call(ast.Attribute(owner, NAMES[name]), args, keywords)
        case ast.IfExp(test, body, orelse):
            yield "condition", ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "return", ast.Return(ast.Constant(None))


def conditions(node: ast.If) -> Iterator[tuple[str, ast.AST]]:
    """What may stand in place of the condition of an `if`."""
    if isinstance(node.body[0], ast.Raise) and not node.orelse:
        yield "check removed", ast.Constant(False)
    else:
        yield "condition", ast.UnaryOp(ast.Not(), node.test)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_told(node: ast.AST) -> bool:
    """Whether a node is there for people to read, or for the type checker."""
    match node:
        case ast.FunctionDef(name, returns=ast.Name("str")):
            return True
        case ast.FunctionDef(name):
            return name in UNTOUCHED
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Call(ast.Attribute(ast.Name("log"))):
            return True
        case ast.If(ast.Name("TYPE_CHECKING")):
            return True
        case ast.keyword("compile_s"):  # said while a kernel is compiled, and used for nothing
            return True
    return False


def code_nodes(node: ast.AST, *, inside: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every node that computes, and whether it stands in a function."""
    if _is_told(node):
        return
    yield node, inside
    inside = inside or isinstance(node, ast.FunctionDef | ast.Lambda)
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "type_comment"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from code_nodes(child, inside=inside)


def mutants_of(path: Path, source: bytes) -> Iterator[Mutant]:
    """Every mutant of a file."""
    lines = source.split(b"\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for node, inside in code_nodes(ast.parse(source)):
        if isinstance(node, ast.If):
            place: ast.AST = node.test
            options = conditions(node)
        else:
            place, options = node, changes(node)
        if not isinstance(place, ast.expr | ast.stmt) or place.end_lineno is None:
            continue
        if isinstance(place, ast.BinOp) and isinstance(place.op, ast.BitOr) and not inside:
            continue  # a union of types
        if any(MARK.encode() in line for line in lines[place.lineno - 1 : place.end_lineno]):
            continue
        start = starts[place.lineno - 1] + place.col_offset
        end = starts[place.end_lineno - 1] + (place.end_col_offset or 0)
        for kind, other in options:
            yield Mutant(path, place.lineno, kind, start, end, _text(other))


def _text(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
    closed = isinstance(node, ast.stmt | ast.Name | ast.Constant | ast.Call | ast.Attribute | ast.Subscript)
    return text if closed else f"({text})"


def modules(rooms: list[str]) -> list[Path]:
    """The files of the rooms that exist and have tests."""
    found: list[Path] = []
    for room in rooms:
        place = ROOT / HOUSE / room
        if tests_of_room(room, ROOT) and place.exists():
            found.extend(sorted(place.rglob("*.py")) if place.is_dir() else [place])
    return [path.relative_to(ROOT) for path in found]


def tests_of_room(room: str, tree: Path) -> list[Path]:
    """The test files of a room, or of a file at the top; the last compares its figures with recorded ones."""
    place = tree / "tests" / (f"test_{room}" if room.endswith(".py") else room)
    own = sorted(place.rglob("test_*.py")) if place.is_dir() else [place]
    recorded = tree / "tests" / "recorded" / f"test_{room.removesuffix('.py')}.py"
    return [file for file in (*own, recorded) if file.exists()]


def tests_elsewhere(room: str, tree: Path) -> list[Path]:
    """The test files of all rooms but one."""
    own = set(tests_of_room(room, tree))
    return [file for file in sorted((tree / "tests").rglob("test_*.py")) if file not in own]


def drawn(seed: int, count: int, rooms: list[str]) -> list[Mutant]:
    """So many mutants of the rooms, by the seed; the first of a longer draw are those of a shorter one."""
    every = [one for path in modules(rooms) for one in mutants_of(path, (ROOT / path).read_bytes())]
    random.Random(seed).shuffle(every)
    return every[:count]


def importers(tree: Path) -> dict[str, set[Path]]:
    """Who imports what: the files that name a module in an import."""
    found: dict[str, set[Path]] = {}
    for file in (tree / HOUSE).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]:
                    found.setdefault(name, set()).add(file.relative_to(tree))
    return found


def _dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")


class Verdict(NamedTuple):
    """What the tests made of a tree."""

    word: str
    seconds: float
    said: str


class Tree:
    """A copy of the project to break, with its own folder of compiled code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tree"
        self.warm = folder / "warm"
        self.cache = folder / "cache"
        self.limits_s: dict[str, float] = {}
        self.passed: dict[tuple[Path, ...], Verdict] = {}  # by files in their order, on clean code
        self._time_ns = time.time_ns()
        self.folder.mkdir()
        self.warm.mkdir()
        (folder / "mutation_profile.py").write_text(PROFILE)
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.folder / name, ignore=NOT_COPIED)
            elif (ROOT / name).exists():
                shutil.copy2(ROOT / name, self.folder / name)
        self.imported_by = importers(self.folder)

    def clean(self, room: str) -> Verdict:
        """Run the tests of a room on code that is right: they pass, and fill the folder of compiled code."""
        src = self.folder / HOUSE / room
        doctests = sorted(src.rglob("*.py")) if src.is_dir() else [src]
        found = self._tested([*doctests, *tests_of_room(room, self.folder)], self.warm, limit_s=3600.0)
        self.limits_s[room] = FIRST_WAIT_S + WAIT_RATIO * found.seconds
        return found

    def clean_house(self) -> Verdict:
        """Run every test on code that is right, once, before a mutant meets more than its room."""
        found = self._tested(tests_elsewhere("", self.folder), self.warm, limit_s=3600.0)
        self.limits_s[HOUSE_TESTS] = FIRST_WAIT_S + WAIT_RATIO * found.seconds
        return found

    def tried(self, mutant: Mutant, *, elsewhere: bool = False) -> Verdict:
        """Break the copy, run the tests of the room or of all others, mend the copy."""
        file = self.folder / mutant.path
        source, kept = file.read_bytes(), file.stat()
        shutil.rmtree(self.cache, ignore_errors=True)
        shutil.copytree(self.warm, self.cache)
        touched = [(path, path.stat()) for path in self._compiled_from(mutant.path)]
        try:
            file.write_bytes(mutant.applied(source))
            for path, _ in [(file, kept), *touched]:
                self._time_ns += 2_000_000_000  # Python and numba know a changed file by its time
                os.utime(path, ns=(self._time_ns, self._time_ns))
            limit_s = self.limits_s[HOUSE_TESTS if elsewhere else mutant.room]
            tests = self._tests_of(mutant, elsewhere=elsewhere)
            found = self._tested(tests, self.cache, limit_s)
        finally:
            file.write_bytes(source)
            for path, stat in [(file, kept), *touched]:
                os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        if found.word == "killed" and self._passed(tests, found.said).word != "LIVED":
            return found._replace(word=UNCLEAR)
        return found

    def _passed(self, tests: list[Path], failed: str) -> Verdict:
        """What clean code makes of the same tests in their order, up to the file of the one that failed."""
        file = self.folder / failed.partition("::")[0]
        key = tuple(tests[: tests.index(file) + 1] if file in tests else tests)
        if key not in self.passed:
            self.passed[key] = self._tested(list(key), self.warm, limit_s=3600.0)
        return self.passed[key]

    def _compiled_from(self, path: Path) -> list[Path]:
        """The files with kernels that import a module, directly or not: numba itself looks at one file."""
        reached = [path]
        for one in reached:
            reached += [other for other in self.imported_by.get(_dotted(one), ()) if other not in reached]
        files = [self.folder / one for one in reached[1:]]
        return [file for file in files if "Kernel(" in file.read_text()]

    def _tests_of(self, mutant: Mutant, *, elsewhere: bool) -> list[Path]:
        """The module's doctests, the test files that speak of it, and the others; or those of other rooms."""
        stem = mutant.path.parent.name if mutant.path.stem == "__init__" else mutant.path.stem
        dotted = _dotted(mutant.path)
        word = re.compile(rf"\b{stem}\b")

        def distance(file: Path) -> int:
            text = file.read_text()
            return 0 if dotted in text else 1 if word.search(text) or stem in file.stem else 2

        if elsewhere:
            return sorted(tests_elsewhere(mutant.room, self.folder), key=distance)
        tests = sorted(tests_of_room(mutant.room, self.folder), key=distance)
        return [self.folder / mutant.path, *tests]

    def _tested(self, files: list[Path], cache: Path, limit_s: float) -> Verdict:
        """Run pytest in a fork of this process, which has the libraries loaded and none of the project."""
        began = time.monotonic()
        said = self.folder.parent / "said"
        child = os.fork()
        if child == 0:
            self._become_pytest([str(file.relative_to(self.folder)) for file in files], cache, said)
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                # 5: nothing was collected, as from a module without doctests and a room without tests
                word = "LIVED" if os.waitstatus_to_exitcode(status) in (0, 5) else "killed"
                break
            if time.monotonic() - began > limit_s:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                word = "timeout"
                break
            time.sleep(0.05)
        return Verdict(word, time.monotonic() - began, _first_failure(said.read_text()))

    def _become_pytest(self, files: list[str], cache: Path, said: Path) -> NoReturn:
        os.setsid()  # a group of its own, which a timeout ends as a whole
        os.nice(10)
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, sys.stdout.fileno())
        os.dup2(output, sys.stderr.fileno())
        os.chdir(self.folder)
        own = [str(self.folder / "src"), str(self.folder.parent)]
        os.environ |= {"PYTHONPATH": os.pathsep.join(own), "NUMBA_CACHE_DIR": str(cache)}
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        sys.path[:] = [str(self.folder), *own, *(path for path in sys.path if path != str(ROOT / "tests"))]
        status: int = 1
        try:
            for file in files:
                if Path(file).is_relative_to(
                    HOUSE
                ):  # pytest would load it beside the one that the tests import
                    importlib.import_module(_dotted(Path(file)))
            status = pytest.main([*OPTIONS, *files])
        finally:
            sys.stdout.flush()
            os._exit(status)


def _first_failure(output: str) -> str:
    lines = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].partition(" - ")[0].partition(" ")[2] if lines else ""


def main() -> int:
    """Draw the mutants, try each, and say what share lived."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--room", action="append", choices=ROOMS, help="only this room; may be repeated")
    parser.add_argument(
        "--room-only", action="store_true", help="run no tests but those of the mutant's room"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side, each with its own rooms")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    parser.add_argument("--only", type=int, metavar="N", help="try only mutant N of the draw")
    asked = parser.parse_args()
    mutants = list(enumerate(drawn(asked.seed, asked.count, asked.room or list(ROOMS))))
    if asked.only is not None:
        mutants = mutants[asked.only : asked.only + 1]
    if asked.list:
        for number, mutant in mutants:
            print(f"{number:>4}  {_described(mutant)}")
        return 0
    for name in LIBRARIES:
        importlib.import_module(name)
    with ProcessPoolExecutor(max_workers=asked.jobs) as pool:
        found = list(pool.map(_lived_their_room, _by_rooms(mutants, asked.jobs)))
    if any(one is None for one in found):
        return 2
    lived = sorted(one for some in found for one in some or ())
    print(
        f"{_share(lived, mutants)} lived the tests of their room: {[number for number, _ in lived]}",
        flush=True,
    )
    if lived and not asked.room_only:
        with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
            lived = _lived_elsewhere(Tree(Path(folder)), lived)
        print(f"{_share(lived, mutants)} lived every test: {[number for number, _ in lived]}")
    return 0


def _by_rooms(mutants: list[tuple[int, Mutant]], num_parts: int) -> list[list[tuple[int, Mutant]]]:
    """The mutants in so many parts that take about as long; a room stays together, for its tests run clean once."""

    def work(room: str) -> int:
        once = sum(file.stat().st_size for file in tests_of_room(room, ROOT))
        return once * (3 + sum(mutant.room == room for _, mutant in mutants))

    parts: list[list[tuple[int, Mutant]]] = [[] for _ in range(num_parts)]
    loads = [0] * num_parts
    for room in sorted({mutant.room for _, mutant in mutants}, key=work, reverse=True):
        least = loads.index(min(loads))
        loads[least] += work(room)
        parts[least] += [one for one in mutants if one[1].room == room]
    return [part for part in parts if part]


def _lived_their_room(mutants: list[tuple[int, Mutant]]) -> list[tuple[int, Mutant]] | None:
    """Those that the tests of their rooms do not see; None where tests fail on clean code."""
    lived: list[tuple[int, Mutant]] = []
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        tree = Tree(Path(folder))
        for room in sorted({mutant.room for _, mutant in mutants}):
            clean = tree.clean(room)
            if clean.word != "LIVED":
                print(
                    f"the tests of {room} fail before anything is broken: {clean.said or clean.word}",
                    flush=True,
                )
                return None
            print(f"{room}: the tests pass in {clean.seconds:.0f} s, compiling included", flush=True)
        for number, mutant in mutants:
            verdict = tree.tried(mutant)
            if verdict.word in {"LIVED", UNCLEAR}:
                lived.append((number, mutant))
            _say(number, mutant, verdict)
    return lived


def _lived_elsewhere(tree: Tree, mutants: list[tuple[int, Mutant]]) -> list[tuple[int, Mutant]]:
    """Those of the mutants that the tests of the other rooms do not see either."""
    clean = tree.clean_house()
    if clean.word != "LIVED":
        print(f"the tests fail before anything is broken: {clean.said or clean.word}")
        return mutants
    print(f"{HOUSE_TESTS}: the tests pass in {clean.seconds:.0f} s", flush=True)
    lived = []
    for number, mutant in mutants:
        verdict = tree.tried(mutant, elsewhere=True)
        if verdict.word in {"LIVED", UNCLEAR}:
            lived.append((number, mutant))
        _say(number, mutant, verdict)
    return lived


def _say(number: int, mutant: Mutant, verdict: Verdict) -> None:
    print(f"{number:>4}  {verdict.word:<7} {verdict.seconds:5.1f} s  {_described(mutant)}", flush=True)
    if verdict.said:
        print(f"                       {verdict.said}", flush=True)


def _share(some: list[tuple[int, Mutant]], every: list[tuple[int, Mutant]]) -> str:
    return f"{len(some)} of {len(every)} mutants ({len(some) / max(1, len(every)):.1%})"


def _described(mutant: Mutant) -> str:
    before, after = mutant.shown((ROOT / mutant.path).read_bytes())
    place = f"{mutant.path.relative_to(HOUSE)}:{mutant.line}"
    return f"{place}  {mutant.kind}\n      - {before}\n      + {after}"


if __name__ == "__main__":
    sys.exit(main())
