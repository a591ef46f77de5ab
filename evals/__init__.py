"""Quality, measured on labelled data that are no part of this repository."""

WHERE_TO_GET = 'Where to get the data: docs/measurements.md, "The labelled data".'
