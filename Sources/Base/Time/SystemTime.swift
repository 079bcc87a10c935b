private import Glibc

/// The clocks of the machine.
package struct SystemTime: TimeSource {
    package init() {}

    package var now: Timestamp { Timestamp(milliseconds: Self.read(CLOCK_REALTIME)) }

    package var sinceBoot: BootInstant { BootInstant(milliseconds: Self.read(CLOCK_BOOTTIME)) }

    package func sleep(for span: Duration) async throws(CancellationError) {
        do {
            try await Task.sleep(for: span)
        } catch {
            // Cancellation is the only error of a sleep.
            throw CancellationError()
        }
    }

    /// Blocks the calling thread, which must be one that only waits for a file or a database.
    package static func blockThread(for span: Duration) {
        usleep(useconds_t(clamping: span.wholeMilliseconds * 1000))
    }

    package static let bootIDPath = "/proc/sys/kernel/random/boot_id"

    /// The kernel's name for this boot, to which every ``BootInstant`` belongs, or `nil` if it cannot be read.
    package static var bootID: String? {
        let descriptor = unsafe open(bootIDPath, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe bytes.withUnsafeMutableBytes { buffer in
            unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        }
        let text = String(decoding: bytes.prefix(max(0, count)).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        return text.isEmpty ? nil : text
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var point = timespec()
        // Both clocks exist on every Linux since 2.6.39, so the call cannot fail.
        let result = unsafe clock_gettime(clock, &point)
        precondition(result == 0, "clock_gettime(\(clock)) failed with errno \(errno)")
        return Int64(point.tv_sec) * 1000 + Int64(point.tv_nsec) / 1_000_000
    }
}
