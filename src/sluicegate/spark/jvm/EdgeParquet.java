package sluicegate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * Spark's Parquet format with checksums: verifies the part of an edge's file that a task is about to read.
 *
 * <p>Option {@code sums}: {"PATH": [bytes, "sums"], ..}, as in manifests.
 */
public final class EdgeParquet extends ParquetFileFormat {
    private static final long serialVersionUID = 1L;

    @Override
    public Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(
        SparkSession spark,
        StructType data,
        StructType partition,
        StructType required,
        Seq<Filter> filters,
        scala.collection.immutable.Map<String, String> options,
        Configuration hadoop) {
        return new Checked(
            known(options.apply("sums")),
            super.buildReaderWithPartitionValues(spark, data, partition, required, filters, options, hadoop));
    }

    private static HashMap<String, Known> known(String json) {
        try {
            HashMap<String, Known> found = new HashMap<>();
            for (Map.Entry<String, JsonNode> file : new ObjectMapper().readTree(json).properties()) {
                found.put(file.getKey(), new Known(file.getValue().get(0).asLong(), file.getValue().get(1).asText()));
            }
            return found;
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }

    private record Known(long size, String sums) implements Serializable {}

    private static final class Checked extends AbstractFunction1<PartitionedFile, Iterator<InternalRow>>
        implements Serializable {
        private static final long serialVersionUID = 1L;
        private final HashMap<String, Known> known;
        private final Function1<PartitionedFile, Iterator<InternalRow>> read;

        Checked(HashMap<String, Known> known, Function1<PartitionedFile, Iterator<InternalRow>> read) {
            this.known = known;
            this.read = read;
        }

        @Override
        public Iterator<InternalRow> apply(PartitionedFile file) {
            Path path = Path.of(file.toPath().toUri().getPath());
            Known one = known.get(path.toString());
            try {
                if (one != null) {
                    EdgeSums.check(path, one.size(), one.sums(), file.start(), file.length());
                }
            } catch (IOException problem) {
                throw new UncheckedIOException(problem);
            }
            return read.apply(file);
        }
    }
}
