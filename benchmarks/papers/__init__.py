"""One benchmark for each paper: its figures and tables, and what of them comes out here."""
