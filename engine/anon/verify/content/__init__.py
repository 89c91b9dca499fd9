"""Compare the content of a release with the source: per published group, the labels and the multiset of the rows with
their sensitive and kept values must be those of the source's rows under the written recoding. The expected side is
computed from the source and recoding.json, with no state and no code of the search or of the writer; the published
side, from the written files. Both are order-free sums, so that any number of groups is compared at no cost."""

from anon.verify.content.fingerprint import EMPTY, Content
from anon.verify.content.from_files import published
from anon.verify.content.from_source import expected

__all__ = ["EMPTY", "Content", "expected", "published"]
