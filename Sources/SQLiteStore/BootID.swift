private import Glibc
import Store

/// The name that the kernel gives to this boot: leases of another boot have ended.
enum BootID {
    private static let path = "/proc/sys/kernel/random/boot_id"

    static func read() throws(StoreError) -> String {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe bytes.withUnsafeMutableBytes { room in
            unsafe Glibc.read(descriptor, room.baseAddress, room.count)
        }
        let text = String(decoding: bytes.prefix(max(0, count)).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        guard !text.isEmpty else { throw unreadable }
        return text
    }

    private static var unreadable: StoreError {
        StoreError(.cannotOpen, "\(path) cannot be read: leases need the id of this boot. Mount /proc.")
    }
}
