"""What a set of tasks is, as one HTML page that people read: `sets` reads, `page` writes."""
