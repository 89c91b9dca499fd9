"""The cube stage of the way of the data (config -> source -> cube -> search -> release -> verify -> report): every row
becomes a record of small integers, and every column knows what its codes stand for."""

from anon.cube.building import Combinations, Combined, Cube, Encoder, RecordStore, Tuples, Widened, build
from anon.cube.domain import Domain

__all__ = ["Combinations", "Combined", "Cube", "Domain", "Encoder", "RecordStore", "Tuples", "Widened", "build"]
