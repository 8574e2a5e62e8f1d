package sluicegate;

import java.nio.file.Path;

/** A data file is missing or changed since it was written; the message has the format of {@code edges/spoiled.py}. */
public final class EdgeSpoiled extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** {@code file} is EDGE/data/NUMBER-x/NAME; {@code what} follows its name. */
    EdgeSpoiled(Path file, String what) {
        super(line(file, what));
    }

    private static String line(Path file, String what) {
        Path edge = file.getParent().getParent().getParent();
        String number = file.getParent().getFileName().toString().split("-")[0];
        return "edge '" + edge.getFileName() + "', manifest " + number + ": " + edge.relativize(file) + " " + what
            + ": restore it from a backup of " + edge + ", or start in a new folder";
    }
}
