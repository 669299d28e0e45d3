"""The public description of data, and rows on their way in: schemas, files, encoded samples."""
