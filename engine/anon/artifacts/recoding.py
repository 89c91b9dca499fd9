"""Models of recoding.json: the columns, and a tree of cuts or the chosen levels. A run writes the head and then the
list of nodes or suppressed cells, line by line; verification reads it in the same way, `explain` and `reuse` as a
whole."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SkipValidation, model_validator

from anon.artifacts.parts import ArtifactPart, Count, Finer, Several, demand
from anon.core.text import CUTTABLE

# of recoding.json; the second if nodes of a tree of cuts have a rest, the third if some are suppressed
FORMAT, WITH_REST, WITH_SUPPRESSED = 1, 2, 3
Json = dict[str, Any]
Reach = Literal["cells", "tight", "public"]  # of labels: from cut to cut, to the members, the smallest public cell
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
    cut: bool = False  # freely; the hierarchy lists its parts
    hierarchy: list[Row] = Field([], min_length=1)
    cuts: Literal["nodes", "ordered"] = "nodes"

    @model_validator(mode="after")
    def _can_be_applied(self) -> Self:
        needed = "hierarchy" if self.hierarchy else "binned" if self.kind in CUTTABLE else "values"
        demand(needed in self.model_fields_set, needed)
        demand(len({len(row) for row in self.hierarchy}) < 2, "rows of one length")
        return self

    @property
    def height(self) -> int:
        return len(self.hierarchy[0]) - 1 if self.hierarchy else 1


class RecodingHead(ArtifactPart):
    """recoding.json without its list of nodes or of suppressed cells. A recoding that assigns individuals to groups one
    by one has no such list, and facts about its search that nothing reads."""

    format: Annotated[int, Field(ge=FORMAT, le=WITH_SUPPRESSED)]
    method: str
    groups: Several
    suppressed: Count = 0
    columns: list[NamedColumn]

    @model_validator(mode="after")
    def _names_columns_once(self) -> Self:
        demand(len({column.name for column in self.columns}) == len(self.columns) > 0, "different columns")
        return self


class AssignmentRecoding(RecodingHead):
    """A recoding that assigns individuals to groups one by one."""

    @model_validator(mode="after")
    def _has_no_list(self) -> Self:
        demand(not {"nodes", "chosen"} & (self.model_extra or {}).keys(), "neither cuts nor levels")
        return self


class TreeHead(RecodingHead):
    """A tree of cuts without its nodes. With labels other than `cells`, groups have labels in all columns."""

    labels: Reach = "cells"

    columns: list[RecodedColumn]  # type: ignore[assignment]


class TreeRecoding(TreeHead):
    """A tree of cuts. There may be millions of nodes: a model of each would take several times the memory of the
    objects that the JSON parser makes, so these are kept as they are and checked one by one, without a copy."""

    nodes: Annotated[list[Json], SkipValidation]

    @model_validator(mode="after")
    def _nodes_are_a_tree(self) -> Self:
        columns = {column.name: bool(column.hierarchy) for column in self.columns}
        groups = _groups(self.nodes, columns, self.labels != "cells")
        demand(sorted(groups) == list(range(self.groups)), "every group once")
        return self


class ChosenLevels(ArtifactPart):
    """A combination of levels; what it costs is in report.json as well, and read there."""

    levels: dict[str, Count]


class LatticeHead(RecodingHead):
    """One level for each column, without the cells that were suppressed."""

    nullable = "finer"
    columns: list[RecodedColumn]  # type: ignore[assignment]
    one_level: bool = False  # a tree of cuts was coarsened to these levels
    choose: str = ""
    chosen: ChosenLevels
    minimal: list[ChosenLevels] = Field([])
    all_minimal: bool = True  # false: `minimal` lists only some of them, the best among them
    finer: list[Finer] | None = None

    @model_validator(mode="after")
    def _has_levels(self) -> Self:
        levels = self.chosen.levels
        demand(list(levels) == [column.name for column in self.columns], "a level for each column")
        demand(all(levels[column.name] <= column.height for column in self.columns), "levels of the hierarchies")
        return self


class LatticeRecoding(LatticeHead):
    """One level for each column, and the cells that were suppressed."""

    suppressed_cells: list[list[str | None]]

    @model_validator(mode="after")
    def _has_cells(self) -> Self:
        demand(all(len(cell) == len(self.columns) for cell in self.suppressed_cells), "a label for each column")
        return self


AnyRecodingFile = AssignmentRecoding | TreeRecoding | LatticeRecoding
WITH_COLUMNS: dict[str, type[TreeRecoding | LatticeRecoding]] = {"partition": TreeRecoding, "lattice": LatticeRecoding}
HEADS: dict[str, type[TreeHead | LatticeHead]] = {"partition": TreeHead, "lattice": LatticeHead}


def parse_recoding(data: Json) -> AnyRecodingFile:
    """Return the model of a recoding; raise ValueError if it does not have the form that its method writes."""
    model: type[AnyRecodingFile] = WITH_COLUMNS.get(_method(data), AssignmentRecoding)
    return model.model_validate(data)


def parse_head(data: Json) -> TreeHead | LatticeHead:
    """Return the model of a recoding without its list; raise ValueError if it does not have the form that its method
    writes."""
    method = _method(data)
    demand(method in HEADS, "a tree of cuts, or levels")
    return HEADS[method].model_validate(data)


def _method(data: Json) -> str:
    """Return the method whose form a recoding has."""
    return "lattice" if data.get("one_level") else str(data.get("method"))


def _groups(nodes: Any, columns: dict[str, bool], every: bool) -> list[int]:
    """Return the groups of a tree of cuts; `columns` states which columns have a hierarchy, `every`
    whether groups have labels in the others too. Nodes are breadth first:
    the children of a node follow those of the previous one."""
    demand(isinstance(nodes, list) and bool(nodes), "nodes")
    narrowed, following, groups = [name for name, has_hierarchy in columns.items() if has_hierarchy or every], 1, []
    for number, node in enumerate(nodes):
        demand(isinstance(node, dict) and following > number, "a node that another one leads to")
        demand(not number or ("label" in node and _is_label(node["label"])), "a label")
        if "column" in node or "children" in node:
            following = _split(node, columns, following)
        elif "suppressed" in node:
            demand(node["suppressed"] is True and not {"group", "people", "labels"} & node.keys(), "nobody")
        else:
            groups.append(_group(node, narrowed))
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
    demand(node.get("rest", True) is True and not {"rest", "cut"} <= node.keys(), "a rest or a cut")
    return following + len(children)


def _group(node: Json, narrowed: list[str]) -> int:
    group, people, labels = node.get("group"), node.get("people"), node.get("labels")
    demand(type(group) is int and type(people) is int and 0 <= people <= 2**53, "a group and its people")
    demand(isinstance(labels, dict) and list(labels) == narrowed, "the labels of narrowed columns")
    assert isinstance(group, int)
    assert isinstance(labels, dict)
    demand(all(map(_is_label, labels.values())), "labels")
    return group


def _is_label(label: Any) -> bool:
    return label is None or isinstance(label, str)
