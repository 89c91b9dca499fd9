"""The form of recoding.json, as `explain` and `reuse` read it: the columns, and a tree of cuts or the chosen levels. A
tree may have millions of nodes, so they are checked one by one, without a copy."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from anon.artifacts.parts import ArtifactPart, Count, Several, demand
from anon.core.text import CUTTABLE

FORMAT = 1  # of recoding.json
Json = dict[str, Any]
Row = Annotated[list[str | None], Field(min_length=2)]


class NamedColumn(ArtifactPart):
    """A quasi-identifier of any recoding."""

    name: str
    kind: str
    nulls: bool


class RecodedColumn(NamedColumn):
    """A quasi-identifier as a recoding needs it to be applied: its hierarchy, its values, or whether codes are bins."""

    binned: bool = False
    values: list[str] = Field([])
    hierarchy: list[Row] = Field([], min_length=1)

    @model_validator(mode="after")
    def _can_be_applied(self) -> Self:
        needed = "hierarchy" if self.hierarchy else "binned" if self.kind in CUTTABLE else "values"
        demand(needed in self.model_fields_set, needed)
        demand(len({len(row) for row in self.hierarchy}) < 2, "rows of one length")
        return self

    @property
    def height(self) -> int:
        return len(self.hierarchy[0]) - 1 if self.hierarchy else 1


class WrittenRecoding(ArtifactPart):
    """The keys that every recoding has; one that assigns individuals to groups one by one has no others."""

    format: Literal[1]
    method: str
    groups: Several
    columns: list[NamedColumn]

    @model_validator(mode="after")
    def _names_columns_once(self) -> Self:
        demand(len({column.name for column in self.columns}) == len(self.columns) > 0, "different columns")
        return self


class WrittenTreeRecoding(WrittenRecoding):
    """A tree of cuts; `check` checks its nodes."""

    columns: list[RecodedColumn]  # type: ignore[assignment]


class ChosenLevels(ArtifactPart):
    """The levels that the lattice method released."""

    levels: dict[str, Count]


class WrittenLatticeRecoding(WrittenRecoding):
    """One level for each column, and the cells that were suppressed."""

    columns: list[RecodedColumn]  # type: ignore[assignment]
    chosen: ChosenLevels
    suppressed_cells: list[list[str | None]]

    @model_validator(mode="after")
    def _has_levels_and_cells(self) -> Self:
        levels = self.chosen.levels
        demand(list(levels) == [column.name for column in self.columns], "a level for each column")
        demand(all(levels[column.name] <= column.height for column in self.columns), "levels of the hierarchies")
        demand(all(len(cell) == len(self.columns) for cell in self.suppressed_cells), "a label for each column")
        return self


def check(data: Json) -> None:
    """Raise ValueError if a recoding does not have the form that its method writes."""
    method = data.get("method")
    if method == "lattice":
        WrittenLatticeRecoding.model_validate(data)
    elif method == "partition":
        tree = WrittenTreeRecoding.model_validate(data)
        groups = _groups(data.get("nodes"), {column.name: bool(column.hierarchy) for column in tree.columns})
        demand(sorted(groups) == list(range(tree.groups)), "every group once")
    else:
        WrittenRecoding.model_validate(data)
        demand("nodes" not in data and "chosen" not in data, "neither cuts nor levels")


def _groups(nodes: Any, columns: dict[str, bool]) -> list[int]:
    """Return the groups of a tree of cuts; `columns` states which columns have a hierarchy. Nodes are breadth first:
    the children of a node follow those of the previous one."""
    demand(isinstance(nodes, list) and bool(nodes), "nodes")
    treed, following, groups = [name for name, has_hierarchy in columns.items() if has_hierarchy], 1, []
    for number, node in enumerate(nodes):
        demand(isinstance(node, dict) and following > number, "a node that another one leads to")
        demand(not number or ("label" in node and _is_label(node["label"])), "a label")
        if "column" in node or "children" in node:
            following = _split(node, columns, following)
        else:
            groups.append(_group(node, treed))
    demand(following == len(nodes), "nodes that others lead to")
    return groups


def _split(node: Json, columns: dict[str, bool], following: int) -> int:
    """Check a node that is split; return the number that follows those of its children."""
    column, children = node.get("column"), node.get("children")
    demand(isinstance(column, str) and column in columns, "a column")
    assert isinstance(column, str)
    demand(isinstance(children, list) and len(children) > 1, "children")
    assert isinstance(children, list)
    in_order = all(type(child) is int and child == following + at for at, child in enumerate(children))
    demand(in_order, "children in order")
    demand(columns[column] or (len(children) == 2 and "cut" in node and _is_label(node["cut"])), "a cut in two")
    return following + len(children)


def _group(node: Json, treed: list[str]) -> int:
    group, people, labels = node.get("group"), node.get("people"), node.get("labels")
    demand(type(group) is int and type(people) is int and 0 <= people <= 2**53, "a group and its people")
    demand(isinstance(labels, dict) and list(labels) == treed, "the labels of hierarchies")
    assert isinstance(group, int)
    assert isinstance(labels, dict)
    demand(all(map(_is_label, labels.values())), "labels")
    return group


def _is_label(label: Any) -> bool:
    return label is None or isinstance(label, str)
