package sluicegate;

import java.io.IOException;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.FilePartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/** Reads a task's slices one after the other: columnar if all tasks read whole row groups, else row by row. */
record EdgeReaders(FilePartitionReaderFactory parquet) implements PartitionReaderFactory {
    private static final String TOPIC = "kafka/";

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return ((EdgePartition) partition).whole() && parquet.supportColumnarReads(partition);
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        return new InTurn<>((EdgePartition) partition, slice -> parquet.buildColumnarReader(slice.file()));
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        return new InTurn<>(
            (EdgePartition) partition,
            slice -> slice.path().startsWith(TOPIC) ? new Named(slice) : new Part(parquet.buildReader(slice.file()), slice));
    }

    /** Concatenates the readers of several slices. */
    private static final class InTurn<T> implements PartitionReader<T> {
        private final EdgePartition.Slice[] slices;
        private final Function<EdgePartition.Slice, PartitionReader<T>> open;
        private PartitionReader<T> now;
        private int next;

        InTurn(EdgePartition partition, Function<EdgePartition.Slice, PartitionReader<T>> open) {
            this.slices = partition.slices();
            this.open = open;
        }

        @Override
        public boolean next() throws IOException {
            while (now == null || !now.next()) {
                close();
                if (next == slices.length) {
                    return false;
                }
                now = open.apply(slices[next++]);
            }
            return true;
        }

        @Override
        public T get() {
            return now.get();
        }

        @Override
        public void close() throws IOException {
            if (now != null) {
                now.close();
                now = null;
            }
        }
    }

    /** Yields one row that names a slice of a Kafka topic; the Python operator behind it reads the records. */
    private static final class Named implements PartitionReader<InternalRow> {
        private final InternalRow row;
        private boolean given;

        Named(EdgePartition.Slice slice) {
            row = new GenericInternalRow(new Object[] {UTF8String.fromString(slice.path()), slice.skip(), slice.take()});
        }

        @Override
        public boolean next() {
            boolean first = !given;
            given = true;
            return first;
        }

        @Override
        public InternalRow get() {
            return row;
        }

        @Override
        public void close() {}
    }

    /** Skips the first rows of a reader and yields a limited number of the rest. */
    private static final class Part implements PartitionReader<InternalRow> {
        private final PartitionReader<InternalRow> all;
        private long skip;
        private long take;

        Part(PartitionReader<InternalRow> all, EdgePartition.Slice slice) {
            this.all = all;
            this.skip = slice.skip();
            this.take = slice.take();
        }

        @Override
        public boolean next() throws IOException {
            for (; skip > 0; skip--) {
                if (!all.next()) {
                    return false;
                }
            }
            return take-- > 0 && all.next();
        }

        @Override
        public InternalRow get() {
            return all.get();
        }

        @Override
        public void close() throws IOException {
            all.close();
        }
    }
}
