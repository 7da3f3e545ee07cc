"""Pages that show drives: self-contained HTML that opens from a file, and films of the same."""

from radp.report.viewer.site import Site, write_films, write_site

__all__ = ["Site", "write_films", "write_site"]
