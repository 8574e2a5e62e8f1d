package sluicegate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.VariantExtraction;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.execution.datasources.v2.FilePartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.collection.immutable.Seq;

/** The stream of one reader of one edge: passes the file slices that the planner names to Spark's Parquet reader. */
final class EdgeStream implements MicroBatchStream, SupportsAdmissionControl {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long HELD_LOOK_MS = 50;

    private final StructType schema;
    private final EdgePlanner planner;
    private FilePartitionReaderFactory parquet;

    EdgeStream(StructType schema, EdgePlanner planner) {
        this.schema = schema;
        this.planner = planner;
    }

    @Override
    public Offset initialOffset() {
        return new At(planner.latest(""));
    }

    @Override
    public Offset latestOffset() {
        throw new UnsupportedOperationException("Spark asks with a start and a limit");
    }

    @Override
    public Offset latestOffset(Offset start, ReadLimit limit) {
        String end = planner.latest(start.json());
        // Timers and watermarks make Spark run batches without input even if no offset advances: a query that is to
        // stop between two batches must block here instead. Stopped here, by an interrupt, it ends without an error.
        while (end.equals(start.json()) && planner.held()) {
            pause();
        }
        return new At(end);
    }

    private static void pause() {
        try {
            Thread.sleep(HELD_LOOK_MS);
        } catch (InterruptedException stopped) {
            throw EdgeStream.<RuntimeException>unchecked(stopped);
        }
    }

    /** Rethrows unwrapped: Spark recognises a stopped query by the InterruptedException itself. */
    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T unchecked(Throwable thrown) throws T {
        throw (T) thrown;
    }

    @Override
    public Offset deserializeOffset(String json) {
        return new At(json);
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        try {
            JsonNode read = JSON.readTree(planner.tasks(start.json(), end.json()));
            boolean whole = read.get("whole").asBoolean();
            JsonNode tasks = read.get("tasks");
            InputPartition[] partitions = new InputPartition[tasks.size()];
            for (int i = 0; i < partitions.length; i++) {
                partitions[i] = EdgePartition.of(tasks.get(i), whole);
            }
            return partitions;
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        if (parquet == null) { // it broadcasts the session's settings: once per stream, not per batch
            parquet = parquetReaders();
        }
        return new EdgeReaders(parquet);
    }

    @Override
    public void commit(Offset end) {
        // nothing to do: commits are in the checkpoint, and retention is derived from that
    }

    @Override
    public void stop() {}

    private FilePartitionReaderFactory parquetReaders() {
        SparkSession spark = SparkSession.active();
        Seq<org.apache.spark.sql.catalyst.expressions.Expression> none = scala.collection.immutable.Seq$.MODULE$.<org.apache.spark.sql.catalyst.expressions.Expression>newBuilder().result();
        ParquetScan scan = new ParquetScan(
            (org.apache.spark.sql.classic.SparkSession) spark,
            ((org.apache.spark.sql.classic.SparkSession) spark).sessionState().newHadoopConf(),
            null,
            schema,
            schema,
            new StructType(),
            new Filter[0],
            CaseInsensitiveStringMap.empty(),
            Option.<Aggregation>empty(),
            none,
            none,
            new VariantExtraction[0]);
        return (FilePartitionReaderFactory) scan.createReaderFactory();
    }

    /** An offset in the planner's own JSON, opaque to everything else. */
    private static final class At extends Offset {
        private final String json;

        At(String json) {
            this.json = json;
        }

        @Override
        public String json() {
            return json;
        }
    }
}
