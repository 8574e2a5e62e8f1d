package sluicegate;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.parquet.hadoop.ParquetOutputCommitter;

/**
 * Writes a file {@code _sums-TASK} beside the Parquet files of each task: a line "path, bytes, sums" for each of them.
 *
 * <p>Checksums are computed here because the file is still in the page cache of the machine that wrote it.
 */
public final class EdgeCommitter extends ParquetOutputCommitter {
    public EdgeCommitter(org.apache.hadoop.fs.Path output, TaskAttemptContext context) throws IOException {
        super(output, context);
    }

    @Override
    public void commitTask(TaskAttemptContext context) throws IOException {
        Path work = Path.of(getWorkPath().toUri().getPath());
        if (Files.isDirectory(work)) {
            StringBuilder lines = new StringBuilder();
            for (Path file : written(work)) {
                lines.append(work.relativize(file)).append('\t').append(Files.size(file)).append('\t');
                lines.append(EdgeSums.of(file)).append('\n');
            }
            Files.writeString(work.resolve("_sums-" + context.getTaskAttemptID()), lines, StandardCharsets.UTF_8);
        }
        super.commitTask(context);
    }

    private static List<Path> written(Path folder) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            return all.filter(path -> path.toString().endsWith(".parquet")).toList();
        }
    }
}
