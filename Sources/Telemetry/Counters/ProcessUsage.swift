private import Glibc

/// The resources that this process uses, as reported by the kernel.
package struct ProcessUsage: Hashable, Sendable {
    package var residentBytes: Int?
    package var openDescriptors: Int?
    /// The time on processors, of all threads together.
    package var cpuTime: Duration

    /// Reads the usage from `/proc`, which never waits for a disk.
    package static var current: ProcessUsage {
        ProcessUsage(
            residentBytes: residentPages.map { $0 * Int(getpagesize()) },
            openDescriptors: descriptors,
            // In microseconds (https://man7.org/linux/man-pages/man3/clock.3.html).
            cpuTime: .microseconds(clock())
        )
    }

    /// The second number of statm (https://man7.org/linux/man-pages/man5/proc_pid_statm.5.html).
    private static var residentPages: Int? {
        let descriptor = unsafe open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = unsafe read(descriptor, &buffer, buffer.count)
        guard count > 0 else { return nil }
        let numbers = String(decoding: buffer[..<count], as: UTF8.self).split(separator: " ")
        return numbers.count > 1 ? Int(numbers[1]) : nil
    }

    private static var descriptors: Int? {
        guard let folder = unsafe opendir("/proc/self/fd") else { return nil }
        defer { unsafe closedir(folder) }
        var count = 0
        while let entry = unsafe readdir(folder) {
            // "." and "..", the only names that begin with a dot.
            if unsafe entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
        }
        // The descriptor of the folder itself is not counted.
        return count - 1
    }
}
