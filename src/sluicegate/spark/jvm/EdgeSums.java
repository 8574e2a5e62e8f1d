package sluicegate;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.zip.CRC32;

/**
 * Checksums of data files, a CRC-32 per block, in the format of {@code edges/file_sums.py}.
 *
 * <p>Bytes that were just written, or are about to be decoded, are in the page cache, and CPUs have instructions for
 * CRC-32. Checking a block costs far less than decoding it.
 */
final class EdgeSums {
    static final int BLOCK = 1 << 20;
    private static final int DIGITS = 8;
    private static final int MAGIC = 8; // bytes at the end: the footer's length, and Parquet's magic number
    private static final ThreadLocal<ByteBuffer> BUFFER =
        ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(BLOCK).order(ByteOrder.LITTLE_ENDIAN));

    private EdgeSums() {}

    /** The sums of all blocks of a file, eight hexadecimal digits each. */
    static String of(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            long size = channel.size();
            StringBuilder sums = new StringBuilder();
            for (long at = 0; at < size; at += BLOCK) {
                sums.append(sum(channel, at, size));
            }
            return sums.toString();
        }
    }

    /** Checks the blocks that a reader of {@code length} bytes from {@code start} needs, and the footer. */
    static void check(Path file, long size, String sums, long start, long length) throws IOException {
        if (sums.isEmpty()) { // written by a version without checksums
            return;
        }
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            if (channel.size() != size) {
                throw new EdgeSpoiled(file, "has " + channel.size() + " bytes, " + size + " were written");
            }
            int last = (int) ((size - 1) / BLOCK);
            check(file, channel, size, sums, last);
            int footer = (int) ((size - MAGIC - footerBytes(channel, size)) / BLOCK);
            int from = (int) (start / BLOCK);
            int to = (int) ((start + length - 1) / BLOCK);
            for (int block = 0; block < last; block++) {
                if (block >= footer || block >= from && block <= to) {
                    check(file, channel, size, sums, block);
                }
            }
        } catch (NoSuchFileException gone) {
            throw new EdgeSpoiled(file, "is missing");
        }
    }

    private static void check(Path file, FileChannel channel, long size, String sums, int block) throws IOException {
        long at = (long) block * BLOCK;
        if (!sums.startsWith(sum(channel, at, size), block * DIGITS)) {
            throw new EdgeSpoiled(file, "was changed after it was written (the checksum of its bytes " + at + " to "
                + Math.min(at + BLOCK, size) + " does not match)");
        }
    }

    /** Length of the footer; call it only after the last block was checked. */
    private static long footerBytes(FileChannel channel, long size) throws IOException {
        ByteBuffer four = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN);
        channel.read(four, size - MAGIC);
        return four.getInt(0);
    }

    private static String sum(FileChannel channel, long at, long size) throws IOException {
        ByteBuffer buffer = BUFFER.get().clear().limit((int) Math.min(BLOCK, size - at));
        while (buffer.hasRemaining() && channel.read(buffer, at + buffer.position()) >= 0) {
            // a read may return fewer bytes than requested
        }
        CRC32 sum = new CRC32();
        sum.update(buffer.flip());
        return String.format("%08x", sum.getValue());
    }
}
