private import Glibc

/// The kernel's name for this boot, to which every ``BootInstant`` belongs.
package enum BootID {
    package static let path = "/proc/sys/kernel/random/boot_id"

    /// Returns the name; `nil` if the kernel's file cannot be read.
    package static func read() -> String? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe bytes.withUnsafeMutableBytes { buffer in
            unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        }
        let text = String(decoding: bytes.prefix(max(0, count)).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        return text.isEmpty ? nil : text
    }
}
