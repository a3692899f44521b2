"""The harness of bench/run and bench/report: tasks, the peers' processes, lines of results, pages."""
