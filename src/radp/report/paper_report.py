"""The whole report: drive, measure, draw, write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from radp.attribution.online import calibration_of
from radp.evaluation.alignment import Aligned, align, cross_table
from radp.evaluation.closed_loop import Run
from radp.evaluation.drives import PRESSURES, Drives, pooled, read_drives
from radp.evaluation.endpoints import READINGS
from radp.evaluation.faithfulness import measure_faithfulness
from radp.evaluation.fidelity import Fidelity, fidelity, frames_of
from radp.evaluation.intervention import Intervention, intervene
from radp.evaluation.pressing import pressing_of
from radp.evaluation.prognosis import Prognosis, prognosis
from radp.report.alignment_tables import alignment_table, control_table, cross_as_table, endpoint_table, rival_table
from radp.report.document import Picture, Section, write_report
from radp.report.faithfulness_table import faithfulness_table
from radp.report.figures import Pair, draw_figures
from radp.report.intervention_table import intervention_tables
from radp.report.pressing_table import pressing_table
from radp.report.prognosis_tables import prognosis_tables
from radp.report.reproduction import Reproduction, Setup, run_drives, run_stages
from radp.report.result_tables import (
    ablation_table,
    direction_table,
    fidelity_tables,
    latency_table,
    nonreactive_table,
    overview_table,
    performance_table,
    temporal_table,
)
from radp.report.table import Table
from radp.runs.claim import claimed
from radp.runs.parallel import parallel_map
from radp.version import __version__

MOMENTS = 32  # at which explanations are compared
TITLE = "Rule-aligned diffusion planning: the paper's tables on our benchmark"


class PaperReport:
    """What the stages after the drives find, and the sections made of it."""

    def __init__(self, work: Reproduction) -> None:
        self.work, self.setup, self.scope = work, work.setup, work.setup.scope()
        self.ours, self.base = Path(work.setup.ours).name, Path(work.setup.base).name
        self.drives: dict[str, Drives] = {}
        self.aligned: dict[str, Aligned] = {}
        self.fidelities: dict[str, Fidelity] = {}
        self.interventions: list[Intervention] = []
        self.prognoses: list[Prognosis] = []
        self.faithfulness: list[Table] = []
        self.latency: dict[str, object] = {}
        self.pictures: list[Picture] = []
        self.pressing: list[Table] = []

    def stages(self) -> dict[str, Callable[[], None]]:
        """Everything in order, by name."""
        return {
            "drives": lambda: run_drives(self.work),
            "pressure on everybody": self.press,
            "fidelity and alignment": self.align,
            "prognosis": self.foretell,
            "faithfulness": self.explain,
            "latency": self.measure_latency,
            "intervention": self.intervene,
            "figures": self.draw,
        }

    def press(self) -> None:
        """Which rule presses most on whom, on the first split."""
        split = Path(self.setup.splits[0]).name
        names = [Path(planner).name for planner in self.setup.overview]
        runs = {name: self.work.runs[split, "reactive", name] for name in names}
        found = [pressing_of(run.rollouts(), name, split, "reactive") for name, run in runs.items()]
        self.pressing = [pressing_table(found, self.scope)]

    def align(self) -> None:
        """Of ours on every split that was driven, several splits at a time."""
        names = [Path(split).name for split in self.setup.splits]
        driven = [name for name in names if (name, "reactive", self.ours) in self.work.runs]
        pieces = [(name, str(self.work.runs[name, "reactive", self.ours].folder.path)) for name in driven]
        measure = partial(measure_run, self.setup.seed)
        outcome = parallel_map(
            measure, pieces, workers=self.work.workers, name=lambda piece: piece[0], label="splits measured",
            folder=self.work.folder.path,
        )  # fmt: skip
        self.work.missing += [f"alignment on {failure.piece}: {failure.reason}" for failure in outcome.failures]
        for i, (drives, aligned, agreement) in outcome.results.items():
            self.drives[driven[i]], self.aligned[driven[i]] = drives, aligned
            if agreement is not None:
                self.fidelities[driven[i]] = agreement

    def foretell(self) -> None:
        """Pressure against the measures of a safety engineer, all splits pooled."""
        together = pooled(list(self.drives.values()))
        found = [source for source in PRESSURES if source in together.scores]
        self.prognoses = [prognosis(together, source, seed=self.setup.seed) for source in found]

    def explain(self) -> None:
        """Pressure against other families of explanation, on the first split; the table is kept."""
        run = self.work.runs[Path(self.setup.splits[0]).name, "reactive", self.ours]
        moments = min(self.setup.scenarios or MOMENTS, MOMENTS)

        def measure() -> dict[str, object]:
            found = measure_faithfulness(run, moments, seed=self.setup.seed)
            return asdict(faithfulness_table(found, f"{self.ours} on {Path(self.setup.splits[0]).name}"))

        kept = self.work.result("faithfulness", measure)
        rows = tuple(tuple(row) for row in kept["rows"])
        self.faithfulness = [Table(kept["title"], tuple(kept["header"]), rows, (self.scope, *kept["notes"]))]

    def measure_latency(self) -> None:
        from radp.bench.attribution import bench_attribution

        self.latency = self.work.result("latency", lambda: bench_attribution(self.setup.ours, states=self.setup.states))

    def intervene(self) -> None:
        setup, run = self.setup, self.work.runs[Path(self.setup.splits[0]).name, "reactive", self.ours]
        out, limit, workers = self.work.folder.path / "intervention", setup.intervention_limit, self.work.workers
        drives = self.drives.get(Path(self.setup.splits[0]).name)
        self.interventions = intervene(run, out, setup.intervention, limit=limit, workers=workers, drives=drives)

    def draw(self) -> None:
        split = Path(self.work.hardest).name
        base, ours = (
            self.work.runs[split, "reactive", Path(name).name] for name in (self.work.shown_against, self.setup.ours)
        )
        pairs = [Pair.of(a, b) for a, b in zip(base.rollouts(), ours.rollouts()) if not (a.failure or b.failure)]
        calibrated = calibration_of(None, self.setup.ours) is not None
        self.pictures = draw_figures(pairs, self.work.folder.path / "figures", calibrated)

    def sections(self) -> list[Section]:
        """In the order of the paper."""
        work, base, ours, scope = self.work, self.base, self.ours, self.scope
        rows = work.rows("reactive", (self.setup.base, self.setup.ours))
        everyone = work.rows("reactive", self.setup.overview)
        ablation = {setting: Path(name).name for setting, name in self.setup.ablation.items() if name}
        ablation = {setting: ablation.get(setting, "") for setting in self.setup.ablation}
        ablated = work.rows("reactive", [name for name in self.setup.ablation.values() if name], [work.hardest])
        first = next(iter(self.aligned), None)
        planning = [performance_table(rows, base, ours, scope)]
        if base != ours:
            planning.append(direction_table(rows, base, ours, scope))
        planning.append(overview_table(everyone, scope))
        planning += self.pressing
        alignment = fidelity_tables(self.fidelities, self.aligned, scope)
        if first is not None:
            like_paper = align(self.drives[first], self.setup.seed, reading="paper")
            alignment += [*map(endpoint_table, READINGS), temporal_table(like_paper, first, scope)]
            for name, drives in self.drives.items():
                committed = align(drives, self.setup.seed, reading="committed")
                alignment.append(_with(alignment_table(committed, f"{ours} on {name}"), scope))
            alignment += [
                _with(alignment_table(aligned, f"{ours} on {name}"), scope) for name, aligned in self.aligned.items()
            ]
        hard = f"{scope} Split: {Path(work.hardest).name}."
        replayed = work.rows("nonreactive", (self.setup.base, self.setup.ours))
        learned = dict.fromkeys((*self.setup.trained, self.setup.base, self.setup.ours))
        unmoved = overview_table(work.rows("nonreactive", tuple(learned)), scope, "nonreactive")
        return [
            Section("Planner performance", tables=tuple(planning)),
            Section("Attribution: fidelity and temporal risk alignment", tables=tuple(alignment)),
            Section("Controls", tables=tuple(self.controls())),
            Section("Prognosis", self.absent("prognosis", self.prognoses), self.prognosis_tables()),
            Section("Faithfulness", self.absent("faithfulness", self.faithfulness), tuple(self.faithfulness)),
            Section("Efficiency", self.absent("latency", self.latency), self.latency_tables()),
            Section("Figures", (scope,), pictures=tuple(self.pictures)),
            Section("Ablation", tables=(ablation_table(ablated, ablation, ours, hard),)),
            Section("Non-reactive agents", tables=(nonreactive_table(replayed, base, ours, scope), unmoved)),
        ]

    def controls(self) -> list[Table]:
        """More than the paper has: rivals, all pairs, intervention."""
        found = []
        if len(self.drives) > 1:
            together, where = align(pooled(list(self.drives.values())), self.setup.seed), " + ".join(self.drives)
            for make in (alignment_table, control_table):
                found.append(_with(make(together, f"{self.ours} on {where} pooled"), self.scope))
        for name, aligned in self.aligned.items():
            where = f"{self.ours} on {name}"
            found.append(_with(control_table(aligned, where), self.scope))
            found.append(_with(rival_table(aligned, where), self.scope))
            for source in PRESSURES:
                if source in self.drives[name].scores:
                    found.append(_with(cross_as_table(cross_table(self.drives[name], source), where), self.scope))
        if self.interventions:
            where = f"{self.ours} on {Path(self.setup.splits[0]).name}"
            found += [_with(table, self.scope) for table in intervention_tables(self.interventions, where)]
        return found

    def latency_tables(self) -> tuple[Table, ...]:
        return (latency_table(self.latency, self.scope),) if self.latency else ()

    def prognosis_tables(self) -> tuple[Table, ...]:
        where = f"{self.ours} on {' + '.join(self.drives)}"
        return tuple(_with(table, self.scope) for one in self.prognoses for table in prognosis_tables(one, where))

    def absent(self, stage: str, found: object) -> tuple[str, ...]:
        return () if found else (f"The stage '{stage}' is not available here.",)


def measure_run(seed: int, piece: tuple[str, str]) -> tuple[Drives, Aligned, Fidelity | None]:
    """Name of a split and folder of the taught drives on it -> these, alignment, and fidelity if there is a head."""
    name, folder = piece
    run = Run.open(folder)
    drives = read_drives(run, committed=True, measures=True)
    agreement = fidelity(frames_of(run.rollouts()), name, seed) if "head" in drives.scores else None
    return drives, align(drives, seed), agreement


def _with(table: Table, note: str) -> Table:
    return Table(table.title, table.header, table.rows, (note, *table.notes))


def reproduce_paper(setup: Setup, out: Path, workers: int, say: Callable[[str], None]) -> tuple[Path, Path]:
    """Everything, or what is missing of it, and then the report: paths of REPORT.md and report.html."""
    with claimed(out):
        return _reproduce(Reproduction.open(setup, out, workers), say)


def _reproduce(work: Reproduction, say: Callable[[str], None]) -> tuple[Path, Path]:
    setup, report = work.setup, PaperReport(work)
    run_stages(work, report.stages(), say)
    lead = [
        f"radp {__version__}, seed {setup.seed}. Base: {report.base}. Ours: {report.ours}. {report.scope}",
        "Every table shows the paper's own numbers, too. Theirs are from nuPlan with full-size models, ours from the "
        "splits named in the tables: directions are comparable, levels are not. A difference whose 95% interval "
        "contains 0 is printed as 'no difference shown'.",
    ]
    if setup.base == setup.ours:
        lead.append(f"No aligned planner is packaged: {report.base} stands for both, and there is nothing to compare.")
    lead += [f"Left out: {reason}" for reason in work.missing]
    return write_report(work.folder.path, TITLE, lead, report.sections())
