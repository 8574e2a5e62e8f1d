package sluicegate;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.collection.immutable.Map$;

/** The file slices that one task reads. */
record EdgePartition(Slice[] slices, boolean whole) implements InputPartition {
    /** Rows {@code skip} to {@code skip + take} of the row groups with their middle in [start, start + length). */
    record Slice(String path, long start, long length, long size, long skip, long take, String sums)
        implements Serializable {
        /** The part of the file to read, after its checksums were verified. */
        PartitionedFile file() {
            try {
                EdgeSums.check(java.nio.file.Path.of(path), size, sums, start, length);
            } catch (IOException problem) {
                throw new UncheckedIOException(problem);
            }
            return new PartitionedFile(
                InternalRow.empty(), SparkPath.fromPath(new Path("file", null, path)), start, length, new String[0], 0L, size, Map$.MODULE$.empty());
        }
    }

    static EdgePartition of(JsonNode task, boolean whole) {
        Slice[] slices = new Slice[task.size()];
        for (int i = 0; i < slices.length; i++) {
            JsonNode p = task.get(i);
            slices[i] = new Slice(
                p.get(0).asText(), p.get(1).asLong(), p.get(2).asLong(), p.get(3).asLong(), p.get(4).asLong(), p.get(5).asLong(),
                p.get(6).asText());
        }
        return new EdgePartition(slices, whole);
    }
}
