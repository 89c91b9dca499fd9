"""Define and read the files of a run folder: manifest.json, report.json and recoding.json."""
