package sluicegate;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * spark.readStream.format("sluicegate.EdgeProvider").option("planner", name): a stream of Parquet files. A planner in
 * Python decides offsets and tasks; Spark's own vectorised reader reads the files.
 */
public final class EdgeProvider implements TableProvider {
    private static final Map<String, EdgePlanner> PLANNERS = new ConcurrentHashMap<>();

    public static void register(String name, EdgePlanner planner) {
        PLANNERS.put(name, planner);
    }

    public static void forget(String name) {
        PLANNERS.remove(name);
    }

    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        throw new IllegalArgumentException("an edge is read with the schema it was made with: give it");
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new EdgeTable(schema);
    }

    private record EdgeTable(StructType schema) implements Table, SupportsRead {
        @Override
        public String name() {
            return "sluicegate edge";
        }

        @Override
        public Set<TableCapability> capabilities() {
            return EnumSet.of(TableCapability.MICRO_BATCH_READ);
        }

        @Override
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            return () -> new EdgeScan(schema, options.get("planner"));
        }
    }

    private record EdgeScan(StructType readSchema, String planner) implements Scan {
        @Override
        public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
            EdgePlanner found = PLANNERS.get(planner);
            if (found == null) {
                throw new IllegalStateException("no planner " + planner + ": start the pipeline with sluicegate");
            }
            return new EdgeStream(readSchema, found);
        }
    }
}
