"""From results to a report: figures, tables and one page that holds them all."""
