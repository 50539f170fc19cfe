"""Whether verdicts are right: of each class, how many factors come back in another half of the rows."""
