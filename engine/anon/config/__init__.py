"""The config: `load` makes one typed `Config` of a YAML file or a mapping and reports all mistakes at once;
`json_schema` describes the same grammar to editors."""

from anon.config.aggregation import Aggregation
from anon.config.columns import (
    Bands,
    Builder,
    BuilderModel,
    Calendar,
    Columns,
    Digits,
    Free,
    HierarchyFile,
    Intervals,
    Nulls,
    RowRule,
    Sensitive,
    Suppress,
)
from anon.config.criteria import CRITERIA
from anon.config.criteria.dissimilarity import Dissimilarity
from anon.config.criteria.l_diversity import LDiversity
from anon.config.criteria.r_robustness import PriorEstimate, PriorFile, RRobustness
from anon.config.criteria.skyline import Point, Skyline
from anon.config.criteria.t_closeness import TCloseness
from anon.config.criteria.withstands import Withstands
from anon.config.criterion import Criterion
from anon.config.distances import Absolute, Equal, HierarchyDistance, Matrix, Ordered, Variational
from anon.config.grammar import (
    MOST_THREADS,
    Backend,
    Colour,
    Config,
    DuckDB,
    InformationGain,
    Lattice,
    Limits,
    Local,
    Merge,
    Method,
    Partition,
    Postgres,
    Release,
    Reuse,
    Source,
    Spark,
    json_schema,
)
from anon.config.load import LARGEST_EXPONENT, load, without_secrets
from anon.config.secrets import redact
from anon.config.series import Append, Invariant
from anon.config.text_files import Csv
from anon.config.values import parse_size

__all__ = [
    "CRITERIA",
    "LARGEST_EXPONENT",
    "MOST_THREADS",
    "Absolute",
    "Aggregation",
    "Append",
    "Backend",
    "Bands",
    "Builder",
    "BuilderModel",
    "Calendar",
    "Colour",
    "Columns",
    "Config",
    "Criterion",
    "Csv",
    "Digits",
    "Dissimilarity",
    "DuckDB",
    "Equal",
    "Free",
    "HierarchyDistance",
    "HierarchyFile",
    "InformationGain",
    "Intervals",
    "Invariant",
    "LDiversity",
    "Lattice",
    "Limits",
    "Local",
    "Matrix",
    "Merge",
    "Method",
    "Nulls",
    "Ordered",
    "Partition",
    "Point",
    "Postgres",
    "PriorEstimate",
    "PriorFile",
    "RRobustness",
    "Release",
    "Reuse",
    "RowRule",
    "Sensitive",
    "Skyline",
    "Source",
    "Spark",
    "Suppress",
    "TCloseness",
    "Variational",
    "Withstands",
    "json_schema",
    "load",
    "parse_size",
    "redact",
    "without_secrets",
]
